//! `podscale.dev/v1alpha1` PodAutoscaler: Podscale's own kind of autoscaler objects.

use super::{
    CONFLICT_CONDITION, Dialect, Key, Kind, Managed, NewStatus, SizeChange, Upkeep, WireObject,
    keep_status_writers,
};
use crate::settings::duration;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::ObjectMeta;
use podscale_api::pod_autoscaler::adopt::ADOPTED;
use podscale_api::pod_autoscaler::default::default_spec;
use podscale_api::pod_autoscaler::hpa_form::{hpa_form, recorded};
use podscale_api::pod_autoscaler::status::DecisionStatus;
use podscale_api::pod_autoscaler::{
    API_VERSION, KIND, Lean, PLURAL, PodAutoscaler, PodAutoscalerSpec, PodAutoscalerStatus,
    RESOURCE,
};
use podscale_api::time::Timestamp;
use podscale_api::translate::pod_autoscaler::{self as translate, status};
use podscale_client::watch::{Presence, Watched};
use podscale_core::{Decision, Snapshot, Status};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The kind. Its definition may be missing, come later or go away.
pub static POD_AUTOSCALER: Kind = Kind {
    name: KIND,
    api_version: API_VERSION,
    plural: PLURAL,
    resource: RESOURCE,
    presence: Presence::Optional,
};

/// The dialect.
pub struct PodAutoscalers;

/// An object as lists and watches bring it, without the fields that each writer manages.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Wire(Lean);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.0.metadata.resource_version)
    }
}

impl Dialect for PodAutoscalers {
    type Wire = Wire;

    const KIND: &'static Kind = &POD_AUTOSCALER;

    fn managed(Wire(Lean(pa)): Wire) -> Managed {
        managed(pa)
    }
}

/// What an object means. One whose spec cannot be used is left alone, whatever it says.
#[must_use]
pub fn managed(mut pa: PodAutoscaler) -> Managed {
    keep_status_writers(&mut pa.metadata);
    default_spec(&mut pa.spec);
    let model = Arc::new(translate::checked(&pa));
    let (namespace, name) = (Arc::clone(&model.namespace), Arc::clone(&model.name));
    let key = Key { namespace, name, kind: &POD_AUTOSCALER };
    Managed { key, model, wire: Arc::new(pa) }
}

fn with(pa: &PodAutoscaler, status: PodAutoscalerStatus) -> Box<dyn WireObject> {
    Box::new(PodAutoscaler { status: Some(status), ..pa.clone() })
}

impl WireObject for PodAutoscaler {
    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn status(&self) -> Status {
        self.status.as_ref().map(status::from_wire).unwrap_or_default()
    }

    fn with_status(&self, new: NewStatus<'_>) -> Box<dyn WireObject> {
        match new {
            NewStatus::Decided { decision, snapshot } => {
                let mut wire = status::to_wire(decision, snapshot, self);
                wire.conditions.retain(|condition| condition.r#type != CONFLICT_CONDITION);
                with(self, wire)
            }
            NewStatus::Conflict { reason, message, replicas, now } => {
                let name = (CONFLICT_CONDITION, reason);
                with(self, status::in_conflict(self, name, message, replicas, now))
            }
        }
    }

    fn with_status_of(&self, other: &dyn WireObject) -> Box<dyn WireObject> {
        let theirs = other.as_hpa().status.clone().unwrap_or_default();
        with(self, status::with_hpa_form(self.status.as_ref(), &theirs))
    }

    fn to_body(&self) -> serde_json::Result<Vec<u8>> {
        let PodAutoscaler { metadata, spec, status, .. } = self;
        serde_json::to_vec(&Body { kind: KIND, api_version: API_VERSION, metadata, spec, status })
    }

    fn set_resource_version(&mut self, version: String) {
        self.metadata.resource_version = version;
    }

    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler> {
        Cow::Owned(hpa_form(self))
    }

    fn recorded(&self) -> HorizontalPodAutoscaler {
        recorded(self)
    }

    fn is_status_stale(&self, decision: &Decision, snapshot: &Snapshot<'_>) -> bool {
        status::is_stale(self, decision, snapshot)
    }

    fn is_conflict_stale(&self, decision: &Decision, snapshot: &Snapshot<'_>) -> bool {
        status::is_stale_in_conflict(self, decision, snapshot)
    }

    fn sync_period(&self) -> Option<Duration> {
        duration(self.spec.sync_period.as_deref()?).ok().filter(|period| *period >= SHORTEST)
    }

    /// `podscale adopt` makes it, stores what the HPA leaves in its status, and then removes the HPA. These are seen by
    /// two watches, so that the HPA may be gone before that status is there.
    fn upkeep(&self) -> Option<Upkeep> {
        let awaits = self.status.is_none() && self.metadata.annotations.get(ADOPTED).is_some();
        awaits.then_some(Upkeep::Read(|value| {
            Ok(PodAutoscalers::managed(serde_json::from_value(value)?))
        }))
    }

    fn changes_carried_over(&self) -> Vec<SizeChange> {
        let adopted = self.metadata.annotations.get(ADOPTED).is_some();
        let status = self.status.as_ref().filter(|_| adopted);
        let change = |decision: &DecisionStatus| {
            let DecisionStatus { from, to, time: Timestamp(at), .. } = *decision;
            SizeChange { from, to, at }
        };
        status.iter().flat_map(|status| &status.decisions).map(change).collect()
    }
}

/// A shorter sync period is an error of the spec.
const SHORTEST: Duration = Duration::from_secs(1);

/// An object as it is sent; those of a list do not say themselves what they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: &'a ObjectMeta,
    spec: &'a PodAutoscalerSpec,
    status: &'a Option<PodAutoscalerStatus>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Time;
    use serde_json::{Value, json};

    fn object(spec: Value) -> Managed {
        let mut object = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u",
            "resourceVersion": "7", "generation": 3}, "spec": {"maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        for (name, value) in spec.as_object().expect("fields") {
            object["spec"][name] = value.clone();
        }
        managed(serde_json::from_value(object).expect("an autoscaler"))
    }

    #[test]
    fn a_conflict_is_a_condition_in_the_standard_form() {
        let object = object(json!({}));
        let conflict = |message, now| {
            let (reason, replicas) = ("TargetTaken", Some(4));
            NewStatus::Conflict { reason, message, replicas, now }
        };
        let said = object.wire.with_status(conflict("why", Time(0)));
        let mut said = said.with_status(conflict("still", Time(9_000_000)));
        said.set_resource_version("8".to_owned());
        let body: Value = serde_json::from_slice(&said.to_body().expect("JSON")).expect("JSON");
        assert_eq!(
            (&body["kind"], &body["metadata"]["resourceVersion"]),
            (&json!(KIND), &json!("8"))
        );
        let condition = |name: &str, status: &str| {
            json!({"type": name, "status": status, "reason": "TargetTaken", "message": "still",
                "lastTransitionTime": "1970-01-01T00:00:00Z", "observedGeneration": 3})
        };
        let expected = [condition(CONFLICT_CONDITION, "True"), condition("ScalingActive", "False")];
        let mut status = body["status"].clone();
        assert_eq!(status["conditions"].take(), json!(expected));
        let shown = ["reference", "targets", "minReplicas", "maxReplicas", "currentReplicas"];
        let shown = shown.map(|field| status[field].to_string()).join(" ");
        assert_eq!(shown, "\"Deployment/web\" \"cpu: <unknown>/80%\" 1 3 4");
        assert_eq!(
            (&status["mode"], &status["reason"]),
            (&json!("Conflict"), &json!("TargetTaken"))
        );
    }

    #[test]
    fn what_cannot_be_used_is_left_alone() {
        let good = object(json!({"syncPeriod": "5s"}));
        assert_eq!(good.model.invalid(), None);
        assert_eq!(good.wire.sync_period(), Some(Duration::from_secs(5)));
        let bad = object(json!({"syncPeriod": "5ms", "mode": "DryRun"}));
        assert_eq!(bad.wire.sync_period(), None);
        let expected = "spec.syncPeriod: Invalid value: \"5ms\": must be at least 1s";
        assert_eq!(bad.model.invalid().map(|why| &**why), Some(expected));
    }
}
