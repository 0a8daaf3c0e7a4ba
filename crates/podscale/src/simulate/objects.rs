//! Reads objects from files and scenarios, and finds what belongs to an autoscaler: its target's pods
//! and the workload behind them.

use super::edit::{Edit, EditError};
use super::model::{self, ModelOptions};
use super::{START, Subject};
use crate::scenario::{Scenario, Simulation, is_autoscaler};
use podscale_api::hpa::convert::{self, ConvertError};
use podscale_api::hpa::{v2, validate};
use podscale_api::pod::{self, PodSpec};
use podscale_api::translate;
use podscale_cluster::load::WorkloadConfig;
use podscale_core::{Settings, Span};
use podscale_sim::plan::{Container, Detail, PodTemplate};
use podscale_sim::{Load, Plan};
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
    /// A file is not YAML.
    #[error("{file}, document {document}: not YAML: {message}")]
    Yaml {
        /// Which file.
        file: String,
        /// Which document of it, from 1.
        document: usize,
        /// What is wrong, and where.
        message: String,
    },
    /// An object is no autoscaler that can be read.
    #[error("{name}: {source}")]
    Convert {
        /// Which object.
        name: String,
        /// What is wrong with it.
        source: ConvertError,
    },
    /// An API server would refuse the object.
    #[error("{name}: {problem}")]
    Invalid {
        /// Which object.
        name: String,
        /// The first thing that is wrong with it.
        problem: String,
    },
    /// A field cannot be changed.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// There is no autoscaler.
    #[error("there is no HorizontalPodAutoscaler in what was given")]
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

    /// Adds the objects of a text with YAML documents.
    ///
    /// # Errors
    /// It is not YAML.
    pub fn add_text(&mut self, file: &str, text: &str) -> Result<(), InputError> {
        for (place, document) in documents(text).enumerate() {
            let value: Value = serde_saphyr::from_str(&document).map_err(|error| {
                let message = error.to_string();
                // The position comes first; what follows only repeats the text around it.
                let message = message.lines().next().unwrap_or_default().to_owned();
                InputError::Yaml { file: file.to_owned(), document: place + 1, message }
            })?;
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
            objects.iter().filter(|object| is_autoscaler(object)).cloned().collect()
        };
        let mut found = of(&self.own);
        if found.is_empty() {
            found = of(&self.of_scenario);
        }
        if found.is_empty() {
            return Err(InputError::NoAutoscaler);
        }
        let subject = |object| self.subject(object, edits, options);
        found.into_iter().map(subject).collect()
    }

    fn subject(
        &self,
        object: Value,
        edits: &[Edit],
        options: &ModelOptions,
    ) -> Result<Subject, InputError> {
        let hpa = autoscaler(object, edits)?;
        let target = &hpa.spec.scale_target_ref;
        let mut notes = Vec::new();
        let manifest = self.manifest(&target.kind, &hpa.metadata.namespace, &target.name);
        let workload = self.workload(&hpa.metadata.namespace, &target.name);
        let container = workload.and_then(|workload| workload.container.as_deref());
        let template = manifest.and_then(|manifest| template(manifest, container));
        let model = translate::autoscaler(&hpa);
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
        let spec = model::workload(spec, &model, &template, names, options, &mut notes);
        model::note_metrics(&model, spec.kind, names, &mut notes);
        let replicas = manifest.and_then(|m| m.pointer("/spec/replicas")).and_then(Value::as_i64);
        let replicas = replicas.and_then(|replicas| i32::try_from(replicas).ok()).unwrap_or(0);
        let bounds = model.min_replicas.max(1)..=model.max_replicas.max(1);
        let objective = options.objective_seconds.or(self.simulation.objective_seconds);
        let plan = Plan {
            objective_seconds: objective.unwrap_or_else(|| model::objective_seconds(&spec)),
            template,
            environment: options.environment(&self.simulation.environment),
            metrics: names.clone(),
            load: Load::none(),
            start: START,
            length: Span::seconds(0),
            warm_up: Span((self.simulation.warm_up_seconds.max(0.0) * 1e6) as i64),
            replicas: replicas.max(*bounds.start()).min(*bounds.end()),
            seed: 1,
            detail: Detail::default(),
            workload: spec,
        };
        Ok(Subject { autoscaler: model, hpa, settings: Settings::default(), plan, notes })
    }

    /// The autoscaler of this name that files have.
    #[must_use]
    pub fn named(&self, namespace: &str, name: &str) -> Option<&Value> {
        let text = |object: &Value, pointer: &str| {
            object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        self.own.iter().filter(|object| is_autoscaler(object)).find(|object| {
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
    pub fn with_object(&self, object: Value, edits: &[Edit]) -> Result<Subject, InputError> {
        let hpa = autoscaler(object, edits)?;
        let autoscaler = translate::autoscaler(&hpa);
        Ok(Subject { hpa, autoscaler, ..self.clone() })
    }
}

/// Reads an autoscaler, changes it and checks it as an API server would.
fn autoscaler(
    mut object: Value,
    edits: &[Edit],
) -> Result<v2::HorizontalPodAutoscaler, InputError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{} {}", text("/kind"), text("/metadata/name"));
    let convert = |source| InputError::Convert { name: name.clone(), source };
    // Changes are named in the newest version.
    if !edits.is_empty() {
        let hpa = convert::read(&object).map_err(convert)?;
        object = convert::write(&hpa, convert::Version::V2).map_err(convert)?;
    }
    for edit in edits {
        edit.apply(&mut object)?;
    }
    let mut hpa = convert::read(&object).map_err(convert)?;
    if hpa.metadata.namespace.is_empty() {
        hpa.metadata.namespace = "default".to_owned();
    }
    hpa.metadata.generation = hpa.metadata.generation.max(1);
    let written = convert::write(&hpa, convert::Version::V2).map_err(convert)?;
    edits.iter().try_for_each(|edit| edit.confirm(&written))?;
    match validate::check_create(&hpa).first() {
        Some(problem) => Err(InputError::Invalid { name, problem: problem.to_string() }),
        None => Ok(hpa),
    }
}

/// The documents of a file.
fn documents(text: &str) -> impl Iterator<Item = String> {
    let mut found = vec![String::new()];
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            found.push(String::new());
        } else if let Some(document) = found.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let has_content = |text: &String| {
        text.lines().any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    found.into_iter().filter(has_content)
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
