//! ScaledObject: scales a workload by event sources, to zero and back.

pub mod status;

use serde::{Deserialize, Serialize};

use super::trigger::Trigger;
use super::{API_VERSION, MAX_REPLICAS, POLLING_INTERVAL_SECONDS};
use crate::hpa::v2::HorizontalPodAutoscalerBehavior;
use crate::meta::{LeanMeta, ObjectMeta};
use crate::serde_form::{list, null_default};
pub use status::ScaledObjectStatus;

/// The kind of these objects.
pub const KIND: &str = "ScaledObject";
/// Their name in paths.
pub const PLURAL: &str = "scaledobjects";
/// Their name in errors, and that of their CustomResourceDefinition.
pub const RESOURCE: &str = "scaledobjects.keda.sh";
/// The label that names a ScaledObject, on itself and on its HPA.
pub const NAME_LABEL: &str = "scaledobject.keda.sh/name";
/// How long nothing must be active before the idle size is set, where the spec does not say.
pub const COOLDOWN_SECONDS: i32 = 300;
/// The name of the metric that a formula makes.
pub const COMPOSITE_METRIC: &str = "composite-metric";

/// Scales a workload by event sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaledObject {
    /// `ScaledObject`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `keda.sh/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name and so on.
    #[serde(deserialize_with = "null_default")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "null_default")]
    pub spec: ScaledObjectSpec,
    /// What the controller last found and did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ScaledObjectStatus>,
}

/// An object that is read in little time and kept in little space: see [`LeanMeta`].
#[derive(Debug, Deserialize)]
#[serde(from = "LeanWire")]
pub struct Lean(pub ScaledObject);

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeanWire {
    #[serde(deserialize_with = "null_default")]
    metadata: LeanMeta,
    #[serde(deserialize_with = "null_default")]
    spec: ScaledObjectSpec,
    status: Option<ScaledObjectStatus>,
}

impl From<LeanWire> for Lean {
    fn from(LeanWire { metadata, spec, status }: LeanWire) -> Lean {
        let metadata = metadata.into();
        let (kind, api_version) = (KIND.to_owned(), API_VERSION.to_owned());
        Lean(ScaledObject { kind, api_version, metadata, spec, status })
    }
}

/// What is scaled, between which bounds, by which triggers and how fast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaledObjectSpec {
    /// The workload.
    #[serde(deserialize_with = "null_default")]
    pub scale_target_ref: ScaleTarget,
    /// How often triggers are polled; 30 seconds by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling_interval: Option<i32>,
    /// How long after its creation an object that was never active is left alone; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_cooldown_period: Option<i32>,
    /// How long nothing must be active before the idle size is set; 300 seconds by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_period: Option<i32>,
    /// The size of an idle workload, below the minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_replica_count: Option<i32>,
    /// Never fewer than this; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replica_count: Option<i32>,
    /// Never more than this; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replica_count: Option<i32>,
    /// What few need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advanced: Option<Advanced>,
    /// What the load is read from.
    #[serde(deserialize_with = "list")]
    pub triggers: Vec<Trigger>,
    /// The size while triggers fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Fallback>,
}

/// The workload that is scaled: anything with a scale subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleTarget {
    /// Its name.
    pub name: String,
    /// Its group and version; `apps/v1` by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Its kind; `Deployment` by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The container whose environment settings refer to; the first by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub env_source_container_name: String,
}

/// What few need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Advanced {
    /// The HPA between one and the maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizontal_pod_autoscaler_config: Option<HpaConfig>,
    /// Whether deletion gives the workload the size that it had before.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_default")]
    pub restore_to_original_replica_count: bool,
    /// One metric made of all triggers.
    #[serde(skip_serializing_if = "ScalingModifiers::is_none", deserialize_with = "null_default")]
    pub scaling_modifiers: ScalingModifiers,
}

/// The HPA between one and the maximum.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HpaConfig {
    /// How fast, and how steadily.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
    /// Its name; `keda-hpa-` and that of the object by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// One metric made of all triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingModifiers {
    /// Its value, as an expression over triggers by name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub formula: String,
    /// What the value is compared with.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Above which value it is active; 0 by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub activation_target: String,
    /// `AverageValue`, which is the default, or `Value`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric_type: String,
}

impl ScalingModifiers {
    /// Whether nothing is said.
    fn is_none(&self) -> bool {
        *self == ScalingModifiers::default()
    }
}

/// The size while triggers fail.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fallback {
    /// How many failures in a row are borne.
    #[serde(deserialize_with = "null_default")]
    pub failure_threshold: i32,
    /// The size after that.
    #[serde(deserialize_with = "null_default")]
    pub replicas: i32,
    /// What else counts; one of [`behavior`], `static` by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub behavior: String,
}

/// What counts while triggers fail.
pub mod behavior {
    /// The fallback's replicas.
    pub const STATIC: &str = "static";
    /// The replicas there are.
    pub const CURRENT: &str = "currentReplicas";
    /// The larger of both.
    pub const CURRENT_IF_HIGHER: &str = "currentReplicasIfHigher";
    /// The smaller of both.
    pub const CURRENT_IF_LOWER: &str = "currentReplicasIfLower";
    /// What the formula makes of the triggers that work.
    pub const SCALING_MODIFIERS: &str = "scalingModifiers";
    /// All of them.
    pub const ALL: [&str; 5] =
        [STATIC, CURRENT, CURRENT_IF_HIGHER, CURRENT_IF_LOWER, SCALING_MODIFIERS];
}

impl ScaleTarget {
    /// Its group and version.
    #[must_use]
    pub fn api_version(&self) -> &str {
        if self.api_version.is_empty() { "apps/v1" } else { &self.api_version }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        if self.kind.is_empty() { "Deployment" } else { &self.kind }
    }
}

impl ScaledObjectSpec {
    /// How often triggers are polled.
    #[must_use]
    pub fn polling_interval_seconds(&self) -> i32 {
        self.polling_interval.unwrap_or(POLLING_INTERVAL_SECONDS).max(1)
    }

    /// How long nothing must be active before the idle size is set.
    #[must_use]
    pub fn cooldown_seconds(&self) -> i32 {
        self.cooldown_period.unwrap_or(COOLDOWN_SECONDS).max(0)
    }

    /// The fewest replicas, possibly none.
    #[must_use]
    pub fn min(&self) -> i32 {
        self.min_replica_count.unwrap_or(0)
    }

    /// The fewest replicas of a workload that is not idle.
    #[must_use]
    pub fn min_while_active(&self) -> i32 {
        self.min().max(1)
    }

    /// The most replicas.
    #[must_use]
    pub fn max(&self) -> i32 {
        self.max_replica_count.unwrap_or(MAX_REPLICAS)
    }

    /// The size of an idle workload, if it may be idle. What is measured in pods cannot wake those
    /// that are not there, so with nothing else there is none.
    #[must_use]
    pub fn idle(&self) -> Option<i32> {
        let idle = self.idle_replica_count.or((self.min() == 0).then_some(0));
        idle.filter(|_| !self.is_only_resources())
    }

    /// Whether all triggers are metrics of pods.
    #[must_use]
    pub fn is_only_resources(&self) -> bool {
        self.triggers.iter().all(Trigger::is_resource)
    }

    /// The formula and what goes with it, if any of that is set.
    #[must_use]
    pub fn modifiers(&self) -> Option<&ScalingModifiers> {
        let modifiers = &self.advanced.as_ref()?.scaling_modifiers;
        (!modifiers.is_none()).then_some(modifiers)
    }

    /// The settings of the HPA.
    #[must_use]
    pub fn hpa_config(&self) -> Option<&HpaConfig> {
        self.advanced.as_ref()?.horizontal_pod_autoscaler_config.as_ref()
    }

    /// Whether the polling interval has an influence on the size: without idle sizes, cached answers
    /// and a formula, KEDA leaves asking to the HPA.
    #[must_use]
    pub fn is_polled(&self) -> bool {
        let cached = self.triggers.iter().any(|trigger| trigger.use_cached_metrics);
        self.idle().is_some() || cached || self.modifiers().is_some()
    }
}

impl ScaledObject {
    /// The name of its HPA.
    #[must_use]
    pub fn hpa_name(&self) -> String {
        match self.spec.hpa_config() {
            Some(config) if !config.name.is_empty() => config.name.clone(),
            _ => format!("keda-hpa-{}", self.metadata.name),
        }
    }
}
