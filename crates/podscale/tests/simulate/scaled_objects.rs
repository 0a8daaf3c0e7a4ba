//! ScaledObjects, whose triggers measure what the simulated workload has.

use super::{folder, podscale};

const WAITING: &str = r#"
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: worker, namespace: shop}
spec:
  scaleTargetRef: {name: worker}
  pollingInterval: 10
  cooldownPeriod: 120
  maxReplicaCount: 20
  triggers:
  - type: redis
    name: jobs
    metadata: {address: "redis.shop:6379", listName: jobs, listLength: "10", activationListLength: "3"}
"#;
/// Nothing comes before 10 and after 22 minutes.
const HOUR: [&str; 6] = [
    "--load",
    "spike:base=0,peak=60,at=10m,rise=1m,hold=10m",
    "--rps-per-pod",
    "5",
    "--policy",
    "none",
];

/// What it prints, or why it does not.
fn tried(object: &str, more: &[&str]) -> Result<String, String> {
    let all: Vec<&str> = ["simulate", "-f", "-"].iter().chain(&HOUR).chain(more).copied().collect();
    let output = podscale(&all, object);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn a_queue_wakes_its_consumer_and_it_sleeps_again() {
    for (at, expected) in
        [("5m", "stays 0"), ("14m", "s0-redis-jobs is active"), ("50m", "stays 0")]
    {
        let told = tried(WAITING, &["--explain", at]).expect("a decision");
        assert!(told.contains(expected), "{at}: {told}");
        assert!(told.contains("s0-redis-jobs"), "{at}: {told}");
    }
    // Nobody is woken by what never comes above its activation.
    let shy = WAITING.replace(r#"activationListLength: "3""#, r#"activationListLength: "1000000""#);
    let told = tried(&shy, &["--explain", "14m"]).expect("a decision");
    assert!(told.contains("stays 0"), "{told}");
}

#[test]
fn runs_are_recorded_and_replay_equal() {
    let formula = WAITING.replace(
        "  triggers:",
        "  advanced: {scalingModifiers: {formula: jobs * 2, target: \"20\"}}\n  triggers:",
    );
    let file = folder("simulate-scaled-objects").join("run.jsonl");
    let file = file.to_str().expect("UTF-8");
    for object in [WAITING, &formula] {
        tried(object, &["--record", file]).expect("a run");
        let replayed = podscale(&["replay", file], "");
        let text = String::from_utf8_lossy(&replayed.stdout).into_owned();
        assert_eq!(replayed.status.code(), Some(0), "{}", text.lines().last().unwrap_or_default());
        std::fs::remove_file(file).expect("the recording");
    }
}

#[test]
fn what_only_a_clock_or_a_server_knows_is_refused() {
    let of = |kind: &str, metadata: &str| {
        let (start, _) = WAITING.split_once("  - type").expect("a trigger");
        format!("{start}  - type: {kind}\n    metadata: {metadata}\n")
    };
    for (object, expected) in [
        (
            of(
                "cron",
                r#"{timezone: UTC, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: "3"}"#,
            ),
            "triggers[0] (cron) is a schedule, not a load: see podscale convert --to pa",
        ),
        (
            of("external", "{scalerAddress: 'scaler:80'}"),
            "triggers[0] (external): what it measures is known to its server alone",
        ),
        (of("redis", r#"{listLength: "5"}"#), "set metadata.address"),
    ] {
        let error = tried(&object, &[]).expect_err("a refusal");
        assert!(error.contains(expected), "{error}");
    }
}
