//! The metrics that the pods of a workload have, to pick one of them for an autoscaler.
//!
//! One pod is read, at the port and path that its annotations name for Prometheus.

use super::answer::Failure;
use super::native;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::Request;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::Client;
use podscale_api::Labels;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_metrics::exposition::families::{Kind, families};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// How long a pod may take.
const POD_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest text of a pod.
const TEXT_LIMIT_BYTES: usize = 8 * 1024 * 1024;
/// How many series one answer has.
const MOST_SERIES: usize = 10_000;
/// How many pods are looked at, and how many of them are asked until one answers.
const MOST_PODS: &str = "100";
const MOST_ASKED: usize = 3;
/// What pods say to Prometheus.
const SCRAPE: &str = "prometheus.io/scrape";
const PORT: &str = "prometheus.io/port";
const PATH: &str = "prometheus.io/path";
const DEFAULT_PATH: &str = "/metrics";

/// A metric and its series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Metric {
    name: String,
    r#type: &'static str,
    help: String,
    metrics: Vec<Series>,
}

/// One series of a metric.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Series {
    labels: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    gauge: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counter: Option<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Number {
    value: f64,
}

/// Reads pods. Clones share connections.
#[derive(Clone)]
pub(super) struct Picker {
    client: Client,
    pods: legacy::Client<HttpConnector, Empty<Bytes>>,
}

#[derive(Deserialize)]
struct Pods {
    #[serde(default)]
    items: Vec<Pod>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: PodMeta,
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodMeta {
    annotations: Labels,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    #[serde(rename = "podIP")]
    pod_ip: String,
}

impl Pod {
    /// Where its metrics are, if it says that there are any.
    fn url(&self) -> Option<String> {
        let annotations = &self.metadata.annotations;
        if self.status.phase != "Running" || annotations.get(SCRAPE) == Some("false") {
            return None;
        }
        let port: u16 = annotations.get(PORT)?.parse().ok()?;
        let ip: IpAddr = self.status.pod_ip.parse().ok()?;
        let path = annotations.get(PATH).filter(|path| path.starts_with('/'));
        let address = SocketAddr::new(ip, port);
        Some(format!("http://{address}{}", path.unwrap_or(DEFAULT_PATH)))
    }
}

impl Picker {
    /// Finds pods with this client.
    pub(super) fn new(client: Client) -> Picker {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(POD_TIMEOUT));
        let pods = legacy::Client::builder(TokioExecutor::new())
            // Seldom is the same pod read twice.
            .pool_max_idle_per_host(0)
            .build(connector);
        Picker { client, pods }
    }

    /// The metrics of a workload; none if its pods name no place for them.
    pub(super) async fn metrics(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Vec<Metric>, Failure> {
        let failed = |why: &dyn std::fmt::Display| {
            Failure::server(format!("list metrics of {resource}/{name} failed {why}"))
        };
        let workload = native::workload(&self.client, resource, namespace, name).await;
        let missing = || Failure::not_found(format!("no found {resource} {name}"));
        let workload = workload.map_err(|error| failed(&error))?.ok_or_else(missing)?;
        let selector = workload.spec.selector.to_selector().map_err(|error| failed(&error))?;
        let pods = self.pods(namespace, &selector.to_string()).await;
        let pods = pods.map_err(|error| failed(&error))?;
        let mut problem = None;
        for url in pods.iter().filter_map(Pod::url).take(MOST_ASKED) {
            match self.read(&url).await {
                Ok(text) => return Ok(metrics(&text)),
                Err(error) => problem = Some(format!("{url}: {error}")),
            }
        }
        problem.map_or(Ok(Vec::new()), |problem| Err(failed(&problem)))
    }

    async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, CallError> {
        let query = query(&[("labelSelector", selector), ("limit", MOST_PODS)]);
        let path = format!("/api/v1/namespaces/{}/pods{query}", segment(namespace));
        let about = About { resource: "pods", name: "" };
        let pods: Pods = call::get(&self.client, &path, about).await?;
        Ok(pods.items)
    }

    async fn read(&self, url: &str) -> Result<String, String> {
        let reading = async {
            let request = Request::get(url).body(Empty::new()).map_err(|e| e.to_string())?;
            let answer = self.pods.request(request).await.map_err(|e| e.to_string())?;
            if !answer.status().is_success() {
                return Err(format!("it answered {}", answer.status()));
            }
            let body = Limited::new(answer.into_body(), TEXT_LIMIT_BYTES).collect().await;
            let body = body.map_err(|error| error.to_string())?.to_bytes();
            String::from_utf8(body.to_vec()).map_err(|error| error.to_string())
        };
        let late = || format!("no answer within {} s", POD_TIMEOUT.as_secs());
        tokio::time::timeout(POD_TIMEOUT, reading).await.unwrap_or_else(|_| Err(late()))
    }
}

/// The metrics of a text that an autoscaler can use: counters, gauges, and those without a type.
fn metrics(text: &str) -> Vec<Metric> {
    let mut left = MOST_SERIES;
    let mut metrics = Vec::new();
    for family in families(text) {
        let (kind, counts) = match family.kind {
            Kind::Counter => ("counter", true),
            Kind::Gauge => ("gauge", false),
            Kind::Untyped => ("untyped", false),
            Kind::Other => continue,
        };
        let finite = family.samples.iter().filter(|sample| sample.value.is_finite());
        let series: Vec<Series> = finite
            .take(left)
            .map(|sample| {
                let number = Some(Number { value: sample.value });
                let (gauge, counter) = if counts { (None, number) } else { (number, None) };
                Series { labels: sample.labels.iter().collect(), gauge, counter }
            })
            .collect();
        left = left.saturating_sub(series.len());
        if !series.is_empty() {
            let help = family.help.into_owned();
            metrics.push(Metric {
                name: family.name.to_owned(),
                r#type: kind,
                help,
                metrics: series,
            });
        }
    }
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metrics_that_can_be_picked_are_listed_with_their_labels() {
        let text = "# HELP qps queries\\nper second\n# TYPE qps gauge\nqps{view=\"a\"} 2\nqps NaN\n\
            # TYPE hits counter\nhits{x=\"1\"} 7\n# TYPE slow histogram\nslow_bucket{le=\"1\"} 3\nbare 1\n";
        let expected = json!([
            {"name": "qps", "type": "gauge", "help": "queries\nper second",
                "metrics": [{"labels": {"view": "a"}, "gauge": {"value": 2.0}}]},
            {"name": "hits", "type": "counter", "help": "",
                "metrics": [{"labels": {"x": "1"}, "counter": {"value": 7.0}}]},
            {"name": "bare", "type": "untyped", "help": "",
                "metrics": [{"labels": {}, "gauge": {"value": 1.0}}]},
        ]);
        assert_eq!(serde_json::to_value(metrics(text)).expect("JSON"), expected);
    }

    #[test]
    fn a_pod_says_where_its_metrics_are() {
        for (annotations, phase, ip, expected) in [
            (json!({PORT: "80"}), "Running", "10.0.0.1", Some("http://10.0.0.1:80/metrics")),
            (json!({PORT: "80", PATH: "/m"}), "Running", "fd00::1", Some("http://[fd00::1]:80/m")),
            (
                json!({PORT: "80", PATH: "@x/"}),
                "Running",
                "10.0.0.1",
                Some("http://10.0.0.1:80/metrics"),
            ),
            (json!({PORT: "80", SCRAPE: "false"}), "Running", "10.0.0.1", None),
            (json!({PORT: "x"}), "Running", "10.0.0.1", None),
            (json!({}), "Running", "10.0.0.1", None),
            (json!({PORT: "80"}), "Pending", "", None),
        ] {
            let pod = json!({"metadata": {"annotations": annotations},
                "status": {"phase": phase, "podIP": ip}});
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            assert_eq!(pod.url().as_deref(), expected);
        }
    }
}
