//! The state of the load model and one step of it; knows no clock and no tasks.

use super::claim::Claim;
use super::{LoadState, MAX_WORKLOADS, PodRate, WorkloadConfig, WorkloadError, WorkloadState};
use crate::nodes::usage::{PodSample, Samples, Used};
use crate::nodes::{PodView, Table};
use jiff::Timestamp;
use podscale_sim::Time;
use podscale_sim::workload::Usage;
use podscale_sim::{Load, PodInput, PodUsage, Workload};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// CPU of a container that does nothing, in cores.
const IDLE_CORES: f64 = 0.001;
/// Memory of a container that does nothing.
const IDLE_BYTES: f64 = 16.0 * 1024.0 * 1024.0;
/// CPU of a node without its pods, in cores.
const NODE_CORES: f64 = 0.1;
/// Memory of a node without its pods.
const NODE_BYTES: f64 = 512.0 * 1024.0 * 1024.0;

/// What a call changes of a workload.
pub(super) enum Change {
    Load(Load),
    Enqueue(f64),
    Configured,
}

struct Driven {
    namespace: Arc<str>,
    name: Arc<str>,
    claim: Claim,
    container: Option<String>,
    workload: Workload,
    configured: (Load, Time),
    load_set: bool,
    pods: Vec<PodView>,
}

/// All workloads, and the time up to which they have lived.
pub(super) struct Model {
    at: Timestamp,
    workloads: Vec<Driven>,
    idle: Vec<PodView>,
    seen: Option<u64>,
    node_cpu_seconds: HashMap<Arc<str>, f64>,
}

impl Model {
    pub(super) fn new(now: Timestamp) -> Model {
        Model {
            at: now,
            workloads: Vec::new(),
            idle: Vec::new(),
            seen: None,
            node_cpu_seconds: HashMap::new(),
        }
    }

    pub(super) fn add(
        &mut self,
        config: &WorkloadConfig,
        load: Load,
        now: Timestamp,
    ) -> Result<(), WorkloadError> {
        let full_name = || format!("{}/{}", config.namespace, config.name);
        let at = match self.find(&config.namespace, &config.name) {
            Ok(_) => return Err(WorkloadError::Twice(full_name())),
            Err(at) => at,
        };
        if self.workloads.len() >= MAX_WORKLOADS {
            return Err(WorkloadError::TooMany);
        }
        let start = core_time(now);
        let workload = Workload::new(config.model.clone(), load.clone(), start)
            .map_err(|source| WorkloadError::Model { name: full_name(), source })?;
        let driven = Driven {
            namespace: config.namespace.as_str().into(),
            name: config.name.as_str().into(),
            claim: Claim::new(&config.namespace, &config.name, &config.selector),
            container: config.container.clone(),
            workload,
            configured: (load, start),
            load_set: false,
            pods: Vec::new(),
        };
        self.workloads.insert(at, driven);
        self.seen = None;
        Ok(())
    }

    pub(super) fn change(
        &mut self,
        namespace: &str,
        name: &str,
        change: Change,
        now: Timestamp,
    ) -> Result<(), WorkloadError> {
        let unknown = |_| WorkloadError::Unknown(format!("{namespace}/{name}"));
        let at = self.find(namespace, name).map_err(unknown)?;
        let driven = &mut self.workloads[at];
        match change {
            Change::Load(load) => {
                driven.workload.set_load(load, core_time(now));
                driven.load_set = true;
            }
            Change::Enqueue(amount) => driven.workload.enqueue(amount),
            Change::Configured => {
                let (load, start) = driven.configured.clone();
                driven.workload.set_load(load, start);
                driven.load_set = false;
            }
        }
        Ok(())
    }

    fn find(&self, namespace: &str, name: &str) -> Result<usize, usize> {
        self.workloads
            .binary_search_by(|driven| (&*driven.namespace, &*driven.name).cmp(&(namespace, name)))
    }

    /// Lets the time up to `now` pass.
    pub(super) fn step(&mut self, table: &Table, now: Timestamp) -> (Samples, LoadState) {
        let version = table.version();
        if self.seen != Some(version) {
            self.assign(table);
            self.seen = Some(version);
        }
        let now = now.max(self.at);
        let window: Duration = now.duration_since(self.at).try_into().unwrap_or_default();
        let mut used = Tally { now, seconds: window.as_secs_f64(), ..Tally::default() };
        let mut workloads = Vec::with_capacity(self.workloads.len());
        for driven in &mut self.workloads {
            let inputs: Vec<PodInput> = driven.pods.iter().map(|pod| driven.input(pod)).collect();
            let usage = driven.workload.advance(core_time(self.at), core_time(now), &inputs);
            for (pod, usage) in driven.pods.iter().zip(&usage.pods) {
                used.add(pod, Some((driven.busy(pod), *usage)));
            }
            workloads.push(driven.state(usage));
        }
        for pod in &self.idle {
            used.add(pod, None);
        }
        self.at = now;
        let samples = used.samples(&mut self.node_cpu_seconds);
        (samples, LoadState { time: now, window, workloads })
    }

    /// Finds each running pod's workload.
    fn assign(&mut self, table: &Table) {
        for node in table.nodes() {
            self.node_cpu_seconds.entry(node).or_default();
        }
        self.idle.clear();
        self.workloads.iter_mut().for_each(|driven| driven.pods.clear());
        let runs = |pod: &PodView| pod.life.running() && !pod.stopped;
        for pod in table.all().into_iter().filter(runs) {
            match self.workloads.iter_mut().find(|driven| driven.claim.takes(&pod.facts)) {
                Some(driven) => driven.pods.push(pod),
                None => self.idle.push(pod),
            }
        }
        for driven in &mut self.workloads {
            driven.pods.sort_by(|a, b| a.facts.name.cmp(&b.facts.name));
        }
    }
}

impl Driven {
    /// Which container of a pod does the work.
    fn busy(&self, pod: &PodView) -> usize {
        let wanted = self.container.as_deref();
        let position = pod.facts.containers.iter().position(|c| Some(&*c.name) == wanted);
        position.unwrap_or(0)
    }

    fn input(&self, pod: &PodView) -> PodInput {
        let container = pod.facts.containers.get(self.busy(pod));
        PodInput {
            id: pod.run(),
            ready: pod.life.ready(),
            cpu_limit_millis: container.and_then(|container| container.cpu_limit_millis),
            memory_limit_bytes: container.and_then(|container| container.memory_limit_bytes),
        }
    }

    fn state(&self, usage: Usage) -> WorkloadState {
        let pods = self.pods.iter().zip(&usage.pods).map(|(pod, usage)| PodRate {
            name: Arc::clone(&pod.facts.name),
            labels: pod.facts.labels.clone(),
            ready: pod.life.ready(),
            rps: usage.rps,
            served_total: usage.served_total,
            cpu_seconds_total: usage.cpu_seconds_total,
            memory_bytes: usage.memory_bytes,
        });
        WorkloadState {
            namespace: Arc::clone(&self.namespace),
            name: Arc::clone(&self.name),
            kind: self.workload.spec().kind,
            load_set: self.load_set,
            offered_rps: usage.offered_rps,
            served_rps: usage.served_rps,
            dropped_rps: usage.dropped_rps,
            queue: usage.queue,
            latency_seconds: usage.latency_seconds,
            totals: self.workload.totals(),
            pods: pods.collect(),
        }
    }
}

/// Adds up what pods and nodes used in one step.
#[derive(Default)]
struct Tally {
    now: Timestamp,
    seconds: f64,
    pods: HashMap<Arc<str>, PodSample>,
    nodes: HashMap<Arc<str>, Used>,
}

impl Tally {
    /// Adds a pod; `busy` says which container did what work, the others idle.
    fn add(&mut self, pod: &PodView, busy: Option<(usize, PodUsage)>) {
        let started = pod.life.started.unwrap_or(pod.life.since);
        let age_seconds = self.now.duration_since(started).as_secs_f64().max(0.0);
        let node = self.nodes.entry(Arc::clone(&pod.facts.node)).or_default();
        let containers = pod.facts.containers.iter().enumerate().map(|(index, container)| {
            let (used, cores) = match busy {
                Some((at, usage)) if at == index => {
                    let (cpu_seconds_total, memory_bytes) =
                        (usage.cpu_seconds_total, usage.memory_bytes);
                    (Used { cpu_seconds_total, memory_bytes }, usage.cpu_millis / 1000.0)
                }
                _ => {
                    let limit = container.cpu_limit_millis.unwrap_or(f64::MAX) / 1000.0;
                    let cores = IDLE_CORES.min(limit);
                    let memory_bytes =
                        IDLE_BYTES.min(container.memory_limit_bytes.unwrap_or(f64::MAX));
                    (Used { cpu_seconds_total: cores * age_seconds, memory_bytes }, cores)
                }
            };
            node.cpu_seconds_total += cores * self.seconds;
            node.memory_bytes += used.memory_bytes;
            used
        });
        let sample = PodSample { restarts: pod.life.restarts, containers: containers.collect() };
        self.pods.insert(Arc::clone(&pod.facts.uid), sample);
    }

    /// The samples; the nodes' counters go on from what they were.
    fn samples(mut self, counters: &mut HashMap<Arc<str>, f64>) -> Samples {
        let mut nodes = HashMap::with_capacity(counters.len());
        for (node, counter) in counters {
            let used = self.nodes.remove(node).unwrap_or_default();
            *counter += used.cpu_seconds_total + NODE_CORES * self.seconds;
            let memory_bytes = used.memory_bytes + NODE_BYTES;
            nodes.insert(Arc::clone(node), Used { cpu_seconds_total: *counter, memory_bytes });
        }
        Samples { time: self.now, pods: self.pods, nodes }
    }
}

fn core_time(time: Timestamp) -> Time {
    Time(time.as_microsecond())
}
