//! Reads objects from files and scenarios, and finds what belongs to an autoscaler: its target's pods
//! and the workload behind them.

use super::edit::{Edit, EditError};
use super::model::{self as assume, ModelOptions};
use super::{START, Subject, Tried};
use crate::scenario::{self, Scenario, Simulation};
use podscale_api::document;
use podscale_api::pod::{self, PodSpec};
use podscale_cluster::load::WorkloadConfig;
use podscale_controller::dialect;
use podscale_controller::dialect::read::{ReadError, Understood, is_autoscaler, is_scaled_job};
use podscale_core::model::Bounds;
use podscale_core::{Autoscaler, Span};
use podscale_sim::plan::{Container, Detail, PodTemplate};
use podscale_sim::{Load, Plan, WorkloadSpec};
use serde::Deserialize;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// The largest file of objects that is read.
const FILE_LIMIT_BYTES: u64 = 16 << 20;

/// Why there is nothing to simulate; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// Which file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// A file is neither YAML nor JSON.
    #[error("{file}:{line}: {problem}")]
    Document {
        /// Which file.
        file: String,
        /// In which line of it.
        line: u32,
        /// What is wrong.
        problem: String,
    },
    /// An autoscaler cannot be read, or would be refused.
    #[error("{name}: {source}")]
    Object {
        /// Which object.
        name: String,
        /// What is wrong with it.
        source: ReadError,
    },
    /// A field cannot be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// There is no autoscaler.
    #[error(
        "there is no autoscaler in what was given: HorizontalPodAutoscaler, CHPA, PodAutoscaler, ScaledObject or ScaledJob"
    )]
    NoAutoscaler,
}

/// Objects by which, and for which, something is simulated.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    /// Those of files, which count more.
    own: Vec<Value>,
    /// Those of the scenario.
    of_scenario: Vec<Value>,
    workloads: Vec<WorkloadConfig>,
    simulation: Simulation,
}

impl Objects {
    /// Those of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Objects {
        Objects {
            own: Vec::new(),
            of_scenario: scenario.manifests.clone(),
            workloads: scenario.workloads.clone(),
            simulation: scenario.simulation.clone(),
        }
    }

    /// What the scenario says of simulations.
    #[must_use]
    pub fn simulation(&self) -> &Simulation {
        &self.simulation
    }

    /// The workloads of the scenario.
    #[must_use]
    pub fn workloads(&self) -> &[WorkloadConfig] {
        &self.workloads
    }

    /// Adds the objects of a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read or is not YAML.
    pub fn add_file(&mut self, path: &Path) -> Result<(), InputError> {
        let file = path.display().to_string();
        let mut text = String::new();
        let read = if path == Path::new("-") {
            std::io::stdin().lock().take(FILE_LIMIT_BYTES).read_to_string(&mut text)
        } else {
            std::fs::File::open(path)
                .and_then(|opened| opened.take(FILE_LIMIT_BYTES).read_to_string(&mut text))
        };
        match read {
            Err(source) => Err(InputError::Read { file, source }),
            Ok(size) if size as u64 == FILE_LIMIT_BYTES => {
                Err(InputError::Read { file, source: std::io::Error::other("it is too large") })
            }
            Ok(_) => self.add_text(&file, &text),
        }
    }

    /// Adds the objects of a text with YAML or JSON documents.
    ///
    /// # Errors
    /// It is neither.
    pub fn add_text(&mut self, file: &str, text: &str) -> Result<(), InputError> {
        for part in document::split(text).iter().filter(|part| part.has_content()) {
            let read = part.read().map_err(|error| InputError::Document {
                file: file.to_owned(),
                line: error.place.line,
                problem: error.problem,
            })?;
            let value = read.value;
            match value.get("items").and_then(Value::as_array) {
                Some(items) if value.get("kind").and_then(Value::as_str) == Some("List") => {
                    self.own.extend(items.iter().cloned());
                }
                _ if value.is_null() => {}
                _ => self.own.push(value),
            }
        }
        Ok(())
    }

    /// The autoscalers with their targets, after these changes. Those of files, if there are any; else
    /// those of the scenario.
    ///
    /// # Errors
    /// An autoscaler makes no sense, or there is none.
    pub fn subjects(
        &self,
        edits: &[Edit],
        options: &ModelOptions,
    ) -> Result<Vec<Subject>, InputError> {
        let of = |objects: &[Value]| -> Vec<Value> {
            objects.iter().filter(|object| scenario::is_autoscaler(object)).cloned().collect()
        };
        let mut found = of(&self.own);
        if found.is_empty() {
            found = of(&self.of_scenario);
        }
        if found.is_empty() {
            return Err(InputError::NoAutoscaler);
        }
        let subject = |object| match is_scaled_job(object) {
            true => self.subject_of_jobs(object, edits, options),
            false => self.subject(object, edits, options),
        };
        found.iter().map(subject).collect()
    }

    fn subject(
        &self,
        object: &Value,
        edits: &[Edit],
        options: &ModelOptions,
    ) -> Result<Subject, InputError> {
        let object = autoscaler(object, edits)?;
        let model = &*object.managed.model;
        let target = &model.target;
        let mut notes = Vec::new();
        let manifest = self.manifest(&target.kind, &model.namespace, &target.name);
        let workload = self.workload(&model.namespace, &target.name);
        let container = workload.and_then(|workload| workload.container.as_deref());
        let template = manifest.and_then(|manifest| template(manifest, container));
        let template = template.unwrap_or_else(|| {
            notes.push(format!(
                "{} {} is not among the objects: one container that requests 500m and 256Mi is \
                 assumed",
                target.kind, target.name
            ));
            PodTemplate::default()
        });
        let spec = workload.map(|workload| workload.model.clone());
        let names = &self.simulation.metrics;
        let spec = assume::workload(spec, model, &template, names, options, &mut notes);
        assume::note_metrics(model, spec.kind, names, &mut notes);
        let replicas = manifest.and_then(|m| m.pointer("/spec/replicas")).and_then(Value::as_i64);
        let replicas = replicas.and_then(|replicas| i32::try_from(replicas).ok()).unwrap_or(0);
        let plan = self.plan(model, template, spec, replicas, options);
        Ok(Subject { object: Tried::Scale(object), settings: options.settings, plan, notes })
    }

    /// The plan for such pods, which begins with so many within the bounds; its load is still to be given.
    pub(super) fn plan(
        &self,
        model: &Autoscaler,
        template: PodTemplate,
        spec: WorkloadSpec,
        replicas: i32,
        options: &ModelOptions,
    ) -> Plan {
        let bounds = Bounds { min: model.min_replicas.max(1), max: model.max_replicas.max(1) };
        let objective = options.objective_seconds.or(self.simulation.objective_seconds);
        Plan {
            objective_seconds: objective.unwrap_or_else(|| assume::objective_seconds(&spec)),
            template,
            environment: options.environment(&self.simulation.environment),
            metrics: self.simulation.metrics.clone(),
            load: Load::none(),
            start: options.start.unwrap_or(START),
            length: Span::seconds(0),
            warm_up: Span((self.simulation.warm_up_seconds.max(0.0) * 1e6) as i64),
            replicas: bounds.clamp(replicas),
            seed: 1,
            detail: Detail::default(),
            workload: spec,
        }
    }

    /// Whether files have any autoscaler.
    #[must_use]
    pub fn has_autoscalers(&self) -> bool {
        self.own.iter().any(|object| is_autoscaler(object) || is_scaled_job(object))
    }

    /// The ScaledJob, or else the autoscaler of a target, of this name that files have.
    #[must_use]
    pub fn named(&self, of_jobs: bool, namespace: &str, name: &str) -> Option<&Value> {
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let is_meant = |object: &&Value| match of_jobs {
            true => is_scaled_job(object),
            false => is_autoscaler(object),
        };
        self.own.iter().filter(is_meant).find(|object| {
            let own = text(object, "/metadata/namespace");
            text(object, "/metadata/name") == name
                && (own == namespace || own.is_empty() && namespace == "default")
        })
    }

    fn manifest(&self, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.own.iter().chain(&self.of_scenario).find(|object| {
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
            text("/kind") == Some(kind)
                && text("/metadata/name") == Some(name)
                && text("/metadata/namespace").unwrap_or("default") == namespace
        })
    }

    /// The workload behind a target; the only one stands for every target.
    #[must_use]
    pub fn workload(&self, namespace: &str, name: &str) -> Option<&WorkloadConfig> {
        let named = |w: &&WorkloadConfig| w.namespace == namespace && w.name == name;
        match self.workloads.as_slice() {
            [only] if !self.own.is_empty() => Some(only),
            all => all.iter().find(named),
        }
    }
}

impl Subject {
    /// The same target and load with another object, after these changes.
    ///
    /// # Errors
    /// The object makes no sense.
    pub fn with_object(&self, object: &Value, edits: &[Edit]) -> Result<Subject, InputError> {
        let object = match &self.object {
            Tried::Scale(_) => Tried::Scale(autoscaler(object, edits)?),
            Tried::Jobs(jobs) => {
                let changed = jobs.with_object(object, edits, &self.plan.metrics)?;
                Tried::Jobs(Box::new(changed))
            }
        };
        Ok(Subject { object, ..self.clone() })
    }
}

fn autoscaler(object: &Value, edits: &[Edit]) -> Result<Understood, InputError> {
    edited(object, edits, dialect::read::read, |understood| &understood.object)
}

/// Reads an autoscaler, changes it and checks it as an API server would. `written` is the object as it was understood.
pub(super) fn edited<T>(
    object: &Value,
    edits: &[Edit],
    read: impl Fn(&Value) -> Result<T, ReadError>,
    written: impl Fn(&T) -> &Value,
) -> Result<T, InputError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{} {}", text("/kind"), text("/metadata/name"));
    let fail = |source| InputError::Object { name: name.clone(), source };
    let mut understood = read(object).map_err(fail)?;
    if !edits.is_empty() {
        // Changes are named in the newest version.
        let mut object = written(&understood).clone();
        edits.iter().try_for_each(|edit| edit.apply(&mut object))?;
        understood = read(&object).map_err(fail)?;
        edits.iter().try_for_each(|edit| edit.confirm(written(&understood)))?;
    }
    Ok(understood)
}

/// The pods of a Deployment, StatefulSet or the like.
fn template(manifest: &Value, busy: Option<&str>) -> Option<PodTemplate> {
    let spec = PodSpec::deserialize(manifest.pointer("/spec/template/spec")?).ok()?;
    pods_of(&spec, busy)
}

/// The pods that a pod's spec describes.
#[must_use]
pub(super) fn pods_of(spec: &PodSpec, busy: Option<&str>) -> Option<PodTemplate> {
    let container = |container: &pod::Container| {
        let millis = |list: &podscale_api::resources::ResourceList, resource: &str| {
            list.get(resource).map(|amount| amount.milli_value() as f64)
        };
        let resources = &container.resources;
        Container {
            name: (*container.name).into(),
            cpu_request_millis: millis(&resources.requests, "cpu"),
            memory_request_bytes: millis(&resources.requests, "memory").map(|bytes| bytes / 1000.0),
            cpu_limit_millis: millis(&resources.limits, "cpu"),
            memory_limit_bytes: millis(&resources.limits, "memory").map(|bytes| bytes / 1000.0),
        }
    };
    let containers: Vec<Container> = spec.containers.iter().map(container).collect();
    let busy = busy.and_then(|busy| containers.iter().position(|c| *c.name == *busy)).unwrap_or(0);
    (!containers.is_empty()).then_some(PodTemplate { containers, busy })
}

#[cfg(test)]
mod tests;
