//! Each crate exists because its manifest forbids something.

use crate::{none, root, shipped_sources};

/// What can wait, or reach outside the process.
const ASYNC_AND_NETWORK: [&str; 8] =
    ["tokio", "axum", "hyper", "hyper-util", "reqwest", "kube", "futures", "tower"];

/// A crate, those of ours that it may depend on, and others that it may not depend on.
struct Rule {
    name: &'static str,
    may: &'static [&'static str],
    may_not: &'static [&'static str],
}

/// Nothing may depend on `podscale`.
const RULES: [Rule; 10] = [
    Rule {
        name: "podscale-core",
        may: &[],
        may_not: &["k8s-openapi", "jiff", "tracing", "log", "rand"],
    },
    Rule { name: "podscale-api", may: &["podscale-core"], may_not: &["k8s-openapi"] },
    Rule {
        name: "podscale-sim",
        may: &["podscale-core"],
        may_not: &["k8s-openapi", "jiff", "rand"],
    },
    Rule { name: "podscale-metrics", may: &["podscale-api"], may_not: &["kube", "k8s-openapi"] },
    Rule {
        name: "podscale-scalers",
        may: &["podscale-api", "podscale-metrics"],
        may_not: &["kube", "k8s-openapi"],
    },
    Rule { name: "podscale-client", may: &["podscale-api"], may_not: &[] },
    Rule { name: "podscale-apiserver", may: &["podscale-api"], may_not: &["kube"] },
    Rule {
        name: "podscale-cluster",
        may: &["podscale-api", "podscale-client", "podscale-metrics", "podscale-sim"],
        may_not: &[],
    },
    Rule {
        name: "podscale-controller",
        may: &[
            "podscale-api",
            "podscale-client",
            "podscale-core",
            "podscale-metrics",
            "podscale-scalers",
        ],
        may_not: &["ratatui", "indicatif"],
    },
    Rule {
        name: "podscale",
        may: &[
            "podscale-api",
            "podscale-apiserver",
            "podscale-client",
            "podscale-cluster",
            "podscale-controller",
            "podscale-core",
            "podscale-metrics",
            "podscale-sim",
        ],
        may_not: &[],
    },
];

/// Those that neither wait nor reach outside.
const PURE: [&str; 3] = ["podscale-core", "podscale-api", "podscale-sim"];

/// Those that know neither autoscalers nor decisions, and the parts of `podscale-api` that are about
/// them.
const WITHOUT_AUTOSCALERS: [&str; 2] = ["podscale-client", "podscale-cluster"];
const ABOUT_AUTOSCALERS: [&str; 4] = [
    "podscale_api::hpa",
    "podscale_api::recording",
    "podscale_api::replay",
    "podscale_api::translate",
];

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
fn the_table_has_every_crate() {
    let folders = std::fs::read_dir(root().join("crates")).expect("crates");
    let missing: Vec<String> = folders
        .map(|folder| folder.expect("a folder").file_name().into_string().expect("UTF-8"))
        .filter(|name| RULES.iter().all(|rule| rule.name != name))
        .collect();
    none("crates of which nothing says what they may not know", &missing);
}

#[test]
fn crates_know_only_what_they_may() {
    let mut found = Vec::new();
    for Rule { name, may, may_not } in RULES {
        for dependency in dependencies(name) {
            let dependency = dependency.as_str();
            let ours = dependency == "podscale" || dependency.starts_with("podscale-");
            let waits = PURE.contains(&name) && ASYNC_AND_NETWORK.contains(&dependency);
            if waits || may_not.contains(&dependency) || ours && !may.contains(&dependency) {
                found.push(format!("{name} depends on {dependency}"));
            }
        }
    }
    none("dependencies that must not be", &found);
}

#[test]
fn client_and_cluster_know_no_autoscalers() {
    let mut found = Vec::new();
    for (file, text) in shipped_sources() {
        if !WITHOUT_AUTOSCALERS.iter().any(|name| file.starts_with(&format!("crates/{name}/"))) {
            continue;
        }
        for part in ABOUT_AUTOSCALERS.iter().filter(|part| text.contains(**part)) {
            found.push(format!("{file}: {part}"));
        }
    }
    none("mentions of autoscalers where nothing knows of them", &found);
}
