//! An aggregated API server of the tests' own: all metrics APIs, and Gadgets, whose scales are answered
//! as a timeline says. Each namespace has its own values and faults, so that timelines do not disturb
//! each other.

use super::super::aggregation;
use super::super::certificates::Authority;
use super::super::process::free_ports;
use super::change::{Canned, MetricsApi, Samples};
use super::workload::{GADGET_GROUP, Pod};
use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State as Shared;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use kube::Client;
use parking_lot::Mutex;
use podscale_api::selector::Selector;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// The scale of a Gadget.
#[derive(Clone, Debug, Default)]
pub struct Gadget {
    pub replicas: i32,
    pub status_replicas: i32,
    pub selector: Option<String>,
    pub answer_get: Option<Canned>,
    pub answer_put: Option<Canned>,
    pub version: u64,
}

/// What is served in one namespace.
#[derive(Default)]
pub struct Namespace {
    pub pods: BTreeMap<String, Pod>,
    /// By application and metric.
    pub usage: BTreeMap<(String, String), Samples>,
    /// By `resource/name` and metric.
    pub objects: BTreeMap<(String, String), String>,
    pub external: BTreeMap<String, Vec<String>>,
    pub faults: BTreeMap<MetricsApi, Canned>,
    pub gadgets: BTreeMap<String, Gadget>,
}

/// The server of one cluster.
pub struct Backend {
    namespaces: Namespaces,
    serving: AbortHandle,
}

type Namespaces = Arc<Mutex<BTreeMap<String, Namespace>>>;

impl Drop for Backend {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

const GROUPS: [(&str, &str); 5] = [
    ("metrics.k8s.io", "v1beta1"),
    ("custom.metrics.k8s.io", "v1beta2"),
    ("custom.metrics.k8s.io", "v1beta1"),
    ("external.metrics.k8s.io", "v1beta1"),
    (GADGET_GROUP, "v1"),
];

impl Backend {
    /// Begins to serve, and registers all groups with the API server.
    pub async fn start(client: &Client, authority: &Authority) -> Result<Backend> {
        let acceptor = authority.sign("metrics", &[&aggregation::host()])?.acceptor()?;
        let [port] = free_ports()?;
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let namespaces = Namespaces::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&namespaces));
        let serving = tokio::spawn(aggregation::accept(listener, acceptor, router)).abort_handle();
        let backend = Backend { namespaces, serving };
        aggregation::register(client, port, &authority.pem, &GROUPS).await?;
        Ok(backend)
    }

    /// Reads or changes what is served in a namespace.
    pub fn with<T>(&self, namespace: &str, act: impl FnOnce(&mut Namespace) -> T) -> T {
        act(self.namespaces.lock().entry(namespace.to_owned()).or_default())
    }

    pub fn forget(&self, namespace: &str) {
        self.namespaces.lock().remove(namespace);
    }
}

async fn answer(
    Shared(namespaces): Shared<Namespaces>,
    method: Method,
    uri: Uri,
    body: Bytes,
) -> Response {
    let parts: Vec<String> = uri.path().split('/').skip(1).map(unescape).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let ["apis", group, version, rest @ ..] = &parts[..] else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if rest.is_empty() {
        return match discovery(group, version) {
            Some(resources) => as_json(StatusCode::OK, &resources),
            None => StatusCode::NOT_FOUND.into_response(),
        };
    }
    let ["namespaces", namespace, rest @ ..] = rest else {
        // A fault of one namespace must not be passed by, so nobody may list all of them.
        return failure(StatusCode::FORBIDDEN, "Forbidden", "all namespaces at once are forbidden");
    };
    let mut namespaces = namespaces.lock();
    let here = namespaces.entry((*namespace).to_owned()).or_default();
    if *group == GADGET_GROUP {
        return here.gadget(namespace, rest, &method, &body);
    }
    let (api, kind) = match *group {
        "metrics.k8s.io" => (MetricsApi::Resource, "PodMetricsList"),
        "custom.metrics.k8s.io" => (MetricsApi::Custom, "MetricValueList"),
        _ => (MetricsApi::External, "ExternalMetricValueList"),
    };
    if let Some(fault) = here.faults.get(&api) {
        return canned(fault);
    }
    let query = Query::of(&uri);
    let items = match api {
        MetricsApi::Resource => here.resource_metrics(namespace, &query),
        MetricsApi::Custom => here.custom_metrics(namespace, version, rest, &query),
        MetricsApi::External => here.external_metrics(rest, &query),
    };
    match items {
        Some(items) => as_json(
            StatusCode::OK,
            &json!({"kind": kind, "apiVersion": format!("{group}/{version}"), "metadata": {},
                "items": items}),
        ),
        None => failure(
            StatusCode::NOT_FOUND,
            "NotFound",
            "the server could not find the metric for the object",
        ),
    }
}

fn unescape(segment: &str) -> String {
    let text = format!("x={segment}");
    form_urlencoded::parse(text.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

fn as_json(code: StatusCode, value: &Value) -> Response {
    (code, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn failure(code: StatusCode, reason: &str, message: &str) -> Response {
    canned(&Canned::status(code.as_u16(), reason, message))
}

fn canned(answer: &Canned) -> Response {
    let code = StatusCode::from_u16(answer.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let content = if answer.body.starts_with('<') { "text/html" } else { "application/json" };
    (code, [(header::CONTENT_TYPE, content)], answer.body.clone()).into_response()
}

fn discovery(group: &str, version: &str) -> Option<Value> {
    let resource = |name: &str, kind: &str, verbs: &[&str]| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs});
    let list = match group {
        "metrics.k8s.io" => vec![resource("pods", "PodMetrics", &["get", "list"])],
        "custom.metrics.k8s.io" => vec![resource("pods/rps", "MetricValueList", &["get"])],
        "external.metrics.k8s.io" => vec![resource("queue", "ExternalMetricValueList", &["get"])],
        GADGET_GROUP => {
            let mut scale = resource("gadgets/scale", "Scale", &["get", "update"]);
            scale["group"] = json!("autoscaling");
            scale["version"] = json!("v1");
            vec![resource("gadgets", "Gadget", &["get"]), scale]
        }
        _ => return None,
    };
    Some(json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": format!("{group}/{version}"), "resources": list}))
}

/// What a question is narrowed to.
struct Query(Option<Selector>);

impl Query {
    fn of(uri: &Uri) -> Query {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        let mut texts = pairs.filter(|(key, _)| key == "labelSelector").map(|(_, text)| text);
        Query(texts.next().and_then(|text| Selector::parse(&text).ok()))
    }

    fn takes(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = |key: &str| labels.get(key).map(String::as_str);
        self.0.as_ref().is_none_or(|selector| selector.matches(label))
    }
}

impl Namespace {
    fn gadget(
        &mut self,
        namespace: &str,
        rest: &[&str],
        method: &Method,
        body: &Bytes,
    ) -> Response {
        let ["gadgets", name, "scale"] = rest else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let Some(gadget) = self.gadgets.get_mut(*name) else {
            let message = format!("gadgets.{GADGET_GROUP} \"{name}\" not found");
            return failure(StatusCode::NOT_FOUND, "NotFound", &message);
        };
        if *method == Method::PUT {
            if let Some(answer) = &gadget.answer_put {
                return canned(answer);
            }
            let sent: Value = serde_json::from_slice(body).unwrap_or_default();
            if sent["kind"] != "Scale" {
                return failure(StatusCode::BAD_REQUEST, "BadRequest", "this is no Scale");
            }
            // Zero is left out.
            let replicas = sent["spec"]["replicas"].as_i64().unwrap_or(0);
            gadget.replicas = i32::try_from(replicas).unwrap_or_default();
            gadget.version += 1;
        } else if let Some(answer) = &gadget.answer_get {
            return canned(answer);
        }
        as_json(StatusCode::OK, &gadget.scale(namespace, name))
    }

    /// The amount of each pod that a question is about, with the pod's name.
    fn samples(&self, metric: &str) -> impl Iterator<Item = (&String, &Pod, &str, bool)> {
        let mut seen: BTreeMap<&String, usize> = BTreeMap::new();
        self.pods.iter().filter_map(move |(name, pod)| {
            let app = pod.labels.get("app")?;
            let samples = self.usage.get(&(app.clone(), metric.to_owned()))?;
            let number = seen.entry(app).or_default();
            *number += 1;
            let each = samples.each.as_deref()?;
            let amount = match &samples.first {
                Some(first) if *number == 1 => first,
                _ => each,
            };
            (!samples.partial || *number % 2 == 1).then_some((name, pod, amount, samples.stale))
        })
    }

    fn resource_metrics(&self, namespace: &str, query: &Query) -> Option<Vec<Value>> {
        let mut pods: BTreeMap<&String, (&Pod, serde_json::Map<String, Value>, bool)> =
            BTreeMap::new();
        for metric in ["cpu", "memory"] {
            for (name, pod, amount, stale) in self.samples(metric) {
                let entry = pods.entry(name).or_insert_with(|| (pod, Default::default(), stale));
                entry.1.insert(metric.to_owned(), json!(amount));
            }
        }
        let wanted = pods.into_iter().filter(|(_, (pod, _, _))| query.takes(&pod.labels));
        let item = |(name, (pod, usage, stale)): (&String, (&Pod, _, bool))| {
            let containers: Vec<Value> =
                pod.containers.iter().map(|name| json!({"name": name, "usage": usage})).collect();
            json!({"metadata": {"name": name, "namespace": namespace, "labels": pod.labels},
                "timestamp": time(stale), "window": "1s", "containers": containers})
        };
        Some(wanted.map(item).collect())
    }

    fn custom_metrics(
        &self,
        namespace: &str,
        version: &str,
        rest: &[&str],
        query: &Query,
    ) -> Option<Vec<Value>> {
        let item = |described: Value, metric: &str, amount: &str, stale: bool| match version {
            "v1beta1" => json!({"describedObject": described, "metricName": metric,
                "timestamp": time(stale), "value": amount}),
            _ => json!({"describedObject": described, "metric": {"name": metric},
                "timestamp": time(stale), "value": amount}),
        };
        match rest {
            ["pods", "*", metric] => {
                let wanted = self.samples(metric).filter(|(_, pod, _, _)| query.takes(&pod.labels));
                let values: Vec<Value> = wanted
                    .map(|(name, _, amount, stale)| {
                        let pod = json!({"kind": "Pod", "apiVersion": "/v1", "name": name,
                            "namespace": namespace});
                        item(pod, metric, amount, stale)
                    })
                    .collect();
                Some(values)
            }
            [object @ .., metric] => {
                let object = object.join("/");
                let name = object.rsplit('/').next().unwrap_or_default().to_owned();
                let amount = self.objects.get(&(object, (*metric).to_owned()))?;
                let described = json!({"kind": "Object", "name": name, "namespace": namespace});
                Some(vec![item(described, metric, amount, false)])
            }
            [] => None,
        }
    }

    fn external_metrics(&self, rest: &[&str], query: &Query) -> Option<Vec<Value>> {
        let [metric] = rest else { return None };
        let series = self.external.get(*metric)?.iter().enumerate();
        let labelled = series.map(|(number, amount)| {
            let labels = BTreeMap::from([("shard".to_owned(), format!("s{number}"))]);
            (labels, amount)
        });
        let wanted = labelled.filter(|(labels, _)| query.takes(labels));
        let value = |(labels, amount): (BTreeMap<String, String>, &String)| {
            json!({"metricName": metric, "metricLabels": labels, "timestamp": time(false),
                "value": amount})
        };
        Some(wanted.map(value).collect())
    }
}

impl Gadget {
    fn scale(&self, namespace: &str, name: &str) -> Value {
        let mut status = json!({"replicas": self.status_replicas});
        if let Some(selector) = &self.selector {
            status["selector"] = json!(selector);
        }
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": name, "namespace": namespace, "uid": format!("uid-{name}"),
                "resourceVersion": format!("{}", self.version + 1)},
            "spec": {"replicas": self.replicas}, "status": status})
    }
}

fn time(stale: bool) -> String {
    match stale {
        true => "2019-01-01T00:00:00Z".to_owned(),
        false => jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
    }
}
