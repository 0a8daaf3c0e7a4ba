//! `autoscaling/v1` Scale: the count of a workload, whatever its kind.

use serde::{Deserialize, Serialize};

use crate::meta::ObjectMeta;
use crate::serde_form::{is_zero, null_default};

mod decode;
pub use decode::{SCHEME, ScaleDecodeError, TYPE_META};

/// The scale subresource of a workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Scale {
    /// `Scale`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `autoscaling/v1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The metadata of the workload.
    #[serde(deserialize_with = "null_default")]
    pub metadata: ObjectMeta,
    /// The count that is wanted.
    #[serde(deserialize_with = "null_default")]
    pub spec: ScaleSpec,
    /// The count that is there.
    #[serde(deserialize_with = "null_default")]
    pub status: ScaleStatus,
}

/// The count that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleSpec {
    /// How many pods.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub replicas: i32,
}

/// The count that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ScaleStatus {
    /// How many pods.
    #[serde(deserialize_with = "null_default")]
    pub replicas: i32,
    /// Which pods, as text.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "null_default")]
    pub selector: String,
}
