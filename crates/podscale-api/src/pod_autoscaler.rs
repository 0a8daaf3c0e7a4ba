//! `podscale.dev/v1alpha1` PodAutoscaler: Podscale's own kind of autoscaler. The spec of an HPA is valid in
//! it as it stands.
//!
//! Its fields are described once, in `fields`; [`crd`] and [`reference()`] make the schema and the
//! documentation from that.

use serde::{Deserialize, Serialize};

use crate::meta::{LeanMeta, ObjectMeta};
use crate::serde_form::null_default;

pub mod adopt;
pub mod calendar;
pub mod crd;
pub mod default;
mod fields;
pub mod hpa_form;
mod reference;
mod schema;
pub mod spec;
pub mod status;
#[cfg(test)]
mod tests;
pub mod validate;

pub use reference::reference;
pub use spec::PodAutoscalerSpec;
pub use status::PodAutoscalerStatus;

/// The group of these types.
pub const GROUP: &str = "podscale.dev";
/// Their version.
pub const VERSION: &str = "v1alpha1";
/// Group and version.
pub const API_VERSION: &str = "podscale.dev/v1alpha1";
/// The kind of these objects.
pub const KIND: &str = "PodAutoscaler";
/// Their name in paths.
pub const PLURAL: &str = "podautoscalers";
/// Their name in errors, and that of their CustomResourceDefinition.
pub const RESOURCE: &str = "podautoscalers.podscale.dev";

/// Scales a workload by metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodAutoscaler {
    /// `PodAutoscaler`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `podscale.dev/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name and so on.
    #[serde(deserialize_with = "null_default")]
    pub metadata: ObjectMeta,
    /// What is wanted.
    #[serde(deserialize_with = "null_default")]
    pub spec: PodAutoscalerSpec,
    /// What the controller last found and did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PodAutoscalerStatus>,
}

/// An autoscaler that is read in little time and kept in little space: see [`LeanMeta`].
#[derive(Debug, Deserialize)]
#[serde(from = "LeanWire")]
pub struct Lean(pub PodAutoscaler);

#[derive(Default, Deserialize)]
#[serde(default)]
struct LeanWire {
    #[serde(deserialize_with = "null_default")]
    metadata: LeanMeta,
    #[serde(deserialize_with = "null_default")]
    spec: PodAutoscalerSpec,
    status: Option<PodAutoscalerStatus>,
}

impl From<LeanWire> for Lean {
    fn from(LeanWire { metadata, spec, status }: LeanWire) -> Lean {
        let metadata = metadata.into();
        let (kind, api_version) = (KIND.to_owned(), API_VERSION.to_owned());
        Lean(PodAutoscaler { kind, api_version, metadata, spec, status })
    }
}
