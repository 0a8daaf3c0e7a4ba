//! Between the watch and the index of objects with triggers, of whichever kind: looks up what the triggers of each object
//! refer to, again when that may have changed, and passes on what the object means then.
//!
//! Secrets and ConfigMaps are not watched, so that nobody has to allow listing them: they are read when an object is new
//! or has another spec, when its authentication changes, when its source refuses a poll or does not answer, and every few
//! minutes. Many are looked up at the same time, and one that takes long holds up no other.

mod inbox;
mod lookups;

use super::{IsManaged, Managed};
use crate::settings::TriggerMode as Mode;
use crate::triggers::{
    AuthenticationName, ObjectName, OwnerKind, Reads, Resolution, Triggered, Triggers,
};
pub(super) use inbox::Inbox;
use inbox::{Arrived, OneChange};
use lookups::{DEADLINE, Looked, Lookups, Wanted};
use podscale_api::meta::ObjectMeta;
use podscale_api::translate::pod_autoscaler::remark;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_client::watch::Change;
use podscale_core::Autoscaler;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

/// How often it is looked for objects that should be resolved again.
const TICK: Duration = Duration::from_secs(10);
/// How long what was looked up is used.
const MAX_AGE: Duration = Duration::from_secs(300);
/// How long it is used at least, however often polls are refused.
const MIN_AGE: Duration = Duration::from_secs(10);
/// How long it is used at least while a source does not answer.
const UNANSWERED_AGE: Duration = Duration::from_secs(60);
/// How long a list of all objects waits for those of which something is looked up; the others follow one by one.
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// An object whose meaning depends on what its triggers refer to.
pub(super) trait Resolvable: Send + Sync + 'static {
    /// Its kind.
    const KIND: OwnerKind;

    /// Its metadata.
    fn metadata(&self) -> &ObjectMeta;

    /// Its triggers.
    fn triggered(&self) -> Triggered;

    /// Whether another version of it has the same spec.
    fn has_spec_of(&self, other: &Self) -> bool;

    /// Whether a person has paused it.
    fn is_paused(&self) -> bool;

    /// What it means, given what its triggers measure, what of their metadata has no effect, and what it meant before, which
    /// it [shares](shared).
    fn managed(
        object: &Arc<Self>,
        metrics: &Arc<Measures>,
        warnings: &Arc<str>,
        mode: Mode,
        before: Option<&Arc<Autoscaler>>,
    ) -> Managed;

    /// Which object it is.
    fn owner(&self) -> ObjectName {
        ObjectName::new(self.metadata(), Self::KIND)
    }
}

/// What an object means: most new versions of one mean the same as the one before, and share it.
pub(super) fn shared(model: Autoscaler, before: Option<&Arc<Autoscaler>>) -> Arc<Autoscaler> {
    match before {
        Some(before) if **before == model => Arc::clone(before),
        _ => Arc::new(model),
    }
}

/// What triggers measure, or all that is wrong with them.
pub(super) type Measures = Result<Vec<TriggerMetric>, String>;

/// Passes objects on to the index.
type Apply<'a> = dyn FnMut(Change<Managed>) + Send + 'a;

/// Knows what was resolved.
pub(super) struct Resolver<T> {
    triggers: Arc<Triggers>,
    is_managed: IsManaged,
    mode: Mode,
    known: HashMap<ObjectName, Known<T>>,
    lookups: Lookups<T>,
    /// What an object measures that has no triggers, or none that anybody asks.
    nothing: Arc<Measures>,
    /// Until when a list that has arrived waits to be passed on. It stands for all that comes meanwhile.
    listed: Option<Instant>,
}

/// What is known of one object.
struct Known<T> {
    object: Arc<T>,
    metrics: Arc<Measures>,
    warnings: Arc<str>,
    /// What it means, once it was passed on.
    model: Option<Arc<Autoscaler>>,
    authentications: Arc<BTreeSet<AuthenticationName>>,
    /// Whether other objects have a part in it.
    refers: bool,
    /// Whether it was looked up at all.
    is_managed: bool,
    at: Instant,
}

impl<T> Clone for Known<T> {
    fn clone(&self) -> Known<T> {
        Known {
            object: Arc::clone(&self.object),
            metrics: Arc::clone(&self.metrics),
            warnings: Arc::clone(&self.warnings),
            model: self.model.clone(),
            authentications: Arc::clone(&self.authentications),
            ..*self
        }
    }
}

impl<T: Resolvable> Known<T> {
    fn of(object: Arc<T>, resolution: &mut Resolution, is_managed: bool) -> Known<T> {
        let metrics = std::mem::replace(&mut resolution.metrics, Ok(Vec::new()));
        Known {
            object,
            metrics: Arc::new(metrics),
            warnings: remark(resolution.warnings.join("\n")).into(),
            model: None,
            authentications: Arc::new(std::mem::take(&mut resolution.authentications)),
            refers: resolution.refers,
            is_managed,
            at: Instant::now(),
        }
    }

    fn managed(&self, mode: Mode) -> Managed {
        let (object, metrics, warnings) = (&self.object, &self.metrics, &self.warnings);
        T::managed(object, metrics, warnings, mode, self.model.as_ref())
    }

    /// Whether it should be resolved again, since nobody reports changes of what it refers to.
    fn is_old(&self) -> bool {
        let max_age = if self.metrics.is_ok() { MAX_AGE } else { MIN_AGE };
        self.refers && self.at.elapsed() >= max_age
    }

    fn has_meaning_of(&self, other: &Known<T>) -> bool {
        self.metrics == other.metrics && self.warnings == other.warnings
    }
}

impl<T: Resolvable> Resolver<T> {
    /// Knows nothing yet.
    pub(super) fn new(triggers: Arc<Triggers>, is_managed: IsManaged, mode: Mode) -> Resolver<T> {
        let lookups = Lookups::new(Arc::clone(&triggers));
        let (known, nothing) = (HashMap::new(), Arc::new(Ok(Vec::new())));
        Resolver { triggers, is_managed, mode, known, lookups, nothing, listed: None }
    }

    /// Passes on what arrives, and what is resolved again, for ever.
    pub(super) async fn run(&mut self, inbox: &Inbox<T>, apply: &mut Apply<'_>) {
        self.triggers.authentications_known().await;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let triggers = Arc::clone(&self.triggers);
        loop {
            // Whatever is ready: which one is chosen is left to chance, so that none is forgotten.
            tokio::select! {
                _ = tick.tick() => self.look_again(true),
                () = inbox.arrival() => self.take_in(inbox.take(), apply),
                () = triggers.outdated(T::KIND) => self.look_again(false),
                looked = self.lookups.next() => self.looked(looked, apply),
                () = until(self.listed) => self.pass_on_list(apply),
            }
            if self.lookups.is_empty() {
                self.pass_on_list(apply);
            }
        }
    }

    /// Takes in what the watch brought.
    fn take_in(&mut self, arrived: Arrived<T>, apply: &mut Apply<'_>) {
        let reads = Arc::new(Reads::default());
        if let Some(all) = arrived.all {
            let there: BTreeSet<ObjectName> = all.iter().map(|object| object.owner()).collect();
            let gone = self.known.keys().chain(self.lookups.names());
            let gone: Vec<ObjectName> =
                gone.filter(|name| !there.contains(*name)).cloned().collect();
            gone.iter().for_each(|name| self.forget(name));
            self.listed = Some(Instant::now() + LIST_PATIENCE);
            for object in all {
                self.arrive(object, &reads);
            }
        }
        for (name, change) in arrived.changed {
            match change {
                OneChange::Applied(object) => {
                    if let Some(managed) = self.arrive(object, &reads) {
                        self.pass_on(Change::Applied(managed), apply);
                    }
                }
                OneChange::Deleted(object) => {
                    self.forget(&name);
                    let managed = self.unresolved(&object);
                    self.pass_on(Change::Deleted(managed), apply);
                }
            }
        }
    }

    /// What an object means that has arrived, if that is known: one that has the spec of before means the same. Else it
    /// is looked up, and means what it meant until then.
    fn arrive(&mut self, object: Arc<T>, reads: &Arc<Reads>) -> Option<Managed> {
        let is_managed = (self.is_managed)(&self.unresolved(&object));
        let name = object.owner();
        let known = self.known.get(&name);
        let same = known
            .filter(|it| it.object.has_spec_of(&object) && it.is_managed == is_managed)
            .cloned();
        if let Some(known) = same {
            self.lookups.take_newer(&name, &object);
            return Some(self.keep(Known { object, ..known }));
        }
        let has_triggers = !object.triggered().triggers.is_empty();
        if !is_managed || !has_triggers {
            self.lookups.forget(&name);
            let mut nothing = Resolution::unmanaged();
            let known = Known::of(object, &mut nothing, is_managed);
            match has_triggers {
                true => self.triggers.connect(&name, nothing),
                false => self.triggers.forget(&name),
            }
            return Some(self.keep(known));
        }
        if !self.lookups.take_newer(&name, &object) {
            self.lookups.add(name, Wanted { object, reads: Arc::clone(reads), is_again: false });
        }
        None
    }

    /// What an object means as long as nothing is known of its triggers.
    fn unresolved(&self, object: &Arc<T>) -> Managed {
        T::managed(object, &self.nothing, &"".into(), self.mode, None)
    }

    fn forget(&mut self, name: &ObjectName) {
        self.lookups.forget(name);
        self.known.remove(name);
        self.triggers.forget(name);
    }

    /// Begins to resolve the objects again that should be. A trigger that fails all the time does not have its
    /// credentials read all the time.
    fn look_again(&mut self, is_time: bool) {
        let outdated = self.triggers.take_outdated(T::KIND);
        let is_outdated = |(name, known): &(&ObjectName, &Known<T>)| {
            let age = known.at.elapsed();
            let refused = outdated.objects.contains(*name) && age >= MIN_AGE;
            let unanswered = outdated.unanswered.contains(*name) && age >= UNANSWERED_AGE;
            let changed = !outdated.authentications.is_disjoint(&known.authentications);
            changed || (known.refers && (refused || unanswered)) || (is_time && known.is_old())
        };
        let reads = Arc::new(Reads::default());
        for (name, known) in self.known.iter().filter(is_outdated) {
            let (object, reads) = (Arc::clone(&known.object), Arc::clone(&reads));
            self.lookups.add(name.clone(), Wanted { object, reads, is_again: true });
        }
        // What is being looked up may have been read before the change.
        self.lookups.repeat(&outdated.authentications, &reads);
    }

    /// Takes in what a lookup led to, and passes it on if it is something new.
    fn looked(&mut self, looked: Looked<T>, apply: &mut Apply<'_>) {
        let Looked { name, object, resolution, is_again } = looked;
        let before = self.known.get(&name);
        let before = before.filter(|it| it.object.has_spec_of(&object) && it.is_managed).cloned();
        let worked = before.as_ref().is_some_and(|before| before.metrics.is_ok());
        let is_unsure = resolution.as_ref().is_none_or(|resolution| resolution.is_unsure);
        if let Some(before) = before.clone().filter(|_| worked && is_unsure) {
            // What worked goes on while the API server cannot be asked.
            self.keep(Known { object, at: Instant::now(), ..before });
            return;
        }
        let mut resolution = resolution.unwrap_or_else(|| {
            let seconds = DEADLINE.as_secs();
            let late = format!("what triggers refer to cannot be read within {seconds} s");
            Resolution::failed(late)
        });
        let known = Known::of(object, &mut resolution, true);
        self.triggers.connect(&name, resolution);
        let is_same = before.is_some_and(|before| known.has_meaning_of(&before));
        let managed = self.keep(known);
        if !(is_again && is_same) {
            self.pass_on(Change::Applied(managed), apply);
        }
    }

    /// Keeps what is known of an object; what it means.
    fn keep(&mut self, mut known: Known<T>) -> Managed {
        let name = known.object.owner();
        let before = self.known.get(&name).and_then(|before| before.model.clone());
        known.model = known.model.or(before);
        let managed = known.managed(self.mode);
        known.model = Some(Arc::clone(&managed.model));
        if self.mode == Mode::Hpa && known.is_managed {
            self.triggers.serve(&name, &managed.model);
        }
        self.triggers.note_pause(&name, known.object.is_paused());
        self.known.insert(name, known);
        managed
    }

    /// Passes a change on, unless a list that waits has it.
    fn pass_on(&self, change: Change<Managed>, apply: &mut Apply<'_>) {
        if self.listed.is_none() {
            apply(change);
        }
    }

    /// Passes a list on that waits: all objects of which it is known what they mean.
    fn pass_on_list(&mut self, apply: &mut Apply<'_>) {
        if self.listed.take().is_some() {
            apply(Change::All(self.known.values().map(|known| known.managed(self.mode)).collect()));
        }
    }
}

/// Waits for a moment, if there is one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
