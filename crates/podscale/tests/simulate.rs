//! `podscale simulate` as a person or a script would use it.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "simulate/direct_metrics.rs"]
mod direct_metrics;
#[path = "simulate/kinds.rs"]
mod kinds;
#[path = "simulate/own_triggers.rs"]
mod own_triggers;
#[path = "simulate/scaled_jobs.rs"]
mod scaled_jobs;
#[path = "simulate/scaled_objects.rs"]
mod scaled_objects;
#[path = "simulate/without_requests.rs"]
mod without_requests;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const OBJECTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  template:
    spec:
      containers:
      - {name: web, resources: {requests: {cpu: 500m, memory: 128Mi}, limits: {cpu: 1}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 20
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
";
const SPIKE: &str = "spike:base=40,peak=400,at=10m,rise=1m,hold=10m";

fn podscale(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that does not read its input may have ended already.
    let _ = std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes());
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn simulate(arguments: &[&str]) -> String {
    let all: Vec<&str> = ["simulate", "-f", "-"].iter().chain(arguments).copied().collect();
    let output = podscale(&all, OBJECTS);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
    text(&output.stdout)
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[test]
fn objects_and_peers_get_scores_and_the_same_seed_gives_the_same_bytes() {
    let arguments = ["--load", SPIKE, "--seeds", "2"];
    let text = simulate(&arguments);
    for part in ["shop/web under spike", "VIOLATED", "hpa-cpu", "knative", "oracle", "1.00x", "█"]
    {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert_eq!(text, simulate(&arguments));
    let one_core: Vec<&str> = arguments.iter().copied().chain(["--jobs", "1"]).collect();
    assert_eq!(text, simulate(&one_core));
    assert_ne!(text, simulate(&["--load", SPIKE, "--seeds", "2", "--seed", "9"]));
}

#[test]
fn programs_get_json_and_csv() {
    let arguments = ["--load", SPIKE, "--load", "constant:100", "--seeds", "2", "--length", "30m"];
    let with = |output: &str| {
        let all: Vec<&str> = arguments.iter().copied().chain(["-o", output]).collect();
        simulate(&all)
    };
    let json: Value = serde_json::from_str(&with("json")).expect("JSON");
    assert_eq!(json["trials"].as_array().map(Vec::len), Some(2));
    let first = &json["trials"][0]["policies"][0];
    assert_eq!(
        (&first["policy"], &first["runs"].as_array().map(Vec::len)),
        (&"web".into(), &Some(2))
    );
    assert_eq!(json["overall"].as_array().map(Vec::len), Some(6));
    let csv = with("csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 6 * 2, "{csv}");
    assert!(csv.starts_with("autoscaler,load,policy,seed,violations,"), "{csv}");
    let page = with("html");
    assert!(page.starts_with("<!doctype html>") && page.contains("so the size changes from"));
}

#[test]
fn a_moment_is_explained() {
    let text = simulate(&["--load", SPIKE, "--explain", "12m"]);
    assert!(text.contains("after the start:\n- Deployment web"), "{text}");
    assert!(text.contains("cpu is at"), "{text}");
}

#[test]
fn fields_can_be_changed_and_peers_configured() {
    let run = |arguments: &[&str]| -> Value {
        let all: Vec<&str> = ["--load", SPIKE, "--seeds", "1", "-o", "json"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        serde_json::from_str(&simulate(&all)).expect("JSON")
    };
    let own = |json: &Value| json["trials"][0]["policies"][0]["runs"][0]["podHours"].as_f64();
    let plain = run(&["--policy", "none"]);
    assert_eq!(plain["trials"][0]["policies"].as_array().map(Vec::len), Some(1));
    let capped = run(&["--policy", "none", "--set", "spec.maxReplicas=4"]);
    assert!(own(&capped) < own(&plain), "{capped} {plain}");
    let fixed = run(&["--policy", "fixed:replicas=3", "--length", "1h"]);
    let hours = fixed["trials"][0]["policies"][1]["runs"][0]["podHours"].as_f64();
    assert!(hours.is_some_and(|hours| (hours - 3.0).abs() < 0.01), "{hours:?}");
}

#[test]
fn variants_stand_beside_the_objects_and_against_the_best_peer() {
    let loads = ["--load", SPIKE, "--load", "constant:100", "--seeds", "1", "--length", "30m"];
    let rows = ["--variant", "larger: spec.minReplicas=6", "--variant", "spec.maxReplicas=3"];
    let rows = rows.iter().chain(&["--variant", "keda: spec.minReplicas=4"]);
    let peers = ["--policy", "hpa-cpu:target=30", "--policy", "oracle", "-o", "markdown"];
    let all: Vec<&str> = loads.iter().chain(rows).chain(&peers).copied().collect();
    let page = simulate(&all);
    let (_, goal) = page.split_once("## Against the best peer").expect("a section");
    let (goal, peers) = goal.split_once("## Against each peer").expect("a section");
    assert!(peers.contains("| hpa-cpu:target=30 |"), "{peers}");
    let row = |name: &str| {
        let row = goal.lines().find(|line| line.starts_with(&format!("| {name} |")));
        row.unwrap_or_else(|| panic!("no {name:?} in {goal}"))
    };
    assert!(row("these objects").contains("| hpa-cpu:target=30 ("), "{goal}");
    row("larger");
    row("keda"); // However it is called, it is none of the peers.
    let small = row("spec.maxReplicas=3");
    assert!(small.contains(&format!("| {SPIKE}")), "it is worse under the spike: {small}");
    // Nothing is begun with variants that cannot be.
    let file = folder("simulate-variants").join("run.jsonl");
    let record =
        ["simulate", "-f", "-", "--load", SPIKE, "--record", file.to_str().expect("UTF-8")];
    for (variant, code) in [("spec.x=1", 1), ("larger", 2)] {
        let all: Vec<&str> = record.iter().chain(&["--variant", variant]).copied().collect();
        let wrong = podscale(&all, OBJECTS);
        assert_eq!(wrong.status.code(), Some(code), "{variant}: {wrong:?}");
        assert!(!file.exists(), "{variant}");
    }
}

#[test]
fn a_run_can_be_recorded_replayed_and_asked_what_if() {
    let folder = folder("simulate-record");
    let file = folder.join("run.jsonl.gz");
    let file = file.to_str().expect("UTF-8");
    simulate(&["--load", SPIKE, "--policy", "none", "--record", file]);
    let replayed = podscale(&["replay", file], "");
    let text = String::from_utf8_lossy(&replayed.stdout).into_owned();
    assert_eq!(replayed.status.code(), Some(0), "{text}");
    assert!(text.ends_with(" decisions agree\n"), "{text}");

    let edit = "spec.behavior.scaleDown.stabilizationWindowSeconds=0";
    let recording = folder.to_str().expect("UTF-8");
    let asked = podscale(&["simulate", "--recording", recording, "--set", edit], "");
    let text = String::from_utf8_lossy(&asked.stdout).into_owned();
    assert_eq!(asked.status.code(), Some(0), "{text}{:?}", asked.stderr);
    for part in ["shop/web: 59m", "as recorded", "replica-hours", "DIFFERS FROM", "not known: "] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let asked = podscale(&["simulate", "--recording", recording, "--set", edit, "-o", "json"], "");
    let json: Value = serde_json::from_slice(&asked.stdout).expect("JSON");
    let one = &json["autoscalers"][0];
    let hours = |run: &str| one[run]["podHours"].as_f64().expect("pod-hours");
    assert!(hours("changed") < hours("unchanged"), "without a window pods go earlier: {one}");
    let same = one["sameAsRecorded"].as_f64().expect("a share");
    assert!(same > 0.8, "the recovered load leads to the recorded sizes: {same}");

    for (more, expected) in [
        (["-o", "csv"], "shop/web,the recorded load,as recorded,1,"),
        (["-o", "html"], "so the size changes from"),
        (["--explain", "15m"], "under the recorded load, changed"),
    ] {
        let all = ["simulate", "--recording", recording, "--set", edit, more[0], more[1]];
        let asked = podscale(&all, "");
        let text = String::from_utf8_lossy(&asked.stdout).into_owned();
        assert!(text.contains(expected), "no {expected:?} in {text}");
    }
    let other = OBJECTS.replace("name: web, namespace: shop", "name: other, namespace: shop");
    let asked = podscale(&["simulate", "--recording", recording, "-f", "-"], &other);
    let error = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert!(error.contains("shop/web: no file has an autoscaler of this name"), "{error}");
}

#[test]
fn usage_errors_say_what_to_do() {
    for (arguments, expected) in [
        (vec!["simulate"], "give an autoscaler with -f"),
        (vec!["simulate", "-f", "-"], "give a load with --load or --trace"),
        (vec!["simulate", "-f", "-", "--load", "square:1"], "there is no shape \"square\""),
        (
            vec!["simulate", "-f", "-", "--load", "constant:1", "--policy", "x"],
            "there is no policy \"x\"",
        ),
        (
            vec!["simulate", "-f", "-", "--load", "constant:1", "--set", "x"],
            "is not a change such as",
        ),
        (
            vec![
                "simulate",
                "-f",
                "-",
                "--load",
                "constant:1",
                "--variant",
                "a=1",
                "--explain",
                "5m",
            ],
            "cannot be used with",
        ),
    ] {
        let output = podscale(&arguments, OBJECTS);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    let missing = podscale(&["simulate", "-f", "/nowhere.yaml", "--load", "constant:1"], "");
    assert_eq!(missing.status.code(), Some(1));
}

#[test]
fn scenarios_bring_objects_and_loads() {
    let output =
        podscale(&["simulate", "--scenario", "queue", "--seeds", "1", "--policy", "keda"], "");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("default/consumer under load of consumer, 1h"), "{text}");
}

#[test]
fn folders_of_traces_are_tried_one_by_one() {
    let folder = folder("simulate-traces");
    for (name, rate) in [("b.csv", 20), ("a.csv", 60), ("notes.txt", 0)] {
        let text = format!("seconds,value\n0,{rate}\n600,{rate}\n1200,{rate}\n");
        std::fs::write(folder.join(name), text).expect("a file");
    }
    let folder = folder.to_str().expect("UTF-8");
    let arguments = ["--trace", folder, "--policy", "hpa-cpu:window=60", "--policy", "oracle"];
    let page: Vec<&str> = arguments.into_iter().chain(["-o", "markdown"]).collect();
    let page = simulate(&page);
    for part in ["## Over all 2 loads", "| hpa-cpu:window=60 |", "by pod-hours", "WORST RUN"] {
        assert!(page.contains(part), "no {part:?} in {page}");
    }
    let (a, b) = (page.find("shop/web under a"), page.find("shop/web under b"));
    assert!(a.is_some() && a < b, "{page}");
}

/// Every command of the page on simulations, as it stands there.
#[test]
fn the_examples_of_the_documentation_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = folder("simulate-docs");
    let recordings = folder.join("recordings");
    std::fs::create_dir_all(&recordings).expect("a folder");
    let recording = recordings.join("run.jsonl");
    simulate(&[
        "--load",
        SPIKE,
        "--policy",
        "none",
        "--record",
        recording.to_str().expect("UTF-8"),
    ]);
    let mail = root.join("docs/examples/mail.yaml");
    let of_jobs = recordings.join("mail.jsonl");
    let (mail, of_jobs) = (mail.to_str().expect("UTF-8"), of_jobs.to_str().expect("UTF-8"));
    let output = podscale(
        &["simulate", "--scenario", mail, "--seeds", "1", "--policy", "none", "--record", of_jobs],
        "",
    );
    assert!(output.status.success());
    let changed = folder.join("changed.yaml");
    std::fs::write(&changed, OBJECTS.replace("maxReplicas: 20", "maxReplicas: 5")).expect("a file");
    let page = std::fs::read_to_string(root.join("docs/simulate.md")).expect("the page");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("$ podscale simulate ")).collect();
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        let (command, _) = command.split_once(" > ").unwrap_or((command, ""));
        let word = |word: &str| match word {
            "DIR" => recordings.display().to_string(),
            "changed.yaml" => changed.display().to_string(),
            other => other.to_owned(),
        };
        let words: Vec<String> = command.split(' ').map(word).collect();
        let output = Command::new(env!("CARGO_BIN_EXE_podscale"))
            .arg("simulate")
            .args(&words)
            .current_dir(&root)
            .output()
            .expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {error}");
        assert!(output.stdout.len() > 100, "{command}");
    }
}

/// Every command of the page on tuning, as it stands there but for a smaller search.
#[test]
fn the_examples_of_tuning_work() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/tune.md")).expect("the page");
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("$ podscale tune ")).collect();
    assert!(commands.len() >= 3, "{commands:?}");
    for command in commands {
        let (command, _) = command.split_once(" > ").unwrap_or((command, ""));
        let output = Command::new(env!("CARGO_BIN_EXE_podscale"))
            .arg("tune")
            .args(command.split(' '))
            .args(["--samples", "1", "--rounds", "0", "--seeds", "1", "--parts", "1"])
            .current_dir(&root)
            .output()
            .expect("the program starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {error}");
        let text = String::from_utf8_lossy(&output.stdout);
        let expected = if command.contains("-o yaml") { "\nspec:\n" } else { "\n* recommended" };
        assert!(text.contains(expected), "{command}: {text}");
    }
}
