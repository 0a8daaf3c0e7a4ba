use super::*;
use podscale_metrics::prometheus::{Client, Config};
use podscale_metrics::rules::KnownResources;
use podscale_metrics::rules::engine::{Engine, Timings};

fn rules(names: &[&str]) -> String {
    let rule = |name: &&str| format!("- {{seriesQuery: {name}, metricsQuery: {name}}}\n");
    format!("externalRules:\n{}", names.iter().map(rule).collect::<String>())
}

#[tokio::test]
async fn a_file_is_followed_and_a_wrong_one_changes_nothing() {
    let folder = std::env::temp_dir().join(format!("podscale-rules-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("config.yaml");
    let client = Client::new(Config::new("http://127.0.0.1:9")).expect("a client");
    let known = Arc::new(KnownResources::everyday());
    let engine = Engine::new(Arc::new(client), RuleSet::default(), known, Timings::default());
    let (engine, metrics) = (Arc::new(engine), Metrics::new());
    let reloader = Arc::new(Reloader::new(Arc::clone(&engine)));
    let mut follower = Follower {
        path: path.clone(),
        reloader,
        metrics: metrics.clone(),
        readable: true,
        errors: 0,
    };
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
            follower.look().await;
        }
        assert_eq!(engine.rules().external().len(), in_use, "{text:?}");
        let expected = format!("podscale_metric_rules_errors {errors}\n");
        assert!(metrics.text().contains(&expected), "{text:?}: {}", metrics.text());
        assert_eq!(read(&path).is_ok(), errors == 0, "{text:?}");
    }
    let wrong = folder.join("wrong.yaml");
    std::fs::write(&wrong, "externalRules: [{seriesQuery: a, metricQuery: b}]").expect("written");
    let error = read(&wrong).expect_err("wrong").to_string();
    assert!(error.contains("externalRules[0].metricQuery: there is no such field"), "{error}");
    std::fs::remove_dir_all(&folder).expect("removed");
}
