//! What is seen of a scenario: sizes in their order, conditions, status and events, without times.

use super::super::super::fixture::Workspace;
use super::scenario::{OBJECT, Scenario, TARGET};
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use tokio::task::JoinSet;
use watcher::Event;

/// Lines by what they are about: `replicas`, `condition Ready`, `status hpaName`, `event ScaledObjectReady …`.
pub type Seen = BTreeMap<String, String>;

/// What events say that are of the moment, or of a machine that is too busy: what they are about is tried again.
const CHANCE: [&str; 3] =
    ["the object has been modified", "context deadline exceeded", "context canceled"];

/// Fields of the status that are compared as they are.
const STATUS: [&str; 10] = [
    "authenticationsTypes",
    "compositeScalerName",
    "externalMetricNames",
    "hpaName",
    "originalReplicaCount",
    "pausedReplicaCount",
    "resourceMetricNames",
    "scaleTargetKind",
    "triggersActivity",
    "triggersTypes",
];

#[derive(Default)]
struct State {
    /// The sizes of the target since the step began; the first is the one before it.
    sizes: Vec<String>,
    object: Option<Value>,
    /// Jobs by name, and whether they have ended.
    jobs: BTreeMap<String, bool>,
    /// How many Jobs there have ever been.
    made: BTreeSet<String>,
    /// Events since the step began.
    events: BTreeSet<(String, String)>,
    /// Those of the steps before, which are not told again.
    told: BTreeSet<(String, String)>,
}

/// Sees what happens in a scenario until it is dropped.
pub struct Watcher {
    state: Arc<Mutex<State>>,
    address: String,
    namespace: String,
    jobs: bool,
    _tasks: JoinSet<()>,
}

impl Watcher {
    /// Begins to look; triggers ask the server at an address, which is not told.
    pub fn start(workspace: &Workspace, scenario: &Scenario, address: &str) -> Watcher {
        let state = Arc::<Mutex<State>>::default();
        let mut tasks = JoinSet::new();
        let kinds: [(&str, &str, fn(&mut State, Change)); 4] = [
            ("apps/v1", "Deployment", target),
            (super::super::VERSION, scenario.kind(), object),
            ("batch/v1", "Job", job),
            ("events.k8s.io/v1", "Event", event),
        ];
        for (version, kind, note) in kinds {
            tasks.spawn(follow(workspace.api(version, kind), Arc::clone(&state), note));
        }
        Watcher {
            state,
            address: address.to_owned(),
            namespace: workspace.namespace.clone(),
            jobs: scenario.job.is_some(),
            _tasks: tasks,
        }
    }

    /// A step begins.
    pub fn begin(&self) {
        let mut state = self.state.lock();
        let last = state.sizes.pop();
        state.sizes = last.into_iter().collect();
        let events = std::mem::take(&mut state.events);
        state.told.extend(events);
    }

    /// The running Jobs, by name.
    pub fn running_jobs(&self) -> Vec<String> {
        let state = self.state.lock();
        state.jobs.iter().filter(|(_, ended)| !**ended).map(|(name, _)| name.clone()).collect()
    }

    /// What is seen now.
    pub fn seen(&self) -> Seen {
        let state = self.state.lock();
        let mut seen = Seen::new();
        if self.jobs {
            let ended = state.jobs.values().filter(|ended| **ended).count();
            let running = state.jobs.len() - ended;
            let line = format!("{} made, {running} running, {ended} ended", state.made.len());
            seen.insert("jobs".into(), line);
        } else {
            seen.insert("replicas".into(), state.sizes.join(" "));
        }
        match &state.object {
            Some(object) => self.see_object(object, &mut seen),
            None => drop(seen.insert("object".into(), "gone".into())),
        }
        for (line, kind) in &state.events {
            seen.insert(self.anonymous(&format!("event {line}")), kind.clone());
        }
        seen
    }

    fn see_object(&self, object: &Value, seen: &mut Seen) {
        let status = &object["status"];
        for condition in status["conditions"].as_array().into_iter().flatten() {
            let field = |field: &str| condition[field].as_str().unwrap_or_default();
            let line = format!("{} {}: {}", field("status"), field("reason"), field("message"));
            seen.insert(format!("condition {}", field("type")), self.anonymous(&line));
        }
        for field in STATUS {
            if let Some(value) = status.get(field).filter(|value| !is_empty(value)) {
                seen.insert(format!("status {field}"), self.anonymous(&value.to_string()));
            }
        }
        if status["lastActiveTime"].is_string() {
            seen.insert("status lastActiveTime".into(), "set".into());
        }
        // How often something failed depends on the moment; that it did does not.
        for (metric, health) in status["health"].as_object().into_iter().flatten() {
            seen.insert(format!("health {metric}"), health["status"].to_string());
        }
        let finalizers = &object["metadata"]["finalizers"];
        seen.insert("finalizers".into(), finalizers.to_string());
        if let Some(label) = object["metadata"]["labels"].get("scaledobject.keda.sh/name") {
            seen.insert("label".into(), label.to_string());
        }
    }

    /// A text without what is different in every run.
    fn anonymous(&self, text: &str) -> String {
        text.replace(&self.address, "SERVER").replace(&self.namespace, "NAMESPACE")
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty) || value == ""
}

/// An object as it is, or as it was when it went.
enum Change {
    Is(DynamicObject),
    Gone(DynamicObject),
}

async fn follow(api: Api<DynamicObject>, state: Arc<Mutex<State>>, note: fn(&mut State, Change)) {
    let mut changes = Box::pin(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(change) = changes.next().await {
        match change {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                note(&mut state.lock(), Change::Is(object));
            }
            Ok(Event::Delete(object)) => note(&mut state.lock(), Change::Gone(object)),
            // What cannot be watched now is watched again.
            Ok(Event::Init | Event::InitDone) | Err(_) => {}
        }
    }
}

fn target(state: &mut State, change: Change) {
    let size = match &change {
        Change::Is(object) if object.name_any() == TARGET => {
            object.data["spec"]["replicas"].to_string()
        }
        Change::Gone(object) if object.name_any() == TARGET => "gone".to_owned(),
        _ => return,
    };
    if state.sizes.last() != Some(&size) {
        state.sizes.push(size);
    }
}

fn object(state: &mut State, change: Change) {
    match change {
        Change::Is(object) if object.name_any() == OBJECT => {
            state.object = serde_json::to_value(object).ok();
        }
        Change::Gone(object) if object.name_any() == OBJECT => state.object = None,
        _ => {}
    }
}

fn job(state: &mut State, change: Change) {
    match change {
        Change::Is(job) => {
            let conditions = job.data["status"]["conditions"].as_array().cloned();
            let ended = conditions.unwrap_or_default().iter().any(|condition| {
                let kind = condition["type"].as_str();
                matches!(kind, Some("Complete" | "Failed")) && condition["status"] == "True"
            });
            state.made.insert(job.name_any());
            state.jobs.insert(job.name_any(), ended);
        }
        Change::Gone(job) => drop(state.jobs.remove(&job.name_any())),
    }
}

fn event(state: &mut State, change: Change) {
    let Change::Is(event) = change else { return };
    let data: HashMap<&str, &str> = ["type", "reason", "note"]
        .into_iter()
        .filter_map(|field| Some((field, event.data[field].as_str()?)))
        .collect();
    let about = &event.data["regarding"];
    if about["name"] != OBJECT || !about["kind"].as_str().is_some_and(|k| k.starts_with("Scaled")) {
        return;
    }
    let field = |name: &str| data.get(name).copied().unwrap_or_default();
    if CHANCE.iter().any(|text| field("note").contains(text)) {
        return;
    }
    let note = in_order(field("note"));
    let line = (format!("{}: {note}", field("reason")), field("type").to_owned());
    if !state.told.contains(&line) {
        state.events.insert(line);
    }
}

/// A note in which triggers are in the order of their names; KEDA asks them at the same time, and names them as they
/// answer.
fn in_order(note: &str) -> String {
    const BEFORE: &str = "triggered by ";
    let Some((start, triggers)) = note.split_once(BEFORE) else { return note.to_owned() };
    let mut triggers: Vec<&str> = triggers.split(';').collect();
    triggers.sort_unstable();
    format!("{start}{BEFORE}{}", triggers.join(";"))
}
