//! ScaledJob: creates Jobs by event sources.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

use super::trigger::Trigger;
use super::{API_VERSION, Condition, MAX_REPLICAS, POLLING_INTERVAL_SECONDS, TriggerActivity};
use crate::meta::{LeanMeta, ObjectMeta};
use crate::serde_form::{list, null_default};
use crate::time::Timestamp;

/// The kind of these objects.
pub const KIND: &str = "ScaledJob";
/// Their name in paths.
pub const PLURAL: &str = "scaledjobs";
/// Their name in errors, and that of their CustomResourceDefinition.
pub const RESOURCE: &str = "scaledjobs.keda.sh";
/// How many finished Jobs of each kind are kept, where the spec does not say.
pub const HISTORY_LIMIT: i32 = 100;

/// Creates Jobs by event sources.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaledJob {
    /// `ScaledJob`
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
    pub spec: ScaledJobSpec,
    /// What the controller last found and did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ScaledJobStatus>,
}

/// An object that is read in little time and kept in little space: see [`LeanMeta`].
#[derive(Debug, Deserialize)]
#[serde(from = "LeanWire")]
pub struct Lean(pub ScaledJob);

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeanWire {
    #[serde(deserialize_with = "null_default")]
    metadata: LeanMeta,
    #[serde(deserialize_with = "null_default")]
    spec: ScaledJobSpec,
    status: Option<ScaledJobStatus>,
}

impl From<LeanWire> for Lean {
    fn from(LeanWire { metadata, spec, status }: LeanWire) -> Lean {
        let metadata = metadata.into();
        let (kind, api_version) = (KIND.to_owned(), API_VERSION.to_owned());
        Lean(ScaledJob { kind, api_version, metadata, spec, status })
    }
}

/// Which Jobs are created, how many and by which triggers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaledJobSpec {
    /// The spec of each Job, as it came.
    pub job_target_ref: Value,
    /// How often triggers are polled; 30 seconds by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling_interval: Option<i32>,
    /// How many Jobs that succeeded are kept; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<i32>,
    /// How many Jobs that failed are kept; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<i32>,
    /// The older form of the rollout's strategy, which goes before it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rollout_strategy: String,
    /// What becomes of Jobs of an older generation.
    #[serde(deserialize_with = "null_default")]
    pub rollout: Rollout,
    /// The container whose environment settings refer to; the first by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub env_source_container_name: String,
    /// How many unfinished Jobs there always are; 0 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replica_count: Option<i32>,
    /// The most unfinished Jobs; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replica_count: Option<i32>,
    /// How many Jobs a load asks for.
    #[serde(deserialize_with = "null_default")]
    pub scaling_strategy: ScalingStrategy,
    /// What the load is read from.
    #[serde(deserialize_with = "list")]
    pub triggers: Vec<Trigger>,
}

/// What becomes of Jobs of an older generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollout {
    /// `gradual` leaves them; `immediate`, which is the default, deletes them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// `foreground` or `background`, which is the default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub propagation_policy: String,
}

/// How many Jobs a load asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingStrategy {
    /// `default`, `custom`, `accurate` or `eager`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub strategy: String,
    /// What `custom` takes off the length of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custom_scaling_queue_length_deduction: Option<i32>,
    /// The share of running Jobs that `custom` takes off; a number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub custom_scaling_running_job_percentage: String,
    /// A Job is pending until a pod of it has all of these conditions.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub pending_pod_conditions: Vec<String>,
    /// `max`, which is the default, `min`, `avg` or `sum`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub multiple_scalers_calculation: String,
}

/// What the controller last found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaledJobStatus {
    /// When a trigger was last active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active_time: Option<Timestamp>,
    /// In the order in which they appeared.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub conditions: Vec<Condition>,
    /// Of older versions; nothing sets it any more.
    #[serde(rename = "Paused", skip_serializing_if = "String::is_empty")]
    pub paused: String,
    /// The distinct types of triggers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggers_types: Option<String>,
    /// The distinct names of what triggers refer to for credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentications_types: Option<String>,
    /// The metrics of triggers.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub external_metric_names: Vec<String>,
    /// Which metrics are active.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_default")]
    pub triggers_activity: BTreeMap<String, TriggerActivity>,
}

impl ScaledJobSpec {
    /// How often triggers are polled.
    #[must_use]
    pub fn polling_interval_seconds(&self) -> i32 {
        self.polling_interval.unwrap_or(POLLING_INTERVAL_SECONDS).max(1)
    }

    /// How many unfinished Jobs there always are: never more than the maximum.
    #[must_use]
    pub fn min(&self) -> i32 {
        let min = self.min_replica_count.unwrap_or(0);
        self.max_replica_count.map_or(min, |max| min.min(max))
    }

    /// How many Jobs there may be beside those. A maximum that is not set is all of it, and a minimum
    /// above the maximum leaves the whole of it.
    #[must_use]
    pub fn max_beside_min(&self) -> i32 {
        match (self.max_replica_count, self.min_replica_count) {
            (None, _) => MAX_REPLICAS,
            (Some(max), Some(min)) if min > max => max,
            (Some(max), _) => max.saturating_sub(self.min()),
        }
    }

    /// Whether Jobs of an older generation are left alone.
    #[must_use]
    pub fn leaves_older_jobs(&self) -> bool {
        let older = &self.rollout_strategy;
        let strategy = if older.is_empty() { &self.rollout.strategy } else { older };
        strategy == "gradual"
    }
}
