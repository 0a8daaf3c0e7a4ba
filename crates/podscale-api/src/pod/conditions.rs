//! Of a pod's conditions only `Ready` is kept: a live pod has five and more.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::ser::{SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};

use super::{ConditionStatus, PodPhase, ReadyCondition};
use crate::time::Timestamp;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireCondition {
    r#type: ConditionType,
    #[serde(default)]
    status: ConditionStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_transition_time: Option<Timestamp>,
}

#[derive(Serialize, Deserialize, PartialEq, Eq)]
enum ConditionType {
    Ready,
    #[serde(other)]
    Other,
}

pub(super) fn serialize<S: Serializer>(
    ready: &Option<ReadyCondition>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(Some(usize::from(ready.is_some())))?;
    if let Some(ReadyCondition { status, last_transition_time }) = *ready {
        let r#type = ConditionType::Ready;
        list.serialize_element(&WireCondition { r#type, status, last_transition_time })?;
    }
    list.end()
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ReadyCondition>, D::Error> {
    deserializer.deserialize_any(ConditionsVisitor)
}

struct ConditionsVisitor;

impl<'de> Visitor<'de> for ConditionsVisitor {
    type Value = Option<ReadyCondition>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of conditions")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while let Some(condition) = list.next_element::<WireCondition>()? {
            if condition.r#type == ConditionType::Ready {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                let WireCondition { status, last_transition_time, .. } = condition;
                return Ok(Some(ReadyCondition { status, last_transition_time }));
            }
        }
        Ok(None)
    }
}

/// An empty phase is no phase.
pub(super) fn phase<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<PodPhase>, D::Error> {
    #[derive(Deserialize)]
    enum Wire {
        #[serde(rename = "")]
        Unset,
        Pending,
        Running,
        Succeeded,
        Failed,
        #[serde(other)]
        Unknown,
    }
    Ok(Option::deserialize(deserializer)?.and_then(|phase| match phase {
        Wire::Unset => None,
        Wire::Pending => Some(PodPhase::Pending),
        Wire::Running => Some(PodPhase::Running),
        Wire::Succeeded => Some(PodPhase::Succeeded),
        Wire::Failed => Some(PodPhase::Failed),
        Wire::Unknown => Some(PodPhase::Unknown),
    }))
}

#[cfg(test)]
mod tests {
    use crate::pod::PodStatus;

    #[test]
    fn only_the_first_ready_condition_is_kept() {
        for (given, written) in [
            ("{}", "{}"),
            (r#"{"phase":"","conditions":null}"#, "{}"),
            (r#"{"phase":"Running","conditions":[]}"#, r#"{"phase":"Running"}"#),
            (r#"{"phase":"Odd","conditions":[{"type":"PodScheduled"}]}"#, r#"{"phase":"Unknown"}"#),
            (
                r#"{"conditions":[{"type":"Initialized","status":"True"},
                    {"type":"Ready","status":"False","reason":"r",
                     "lastTransitionTime":"2000-01-01T00:00:00Z"},
                    {"type":"Ready","status":"True"}]}"#,
                r#"{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2000-01-01T00:00:00Z"}]}"#,
            ),
            (
                r#"{"conditions":[{"type":"Ready","status":"Odd"}],"startTime":null}"#,
                r#"{"conditions":[{"type":"Ready","status":"Unknown"}]}"#,
            ),
        ] {
            let status: PodStatus = serde_json::from_str(given).expect(given);
            assert_eq!(serde_json::to_string(&status).expect(given), written);
        }
    }
}
