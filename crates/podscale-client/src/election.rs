//! Makes sure that only one of several replicas acts: whoever holds a Lease leads, as Kubernetes' own
//! controllers do it.

pub mod candidate;

use crate::call::{self, About, CallError, segment};
use crate::clock::Clock;
use crate::instrument::Instruments;
use crate::watch::{Change, Presence, follow};
use candidate::{Candidate, LeaseTimings, Record, Step, Stored};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

const GROUP_PATH: &str = "/apis/coordination.k8s.io/v1";
const API_VERSION: &str = "coordination.k8s.io/v1";
const RESOURCE: &str = "leases.coordination.k8s.io";
/// How often releasing the lease is tried before it is left to expire.
const RELEASE_ATTEMPTS: u32 = 5;

/// Whose lease, and for how long.
#[derive(Clone, Debug)]
pub struct Config {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// Who wants it; no two replicas are the same.
    pub identity: String,
    /// For how long.
    pub timings: LeaseTimings,
}

/// A name for this replica that no other has; the same as long as it runs.
#[must_use]
pub fn identity() -> &'static str {
    static IDENTITY: LazyLock<String> = LazyLock::new(new_identity);
    &IDENTITY
}

fn new_identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.map_or_else(|| "podscale".to_owned(), |host| host.trim().to_owned());
    let number = RandomState::new().hash_one(std::process::id());
    format!("{host}_{number:016x}")
}

/// The time during which one replica leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Term {
    /// There is no election.
    Alone,
    /// Counted up from one leader to the next.
    Elected(i32),
}

impl Term {
    /// Whether nobody can have led between the two.
    #[must_use]
    pub fn follows(self, before: Term) -> bool {
        match (self, before) {
            (Term::Alone, Term::Alone) => true,
            (Term::Elected(this), Term::Elected(before)) => Some(this) == before.checked_add(1),
            _ => false,
        }
    }
}

/// Takes part in the election until it is stopped, then releases the lease. `leading` has a term while
/// this replica leads, and has none before the lease can have ended.
pub async fn run(
    client: Client,
    clock: Clock,
    config: Config,
    instruments: Instruments,
    leading: watch::Sender<Option<Term>>,
    mut stopped: watch::Receiver<bool>,
) {
    let spread = RandomState::new().hash_one(&config.identity) % 1024;
    let fraction = f64::from(u32::try_from(spread).unwrap_or(0)) / 1024.0;
    let candidate = Candidate::new(config.identity.clone(), config.timings, fraction);
    let (news, changes) = mpsc::channel(16);
    let (start, metadata) = (Instant::now(), None);
    let mut elector =
        Elector { client, clock, start, config, candidate, leading, metadata, changes };
    let (client, path) = (elector.client.clone(), elector.watch_path());
    let watching = follow(
        &client,
        &path,
        RESOURCE,
        Presence::Always,
        &instruments,
        |change: Change<Value>| {
            let lease = match change {
                Change::All(all) => all.into_iter().next(),
                Change::Applied(lease) => Some(lease),
                Change::Deleted(_) => None,
            };
            // The newest counts; while others wait to be read, the poll will find it.
            let _ = news.try_send(lease);
        },
    );
    tokio::select! {
        biased;
        _ = stopped.wait_for(|stop| *stop) => {}
        () = elector.participate() => {}
        () = watching => {}
    }
    elector.leading.send_replace(None);
    elector.release().await;
}

struct Elector {
    client: Client,
    clock: Clock,
    start: Instant,
    config: Config,
    candidate: Candidate,
    leading: watch::Sender<Option<Term>>,
    /// What others may have put on the lease, and what stays when it is written.
    metadata: Option<Value>,
    changes: mpsc::Receiver<Option<Value>>,
}

impl Elector {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn folder(&self) -> String {
        format!("{GROUP_PATH}/namespaces/{}/leases", segment(&self.config.namespace))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.folder(), segment(&self.config.name))
    }

    fn watch_path(&self) -> String {
        let selector = format!("metadata.name={}", self.config.name);
        format!("{}{}", self.folder(), call::query(&[("fieldSelector", &selector)]))
    }

    async fn participate(&mut self) {
        loop {
            match self.candidate.next(self.now(), self.clock.now()) {
                Step::Read => self.read().await,
                Step::Write(record, version) => self.write(record, version).await,
                Step::Resign => {
                    match self.candidate.holder() {
                        own if own == self.config.identity => {
                            tracing::warn!("no longer the leader: the lease could not be renewed");
                        }
                        holder => tracing::warn!(holder, "no longer the leader"),
                    }
                    self.candidate.resigned(self.now());
                    self.leading.send_replace(None);
                }
                Step::Wait(time) => {
                    tokio::select! {
                        biased;
                        change = self.changes.recv() => match change {
                            Some(lease) => self.see(lease),
                            None => tokio::time::sleep(time).await,
                        },
                        () = tokio::time::sleep(time) => {}
                    }
                }
            }
        }
    }

    fn see(&mut self, lease: Option<Value>) {
        let before = self.candidate.holder().to_owned();
        self.candidate.see(lease.as_ref().and_then(stored), self.start.elapsed());
        self.metadata = lease.and_then(|mut lease| Some(lease.get_mut("metadata")?.take()));
        let holder = self.candidate.holder();
        if holder != before && !holder.is_empty() && holder != self.config.identity {
            tracing::info!(holder, "another replica leads");
        }
    }

    /// A call may take no longer than the leader may lead on without its success.
    async fn within<T>(
        &self,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        let most = self.candidate.remaining(self.now()).unwrap_or(self.config.timings.renew);
        let late = || CallError::Unreachable(format!("no answer within {most:.1?}"));
        tokio::time::timeout(most, call).await.unwrap_or_else(|_| Err(late()))
    }

    fn about(&self) -> About<'_> {
        About { resource: RESOURCE, name: &self.config.name }
    }

    async fn read(&mut self) {
        let path = self.path();
        let answer = self.within(call::get::<Value>(&self.client, &path, self.about())).await;
        match answer {
            Ok(lease) => self.see(Some(lease)),
            Err(error) if error.is_not_found() => self.see(None),
            Err(error) => {
                tracing::warn!(%error, "cannot read the lease");
                self.candidate.failed(false, self.now());
            }
        }
    }

    async fn write(&mut self, record: Record, version: Option<String>) {
        let (began, exists) = (self.now(), version.is_some());
        match self.within(self.send(&record, version)).await {
            Ok(stored) => {
                self.candidate.wrote(stored, began, self.now());
                let term = Some(Term::Elected(self.candidate.transitions()));
                if self.leading.send_replace(term).is_none() {
                    tracing::info!(identity = self.config.identity, "leading");
                }
            }
            Err(error) => {
                // What cannot be made because something is not found has no namespace.
                let gone = exists && error.is_not_found();
                let stale = error.is_conflict() || error.is_already_exists() || gone;
                if stale {
                    tracing::debug!(%error, "another candidate wrote the lease");
                } else {
                    tracing::warn!(%error, "cannot write the lease");
                }
                self.candidate.failed(stale, self.now());
            }
        }
    }

    async fn send(&self, record: &Record, version: Option<String>) -> Result<Stored, CallError> {
        let (verb, path) = match version {
            Some(_) => ("PUT", self.path()),
            None => ("POST", self.folder()),
        };
        let lease = wire(&self.config, record, self.metadata.as_ref(), version);
        let answer = call::send::<Value>(&self.client, verb, &path, &lease, self.about()).await?;
        let unreadable = || CallError::Unreadable("the answer is not a lease".to_owned());
        stored(&answer).ok_or_else(unreadable)
    }

    /// Empties the lease, so that another replica can lead at once.
    async fn release(&mut self) {
        for _ in 0..RELEASE_ATTEMPTS {
            let Some((record, version)) = self.candidate.release(self.clock.now()) else { return };
            match self.within(self.send(&record, Some(version))).await {
                Ok(_) => {
                    tracing::info!("released the lease");
                    return;
                }
                Err(error) if error.is_conflict() => self.read().await,
                Err(error) => {
                    tracing::warn!(%error, "cannot release the lease");
                    return;
                }
            }
        }
    }
}

/// The content of a stored lease.
fn stored(lease: &Value) -> Option<Stored> {
    let version = lease.pointer("/metadata/resourceVersion")?.as_str()?.to_owned();
    let spec = |field: &str| lease.pointer(&format!("/spec/{field}"));
    let number = |field| spec(field).and_then(Value::as_i64).and_then(|n| i32::try_from(n).ok());
    let time = |field| spec(field)?.as_str()?.parse::<Timestamp>().ok();
    let record = Record {
        holder: spec("holderIdentity").and_then(Value::as_str).unwrap_or_default().to_owned(),
        seconds: number("leaseDurationSeconds").unwrap_or(0),
        acquired: time("acquireTime"),
        renewed: time("renewTime"),
        transitions: number("leaseTransitions").unwrap_or(0),
    };
    Some(Stored { record, version })
}

fn wire(
    config: &Config,
    record: &Record,
    metadata: Option<&Value>,
    version: Option<String>,
) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| format!("{time:.6}"));
    let mut fields = match (metadata, &version) {
        (Some(Value::Object(fields)), Some(_)) => fields.clone(),
        _ => serde_json::Map::new(),
    };
    fields.remove("managedFields");
    fields.insert("name".to_owned(), config.name.clone().into());
    fields.insert("namespace".to_owned(), config.namespace.clone().into());
    if let Some(version) = version {
        fields.insert("resourceVersion".to_owned(), version.into());
    }
    json!({
        "apiVersion": API_VERSION, "kind": "Lease", "metadata": fields,
        "spec": {
            "holderIdentity": record.holder, "leaseDurationSeconds": record.seconds,
            "acquireTime": time(record.acquired), "renewTime": time(record.renewed),
            "leaseTransitions": record.transitions,
        },
    })
}

#[cfg(test)]
mod tests;
