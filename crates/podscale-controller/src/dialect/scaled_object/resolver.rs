//! Between the watch and the index: looks up what the triggers of each object refer to, again when that may have
//! changed, and passes on what the object means then.
//!
//! Secrets and ConfigMaps are not watched, so that nobody has to allow listing them: they are read when an object is new
//! or has another spec, when its authentication changes, when its source refuses a poll, and every few minutes.

use super::inbox::{Arrived, Inbox, OneChange};
use super::{IsManaged, Mode, managed, managed_with};
use crate::dialect::Managed;
use crate::triggers::{AuthenticationName, ObjectName, Reads, Resolution, Triggers};
use futures::future::join_all;
use podscale_api::keda::ScaledObject;
use podscale_api::keda::annotations::Orders;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_client::watch::Change;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// How many objects are resolved at the same time.
const CONCURRENT: usize = 32;
/// How long looking up may take for one object.
const DEADLINE: Duration = Duration::from_secs(20);
/// How often it is looked for objects that should be resolved again.
const TICK: Duration = Duration::from_secs(10);
/// How long what was looked up is used.
const MAX_AGE: Duration = Duration::from_secs(300);
/// How long it is used at least, however often polls fail.
const MIN_AGE: Duration = Duration::from_secs(10);

/// Passes objects on to the index.
type Apply<'a> = dyn FnMut(Change<Managed>) + Send + 'a;

/// Knows what was resolved.
pub(super) struct Resolver {
    triggers: Arc<Triggers>,
    is_managed: IsManaged,
    mode: Mode,
    known: HashMap<ObjectName, Known>,
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
    fn managed(&self, mode: Mode) -> Managed {
        managed_with(&self.object, &self.metrics, &self.warnings, mode)
    }

    /// Whether it should be resolved again, since nobody reports changes of what it refers to.
    fn is_old(&self) -> bool {
        let max_age = if self.metrics.is_ok() { MAX_AGE } else { MIN_AGE };
        self.refers && self.at.elapsed() >= max_age
    }
}

/// What one lookup led to.
enum Looked {
    /// What was known before still holds, of this version of the object.
    Same(Known),
    /// Something new is known.
    New(Known, Box<Resolution>),
}

impl Resolver {
    /// Knows nothing yet.
    pub(super) fn new(triggers: Arc<Triggers>, is_managed: IsManaged, mode: Mode) -> Resolver {
        Resolver { triggers, is_managed, mode, known: HashMap::new() }
    }

    /// Passes on what arrives, and what is resolved again, for ever.
    pub(super) async fn run(&mut self, inbox: &Inbox, apply: &mut Apply<'_>) {
        self.triggers.authentications_known().await;
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_time = tokio::select! {
                biased;
                _ = tick.tick() => true,
                () = inbox.arrival() => false,
                () = self.triggers.outdated() => false,
            };
            self.take_in(inbox.take(), apply).await;
            let again = self.outdated(is_time);
            self.resolve_again(again, apply).await;
        }
    }

    /// Takes in what the watch brought.
    async fn take_in(&mut self, arrived: Arrived, apply: &mut Apply<'_>) {
        let reads = Reads::default();
        if let Some(all) = arrived.all {
            let there: BTreeSet<ObjectName> = all.iter().map(|o| ObjectName::of(o)).collect();
            let gone: Vec<ObjectName> =
                self.known.keys().filter(|name| !there.contains(*name)).cloned().collect();
            gone.iter().for_each(|name| self.forget(name));
            let found = self.resolve(&all, &reads, false).await;
            apply(Change::All(found));
        }
        let mut applied = Vec::new();
        for (name, change) in arrived.changed {
            match change {
                OneChange::Applied(object) => applied.push(object),
                OneChange::Deleted(object) => {
                    self.forget(&name);
                    apply(Change::Deleted(managed(&object, &Ok(Vec::new()), self.mode)));
                }
            }
        }
        for managed in self.resolve(&applied, &reads, false).await {
            apply(Change::Applied(managed));
        }
    }

    fn forget(&mut self, name: &ObjectName) {
        self.known.remove(name);
        self.triggers.forget(name);
    }

    /// The objects that should be resolved again. A trigger that fails all the time does not have its credentials read
    /// all the time.
    fn outdated(&self, is_time: bool) -> Vec<Arc<ScaledObject>> {
        let outdated = self.triggers.take_outdated();
        let is_outdated = |(name, known): &(&ObjectName, &Known)| {
            let failed = outdated.objects.contains(*name) && known.at.elapsed() >= MIN_AGE;
            let changed = !outdated.authentications.is_disjoint(&known.authentications);
            changed || (failed && known.refers) || (is_time && known.is_old())
        };
        let found = self.known.iter().filter(is_outdated);
        found.map(|(_, known)| Arc::clone(&known.object)).collect()
    }

    /// Resolves objects again and passes on those that mean something else now.
    async fn resolve_again(&mut self, objects: Vec<Arc<ScaledObject>>, apply: &mut Apply<'_>) {
        if objects.is_empty() {
            return;
        }
        let meaning = |known: &Known| (Arc::clone(&known.metrics), Arc::clone(&known.warnings));
        let before: Vec<_> = objects
            .iter()
            .map(|object| self.known.get(&ObjectName::of(object)).map(meaning))
            .collect();
        let found = self.resolve(&objects, &Reads::default(), true).await;
        for ((managed, object), before) in found.into_iter().zip(&objects).zip(before) {
            if self.known.get(&ObjectName::of(object)).map(meaning) != before {
                apply(Change::Applied(managed));
            }
        }
    }

    /// What objects mean, in their order. One that has the spec of before means the same, unless it is looked up again.
    async fn resolve(
        &mut self,
        objects: &[Arc<ScaledObject>],
        reads: &Reads,
        again: bool,
    ) -> Vec<Managed> {
        let mut found = Vec::with_capacity(objects.len());
        for some in objects.chunks(CONCURRENT) {
            let looked =
                join_all(some.iter().map(|object| self.look_up(object, reads, again))).await;
            for looked in looked {
                found.push(self.keep(looked));
            }
        }
        found
    }

    async fn look_up(&self, object: &Arc<ScaledObject>, reads: &Reads, again: bool) -> Looked {
        let is_managed = (self.is_managed)(&managed(object, &Ok(Vec::new()), self.mode));
        let before = self.known.get(&ObjectName::of(object));
        let before = before
            .filter(|before| before.object.spec == object.spec && before.is_managed == is_managed);
        if let Some(before) = before.filter(|_| !again) {
            return Looked::Same(Known { object: Arc::clone(object), ..before.clone() });
        }
        if !is_managed {
            return new(object, Resolution::unmanaged(), is_managed);
        }
        let resolving = tokio::time::timeout(DEADLINE, self.triggers.resolve(object, reads));
        let resolution = resolving.await.ok();
        match (resolution, before) {
            // What worked goes on while the API server cannot be asked.
            (None | Some(Resolution { is_unsure: true, .. }), Some(before))
                if before.metrics.is_ok() =>
            {
                Looked::Same(Known {
                    object: Arc::clone(object),
                    at: Instant::now(),
                    ..before.clone()
                })
            }
            (Some(resolution), _) => new(object, resolution, is_managed),
            (None, _) => {
                let seconds = DEADLINE.as_secs();
                let late = format!("what triggers refer to cannot be read within {seconds} s");
                new(object, Resolution::failed(late), is_managed)
            }
        }
    }

    /// Keeps what was looked up, and connects what polls.
    fn keep(&mut self, looked: Looked) -> Managed {
        let known = match looked {
            Looked::Same(known) => known,
            Looked::New(known, resolution) => {
                self.triggers.connect(&ObjectName::of(&known.object), *resolution);
                known
            }
        };
        let (managed, name) = (known.managed(self.mode), ObjectName::of(&known.object));
        if self.mode == Mode::Hpa && known.is_managed {
            self.triggers.serve(&name, &managed.model);
        }
        let orders = Orders::read(&known.object.metadata.annotations);
        self.triggers.note_pause(&name, orders.is_any_paused());
        self.known.insert(name, known);
        managed
    }
}

fn new(object: &Arc<ScaledObject>, mut resolution: Resolution, is_managed: bool) -> Looked {
    let metrics = std::mem::replace(&mut resolution.metrics, Ok(Vec::new()));
    let known = Known {
        object: Arc::clone(object),
        metrics: Arc::new(metrics),
        warnings: resolution.warnings.join("\n").into(),
        authentications: Arc::new(std::mem::take(&mut resolution.authentications)),
        refers: resolution.refers,
        is_managed,
        at: Instant::now(),
    };
    Looked::New(known, Box::new(resolution))
}
