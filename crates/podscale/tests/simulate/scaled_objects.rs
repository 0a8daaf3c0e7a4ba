//! ScaledObjects, whose triggers measure what the simulated workload has.

use super::{folder, podscale};
use serde_json::Value;

pub const WAITING: &str = r#"
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
pub(super) fn tried(object: &str, more: &[&str]) -> Result<String, String> {
    let all: Vec<&str> = ["simulate", "-f", "-"].iter().chain(&HOUR).chain(more).copied().collect();
    said(&all, object)
}

pub(super) fn said(arguments: &[&str], input: &str) -> Result<String, String> {
    let output = podscale(arguments, input);
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

/// The same, by a metric that a formula makes.
fn by_formula() -> String {
    WAITING.replace(
        "  triggers:",
        "  advanced: {scalingModifiers: {formula: jobs * 2, target: \"20\"}}\n  triggers:",
    )
}

#[test]
fn runs_are_recorded_and_replay_equal() {
    let file = folder("simulate-scaled-objects").join("run.jsonl");
    let file = file.to_str().expect("UTF-8");
    for object in [WAITING, &by_formula()] {
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

/// What if, on a recorded run of an object.
pub(super) fn asked(folder: &std::path::Path, more: &[&str], input: &str) -> Result<Value, String> {
    let folder = folder.to_str().expect("UTF-8");
    let all: Vec<&str> =
        ["simulate", "--recording", folder, "-o", "json"].iter().chain(more).copied().collect();
    let json: Value = serde_json::from_str(&said(&all, input)?).expect("JSON");
    Ok(json["autoscalers"][0].clone())
}

#[test]
fn recordings_are_asked_what_if() {
    let folder = folder("simulate-scaled-objects-what-if");
    let file = folder.join("run.jsonl.gz");
    for (object, edit) in [
        (WAITING.to_owned(), "spec.triggers[0].metadata.listLength=400"),
        (by_formula(), "spec.advanced.scalingModifiers.target=800"),
    ] {
        tried(&object, &["--record", file.to_str().expect("UTF-8")]).expect("a run");
        let found = asked(&folder, &["--set", edit], "").expect("an answer");
        let hours = |run: &str| found[run]["podHours"].as_f64().expect("pod-hours");
        assert!(hours("changed") < hours("unchanged"), "later and fewer pods: {found}");
        assert!((hours("unchanged") / hours("recorded") - 1.0).abs() < 0.15, "{found}");
        let same = found["sameAsRecorded"].as_f64().expect("a share");
        assert!(same > 0.7, "the recovered load leads to the recorded sizes: {same}");
        let unknown = found["unknown"].to_string();
        assert!(unknown.contains("what one pod takes from the queue is not known"), "{unknown}");
        // Who sleeps later has pods for longer.
        let sleeps_later = object.replace("cooldownPeriod: 120", "cooldownPeriod: 900");
        let found = asked(&folder, &["-f", "-"], &sleeps_later).expect("an answer");
        let hours = |run: &str| found[run]["podHours"].as_f64().expect("pod-hours");
        assert!(hours("changed") > hours("unchanged"), "{found}");
        let wrong =
            asked(&folder, &["--set", "spec.maxReplicas=3"], "").expect_err("no such field");
        assert!(wrong.contains("spec.maxReplicas: there is no such field"), "{wrong}");
    }
}

/// What it finds under a wave of work.
pub(super) fn tuned(object: &str, more: &[&str]) -> Result<String, String> {
    let wave = ["--load", "sine:mean=30,amplitude=25,period=20m", "--length", "1h"];
    let few =
        ["--seeds", "1", "--samples", "6", "--rounds", "1", "--rps-per-pod", "5", "--weight", "1"];
    let all: Vec<&str> =
        ["tune", "-f", "-"].iter().chain(&wave).chain(&few).chain(more).copied().collect();
    said(&all, object)
}

#[test]
fn settings_of_scaled_objects_are_searched() {
    for (object, target) in [
        (WAITING.to_owned(), "triggers[0].metadata.listLength=\""),
        (by_formula(), "advanced.scalingModifiers.target=\""),
    ] {
        let text = tuned(&object, &[]).expect("a report");
        for part in ["\n60% to 80%", "\n80% to 100%", "\n* recommended", target, "cooldownPeriod="]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        let window = "advanced.horizontalPodAutoscalerConfig.behavior.scaleDown";
        assert!(text.contains(window), "{text}");
        assert_eq!(text, tuned(&object, &[]).expect("a report"), "the same seed");
        // What is recommended can be used as it is.
        let yaml = tuned(&object, &["-o", "yaml"]).expect("an object");
        assert!(yaml.contains("kind: ScaledObject") && yaml.contains("listLength: "), "{yaml}");
        said(&["validate", "-f", "-"], &yaml).expect(&yaml);
    }
}
