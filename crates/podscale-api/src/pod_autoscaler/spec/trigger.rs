//! What a PodAutoscaler says of an event source.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use super::{Metric, metric_type};
use crate::keda::trigger::{AuthenticationRef, Trigger};
use crate::serde_form::null_default;

/// An event source, in the words of KEDA's triggers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerSource {
    /// Which kind of event source it is, such as `redis`.
    pub r#type: String,
    /// Its settings, the target among them.
    #[serde(deserialize_with = "null_default")]
    pub metadata: BTreeMap<String, String>,
    /// Where credentials come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_ref: Option<AuthenticationRef>,
    /// The container whose variables fields that end in `FromEnv` name; the first by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub env_source_container_name: String,
    /// `AverageValue`, which is the default, or `Value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric_type: Option<String>,
    /// Whether it is asked once in each sync period at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub use_cached_metrics: Option<bool>,
}

impl TriggerSource {
    /// The same as a trigger of KEDA's, called by the name of its metric.
    #[must_use]
    pub fn as_trigger(&self, name: Option<&str>) -> Trigger {
        Trigger {
            r#type: self.r#type.clone(),
            name: name.unwrap_or_default().to_owned(),
            use_cached_metrics: self.use_cached_metrics.unwrap_or_default(),
            metadata: self.metadata.clone(),
            authentication_ref: self.authentication_ref.clone(),
            metric_type: self.metric_type.clone().unwrap_or_default(),
        }
    }
}

impl Metric {
    /// Its event source, if its type says that it has one.
    #[must_use]
    pub fn event_source(&self) -> Option<&TriggerSource> {
        self.trigger.as_deref().filter(|_| self.hpa.r#type == metric_type::TRIGGER)
    }
}
