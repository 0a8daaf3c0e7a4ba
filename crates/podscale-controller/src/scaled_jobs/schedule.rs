//! When each ScaledJob is polled: in its interval, and at once when it changes or one of its sources says so. An object
//! is polled by one task at a time.

use super::known::Objects;
use super::poll::{Memory, Poller, key_of};
use crate::spans;
use crate::triggers::ObjectName;
use futures::FutureExt;
use podscale_api::keda::ScaledJob;
use podscale_api::keda::annotations::is_job_paused;
use podscale_api::translate::scaled_job::made::finalizers;
use podscale_client::election::Term;
use std::collections::{BTreeSet, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

/// How many objects are polled at a time.
const CONCURRENT: usize = 256;
/// How long to sleep when nothing is due.
const IDLE: Duration = Duration::from_secs(60);
/// How many pushes may wait; a source that speaks meanwhile is heard by the poll that comes anyway.
const QUEUED_PUSHES: usize = 1024;
/// How long a source is not listened to after it has spoken, however often it speaks.
const PAUSE: Duration = Duration::from_secs(1);

/// What of an object makes it be polled at once when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape {
    uid: String,
    generation: i64,
    is_paused: bool,
    is_deleted: bool,
    finalizers: Vec<String>,
}

impl Shape {
    fn of(object: &ScaledJob) -> Shape {
        let metadata = &object.metadata;
        Shape {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            is_paused: is_job_paused(&metadata.annotations),
            is_deleted: metadata.deletion_timestamp.is_some(),
            finalizers: finalizers(object),
        }
    }
}

/// What is known of one object.
struct Entry {
    shape: Shape,
    due: Instant,
    /// What polls remember; away while one is under way.
    memory: Option<Memory>,
    /// Whether it is to be polled again as soon as the poll that is under way has ended.
    again: bool,
    /// Who listens to its sources.
    listeners: JoinSet<()>,
}

/// When objects are polled.
pub(super) struct Schedule {
    poller: Arc<Poller>,
    objects: Arc<Objects>,
    entries: HashMap<ObjectName, Entry>,
    due: BTreeSet<(Instant, ObjectName)>,
    running: JoinSet<(ObjectName, Memory)>,
    pushed: mpsc::Sender<ObjectName>,
    pushes: mpsc::Receiver<ObjectName>,
}

impl Schedule {
    /// Nothing is known yet.
    pub(super) fn new(poller: Arc<Poller>, objects: Arc<Objects>) -> Schedule {
        let (pushed, pushes) = mpsc::channel(QUEUED_PUSHES);
        Schedule {
            poller,
            objects,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            running: JoinSet::new(),
            pushed,
            pushes,
        }
    }

    /// Polls what is due while this replica leads, until stopped.
    pub(super) async fn run(
        mut self,
        mut leading: watch::Receiver<Option<Term>>,
        mut stopped: watch::Receiver<bool>,
    ) {
        let poller = Arc::clone(&self.poller);
        let known = async {
            poller.triggers.authentications_known().await;
            poller.jobs.known().await;
        };
        tokio::select! {
            biased;
            () = ended(&mut stopped) => return,
            () = known => {}
        }
        let mut has_elections = true;
        loop {
            let leads = leading.borrow_and_update().is_some();
            if leads {
                self.begin_due();
            } else if !self.running.is_empty() {
                self.break_off().await;
            }
            let wait = self.wait(leads);
            tokio::select! {
                biased;
                () = ended(&mut stopped) => break,
                changed = leading.changed(), if has_elections => has_elections = changed.is_ok(),
                () = self.objects.changed() => self.take_in(),
                Some(name) = self.pushes.recv() => self.enqueue_now(&name),
                Some(ended) = self.running.join_next(), if !self.running.is_empty() => {
                    match ended {
                        Ok((name, memory)) => self.end(&name, memory),
                        Err(error) => tracing::warn!(%error, "a poll of a ScaledJob broke off"),
                    }
                }
                () = tokio::time::sleep(wait) => {}
            }
        }
        while self.running.join_next().await.is_some() {}
    }

    /// How long until something is due that may begin.
    fn wait(&self, leads: bool) -> Duration {
        if !leads || self.running.len() >= CONCURRENT {
            return IDLE;
        }
        let next = self.due.first().map(|(at, _)| at.saturating_duration_since(Instant::now()));
        next.map_or(IDLE, |wait| wait.min(IDLE))
    }

    /// Takes in what the watch has shown.
    fn take_in(&mut self) {
        let now = Instant::now();
        for (name, object) in self.objects.take_changed() {
            let Some(object) = object else {
                if let Some(entry) = self.entries.remove(&name) {
                    self.due.remove(&(entry.due, name.clone()));
                }
                self.poller.triggers.forget(&name);
                self.poller.gone(&name);
                continue;
            };
            let shape = Shape::of(&object);
            match self.entries.get_mut(&name) {
                None => {
                    let (memory, listeners) = (Some(Memory::default()), JoinSet::new());
                    let entry = Entry { shape, due: now, memory, again: false, listeners };
                    self.entries.insert(name.clone(), entry);
                    self.due.insert((now, name));
                }
                Some(entry) if entry.shape != shape => {
                    entry.shape = shape;
                    self.enqueue_now(&name);
                }
                Some(_) => {}
            }
        }
    }

    /// Makes an object due now.
    fn enqueue_now(&mut self, name: &ObjectName) {
        let Some(entry) = self.entries.get_mut(name) else { return };
        if entry.memory.is_none() {
            entry.again = true;
            return;
        }
        let now = Instant::now();
        self.due.remove(&(entry.due, name.clone()));
        entry.due = entry.due.min(now);
        self.due.insert((entry.due, name.clone()));
    }

    /// Ends the polls that are under way: whoever leads now must not be disturbed. They begin anew when this replica
    /// leads again.
    async fn break_off(&mut self) {
        self.running.shutdown().await;
        let now = Instant::now();
        for (name, entry) in &mut self.entries {
            if entry.memory.is_none() {
                entry.memory = Some(Memory::default());
                entry.due = now;
                self.due.insert((now, name.clone()));
            }
        }
    }

    /// Begins the polls that are due, as many as may be under way.
    fn begin_due(&mut self) {
        let now = Instant::now();
        while self.running.len() < CONCURRENT {
            let Some((_, name)) = self.due.first().filter(|(at, _)| *at <= now).cloned() else {
                return;
            };
            self.due.pop_first();
            let object = self.objects.get(&name);
            let memory = self.entries.get_mut(&name).and_then(|entry| entry.memory.take());
            let (Some(object), Some(mut memory)) = (object, memory) else { continue };
            let poller = Arc::clone(&self.poller);
            let span = spans::reconcile(&key_of(&name));
            let poll = async move {
                let polled = AssertUnwindSafe(poller.poll(&object, &mut memory)).catch_unwind();
                if polled.await.is_err() {
                    tracing::error!(namespace = %name.namespace, name = %name.name, "a poll broke off");
                    memory = Memory::default();
                }
                (name, memory)
            };
            self.running.spawn(poll.instrument(span));
        }
    }

    /// A poll has ended: the next one comes an interval after it was due.
    fn end(&mut self, name: &ObjectName, mut memory: Memory) {
        let object = self.objects.get(name);
        let Some(entry) = self.entries.get_mut(name) else {
            // It has gone meanwhile.
            self.poller.triggers.forget(name);
            self.poller.gone(name);
            return;
        };
        if let Some(pushes) = memory.triggers.pushes.take() {
            entry.listeners = JoinSet::new();
            for push in pushes {
                entry.listeners.spawn(pass_on(push, name.clone(), self.pushed.clone()));
            }
        }
        let seconds = object.map_or(1, |object| object.spec.polling_interval_seconds());
        let interval = Duration::from_secs(u64::try_from(seconds).unwrap_or(1));
        let now = Instant::now();
        let next = entry.due + self.poller.clock.to_wall(interval);
        entry.due = if std::mem::take(&mut entry.again) { now } else { next.max(now) };
        entry.memory = Some(memory);
        self.due.insert((entry.due, name.clone()));
    }
}

async fn ended(stopped: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, which is an end as well.
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// Tells whenever a source says that there is something to do.
async fn pass_on(
    mut push: watch::Receiver<u64>,
    name: ObjectName,
    pushed: mpsc::Sender<ObjectName>,
) {
    while push.changed().await.is_ok() {
        if pushed.send(name.clone()).await.is_err() {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaled_jobs::known::Jobs;
    use crate::scaled_jobs::write::Writer;
    use crate::triggers::{Limits, Triggers};
    use axum::Router;
    use kube::Client;
    use podscale_client::clock::Clock;
    use podscale_client::events;
    use podscale_client::watch::Change;
    use serde_json::json;

    /// With one object that is polled every five minutes, and an API server that has nothing.
    fn schedule() -> Schedule {
        let client = Client::new(Router::new(), "default");
        let (clock, objects) = (Clock::wall(), Arc::new(Objects::default()));
        let (recorder, _pending) = events::channel("podscale");
        let poller = Poller {
            triggers: Arc::new(Triggers::new(&client, clock, Limits::default())),
            jobs: Arc::new(Jobs::default()),
            writer: Writer::new(client, recorder),
            clock,
            dry_run: false,
            observers: Vec::new(),
        };
        let mail = json!({"metadata": {"name": "mail", "namespace": "shop", "uid": "u"},
            "spec": {"pollingInterval": 300}});
        objects.apply(Change::All(vec![serde_json::from_value(mail).expect("a ScaledJob")]));
        Schedule::new(Arc::new(poller), objects)
    }

    fn is_due(schedule: &Schedule) -> bool {
        schedule.due.first().is_some_and(|(at, _)| *at <= Instant::now())
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_source_says_makes_an_object_due_at_once_and_also_while_it_is_polled() {
        let mut schedule = schedule();
        schedule.take_in();
        assert!(is_due(&schedule), "it is new");
        schedule.begin_due();
        let (name, memory) =
            schedule.running.join_next().await.expect("a poll").expect("that ended");
        schedule.end(&name, memory);
        assert!(!is_due(&schedule), "its interval has begun");
        let source = watch::Sender::new(0);
        let listening = pass_on(source.subscribe(), name.clone(), schedule.pushed.clone());
        let entry = schedule.entries.get_mut(&name).expect("it is known");
        entry.listeners.spawn(listening);
        for while_polled in [false, true] {
            if while_polled {
                schedule.begin_due();
            }
            source.send_modify(|number| *number += 1);
            let pushed = schedule.pushes.recv().await.expect("a push");
            schedule.enqueue_now(&pushed);
            if while_polled {
                let ended = schedule.running.join_next().await.expect("a poll");
                let (name, memory) = ended.expect("that ended");
                schedule.end(&name, memory);
            }
            assert!(is_due(&schedule), "while it is polled: {while_polled}");
        }
    }
}
