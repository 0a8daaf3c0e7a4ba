//! The garbage collector: deletes objects whose owners are gone, holds owners that wait for their
//! dependents, and lets dependents go that are to outlive their owner.

pub mod graph;

use super::Context;
use super::kinds::{Kind, Kinds};
use super::queue::{Next, Queue, Shutdown, ended};
use crate::call::{CallError, call, gone_is_fine};
use futures::StreamExt;
use graph::{Action, FOREGROUND, Graph, Item, ORPHAN};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::core::{DynamicObject, PartialObjectMeta};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// How many objects are worked on at a time.
const WORKERS: usize = 16;
/// How long to wait before an owner of an unknown kind is searched for again.
const UNKNOWN_KIND: Duration = Duration::from_secs(30);
/// Kinds that come in masses and own nothing.
const IGNORED: [&str; 2] = ["events.", "events.events.k8s.io"];

type Objects = Api<PartialObjectMeta<DynamicObject>>;

/// Collects garbage.
pub struct Collector {
    context: Context,
    kinds: Kinds,
    graph: Mutex<Graph>,
    queue: Queue<String>,
    /// The kinds whose objects are all in the graph.
    complete: watch::Sender<BTreeSet<String>>,
}

impl Collector {
    /// Returns what works until the shutdown.
    pub fn start(
        context: Context,
        kinds: Kinds,
        shutdown: Shutdown,
    ) -> impl Future<Output = ()> + Send + use<> {
        let this = Arc::new(Collector {
            queue: Queue::new("garbage", context.clock),
            kinds,
            graph: Mutex::default(),
            complete: watch::channel(BTreeSet::new()).0,
            context,
        });
        async move {
            let watching = Arc::clone(&this).watch_kinds(shutdown.clone());
            let worker = Arc::clone(&this);
            let work = move |uid: String| {
                let this = Arc::clone(&worker);
                async move { this.examine(&uid).await }
            };
            let collecting = async {
                // An owner must not seem absent only because its kind is not listed yet.
                this.all_listed().await;
                this.queue.clone().run(WORKERS, shutdown, work).await;
            };
            tokio::join!(watching, collecting);
        }
    }

    async fn all_listed(&self) {
        let mut kinds = self.kinds.subscribe();
        // The senders live as long as `self`.
        let _ = kinds.wait_for(|kinds| !kinds.is_empty()).await;
        let all: BTreeSet<String> =
            self.kinds.known().iter().filter(|kind| is_watched(kind)).map(Kind::id).collect();
        let mut complete = self.complete.subscribe();
        let _ = complete.wait_for(|complete| all.is_subset(complete)).await;
    }

    /// Watches the objects of each kind as long as there is such a kind.
    async fn watch_kinds(self: Arc<Self>, mut shutdown: Shutdown) {
        let mut known = self.kinds.subscribe();
        let mut tasks = JoinSet::new();
        let mut watched: BTreeMap<String, AbortHandle> = BTreeMap::new();
        loop {
            let kinds = Arc::clone(&known.borrow_and_update());
            let wanted: BTreeSet<String> =
                kinds.iter().filter(|kind| is_watched(kind)).map(Kind::id).collect();
            watched.retain(|id, task| {
                let keep = wanted.contains(id);
                if !keep {
                    task.abort();
                    self.forget_kind(id);
                }
                keep
            });
            for kind in kinds.iter().filter(|kind| is_watched(kind)) {
                watched
                    .entry(kind.id())
                    .or_insert_with(|| tasks.spawn(Arc::clone(&self).watch_kind(kind.clone())));
            }
            tokio::select! {
                biased;
                () = ended(&mut shutdown) => return,
                changed = known.changed() => if changed.is_err() { return },
                Some(_) = tasks.join_next() => {}
            }
        }
    }

    async fn watch_kind(self: Arc<Self>, kind: Kind) {
        let id = kind.id();
        let objects = Objects::all_with(self.context.client.clone(), &kind.resource);
        let mut events = Box::pin(watcher(objects, watcher::Config::default()).default_backoff());
        // Of the objects of this kind: those known, and those seen in a list under way.
        let (mut known, mut listed) = (BTreeSet::new(), BTreeSet::new());
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(object)) => {
                    let uid = object.metadata.uid.clone().unwrap_or_default();
                    listed.insert(uid.clone());
                    self.observe(&uid, Some(Item::new(&id, &object.metadata)));
                }
                Ok(watcher::Event::InitDone) => {
                    for uid in known.difference(&listed) {
                        self.observe(uid, None);
                    }
                    known = std::mem::take(&mut listed);
                    self.complete.send_if_modified(|complete| complete.insert(id.clone()));
                }
                Ok(watcher::Event::Apply(object)) => {
                    let uid = object.metadata.uid.clone().unwrap_or_default();
                    if known.insert(uid.clone()) && defines_kinds(&id) {
                        self.kinds.refresh();
                    }
                    self.observe(&uid, Some(Item::new(&id, &object.metadata)));
                }
                Ok(watcher::Event::Delete(object)) => {
                    let uid = object.metadata.uid.clone().unwrap_or_default();
                    known.remove(&uid);
                    self.observe(&uid, None);
                    if defines_kinds(&id) {
                        self.kinds.refresh();
                    }
                }
                Err(error) => tracing::debug!(kind = id, %error, "watch broke; started again"),
            }
        }
    }

    fn forget_kind(&self, id: &str) {
        self.complete.send_if_modified(|complete| complete.remove(id));
        let lost = self.graph.lock().of_kind(id);
        for uid in lost {
            self.observe(&uid, None);
        }
    }

    fn observe(&self, uid: &str, item: Option<Item>) {
        let concerned = self.graph.lock().observe(uid, item);
        for uid in concerned {
            self.queue.add(uid);
        }
    }

    async fn examine(&self, uid: &str) -> Result<Next, CallError> {
        let (item, action) = {
            let graph = self.graph.lock();
            let Some(item) = graph.item(uid).cloned() else { return Ok(Next::Wait) };
            (item, graph.decide(uid))
        };
        match action {
            Action::Nothing => Ok(Next::Wait),
            Action::Verify(owners) => self.verify(uid, &item, &owners).await,
            Action::Unlink(owners) => self.unlink(uid, &item, &owners).await,
            Action::Delete => self.delete(uid, &item, DeleteParams::background()).await,
            Action::DeleteInForeground => self.delete(uid, &item, DeleteParams::foreground()).await,
            Action::Orphan(dependents) => self.orphan(uid, &item, &dependents).await,
            Action::Finish => self.take_off(uid, &item, FOREGROUND).await,
            Action::Await(dependents) => {
                dependents.into_iter().for_each(|dependent| self.queue.add(dependent));
                Ok(Next::Wait)
            }
        }
    }

    fn objects(&self, kind: &Kind, namespace: &str) -> Objects {
        let client = self.context.client.clone();
        if kind.namespaced {
            Objects::namespaced_with(client, namespace, &kind.resource)
        } else {
            Objects::all_with(client, &kind.resource)
        }
    }

    fn objects_of(&self, item: &Item) -> Result<Objects, CallError> {
        let kinds = self.kinds.known();
        let kind = kinds.iter().find(|kind| kind.id() == item.kind);
        let unknown = || CallError::Object { what: item.kind.clone(), why: "unknown kind".into() };
        kind.map(|kind| self.objects(kind, &item.namespace)).ok_or_else(unknown)
    }

    /// Asks for owners that the graph does not know.
    async fn verify(
        &self,
        uid: &str,
        item: &Item,
        owners: &[OwnerReference],
    ) -> Result<Next, CallError> {
        let kinds = self.kinds.known();
        for owner in owners {
            let kind = kinds.iter().find(|kind| {
                let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
                kind.resource.kind == owner.kind && kind.resource.group == group
            });
            let Some(kind) = kind else { return Ok(Next::After(UNKNOWN_KIND)) };
            let objects = self.objects(kind, &item.namespace);
            let what = || format!("find owner {} {}", owner.kind, owner.name);
            let found = call(what, objects.get_opt(&owner.name)).await?;
            match found.filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid)) {
                Some(found) => {
                    self.observe(&owner.uid, Some(Item::new(&kind.id(), &found.metadata)));
                }
                None => self.graph.lock().is_absent(&owner.uid),
            }
        }
        self.queue.add(uid.to_owned());
        Ok(Next::Wait)
    }

    /// The object as it is now; none if it is gone or another of the same name.
    async fn fresh(&self, uid: &str, item: &Item) -> Result<Option<ObjectMeta>, CallError> {
        let objects = self.objects_of(item)?;
        let found =
            call(|| format!("read {} {}", item.kind, item.name), objects.get_opt(&item.name));
        let found = found.await?.map(|found| found.meta().clone());
        Ok(found.filter(|found| found.uid.as_deref() == Some(uid)))
    }

    async fn patch(&self, item: &Item, patch: &serde_json::Value) -> Result<(), CallError> {
        let objects = self.objects_of(item)?;
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        let what = || format!("change {} {}", item.kind, item.name);
        gone_is_fine(call(what, objects.patch(&item.name, &params, &patch)).await)
    }

    async fn unlink(&self, uid: &str, item: &Item, gone: &[String]) -> Result<Next, CallError> {
        if let Some(meta) = self.fresh(uid, item).await? {
            let owners = meta.owner_references.unwrap_or_default();
            let left: Vec<_> = owners.iter().filter(|owner| !gone.contains(&owner.uid)).collect();
            if left.len() < owners.len() {
                let patch = json!({"metadata": {"uid": uid, "ownerReferences": left,
                    "resourceVersion": meta.resource_version}});
                self.patch(item, &patch).await?;
            }
        }
        Ok(Next::Wait)
    }

    async fn delete(
        &self,
        uid: &str,
        item: &Item,
        params: DeleteParams,
    ) -> Result<Next, CallError> {
        // The references may have changed since the watch showed them.
        let Some(meta) = self.fresh(uid, item).await? else { return Ok(Next::Wait) };
        let current = Item::new(&item.kind, &meta);
        if current != *item {
            self.observe(uid, Some(current));
            return Ok(Next::Wait);
        }
        let preconditions =
            Preconditions { uid: Some(uid.to_owned()), resource_version: meta.resource_version };
        let params = DeleteParams { preconditions: Some(preconditions), ..params };
        let objects = self.objects_of(item)?;
        let what = || format!("delete {} {}", item.kind, item.name);
        gone_is_fine(call(what, objects.delete(&item.name, &params)).await)?;
        Ok(Next::Wait)
    }

    async fn orphan(
        &self,
        uid: &str,
        item: &Item,
        dependents: &[String],
    ) -> Result<Next, CallError> {
        let owner = [uid.to_owned()];
        for dependent in dependents {
            let known = self.graph.lock().item(dependent).cloned();
            if let Some(known) = known {
                self.unlink(dependent, &known, &owner).await?;
            }
        }
        self.take_off(uid, item, ORPHAN).await
    }

    async fn take_off(&self, uid: &str, item: &Item, finalizer: &str) -> Result<Next, CallError> {
        if let Some(meta) = self.fresh(uid, item).await? {
            let finalizers = meta.finalizers.unwrap_or_default();
            let left: Vec<_> = finalizers.iter().filter(|known| *known != finalizer).collect();
            if left.len() < finalizers.len() {
                let patch = json!({"metadata": {"uid": uid, "finalizers": left,
                    "resourceVersion": meta.resource_version}});
                self.patch(item, &patch).await?;
            }
        }
        Ok(Next::Wait)
    }
}

fn is_watched(kind: &Kind) -> bool {
    kind.watchable && !IGNORED.contains(&kind.id().as_str())
}

/// Whether objects of this kind bring new kinds.
fn defines_kinds(id: &str) -> bool {
    id == "customresourcedefinitions.apiextensions.k8s.io"
        || id == "apiservices.apiregistration.k8s.io"
}
