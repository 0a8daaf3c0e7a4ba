//! The simplest of kubelets, a client of the API server: pods run as soon as they exist, or as the
//! test says. Pods need no node for this; without one they also end at once when deleted.

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use parking_lot::Mutex;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::{Notify, Semaphore};
use tokio::task::{AbortHandle, JoinSet};

/// How many pods are written at the same time.
const CONCURRENT_WRITES: usize = 16;

/// How far pods get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Life {
    /// They wait for a place.
    Pending,
    /// They run, but are not ready.
    Unready,
    /// They run and are ready.
    #[default]
    Ready,
}

/// One pod as the kubelet knows it.
#[derive(Clone, Debug)]
pub struct Row {
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub containers: Vec<String>,
    /// What was written last; none before anything was.
    pub life: Option<Life>,
    started: Option<Timestamp>,
    /// It is deleted, or has come to an end of its own: nothing is written any more.
    ended: bool,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<(String, String), Row>,
    lives: HashMap<String, Life>,
}

/// Runs all pods of a cluster.
#[derive(Clone)]
pub struct Kubelet {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    _tasks: Arc<Tasks>,
}

struct Tasks(Vec<AbortHandle>);

impl Drop for Tasks {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

impl Kubelet {
    /// Begins to run pods.
    pub fn start(client: &Client) -> Kubelet {
        let (state, changed) = (Arc::<Mutex<State>>::default(), Arc::<Notify>::default());
        let follow = tokio::spawn(follow(client.clone(), Arc::clone(&state), Arc::clone(&changed)));
        let tend = tokio::spawn(tend(client.clone(), Arc::clone(&state), Arc::clone(&changed)));
        let _tasks = Arc::new(Tasks(vec![follow.abort_handle(), tend.abort_handle()]));
        Kubelet { state, changed, _tasks }
    }

    /// Says how far the pods of a namespace get, those that exist and those to come.
    pub fn set(&self, namespace: &str, life: Life) {
        self.state.lock().lives.insert(namespace.to_owned(), life);
        self.changed.notify_one();
    }

    /// The pods that run, of a namespace or of all.
    pub fn running(&self, namespace: Option<&str>) -> Vec<Row> {
        let state = self.state.lock();
        let here = |row: &&Row| namespace.is_none_or(|wanted| row.namespace == wanted);
        let runs = |row: &&Row| matches!(row.life, Some(Life::Ready | Life::Unready));
        let rows = state.rows.values().filter(here).filter(runs);
        rows.filter(|row| !row.ended).cloned().collect()
    }
}

async fn follow(client: Client, state: Arc<Mutex<State>>, changed: Arc<Notify>) {
    let pods = Api::<Pod>::all(client);
    let mut events = Box::pin(watcher(pods, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        // What cannot be watched now is watched again.
        let Ok(event) = event else { continue };
        let mut state = state.lock();
        match event {
            Event::Init => state.rows.clear(),
            Event::InitApply(pod) | Event::Apply(pod) => state.take(pod),
            Event::Delete(pod) => drop(state.rows.remove(&key(&pod))),
            Event::InitDone => {}
        }
        changed.notify_one();
    }
}

fn key(pod: &Pod) -> (String, String) {
    let meta = &pod.metadata;
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

impl State {
    fn take(&mut self, pod: Pod) {
        let key = key(&pod);
        let status = pod.status.as_ref();
        let ready = status.and_then(|s| s.conditions.as_ref()).is_some_and(|all| {
            all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
        });
        let phase = status.and_then(|status| status.phase.as_deref());
        let life = match phase {
            Some("Running") if ready => Some(Life::Ready),
            Some("Running") => Some(Life::Unready),
            _ => None,
        };
        let spec = pod.spec.unwrap_or_default();
        let row = Row {
            namespace: key.0.clone(),
            name: key.1.clone(),
            labels: pod.metadata.labels.unwrap_or_default(),
            containers: spec.containers.into_iter().map(|container| container.name).collect(),
            life,
            started: status.and_then(|s| s.start_time.as_ref()).map(|time| time.0),
            ended: pod.metadata.deletion_timestamp.is_some()
                || matches!(phase, Some("Succeeded" | "Failed")),
        };
        self.rows.insert(key, row);
    }

    /// Pods that are not yet where they should be, and what that is.
    fn behind(&self) -> Vec<(Row, Life)> {
        let wanted = |row: &Row| self.lives.get(&row.namespace).copied().unwrap_or_default();
        let rows = self.rows.values().filter(|row| !row.ended);
        let rows = rows.map(|row| (row, wanted(row)));
        let behind = rows.filter(|(row, life)| row.life.unwrap_or(Life::Pending) != *life);
        behind.map(|(row, life)| (row.clone(), life)).collect()
    }
}

async fn tend(client: Client, state: Arc<Mutex<State>>, changed: Arc<Notify>) {
    let places = Arc::new(Semaphore::new(CONCURRENT_WRITES));
    loop {
        changed.notified().await;
        let behind = state.lock().behind();
        let mut writes = JoinSet::new();
        for (row, life) in behind {
            let (client, places, state) = (client.clone(), Arc::clone(&places), Arc::clone(&state));
            writes.spawn(async move {
                let _place = places.acquire().await;
                write(&client, &row, life, &state).await;
            });
        }
        while writes.join_next().await.is_some() {}
    }
}

async fn write(client: &Client, row: &Row, life: Life, state: &Mutex<State>) {
    let now = Timestamp::now();
    let started = row.started.unwrap_or(now);
    let time = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let ready = if life == Life::Ready { "True" } else { "False" };
    let status = match life {
        Life::Pending => json!({"status": {"phase": "Pending"}}),
        _ => json!({"status": {"phase": "Running", "startTime": time(started), "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": time(now)}]}}),
    };
    let pods = Api::<Pod>::namespaced(client.clone(), &row.namespace);
    let patch = Patch::Strategic(&status);
    if pods.patch_status(&row.name, &PatchParams::default(), &patch).await.is_ok() {
        let mut state = state.lock();
        let key = (row.namespace.clone(), row.name.clone());
        if let Some(row) = state.rows.get_mut(&key) {
            (row.life, row.started) = (Some(life), Some(started));
        }
    }
}
