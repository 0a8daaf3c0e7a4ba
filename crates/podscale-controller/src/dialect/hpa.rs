//! `autoscaling/v2` HorizontalPodAutoscaler: Kubernetes' own autoscaler object.

use super::{
    Dialect, Key, Kind, Managed, NewStatus, WireObject, keep_status_writers, set_conflict,
};
use podscale_api::hpa::v2::{
    API_VERSION, HorizontalPodAutoscaler, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, KIND, Lean,
};
use podscale_api::meta::ObjectMeta;
use podscale_api::translate;
use podscale_client::watch::{Presence, Watched};
use podscale_core::Status;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The kind.
pub static HPA: Kind = Kind {
    name: KIND,
    api_version: API_VERSION,
    plural: "horizontalpodautoscalers",
    resource: "horizontalpodautoscalers.autoscaling",
    presence: Presence::Always,
};

/// The dialect.
pub struct Hpa;

/// An object as lists and watches bring it, without the fields that each writer manages.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Wire(Lean);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.0.metadata.resource_version)
    }
}

impl Dialect for Hpa {
    type Wire = Wire;

    const KIND: &'static Kind = &HPA;

    fn managed(Wire(Lean(hpa)): Wire) -> Managed {
        managed(hpa)
    }
}

/// What an object means.
#[must_use]
pub fn managed(mut hpa: HorizontalPodAutoscaler) -> Managed {
    keep_status_writers(&mut hpa.metadata);
    let model = Arc::new(translate::autoscaler(&hpa));
    let key =
        Key { namespace: Arc::clone(&model.namespace), name: Arc::clone(&model.name), kind: &HPA };
    Managed { key, model, wire: Arc::new(hpa) }
}

impl WireObject for HorizontalPodAutoscaler {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Status {
        self.status.as_ref().map(translate::status::from_wire).unwrap_or_default()
    }

    fn with_status(&self, status: NewStatus<'_>) -> Box<dyn WireObject> {
        let mut new = match status {
            NewStatus::Decided { decision, snapshot } => {
                translate::status::to_wire(decision, snapshot, self)
            }
            NewStatus::Conflict { .. } => self.status.clone().unwrap_or_default(),
        };
        set_conflict(&mut new.conditions, &status);
        Box::new(HorizontalPodAutoscaler { status: Some(new), ..self.clone() })
    }

    fn with_status_of(&self, other: &dyn WireObject) -> Box<dyn WireObject> {
        let status = other.as_hpa().status.clone();
        Box::new(HorizontalPodAutoscaler { status, ..self.clone() })
    }

    fn to_body(&self) -> serde_json::Result<Vec<u8>> {
        let HorizontalPodAutoscaler { metadata, spec, status, .. } = self;
        serde_json::to_vec(&Body { kind: KIND, api_version: API_VERSION, metadata, spec, status })
    }

    fn set_resource_version(&mut self, version: String) {
        self.metadata.resource_version = version;
    }

    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler> {
        Cow::Borrowed(self)
    }
}

/// An object as it is sent; those of a list do not say themselves what they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: &'a ObjectMeta,
    spec: &'a HorizontalPodAutoscalerSpec,
    status: &'a Option<HorizontalPodAutoscalerStatus>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{CONFLICT_CONDITION, CONFLICT_REASON};
    use podscale_core::Time;

    #[test]
    fn a_status_says_that_there_is_a_conflict_until_it_is_decided_again() {
        let hpa: HorizontalPodAutoscaler = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web", "namespace": "shop", "resourceVersion": "7"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
            "status": {"currentReplicas": 2, "desiredReplicas": 2},
        }))
        .expect("an autoscaler");
        let conflict = |message, now| NewStatus::Conflict {
            reason: CONFLICT_REASON,
            message,
            replicas: None,
            now: Time(now),
        };
        let mut said = hpa.with_status(conflict("why", 0));
        said.set_resource_version("8".to_owned());
        let body: serde_json::Value =
            serde_json::from_slice(&said.to_body().expect("JSON")).expect("JSON");
        assert_eq!(body["metadata"]["resourceVersion"], "8");
        assert_eq!(body["kind"], "HorizontalPodAutoscaler");
        let condition = &body["status"]["conditions"][0];
        assert_eq!(
            (&condition["type"], &condition["message"]),
            (&CONFLICT_CONDITION.into(), &"why".into())
        );
        assert_eq!(body["status"]["currentReplicas"], 2);
        let again = said.with_status(conflict("still", 1));
        assert_eq!(again.status().conditions.len(), 1, "it is said once");
    }
}
