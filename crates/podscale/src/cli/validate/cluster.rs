//! Asks a cluster about the autoscalers of files: whether their targets exist and their metrics answer.

use super::autoscaler::Candidate;
use super::report::{Finding, Severity};
use crate::cli::prometheus::{self, PrometheusFailure};
use clap::Args;
use kube::Client;
use podscale_api::LabelSelector;
use podscale_api::hpa::default::cpu_metric;
use podscale_api::hpa::v2::{
    CrossVersionObjectReference, HorizontalPodAutoscaler, MetricIdentifier, MetricSpec, metric_type,
};
use podscale_api::lint::Workload;
use podscale_api::scale::Scale;
use podscale_api::written::Written;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_client::clock::Clock;
use podscale_client::connect::{self, ConnectError};
use podscale_client::discovery::{MapperError, RestMapper};
use podscale_client::instrument::Instruments;
use podscale_controller::metrics::Metrics;
use podscale_controller::source::{Probe, PrometheusServers};
use serde_json::Value;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether to ask a cluster, and which.
#[derive(Debug, Args)]
#[group(id = "live")]
pub(super) struct Arguments {
    /// Also check against the cluster: whether targets exist, metrics are available and pods have requests.
    #[arg(long)]
    cluster: bool,

    /// The kubeconfig; if not given, $KUBECONFIG, ~/.kube/config or the cluster it runs in.
    #[arg(long, value_name = "FILE", requires = "cluster")]
    kubeconfig: Option<PathBuf>,

    /// The kubeconfig context; the current one if not given.
    #[arg(long, value_name = "NAME", requires = "cluster")]
    context: Option<String>,

    /// The namespace of objects that name none; the context's if not given.
    #[arg(long, short, value_name = "NAME", requires = "cluster")]
    namespace: Option<String>,

    #[command(flatten)]
    prometheus: prometheus::Connection,
}

/// What a cluster said.
#[derive(Default)]
pub(super) struct Answers {
    /// The targets, as the cluster has them.
    pub(super) workloads: Vec<Workload>,
    /// What is wrong.
    pub(super) findings: Vec<Finding>,
    /// What was not asked, and why.
    pub(super) notes: Vec<String>,
}

/// Why a cluster cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("cannot ask the cluster: {0}")]
    Call(CallError),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error(transparent)]
    Prometheus(#[from] PrometheusFailure),
}

/// Asks about all autoscalers, if a cluster is to be asked.
pub(super) fn ask(
    arguments: &Arguments,
    candidates: &[Candidate],
) -> Result<Option<Answers>, AskError> {
    if !arguments.cluster {
        return Ok(None);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(AskError::Runtime)?.block_on(ask_all(arguments, candidates)).map(Some)
}

async fn ask_all(arguments: &Arguments, candidates: &[Candidate]) -> Result<Answers, AskError> {
    let instruments: Instruments = Arc::new(Metrics::new());
    let (kubeconfig, context) = (arguments.kubeconfig.as_deref(), arguments.context.as_deref());
    let cluster = connect::connect(kubeconfig, context, None, &instruments).await?;
    let client = cluster.client;
    let namespace =
        arguments.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    let servers = arguments.prometheus.servers()?;
    ask_through(client, namespace, &servers, candidates).await
}

/// Asks about all autoscalers; those that name no namespace are in this one.
pub(super) async fn ask_through(
    client: Client,
    namespace: String,
    servers: &PrometheusServers,
    candidates: &[Candidate],
) -> Result<Answers, AskError> {
    let mapper = RestMapper::new(client.clone(), Clock::wall());
    let live = Live { mapper, client, namespace, servers };
    let mut answers = Answers::default();
    for candidate in candidates {
        if let Some(hpa) = candidate.hpa() {
            live.ask(candidate, hpa, &mut answers).await?;
        }
    }
    Ok(answers)
}

/// A cluster that is asked.
struct Live<'a> {
    client: Client,
    mapper: RestMapper,
    namespace: String,
    servers: &'a PrometheusServers,
}

/// Why something cannot be had: the cluster says so, or does not answer at all.
enum Trouble {
    Said(String),
    Silent(CallError),
}

impl From<CallError> for Trouble {
    fn from(error: CallError) -> Trouble {
        match error {
            CallError::Refused { .. } | CallError::Unreadable(_) => {
                Trouble::Said(error.to_string())
            }
            CallError::Unreachable(_) | CallError::Late(_) => Trouble::Silent(error),
        }
    }
}

impl From<MapperError> for Trouble {
    fn from(error: MapperError) -> Trouble {
        match error {
            MapperError::NoMatch { .. } => Trouble::Said(error.to_string()),
            MapperError::Call(error) => error.into(),
        }
    }
}

impl Live<'_> {
    async fn ask(
        &self,
        candidate: &Candidate,
        hpa: &HorizontalPodAutoscaler,
        answers: &mut Answers,
    ) -> Result<(), AskError> {
        self.queries(candidate, answers).await;
        let mut find = |rule: &'static str, field: &str, problem: String| {
            answers.findings.push(candidate.finding(rule, Severity::Error, field, problem));
        };
        let namespace = match hpa.metadata.namespace.as_str() {
            "" => self.namespace.as_str(),
            given => given,
        };
        let scale = match self.target(hpa, namespace).await {
            Ok((scale, workload)) => {
                answers.workloads.extend(workload);
                scale
            }
            Err(Trouble::Said(problem)) => {
                find("target-not-found", "spec.scaleTargetRef", problem);
                return Ok(());
            }
            Err(Trouble::Silent(error)) => return Err(AskError::Call(error)),
        };
        let form = candidate.form();
        let filled = [cpu_metric(podscale_api::hpa::default::CPU_UTILIZATION)];
        let none = hpa.spec.metrics.is_empty() && form.has_default_metric();
        let metrics = if none { &filled[..] } else { &hpa.spec.metrics };
        // Singlecloud's metrics by name and labels have values only once it has the autoscaler.
        let later = |metric: &MetricSpec| {
            form == Written::Singlecloud && metric.r#type == metric_type::PODS
        };
        for (index, metric) in metrics.iter().enumerate().filter(|(_, metric)| !later(metric)) {
            match self.metric(metric, namespace, &scale).await {
                Ok(()) => {}
                Err(Trouble::Said(problem)) => {
                    find("metric-unavailable", &format!("spec.metrics[{index}]"), problem);
                }
                Err(Trouble::Silent(error)) => return Err(AskError::Call(error)),
            }
        }
        Ok(())
    }

    /// Whether the queries of an autoscaler have values.
    async fn queries(&self, candidate: &Candidate, answers: &mut Answers) {
        for (index, server, query) in candidate.queries() {
            let field = format!("spec.metrics[{index}].prometheus");
            let problem = match self.servers.probe(server, query).await {
                Probe::Value => continue,
                Probe::NotAsked => {
                    let why = match server {
                        None => "--prometheus-url does not say where Prometheus is".to_owned(),
                        Some(server) => format!(
                            "{server} is neither the --prometheus-url nor a --prometheus-allowed-server"
                        ),
                    };
                    answers.notes.push(candidate.note(&field, &format!("not asked: {why}")));
                    continue;
                }
                Probe::NoValue => "Prometheus answers, but the query has no value".to_owned(),
                Probe::Failed(why) => why,
            };
            let rule = "metric-unavailable";
            answers.findings.push(candidate.finding(rule, Severity::Error, &field, problem));
        }
    }

    /// The scale of a target and, if it has a template of pods, the target itself.
    async fn target(
        &self,
        hpa: &HorizontalPodAutoscaler,
        namespace: &str,
    ) -> Result<(Scale, Option<Workload>), Trouble> {
        let target = &hpa.spec.scale_target_ref;
        let resource = self.mapper.of_group(group(target), &target.kind).await?;
        let path = format!("{}/{}", resource.path(namespace), segment(&target.name));
        let qualified = resource.qualified();
        let about = About { resource: &qualified, name: &target.name };
        let scale: Scale = call::get(&self.client, &format!("{path}/scale"), about).await?;
        let object: Value = call::get(&self.client, &path, about).await?;
        let workload = Workload::read(&object).map(|workload| Workload {
            // Beside files it stands where its autoscaler does, and its size is the autoscaler's.
            namespace: hpa.metadata.namespace.clone(),
            replicas: None,
            ..workload
        });
        Ok((scale, workload))
    }

    /// Whether a metric has values.
    async fn metric(
        &self,
        metric: &MetricSpec,
        namespace: &str,
        scale: &Scale,
    ) -> Result<(), Trouble> {
        let in_namespace = format!("namespaces/{}", segment(namespace));
        let pods = scale.status.selector.as_str();
        let (path, about) = match metric.r#type.as_str() {
            metric_type::RESOURCE | metric_type::CONTAINER_RESOURCE => {
                let query = query(&[("labelSelector", pods)]);
                let path = format!("/apis/metrics.k8s.io/v1beta1/{in_namespace}/pods{query}");
                (path, "pods.metrics.k8s.io".to_owned())
            }
            metric_type::PODS => {
                let Some(source) = &metric.pods else { return Ok(()) };
                let series = series(&source.metric)?;
                let query = query(&[("labelSelector", pods), ("metricLabelSelector", &series)]);
                let name = segment(&source.metric.name);
                let path =
                    format!("{}/{in_namespace}/pods/*/{name}{query}", self.custom_metrics().await?);
                (path, "pods.custom.metrics.k8s.io".to_owned())
            }
            metric_type::OBJECT => {
                let Some(source) = &metric.object else { return Ok(()) };
                let object = &source.described_object;
                let query = query(&[("metricLabelSelector", &series(&source.metric)?)]);
                let name = segment(&source.metric.name);
                let of = self.described(object, &in_namespace).await?;
                let path = format!("{}/{of}/{name}{query}", self.custom_metrics().await?);
                (path, format!("{}.custom.metrics.k8s.io", object.kind))
            }
            metric_type::EXTERNAL => {
                let Some(source) = &metric.external else { return Ok(()) };
                let query = query(&[("labelSelector", &series(&source.metric)?)]);
                let name = segment(&source.metric.name);
                let path =
                    format!("/apis/external.metrics.k8s.io/v1beta1/{in_namespace}/{name}{query}");
                (path, format!("{}.external.metrics.k8s.io", source.metric.name))
            }
            _ => return Ok(()),
        };
        let about = About { resource: &about, name: "" };
        let answer: Value = call::get(&self.client, &path, about).await?;
        let values = answer["items"].as_array().map_or(0, Vec::len);
        let of_pods =
            !matches!(metric.r#type.as_str(), metric_type::OBJECT | metric_type::EXTERNAL);
        if values == 0 && (scale.status.replicas > 0 || !of_pods) {
            return Err(Trouble::Said(format!("{} answers, but has no values", about.resource)));
        }
        Ok(())
    }

    /// The path of the custom metrics API in a version that is served.
    async fn custom_metrics(&self) -> Result<String, Trouble> {
        let about = About { resource: "custom.metrics.k8s.io", name: "" };
        let group: Value = call::get(&self.client, "/apis/custom.metrics.k8s.io", about).await?;
        let served = group["versions"].as_array().into_iter().flatten();
        let versions: Vec<&str> = served.filter_map(|one| one["version"].as_str()).collect();
        let version = ["v1beta2", "v1beta1"].into_iter().find(|known| versions.contains(known));
        let version = version.ok_or_else(|| {
            Trouble::Said(format!("no known version of custom.metrics.k8s.io in {versions:?}"))
        })?;
        Ok(format!("/apis/custom.metrics.k8s.io/{version}"))
    }

    /// The path of an object's metrics below the custom metrics API.
    async fn described(
        &self,
        object: &CrossVersionObjectReference,
        in_namespace: &str,
    ) -> Result<String, Trouble> {
        if object.kind == "Namespace" && group(object).is_empty() {
            return Ok(format!("{in_namespace}/metrics"));
        }
        let resource = self.mapper.of_group(group(object), &object.kind).await?;
        let (qualified, name) = (resource.qualified(), segment(&object.name));
        Ok(match resource.namespaced {
            true => format!("{in_namespace}/{qualified}/{name}"),
            false => format!("{qualified}/{name}"),
        })
    }
}

fn group(reference: &CrossVersionObjectReference) -> &str {
    reference.api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Which series of a metric, as a query has it.
fn series(metric: &MetricIdentifier) -> Result<String, Trouble> {
    let selector = metric.selector.as_ref().map(LabelSelector::to_selector).transpose();
    let selector = selector.map_err(|error| Trouble::Said(error.to_string()))?;
    Ok(selector.map(|selector| selector.to_string()).unwrap_or_default())
}
