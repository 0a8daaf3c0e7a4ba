//! Triggers: where the load of a ScaledObject or ScaledJob is read.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::serde_form::null_default;

/// The types of triggers that are metrics of pods, which Kubernetes' own metrics answer.
pub const RESOURCE_TYPES: [&str; 2] = ["cpu", "memory"];
/// The types of triggers whose answers may not be kept from one poll to the next.
const NEVER_CACHED: [&str; 3] = ["cpu", "memory", "cron"];

/// One trigger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trigger {
    /// Which kind of event source it is, such as `prometheus`.
    pub r#type: String,
    /// How formulas call it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Whether what the last poll found also answers questions between polls.
    #[serde(skip_serializing_if = "std::ops::Not::not", deserialize_with = "null_default")]
    pub use_cached_metrics: bool,
    /// The settings of the event source.
    #[serde(deserialize_with = "null_default")]
    pub metadata: BTreeMap<String, String>,
    /// Where credentials come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<AuthenticationRef>,
    /// `AverageValue`, `Value` or `Utilization`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub metric_type: String,
}

/// The object that says where credentials come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthenticationRef {
    /// Its name.
    pub name: String,
    /// `TriggerAuthentication`, which is the default, or `ClusterTriggerAuthentication`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
}

impl AuthenticationRef {
    /// Whether it names a ClusterTriggerAuthentication.
    #[must_use]
    pub fn is_of_cluster(&self) -> bool {
        self.kind == super::authentication::CLUSTER_KIND
    }
}

impl Trigger {
    /// Whether it is a metric of pods, which has no value without any.
    #[must_use]
    pub fn is_resource(&self) -> bool {
        RESOURCE_TYPES.contains(&&*self.r#type)
    }

    /// Whether its answers may be kept from one poll to the next.
    #[must_use]
    pub fn may_be_cached(&self) -> bool {
        !NEVER_CACHED.contains(&&*self.r#type)
    }
}

/// The distinct types of triggers, as a status lists them.
#[must_use]
pub fn types(triggers: &[Trigger]) -> String {
    distinct(triggers.iter().map(|trigger| &*trigger.r#type))
}

/// The distinct names of what triggers refer to for credentials, as a status lists them.
#[must_use]
pub fn authentications(triggers: &[Trigger]) -> String {
    let references = triggers.iter().filter_map(|trigger| trigger.authentication_ref.as_ref());
    distinct(references.map(|reference| &*reference.name))
}

fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in words {
        if !kept.contains(&word) {
            kept.push(word);
        }
    }
    kept.join(",")
}
