use super::*;
use crate::prometheus::Config;
use crate::rules::KnownResources;
use axum::Router;
use axum::extract::Form;
use axum::http::StatusCode;
use axum::routing::post;
use parking_lot::Mutex;
use std::collections::HashMap;

/// A Prometheus whose series can be changed, and which counts requests.
#[derive(Default)]
struct Fake {
    series: Mutex<Vec<&'static str>>,
    broken: Mutex<bool>,
    lists: Mutex<usize>,
    queries: Mutex<Vec<String>>,
}

impl Fake {
    fn list(&self, selector: &str) -> (StatusCode, String) {
        if selector.contains("wrong{") {
            let text = r#"{"status":"error","errorType":"bad_data","error":"unexpected end"}"#;
            return (StatusCode::BAD_REQUEST, text.to_owned());
        }
        (StatusCode::OK, self.series())
    }

    fn series(&self) -> String {
        *self.lists.lock() += 1;
        if *self.broken.lock() {
            return r#"{"status":"error","errorType":"internal","error":"broken"}"#.to_owned();
        }
        let shape = |name: &&str| format!(r#"{{"__name__":"{name}","namespace":"n","pod":"p"}}"#);
        let series: Vec<String> = self.series.lock().iter().map(shape).collect();
        format!(r#"{{"status":"success","data":[{}]}}"#, series.join(","))
    }

    fn query(&self, query: &str) -> String {
        self.queries.lock().push(query.to_owned());
        let series =
            |pod, value| format!(r#"{{"metric":{{"pod":"{pod}"}},"value":[1,"{value}"]}}"#);
        let result = format!("{},{}", series("a", "1"), series("b", "2.5"));
        format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{result}]}}}}"#)
    }
}

const RULES: &str = r#"
rules:
- seriesQuery: '{pod!=""}'
  resources: {template: <<.Resource>>}
  metricsQuery: sum(<<.Series>>{<<.LabelMatchers>>}) by (<<.GroupBy>>)
externalRules:
- seriesQuery: '{queue!=""}'
  resources: {namespaced: false}
  name: {as: "ext_$0"}
  metricsQuery: <<.Series>>
"#;

async fn engine(fake: &Arc<Fake>, unknown: Duration) -> Engine {
    let (lists, queries) = (Arc::clone(fake), Arc::clone(fake));
    let query = move |Form(form): Form<HashMap<String, String>>| async move {
        queries.query(form.get("query").map_or("", String::as_str))
    };
    let series = move |Form(form): Form<HashMap<String, String>>| async move {
        lists.list(form.get("match[]").map_or("", String::as_str))
    };
    let router =
        Router::new().route("/api/v1/series", post(series)).route("/api/v1/query", post(query));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Arc::new(Client::new(Config::new(url)).expect("a client"));
    let rules = RuleSet::parse(RULES).expect("rules");
    let timings = Timings { unknown, ..Timings::default() };
    Engine::new(client, rules, Arc::new(KnownResources::everyday()), timings)
}

async fn ask(engine: &Engine, metric: &str, names: &[&str]) -> String {
    let pods = engine.resource("", "pods").expect("pods");
    let selector = Selector::everything();
    let asked = Asked { resource: &pods, namespace: Some("n"), names, selector: &selector };
    match engine.custom(metric, asked, Duration::ZERO).await {
        Ok(values) => {
            let words: Vec<String> =
                values.iter().map(|v| format!("{}={}", v.name, v.value)).collect();
            words.join(" ")
        }
        Err(error) => error.to_string(),
    }
}

const NONE: &str = "the server could not find the metric y for pods";

#[tokio::test]
async fn a_metric_is_looked_up_when_it_is_asked_for() {
    let fake = Arc::new(Fake::default());
    fake.series.lock().push("x");
    let engine = engine(&fake, Duration::from_secs(600)).await;
    assert!(engine.custom_metrics().is_empty());
    assert_eq!(ask(&engine, "x", &["a", "b", "c"]).await, "a=1 b=2500m");
    assert_eq!(*fake.lists.lock(), 2, "one for each query of series");
    assert_eq!(ask(&engine, "x", &["a"]).await, "a=1");
    assert_eq!(
        ask(&engine, "x", &["c"]).await,
        "the server could not find the metric x for pods c"
    );
    assert_eq!(ask(&engine, "x", &[]).await, "");
    assert_eq!(*fake.lists.lock(), 2);
    for _ in 0..5 {
        assert_eq!(ask(&engine, "y", &["a"]).await, NONE);
        assert_eq!(ask(&engine, "y", &[]).await, NONE);
    }
    assert_eq!(*fake.lists.lock(), 4, "an unknown name is looked up once");
    fake.series.lock().push("y");
    assert_eq!(ask(&engine, "y", &["a"]).await, NONE, "for a while");
    engine.refresh().await;
    assert_eq!(ask(&engine, "y", &["a"]).await, "a=1");
    let names: Vec<String> =
        engine.custom_metrics().iter().map(|m| format!("{}/{}", m.resource, m.metric)).collect();
    assert_eq!(names, ["namespaces/x", "namespaces/y", "pods/x", "pods/y"]);
    assert_eq!(engine.external_metrics(), ["ext_x".into(), "ext_y".into()]);
    let selector = Selector::everything();
    let external = engine.external("ext_x", "n", &selector, Duration::ZERO).await.expect("values");
    assert_eq!(external.len(), 2);
    assert_eq!(fake.queries.lock().last().map(String::as_str), Some("x"));
}

#[tokio::test]
async fn a_name_that_was_unknown_is_found_when_it_is_asked_for_again() {
    let fake = Arc::new(Fake::default());
    let engine = engine(&fake, Duration::from_millis(1)).await;
    let everything = Selector::everything();
    let external = async || engine.external("ext_y", "n", &everything, Duration::ZERO).await;
    assert!(matches!(external().await, Err(EngineError::NoMetric { .. })));
    fake.series.lock().push("y");
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(external().await.is_ok(), "no schedule is waited for");
    assert_eq!(*fake.lists.lock(), 4, "two rounds of two queries");
}

#[tokio::test]
async fn many_who_ask_for_unknown_metrics_cause_few_lookups() {
    let fake = Arc::new(Fake::default());
    fake.series.lock().push("x");
    let engine = engine(&fake, Duration::from_secs(600)).await;
    let names: Vec<String> = (0..40).map(|n| format!("none{n}")).collect();
    let all = names.iter().map(|name| ask(&engine, name, &["a"]));
    let same = (0..40).map(|_| ask(&engine, "x", &["a"]));
    let (unknown, known) =
        tokio::join!(futures::future::join_all(all), futures::future::join_all(same));
    assert!(unknown.iter().all(|text| text.contains("could not find")));
    assert!(known.iter().all(|text| text == "a=1"), "{known:?}");
    assert!(*fake.lists.lock() <= 4, "two rounds at most: {}", fake.lists.lock());
}

#[tokio::test]
async fn a_failed_lookup_keeps_what_was_known_and_is_no_missing_metric() {
    let fake = Arc::new(Fake::default());
    fake.series.lock().push("x");
    let engine = engine(&fake, Duration::from_secs(600)).await;
    engine.refresh().await;
    *fake.broken.lock() = true;
    let failed = engine.refresh().await;
    assert_eq!((failed.queries, failed.failures.len(), failed.metrics), (2, 2, 3));
    assert_eq!(ask(&engine, "x", &["a"]).await, "a=1");
    for _ in 0..2 {
        let text = ask(&engine, "y", &["a"]).await;
        assert_eq!(text, "unable to fetch metrics: Prometheus answered 200 internal: broken");
    }
}

#[tokio::test]
async fn rules_are_replaced_while_everything_else_stays() {
    let fake = Arc::new(Fake::default());
    fake.series.lock().push("x");
    let engine = engine(&fake, Duration::from_secs(600)).await;
    engine.refresh().await;
    let before = *fake.lists.lock();
    let renamed = RULES.replace("  metricsQuery: sum", "  name: {as: other}\n  metricsQuery: max");
    engine.replace(RuleSet::parse(&renamed).expect("rules"));
    assert_eq!(ask(&engine, "other", &["a"]).await, "a=1");
    let query = r#"max(x{namespace="n",pod="a"}) by (pod)"#;
    assert_eq!(fake.queries.lock().last().map(String::as_str), Some(query));
    assert_eq!(*fake.lists.lock(), before, "the series are known");
}

#[tokio::test]
async fn derived_rules_stay_when_the_configured_ones_change() {
    let fake = Arc::new(Fake::default());
    *fake.series.lock() = vec!["hits"];
    let engine = engine(&fake, Duration::ZERO).await;
    let named = |name: &str| {
        let query = "  metricsQuery: sum";
        let text = RULES.replace(query, &format!("  name: {{as: {name}}}\n{query}"));
        RuleSet::parse(&text).expect("rules")
    };
    engine.replace_derived(named("derived"));
    assert_eq!(ask(&engine, "derived", &["a"]).await, "a=1");
    engine.replace(named("other"));
    for metric in ["derived", "other"] {
        assert_eq!(ask(&engine, metric, &["a"]).await, "a=1", "{metric}");
    }
    engine.replace_derived(RuleSet::default());
    assert_eq!(ask(&engine, "other", &["a"]).await, "a=1");
    assert!(ask(&engine, "derived", &["a"]).await.contains("could not find"));
}

#[tokio::test]
async fn a_selector_that_is_wrong_costs_only_its_own_rule() {
    let fake = Arc::new(Fake::default());
    fake.series.lock().push("x");
    let engine = engine(&fake, Duration::ZERO).await;
    let wrong = "externalRules:\n- seriesQuery: 'wrong{}'\n  resources: {namespaced: false}\n  metricsQuery: a\n";
    engine.replace_derived(RuleSet::parse(wrong).expect("rules"));
    assert_eq!(ask(&engine, "x", &["a"]).await, "a=1");
    for _ in 0..2 {
        assert_eq!(ask(&engine, "y", &["a"]).await, NONE);
    }
    let round = engine.refresh().await;
    let refused: Vec<(&str, String)> =
        round.refused().map(|(query, error)| (query, error.to_string())).collect();
    let says = "Prometheus answered 400 bad_data: unexpected end".to_owned();
    assert_eq!(refused, [("wrong{}", says)]);
    assert_eq!(engine.rules().rules_of("wrong{}"), ["externalRules[0]"]);
}

#[tokio::test]
async fn series_are_looked_up_at_once_after_the_rules_were_replaced() {
    let fake = Arc::new(Fake::default());
    let engine = engine(&fake, Duration::from_secs(600)).await;
    let rounds = Mutex::new(0);
    let following = engine.refresh_forever(|_| {
        *rounds.lock() += 1;
        if *rounds.lock() == 1 {
            engine.replace(RuleSet::parse(RULES).expect("rules"));
        }
    });
    let two = async {
        while *rounds.lock() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await
        }
    };
    let deadline = Duration::from_secs(30);
    let both = async {
        tokio::select! { () = following => {}, () = two => {} }
    };
    tokio::time::timeout(deadline, both).await.expect("two rounds, long before the schedule");
}
