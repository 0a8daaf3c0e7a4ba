//! The house rules that can be checked: which crates and modules may know each other, no clock in the
//! core, files and functions of a readable size, names that say something, words that others use,
//! nothing left open, nothing about one machine.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "tidy/crates.rs"]
mod crates;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/modules.rs"]
mod modules;
#[path = "tidy/rust.rs"]
mod rust;
#[path = "tidy/words.rs"]
mod words;

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

/// The sources that are shipped, without files of tests, benchmarks and examples.
fn shipped_sources() -> Vec<(String, String)> {
    let is_shipped = |file: &str| {
        let parts: Vec<&str> = file.split('/').collect();
        parts.first() == Some(&"crates")
            && parts.get(2) == Some(&"src")
            && !parts.iter().any(|part| ["tests", "tests.rs"].contains(part))
    };
    sources().into_iter().filter(|(file, _)| is_shipped(file)).collect()
}

#[track_caller]
fn none(what: &str, found: &[String]) {
    let mut list = String::new();
    for place in found {
        let _ = write!(list, "\n  {place}");
    }
    assert!(found.is_empty(), "{what}:{list}");
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

/// The most lines of a file.
const MOST_LINES: usize = 400;
/// Files that are longer, and how long they may be: the numbers may only become smaller.
const LONGER: [(&str, usize); 1] = [("crates/podscale-cluster/src/nodes/driver.rs", 411)];

#[test]
fn files_have_a_readable_size() {
    let mut found = Vec::new();
    for (file, text) in sources() {
        let lines = text.lines().count();
        let longer = LONGER.iter().find(|(name, _)| *name == file).map(|(_, most)| *most);
        if lines > longer.unwrap_or(MOST_LINES) {
            found.push(format!("{file}: {lines} lines"));
        } else if longer.is_some() && lines <= MOST_LINES {
            found.push(format!("{file}: {lines} lines, so it is no longer an exception"));
        }
    }
    none(&format!("longer than {MOST_LINES} lines, or than allowed for them"), &found);
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

/// The rules themselves name what must not be.
fn is_tidy(file: &str) -> bool {
    file.starts_with("crates/podscale-api/tests/tidy")
}

#[test]
fn nothing_is_left_open() {
    let words = ["TODO", "FIXME", "XXX", "todo!", "unimplemented!"];
    let mut found = Vec::new();
    for (file, text) in sources() {
        if is_tidy(&file) {
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
    let places = [
        "/root/",
        "/work/",
        "index.crates.io",
        "proxy.golang.org",
        "registry.npmjs.org",
        "repo.maven.apache.org",
        "repo1.maven.org",
    ];
    let mut found = Vec::new();
    for file in files() {
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        if is_tidy(&file) {
            continue;
        }
        for place in places.iter().filter(|place| text.contains(**place)) {
            found.push(format!("{file}: {place}"));
        }
    }
    none("machines and registries are not the project's business", &found);
}
