//! `autoscalers.postmates.com/v1beta1` CHPA: the configurable autoscaler of postmates. Its definition
//! may be ours or the original one, which has no status subresource.

use super::{
    Dialect, Key, Kind, Managed, NewStatus, TARGET_TAKEN, WireObject, condition,
    keep_status_writers, set, set_conflict,
};
use podscale_api::chpa::{API_VERSION, Chpa, KIND, PLURAL, RESOURCE, StatusStored, translate};
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::ObjectMeta;
use podscale_client::watch::{Presence, Watched};
use podscale_core::Status;
use serde::Deserialize;
use std::borrow::Cow;
use std::sync::Arc;

/// The kind.
pub static CHPA: Kind = Kind {
    name: KIND,
    api_version: API_VERSION,
    plural: PLURAL,
    resource: RESOURCE,
    presence: Presence::Optional,
};

/// The condition that says whether its target can be given another size.
const ABLE_TO_SCALE: &str = "AbleToScale";

/// The dialect.
pub struct Chpas;

/// An object as lists and watches bring it, whatever its spec says.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Wire(Chpa);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.metadata.resource_version)
    }
}

impl Dialect for Chpas {
    type Wire = Wire;

    const KIND: &'static Kind = &CHPA;

    fn managed(Wire(chpa): Wire) -> Managed {
        managed(chpa)
    }
}

/// What an object means.
#[must_use]
pub fn managed(mut chpa: Chpa) -> Managed {
    keep_status_writers(&mut chpa.metadata);
    let model = Arc::new(translate::autoscaler(&chpa));
    let key =
        Key { namespace: Arc::clone(&model.namespace), name: Arc::clone(&model.name), kind: &CHPA };
    Managed { key, model, wire: Arc::new(chpa) }
}

impl WireObject for Chpa {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Status {
        translate::stored_status(self)
    }

    fn with_status(&self, status: NewStatus<'_>) -> Box<dyn WireObject> {
        let mut new = match status {
            NewStatus::Decided { decision, snapshot } => {
                translate::decided_status(self, decision, snapshot)
            }
            NewStatus::Conflict { reason, message, replicas, now } => {
                let mut stored = self.status.clone().unwrap_or_default();
                stored.current_replicas = replicas.unwrap_or(stored.current_replicas);
                // The column that shows it is about what has this condition. Where another controller writes the
                // status as well, that one says whether it can scale.
                if reason == TARGET_TAKEN {
                    let able = condition(ABLE_TO_SCALE, "False", (reason, message), now);
                    set(&mut stored.conditions, able);
                }
                stored
            }
        };
        set_conflict(&mut new.conditions, &status);
        Box::new(Chpa { status: Some(new), ..self.clone() })
    }

    fn with_status_of(&self, other: &dyn WireObject) -> Box<dyn WireObject> {
        let status = other.as_hpa().status.clone();
        let status = status.map(|status| translate::status_down(self, status));
        Box::new(Chpa { status, ..self.clone() })
    }

    fn to_body(&self) -> serde_json::Result<Vec<u8>> {
        Chpa::to_body(self, StatusStored::Apart)
    }

    fn to_whole_body(&self) -> serde_json::Result<Option<Vec<u8>>> {
        Chpa::to_body(self, StatusStored::WithObject).map(Some)
    }

    fn set_resource_version(&mut self, version: String) {
        self.metadata.resource_version = version;
    }

    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler> {
        Cow::Owned(translate::as_hpa(self))
    }

    fn recorded(&self) -> HorizontalPodAutoscaler {
        translate::recorded(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CONFLICT_CONDITION, CONFLICT_REASON};
    use super::*;
    use podscale_core::Time;
    use serde_json::{Value, json};

    #[test]
    fn a_conflict_has_the_time_at_which_it_began() {
        let able = json!({"type": ABLE_TO_SCALE, "status": "True", "reason": "ReadyForNewScale",
            "lastTransitionTime": "1970-01-01T00:00:00Z", "message": "m"});
        let chpa = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
            "status": {"currentReplicas": 1, "desiredReplicas": 1, "currentMetrics": null,
                "conditions": [able]}});
        for (reason, scales) in [(CONFLICT_REASON, "True 0"), (TARGET_TAKEN, "False 3")] {
            let chpa: Chpa = serde_json::from_value(chpa.clone()).expect("an autoscaler");
            let conflict = |message, seconds: i64| {
                let (replicas, now) = (Some(4), Time(seconds * 1_000_000));
                NewStatus::Conflict { reason, message, replicas, now }
            };
            let said = chpa.with_status(conflict("why", 3));
            let said = said.with_status(conflict("still", 9));
            let body: Value = serde_json::from_slice(&said.to_body().expect("JSON")).expect("JSON");
            let shown = |name: &str| {
                let all = body["status"]["conditions"].as_array().expect("conditions");
                let condition = all.iter().find(|c| c["type"] == name).expect("a condition");
                let time = condition["lastTransitionTime"].as_str().expect("a time");
                let seconds = time.trim_end_matches('Z').trim_start_matches("1970-01-01T00:00:0");
                format!("{} {seconds}", condition["status"].as_str().unwrap_or_default())
            };
            assert_eq!((&*shown(ABLE_TO_SCALE), &*shown(CONFLICT_CONDITION)), (scales, "True 3"));
            let last = &body["status"]["conditions"][1]["message"];
            assert_eq!(last, "still", "what it says is new");
        }
    }
}
