use super::*;
use crate::source::Refreshing;
use crate::source::subscriptions::notifications;
use axum::extract::{Form, State};
use axum::routing::post;
use podscale_client::watch::Change;
use podscale_metrics::prometheus::{Client, Config};
use podscale_metrics::rules::engine::Timings;
use podscale_metrics::rules::{KnownResources, RuleSet};
use serde_json::{Value, json};

type Asked = Arc<Mutex<Vec<String>>>;

/// Answers every query for the pods a and b of two namespaces, and remembers it.
async fn answer(
    State(asked): State<Asked>,
    Form(form): Form<HashMap<String, String>>,
) -> axum::Json<Value> {
    let query = form.get("query").cloned().unwrap_or_default();
    let series = |namespace: &str, pod: &str, container: &str, value: &str| {
        let mut labels = json!({"pod": pod, "container": container});
        if query.contains("by (namespace,") {
            labels["namespace"] = namespace.into();
        }
        json!({"metric": labels, "value": [1000, value]})
    };
    // The tenth time, b uses more.
    let of_b = if asked.lock().len() < 9 { "1.5" } else { "2" };
    let result = json!([
        series("n0", "a", "main", "0.25"),
        series("n0", "a", "side", "NaN"),
        series("n0", "b", "main", of_b),
        series("n0", "gone", "main", "9"),
    ]);
    asked.lock().push(query);
    axum::Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}))
}

fn pod(namespace: &str, name: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.metadata.namespace = namespace.into();
    pod.metadata.labels = [("app", "web")].into_iter().collect();
    pod
}

async fn source() -> (PrometheusUsage, Asked) {
    let asked = Asked::default();
    let router = axum::Router::new().route("/api/v1/query", post(answer)).with_state(asked.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    let client = Arc::new(Client::new(Config::new(url)).expect("a client"));
    let known = Arc::new(KnownResources::everyday());
    let engine = Engine::new(client, RuleSet::default(), known, Timings::default());
    let pods = Arc::new(Pods::default());
    let all = (0..8).flat_map(|n| ["a", "b", "new"].map(|name| pod(&format!("n{n}"), name)));
    pods.apply(Change::All(all.collect()));
    (PrometheusUsage::new(Arc::new(engine), pods, Clock::wall(), Metrics::new()), asked)
}

async fn ask(source: &PrometheusUsage, namespace: &str, resource: &str) -> String {
    let metric = Source::Resource { name: resource.into() };
    let (max_age, period) = (Duration::from_secs(2), Duration::from_secs(15));
    let question = Question { namespace, metric: &metric, pods: "app=web", max_age, period };
    match source.ask(question).await {
        Answer::Resource(metrics) => {
            let container = |container: &ContainerMetrics| {
                let amount = container.usage.get(resource).map(Quantity::to_string);
                format!("{}={}", container.name, amount.unwrap_or_default())
            };
            let of_pod = |pod: &Arc<PodMetrics>| {
                let containers: Vec<String> = pod.containers.iter().map(container).collect();
                format!("{} {}", pod.metadata.name, containers.join(" "))
            };
            metrics.iter().map(of_pod).collect::<Vec<_>>().join("; ")
        }
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn one_query_serves_all_who_ask() {
    let (source, asked) = source().await;
    let expected = "a main=250m side=0; b main=1500m";
    for _ in 0..3 {
        assert_eq!(ask(&source, "n0", "cpu").await, expected);
    }
    assert_eq!(asked.lock().len(), 1, "shared");
    assert!(
        asked.lock()[0].contains(r#"container_cpu_usage_seconds_total{namespace="n0",pod!="""#)
    );
    assert_eq!(ask(&source, "n0", "memory").await, "a main=250m side=0; b main=1500m");
    for namespace in ["n1", "n2", "n3", "n4", "n5", "n6"] {
        ask(&source, namespace, "cpu").await;
    }
    let cluster: Vec<String> =
        asked.lock().iter().filter(|query| query.contains("by (namespace,")).cloned().collect();
    assert_eq!(cluster.len(), 1, "all namespaces at once: {:?}", asked.lock());
    assert_eq!(ask(&source, "n0", "cpu").await, expected, "out of the answer about all");
    assert!(ask(&source, "n0", "ephemeral-storage").await.contains("not for ephemeral-storage"));
}

#[tokio::test]
async fn a_prometheus_that_is_not_there_is_said() {
    let (source, _) = source().await;
    let client = Arc::new(Client::new(Config::new("http://127.0.0.1:9")).expect("a client"));
    let known = Arc::new(KnownResources::everyday());
    let engine = Arc::new(Engine::new(client, RuleSet::default(), known, Timings::default()));
    let source = PrometheusUsage { engine, ..source };
    let answer = ask(&source, "n0", "cpu").await;
    assert!(answer.contains("Prometheus: cannot be reached"), "{answer}");
}

/// So much later an answer is old for everybody.
async fn later() {
    tokio::time::pause();
    tokio::time::advance(2 * YOUNGEST_ASKED).await;
    tokio::time::resume();
}

#[tokio::test]
async fn what_is_new_is_announced_to_those_whose_pods_it_is_of() {
    let (source, asked) = source().await;
    let (notifier, mut announcements) = notifications();
    let refreshing = Refreshing { every: Duration::ZERO, notifier };
    refreshing.round(&source).await;
    assert!(asked.lock().is_empty(), "nobody asked anything");
    let metric = Source::Resource { name: "cpu".into() };
    let topic = |pods| {
        let (max_age, period) = (Duration::ZERO, Duration::from_secs(15));
        let question = Question { namespace: "n0", metric: &metric, pods, max_age, period };
        source.topic(&question).expect("a topic")
    };
    let (web, _other) = (topic("app=web"), topic("app=other"));
    ask(&source, "n0", "cpu").await;
    refreshing.round(&source).await;
    assert_eq!(asked.lock().len(), 1, "Prometheus has nothing newer");
    while asked.lock().len() < 9 {
        later().await;
        refreshing.round(&source).await;
        assert!(announcements.next().now_or_never().is_none(), "nothing has changed yet");
    }
    // Somebody decides on what is new before the next round, which finds the same.
    later().await;
    let began = source.clock.now();
    ask(&source, "n0", "cpu").await;
    let answered = source.clock.now();
    later().await;
    refreshing.round(&source).await;
    assert_eq!(asked.lock().len(), 11);
    let news = announcements.next().now_or_never().flatten().expect("news");
    let Some(Unseen::Before(since)) = news.get(&web) else { panic!("{news:?}") };
    assert!(news.len() == 1 && (began..=answered).contains(since), "{news:?}");
    later().await;
    refreshing.round(&source).await;
    assert!(announcements.next().now_or_never().is_none(), "it is announced once");
}
