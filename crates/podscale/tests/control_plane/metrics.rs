//! Metrics of which a test says what they are: all three metrics APIs on one server, reached through
//! the API server's aggregation.

use super::aggregation;
use super::certificates::Authority;
use super::kubelet::{Kubelet, Row};
use super::process::free_ports;
use anyhow::Result;
use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use kube::Client;
use parking_lot::Mutex;
use podscale_api::selector::Selector;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// The metrics APIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    Resource,
    Custom,
    External,
}

/// What is wrong with an API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It answers 503.
    Down,
    /// It takes this long.
    Slow(Duration),
    /// It answers 200 and this.
    Nonsense(&'static str),
}

/// What the pods of an application use.
#[derive(Clone, Copy, Debug)]
pub enum Usage {
    /// Each pod so much.
    Each(i64),
    /// All pods together so much, evenly.
    Total(i64),
    /// The first pod by name so much, the others nothing.
    First(i64),
}

#[derive(Default)]
struct Values {
    /// By namespace, application and what is measured: `cpu`, `memory`, `cpu/CONTAINER`, a metric's
    /// name. In thousandths.
    usage: BTreeMap<(String, String, String), Usage>,
    /// By namespace, object and metric, in thousandths.
    objects: BTreeMap<(String, String, String), i64>,
    /// By namespace and metric: labels and thousandths.
    external: BTreeMap<(String, String), Vec<(BTreeMap<String, String>, i64)>>,
    faults: BTreeMap<Source, Fault>,
}

/// A server of metrics.
#[derive(Clone)]
pub struct Metrics {
    values: Arc<Mutex<Values>>,
    kubelet: Kubelet,
    acceptor: TlsAcceptor,
    port: u16,
    serving: Arc<Mutex<Option<AbortHandle>>>,
    authority: Arc<str>,
    asked: Arc<AtomicU64>,
    /// The version of the custom metrics API that somebody asked last.
    custom_version: Arc<Mutex<String>>,
}

const GROUPS: [(&str, &str); 4] = [
    ("metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("custom.metrics.k8s.io", "v1beta1"),
    ("external.metrics.k8s.io", "v1beta1"),
];

impl Metrics {
    /// Begins to serve, and registers all groups with the API server.
    pub async fn start(
        client: &Client,
        authority: &Authority,
        kubelet: Kubelet,
    ) -> Result<Metrics> {
        let acceptor = authority.sign("metrics", &[&aggregation::host()])?.acceptor()?;
        let [port] = free_ports()?;
        let metrics = Metrics {
            values: Arc::default(),
            kubelet,
            acceptor,
            port,
            serving: Arc::default(),
            authority: authority.pem.as_str().into(),
            asked: Arc::default(),
            custom_version: Arc::default(),
        };
        metrics.listen().await?;
        metrics.register(client).await?;
        Ok(metrics)
    }

    /// Registers all groups with the API server, and waits until it has found them.
    pub async fn register(&self, client: &Client) -> Result<()> {
        aggregation::register(client, self.port, &self.authority, &GROUPS).await
    }

    /// Waits until the API server has found this server to be there.
    pub async fn until_available(&self, client: &Client) -> Result<()> {
        aggregation::until_available(client, &GROUPS).await
    }

    /// Listens on the port that is registered.
    pub async fn listen(&self) -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await?;
        let router = Router::new().fallback(answer).with_state(self.clone_without_serving());
        let task = tokio::spawn(aggregation::accept(listener, self.acceptor.clone(), router));
        *self.serving.lock() = Some(task.abort_handle());
        Ok(())
    }

    fn clone_without_serving(&self) -> Metrics {
        Metrics { serving: Arc::default(), ..self.clone() }
    }

    /// Refuses connections from now on.
    pub fn close(&self) {
        if let Some(serving) = self.serving.lock().take() {
            serving.abort();
        }
    }

    /// Says what the pods of an application use, in thousandths of `cpu` (cores), `memory` (bytes),
    /// `cpu/CONTAINER` or a metric of pods.
    pub fn set_usage(&self, namespace: &str, app: &str, what: &str, usage: Usage) {
        let key = (namespace.to_owned(), app.to_owned(), what.to_owned());
        self.values.lock().usage.insert(key, usage);
    }

    /// Leaves a gap where the usage of an application was.
    pub fn unset_usage(&self, namespace: &str, app: &str, what: &str) {
        let key = (namespace.to_owned(), app.to_owned(), what.to_owned());
        self.values.lock().usage.remove(&key);
    }

    /// Says what a metric of an object is, in thousandths; `resource/name` says of which.
    pub fn set_object(&self, namespace: &str, object: &str, metric: &str, value: i64) {
        let key = (namespace.to_owned(), object.to_owned(), metric.to_owned());
        self.values.lock().objects.insert(key, value);
    }

    /// Says what the series of an external metric are, in thousandths.
    pub fn set_external(&self, namespace: &str, metric: &str, series: &[(&[(&str, &str)], i64)]) {
        let labels = |labels: &[(&str, &str)]| {
            labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
        };
        let series = series.iter().map(|(of, value)| (labels(of), *value)).collect();
        let key = (namespace.to_owned(), metric.to_owned());
        self.values.lock().external.insert(key, series);
    }

    /// Takes a version of a group, such as `v1beta2.custom.metrics.k8s.io`, from the API server.
    pub async fn unregister(&self, client: &Client, name: &str) -> Result<()> {
        aggregation::unregister(client, name).await
    }

    /// The version of the custom metrics API that somebody asked last.
    pub fn custom_version(&self) -> String {
        self.custom_version.lock().clone()
    }

    /// How often somebody has asked for values.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Breaks an API, or mends it.
    pub fn set_fault(&self, source: Source, fault: Option<Fault>) {
        let mut values = self.values.lock();
        match fault {
            Some(fault) => values.faults.insert(source, fault),
            None => values.faults.remove(&source),
        };
    }
}

async fn answer(Shared(metrics): Shared<Metrics>, uri: Uri) -> Response {
    let parts: Vec<String> = uri.path().split('/').skip(1).map(unescape).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let ["apis", group, version, rest @ ..] = &parts[..] else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let source = match *group {
        "metrics.k8s.io" => Source::Resource,
        "custom.metrics.k8s.io" => Source::Custom,
        "external.metrics.k8s.io" => Source::External,
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    if rest.is_empty() {
        return as_json(&resources(source, group, version));
    }
    metrics.asked.fetch_add(1, Ordering::Relaxed);
    if source == Source::Custom {
        *metrics.custom_version.lock() = (*version).to_owned();
    }
    let fault = metrics.values.lock().faults.get(&source).cloned();
    match fault {
        Some(Fault::Down) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
        Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
        Some(Fault::Nonsense(text)) => {
            return ([(header::CONTENT_TYPE, "application/json")], text).into_response();
        }
        None => {}
    }
    let query = Query::of(&uri);
    let items = match source {
        Source::Resource => metrics.pods(rest, &query),
        Source::Custom => metrics.custom(version, rest, &query),
        Source::External => metrics.external(rest, &query),
    };
    let kind = match source {
        Source::Resource => "PodMetricsList",
        Source::Custom => "MetricValueList",
        Source::External => "ExternalMetricValueList",
    };
    match items {
        Some(items) => as_json(&json!({"kind": kind, "apiVersion": format!("{group}/{version}"),
            "metadata": {}, "items": items})),
        None => {
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "reason": "NotFound", "code": 404,
                "message": "the server could not find the metric for the object"});
            (StatusCode::NOT_FOUND, as_json(&status)).into_response()
        }
    }
}

fn unescape(segment: &str) -> String {
    let text = format!("x={segment}");
    form_urlencoded::parse(text.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

fn as_json(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn resources(source: Source, group: &str, version: &str) -> Value {
    let resource = |name: &str, kind: &str, verbs: &[&str]| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs});
    let list = match source {
        Source::Resource => vec![resource("pods", "PodMetrics", &["get", "list"])],
        Source::Custom => vec![resource("pods/rps", "MetricValueList", &["get"])],
        Source::External => vec![resource("queue", "ExternalMetricValueList", &["get"])],
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": format!("{group}/{version}"), "resources": list})
}

/// What a question is narrowed to.
struct Query {
    labels: Option<Selector>,
}

impl Query {
    fn of(uri: &Uri) -> Query {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let mut texts = pairs.filter(|(key, _)| key == "labelSelector").map(|(_, text)| text);
        Query { labels: texts.next().and_then(|text| Selector::parse(&text).ok()) }
    }

    fn takes(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.labels.as_ref().is_none_or(|selector| selector.matches(label))
    }
}

impl Metrics {
    /// What each running pod of the application uses, in thousandths.
    fn used(&self, row: &Row, what: &str, all: &[Row]) -> Option<i64> {
        let app = row.labels.get("app")?;
        let key = (row.namespace.clone(), app.clone(), what.to_owned());
        let same =
            |other: &&Row| other.namespace == row.namespace && other.labels.get("app") == Some(app);
        match *self.values.lock().usage.get(&key)? {
            Usage::Each(amount) => Some(amount),
            Usage::Total(amount) => {
                let count = i64::try_from(all.iter().filter(same).count()).unwrap_or(i64::MAX);
                Some(amount / count.max(1))
            }
            Usage::First(amount) => {
                let first = all.iter().filter(same).map(|other| &other.name).min();
                Some(if first == Some(&row.name) { amount } else { 0 })
            }
        }
    }

    fn pods(&self, rest: &[&str], query: &Query) -> Option<Vec<Value>> {
        let namespace = match rest {
            ["namespaces", namespace, "pods"] => Some(*namespace),
            ["pods"] => None,
            _ => return None,
        };
        let rows = self.kubelet.running(namespace);
        let wanted = rows.iter().filter(|row| query.takes(&row.labels));
        Some(wanted.filter_map(|row| self.pod(row, &rows)).collect())
    }

    /// A pod's metrics; nothing while nothing is known of it.
    fn pod(&self, row: &Row, all: &[Row]) -> Option<Value> {
        let shares = i64::try_from(row.containers.len()).unwrap_or(1).max(1);
        let of_container = |what: &str, container: &str| {
            let own = self.used(row, &format!("{what}/{container}"), all);
            own.or_else(|| Some(self.used(row, what, all)? / shares))
        };
        let container = |name: &String| {
            let mut usage = serde_json::Map::new();
            for what in ["cpu", "memory"] {
                if let Some(amount) = of_container(what, name) {
                    usage.insert(what.to_owned(), json!(format!("{amount}m")));
                }
            }
            (!usage.is_empty()).then(|| json!({"name": name, "usage": usage}))
        };
        let containers: Vec<Value> = row.containers.iter().filter_map(container).collect();
        (!containers.is_empty()).then(|| {
            json!({"metadata": {"name": row.name, "namespace": row.namespace, "labels": row.labels},
                "timestamp": now(), "window": "1s", "containers": containers})
        })
    }

    fn custom(&self, version: &str, rest: &[&str], query: &Query) -> Option<Vec<Value>> {
        let item = |described: Value, metric: &str, amount: i64| {
            let value = format!("{amount}m");
            if version == "v1beta1" {
                json!({"describedObject": described, "metricName": metric, "timestamp": now(),
                    "value": value})
            } else {
                json!({"describedObject": described, "timestamp": now(), "value": value,
                    "metric": {"name": metric}})
            }
        };
        match rest {
            ["namespaces", namespace, "pods", "*", metric] => {
                let rows = self.kubelet.running(Some(namespace));
                let value = |row: &Row| {
                    let amount = self.used(row, metric, &rows)?;
                    let pod = json!({"kind": "Pod", "apiVersion": "/v1", "name": row.name,
                        "namespace": namespace});
                    Some(item(pod, metric, amount))
                };
                let wanted = rows.iter().filter(|row| query.takes(&row.labels));
                let values: Vec<Value> = wanted.filter_map(value).collect();
                (!values.is_empty()).then_some(values)
            }
            ["namespaces", namespace, object @ .., metric] => {
                let object = object.join("/");
                let key = ((*namespace).to_owned(), object.clone(), (*metric).to_owned());
                let amount = *self.values.lock().objects.get(&key)?;
                let name = object.rsplit('/').next().unwrap_or_default();
                let described = json!({"kind": "Object", "name": name, "namespace": namespace});
                Some(vec![item(described, metric, amount)])
            }
            _ => None,
        }
    }

    fn external(&self, rest: &[&str], query: &Query) -> Option<Vec<Value>> {
        let ["namespaces", namespace, metric] = rest else { return None };
        let values = self.values.lock();
        let key = ((*namespace).to_owned(), (*metric).to_owned());
        let series = values.external.get(&key)?.iter();
        let series = series.filter(|(labels, _)| query.takes(labels));
        let value = |(labels, amount): &(BTreeMap<String, String>, i64)| {
            json!({"metricName": metric, "metricLabels": labels, "timestamp": now(),
                "value": format!("{amount}m")})
        };
        Some(series.map(value).collect())
    }
}

fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
