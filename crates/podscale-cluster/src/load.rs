//! Drives the workloads of the embedded cluster: offers each its load, lets time pass in its model
//! and records what was used.
//!
//! A workload is known by its namespace and name; its pods are those that its selector picks or, if
//! it has none, those that its Deployment, ReplicaSet, StatefulSet or other controller owns. Pods of
//! no workload idle.

use super::nodes::{Table, Usage};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use podscale_api::Labels;
use podscale_client::clock::Clock;
use podscale_sim::load::LoadError;
use podscale_sim::workload::{Kind, SpecError, Totals};
use podscale_sim::{Load, Shape, Trace, WorkloadSpec};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::task::JoinHandle;

mod claim;
pub mod http;
mod model;
pub mod text;

/// How much time passes in one step of the model.
pub const STEP: Duration = Duration::from_secs(1);
/// How many workloads there may be.
pub const MAX_WORKLOADS: usize = 10_000;
/// The shortest sleep (wall-clock) between steps.
const SHORTEST_SLEEP: Duration = Duration::from_millis(10);

/// A workload, as written in scenario files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkloadConfig {
    /// The namespace of its pods.
    #[serde(default = "default_namespace")]
    pub namespace: String,
    /// The name of the object that owns its pods.
    pub name: String,
    /// Labels of its pods; those its object owns if empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// The container that does the work; the first if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// How requests become usage.
    pub model: WorkloadSpec,
    /// The offered load.
    pub load: Shape,
}

fn default_namespace() -> String {
    "default".to_owned()
}

/// Why a workload cannot be driven.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// Its model is wrong.
    #[error("workload {name}: model.{source}")]
    Model {
        /// Namespace and name.
        name: String,
        /// What is wrong.
        source: SpecError,
    },
    /// Its load is wrong.
    #[error("workload {name}: {source}")]
    Load {
        /// Namespace and name.
        name: String,
        /// What is wrong.
        source: LoadError,
    },
    /// It was given twice.
    #[error("workload {0} is given twice")]
    Twice(String),
    /// It is not known.
    #[error("there is no workload {0}")]
    Unknown(String),
    /// There are too many.
    #[error("more than {MAX_WORKLOADS} workloads")]
    TooMany,
}

/// What a workload did in the last step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadState {
    /// The namespace of its pods.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Service or consumer.
    pub kind: Kind,
    /// Whether its load was set by a call.
    pub load_set: bool,
    /// Requests per second that arrived.
    pub offered_rps: f64,
    /// Requests per second that were served.
    pub served_rps: f64,
    /// Requests per second that were refused, gave up or were lost.
    pub dropped_rps: f64,
    /// How much work waits.
    pub queue: f64,
    /// How long a request takes.
    pub latency_seconds: f64,
    /// Requests since the beginning.
    #[serde(skip)]
    pub totals: Totals,
    /// Its running pods.
    pub pods: Vec<PodRate>,
}

/// What a pod of a workload served in the last step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRate {
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    #[serde(skip)]
    pub labels: Labels,
    /// Whether it takes requests.
    pub ready: bool,
    /// Requests per second.
    pub rps: f64,
    /// Requests since its containers' start.
    #[serde(skip)]
    pub served_total: f64,
    /// CPU time of the container that does the work, since its start.
    #[serde(skip)]
    pub cpu_seconds_total: f64,
    /// Memory of that container.
    #[serde(skip)]
    pub memory_bytes: f64,
}

/// What all workloads did in the last step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadState {
    /// The end of the step.
    pub time: Timestamp,
    /// How long it was.
    pub window: Duration,
    /// The workloads, by namespace and name.
    pub workloads: Vec<WorkloadState>,
}

/// A new load for a workload.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// So many requests per second, from now on.
    Rps(f64),
    /// This shape, beginning now.
    Shape(Shape),
    /// So much work into the queue at once.
    Enqueue(f64),
    /// The load it was configured with.
    Configured,
}

/// The load model; cheap to clone, all clones are the same model.
#[derive(Clone)]
pub struct LoadModel {
    shared: Arc<Shared>,
}

struct Shared {
    model: Mutex<model::Model>,
    state: RwLock<Arc<LoadState>>,
    table: Arc<Table>,
    usage: Arc<Usage>,
    traces: HashMap<String, Arc<Trace>>,
    clock: Clock,
}

impl LoadModel {
    /// A model of these workloads over the pods of `table`; it records in `usage` what was used. Only
    /// the traces given here can be named by loads, now and later.
    ///
    /// # Errors
    /// Says which workload is wrong, and where.
    pub fn new(
        workloads: &[WorkloadConfig],
        traces: HashMap<String, Arc<Trace>>,
        table: Arc<Table>,
        usage: Arc<Usage>,
        clock: Clock,
    ) -> Result<LoadModel, WorkloadError> {
        let model = LoadModel {
            shared: Arc::new(Shared {
                model: Mutex::new(model::Model::new(clock.now())),
                state: RwLock::default(),
                table,
                usage,
                traces,
                clock,
            }),
        };
        workloads.iter().try_for_each(|workload| model.add(workload))?;
        model.step();
        Ok(model)
    }

    /// Drives a further workload from now on.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn add(&self, config: &WorkloadConfig) -> Result<(), WorkloadError> {
        let load = self.resolve(&config.load, &config.namespace, &config.name)?;
        let now = self.shared.clock.now();
        self.shared.model.lock().add(config, load, now)
    }

    /// Lets time pass again and again until the task is aborted.
    #[must_use]
    pub fn spawn(&self) -> JoinHandle<()> {
        let model = self.clone();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(model.shared.clock.to_wall(STEP).max(SHORTEST_SLEEP)).await;
                model.step();
            }
        })
    }

    /// Lets the time since the last step pass.
    pub fn step(&self) {
        let shared = &self.shared;
        let (samples, state) = shared.model.lock().step(&shared.table, shared.clock.now());
        shared.usage.publish(samples);
        *shared.state.write() = Arc::new(state);
    }

    /// What all workloads did in the last step.
    #[must_use]
    pub fn state(&self) -> Arc<LoadState> {
        Arc::clone(&self.shared.state.read())
    }

    /// Offers a workload another load.
    ///
    /// # Errors
    /// There is no such workload, or the load is wrong.
    pub fn wish(&self, namespace: &str, name: &str, wish: Wish) -> Result<(), WorkloadError> {
        let now = self.shared.clock.now();
        let change = match wish {
            Wish::Rps(rps) => model::Change::Load(Load::constant(rps)),
            Wish::Shape(shape) => model::Change::Load(self.resolve(&shape, namespace, name)?),
            Wish::Enqueue(amount) => model::Change::Enqueue(amount),
            Wish::Configured => model::Change::Configured,
        };
        self.shared.model.lock().change(namespace, name, change, now)
    }

    fn resolve(&self, shape: &Shape, namespace: &str, name: &str) -> Result<Load, WorkloadError> {
        let fetch = |file: &str| match self.shared.traces.get(file) {
            Some(trace) => Ok(Arc::clone(trace)),
            None => Err("there is no such trace"),
        };
        shape.resolve(fetch).map_err(|source| {
            let name = format!("{namespace}/{name}");
            WorkloadError::Load { name, source }
        })
    }
}
