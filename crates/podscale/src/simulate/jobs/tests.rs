use super::*;
use podscale_core::jobs::JobStrategy;
use podscale_sim::environment::Environment;
use podscale_sim::plan::Detail;
use podscale_sim::{Load, Plan};

/// A queue of which a Job does ten, in a list or in another queue.
fn object(kind: &str, more: &str) -> String {
    let metadata = match kind {
        "redis" => "{address: \"redis:6379\", listName: mails, listLength: \"10\"}",
        _ => "{queueName: mails, mode: QueueLength, value: \"10\", host: \"amqp://broker/\"}",
    };
    format!(
        "
apiVersion: keda.sh/v1alpha1
kind: ScaledJob
metadata: {{name: mail, namespace: shop}}
spec:
  maxReplicaCount: 8
  pollingInterval: 10
  scalingStrategy: {{strategy: accurate, pendingPodConditions: [Ready]}}
  jobTargetRef:
    parallelism: 2
    template:
      metadata: {{annotations: {{{more}}}}}
      spec:
        containers:
        - {{name: mail, resources: {{requests: {{cpu: 400m}}, limits: {{cpu: 1}}}}}}
  triggers:
  - type: {kind}
    metadata: {metadata}
"
    )
}

fn subject(text: &str, edits: &[&str], options: &ModelOptions) -> Result<Subject, InputError> {
    let mut objects = Objects::default();
    objects.add_text("test", text)?;
    let edits: Result<Vec<Edit>, _> = edits.iter().map(|edit| Edit::parse(edit)).collect();
    Ok(objects.subjects(&edits?, options)?.remove(0))
}

fn tried(subject: &Subject) -> &TriedJobs {
    match &subject.object {
        Tried::Jobs(jobs) => jobs,
        Tried::Scale(_) => panic!("it is a ScaledJob"),
    }
}

#[test]
fn a_scaled_job_is_understood_and_what_is_assumed_is_noted() {
    let subject =
        subject(&object("redis", ""), &[], &ModelOptions::default()).expect("a ScaledJob");
    assert_eq!(subject.name(), "shop/mail");
    let policy = &tried(&subject).policy;
    assert_eq!(policy.rules.strategy, JobStrategy::Accurate);
    assert_eq!((policy.polling, policy.pending_until_ready), (Span::seconds(10), true));
    assert_eq!(policy.triggers[0].per_job, Milli(10_000));
    assert_eq!(policy.triggers[0].quantity, Quantity::QueueLength);
    let expected = JobWork {
        items: Some(10),
        run_seconds: None,
        idle_seconds: 0.0,
        counts_taken: false,
        pods: 2,
    };
    assert_eq!(policy.work, expected);
    let autoscaler = subject.autoscaler();
    assert_eq!((autoscaler.min_replicas, autoscaler.max_replicas), (0, 8));
    // Two pods do ten items in a minute.
    assert_eq!(subject.plan.workload.kind, Kind::Consumer);
    assert!((subject.plan.rps_per_pod() - 1.0 / 12.0).abs() < 1e-9);
    assert_eq!(subject.plan.template.containers[0].cpu_limit_millis, Some(1000.0));
    let notes = subject.notes.join("\n");
    for part in [
        "one Job is taken to do 10 items",
        "leaves the queue at once (simulation.jobs.countsTaken)",
        "one pod is taken to need 12.00 s for an item",
        "the metric s0-redis-mails is taken as the length of the queue",
    ] {
        assert!(notes.contains(part), "{part:?} is not in\n{notes}");
    }
}

#[test]
fn brokers_count_what_is_taken_and_an_annotation_says_how_long_a_job_works() {
    let text = object("rabbitmq", "demo.podscale.dev/run-time: 40s");
    let subject = subject(&text, &[], &ModelOptions::default()).expect("a ScaledJob");
    let work = tried(&subject).policy.work;
    assert_eq!((work.items, work.run_seconds, work.counts_taken), (None, Some(40.0), true));
    assert_eq!(work.idle_seconds, f64::INFINITY, "it stays for all of its time");
}

#[test]
fn another_object_has_the_same_jobs() {
    let options = ModelOptions { rps_per_pod: Some(0.5), ..ModelOptions::default() };
    let before = subject(&object("redis", ""), &[], &options).expect("a ScaledJob");
    assert!(!before.notes.iter().any(|note| note.contains("a guess")), "{:?}", before.notes);
    let edit = Edit::parse("spec.triggers[0].metadata.listLength=30").expect("an edit");
    let after = before.with_object(before.object.written(), &[edit]).expect("another");
    assert_eq!(tried(&after).policy.triggers[0].per_job, Milli(30_000));
    assert_eq!(tried(&after).policy.work, tried(&before).policy.work, "the Jobs do as before");
    let run = |subject: &Subject| {
        let plan = Plan {
            load: Load::constant(3.0),
            length: Span::seconds(1800),
            detail: Detail { points: 10, ..Detail::default() },
            environment: Environment::default(),
            ..subject.plan.clone()
        };
        subject.run(&plan).expect("a run").scores
    };
    assert!(run(&after).pods_started < run(&before).pods_started, "each is to do more");
    for (edit, expected) in [
        ("spec.maxReplicas=3", "spec.maxReplicas: there is no such field"),
        ("spec.triggers[0].type=cron", "ScaledJob mail: triggers[0] (cron)"),
    ] {
        let error = subject(&object("redis", ""), &[edit], &options).expect_err(edit).to_string();
        assert!(error.contains(expected), "{error}");
    }
}
