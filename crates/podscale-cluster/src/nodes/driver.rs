//! The task that lives the pods of all nodes: one watch, one set of timers, a bounded number of
//! writes at once.

use super::address::Block;
use super::events::{EventSink, Note};
use super::lifecycle::{Delays, Life, Next, Stage};
use super::pod::{Facts, Fault, WirePod};
use super::status;
use super::table::{PodView, Table};
use super::{Command, NodeInfo};
use crate::call::{CallError, call};
use futures::{Stream, StreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource};
use podscale_client::clock::Clock;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{debug, warn};

/// How many writes may be under way at once.
const MAX_WRITES: usize = 64;
/// The first and the longest wait (wall-clock) before a failed write is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// The shortest sleep (wall-clock), so that a fast clock does not spin.
const SHORTEST_SLEEP: Duration = Duration::from_millis(1);

type Uid = Arc<str>;

/// A node's pods' surroundings.
struct Home {
    info: Arc<NodeInfo>,
    addresses: Block,
}

/// A pod and what is still to be written of it.
struct Pod {
    facts: Arc<Facts>,
    life: Life,
    ip: IpAddr,
    /// Set from outside; goes before the pod's own.
    fault: Option<Fault>,
    due: Option<Timestamp>,
    retry: Option<Timestamp>,
    failures: u32,
    stale: bool,
    writing: bool,
    queued: bool,
    removal: Removal,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Removal {
    No,
    Wanted,
    Done,
}

impl Pod {
    fn fault_now(&self) -> Option<Fault> {
        self.fault.or(self.facts.fault)
    }
}

/// What a finished write was of.
type Written = (Uid, Removal, Result<(), CallError>);

/// Lives all pods.
pub(super) struct Driver {
    client: Client,
    clock: Clock,
    delays: Delays,
    table: Arc<Table>,
    events: EventSink,
    homes: HashMap<Arc<str>, Home>,
    pods: HashMap<Uid, Pod>,
    due: BTreeSet<(Timestamp, Uid)>,
    queue: VecDeque<Uid>,
    writes: JoinSet<Written>,
    /// The pods of the listing that is under way.
    listed: Option<HashSet<Uid>>,
}

impl Driver {
    pub(super) fn new(
        client: Client,
        clock: Clock,
        delays: Delays,
        table: Arc<Table>,
        events: EventSink,
        nodes: &[Arc<NodeInfo>],
    ) -> Driver {
        let home = |info: &Arc<NodeInfo>| Home {
            info: Arc::clone(info),
            addresses: Block::of(info.index),
        };
        Driver {
            client,
            clock,
            delays,
            table,
            events,
            homes: nodes.iter().map(|info| (Arc::clone(&info.name), home(info))).collect(),
            pods: HashMap::new(),
            due: BTreeSet::new(),
            queue: VecDeque::new(),
            writes: JoinSet::new(),
            listed: None,
        }
    }

    /// Runs until the handle is dropped.
    pub(super) async fn run(self, commands: mpsc::Receiver<Command>) {
        let pods: Api<WirePod> = Api::all(self.client.clone());
        let events = watcher(pods, watcher::Config::default()).default_backoff();
        self.follow(events, commands).await;
    }

    async fn follow(
        mut self,
        events: impl Stream<Item = watcher::Result<Event<WirePod>>>,
        mut commands: mpsc::Receiver<Command>,
    ) {
        let mut events = pin!(events);
        loop {
            let sleep = self.sleep();
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                Some(written) = self.writes.join_next() => match written {
                    Ok((uid, removal, result)) => self.written(&uid, removal, result),
                    Err(error) => warn!(%error, "a write of a pod's status broke off"),
                },
                event = events.next() => match event {
                    Some(Ok(event)) => self.observe(event),
                    Some(Err(error)) => warn!(%error, "watching pods"),
                    None => return,
                },
                () = tokio::time::sleep(sleep) => {}
            }
            self.wake();
            self.write();
        }
    }

    /// How long to sleep until the next pod is due.
    fn sleep(&self) -> Duration {
        let Some((due, _)) = self.due.first() else {
            return Duration::from_secs(60);
        };
        let wait = due.duration_since(self.clock.now());
        self.clock.to_wall(wait.try_into().unwrap_or(Duration::ZERO)).max(SHORTEST_SLEEP)
    }

    fn observe(&mut self, event: Event<WirePod>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(pod) => {
                if let (Some(listed), Some(uid)) = (&mut self.listed, &pod.metadata.uid) {
                    listed.insert(uid.as_str().into());
                }
                self.see(&pod);
            }
            Event::InitDone => {
                let listed = self.listed.take().unwrap_or_default();
                let gone = self.pods.keys().filter(|uid| !listed.contains(*uid));
                for uid in gone.cloned().collect::<Vec<_>>() {
                    self.forget(&uid);
                }
            }
            Event::Apply(pod) => self.see(&pod),
            Event::Delete(pod) => {
                if let Some(uid) = pod.meta().uid.as_deref() {
                    self.forget(uid);
                }
            }
        }
    }

    fn see(&mut self, wire: &WirePod) {
        let Some(facts) = Facts::read(wire) else {
            return;
        };
        let uid = Arc::clone(&facts.uid);
        let Some(home) = self.homes.get_mut(&facts.node) else {
            return;
        };
        if let Some(pod) = self.pods.get_mut(&uid) {
            if *pod.facts == facts {
                return;
            }
            pod.facts = Arc::new(facts);
        } else {
            let known = wire.status.pod_ip.as_deref().and_then(|ip| ip.parse().ok());
            let known = known.filter(|ip| home.addresses.keep(*ip));
            let Some(ip) = known.or_else(|| home.addresses.take()) else {
                warn!(pod = %facts.name, node = %facts.node, "no address is left on the node");
                return;
            };
            let pod = Pod {
                facts: Arc::new(facts),
                life: Life::begin(wire, self.clock.now()),
                ip,
                fault: None,
                due: None,
                retry: None,
                failures: 0,
                stale: wire.status.start_time.is_none(),
                writing: false,
                queued: false,
                removal: Removal::No,
            };
            self.pods.insert(Arc::clone(&uid), pod);
        }
        self.step(&uid);
    }

    fn forget(&mut self, uid: &str) {
        let Some(pod) = self.pods.remove(uid) else {
            return;
        };
        if let Some(due) = pod.due {
            self.due.remove(&(due, Arc::clone(&pod.facts.uid)));
        }
        if let Some(home) = self.homes.get_mut(&pod.facts.node) {
            home.addresses.give_back(pod.ip);
        }
        self.table.remove(&pod.facts);
    }

    /// Lets a pod's life go on as far as the time allows, and notes what is to be written.
    fn step(&mut self, uid: &Uid) {
        let now = self.clock.now();
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        let stands_still = !self.homes.get(&pod.facts.node).is_some_and(|home| home.info.running());
        if let Some(due) = pod.due.take() {
            self.due.remove(&(due, Arc::clone(uid)));
        }
        let mut due = None;
        let mut moving = !stands_still;
        while moving {
            match pod.life.next(&pod.facts, pod.fault_now(), &self.delays, now) {
                Next::Become(life) => {
                    self.events.note(&pod.facts, Note::between(&pod.life, &life), now);
                    pod.life = life;
                    pod.stale |= life.stage != Stage::Stopping;
                }
                Next::Wait(until) => {
                    due = until;
                    moving = false;
                }
                Next::Remove => {
                    if pod.removal == Removal::No {
                        pod.removal = Removal::Wanted;
                        pod.stale = true;
                    }
                    moving = false;
                }
            }
        }
        if let Some(retry) = pod.retry.filter(|retry| *retry > now) {
            due = Some(due.map_or(retry, |due: Timestamp| due.min(retry)));
        } else {
            pod.retry = None;
            if pod.stale && !pod.queued && !pod.writing && !stands_still {
                pod.queued = true;
                self.queue.push_back(Arc::clone(uid));
            }
        }
        pod.due = due;
        self.due.extend(due.map(|due| (due, Arc::clone(uid))));
        self.table.put(PodView {
            facts: Arc::clone(&pod.facts),
            life: pod.life,
            ip: pod.ip,
            fault: pod.fault_now(),
            stopped: stands_still,
        });
    }

    /// Steps every pod that is due.
    fn wake(&mut self) {
        let now = self.clock.now();
        while let Some((due, uid)) = self.due.first().cloned() {
            if due > now {
                return;
            }
            self.due.pop_first();
            if let Some(pod) = self.pods.get_mut(&uid) {
                pod.due = None;
            }
            self.step(&uid);
        }
    }

    /// Begins writes while fewer than the most are under way.
    fn write(&mut self) {
        while self.writes.len() < MAX_WRITES {
            let Some(uid) = self.queue.pop_front() else {
                return;
            };
            let Some(pod) = self.pods.get_mut(&uid) else {
                continue;
            };
            pod.queued = false;
            let Some(home) = self.homes.get(&pod.facts.node) else {
                continue;
            };
            pod.stale = false;
            pod.writing = true;
            let pods: Api<WirePod> = Api::namespaced(self.client.clone(), &pod.facts.namespace);
            let facts = Arc::clone(&pod.facts);
            let removal = pod.removal;
            if removal == Removal::Wanted {
                self.writes.spawn(async move {
                    let result = remove(&pods, &facts).await;
                    (uid, removal, result)
                });
            } else {
                let patch = status::patch(&pod.facts, &pod.life, home.info.kubelet.ip(), pod.ip);
                self.writes.spawn(async move {
                    let patch = Patch::Strategic(patch);
                    let params = PatchParams::default();
                    let result = call(
                        || format!("writing the status of pod {}/{}", facts.namespace, facts.name),
                        pods.patch_status(&facts.name, &params, &patch),
                    )
                    .await;
                    (uid, removal, result.map(drop))
                });
            }
        }
    }

    fn written(&mut self, uid: &Uid, removal: Removal, result: Result<(), CallError>) {
        let now = self.clock.now();
        let Some(pod) = self.pods.get_mut(uid) else {
            return;
        };
        pod.writing = false;
        match result {
            Ok(()) => {
                pod.failures = 0;
                if removal == Removal::Wanted {
                    pod.removal = Removal::Done;
                }
            }
            Err(error) if error.code() == Some(404) => {
                debug!(%error, "a pod is gone");
                pod.removal = Removal::Done;
                pod.stale = false;
            }
            Err(error) => {
                warn!(%error, "trying again");
                let (first, longest) = RETRY;
                let wait = first.saturating_mul(1 << pod.failures.min(10)).min(longest);
                let wait = SignedDuration::try_from(wait.mul_f64(self.clock.speed()));
                let wait = wait.unwrap_or(SignedDuration::MAX);
                pod.failures = pod.failures.saturating_add(1);
                pod.retry = Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
                pod.stale = true;
            }
        }
        self.step(uid);
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Fault { namespace, name, fault, done } => {
                let of = |pod: &Pod| *pod.facts.namespace == *namespace && *pod.facts.name == *name;
                let uid = self.pods.iter().find(|(_, pod)| of(pod)).map(|(uid, _)| Arc::clone(uid));
                if let Some(pod) = uid.as_ref().and_then(|uid| self.pods.get_mut(uid)) {
                    pod.fault = fault;
                }
                uid.iter().for_each(|uid| self.step(uid));
                // Nobody may be waiting for the answer any more.
                let _ = done.send(uid.is_some());
            }
            Command::Enqueue { node } => {
                let on_it = self.pods.iter().filter(|(_, pod)| pod.facts.node == node);
                for uid in on_it.map(|(uid, _)| Arc::clone(uid)).collect::<Vec<_>>() {
                    self.step(&uid);
                }
            }
        }
    }
}

async fn remove(pods: &Api<WirePod>, facts: &Facts) -> Result<(), CallError> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(facts.uid.to_string()),
            ..Default::default()
        }),
        ..DeleteParams::default().grace_period(0)
    };
    let what = || format!("deleting pod {}/{}", facts.namespace, facts.name);
    call(what, pods.delete(&facts.name, &params)).await.map(drop)
}
