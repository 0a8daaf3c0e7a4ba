//! Lookups that wait and those that are under way: each object once, each with a deadline, many at the same time.
//!
//! A lookup that takes long, since a Vault or a name server does not answer, makes room for others after a moment. So
//! there are two bounds: how many may be in their first moment, and how many there may be in all.

use super::Resolvable;
use crate::triggers::{AuthenticationName, ObjectName, Reads, Resolution, Triggered, Triggers};
use futures::FutureExt;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// How long looking up may take for one object.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);
/// The first moment of a lookup: nearly all have ended by then.
const MOMENT: Duration = Duration::from_secs(1);
/// How many lookups are in their first moment at a time.
const AT_FIRST: usize = 64;
/// How many lookups are under way at a time.
const IN_ALL: usize = 2048;
/// How many of those may be under way for lookups to be repeated: objects that are new go first.
const IN_ALL_FOR_REPEATED: usize = IN_ALL / 2;

/// What is to be looked up.
pub(super) struct Wanted<T> {
    /// The object whose triggers refer to something.
    pub(super) object: Arc<T>,
    /// What was read for others at the same time.
    pub(super) reads: Arc<Reads>,
    /// Whether it was looked up before.
    pub(super) is_again: bool,
}

/// What a lookup led to.
pub(super) struct Looked<T> {
    /// Which object it was for.
    pub(super) name: ObjectName,
    /// The newest version of it that has arrived.
    pub(super) object: Arc<T>,
    /// What was found; nothing if that took too long.
    pub(super) resolution: Option<Resolution>,
    /// Whether it was looked up before.
    pub(super) is_again: bool,
}

/// A lookup that waits or is under way.
struct Lookup<T> {
    wanted: Wanted<T>,
    /// Which one it is of all.
    number: u64,
    task: Option<AbortHandle>,
    /// What it is to be repeated with, since something has changed meanwhile.
    repeat: Option<Arc<Reads>>,
}

impl<T> Drop for Lookup<T> {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// All of them.
pub(super) struct Lookups<T> {
    triggers: Arc<Triggers>,
    all: HashMap<ObjectName, Lookup<T>>,
    /// Those that have not begun, for objects that are new and for others; some may have been forgotten since.
    new: VecDeque<(ObjectName, u64)>,
    repeated: VecDeque<(ObjectName, u64)>,
    running: JoinSet<(ObjectName, u64, Option<Resolution>)>,
    at_first: Arc<Semaphore>,
    count: u64,
}

impl<T: Resolvable> Lookups<T> {
    /// There are none.
    pub(super) fn new(triggers: Arc<Triggers>) -> Lookups<T> {
        Lookups {
            triggers,
            all: HashMap::new(),
            new: VecDeque::new(),
            repeated: VecDeque::new(),
            running: JoinSet::new(),
            at_first: Arc::new(Semaphore::new(AT_FIRST)),
            count: 0,
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The objects that they are for.
    pub(super) fn names(&self) -> impl Iterator<Item = &ObjectName> {
        self.all.keys()
    }

    /// Looks up what an object refers to. One of another spec takes the place of one that was; what is to be looked up
    /// again and is being looked up already is not looked up twice.
    pub(super) fn add(&mut self, name: ObjectName, wanted: Wanted<T>) {
        if wanted.is_again && self.all.contains_key(&name) {
            return;
        }
        self.count += 1;
        let (number, is_again) = (self.count, wanted.is_again);
        let queue = if is_again { &mut self.repeated } else { &mut self.new };
        queue.push_back((name.clone(), number));
        self.all.insert(name, Lookup { wanted, number, task: None, repeat: None });
    }

    /// Takes in a newer version of an object; whether it refers to what is being looked up for it.
    pub(super) fn take_newer(&mut self, name: &ObjectName, object: &Arc<T>) -> bool {
        let Some(lookup) = self.all.get_mut(name) else { return false };
        if lookup.wanted.object.has_spec_of(object) {
            lookup.wanted.object = Arc::clone(object);
            return true;
        }
        self.all.remove(name);
        false
    }

    /// Nobody waits for what an object refers to any more.
    pub(super) fn forget(&mut self, name: &ObjectName) {
        self.all.remove(name);
    }

    /// Repeats the lookups that are under way for objects which refer to one of these.
    pub(super) fn repeat(&mut self, of: &BTreeSet<AuthenticationName>, reads: &Arc<Reads>) {
        if of.is_empty() {
            return;
        }
        for lookup in self.all.values_mut() {
            let object = lookup.wanted.object.triggered();
            if object.authentications().any(|name| of.contains(&name)) {
                match lookup.task {
                    Some(_) => lookup.repeat = Some(Arc::clone(reads)),
                    None => lookup.wanted.reads = Arc::clone(reads),
                }
            }
        }
    }

    /// What the next lookup to end has led to; for ever, if there is none. Dropping this loses nothing.
    pub(super) async fn next(&mut self) -> Looked<T> {
        loop {
            let may_begin = self.may_begin();
            let has_some = !self.running.is_empty();
            if !may_begin && !has_some {
                return std::future::pending().await;
            }
            tokio::select! {
                permit = Arc::clone(&self.at_first).acquire_owned(), if may_begin => {
                    // The semaphore is never closed.
                    if let Ok(permit) = permit {
                        self.begin(permit);
                    }
                }
                Some(ended) = self.running.join_next(), if has_some => {
                    // One that was forgotten ends in an error.
                    if let Ok((name, number, resolution)) = ended
                        && let Some(looked) = self.end(name, number, resolution)
                    {
                        return looked;
                    }
                }
            }
        }
    }

    fn may_begin(&self) -> bool {
        let running = self.running.len();
        (!self.new.is_empty() && running < IN_ALL)
            || (!self.repeated.is_empty() && running < IN_ALL_FOR_REPEATED)
    }

    /// Begins the first that waits.
    fn begin(&mut self, permit: OwnedSemaphorePermit) {
        while let Some((name, number)) = self.new.pop_front().or_else(|| self.repeated.pop_front())
        {
            let Some(lookup) = self.all.get_mut(&name).filter(|it| it.number == number) else {
                continue;
            };
            let Wanted { object, reads, .. } = &lookup.wanted;
            let (object, reads) = (object.triggered(), Arc::clone(reads));
            let looking = look_up(Arc::clone(&self.triggers), object, reads, permit);
            let task = async move { (name, number, looking.await) };
            lookup.task = Some(self.running.spawn(task));
            return;
        }
    }

    /// What a lookup that has ended led to, unless nobody waits for it or it is to be repeated.
    fn end(
        &mut self,
        name: ObjectName,
        number: u64,
        resolution: Option<Resolution>,
    ) -> Option<Looked<T>> {
        let lookup = self.all.get_mut(&name).filter(|lookup| lookup.number == number)?;
        if let Some(reads) = lookup.repeat.take() {
            (lookup.task, lookup.wanted.reads) = (None, reads);
            self.repeated.push_back((name, number));
            return None;
        }
        let lookup = self.all.remove(&name)?;
        let (object, is_again) = (Arc::clone(&lookup.wanted.object), lookup.wanted.is_again);
        Some(Looked { name, object, resolution, is_again })
    }
}

/// Looks up what an object refers to, as long as that may take.
async fn look_up(
    triggers: Arc<Triggers>,
    object: Triggered,
    reads: Arc<Reads>,
    permit: OwnedSemaphorePermit,
) -> Option<Resolution> {
    let resolving = AssertUnwindSafe(triggers.resolve(&object, &reads)).catch_unwind();
    let mut resolving = Box::pin(resolving);
    let resolved = match timeout(MOMENT, &mut resolving).await {
        Ok(resolved) => resolved,
        Err(_) => {
            drop(permit);
            timeout(DEADLINE - MOMENT, resolving).await.ok()?
        }
    };
    Some(resolved.unwrap_or_else(|_| {
        tracing::error!(object = %object.owner.name, "a lookup broke off");
        Resolution::failed("what triggers refer to could not be read".to_owned())
    }))
}
