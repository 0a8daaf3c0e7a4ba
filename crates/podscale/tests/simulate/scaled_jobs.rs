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
    let found: Value = serde_json::from_str(&tried(&all).expect("scores")).expect("JSON");
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

#[test]
fn what_cannot_be_done_is_refused_by_name() {
    let error = said(&["tune", "--scenario", MAIL]).expect_err("a refusal");
    assert!(error.contains("ScaledJob default/mail cannot be tuned"), "{error}");
    let file = folder("simulate-scaled-jobs-what-if").join("run.jsonl");
    let file = file.to_str().expect("UTF-8");
    tried(&["--record", file, "--policy", "none"]).expect("a run");
    let error = said(&["simulate", "--recording", file, "--set", "spec.maxReplicaCount=2"]);
    let error = error.expect_err("a refusal");
    assert!(error.contains("ScaledJob default/mail: what if is not there for"), "{error}");
}
