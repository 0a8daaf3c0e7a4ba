//! What is seen of a namespace's autoscalers, in order and without times.

use super::fixture::Fixture;
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Lines by what they are about: `web size`, `web status`, `web event`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines(BTreeMap<String, Vec<String>>);

impl Lines {
    /// How others differ, line by line.
    pub fn differences(&self, other: &Lines) -> impl Iterator<Item = String> {
        let subjects: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let none = Vec::new();
        let lines = subjects.into_iter().filter_map(|subject| {
            let theirs = self.0.get(subject).unwrap_or(&none);
            let ours = other.0.get(subject).unwrap_or(&none);
            (theirs != ours).then(|| {
                let [theirs, ours] = [theirs, ours].map(|lines| lines.join("\n      "));
                format!("{subject}\n    upstream:\n      {theirs}\n    podscale:\n      {ours}")
            })
        });
        lines.collect::<Vec<_>>().into_iter()
    }
}

#[derive(Default)]
struct Recorder {
    lines: Lines,
    /// The last line about each subject, which is not written twice in a row.
    last: BTreeMap<String, String>,
    /// What the autoscalers' metrics were at last.
    metrics: BTreeMap<String, String>,
    /// Events since the lines were last taken; one that happens again is not written again.
    events: BTreeSet<String>,
    length: usize,
}

impl Recorder {
    fn write(&mut self, subject: String, line: String) {
        if self.last.get(&subject) != Some(&line) {
            self.length += 1;
            self.last.insert(subject.clone(), line.clone());
            self.lines.0.entry(subject).or_default().push(line);
        }
    }
}

/// Writes down what happens in a namespace until it is dropped.
pub struct Transcript {
    recorder: Arc<Mutex<Recorder>>,
    _writers: JoinSet<()>,
}

impl Transcript {
    pub fn of(fixture: &Fixture) -> Transcript {
        let recorder = Arc::<Mutex<Recorder>>::default();
        let mut writers = JoinSet::new();
        let namespace: Arc<str> = fixture.namespace.as_str().into();
        let kinds: [(&str, &str, fn(&mut Recorder, &str, &DynamicObject)); 3] = [
            ("apps/v1", "Deployment", size),
            ("autoscaling/v2", "HorizontalPodAutoscaler", status),
            ("v1", "Event", event),
        ];
        for (version, kind, note) in kinds {
            let (api, recorder) = (fixture.api(version, kind), Arc::clone(&recorder));
            writers.spawn(follow(api, recorder, Arc::clone(&namespace), note));
        }
        Transcript { recorder, _writers: writers }
    }

    /// What was written since the last time, and what the metrics are now.
    pub fn take(&self) -> Lines {
        let mut recorder = self.recorder.lock();
        recorder.events.clear();
        let mut lines = std::mem::take(&mut recorder.lines);
        for (name, line) in &recorder.metrics {
            lines.0.insert(format!("{name} metrics at rest"), vec![line.clone()]);
        }
        lines
    }

    /// How much was written in all.
    pub fn length(&self) -> usize {
        self.recorder.lock().length
    }
}

async fn follow(
    api: Api<DynamicObject>,
    recorder: Arc<Mutex<Recorder>>,
    namespace: Arc<str>,
    note: fn(&mut Recorder, &str, &DynamicObject),
) {
    let changes = watcher(api, watcher::Config::default()).default_backoff();
    let mut changes = Box::pin(changes.applied_objects());
    while let Some(change) = changes.next().await {
        if let Ok(object) = change {
            note(&mut recorder.lock(), &namespace, &object);
        }
    }
}

fn size(recorder: &mut Recorder, _: &str, object: &DynamicObject) {
    let line = object.data["spec"]["replicas"].to_string();
    recorder.write(format!("{} size", object.name_any()), line);
}

fn status(recorder: &mut Recorder, namespace: &str, object: &DynamicObject) {
    let (name, status) = (object.name_any(), &object.data["status"]);
    let Some(conditions) = status["conditions"].as_array() else { return };
    for condition in conditions {
        let field = |field: &str| condition[field].as_str().unwrap_or_default();
        let line = format!("{} {}: {}", field("status"), field("reason"), field("message"));
        let subject = format!("{name} condition {}", field("type"));
        recorder.write(subject, anonymous(&line, namespace, &name));
    }
    let order: Vec<&Value> = conditions.iter().map(|condition| &condition["type"]).collect();
    recorder.write(format!("{name} order of conditions"), format!("{order:?}"));
    // What upstream makes of 0 divided by 0 on amd64; elsewhere, and for Podscale, it is 0.
    let metrics = status["currentMetrics"].to_string().replace("-9223372036854775808m", "0");
    let metrics = anonymous(&metrics, namespace, &name);
    recorder.metrics.insert(name.clone(), metrics);
    let replicas = |field: &str| status[field].to_string();
    recorder.write(format!("{name} current replicas"), replicas("currentReplicas"));
    recorder.write(format!("{name} desired replicas"), replicas("desiredReplicas"));
    recorder.write(format!("{name} observed generation"), replicas("observedGeneration"));
}

fn event(recorder: &mut Recorder, namespace: &str, object: &DynamicObject) {
    let about = &object.data["involvedObject"];
    if about["kind"] != "HorizontalPodAutoscaler" {
        return;
    }
    let name = about["name"].as_str().unwrap_or_default();
    let field = |field: &str| object.data[field].as_str().unwrap_or_default();
    let source = &object.data["source"]["component"];
    let (by, version) = (field("reportingComponent"), &about["apiVersion"]);
    let line = format!("{} {}: {}", field("type"), field("reason"), field("message"));
    let line = format!("{line} (from {source}, reported by {by:?}, about {version})");
    let line = anonymous(&line, namespace, name);
    if recorder.events.insert(format!("{name} {line}")) {
        recorder.length += 1;
        recorder.lines.0.entry(format!("{name} event")).or_default().push(line);
    }
}

/// A text without the names that differ between two namespaces.
fn anonymous(text: &str, namespace: &str, app: &str) -> String {
    let text = text.replace(namespace, "NAMESPACE");
    // Pods are called after their application, with two random words.
    let prefix = format!("{app}-");
    let word = |word: &str| match word.strip_prefix(&prefix) {
        Some(rest) if rest.len() > 8 => format!("{prefix}POD"),
        _ => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
