//! Object metadata as it stands in every API object.

use serde::{Deserialize, Serialize};

use crate::labels::Labels;
use crate::serde_form::{is_zero, list, null_default};
use crate::time::Timestamp;

/// The metadata of objects that are written back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub owner_references: Vec<OwnerReference>,
    /// Who must agree before it goes.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub finalizers: Vec<String>,
    /// How long it may take to go, once deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    /// Who wrote when. Which fields is not read, since that is most of an object's size; so none of
    /// it is ever sent, and the server keeps what it has.
    #[serde(skip_serializing, deserialize_with = "list")]
    pub managed_fields: Vec<FieldsWriter>,
}

/// Somebody who wrote a part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FieldsWriter {
    /// Its name.
    pub manager: Box<str>,
    /// The part that it wrote, such as `status`; empty for the object itself.
    pub subresource: Box<str>,
    /// When it last did.
    pub time: Box<str>,
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
