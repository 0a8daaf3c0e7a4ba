use super::*;
use crate::metrics::Metrics;
use podscale_metrics::prometheus::{Client, Config};
use podscale_metrics::rules::engine::Timings;
use podscale_metrics::rules::{KnownResources, RuleSet};

fn rules(names: &[&str]) -> String {
    let rule = |name: &&str| format!("- {{seriesQuery: {name}, metricsQuery: {name}}}\n");
    format!("externalRules:\n{}", names.iter().map(rule).collect::<String>())
}

fn engine() -> Arc<Engine> {
    let client = Client::new(Config::new("http://127.0.0.1:9")).expect("a client");
    let known = Arc::new(KnownResources::everyday());
    Arc::new(Engine::new(Arc::new(client), RuleSet::default(), known, Timings::default()))
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("podscale-rules-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

#[tokio::test]
async fn a_file_is_followed_and_a_wrong_one_changes_nothing() {
    let folder = folder("followed");
    let path = folder.join("config.yaml");
    let (engine, metrics) = (engine(), Metrics::new());
    let reports = Arc::new(RuleReports::new(metrics.clone(), None));
    let mut file = RuleFile::new(path.clone(), Arc::clone(&engine), reports);
    for (text, in_use, errors) in [
        (None, 0, 1),
        (Some(rules(&["a"])), 1, 0),
        (Some(rules(&["a", "b"])), 2, 0),
        (Some("externalRules: [{seriesQuery: a}]".to_owned()), 2, 1),
        (Some("rules: [".to_owned()), 2, 1),
        (None, 2, 1),
        (Some(rules(&["c"])), 1, 0),
        (None, 1, 1),
        (Some(rules(&["c"])), 1, 0),
    ] {
        match &text {
            Some(text) => std::fs::write(&path, text).expect("written"),
            None => drop(std::fs::remove_file(&path)),
        }
        for _ in 0..2 {
            file.look().await;
        }
        assert_eq!(engine.rules().external().len(), in_use, "{text:?}");
        let expected = format!("podscale_metric_rules_errors {errors}\n");
        assert!(metrics.text().contains(&expected), "{text:?}: {}", metrics.text());
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[tokio::test]
async fn what_is_wrong_at_the_start_is_refused_and_what_is_good_is_taken_in_once() {
    let folder = folder("opened");
    let path = folder.join("config.yaml");
    let reports = || Arc::new(RuleReports::new(Metrics::new(), None));
    let engine = engine();
    let open = || RuleFile::open(&path, Arc::clone(&engine), reports());
    for (text, expected) in [
        (None, "config.yaml: No such file"),
        (Some(""), "is empty; to drop all rules, say rules: []"),
        (
            Some("externalRules: [{seriesQuery: a, metricQuery: b}]"),
            "externalRules[0].metricQuery: there is no such field",
        ),
    ] {
        if let Some(text) = text {
            std::fs::write(&path, text).expect("written");
        }
        let error = open().err().expect("wrong").to_string();
        assert!(error.contains(expected), "{error}");
        assert!(engine.rules().external().is_empty());
    }
    std::fs::write(&path, rules(&["a"])).expect("written");
    let mut file = open().expect("rules");
    assert_eq!(engine.rules().external().len(), 1);
    let versions = engine.versions();
    file.look().await;
    assert!(!versions.has_changed().expect("an engine"), "they are those with which it began");
    std::fs::remove_dir_all(&folder).expect("removed");
}
