//! `keda.sh/v1alpha1` ScaledObject: KEDA's kind of autoscaler objects. What its triggers mean depends on other objects,
//! so between the watch and the index stands a [resolver](super::resolver).

mod release;
mod resolved;
#[cfg(test)]
mod tests;

use super::resolver::{Inbox, Resolver, shared};
use super::{
    After, AnyDialect, Beside, CONFLICT_CONDITION, IsManaged, Key, Kind, Managed, NewStatus,
    OwnStatus, Upkeep, WARNING_CONDITION, WARNING_REASON, WireObject,
};
use crate::settings::TriggerMode as Mode;
use crate::triggers::Triggers;
use futures::FutureExt;
use futures::future::BoxFuture;
use kube::Client;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::keda::annotations::{Orders, Pause};
use podscale_api::keda::check::CheckError;
use podscale_api::keda::scaled_object::status::{ScaledObjectStatus, TargetResource};
use podscale_api::keda::scaled_object::{
    KIND, Lean, NAME_LABEL, PLURAL, RESOURCE, ScaledObject, ScaledObjectSpec,
};
use podscale_api::keda::{API_VERSION, Condition, FINALIZER};
use podscale_api::meta::ObjectMeta;
use podscale_api::time::Timestamp;
use podscale_api::translate::scaled_object::own_hpa::{HpaSeen, note_hpa, own_hpa};
use podscale_api::translate::scaled_object::status::{ACTIVE, Passed, get, to_wire};
use podscale_api::translate::scaled_object::{self as translate, TriggerMetric, events};
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, Watched, follow};
use podscale_core::model::Scope;
use podscale_core::status::{self, ConditionStatus, Note};
use podscale_core::{Autoscaler, Status, StatusChange};
use release::finalizers;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// The kind. Its definition may be missing, come later or go away.
pub static SCALED_OBJECT: Kind = Kind {
    name: KIND,
    api_version: API_VERSION,
    plural: PLURAL,
    resource: RESOURCE,
    presence: Presence::Optional,
};

/// How often an HPA is reconciled: more often than triggers are polled by default. A ScaledObject whose target is not
/// idle is one, as long as it is not to be polled more often.
const HPA_PERIOD: Duration = Duration::from_secs(15);
/// The version that HPAs are labelled with.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Why an object that is being deleted is not acted on.
const DELETED: &str = "the ScaledObject is being deleted";
/// The reason of the condition Active of an object that has nothing to do.
const NOT_ACTIVE: &str = "ScalerNotActive";

/// The dialect.
pub struct ScaledObjects {
    triggers: Arc<Triggers>,
    is_managed: IsManaged,
    mode: Mode,
}

impl ScaledObjects {
    /// Its objects have these triggers.
    #[must_use]
    pub fn new(triggers: Arc<Triggers>, is_managed: IsManaged) -> ScaledObjects {
        ScaledObjects { triggers, is_managed, mode: Mode::Direct }
    }

    /// The same with another one who decides.
    #[must_use]
    pub fn in_mode(self, mode: Mode) -> ScaledObjects {
        ScaledObjects { mode, ..self }
    }
}

/// An object as lists and watches bring it, without the fields that each writer manages.
#[derive(Deserialize)]
#[serde(transparent)]
struct Wire(Lean);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.0.metadata.resource_version)
    }
}

impl AnyDialect for ScaledObjects {
    fn kind(&self) -> &'static Kind {
        &SCALED_OBJECT
    }

    fn follow<'a>(
        &'a self,
        client: &'a Client,
        instruments: &'a Instruments,
        mut apply: Box<dyn FnMut(Change<Managed>) + Send + 'a>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let inbox = Inbox::<ScaledObject>::default();
            let Kind { resource, presence, .. } = &SCALED_OBJECT;
            let path = SCALED_OBJECT.path();
            let arrive = |change: Change<Wire>| {
                inbox.put(change.map(|Wire(Lean(mut object))| {
                    super::keep_status_writers(&mut object.metadata);
                    object
                }));
            };
            let watching = follow(client, &path, resource, *presence, instruments, arrive);
            let authentications = self.triggers.follow_authentications(client, instruments);
            let mut resolver =
                Resolver::new(Arc::clone(&self.triggers), Arc::clone(&self.is_managed), self.mode);
            let resolving = resolver.run(&inbox, &mut *apply);
            tokio::join!(watching, authentications, resolving);
        }
        .boxed()
    }
}

/// An object together with what is known of its triggers.
#[derive(Clone, Debug)]
struct Resolved {
    object: Arc<ScaledObject>,
    checked: Result<(), CheckError>,
    model: Arc<Autoscaler>,
    /// What of its triggers' metadata has no effect.
    warnings: Arc<str>,
    mode: Mode,
}

/// What an object means, given what its triggers measure.
pub(super) fn managed(
    object: &Arc<ScaledObject>,
    metrics: &Result<Vec<TriggerMetric>, String>,
    mode: Mode,
) -> Managed {
    managed_with(object, metrics, &"".into(), mode, None)
}

/// The same, given what of its triggers' metadata has no effect, and what it meant before.
fn managed_with(
    object: &Arc<ScaledObject>,
    metrics: &Result<Vec<TriggerMetric>, String>,
    warnings: &Arc<str>,
    mode: Mode,
    before: Option<&Arc<Autoscaler>>,
) -> Managed {
    let mut model = translate::autoscaler(object, metrics);
    if let Some(extensions) = &mut model.extensions {
        if object.metadata.deletion_timestamp.is_some() {
            // It is in nobody's way any more.
            extensions.invalid = Some(DELETED.into());
        }
        if mode == Mode::Hpa {
            extensions.activation.scope = Scope::Activation;
        }
    }
    let model = shared(model, before);
    let (namespace, name) = (Arc::clone(&model.namespace), Arc::clone(&model.name));
    let key = Key { namespace, name, kind: &SCALED_OBJECT };
    let checked = translate::checked(object, metrics);
    let (object, warnings) = (Arc::clone(object), Arc::clone(warnings));
    let wire = Resolved { object, checked, model: Arc::clone(&model), warnings, mode };
    Managed { key, model, wire: Arc::new(wire) }
}

impl Resolved {
    fn with(&self, status: ScaledObjectStatus) -> Resolved {
        let ScaledObject { kind, api_version, metadata, spec, status: _ } = &*self.object;
        let object = ScaledObject {
            kind: kind.clone(),
            api_version: api_version.clone(),
            metadata: metadata.clone(),
            spec: spec.clone(),
            status: Some(status),
        };
        Resolved { object: Arc::new(object), ..self.clone() }
    }

    /// The stored status without what it says of a conflict.
    fn status_without_conflict(&self) -> ScaledObjectStatus {
        let mut status = self.object.status.clone().unwrap_or_default();
        drop_conflict(&mut status);
        status
    }
}

fn drop_conflict(status: &mut ScaledObjectStatus) {
    status.conditions.retain(|condition| condition.r#type != CONFLICT_CONDITION);
}

/// Says what has no effect, as long as there is something.
fn warn(status: &mut ScaledObjectStatus, warnings: &str) {
    status.conditions.retain(|condition| condition.r#type != WARNING_CONDITION);
    if !warnings.is_empty() {
        let [kind, truth, reason] = [WARNING_CONDITION, "True", WARNING_REASON].map(str::to_owned);
        let message = warnings.to_owned();
        status.conditions.push(Condition { r#type: kind, status: truth, reason, message });
    }
}

/// How two statuses differ. When it was last active is refreshed again and again.
fn change(stored: Option<&ScaledObjectStatus>, new: &ScaledObjectStatus) -> StatusChange {
    let Some(stored) = stored else { return StatusChange::Matters };
    if stored == new {
        return StatusChange::None;
    }
    let last_active_time = new.last_active_time;
    let refreshed = ScaledObjectStatus { last_active_time, ..stored.clone() };
    let was_active = stored.last_active_time.is_some();
    if refreshed == *new && was_active { StatusChange::Values } else { StatusChange::Matters }
}

impl WireObject for Resolved {
    fn metadata(&self) -> &ObjectMeta {
        &self.object.metadata
    }

    fn status(&self) -> Status {
        let Some(stored) = &self.object.status else { return Status::default() };
        let conflict = get(stored, CONFLICT_CONDITION).map(|condition| status::Condition {
            kind: Err(CONFLICT_CONDITION.into()),
            status: ConditionStatus::True,
            since: None,
            note: Note::text(condition.reason.clone(), condition.message.as_str()),
        });
        Status {
            last_active: stored.last_active_time.map(|Timestamp(at)| at),
            conditions: conflict.into_iter().collect(),
            ..Status::default()
        }
    }

    fn with_status(&self, new: NewStatus<'_>) -> Box<dyn WireObject> {
        let mut status = self.status_without_conflict();
        if let NewStatus::Conflict { reason, message, .. } = new {
            status.conditions.push(Condition {
                r#type: CONFLICT_CONDITION.to_owned(),
                status: "True".to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
            });
        }
        Box::new(self.with(status))
    }

    fn with_status_of(&self, _other: &dyn WireObject) -> Box<dyn WireObject> {
        Box::new(self.clone())
    }

    fn to_body(&self) -> serde_json::Result<Vec<u8>> {
        let ScaledObject { metadata, spec, status, .. } = &*self.object;
        serde_json::to_vec(&Body { kind: KIND, api_version: API_VERSION, metadata, spec, status })
    }

    fn set_resource_version(&mut self, version: String) {
        Arc::make_mut(&mut self.object).metadata.resource_version = version;
    }

    fn as_hpa(&self) -> Cow<'_, HorizontalPodAutoscaler> {
        Cow::Owned(translate::hpa_form(&self.object, &self.model))
    }

    /// Its polling interval, if that is shorter than an HPA's period or it has nothing to do: to look for something to
    /// do is what the interval is about.
    fn sync_period(&self) -> Option<Duration> {
        let spec = &self.object.spec;
        let seconds = u64::try_from(spec.polling_interval_seconds()).unwrap_or(1);
        let interval = Duration::from_secs(seconds);
        let active = self.object.status.as_ref().and_then(|status| get(status, ACTIVE));
        let rests = active.is_some_and(|active| active.reason == NOT_ACTIVE);
        let is_idle = rests && spec.idle().is_some();
        (is_idle || interval < HPA_PERIOD).then_some(interval)
    }

    fn recorded(&self) -> HorizontalPodAutoscaler {
        translate::recorded(&self.object, &self.model, &self.checked)
    }

    fn after(&self, after: After<'_>) -> Option<OwnStatus<'_>> {
        let kind = self.object.spec.scale_target_ref.kind();
        let target = after.target.map(|target| TargetResource {
            group: target.group.clone(),
            version: target.version.clone(),
            kind: kind.to_owned(),
            resource: target.plural.clone(),
        });
        let After { snapshot, outcome, .. } = after;
        let (object, checked) = (&*self.object, &self.checked);
        let passed = Passed { object, checked, snapshot, outcome, target: target.as_ref() };
        let mut new = to_wire(passed);
        drop_conflict(&mut new);
        let is_kept = |seen: &HpaSeen| is_paused(object) && *seen == HpaSeen::Gone;
        match (self.mode, after.hpa) {
            (Mode::Direct, _) => note_hpa(&mut new, &HpaSeen::Gone),
            (Mode::Hpa, Some(seen)) if !is_kept(seen) => note_hpa(&mut new, seen),
            (Mode::Hpa, _) => {}
        }
        warn(&mut new, &self.warnings);
        // As the API server stores it.
        new.last_active_time =
            new.last_active_time.map(|Timestamp(at)| Timestamp(at.whole_seconds()));
        let events = events::events(passed, &new);
        let change = change(object.status.as_ref(), &new);
        let object = Box::new(move || Box::new(self.with(new)) as Box<dyn WireObject>);
        Some(OwnStatus { object, change, events })
    }

    fn hpa_name(&self) -> Option<String> {
        (self.mode == Mode::Hpa).then(|| self.object.hpa_name())
    }

    /// Under another name there may be one from before. In the other mode nobody has the right to delete it.
    fn beside(&self) -> Option<Beside> {
        if self.mode == Mode::Direct || self.checked.is_err() {
            return None;
        }
        let object = Arc::clone(&self.object);
        let wanted = own_hpa(&object, &self.model, VERSION);
        let known = object.status.as_ref().map(|status| status.hpa_name.clone());
        let is_other = |name: &String| wanted.as_ref().is_none_or(|hpa| hpa.metadata.name != *name);
        let unwanted = known.filter(|name| !name.is_empty() && is_other(name));
        let nothing = wanted.is_none() && unwanted.is_none();
        (!nothing).then(|| Beside { wanted: wanted.map(Box::new), unwanted, object })
    }

    fn upkeep(&self) -> Option<Upkeep> {
        let metadata = &self.object.metadata;
        let is_held = finalizers(metadata).any(|finalizer| finalizer == FINALIZER);
        if metadata.deletion_timestamp.is_some() {
            return Some(self.release(is_held));
        }
        if is_held && metadata.labels.get(NAME_LABEL) == Some(metadata.name.as_str()) {
            return None;
        }
        let mut finalizers: Vec<&str> = finalizers(metadata).collect();
        if !is_held {
            finalizers.push(FINALIZER);
        }
        let (version, name) = (&metadata.resource_version, metadata.name.as_str());
        let patch = json!({"metadata": {"resourceVersion": version, "finalizers": finalizers,
            "labels": {NAME_LABEL: name}}});
        let mut object = (*self.object).clone();
        object.metadata.labels.insert(NAME_LABEL, name);
        object.metadata.other.insert("finalizers".to_owned(), json!(finalizers));
        let object = Box::new(Resolved { object: Arc::new(object), ..self.clone() });
        Some(Upkeep::Prepare { patch, object })
    }
}

fn is_paused(object: &ScaledObject) -> bool {
    Orders::read(&object.metadata.annotations).pause != Pause::No
}

/// An object as it is sent; those of a list do not say themselves what they are.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    kind: &'a str,
    api_version: &'a str,
    metadata: &'a ObjectMeta,
    spec: &'a ScaledObjectSpec,
    status: &'a Option<ScaledObjectStatus>,
}
