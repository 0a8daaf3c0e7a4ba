use super::*;
use crate::source::Refreshing;
use crate::source::refresh::YOUNGEST_ASKED;
use crate::source::subscriptions::notifications;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};

/// A Prometheus that gives one value, several, or nothing, as the query says.
async fn prometheus() -> String {
    let answer = async |body: String| {
        let sample = |value: &str| json!({"metric": {}, "value": [1_700_000_000.5, value]});
        let result: Vec<Value> = match body.split(['=', '&']).nth(1) {
            Some("one") => vec![sample("2.5")],
            Some("two") => vec![sample("1"), sample("2")],
            Some("nan") => vec![sample("NaN")],
            _ => vec![],
        };
        Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}))
    };
    let router = Router::new().route("/api/v1/query", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

#[tokio::test]
async fn one_value_is_an_answer_and_servers_must_be_allowed() {
    let url = prometheus().await;
    let own = Arc::new(Client::new(Config::new(&url)).expect("a client"));
    let allowed = [format!("{url}/")];
    let servers = |own, others: &[String]| {
        Arc::new(PrometheusServers::new(own, others, None).expect("servers"))
    };
    let both = servers(Some(Arc::clone(&own)), &[]);
    let (other, none) = (servers(None, &allowed), servers(None, &[]));
    for (what, servers, server, query, expected) in [
        ("one", &both, None, "one", "2500 at 1700000000500000"),
        ("nothing", &both, None, "none", "no value"),
        ("several", &both, None, "two", "the query gives 2 values, not one; aggregate it"),
        ("no number", &both, None, "nan", "the query gives NaN, which is no amount"),
        ("the own by name", &both, Some(url.as_str()), "one", "2500 at"),
        ("an allowed one", &other, Some(url.as_str()), "one", "2500 at"),
        ("none of its own", &other, None, "one", "it is not said where Prometheus is"),
        ("a stranger", &none, Some(url.as_str()), "one", "is not one of the controller's"),
    ] {
        let source = PrometheusQueries::new(Arc::clone(servers), Clock::wall(), Metrics::new());
        let query = PrometheusQuery {
            name: "q".into(),
            server: server.map(Into::into),
            query: query.into(),
        };
        let metric = Source::Prometheus(query);
        let max_age = Duration::from_secs(1);
        let period = Duration::from_secs(15);
        let question = Question { namespace: "shop", metric: &metric, pods: "", max_age, period };
        let found = match source.ask(question).await {
            Answer::Value(Some((Milli(milli), Time(time)))) => format!("{milli} at {time}"),
            Answer::Value(None) => "no value".to_owned(),
            Answer::Failed(why) => why.to_string(),
            other => format!("{other:?}"),
        };
        assert!(found.contains(expected), "{what}: {found}");
    }
}

/// A Prometheus whose only value rises every second time that it is asked.
async fn rising() -> (String, Arc<AtomicU32>) {
    let asked = Arc::<AtomicU32>::default();
    let count = Arc::clone(&asked);
    let answer = move || async move {
        let value = (count.fetch_add(1, Ordering::Relaxed) / 2).to_string();
        let result = json!([{"metric": {}, "value": [1_700_000_000, value]}]);
        Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}))
    };
    let router = Router::new().route("/api/v1/query", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), asked)
}

/// So much later an answer is old for everybody.
async fn later() {
    tokio::time::pause();
    tokio::time::advance(2 * YOUNGEST_ASKED).await;
    tokio::time::resume();
}

fn query(server: Option<&str>) -> Source {
    let server = server.map(Into::into);
    Source::Prometheus(PrometheusQuery { name: "q".into(), server, query: "x".into() })
}

fn question(metric: &Source) -> Question<'_> {
    let (max_age, period) = (Duration::from_secs(2), Duration::from_secs(15));
    Question { namespace: "n", metric, pods: "", max_age, period }
}

fn source_of(url: &str) -> PrometheusQueries {
    let own = Arc::new(Client::new(Config::new(url)).expect("a client"));
    let servers = Arc::new(PrometheusServers::new(Some(own), &[], None).expect("servers"));
    PrometheusQueries::new(servers, Clock::wall(), Metrics::new())
}

#[tokio::test]
async fn a_query_is_asked_again_and_announced_when_its_value_changes() {
    let (url, requests) = rising().await;
    let source = source_of(&url);
    let (notifier, mut announcements) = notifications();
    let refreshing = Refreshing { every: Duration::ZERO, notifier };
    refreshing.round(&source).await;
    assert_eq!(requests.load(Ordering::Relaxed), 0, "nobody asked anything");
    let (own, stranger) = (query(None), query(Some("http://stranger")));
    assert_eq!(source.topic(&question(&stranger)), None, "not allowed, so not asked again");
    let topic = source.topic(&question(&own)).expect("a topic");
    let same = source.topic(&question(&own));
    assert_eq!(same.as_ref(), Some(&topic), "one for all who ask the same");
    source.ask(question(&own)).await;
    let mut announced = Vec::new();
    for _ in 0..4 {
        later().await;
        refreshing.round(&source).await;
        let heard = announcements.next().now_or_never().flatten();
        announced.push(heard.is_some_and(|news| news.contains_key(&topic)));
    }
    // The values are 0 for who asked, and then 0, 1, 1, 2.
    assert_eq!(announced, [false, true, false, true]);
}

/// The values are 0, 0, 1, 1, 2: somebody decides on the first 1, and the round finds the second.
#[tokio::test]
async fn whoever_decided_on_a_new_value_is_not_among_those_who_lack_it() {
    let (url, requests) = rising().await;
    let source = source_of(&url);
    let (notifier, mut announcements) = notifications();
    let refreshing = Refreshing { every: Duration::ZERO, notifier };
    let own = query(None);
    let topic = source.topic(&question(&own)).expect("a topic");
    source.ask(question(&own)).await;
    later().await;
    refreshing.round(&source).await;
    later().await;
    let began = source.clock.now();
    source.ask(question(&own)).await;
    let answered = source.clock.now();
    later().await;
    refreshing.round(&source).await;
    assert_eq!(requests.load(Ordering::Relaxed), 4);
    let news = announcements.next().now_or_never().flatten().expect("the new value is announced");
    let Some(Unseen::Before(since)) = news.get(&topic) else { panic!("{news:?}") };
    assert!((began..=answered).contains(since), "{began} {since} {answered}");
}

#[tokio::test]
async fn other_servers_are_asked_for_young_samples_as_well() {
    let asked = Arc::<parking_lot::Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&asked);
    let answer = move |body: String| async move {
        seen.lock().push(body);
        Json(json!({"status": "success", "data": {"resultType": "vector", "result": []}}))
    };
    let router = Router::new().route("/api/v1/query", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let max_age = Some(Duration::from_secs(90));
    let servers = PrometheusServers::new(None, std::slice::from_ref(&url), max_age);
    assert_eq!(servers.expect("servers").probe(Some(&url), "up").await, Probe::NoValue);
    assert_eq!(*asked.lock(), ["query=up&timeout=10000ms&lookback_delta=90000ms"]);
}
