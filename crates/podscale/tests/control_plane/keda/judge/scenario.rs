//! The timeline: what happens in each scenario, read from `e2e/keda/timeline.yaml`.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// What every target is called.
pub const TARGET: &str = "web";
/// What every object is called.
pub const OBJECT: &str = "so";

/// Where the timeline, what was recorded and what is different are kept.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../e2e/keda")
}

/// One object and what happens to it, in a namespace of its own.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name, and that of its namespace.
    pub name: String,
    /// How many replicas the target has at first; none: there is no target.
    pub target: Option<i64>,
    /// The spec of the ScaledObject, beside what all have; `null` takes a field away.
    pub spec: Option<Value>,
    /// The spec of the ScaledJob, if it is about one.
    pub job: Option<Value>,
    pub annotations: Option<Value>,
    pub steps: Vec<Step>,
    /// Whether it is run a second time, in another namespace.
    #[serde(skip)]
    pub again: bool,
}

/// Changes that happen at once, after which everything comes to rest.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    pub step: String,
    /// What the server tells from now on, by name; a number, or `fails`.
    pub values: BTreeMap<String, Value>,
    /// A merge patch of the object.
    pub patch: Option<Value>,
    /// Somebody scales the target.
    pub scale: Option<i64>,
    /// Somebody makes the target, with so many replicas.
    pub make_target: Option<i64>,
    /// Somebody deletes `target` or `object`.
    pub delete: Option<String>,
    /// How far pods get from now on: `pending` or `ready`.
    pub pods: Option<String>,
    /// How many running Jobs succeed.
    pub succeed: usize,
}

impl Scenario {
    /// All scenarios.
    pub fn all() -> Result<Vec<Scenario>> {
        let file = folder().join("timeline.yaml");
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let all: Vec<Scenario> = serde_saphyr::from_str(&text).context("the timeline")?;
        let mut names = BTreeSet::new();
        for scenario in &all {
            let steps: BTreeSet<&str> = scenario.steps.iter().map(|s| s.step.as_str()).collect();
            ensure!(names.insert(&scenario.name), "two are called {}", scenario.name);
            ensure!(steps.len() == scenario.steps.len(), "steps of {} share a name", scenario.name);
        }
        Ok(all)
    }

    /// Its namespace.
    pub fn namespace(&self) -> String {
        let ending = if self.again { "-again" } else { "" };
        format!("judge-{}{ending}", self.name)
    }

    /// The kind of its object.
    pub fn kind(&self) -> &'static str {
        if self.job.is_some() { "ScaledJob" } else { "ScaledObject" }
    }

    /// Its object; triggers ask the server at an address.
    pub fn object(&self, address: &str) -> Result<Value> {
        let (base, change) = match &self.job {
            Some(job) => (job_base(), job),
            None => (base(), self.spec.as_ref().unwrap_or(&Value::Null)),
        };
        let mut spec = base;
        merge(&mut spec, change);
        let annotations = self.annotations.clone().unwrap_or_else(|| json!({}));
        let object = json!({"apiVersion": super::super::VERSION, "kind": self.kind(),
            "metadata": {"name": OBJECT, "annotations": annotations}, "spec": spec});
        self.addressed(&object, address)
    }

    /// A value in which `$server` is the address of the server, with the part of this scenario.
    pub fn addressed(&self, value: &Value, address: &str) -> Result<Value> {
        let server = format!("http://{address}/{}", self.name);
        Ok(serde_json::from_str(&value.to_string().replace("$server", &server))?)
    }
}

/// What all ScaledObjects have unless they say otherwise.
fn base() -> Value {
    json!({"scaleTargetRef": {"name": TARGET}, "pollingInterval": 1, "cooldownPeriod": 2,
        "maxReplicaCount": 5, "triggers": [trigger("a")]})
}

/// What all ScaledJobs have unless they say otherwise.
fn job_base() -> Value {
    let container = json!({"name": "work", "image": "none"});
    json!({"pollingInterval": 1, "maxReplicaCount": 6, "triggers": [trigger("a")],
        "jobTargetRef": {"backoffLimit": 0, "template":
            {"spec": {"restartPolicy": "Never", "containers": [container]}}}})
}

fn trigger(name: &str) -> Value {
    json!({"type": "metrics-api", "metadata":
        {"url": format!("$server/{name}"), "valueLocation": "value", "targetValue": "10"}})
}

/// Changes a value as a merge patch does.
fn merge(value: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else { return };
    for (name, change) in fields {
        match change {
            Value::Null => drop(value.as_object_mut().and_then(|object| object.remove(name))),
            Value::Object(_) if value[name].is_object() => merge(&mut value[name], change),
            _ => value[name] = change.clone(),
        }
    }
}
