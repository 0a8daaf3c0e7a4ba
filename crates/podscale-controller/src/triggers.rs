//! Triggers of event sources, between the objects that have them and the crate that asks the sources. What a trigger
//! refers to is looked up here, and what polls it is kept here. Values of Secrets do not leave this module but into
//! what polls.

mod authentications;
mod cluster;
mod connected;
mod credentials;
mod environment;
mod hidden;
mod identity;
mod lookup;
pub mod offline;
mod pushes;
mod resolve;
mod served;
#[cfg(test)]
mod tests;
mod triggered;
mod vault;

pub(crate) use authentications::AuthenticationName;
pub(crate) use connected::Polled;
pub(crate) use lookup::Reads;
pub(crate) use pushes::{Pushed, topic};
pub(crate) use resolve::Resolution;
pub use triggered::Triggered;

pub(crate) use crate::metrics::OwnerKind;
use crate::metrics::TriggersReport;
use crate::pods::Pods;
use authentications::Authentications;
use cluster::KnownCluster;
use connected::Connected;
use kube::Client;
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use podscale_client::discovery::RestMapper;
use podscale_client::instrument::Instruments;
use podscale_scalers::Context;
use served::Served;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, Semaphore};

/// Where credentials may be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The namespaces whose Secrets and ConfigMaps are read; all if there are none.
    pub namespaces: BTreeSet<String>,
    /// The controller's own namespace, where those are that ClusterTriggerAuthentications refer to.
    pub own_namespace: String,
    /// The folder of the files that ClusterTriggerAuthentications refer to, if there is one.
    pub files: Option<PathBuf>,
}

/// An object that has triggers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectName {
    /// Its namespace.
    pub(crate) namespace: Arc<str>,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Its kind: objects of different ones may be called the same.
    pub(crate) kind: OwnerKind,
}

impl ObjectName {
    /// The key of one of its triggers, which begins with its namespace and its name.
    fn key(&self, index: usize) -> String {
        let kind = match self.kind {
            OwnerKind::ScaledObject => "",
            OwnerKind::ScaledJob => "job-",
            OwnerKind::PodAutoscaler => "pa-",
        };
        format!("{}/{}/{kind}{index}", self.namespace, self.name)
    }
}

/// The triggers of all objects, and what they need.
pub struct Triggers {
    client: Client,
    clock: Clock,
    mapper: RestMapper,
    limits: Limits,
    context: Context,
    pods: Arc<OnceLock<Arc<Pods>>>,
    authentications: Authentications,
    connected: Connected,
    served: Served,
    /// Allows to decrypt a key.
    decrypting: Arc<Semaphore>,
    pushed: Arc<OnceLock<Pushed>>,
    /// For each kind of objects that is resolved by itself: KEDA's, and PodAutoscalers.
    outdated: [Noticed; 2],
    /// Whether somebody follows the authentications.
    are_followed: AtomicBool,
    /// How often authentications have changed.
    changes: AtomicU64,
}

/// What may be outdated, and who waits for that.
#[derive(Default)]
struct Noticed {
    outdated: Mutex<Outdated>,
    is_outdated: Notify,
}

impl Noticed {
    fn note(&self, change: impl FnOnce(&mut Outdated)) {
        change(&mut self.outdated.lock());
        self.is_outdated.notify_one();
    }
}

/// Whose credentials may have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outdated {
    /// Objects whose triggers were refused.
    pub(crate) objects: BTreeSet<ObjectName>,
    /// Objects whose sources did not answer: the address may be part of a Secret, and not every server says that it
    /// hangs up because of a certificate.
    pub(crate) unanswered: BTreeSet<ObjectName>,
    /// Authentications that are new, others or gone.
    pub(crate) authentications: BTreeSet<AuthenticationName>,
}

impl Triggers {
    /// Reads credentials through this client, within these limits.
    #[must_use]
    pub fn new(client: &Client, clock: Clock, limits: Limits) -> Triggers {
        let pods = Arc::default();
        let cluster = KnownCluster::new(client.clone(), Arc::clone(&pods));
        let mut context = Context::new(Arc::new(cluster));
        context.clock = Arc::new(move || clock.now());
        Triggers {
            client: client.clone(),
            clock,
            mapper: RestMapper::new(client.clone(), clock),
            limits,
            context,
            pods,
            authentications: Authentications::default(),
            connected: Connected::default(),
            served: Served::default(),
            decrypting: Arc::new(Semaphore::new(1)),
            pushed: Arc::default(),
            outdated: Default::default(),
            are_followed: AtomicBool::new(false),
            changes: AtomicU64::new(0),
        }
    }

    /// The pods of the cluster, once somebody follows them.
    pub(crate) fn pods(&self) -> Option<&Arc<Pods>> {
        self.pods.get()
    }

    /// How often authentications have changed so far.
    pub(crate) fn authentication_changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Counts these pods where a trigger counts pods.
    pub(crate) fn count_pods(&self, pods: &Arc<Pods>) {
        // Whoever came first stays: there is one store of pods in a process.
        let _ = self.pods.set(Arc::clone(pods));
    }

    /// Follows the authentications of the cluster, for ever; whoever comes first does it for all.
    pub(crate) async fn follow_authentications(&self, client: &Client, instruments: &Instruments) {
        if self.are_followed.swap(true, Ordering::AcqRel) {
            return;
        }
        let changed = |names: BTreeSet<AuthenticationName>| {
            if !names.is_empty() {
                self.changes.fetch_add(1, Ordering::AcqRel);
                for noticed in &self.outdated {
                    noticed.note(|outdated| outdated.authentications.extend(names.iter().cloned()));
                }
            }
        };
        self.authentications.follow(client, instruments, changed).await;
    }

    /// Waits until the authentications of the cluster are known, but not for ever: whoever refers to none can do
    /// without.
    pub(crate) async fn authentications_known(&self) {
        self.authentications.known().await;
    }

    /// Calls this with the topic of an object whenever one of its sources says that there is something to do.
    pub(crate) fn report_pushes(&self, pushed: Pushed) {
        // Whoever came first stays, as above.
        let _ = self.pushed.set(pushed);
    }

    /// Connects what was resolved for an object, in the place of what it had before.
    pub(crate) fn connect(&self, object: &ObjectName, resolution: Resolution) {
        let listeners = pushes::listen(object, resolution.pushes, &self.pushed);
        self.connected.replace(object, resolution.connections, listeners);
    }

    /// Whether a person has paused an object.
    pub(crate) fn note_pause(&self, object: &ObjectName, is_paused: bool) {
        self.connected.note_pause(object, is_paused);
    }

    /// What all triggers gave last, under the names that KEDA has for that.
    pub(crate) fn report(&self) -> TriggersReport {
        self.connected.report()
    }

    /// Forgets an object.
    pub(crate) fn forget(&self, object: &ObjectName) {
        self.connected.remove(object);
        self.served.lock().remove(object);
        let mut outdated = self.noticed(object.kind).outdated.lock();
        outdated.objects.remove(object);
        outdated.unanswered.remove(object);
    }

    /// What a trigger gives now, or gave at its last poll if its object wants no more.
    ///
    /// # Errors
    /// Its source did not answer, or not with a value.
    pub(crate) async fn poll(&self, key: &str) -> Result<Polled, Arc<str>> {
        let Some(connection) = self.connected.get(key) else {
            return Err("the trigger is not connected".into());
        };
        connection.poll(&self.clock).await.map_err(|error| {
            let object = connection.object().clone();
            let noticed = self.noticed(object.kind);
            match error.is_answer {
                // Perhaps what it proves itself with has changed.
                true => noticed.note(|outdated| outdated.objects.extend([object])),
                // Wakes nobody: all triggers of a server may fail, at every poll.
                false => noticed.outdated.lock().unanswered.extend([object]),
            }
            error.problem
        })
    }

    fn noticed(&self, kind: OwnerKind) -> &Noticed {
        let [of_keda, own] = &self.outdated;
        match kind {
            OwnerKind::ScaledObject | OwnerKind::ScaledJob => of_keda,
            OwnerKind::PodAutoscaler => own,
        }
    }

    /// Waits until something may be outdated for objects of a kind.
    pub(crate) async fn outdated(&self, kind: OwnerKind) {
        self.noticed(kind).is_outdated.notified().await;
    }

    /// What may be outdated for objects of a kind since this was last asked.
    pub(crate) fn take_outdated(&self, kind: OwnerKind) -> Outdated {
        std::mem::take(&mut *self.noticed(kind).outdated.lock())
    }
}
