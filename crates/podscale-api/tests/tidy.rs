//! The house rules that can be checked: who may depend on whom, no clock in the core, files of a
//! readable size, names that say something, nothing left open, nothing about one machine.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files that belong to the project, by their paths from its root.
fn files() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let listed = listed.expect("git lists the files");
    assert!(listed.status.success(), "git ls-files failed");
    let text = String::from_utf8(listed.stdout).expect("names in UTF-8");
    text.lines().map(str::to_owned).filter(|f| root().join(f).is_file()).collect()
}

fn sources() -> Vec<(String, String)> {
    let rust = files().into_iter().filter(|f| f.ends_with(".rs"));
    rust.map(|f| (std::fs::read_to_string(root().join(&f)).expect("UTF-8"), f))
        .map(|(text, f)| (f, text))
        .collect()
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    let mut list = String::new();
    for place in found {
        let _ = write!(list, "\n  {place}");
    }
    assert!(found.is_empty(), "{what}:{list}");
}

/// The dependencies of a crate, development ones left out.
fn dependencies(name: &str) -> Vec<String> {
    let path = root().join(format!("crates/{name}/Cargo.toml"));
    let manifest = std::fs::read_to_string(path).expect("a manifest");
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line == "[dependencies]";
        } else if inside && let Some((name, _)) = line.split_once(['.', ' ', '=']) {
            names.push(name.to_owned());
        }
    }
    assert!(!names.is_empty(), "{name} has no dependencies, which is hard to believe");
    names
}

#[test]
fn crates_know_only_what_they_may() {
    const ASYNC_AND_NETWORK: [&str; 6] = ["tokio", "axum", "hyper", "reqwest", "kube", "futures"];
    for (name, forbidden) in [
        ("podscale-core", &["podscale-api", "k8s-openapi", "jiff", "tracing", "log", "rand"][..]),
        ("podscale-api", &["podscale-apiserver", "podscale-sim", "podscale"]),
        (
            "podscale-sim",
            &["podscale-api", "podscale-apiserver", "podscale", "k8s-openapi", "jiff", "rand"],
        ),
    ] {
        let found: Vec<String> = dependencies(name)
            .into_iter()
            .filter(|d| forbidden.contains(&d.as_str()) || ASYNC_AND_NETWORK.contains(&d.as_str()))
            .collect();
        none(&format!("{name} must not depend on"), &found);
    }
    let apiserver = dependencies("podscale-apiserver");
    let found: Vec<String> = apiserver
        .into_iter()
        .filter(|d| ["podscale-core", "podscale-sim", "podscale", "kube"].contains(&d.as_str()))
        .collect();
    none("podscale-apiserver must not depend on", &found);
}

#[test]
fn the_core_knows_no_clock_and_no_outside() {
    const FORBIDDEN: [&str; 8] = [
        "SystemTime",
        "Instant",
        "std::net",
        "std::fs",
        "std::env",
        "std::thread",
        "async fn",
        "println!",
    ];
    let mut found = Vec::new();
    for (file, text) in sources() {
        let pure = ["crates/podscale-core/src/", "crates/podscale-sim/src/"];
        if pure.iter().any(|p| file.starts_with(p)) {
            for word in FORBIDDEN.iter().filter(|word| text.contains(**word)) {
                found.push(format!("{file}: {word}"));
            }
        }
    }
    none("pure crates must not mention", &found);
}

#[test]
fn files_have_a_readable_size() {
    const MOST_LINES: usize = 800;
    let mut found = Vec::new();
    for (file, text) in sources() {
        let lines = text.lines().count();
        if lines > MOST_LINES {
            found.push(format!("{file}: {lines} lines"));
        }
    }
    none(&format!("longer than {MOST_LINES} lines"), &found);
}

#[test]
fn names_say_something() {
    const EMPTY_NAMES: [&str; 6] = ["utils", "util", "common", "helpers", "helper", "manager"];
    let mut found = Vec::new();
    for (file, _) in sources() {
        let stem = Path::new(&file).file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let folder = Path::new(&file).parent().and_then(Path::file_name).and_then(|s| s.to_str());
        let empty = |name: &str| EMPTY_NAMES.contains(&name);
        if stem == "mod" || empty(stem) || folder.is_some_and(empty) {
            found.push(file);
        }
    }
    none("names that say nothing", &found);
}

#[test]
fn nothing_is_left_open() {
    let words = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!"];
    let mut found = Vec::new();
    for (file, text) in sources() {
        if file.ends_with("tests/tidy.rs") {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                found.push(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    none("left open", &found);
}

#[test]
fn every_file_says_what_it_is_for() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        // Tests beside a module are about that module.
        if !file.ends_with("/tests.rs") && !text.starts_with("//!") {
            found.push(file);
        }
    }
    none("no word on what it is for in the first line", &found);
}

#[test]
fn nothing_is_about_one_machine() {
    let places = ["/root/", "/work/", "index.crates.io", "proxy.golang.org", "registry.npmjs.org"];
    let mut found = Vec::new();
    for file in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        if file.ends_with("tests/tidy.rs") {
            continue;
        }
        for place in places.iter().filter(|place| text.contains(**place)) {
            found.push(format!("{file}: {place}"));
        }
    }
    none("machines and registries are not the project's business", &found);
}
