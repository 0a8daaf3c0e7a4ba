//! `podscale replay` as a person or a script would use it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn named() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../podscale-api/testdata/named-1.37.jsonl")
}

fn replay(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .arg("replay")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), input.as_bytes())
        .expect("it reads");
    child.wait_with_output().expect("it ends")
}

#[track_caller]
fn check(arguments: &[&str], input: &str, code: i32, out: &[&str], err: &[&str]) {
    let output = replay(arguments, input);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{stdout}{stderr}");
    for part in out {
        assert!(stdout.contains(part), "no {part:?} in {stdout}");
    }
    for part in err {
        assert!(stderr.contains(part), "no {part:?} in {stderr}");
    }
    assert_eq!(err.is_empty(), stderr.is_empty(), "{stderr}");
}

fn line(name: &str) -> String {
    let all = std::fs::read_to_string(named()).expect("the named recordings");
    let found = all.lines().find(|line| line.contains(&format!("\"name\":\"{name}\"")));
    found.expect("a recording of that name").to_owned()
}

#[test]
fn all_agree() {
    let file = named();
    let file = file.to_str().expect("UTF-8");
    let output = replay(&[file], "");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "136 of 136 decisions agree\n");
    check(&["--jobs", "1", file, file], "", 0, &["272 of 272 decisions agree"], &[]);
}

#[test]
fn a_difference_is_shown_by_field() {
    let changed =
        line("at-target").replacen("\"replicas\":3,\"rescaled\"", "\"replicas\":4,\"rescaled\"", 1);
    let expected = "at-target step 0, 2000-01-01T00:00:15Z
    replicas: expected 4, got 3
decisions that differ, by field:
  replicas: 1
1 of 2 decisions agree
";
    check(&["-"], &changed, 1, &[expected], &[]);

    let output = replay(&["-", "-o", "json"], &changed);
    let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0]["differences"][0]["field"], "replicas");
    assert_eq!((&lines[1]["agree"], &lines[1]["decisions"]), (&1.into(), &2.into()));
}

#[test]
fn steps_are_told_in_words() {
    let file = named();
    let file = file.to_str().expect("UTF-8");
    check(
        &["--explain", "--name", "double", file],
        "",
        0,
        &[
            "double: Twice the wanted utilization asks for twice the pods.",
            "  step 0, 2000-01-01T00:00:15Z\n    Deployment web has ",
            "% of requests, target ",
            "so the size changes from ",
            "1 of 1 decisions agree",
        ],
        &[],
    );
    let step = ["--explain", "--name", "stabilization", "--step", "2", file];
    check(&step, "", 0, &["  step 2, ", "1 of 1 decisions agree"], &[]);
}

#[test]
fn what_cannot_be_read_is_named() {
    check(&["/nowhere.jsonl"], "", 2, &[], &["podscale: /nowhere.jsonl: No such file"]);
    check(&["-"], "", 2, &["0 of 0"], &["no recording in what was given"]);
    check(&["-"], "{\"nonsense\"", 2, &["0 of 0"], &["stdin: line 1, column"]);
    let pod = "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}";
    check(
        &["-"],
        pod,
        2,
        &["0 of 0"],
        &["stdin: line 1: a v1 Pod, not a podscale.dev/v1alpha1 Recording"],
    );
    // What is good is replayed all the same.
    let mixed = format!("{}\nnonsense\n", line("at-target"));
    check(&["-"], &mixed, 2, &["2 of 2 decisions agree"], &["stdin: line 2, column 2"]);
    let bad_time = line("at-target").replacen("2000-01-01T00:00:15Z", "yesterday", 1);
    check(&["-"], &bad_time, 2, &[], &["stdin: line 1, column", "steps[0].time"]);
}

#[test]
fn selecting_nothing_is_a_mistake() {
    let file = named();
    let file = file.to_str().expect("UTF-8");
    check(&["--name", "nobody", file], "", 2, &["0 of 0"], &["no recording is called nobody"]);
    check(
        &["--name", "double", "--step", "7", file],
        "",
        2,
        &["0 of 0"],
        &["no recording has a step 7"],
    );
    check(&[], "", 2, &[], &["<FILE>..."]);
    check(&["--step", "x", file], "", 2, &[], &["invalid value 'x'"]);
}
