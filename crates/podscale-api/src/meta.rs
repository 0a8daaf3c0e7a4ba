//! Object metadata as it stands in every API object.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::labels::Labels;
use crate::serde_form::{is_zero, null_default};
use crate::time::Timestamp;

/// The metadata of objects that are written back: what is not named here is kept as it came.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Unique within the namespace and kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The beginning of a name that the server is to complete.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Empty for objects of the cluster as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Unique in the history of the cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Which version of the object this is.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Goes up with every change of the spec.
    #[serde(skip_serializing_if = "is_zero", deserialize_with = "null_default")]
    pub generation: i64,
    /// When the server stored it first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// When it is to be gone, once deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// What selectors look at.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub labels: Labels,
    /// What tools leave on it.
    #[serde(skip_serializing_if = "Labels::is_empty", deserialize_with = "null_default")]
    pub annotations: Labels,
    /// The objects that it belongs to.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "null_default")]
    pub owner_references: Vec<OwnerReference>,
    /// Everything else, as it came.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// An object that another belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// Group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Which object of that name.
    pub uid: String,
    /// Whether the owner manages this object; at most one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether the owner stays until this object is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}
