//! `autoscalers.postmates.com/v1beta1` CHPA, the configurable autoscaler of postmates: a `v2beta1`
//! HorizontalPodAutoscaler with forbidden windows, a limit for scaling up and a tolerance of its own.

pub mod check;
pub mod default;
pub mod translate;

#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hpa::v2::CrossVersionObjectReference;
use crate::hpa::v2beta1::{HorizontalPodAutoscalerStatus, MetricSpec};
use crate::meta::{LeanMeta, ObjectMeta};
use crate::serde_form::{is_zero, list, null_default};

/// The group of these types.
pub const GROUP: &str = "autoscalers.postmates.com";
/// The version of these types.
pub const VERSION: &str = "v1beta1";
/// Group and version of these types.
pub const API_VERSION: &str = "autoscalers.postmates.com/v1beta1";
/// The kind of these objects.
pub const KIND: &str = "CHPA";
/// The name of these objects in paths.
pub const PLURAL: &str = "chpas";
/// The name of these objects in errors, and of their definition.
pub const RESOURCE: &str = "chpas.autoscalers.postmates.com";
/// The only kind of targets.
pub const TARGET_KIND: &str = "Deployment";
/// The API version of every target: the original controller asks for Deployments there, whatever the
/// reference says, and many of that time say `extensions/v1beta1` or nothing.
pub(crate) const TARGET_API_VERSION: &str = "apps/v1";

/// What the controller last found and did, in the form of `autoscaling/v2beta1`.
pub type ChpaStatus = HorizontalPodAutoscalerStatus;

/// One CHPA as the API server has it. Reading one never fails for what its spec or status say: a
/// definition need not check every field, and one object that cannot be read must not hide the others
/// of its list.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Wire")]
pub struct Chpa {
    /// Name and so on.
    pub metadata: ObjectMeta,
    /// The spec as it came, which is how it is written back.
    pub stored_spec: Value,
    /// What the spec says, or why it cannot be read.
    pub spec: Result<ChpaSpec, ReadError>,
    /// What the controller last found and did; what cannot be read counts as absent.
    pub status: Option<ChpaStatus>,
}

/// Why a spec cannot be read: which field is wrong, and how.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct ReadError {
    /// Its path, such as `spec.metrics[0].resource`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

/// What is scaled, between which bounds, by which metrics and how fast. A number that is zero stands
/// for its default, see [`default`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ChpaSpec {
    /// For so long after a change of the size it is not made smaller.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub downscale_forbidden_window_seconds: i32,
    /// For so long after a change of the size it is not made larger.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub upscale_forbidden_window_seconds: i32,
    /// At most so many times the current size is set at once.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub scale_up_limit_factor: f64,
    /// This size may be set at once, whatever the factor says.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub scale_up_limit_minimum: i32,
    /// How far a ratio may be off one before anything moves.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub tolerance: f64,
    /// The Deployment.
    #[serde(deserialize_with = "null_default")]
    pub scale_target_ref: CrossVersionObjectReference,
    /// Never fewer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// Never more than this.
    #[serde(deserialize_with = "null_default")]
    pub max_replicas: i32,
    /// The largest count that any of these asks for is taken.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub metrics: Vec<MetricSpec>,
}

/// The parts of an object, none of which is looked into yet.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    #[serde(deserialize_with = "null_default")]
    metadata: LeanMeta,
    spec: Value,
    status: Value,
}

impl From<Wire> for Chpa {
    fn from(Wire { metadata, spec, status }: Wire) -> Chpa {
        let status = read::<Option<ChpaStatus>>("status", &status).ok().flatten();
        Chpa { status, ..Chpa::new(metadata.into(), spec) }
    }
}

/// Reads one part of an object; `null` is an empty one.
fn read<T: DeserializeOwned + Default>(part: &str, value: &Value) -> Result<T, ReadError> {
    match value {
        Value::Null => return Ok(T::default()),
        Value::Object(_) => {}
        _ => {
            let problem = "must be an object".to_owned();
            return Err(ReadError { field: part.to_owned(), problem });
        }
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let field = match error.path().to_string() {
            path if path == "." => part.to_owned(),
            path => format!("{part}.{path}"),
        };
        ReadError { field, problem: error.inner().to_string() }
    })
}

/// An object as it is sent: those of a list do not say themselves what they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: &'a ObjectMeta,
    spec: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusBody<'a>>,
}

/// A status as it is sent. Definitions want a list where there are no metrics, not `null`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_scale_time: Option<crate::time::Timestamp>,
    current_replicas: i32,
    desired_replicas: i32,
    current_metrics: &'a [crate::hpa::v2beta1::MetricStatus],
    conditions: &'a [crate::hpa::v2::Condition],
}

impl Chpa {
    /// An object with a spec, whatever that says, and no status.
    #[must_use]
    pub fn new(metadata: ObjectMeta, stored_spec: Value) -> Chpa {
        let spec = read("spec", &stored_spec);
        Chpa { metadata, stored_spec, spec, status: None }
    }

    /// The object as JSON, with the spec as it came. [`StatusStored::Apart`] is for the status subresource;
    /// where there is none, the whole object is stored and each write of a status makes a new
    /// generation, so that none can be said to be observed.
    ///
    /// # Errors
    /// It cannot be put into JSON.
    pub fn to_body(&self, stored: StatusStored) -> serde_json::Result<Vec<u8>> {
        let status = self.status.as_ref().map(|status| StatusBody {
            observed_generation: match stored {
                StatusStored::Apart => status.observed_generation,
                StatusStored::WithObject => None,
            },
            last_scale_time: status.last_scale_time,
            current_replicas: status.current_replicas,
            desired_replicas: status.desired_replicas,
            current_metrics: status.current_metrics.as_deref().unwrap_or_default(),
            conditions: &status.conditions,
        });
        let (metadata, spec) = (&self.metadata, &self.stored_spec);
        serde_json::to_vec(&Body { kind: KIND, api_version: API_VERSION, metadata, spec, status })
    }
}

/// How the statuses of a definition's objects are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusStored {
    /// Through the status subresource, as our definition has it.
    Apart,
    /// With the object, as the original definition has it.
    WithObject,
}
