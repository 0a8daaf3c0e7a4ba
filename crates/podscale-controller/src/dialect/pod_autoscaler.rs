//! `podscale.dev/v1alpha1` PodAutoscaler: Podscale's own kind of autoscaler objects.

use super::resolver::{Inbox, Measures, Resolvable, Resolver, shared};
use super::{
    AnyDialect, CONFLICT_CONDITION, IsManaged, Key, Kind, Managed, NewStatus, SizeChange, Upkeep,
    WARNING_CONDITION, WARNING_REASON, WireObject, keep_status_writers,
};
use crate::settings::{TriggerMode, duration};
use crate::triggers::{OwnerKind, Triggered, Triggers};
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
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
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, Watched, follow};
use podscale_core::{Autoscaler, Decision, Snapshot, Status, Time};
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

/// The dialect. Metrics may be triggers where somebody asks those.
#[derive(Default)]
pub struct PodAutoscalers {
    asked: Option<(Arc<Triggers>, IsManaged)>,
}

impl PodAutoscalers {
    /// Its objects may have these triggers.
    #[must_use]
    pub fn with_triggers(triggers: Arc<Triggers>, is_managed: IsManaged) -> PodAutoscalers {
        PodAutoscalers { asked: Some((triggers, is_managed)) }
    }
}

/// An object as lists and watches bring it, without the fields that each writer manages.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Wire(Lean);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.0.metadata.resource_version)
    }
}

impl AnyDialect for PodAutoscalers {
    fn kind(&self) -> &'static Kind {
        &POD_AUTOSCALER
    }

    fn follow<'a>(
        &'a self,
        client: &'a Client,
        instruments: &'a Instruments,
        mut apply: Box<dyn FnMut(Change<Managed>) + Send + 'a>,
    ) -> BoxFuture<'a, ()> {
        let Kind { resource, presence, .. } = &POD_AUTOSCALER;
        let path = POD_AUTOSCALER.path();
        async move {
            let Some((triggers, is_managed)) = &self.asked else {
                let apply = |change: Change<Wire>| apply(change.map(|Wire(Lean(pa))| managed(pa)));
                return follow(client, &path, resource, *presence, instruments, apply).await;
            };
            let inbox = Inbox::<PodAutoscaler>::default();
            let arrive = |change: Change<Wire>| {
                inbox.put(change.map(|Wire(Lean(mut pa))| {
                    prepare(&mut pa);
                    pa
                }));
            };
            let watching = follow(client, &path, resource, *presence, instruments, arrive);
            let authentications = triggers.follow_authentications(client, instruments);
            let (triggers, is_managed) = (Arc::clone(triggers), Arc::clone(is_managed));
            let mut resolver = Resolver::new(triggers, is_managed, TriggerMode::Direct);
            let resolving = resolver.run(&inbox, &mut *apply);
            tokio::join!(watching, authentications, resolving);
        }
        .boxed()
    }
}

impl Resolvable for PodAutoscaler {
    const KIND: OwnerKind = OwnerKind::PodAutoscaler;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn triggered(&self) -> Triggered {
        self.into()
    }

    fn has_spec_of(&self, other: &PodAutoscaler) -> bool {
        self.spec == other.spec
    }

    fn is_paused(&self) -> bool {
        self.spec.mode.as_deref() == Some("Paused")
    }

    fn managed(
        object: &Arc<PodAutoscaler>,
        metrics: &Arc<Measures>,
        warnings: &Arc<str>,
        _mode: TriggerMode,
        before: Option<&Arc<Autoscaler>>,
    ) -> Managed {
        managed_with(object, metrics.as_ref().as_deref(), warnings, before)
    }
}

/// Drops what nobody asks for, and fills in what the API server would.
fn prepare(pa: &mut PodAutoscaler) {
    keep_status_writers(&mut pa.metadata);
    default_spec(&mut pa.spec);
}

/// What an object means where nobody asks event sources. One whose spec cannot be used is left alone, whatever it says.
#[must_use]
pub fn managed(mut pa: PodAutoscaler) -> Managed {
    prepare(&mut pa);
    let problem = pa.spec.triggers().next().map(|(place, ..)| {
        format!(
            "spec.metrics[{place}].trigger: this controller asks no event sources; run it with --triggers, for which \
             podscale install --triggers gives it the rights"
        )
    });
    let none: &[TriggerMetric] = &[];
    managed_with(&Arc::new(pa), problem.as_ref().map_or(Ok(none), Err), &"".into(), None)
}

/// What an object means, given what its event sources measure, what of their metadata has no effect, and what it meant before.
pub(super) fn managed_with(
    pa: &Arc<PodAutoscaler>,
    measured: Result<&[TriggerMetric], &String>,
    warnings: &Arc<str>,
    before: Option<&Arc<Autoscaler>>,
) -> Managed {
    let measured = measured.map_err(String::as_str);
    let model = shared(translate::checked(pa, measured), before);
    let (namespace, name) = (Arc::clone(&model.namespace), Arc::clone(&model.name));
    let key = Key { namespace, name, kind: &POD_AUTOSCALER };
    let problem = measured.err().map(Into::into);
    let (pa, warnings) = (Arc::clone(pa), Arc::clone(warnings));
    let wire = Object { pa, model: Arc::clone(&model), problem, warnings };
    Managed { key, model, wire: Arc::new(wire) }
}

/// An object together with what it means.
#[derive(Clone, Debug)]
struct Object {
    pa: Arc<PodAutoscaler>,
    model: Arc<Autoscaler>,
    /// What is wrong with its event sources.
    problem: Option<Arc<str>>,
    /// What of their metadata has no effect.
    warnings: Arc<str>,
}

impl Object {
    fn with(&self, status: PodAutoscalerStatus) -> Box<dyn WireObject> {
        let pa = PodAutoscaler { status: Some(status), ..(*self.pa).clone() };
        Box::new(Object { pa: Arc::new(pa), ..self.clone() })
    }

    /// Says what has no effect, as long as there is something.
    fn warn(&self, status: &mut PodAutoscalerStatus, now: Time) {
        if self.warnings.is_empty() {
            status.conditions.retain(|condition| condition.r#type != WARNING_CONDITION);
        } else {
            let (name, message) = ((WARNING_CONDITION, true), self.warnings.to_string());
            status::set_condition(status, &self.pa, name, WARNING_REASON, message, now);
        }
    }

    /// Whether the stored status says something else of what has no effect, or why the spec cannot be used.
    fn has_other_remarks(&self) -> bool {
        let Some(stored) = &self.pa.status else { return false };
        let said = |name: &str, reason: &str| {
            let mut all = stored.conditions.iter();
            let found = all.find(|it| it.r#type == name && it.reason == reason);
            found.map_or("", |condition| &*condition.message)
        };
        let invalid = self.model.invalid().map_or("", |why| &**why);
        said(WARNING_CONDITION, WARNING_REASON) != &*self.warnings
            || said(status::VALID, status::INVALID) != invalid
    }
}

impl WireObject for Object {
    fn metadata(&self) -> &ObjectMeta {
        &self.pa.metadata
    }

    fn status(&self) -> Status {
        let stored = self.pa.status.as_ref();
        stored.map(|stored| status::from_wire(stored, &self.model)).unwrap_or_default()
    }

    fn with_status(&self, new: NewStatus<'_>) -> Box<dyn WireObject> {
        match new {
            NewStatus::Decided { decision, snapshot } => {
                let mut wire = status::to_wire(decision, snapshot, &self.pa);
                wire.conditions.retain(|condition| condition.r#type != CONFLICT_CONDITION);
                self.warn(&mut wire, snapshot.now);
                self.with(wire)
            }
            NewStatus::Conflict { reason, message, replicas, now } => {
                let name = (CONFLICT_CONDITION, reason);
                let (pa, model) = (&self.pa, &self.model);
                self.with(status::in_conflict(pa, model, name, message, replicas, now))
            }
        }
    }

    fn with_status_of(&self, other: &dyn WireObject) -> Box<dyn WireObject> {
        let theirs = other.as_hpa().status.clone().unwrap_or_default();
        self.with(status::with_hpa_form(self.pa.status.as_ref(), &theirs))
    }

    fn to_body(&self) -> serde_json::Result<Vec<u8>> {
        let PodAutoscaler { metadata, spec, status, .. } = &*self.pa;
        serde_json::to_vec(&Body { kind: KIND, api_version: API_VERSION, metadata, spec, status })
    }

    fn set_resource_version(&mut self, version: String) {
        Arc::make_mut(&mut self.pa).metadata.resource_version = version;
    }

    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler> {
        Cow::Owned(hpa_form(&self.pa, Some(&self.model)))
    }

    fn recorded(&self) -> HorizontalPodAutoscaler {
        recorded(&self.pa, &self.model, self.problem.as_deref())
    }

    fn is_status_stale(&self, decision: &Decision, snapshot: &Snapshot<'_>) -> bool {
        status::is_stale(&self.pa, decision, snapshot) || self.has_other_remarks()
    }

    fn is_conflict_stale(&self, decision: &Decision, snapshot: &Snapshot<'_>) -> bool {
        status::is_stale_in_conflict(&self.pa, decision, snapshot)
    }

    fn sync_period(&self) -> Option<Duration> {
        duration(self.pa.spec.sync_period.as_deref()?).ok().filter(|period| *period >= SHORTEST)
    }

    /// `podscale adopt` makes it, stores what the HPA leaves in its status, and then removes the HPA. These are seen by
    /// two watches, so that the HPA may be gone before that status is there.
    fn upkeep(&self) -> Option<Upkeep> {
        let PodAutoscaler { metadata, spec, status, .. } = &*self.pa;
        let awaits = status.is_none() && metadata.annotations.get(ADOPTED).is_some();
        // An HPA has no triggers, and what those of another object mean is not known here.
        let is_plain = spec.triggers().next().is_none();
        (awaits && is_plain).then_some(Upkeep::Read(|value| {
            let Wire(Lean(pa)) = serde_json::from_value(value)?;
            Ok(managed(pa))
        }))
    }

    fn changes_carried_over(&self) -> Vec<SizeChange> {
        let adopted = self.pa.metadata.annotations.get(ADOPTED).is_some();
        let status = self.pa.status.as_ref().filter(|_| adopted);
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
