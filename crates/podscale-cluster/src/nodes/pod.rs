//! A pod as its node sees it: decoded straight from the watch into the few fields that count.

use jiff::Timestamp;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::Resource;
use podscale_api::time::GoDuration;
use podscale_api::{Labels, Quantity};
use serde::{Deserialize, Deserializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The annotation that makes a pod misbehave.
pub const FAULT: &str = "demo.podscale.dev/fault";
/// The annotation that says how long a pod's containers take to be created.
pub const START_DELAY: &str = "demo.podscale.dev/start-delay";
/// The annotation that says how long a pod takes from its start to readiness.
pub const READINESS_DELAY: &str = "demo.podscale.dev/readiness-delay";
/// The annotation that says how long a pod's containers run until their work is done.
pub const RUN_TIME: &str = "demo.podscale.dev/run-time";

/// How a pod misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Its containers end with an error soon after each start.
    Crash,
    /// It runs but never is ready.
    Unready,
    /// Its node has no metrics of it.
    NoMetrics,
}

impl Fault {
    /// Reads a fault's name; nothing if there is no such fault.
    #[must_use]
    pub fn parse(text: &str) -> Option<Fault> {
        match text {
            "crash" => Some(Fault::Crash),
            "unready" => Some(Fault::Unready),
            "no-metrics" => Some(Fault::NoMetrics),
            _ => None,
        }
    }
}

/// A pod on the wire; what is not listed here is dropped when it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WirePod {
    /// Names, labels, owners and times.
    #[serde(deserialize_with = "lean_metadata")]
    pub metadata: ObjectMeta,
    /// What was asked for.
    #[serde(deserialize_with = "or_default")]
    pub spec: WireSpec,
    /// What was reported of it.
    #[serde(deserialize_with = "or_default")]
    pub status: WireStatus,
}

/// What was asked for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireSpec {
    /// Where it runs.
    pub node_name: Option<String>,
    /// What runs in it.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<WireContainer>,
    /// What happens to containers that ended.
    pub restart_policy: Option<String>,
    /// How long it may take to end.
    pub termination_grace_period_seconds: Option<i64>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireContainer {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it runs.
    #[serde(deserialize_with = "or_default")]
    pub image: String,
    /// What it gets.
    #[serde(deserialize_with = "or_default")]
    pub resources: WireResources,
    /// How readiness is found out.
    pub readiness_probe: Option<WireProbe>,
}

/// What a container gets.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireResources {
    /// What it may use at most.
    #[serde(deserialize_with = "or_default")]
    pub limits: BTreeMap<String, Quantity>,
}

/// How readiness is found out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireProbe {
    /// How long after the start it is first asked.
    pub initial_delay_seconds: Option<u32>,
}

/// What was reported of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireStatus {
    /// Where in its life it is.
    pub phase: Option<String>,
    /// When its node took it.
    pub start_time: Option<Time>,
    /// Its address.
    #[serde(rename = "podIP")]
    pub pod_ip: Option<String>,
    /// Its conditions.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<WireCondition>,
    /// Its containers' state.
    #[serde(deserialize_with = "or_default")]
    pub container_statuses: Vec<WireContainerStatus>,
}

/// A condition of a pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireCondition {
    /// Which.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Since when.
    pub last_transition_time: Option<Time>,
}

/// The state of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireContainerStatus {
    /// How often it was started again.
    pub restart_count: u32,
    /// What it does now.
    #[serde(deserialize_with = "or_default")]
    pub state: WireState,
}

/// What a container does now.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WireState {
    /// It runs.
    pub running: Option<WireRunning>,
}

/// A container that runs.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WireRunning {
    /// Since when.
    pub started_at: Option<Time>,
}

impl Resource for WirePod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeanMetadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
}

/// Reads metadata without its managed fields, which are most of its text.
pub(crate) fn lean_metadata<'de, D: Deserializer<'de>>(source: D) -> Result<ObjectMeta, D::Error> {
    let lean = LeanMetadata::deserialize(source)?;
    Ok(ObjectMeta {
        name: lean.name,
        namespace: lean.namespace,
        uid: lean.uid,
        resource_version: lean.resource_version,
        generation: lean.generation,
        labels: lean.labels,
        annotations: lean.annotations,
        owner_references: lean.owner_references,
        deletion_timestamp: lean.deletion_timestamp,
        deletion_grace_period_seconds: lean.deletion_grace_period_seconds,
        ..ObjectMeta::default()
    })
}

/// Takes an explicit null for the default, as Kubernetes does.
fn or_default<'de, D, T>(source: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

/// A container, as its node knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// Its name.
    pub name: Arc<str>,
    /// What it runs.
    pub image: Arc<str>,
    /// Its CPU limit in thousandths of a core.
    pub cpu_limit_millis: Option<f64>,
    /// Its memory limit.
    pub memory_limit_bytes: Option<f64>,
}

/// What a node knows of a pod that does not change by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// Its identity.
    pub uid: Arc<str>,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Where it runs.
    pub node: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// Kind and name of its controller.
    pub owner: Option<(Box<str>, Box<str>)>,
    /// The generation of what was asked for.
    pub generation: Option<i64>,
    /// What runs in it.
    pub containers: Vec<Container>,
    /// Whether containers that failed are started again.
    pub restarts: bool,
    /// Since when it is to end.
    pub deleted: Option<Timestamp>,
    /// How long it may take to end.
    pub grace: Duration,
    /// How it misbehaves.
    pub fault: Option<Fault>,
    /// How long its containers take to be created, if it says so itself.
    pub start_delay: Option<Duration>,
    /// How long it takes from its start to readiness, if it says so itself.
    pub readiness_delay: Option<Duration>,
    /// Whether its containers end when their work is done, as those of Jobs do.
    pub has_work: bool,
    /// How long that takes, if it says so itself.
    pub run_time: Option<Duration>,
}

impl Facts {
    /// What counts of a pod; nothing if it is on no node or has no identity.
    #[must_use]
    pub fn read(pod: &WirePod) -> Option<Facts> {
        let meta = &pod.metadata;
        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let annotation = |key: &str| meta.annotations.as_ref().and_then(|all| all.get(key));
        let probe_delay = || {
            let probes = pod.spec.containers.iter().filter_map(|c| c.readiness_probe.as_ref());
            let longest = probes.filter_map(|probe| probe.initial_delay_seconds).max();
            longest.map(|seconds| Duration::from_secs(u64::from(seconds)))
        };
        let controller = meta.owner_references.iter().flatten();
        let controller = controller.into_iter().find(|owner| owner.controller == Some(true));
        let run_time = annotation(RUN_TIME).and_then(|text| delay(text));
        let is_of_job = controller.is_some_and(|owner| owner.kind == "Job");
        let may_end = matches!(pod.spec.restart_policy.as_deref(), Some("Never" | "OnFailure"));
        Some(Facts {
            uid: meta.uid.as_deref()?.into(),
            namespace: meta.namespace.as_deref()?.into(),
            name: meta.name.as_deref()?.into(),
            node: pod.spec.node_name.as_deref().filter(|node| !node.is_empty())?.into(),
            labels: meta
                .labels
                .iter()
                .flatten()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect(),
            owner: controller.map(|owner| (owner.kind.as_str().into(), owner.name.as_str().into())),
            generation: meta.generation,
            containers: pod.spec.containers.iter().map(Container::read).collect(),
            restarts: pod.spec.restart_policy.as_deref() != Some("Never"),
            deleted: meta.deletion_timestamp.as_ref().map(|time| time.0),
            grace: meta
                .deletion_grace_period_seconds
                .or(pod.spec.termination_grace_period_seconds)
                .map_or(Duration::from_secs(30), seconds),
            fault: annotation(FAULT).and_then(|text| Fault::parse(text)),
            start_delay: annotation(START_DELAY).and_then(|text| delay(text)),
            readiness_delay: annotation(READINESS_DELAY)
                .and_then(|text| delay(text))
                .or_else(probe_delay),
            has_work: may_end && (is_of_job || run_time.is_some()),
            run_time,
        })
    }
}

/// A delay such as `90s` or `1m30s`; nothing if it is not one, or negative.
fn delay(text: &str) -> Option<Duration> {
    let GoDuration(nanos) = GoDuration::parse(text.trim()).ok()?;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

impl Container {
    fn read(container: &WireContainer) -> Container {
        let limit = |name: &str| container.resources.limits.get(name);
        Container {
            name: container.name.as_str().into(),
            image: container.image.as_str().into(),
            cpu_limit_millis: limit("cpu").map(|cpu| cpu.as_approximate_f64() * 1000.0),
            memory_limit_bytes: limit("memory").map(Quantity::as_approximate_f64),
        }
    }
}
