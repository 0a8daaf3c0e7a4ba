use super::fields::frontend;
use super::protocol::{Stats, VersionInfo, VersionTaskQueue};
use super::*;
use crate::grpc::tests::{Script, answer, serve};
use crate::tests::{context, outcome, soon, spec_of};
use crate::{connect, parse};
use std::time::Duration;

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    const CONTEXT: &str = "failed to parse Temporal metadata: error parsing temporal metadata: ";
    const GOOD: &str = "endpoint=t:7233;taskQueue=orders:new";
    for (text, expected) in [
        (GOOD.to_owned(), "s0-temporal-default-orders-new 5 0"),
        (
            format!(
                "{GOOD};namespace=shop;targetQueueSize=2;activationTargetQueueSize=1;queueTypes=workflow, nexus"
            ),
            "s0-temporal-shop-orders-new 2 1",
        ),
        (
            format!("{GOOD};workerDeploymentName=d;workerDeploymentBuildId=1.0"),
            "s0-temporal-default-orders-new-d-1-0 5 0",
        ),
        (
            String::new(),
            "missing required parameter \"endpoint\" in [triggerMetadata resolvedEnv]\n\
             missing required parameter \"taskQueue\" in [triggerMetadata resolvedEnv]",
        ),
        (format!("{GOOD};targetQueueSize=0"), "targetQueueSize must be a positive number"),
        (
            format!("{GOOD};activationTargetQueueSize=-1"),
            "activationTargetQueueSize must be a positive number",
        ),
        (format!("{GOOD};minConnectTimeout=-1"), "minConnectTimeout must be a positive number"),
        (format!("{GOOD};queueTypes=timer"), "unknown queue type \"timer\""),
        (format!("{GOOD};auth.cert=c"), "both cert and key must be provided when using TLS"),
        ("endpoint=http://t;taskQueue=q".to_owned(), "parameter \"endpoint\" is not host:port"),
        (
            format!("{GOOD};buildId=1.0"),
            "scaler temporal info: 'buildId' is not supported any longer",
        ),
        (
            format!("{GOOD};workerDeploymentName=d"),
            "workerDeploymentName and workerDeploymentBuildId must both be set",
        ),
        (
            format!("{GOOD};workflowTaskQueueForCount=w"),
            "workflowTaskQueueForCount has no effect unless includeRunningWorkflowCount is true",
        ),
        (
            "endpoint=t:1;taskQueue=a'b;includeRunningWorkflowCount=true".to_owned(),
            "value \"a'b\" contains characters not allowed in Temporal visibility queries when \
             includeRunningWorkflowCount is enabled",
        ),
    ] {
        let found = outcome("temporal", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn keys_are_only_sent_over_tls_unless_asked_for_and_never_shown() {
    for (text, tls) in [
        ("", false),
        ("auth.apiKey=hunter2", true),
        ("auth.apiKey=hunter2;enableTLS=false", false),
        ("auth.apiKey=hunter2;enableTLS=false;auth.ca=c", true),
        ("unsafeSsl=true", false),
    ] {
        let text = format!("endpoint=t:7233;taskQueue=q;{text}");
        let spec = spec_of("temporal", &text);
        let found = frontend(&mut Fields::new(&spec), "t:7233");
        assert_eq!(found.tls.is_some(), tls, "{text}");
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}

fn method(name: &str) -> &'static str {
    protocol::method(name).leak()
}

fn stats(count: i64) -> Option<Stats> {
    Some(Stats { approximate_backlog_count: count })
}

/// What a trigger gives while a server answers so, by method: messages and a status.
async fn given(more: &str, answers: &[(&str, Vec<bytes::Bytes>, &'static str)]) -> String {
    let (script, asked) = (Script::default(), Arc::default());
    let address = serve(script.clone(), asked).await;
    let text = format!("endpoint={address};taskQueue=q;activationTargetQueueSize=6;{more}");
    let mut context = context();
    context.freshness = Duration::ZERO;
    let parsed = parse(&spec_of("temporal", &text)).expect("a trigger");
    let scaler = connect(parsed, &context).expect("a scaler");
    for (name, messages, status) in answers {
        script.lock().insert(method(name), (messages.clone(), *status));
    }
    match scaler.poll(soon()).await {
        Ok(values) => format!("{} {}", values[0].value, values[0].active),
        Err(error) => error.to_string().replace(&address, "ADDRESS"),
    }
}

#[tokio::test]
async fn tasks_of_all_types_count() {
    let queue = |count| vec![answer(&DescribeTaskQueueResponse { stats: stats(count) })];
    for (more, messages, status, expected) in [
        ("", queue(3), "0", "9 true"),
        ("queueTypes=workflow,nexus", queue(3), "0", "6 false"),
        ("", vec![answer(&DescribeTaskQueueResponse::default())], "0", "0 false"),
        (
            "",
            vec![],
            "5 Namespace shop is not found.",
            "failed to get Temporal backlog count: temporal ADDRESS gives no value: Namespace shop is not \
             found. (gRPC 5)",
        ),
        (
            "",
            vec![],
            "7 Request unauthorized.",
            "temporal ADDRESS refuses the credentials: Request unauthorized.",
        ),
    ] {
        let found = given(more, &[("DescribeTaskQueue", messages, status)]).await;
        assert_eq!(found, expected, "{more} {status}");
    }
}

#[tokio::test]
async fn versions_of_workers_have_tasks_of_their_own() {
    const VERSION: &str = "workerDeploymentName=d;workerDeploymentBuildId=1";
    const RUNNING: &str = "includeRunningWorkflowCount=true";
    let version = |status: i32, counts: &[(&str, i32, i64)]| {
        let queue = |(name, kind, count): &(&str, i32, i64)| VersionTaskQueue {
            name: (*name).to_owned(),
            kind: *kind,
            stats: stats(*count),
        };
        vec![answer(&DescribeWorkerDeploymentVersionResponse {
            info: Some(VersionInfo { status }),
            version_task_queues: counts.iter().map(queue).collect(),
        })]
    };
    let all = [("q", 1, 4), ("q", 2, 3), ("other", 1, 9)];
    for (more, status, counts, running, expected) in [
        ("", protocol::CURRENT, &all[..], 0, "7 true"),
        ("queueTypes=workflow", protocol::CURRENT, &all[..], 0, "4 false"),
        (RUNNING, protocol::CURRENT, &all[..0], 0, "0 false"),
        (RUNNING, protocol::CURRENT, &all[..0], 2, "0 true"),
        (RUNNING, protocol::RAMPING, &all[..0], 2, "0 true"),
        (RUNNING, protocol::DRAINING, &all[..0], 0, "0 true"),
        // It has drained: workflows that are counted a moment too late do not matter.
        (RUNNING, 5, &all[..0], 2, "0 false"),
    ] {
        let counted = vec![answer(&CountWorkflowExecutionsResponse { count: running })];
        let answers = [
            ("DescribeWorkerDeploymentVersion", version(status, counts), "0"),
            ("CountWorkflowExecutions", counted, "0"),
        ];
        let found = given(&format!("{VERSION};{more}"), &answers).await;
        assert_eq!(found, expected, "{more} {status} {running}");
    }
}

#[tokio::test]
async fn running_workflows_keep_a_queue_active_and_a_count_that_fails_is_an_error() {
    let empty = vec![answer(&DescribeTaskQueueResponse::default())];
    for (count, status, expected) in [
        (1, "0", "0 true"),
        (0, "0", "0 false"),
        (
            0,
            "3 no such attribute",
            "failed to get Temporal backlog count: temporal ADDRESS gives no value: no such attribute (gRPC 3)",
        ),
    ] {
        let counted = vec![answer(&CountWorkflowExecutionsResponse { count })];
        let counted = if status == "0" { counted } else { Vec::new() };
        let answers = [
            ("DescribeTaskQueue", empty.clone(), "0"),
            ("CountWorkflowExecutions", counted, status),
        ];
        let found = given("includeRunningWorkflowCount=true", &answers).await;
        assert_eq!(found, expected);
    }
}

#[test]
fn workflows_are_counted_by_queue_and_version() {
    const ALL: &str = "ExecutionStatus = 'Running' AND TaskQueue = ";
    for (text, expected) in [
        ("", None),
        (
            "includeRunningWorkflowCount=true",
            Some("'q' AND TemporalWorkerDeploymentVersion is null"),
        ),
        (
            "includeRunningWorkflowCount=true;workflowTaskQueueForCount=w;workerDeploymentName=d;\
             workerDeploymentBuildId=1.0",
            Some("'w' AND TemporalWorkerDeploymentVersion = 'd:1.0'"),
        ),
    ] {
        let spec = spec_of("temporal", &format!("endpoint=t:1;taskQueue=q;{text}"));
        let (question, ..) = fields::read(&mut Fields::new(&spec));
        let expected = expected.map(|rest| format!("{ALL}{rest}").into_boxed_str());
        assert_eq!(question.tasks.running, expected, "{text}");
    }
}
