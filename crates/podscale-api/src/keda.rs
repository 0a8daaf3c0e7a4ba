//! `keda.sh/v1alpha1`: ScaledObject, ScaledJob, TriggerAuthentication and ClusterTriggerAuthentication, as
//! KEDA 2.21 has them.

pub mod annotations;
pub mod authentication;
pub mod check;
pub mod formula;
pub mod scaled_job;
pub mod scaled_object;
#[cfg(test)]
mod tests;
pub mod trigger;

pub use authentication::{AuthenticationSpec, ClusterTriggerAuthentication, TriggerAuthentication};
pub use scaled_job::ScaledJob;
pub use scaled_object::ScaledObject;
pub use trigger::Trigger;

use serde::{Deserialize, Serialize};

/// The group of these types.
pub const GROUP: &str = "keda.sh";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// Group and version.
pub const API_VERSION: &str = "keda.sh/v1alpha1";
/// What keeps a deleted object until its controller has cleaned up.
pub const FINALIZER: &str = "finalizer.keda.sh";

/// How often triggers are polled where the spec does not say.
pub const POLLING_INTERVAL_SECONDS: i32 = 30;
/// The most replicas, or Jobs, where the spec does not say.
pub const MAX_REPLICAS: i32 = 100;

/// One aspect of an object's state. These have no times, and a new one has neither reason nor message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Condition {
    /// `Ready`, `Active`, `Fallback`, `Paused` or `HPAActive`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// In one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// In a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Whether a trigger is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerActivity {
    /// Whether it is.
    pub is_active: bool,
}
