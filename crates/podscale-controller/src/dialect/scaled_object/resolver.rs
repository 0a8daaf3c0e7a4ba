//! Between the watch and the index: looks up what the triggers of each object refer to, again when that may have
//! changed, and passes on what the object means then.
//!
//! Secrets and ConfigMaps are not watched, so that nobody has to allow listing them: they are read when an object is new
//! or has another spec, when its authentication changes, when its source refuses a poll, and every few minutes. Many are
//! looked up at the same time, and one that takes long holds up no other.

mod lookups;

use super::inbox::{Arrived, Inbox, OneChange};
use super::{IsManaged, Mode, managed, managed_with};
use crate::dialect::Managed;
use crate::triggers::{AuthenticationName, ObjectName, Reads, Resolution, Triggers};
use lookups::{DEADLINE, Looked, Lookups, Wanted};
use podscale_api::keda::ScaledObject;
use podscale_api::keda::annotations::Orders;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_client::watch::Change;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, sleep_until};

/// How often it is looked for objects that should be resolved again.
const TICK: Duration = Duration::from_secs(10);
/// How long what was looked up is used.
const MAX_AGE: Duration = Duration::from_secs(300);
/// How long it is used at least, however often polls fail.
const MIN_AGE: Duration = Duration::from_secs(10);
/// How long a list of all objects waits for those of which something is looked up; the others follow one by one.
const LIST_PATIENCE: Duration = Duration::from_secs(2);

/// Passes objects on to the index.
type Apply<'a> = dyn FnMut(Change<Managed>) + Send + 'a;

/// Knows what was resolved.
pub(super) struct Resolver {
    triggers: Arc<Triggers>,
    is_managed: IsManaged,
    mode: Mode,
    known: HashMap<ObjectName, Known>,
    lookups: Lookups,
    /// Until when a list that has arrived waits to be passed on. It stands for all that comes meanwhile.
    listed: Option<Instant>,
}

/// What is known of one object.
#[derive(Clone)]
struct Known {
    object: Arc<ScaledObject>,
    metrics: Arc<Result<Vec<TriggerMetric>, String>>,
    warnings: Arc<str>,
    authentications: Arc<BTreeSet<AuthenticationName>>,
    /// Whether other objects have a part in it.
    refers: bool,
    /// Whether it was looked up at all.
    is_managed: bool,
    at: Instant,
}

impl Known {
    fn of(object: Arc<ScaledObject>, resolution: &mut Resolution, is_managed: bool) -> Known {
        let metrics = std::mem::replace(&mut resolution.metrics, Ok(Vec::new()));
        Known {
            object,
            metrics: Arc::new(metrics),
            warnings: resolution.warnings.join("\n").into(),
            authentications: Arc::new(std::mem::take(&mut resolution.authentications)),
            refers: resolution.refers,
            is_managed,
            at: Instant::now(),
        }
    }

    fn managed(&self, mode: Mode) -> Managed {
        managed_with(&self.object, &self.metrics, &self.warnings, mode)
    }

    /// Whether it should be resolved again, since nobody reports changes of what it refers to.
    fn is_old(&self) -> bool {
        let max_age = if self.metrics.is_ok() { MAX_AGE } else { MIN_AGE };
        self.refers && self.at.elapsed() >= max_age
    }

    fn has_meaning_of(&self, other: &Known) -> bool {
        self.metrics == other.metrics && self.warnings == other.warnings
    }
}

impl Resolver {
    /// Knows nothing yet.
    pub(super) fn new(triggers: Arc<Triggers>, is_managed: IsManaged, mode: Mode) -> Resolver {
        let lookups = Lookups::new(Arc::clone(&triggers));
        Resolver { triggers, is_managed, mode, known: HashMap::new(), lookups, listed: None }
    }

    /// Passes on what arrives, and what is resolved again, for ever.
    pub(super) async fn run(&mut self, inbox: &Inbox, apply: &mut Apply<'_>) {
        self.triggers.authentications_known().await;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let triggers = Arc::clone(&self.triggers);
        loop {
            // Whatever is ready: which one is chosen is left to chance, so that none is forgotten.
            tokio::select! {
                _ = tick.tick() => self.look_again(true),
                () = inbox.arrival() => self.take_in(inbox.take(), apply),
                () = triggers.outdated() => self.look_again(false),
                looked = self.lookups.next() => self.looked(looked, apply),
                () = until(self.listed) => self.pass_on_list(apply),
            }
            if self.lookups.is_empty() {
                self.pass_on_list(apply);
            }
        }
    }

    /// Takes in what the watch brought.
    fn take_in(&mut self, arrived: Arrived, apply: &mut Apply<'_>) {
        let reads = Arc::new(Reads::default());
        if let Some(all) = arrived.all {
            let there: BTreeSet<ObjectName> = all.iter().map(|o| ObjectName::of(o)).collect();
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
                    let managed = managed(&object, &Ok(Vec::new()), self.mode);
                    self.pass_on(Change::Deleted(managed), apply);
                }
            }
        }
    }

    /// What an object means that has arrived, if that is known: one that has the spec of before means the same. Else it
    /// is looked up, and means what it meant until then.
    fn arrive(&mut self, object: Arc<ScaledObject>, reads: &Arc<Reads>) -> Option<Managed> {
        let is_managed = (self.is_managed)(&managed(&object, &Ok(Vec::new()), self.mode));
        let name = ObjectName::of(&object);
        let known = self.known.get(&name);
        let same = known
            .filter(|it| it.object.spec == object.spec && it.is_managed == is_managed)
            .cloned();
        if let Some(known) = same {
            self.lookups.take_newer(&name, &object);
            return Some(self.keep(Known { object, ..known }));
        }
        if !is_managed {
            self.lookups.forget(&name);
            let mut unmanaged = Resolution::unmanaged();
            let known = Known::of(object, &mut unmanaged, is_managed);
            self.triggers.connect(&name, unmanaged);
            return Some(self.keep(known));
        }
        if !self.lookups.take_newer(&name, &object) {
            self.lookups.add(name, Wanted { object, reads: Arc::clone(reads), is_again: false });
        }
        None
    }

    fn forget(&mut self, name: &ObjectName) {
        self.lookups.forget(name);
        self.known.remove(name);
        self.triggers.forget(name);
    }

    /// Begins to resolve the objects again that should be. A trigger that fails all the time does not have its
    /// credentials read all the time.
    fn look_again(&mut self, is_time: bool) {
        let outdated = self.triggers.take_outdated();
        let is_outdated = |(name, known): &(&ObjectName, &Known)| {
            let failed = outdated.objects.contains(*name) && known.at.elapsed() >= MIN_AGE;
            let changed = !outdated.authentications.is_disjoint(&known.authentications);
            changed || (failed && known.refers) || (is_time && known.is_old())
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
    fn looked(&mut self, looked: Looked, apply: &mut Apply<'_>) {
        let Looked { name, object, resolution, is_again } = looked;
        let before = self.known.get(&name);
        let before = before.filter(|it| it.object.spec == object.spec && it.is_managed).cloned();
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
    fn keep(&mut self, known: Known) -> Managed {
        let (managed, name) = (known.managed(self.mode), ObjectName::of(&known.object));
        if self.mode == Mode::Hpa && known.is_managed {
            self.triggers.serve(&name, &managed.model);
        }
        let orders = Orders::read(&known.object.metadata.annotations);
        self.triggers.note_pause(&name, orders.is_any_paused());
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
