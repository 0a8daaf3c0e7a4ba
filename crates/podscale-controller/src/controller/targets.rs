//! The sizes of the usual targets, kept up to date by watching them, so that reading a scale costs
//! no call. A kind is watched from the moment somebody asks for one of its objects.

mod wire;

use crate::metrics::Metrics;
use crate::readiness::Readiness;
use kube::Client;
use parking_lot::{Mutex, RwLock};
use podscale_api::meta::{ObjectMeta, OwnerReference};
use podscale_api::scale::Scale;
use podscale_client::discovery::Resource;
use podscale_client::instrument::Instruments;
use podscale_client::resource_version::is_newer;
use podscale_client::watch::{Change, Presence, follow};
use podscale_core::model::TargetRef;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::{Wire, WireMeta, selector_text};

/// A kind that is watched.
struct Names {
    group: &'static str,
    kind: &'static str,
    /// Its name in paths.
    plural: &'static str,
    path: &'static str,
    /// Its name in errors.
    qualified: &'static str,
    /// What is missing before it is known.
    list: &'static str,
}

/// The kind between Deployments and their pods.
const REPLICA_SET: &str = "ReplicaSet";

const KINDS: [Names; 4] = [
    Names {
        group: "apps",
        kind: "Deployment",
        plural: "deployments",
        path: "/apis/apps/v1/deployments",
        qualified: "deployments.apps",
        list: "the list of deployments",
    },
    Names {
        group: "apps",
        kind: REPLICA_SET,
        plural: "replicasets",
        path: "/apis/apps/v1/replicasets",
        qualified: "replicasets.apps",
        list: "the list of replica sets",
    },
    Names {
        group: "apps",
        kind: "StatefulSet",
        plural: "statefulsets",
        path: "/apis/apps/v1/statefulsets",
        qualified: "statefulsets.apps",
        list: "the list of stateful sets",
    },
    Names {
        group: "",
        kind: "ReplicationController",
        plural: "replicationcontrollers",
        path: "/api/v1/replicationcontrollers",
        qualified: "replicationcontrollers",
        list: "the list of replication controllers",
    },
];

/// How long the first list of a kind is waited for; wall-clock.
const FIRST_LIST_DEADLINE: Duration = Duration::from_secs(5);

/// The watched targets.
pub(super) struct Targets {
    client: Client,
    metrics: Metrics,
    readiness: Readiness,
    kinds: [Kind; KINDS.len()],
    watches: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Kind {
    /// Since when it is watched.
    since: OnceLock<Instant>,
    known: Arc<Known>,
}

#[derive(Default)]
struct Known {
    synced: watch::Sender<bool>,
    namespaces: RwLock<Namespaces>,
}

/// Workloads by namespace and name.
type Namespaces = HashMap<Box<str>, HashMap<Box<str>, Workload>>;

/// As much of a workload as its scale needs.
#[derive(Clone, Debug)]
struct Workload {
    uid: Box<str>,
    version: Box<str>,
    wanted: i32,
    existing: i32,
    selector: Arc<str>,
    /// To whom it belongs, unless that is to another workload.
    owners: Option<Arc<[OwnerReference]>>,
    /// The uid of the object that controls it, if one does.
    controller: Option<Box<str>>,
}

/// A workload that belongs to an autoscaler.
pub(super) struct Owned {
    /// The version that was seen.
    pub(super) version: Box<str>,
    /// To whom it belongs besides.
    pub(super) others: Vec<OwnerReference>,
}

impl Targets {
    /// Watches through this API server.
    pub(super) fn new(client: Client, metrics: Metrics, readiness: Readiness) -> Targets {
        let (kinds, watches) = Default::default();
        Targets { client, metrics, readiness, kinds, watches }
    }

    /// Begins to watch the kinds that these autoscalers name, before any of them is decided. Until
    /// their lists are there, or cannot be had, the program is not ready: each size would have to be
    /// asked for.
    pub(super) fn expect<'a>(&self, named: impl Iterator<Item = &'a TargetRef>) {
        for TargetRef { api_version, kind, .. } in named {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            // A kind may also be written in lower case.
            let is_it = |k: &Names| k.group == group && k.kind.eq_ignore_ascii_case(kind);
            let place = KINDS.iter().position(is_it);
            if let Some(place) = place
                && self.kinds.get(place).is_some_and(|kind| kind.since.get().is_none())
            {
                self.readiness.needs(KINDS[place].list);
                self.watched(place);
            }
        }
    }

    /// The scale of a target as the last change left it; `None` if its kind is not watched, not
    /// known in time, or has no such object: then the API server has the word.
    pub(super) async fn scale(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Option<Scale> {
        let (known, since) = self.known(resource)?;
        let namespaces = known.in_time(since).await?.read();
        let workload = namespaces.get(namespace)?.get(name)?;
        let mut scale = Scale {
            kind: "Scale".to_owned(),
            api_version: "autoscaling/v1".to_owned(),
            ..Scale::default()
        };
        scale.metadata.name = name.to_owned();
        scale.metadata.namespace = namespace.to_owned();
        scale.metadata.uid = workload.uid.to_string();
        scale.metadata.resource_version = workload.version.to_string();
        scale.spec.replicas = workload.wanted;
        scale.status.replicas = workload.existing;
        scale.status.selector = workload.selector.to_string();
        Some(scale)
    }

    /// Whether a target belongs to the object of this uid, as the last change left it.
    pub(super) fn owned(
        &self,
        resource: &Resource,
        target: &ObjectMeta,
        uid: &str,
    ) -> Option<Owned> {
        self.known(resource)?.0.owned(target, uid)
    }

    /// The uids of the objects that control the replica sets of a namespace, by the names of those;
    /// `None` if replica sets are not known in time.
    pub(super) async fn replica_set_controllers(
        &self,
        namespace: &str,
        names: &BTreeSet<&str>,
    ) -> Option<HashMap<Box<str>, Box<str>>> {
        let place = KINDS.iter().position(|kind| kind.kind == REPLICA_SET)?;
        let (known, since) = self.watched(place)?;
        let namespaces = known.in_time(since).await?.read();
        let Some(here) = namespaces.get(namespace) else { return Some(HashMap::new()) };
        let controller = |name: &&str| {
            let (name, workload) = here.get_key_value(*name)?;
            Some((name.clone(), workload.controller.clone()?))
        };
        Some(names.iter().filter_map(controller).collect())
    }

    /// Takes in a scale that was just written, so that the next reconcile does not read the old one.
    pub(super) fn wrote(&self, resource: &Resource, scale: &Scale) {
        let Some((known, _)) = self.known(resource) else { return };
        let mut namespaces = known.namespaces.write();
        let namespace = namespaces.get_mut(scale.metadata.namespace.as_str());
        let workload = namespace.and_then(|n| n.get_mut(scale.metadata.name.as_str()));
        if let Some(workload) = workload
            && *workload.uid == *scale.metadata.uid
            && is_newer(&scale.metadata.resource_version, &workload.version)
        {
            workload.version = scale.metadata.resource_version.as_str().into();
            workload.wanted = scale.spec.replicas;
        }
    }

    /// How many targets are known.
    pub(super) fn len(&self) -> usize {
        let of_kind =
            |kind: &Kind| kind.known.namespaces.read().values().map(HashMap::len).sum::<usize>();
        self.kinds.iter().map(of_kind).sum()
    }

    /// What is known of a kind, and since when it is watched; the first question begins the watch.
    fn known(&self, resource: &Resource) -> Option<(&Known, Instant)> {
        let is_it =
            |kind: &Names| *resource.group == *kind.group && *resource.plural == *kind.plural;
        self.watched(KINDS.iter().position(is_it)?)
    }

    fn watched(&self, place: usize) -> Option<(&Known, Instant)> {
        let kind = self.kinds.get(place)?;
        let since = kind.since.get_or_init(|| {
            let Names { path, qualified, list, .. } = KINDS[place];
            let (client, known) = (self.client.clone(), Arc::clone(&kind.known));
            let instruments: Instruments = Arc::new(self.metrics.clone());
            let readiness = self.readiness.clone();
            let since = Instant::now();
            self.watches.lock().spawn(async move {
                let watching =
                    follow(&client, path, qualified, Presence::Always, &instruments, |change| {
                        let whole = matches!(change, Change::All(_));
                        known.take_in(change);
                        if whole {
                            readiness.has(list);
                        }
                    });
                // From then on nobody waits for the list, which may be forbidden.
                let deadline = async {
                    tokio::time::sleep_until(since + FIRST_LIST_DEADLINE).await;
                    readiness.has(list);
                };
                tokio::join!(watching, deadline);
            });
            since
        });
        Some((&kind.known, *since))
    }
}

impl Known {
    fn owned(&self, target: &ObjectMeta, uid: &str) -> Option<Owned> {
        let namespaces = self.namespaces.read();
        let workload = namespaces.get(&*target.namespace)?.get(&*target.name)?;
        let owners = workload.owners.as_ref().filter(|_| *workload.uid == *target.uid)?;
        let others: Vec<_> = owners.iter().filter(|owner| owner.uid != uid).cloned().collect();
        let owned = others.len() < owners.len();
        owned.then(|| Owned { version: workload.version.clone(), others })
    }

    /// The workloads, once their list is there. All who ask at the beginning wait for one list rather
    /// than ask one by one; if the list cannot be had, nobody waits later.
    async fn in_time(&self, since: Instant) -> Option<&RwLock<Namespaces>> {
        let mut synced = self.synced.subscribe();
        let synced = synced.wait_for(|synced| *synced);
        let known = tokio::time::timeout_at(since + FIRST_LIST_DEADLINE, synced).await;
        matches!(known, Ok(Ok(_))).then_some(&self.namespaces)
    }

    fn take_in(&self, change: Change<Wire>) {
        let mut namespaces = self.namespaces.write();
        match change {
            Change::All(all) => {
                namespaces.clear();
                all.into_iter().for_each(|wire| put(&mut namespaces, wire));
                self.synced.send_replace(true);
            }
            Change::Applied(wire) => put(&mut namespaces, wire),
            Change::Deleted(wire) => {
                let WireMeta { name, namespace, .. } = wire.metadata;
                if let Some(here) = namespaces.get_mut(&namespace) {
                    here.remove(&name);
                    if here.is_empty() {
                        namespaces.remove(&namespace);
                    }
                }
            }
        }
    }
}

fn put(namespaces: &mut Namespaces, wire: Wire) {
    let Wire { metadata, spec, status } = wire;
    let controller = metadata.controller();
    let selector = spec.selector.map(selector_text).unwrap_or_default();
    // No autoscaler is of the group of the workloads, and all replica sets belong to one of them.
    let of_workload = |owner: &OwnerReference| owner.api_version.starts_with("apps/");
    let owners = metadata.owner_references.filter(|owners| !owners.iter().all(of_workload));
    let here = namespaces.entry(metadata.namespace).or_default();
    if let Some(before) = here.get_mut(&metadata.name)
        && before.uid == metadata.uid
    {
        // What was written a moment ago may be newer than what the watch tells.
        if is_newer(&before.version, &metadata.resource_version) {
            return;
        }
        (before.wanted, before.existing) = (spec.replicas.unwrap_or(1), status.replicas);
        before.version = metadata.resource_version;
        before.owners = owners.map(Arc::from);
        before.controller = controller;
        if *before.selector != *selector {
            before.selector = selector.into();
        }
        return;
    }
    let workload = Workload {
        uid: metadata.uid,
        version: metadata.resource_version,
        wanted: spec.replicas.unwrap_or(1),
        existing: status.replicas,
        selector: selector.into(),
        owners: owners.map(Arc::from),
        controller,
    };
    here.insert(metadata.name, workload);
}

#[cfg(test)]
mod tests;
