//! Scenarios: what a demonstration shows. A YAML file with the objects to create, the workloads
//! behind them and the load they get.

mod apply;

pub use apply::{ApplyError, apply};

use podscale_client::clock::Clock;
use podscale_cluster::load::{LoadModel, WorkloadConfig, WorkloadError};
use podscale_cluster::nodes::{Table, Usage, address::MAX_NODES};
use podscale_controller::dialect::read;
use podscale_sim::jobs::JobSpec;
use podscale_sim::load::TraceShape;
use podscale_sim::plan::Quantity;
use podscale_sim::{Environment, Shape, Trace};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest scenario file that is read.
const FILE_LIMIT_BYTES: u64 = 8 * 1024 * 1024;
/// The scenario that is shown if none is named.
pub const DEFAULT: &str = "tour";
/// The scenarios that come with the program.
const BUILT_IN: [(&str, &str); 4] = [
    (DEFAULT, include_str!("../scenarios/tour.yaml")),
    ("queue", include_str!("../scenarios/queue.yaml")),
    ("triggers", include_str!("../scenarios/triggers.yaml")),
    ("jobs", include_str!("../scenarios/jobs.yaml")),
];

/// What a demonstration shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// What it is called.
    pub name: String,
    /// What there is to see.
    #[serde(default)]
    pub description: String,
    /// How many times as fast as the wall clock it runs if not given.
    #[serde(default = "default_speed")]
    pub speed: f64,
    /// How many nodes the cluster has if not given.
    #[serde(default = "default_nodes")]
    pub nodes: usize,
    /// The workloads behind the objects: how they bear load, and how much they get.
    #[serde(default)]
    pub workloads: Vec<WorkloadConfig>,
    /// What `podscale simulate` needs to know beside that.
    #[serde(default)]
    pub simulation: Simulation,
    /// The objects to create, in order, as Kubernetes knows them.
    pub manifests: Vec<Value>,
    /// The traces that loads name.
    #[serde(skip)]
    pub traces: HashMap<String, Arc<Trace>>,
}

/// What `podscale simulate` needs to know beside what a demonstration does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Simulation {
    /// How long everything takes, and what goes wrong.
    pub environment: Environment,
    /// What one Job of a ScaledJob does.
    pub jobs: JobSpec,
    /// What metrics measure, by name; guessed from the name if absent.
    pub metrics: BTreeMap<String, Quantity>,
    /// How long a request may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective_seconds: Option<f64>,
    /// How long a run is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length_seconds: Option<f64>,
    /// How much of its beginning is not scored.
    pub warm_up_seconds: f64,
}

fn default_speed() -> f64 {
    10.0
}

fn default_nodes() -> usize {
    3
}

/// Why a scenario cannot be used; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// Its file cannot be read.
    #[error("cannot read scenario {file}: {source}; built-in scenarios: {known}", known = names())]
    Read {
        /// Which file.
        file: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Its file is too large.
    #[error("scenario {file} is larger than {FILE_LIMIT_BYTES} bytes")]
    TooLarge {
        /// Which file.
        file: String,
    },
    /// It is not YAML.
    #[error("scenario {file} is not YAML: {message}")]
    Yaml {
        /// Which scenario.
        file: String,
        /// What is wrong, and where.
        message: String,
    },
    /// A field is wrong.
    #[error("scenario {file}: {path}: {message}")]
    Field {
        /// Which scenario.
        file: String,
        /// The path of the field.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// A workload makes no sense.
    #[error("scenario {file}: {source}")]
    Workload {
        /// Which scenario.
        file: String,
        /// What is wrong with it.
        source: WorkloadError,
    },
    /// A trace cannot be used.
    #[error("scenario {file}: trace {trace}: {message}")]
    Trace {
        /// Which scenario.
        file: String,
        /// Which trace.
        trace: String,
        /// Why not.
        message: String,
    },
}

/// The names of the scenarios that come with the program.
#[must_use]
pub fn names() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

impl Scenario {
    /// The built-in scenario of this name, or else the one in this file.
    ///
    /// # Errors
    /// The file cannot be read, or what is in it makes no sense.
    pub fn load(name_or_file: &str) -> Result<Scenario, ScenarioError> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_file) {
            return Scenario::read(name, text, None);
        }
        let file = name_or_file.to_owned();
        let read = |source| ScenarioError::Read { file: file.clone(), source };
        let mut text = String::new();
        let opened = File::open(name_or_file).map_err(read)?;
        opened.take(FILE_LIMIT_BYTES + 1).read_to_string(&mut text).map_err(read)?;
        if text.len() as u64 > FILE_LIMIT_BYTES {
            return Err(ScenarioError::TooLarge { file });
        }
        Scenario::read(name_or_file, &text, Path::new(name_or_file).parent())
    }

    /// Reads a scenario from text. Traces are read from the folder, or else where the program runs.
    ///
    /// # Errors
    /// Says what makes no sense, and where.
    pub fn read(file: &str, text: &str, folder: Option<&Path>) -> Result<Scenario, ScenarioError> {
        let yaml = |message: String| {
            // The position comes first; what follows only repeats the text around it.
            let message = message.lines().next().unwrap_or_default().to_owned();
            ScenarioError::Yaml { file: file.to_owned(), message }
        };
        let value: Value = serde_saphyr::from_str(text).map_err(|e| yaml(e.to_string()))?;
        let mut scenario: Scenario =
            serde_path_to_error::deserialize(&value).map_err(|error| ScenarioError::Field {
                file: file.to_owned(),
                path: error.path().to_string(),
                message: error.into_inner().to_string(),
            })?;
        scenario.check(file)?;
        scenario.read_traces(file, folder)?;
        scenario.try_out(file)?;
        Ok(scenario)
    }

    /// The same without any load, until somebody sets one.
    #[must_use]
    pub fn without_load(mut self) -> Scenario {
        for workload in &mut self.workloads {
            workload.load = Shape::Sum(Vec::new());
        }
        self
    }

    fn check(&self, file: &str) -> Result<(), ScenarioError> {
        let wrong = |path: String, message: String| {
            Err(ScenarioError::Field { file: file.to_owned(), path, message })
        };
        if !Clock::SPEEDS.contains(&self.speed) {
            let (least, most) = (Clock::SPEEDS.start(), Clock::SPEEDS.end());
            let message = format!("{} is not between {least} and {most}", self.speed);
            return wrong("speed".to_owned(), message);
        }
        if self.nodes > MAX_NODES {
            return wrong("nodes".to_owned(), format!("{} is more than {MAX_NODES}", self.nodes));
        }
        if let Err(error) = self.simulation.jobs.check() {
            let message =
                format!("{} is not between {} and {}", error.value, error.least, error.most);
            return wrong(format!("simulation.jobs.{}", error.field), message);
        }
        for (place, manifest) in self.manifests.iter().enumerate() {
            for field in ["/apiVersion", "/kind", "/metadata/name"] {
                let given = manifest.pointer(field).and_then(Value::as_str).unwrap_or_default();
                if given.is_empty() {
                    let field = field.replace('/', ".");
                    return wrong(format!("manifests[{place}]{field}"), "is missing".to_owned());
                }
            }
        }
        Ok(())
    }

    fn read_traces(&mut self, file: &str, folder: Option<&Path>) -> Result<(), ScenarioError> {
        let mut wanted = HashSet::new();
        self.workloads.iter().for_each(|workload| traces_of(&workload.load, &mut wanted));
        for trace in wanted {
            let fail = |message: String| ScenarioError::Trace {
                file: file.to_owned(),
                trace: trace.clone(),
                message,
            };
            let path = match folder {
                Some(folder) => folder.join(&trace),
                None => PathBuf::from(&trace),
            };
            let opened = File::open(path).map_err(|error| fail(error.to_string()))?;
            let read = Trace::read(opened).map_err(|error| fail(error.to_string()))?;
            self.traces.insert(trace.clone(), Arc::new(read));
        }
        Ok(())
    }

    /// Puts the workloads into a model that nobody uses, which checks every number.
    fn try_out(&self, file: &str) -> Result<(), ScenarioError> {
        let (table, usage) = (Arc::new(Table::default()), Arc::new(Usage::default()));
        let (traces, clock) = (self.traces.clone(), Clock::wall());
        let model = LoadModel::new(&self.workloads, traces, table, usage, clock);
        model.map(drop).map_err(|source| ScenarioError::Workload { file: file.to_owned(), source })
    }
}

/// Whether an object scales others, or creates Jobs.
#[must_use]
pub fn is_autoscaler(object: &Value) -> bool {
    read::is_autoscaler(object) || read::is_scaled_job(object)
}

/// The traces that a load names.
fn traces_of(shape: &Shape, found: &mut HashSet<String>) {
    match shape {
        Shape::Trace(TraceShape { file, .. }) => {
            found.insert(file.clone());
        }
        Shape::Sum(parts) => parts.iter().for_each(|part| traces_of(part, found)),
        Shape::Constant(_) | Shape::Steps(_) | Shape::Sine(_) | Shape::Spike(_) => {}
    }
}

#[cfg(test)]
mod tests;
