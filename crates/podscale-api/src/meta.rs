//! Object metadata as it stands in every API object.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::labels::Labels;
use crate::serde_form::{is_zero, list, null_default};
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
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub owner_references: Vec<OwnerReference>,
    /// Everything else, as it came.
    #[serde(flatten)]
    pub other: Map<String, Value>,
    /// Who wrote when, if the object was read as a [`LeanMeta`].
    #[serde(skip)]
    pub writers: Vec<FieldsWriter>,
}

/// Metadata without the fields that each writer manages, which are most of an object's size and of the
/// work of reading it. An object that is sent without them keeps what the server has.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LeanMeta {
    name: String,
    generate_name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    #[serde(deserialize_with = "null_default")]
    generation: i64,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "null_default")]
    labels: Labels,
    #[serde(deserialize_with = "null_default")]
    annotations: Labels,
    #[serde(deserialize_with = "list")]
    owner_references: Vec<OwnerReference>,
    finalizers: Option<Value>,
    deletion_grace_period_seconds: Option<Value>,
    #[serde(deserialize_with = "list")]
    managed_fields: Vec<FieldsWriter>,
}

impl From<LeanMeta> for ObjectMeta {
    fn from(lean: LeanMeta) -> ObjectMeta {
        let rare = [
            ("finalizers", lean.finalizers),
            ("deletionGracePeriodSeconds", lean.deletion_grace_period_seconds),
        ];
        let rare = rare.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        ObjectMeta {
            name: lean.name,
            generate_name: lean.generate_name,
            namespace: lean.namespace,
            uid: lean.uid,
            resource_version: lean.resource_version,
            generation: lean.generation,
            creation_timestamp: lean.creation_timestamp,
            deletion_timestamp: lean.deletion_timestamp,
            labels: lean.labels,
            annotations: lean.annotations,
            owner_references: lean.owner_references,
            other: rare.collect(),
            writers: lean.managed_fields,
        }
    }
}

/// Somebody who wrote a part of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FieldsWriter {
    /// Its name.
    pub manager: Box<str>,
    /// The part that it wrote, such as `status`; empty for the object itself.
    pub subresource: Box<str>,
    /// When it last did.
    pub time: Box<str>,
    /// Whether the status is among the fields that it wrote.
    #[serde(rename = "fieldsV1", deserialize_with = "has_status")]
    has_status: bool,
}

impl FieldsWriter {
    /// Whether it wrote the status: as a subresource, or with the object where there is none.
    #[must_use]
    pub fn wrote_status(&self) -> bool {
        &*self.subresource == "status" || (self.subresource.is_empty() && self.has_status)
    }
}

/// Of the fields that somebody wrote nothing is kept but whether the status is among them.
fn has_status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Fields {
        #[serde(rename = "f:status")]
        status: Option<IgnoredAny>,
    }
    let fields = Option::<Fields>::deserialize(deserializer)?;
    Ok(fields.is_some_and(|fields| fields.status.is_some()))
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
