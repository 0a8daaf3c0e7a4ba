//! ScaledJobs, whose Jobs take items from the simulated queue and end by themselves.

use super::{folder, podscale};
use serde_json::Value;

/// The example of the documentation.
const MAIL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/mail.yaml");

/// What it prints, or why it does not.
fn said(arguments: &[&str]) -> Result<String, String> {
    let output = podscale(arguments, "");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn tried(more: &[&str]) -> Result<String, String> {
    let all = ["simulate", "--scenario", MAIL, "--seeds", "2"];
    said(&all.iter().chain(more).copied().collect::<Vec<_>>())
}

/// The scores of all policies by name.
fn scores(more: &[&str]) -> Value {
    let all: Vec<&str> = more.iter().chain(&["-o", "json"]).copied().collect();
    by_name(&tried(&all).expect("scores"))
}

fn by_name(text: &str) -> Value {
    let found: Value = serde_json::from_str(text).expect("JSON");
    let policies = found["trials"][0]["policies"].as_array().expect("policies").clone();
    policies.into_iter().map(|p| (p["policy"].as_str().unwrap_or("").to_owned(), p)).collect()
}

fn mean(scores: &Value, policy: &str, score: &str) -> f64 {
    scores[policy]["summary"][score]["mean"].as_f64().unwrap_or_else(|| panic!("{scores}"))
}

#[test]
fn jobs_get_scores_beside_peers_that_run_pods() {
    let text = tried(&[]).expect("a table");
    for part in ["default/mail under load of mail", "keda", "fixed", "oracle", "1.00x", "\nmail"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("hpa-cpu") && !text.contains("knative"), "{text}");
    assert!(!text.contains("a guess"), "the scenario says what Jobs do: {text}");
    assert_eq!(text, tried(&[]).expect("a table"), "the same seed");
    let found = scores(&[]);
    // About 3000 mails of two seconds are 1.6 hours of work, by Jobs of twenty each.
    let hours = mean(&found, "mail", "podHours");
    assert!((1.6..3.2).contains(&hours), "{hours}");
    let started = mean(&found, "mail", "podsStarted");
    assert!((130.0..400.0).contains(&started), "{started}");
    assert!(found["mail"]["summary"]["reversalsPerHour"]["mean"].is_null(), "{found}");
    assert!(mean(&found, "fixed", "podHours") > hours, "{found}");
    assert!(mean(&found, "mail", "queueAgeMostSeconds") > 15.0, "{found}");
    let csv = tried(&["-o", "csv"]).expect("lines");
    assert_eq!(csv.lines().filter(|line| line.starts_with("default/mail,")).count(), 8, "{csv}");
    let page = tried(&["-o", "html"]).expect("a page");
    assert!(page.contains("Jobs are unfinished"), "why each poll created what it did");
    let markdown = tried(&["-o", "markdown"]).expect("a page");
    assert!(markdown.contains("| mail |") && !markdown.contains("NaN"), "{markdown}");
}

#[test]
fn changes_are_tried_beside_the_object_and_a_moment_is_explained() {
    let few = "few: spec.maxReplicaCount=3";
    let accurate = "accurate: spec.scalingStrategy.strategy=accurate";
    let found = scores(&["--variant", few, "--variant", accurate, "--policy", "none"]);
    let late = |policy: &str| mean(&found, policy, "violations");
    assert!(late("few") > late("mail") + 0.2, "three pods send 1.5 of 4 mails a second: {found}");
    let started = |policy: &str| mean(&found, policy, "podsStarted");
    assert!(started("accurate") > started("mail"), "it takes nothing off for what runs: {found}");
    let told = tried(&["--explain", "15m"]).expect("a decision");
    for part in ["Jobs are unfinished", "s0-rabbitmq-mails has", "20 for each Job", "created"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
    let limited = tried(&["--explain", "15m", "--set", "spec.maxReplicaCount=2"]).expect("one");
    assert!(limited.contains("to 2, the most Jobs there may be"), "{limited}");
    let wrong = tried(&["--set", "spec.maxReplicas=3"]).expect_err("no such field");
    assert!(wrong.contains("spec.maxReplicas: there is no such field"), "{wrong}");
}

#[test]
fn a_run_is_recorded_and_replay_agrees() {
    let file = folder("simulate-scaled-jobs").join("run.jsonl");
    let file = file.to_str().expect("UTF-8");
    tried(&["--record", file, "--policy", "none"]).expect("a run");
    let replayed = said(&["replay", file]).expect("it agrees");
    let last = replayed.lines().last().unwrap_or_default();
    assert!(last.contains("240 of 240 decisions agree"), "{replayed}");
}

/// A recorded run of the example, and what is answered on it.
fn recorded(name: &str) -> String {
    let file = folder(name).join("run.jsonl");
    let file = file.to_str().expect("UTF-8").to_owned();
    tried(&["--record", &file, "--policy", "none"]).expect("a run");
    file
}

fn asked(file: &str, more: &[&str]) -> Result<String, String> {
    let all = ["simulate", "--recording", file, "--objective", "60s"];
    said(&all.iter().chain(more).copied().collect::<Vec<_>>())
}

fn answer(file: &str, more: &[&str]) -> Value {
    let all: Vec<&str> = more.iter().chain(&["-o", "json"]).copied().collect();
    let found: Value = serde_json::from_str(&asked(file, &all).expect("an answer")).expect("JSON");
    found["autoscalers"][0].clone()
}

#[test]
fn recordings_are_asked_what_if_and_unchanged_they_go_as_they_went() {
    let file = recorded("simulate-scaled-jobs-unchanged");
    let found = answer(&file, &[]);
    let of = |run: &str, score: &str| found[run][score].as_f64().expect("a score");
    for run in ["recorded", "unchanged"] {
        // The run itself needed 2.27 hours of 192 Jobs, and 32 % of its items waited for more than a minute.
        assert!((of(run, "podHours") / 2.27 - 1.0).abs() < 0.05, "{run}: {found}");
        assert!((of(run, "podsStarted") / 192.0 - 1.0).abs() < 0.06, "{run}: {found}");
        assert!((0.2..0.45).contains(&of(run, "violations")), "{run}: {found}");
    }
    assert_eq!(found["unchanged"], found["changed"]);
    assert_eq!(found["differs"], serde_json::json!([]));
    let off = found["offByOnAverage"].as_f64().expect("a number");
    let jobs = found["recordedOnAverage"].as_f64().expect("a number");
    assert!(off < jobs * 0.15, "{off} of {jobs}");
    assert!(found["sameAsRecorded"].as_f64().expect("a share") > 0.7, "{found}");
    let text = asked(&file, &[]).expect("an answer");
    for part in [
        "default/mail: ",
        "Job-hours: ",
        "has the recorded number of Jobs in ",
        "the numbers of Jobs never differ",
        "not known: what one Job does is not known: Jobs worked for 4",
        "not known: what came and was done between two polls",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

/// What the recovered load says of a change is what the change leads to under the load itself.
#[test]
fn changes_lead_to_what_they_would_have_led_to() {
    let file = recorded("simulate-scaled-jobs-what-if");
    for edit in [
        "spec.maxReplicaCount=6",
        "spec.scalingStrategy.strategy=accurate",
        "spec.triggers[0].metadata.value=40",
    ] {
        let found = answer(&file, &["--set", edit]);
        let variant = format!("changed: {edit}");
        let alone = ["--seeds", "1", "--policy", "none", "--objective", "60s", "-o", "json"];
        let run = ["simulate", "--scenario", MAIL, "--variant", &variant];
        let truth = by_name(&said(&[&run[..], &alone[..]].concat()).expect("scores"));
        for (score, most) in [("violations", 0.15), ("podHours", 0.25)] {
            let (expected, got) = (mean(&truth, "changed", score), &found["changed"][score]);
            let got = got.as_f64().expect("a score");
            assert!((got - expected).abs() < most, "{edit}, {score}: {got}, and not {expected}");
        }
        assert!(found["differs"].as_array().is_some_and(|all| !all.is_empty()), "{edit}");
    }
    let told = asked(&file, &["--set", "spec.maxReplicaCount=2", "--explain", "15m"]);
    let told = told.expect("two decisions");
    assert!(
        told.contains("changed") && told.contains("to 2, the most Jobs there may be"),
        "{told}"
    );
    let page = asked(&file, &["--set", "spec.maxReplicaCount=2", "-o", "html"]).expect("a page");
    assert!(page.contains("as recorded") && page.contains("default/mail"), "three courses");
    // The same by a file, whose Jobs have more pods: they stay what they were.
    let text = std::fs::read_to_string(MAIL).expect("the example");
    let (_, manifest) = text.split_once("manifests:\n").expect("a manifest");
    let changed = format!("apiVersion: v1\nkind: List\nitems:\n{manifest}")
        .replace("maxReplicaCount: 12", "maxReplicaCount: 6")
        .replace("jobTargetRef:\n", "jobTargetRef:\n      parallelism: 4\n");
    let whole = file.replace("run.jsonl", "changed.yaml");
    std::fs::write(&whole, changed).expect("a file");
    let by_file = answer(&file, &["-f", &whole]);
    let by_edit = answer(&file, &["--set", "spec.maxReplicaCount=6"]);
    assert_eq!(by_file["changed"], by_edit["changed"]);
    let other = file.replace("run.jsonl", "other.yaml");
    let object = std::fs::read_to_string(&whole)
        .expect("it is there")
        .replace("{name: mail}", "{name: post}");
    std::fs::write(&other, object).expect("a file");
    let wrong = asked(&file, &["-f", &other]).expect_err("another name");
    assert!(wrong.contains("default/mail: no file has a ScaledJob of this name"), "{wrong}");
    let wrong = asked(&file, &["--set", "spec.maxReplicas=3"]).expect_err("no such field");
    assert!(wrong.contains("spec.maxReplicas: there is no such field"), "{wrong}");
}

/// What is found for the example under waves of mails, where each Job is said to be for three times what it does.
fn tuned(more: &[&str]) -> Result<String, String> {
    let waves = ["--load", "sine:mean=2,amplitude=1.5,period=10m", "--length", "2h"];
    let few = ["--seeds", "1", "--samples", "6", "--rounds", "1", "--weight", "1"];
    let object = ["tune", "--scenario", MAIL, "--set", "spec.triggers[0].metadata.value=60"];
    said(&[&object[..], &waves[..], &few[..], more].concat())
}

#[test]
fn settings_of_scaled_jobs_are_searched() {
    let text = tuned(&[]).expect("a report");
    for part in [
        "\n60% to 80%",
        "\n80% to 100%",
        "\n* recommended",
        "triggers[0].metadata.value=\"",
        "scalingStrategy.strategy=\"",
        "pollingInterval=",
        "what changes:",
        "-     strategy: default\n+     strategy: accurate",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert!(!text.contains("NaN") && !text.contains("maxReplicaCount="), "{text}");
    assert_eq!(text, tuned(&[]).expect("a report"), "the same seed");
    // What is recommended can be used as it is, and has its Jobs.
    let yaml = tuned(&["-o", "yaml"]).expect("an object");
    assert!(yaml.contains("kind: ScaledJob") && yaml.contains("example.com/mail:1"), "{yaml}");
    let output = podscale(&["validate", "-f", "-"], &yaml);
    assert!(output.status.success(), "{yaml}");
}
