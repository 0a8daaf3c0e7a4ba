use super::protocol::{Stats, TypeInfo, VersionInfo};
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
    ] {
        let found = outcome("temporal", &text);
        assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
    }
}

#[test]
fn keys_are_only_sent_over_tls_and_never_shown() {
    for (text, tls) in [("", false), ("auth.apiKey=hunter2", true), ("unsafeSsl=true", false)] {
        let text = format!("endpoint=t:7233;taskQueue=q;{text}");
        let spec = spec_of("temporal", &text);
        let found = frontend(&mut Fields::new(&spec), "t:7233");
        assert_eq!(found.tls.is_some(), tls, "{text}");
        assert!(!format!("{found:?}").contains("hunter2"));
    }
}

fn waiting(numbers: &[(&str, i32, i64)]) -> DescribeTaskQueueResponse {
    let mut response = DescribeTaskQueueResponse::default();
    for (version, kind, count) in numbers {
        let stats = Some(Stats { approximate_backlog_count: *count });
        let version: &mut VersionInfo =
            response.versions_info.entry((*version).to_owned()).or_default();
        version.types_info.insert(*kind, TypeInfo { stats });
    }
    response
}

#[tokio::test]
async fn tasks_of_all_versions_and_types_count() {
    let (script, asked) = (Script::default(), Arc::default());
    let address = serve(script.clone(), asked).await;
    let mut context = context();
    context.freshness = Duration::ZERO;
    let text = format!("endpoint={address};taskQueue=q;activationTargetQueueSize=6");
    let parsed = parse(&spec_of("temporal", &text)).expect("a trigger");
    let scaler = connect(parsed, &context).expect("a scaler");
    let three = waiting(&[("", 1, 2), ("", 2, 1), ("v2", 1, 4)]);
    for (message, status, expected) in [
        (vec![answer(&three)], "0", "7 true"),
        (vec![answer(&waiting(&[]))], "0", "0 false"),
        (
            vec![],
            "5 Namespace shop is not found.",
            "failed to get Temporal queue size: temporal ADDRESS gives no value: Namespace shop is not found. (gRPC 5)",
        ),
        (
            vec![],
            "7 Request unauthorized.",
            "temporal ADDRESS refuses the credentials: Request unauthorized.",
        ),
    ] {
        script.lock().insert(METHOD, (message, status));
        let found = match scaler.poll(soon()).await {
            Ok(values) => format!("{} {}", values[0].value, values[0].active),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected.replace("ADDRESS", &address), "{status}");
    }
}

#[test]
fn versions_are_selected_only_if_some_are_named() {
    for (text, expected) in [
        ("", None),
        ("buildId=1.0", Some((1, false, false))),
        ("selectUnversioned=true", Some((0, true, false))),
        ("selectAllActive=true;buildId=1.0", Some((1, false, true))),
    ] {
        let spec = spec_of("temporal", &format!("endpoint=t:1;taskQueue=q;{text}"));
        let mut fields = Fields::new(&spec);
        let frontend = frontend(&mut fields, "t:1");
        let question = Question {
            frontend,
            namespace: "default".into(),
            queue: "q".into(),
            types: types_of(&mut fields, &[]),
            build: fields.field(&["buildId"], METADATA).text().into(),
            all_active: fields.field(&["selectAllActive"], METADATA).bool_or(false),
            unversioned: fields.field(&["selectUnversioned"], METADATA).bool_or(false),
        };
        let versions = question.request().versions;
        let found = versions.map(|v| (v.build_ids.len(), v.unversioned, v.all_active));
        assert_eq!(found, expected, "{text}");
    }
}
