//! PodAutoscalers whose metrics are triggers, which measure what the simulated workload has.

use super::folder;
use super::scaled_objects::{asked, said, tried, tuned};

/// What the ScaledObject of the other tests is as a PodAutoscaler.
const WAITING: &str = r#"
apiVersion: podscale.dev/v1alpha1
kind: PodAutoscaler
metadata: {name: worker, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}
  syncPeriod: 10s
  scaleToZero: {coolDown: 2m, zeroByOthers: Wake}
  maxReplicas: 20
  metrics:
  - type: Trigger
    name: jobs
    trigger:
      type: redis
      metadata: {address: "redis.shop:6379", listName: jobs, listLength: "10", activationListLength: "3"}
      authenticationRef: {name: redis}
"#;

#[test]
fn a_queue_wakes_its_consumer_and_it_sleeps_again() {
    for (at, expected) in [("5m", "stays 0"), ("14m", "jobs is active"), ("50m", "stays 0")] {
        let told = tried(WAITING, &["--explain", at]).expect("a decision");
        assert!(told.contains(expected), "{at}: {told}");
    }
    // Nobody is woken by what never comes above its activation, of the trigger or of the metric.
    let by_trigger =
        WAITING.replace(r#"activationListLength: "3""#, r#"activationListLength: "1000000""#);
    let by_metric =
        WAITING.replace("    name: jobs", "    name: jobs\n    activation: \"1000000\"");
    for shy in [by_trigger, by_metric] {
        let told = tried(&shy, &["--explain", "14m"]).expect("a decision");
        assert!(told.contains("stays 0"), "{told}");
    }
    let clock = WAITING.replace("type: redis", "type: cron").replace(
        r#"{address: "redis.shop:6379", listName: jobs, listLength: "10", activationListLength: "3"}"#,
        r#"{timezone: UTC, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: "3"}"#,
    );
    let error = tried(&clock, &[]).expect_err("a refusal");
    let expected = "metrics[0].trigger (cron) is a schedule, not a load: use spec.schedules";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn runs_are_recorded_replay_equal_and_are_asked_what_if() {
    let folder = folder("simulate-own-triggers");
    let file = folder.join("run.jsonl.gz");
    let file = file.to_str().expect("UTF-8");
    tried(WAITING, &["--record", file]).expect("a run");
    said(&["replay", file], "").expect("the same decisions");
    let edit = "spec.metrics[0].trigger.metadata.listLength=400";
    let found = asked(&folder, &["--set", edit], "").expect("an answer");
    let hours = |run: &str| found[run]["podHours"].as_f64().expect("pod-hours");
    assert!(hours("changed") < hours("unchanged"), "later and fewer pods: {found}");
    assert!((hours("unchanged") / hours("recorded") - 1.0).abs() < 0.15, "{found}");
}

#[test]
fn targets_of_event_sources_are_searched() {
    let text = tuned(WAITING, &[]).expect("a report");
    for part in ["\n* recommended", "metrics[0].trigger.metadata.listLength=\"", "profile="] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let yaml = tuned(WAITING, &["-o", "yaml"]).expect("an object");
    assert!(yaml.contains("kind: PodAutoscaler") && yaml.contains("listLength: "), "{yaml}");
    said(&["validate", "-f", "-"], &yaml).expect(&yaml);
}
