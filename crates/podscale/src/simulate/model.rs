//! What is assumed of a workload where nothing is said: said in notes, so that nobody takes it for
//! knowledge.

use podscale_core::model::Source;
use podscale_core::{Autoscaler, Settings, Time};
use podscale_sim::environment::{Delay, Environment};
use podscale_sim::plan::{PodTemplate, Quantity};
use podscale_sim::workload::{Kind, WorkloadSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What flags say of the workload and where it runs; the rest comes from the scenario, or is assumed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelOptions {
    /// When simulated time begins.
    pub start: Option<Time>,
    /// Service or consumer.
    pub kind: Option<Kind>,
    /// Requests per second that one pod serves at most.
    pub rps_per_pod: Option<f64>,
    /// CPU time of one request, in milliseconds.
    pub cpu_ms_per_request: Option<f64>,
    /// How long a request takes on an idle pod.
    pub latency_seconds: Option<f64>,
    /// How long a request may take.
    pub objective_seconds: Option<f64>,
    /// From a pod's creation until its containers run.
    pub start_up_seconds: Option<f64>,
    /// From running containers until the pod is ready.
    pub readiness_seconds: Option<f64>,
    /// How often an autoscaler decides.
    pub sync_period_seconds: Option<f64>,
    /// How often pods are scraped.
    pub resolution_seconds: Option<f64>,
    /// Which part of the scrapes of a pod is lost.
    pub missing: Option<f64>,
    /// The time that is computed in one step.
    pub slot_seconds: Option<f64>,
    /// The settings of the controller.
    pub settings: Settings,
}

impl ModelOptions {
    /// The environment of a scenario with what flags say.
    #[must_use]
    pub fn environment(&self, scenario: &Environment) -> Environment {
        let mut environment = scenario.clone();
        let fixed = |seconds: Option<f64>, or: Delay| {
            seconds.map_or(or, |seconds| Delay::Fixed { seconds })
        };
        environment.start_up = fixed(self.start_up_seconds, environment.start_up);
        environment.readiness = fixed(self.readiness_seconds, environment.readiness);
        let set = |value: Option<f64>, place: &mut f64| *place = value.unwrap_or(*place);
        set(self.sync_period_seconds, &mut environment.sync_period_seconds);
        set(self.slot_seconds, &mut environment.slot_seconds);
        for pipeline in [&mut environment.resource_metrics, &mut environment.custom_metrics] {
            set(self.missing, &mut pipeline.missing);
            if let Some(resolution) = self.resolution_seconds {
                pipeline.resolution_seconds = resolution;
                pipeline.window_seconds = pipeline.window_seconds.max(resolution);
            }
        }
        environment
    }
}

/// What pods that nothing is said of serve.
const RPS_PER_POD: f64 = 50.0;
const LATENCY_SECONDS: f64 = 0.05;

/// The workload of a scenario with what flags say; or else one whose pods use what they request when
/// they are fully busy.
pub(super) fn workload(
    scenario: Option<WorkloadSpec>,
    autoscaler: &Autoscaler,
    template: &PodTemplate,
    names: &BTreeMap<String, Quantity>,
    options: &ModelOptions,
    notes: &mut Vec<String>,
) -> WorkloadSpec {
    let known = scenario.is_some();
    let mut spec = scenario.unwrap_or_else(|| assumed(autoscaler, template, names, options));
    spec.kind = options.kind.unwrap_or(spec.kind);
    spec.rps_per_pod = options.rps_per_pod.unwrap_or(spec.rps_per_pod);
    spec.cpu_ms_per_request = options.cpu_ms_per_request.unwrap_or(spec.cpu_ms_per_request);
    spec.latency_seconds = options.latency_seconds.unwrap_or(spec.latency_seconds);
    if !known && (options.rps_per_pod.is_none() || options.cpu_ms_per_request.is_none()) {
        let WorkloadSpec { kind, rps_per_pod, cpu_ms_per_request, .. } = &spec;
        let kind = match kind {
            Kind::Service => "service",
            Kind::Consumer => "consumer of a queue",
        };
        notes.push(format!(
            "{} is taken as a {kind} of which one pod serves {rps_per_pod:.0} requests a second at \
             {cpu_ms_per_request:.1} ms of cpu each: a guess, which --scenario, --rps-per-pod and \
             --cpu-ms-per-request replace",
            autoscaler.target.name
        ));
    }
    spec
}

fn assumed(
    autoscaler: &Autoscaler,
    template: &PodTemplate,
    names: &BTreeMap<String, Quantity>,
    options: &ModelOptions,
) -> WorkloadSpec {
    let kind = options.kind.unwrap_or_else(|| guess_kind(autoscaler, names));
    let rps_per_pod = options.rps_per_pod.unwrap_or(RPS_PER_POD);
    let busy = template.busy_container();
    let cpu_millis = busy.and_then(|busy| busy.cpu_request_millis).unwrap_or(500.0);
    let memory = busy.and_then(|busy| busy.memory_request_bytes).unwrap_or(256e6);
    let latency = options.latency_seconds.unwrap_or(LATENCY_SECONDS);
    let in_flight = (rps_per_pod * latency).max(1.0);
    WorkloadSpec {
        kind,
        rps_per_pod,
        cpu_ms_per_request: cpu_millis / rps_per_pod.max(1e-9),
        memory_bytes_per_request: memory * 0.4 / in_flight,
        base_cpu_millis: 0.0,
        base_memory_bytes: memory * 0.5,
        latency_seconds: latency,
        timeout_seconds: 10.0,
        queue_limit: 1e9,
        jitter: 0.05,
        seed: 0,
    }
}

/// A workload that is scaled by nothing but the length of a queue consumes it.
fn guess_kind(autoscaler: &Autoscaler, names: &BTreeMap<String, Quantity>) -> Kind {
    let is_length = |name: &Arc<str>| {
        let named = names.get(&**name).copied();
        named.unwrap_or_else(|| Quantity::guess(name, Kind::Consumer)) == Quantity::QueueLength
    };
    let is_queue = |source: &Source| {
        let mut named = Quantity::names_in(source).peekable();
        source.needs_no_pods() && named.peek().is_some() && named.all(is_length)
    };
    let all = autoscaler.metrics.iter().all(|metric| is_queue(&metric.source));
    if all && !autoscaler.metrics.is_empty() { Kind::Consumer } else { Kind::Service }
}

/// Says what names of metrics are taken to mean, where nobody says it.
pub(super) fn note_metrics(
    autoscaler: &Autoscaler,
    kind: Kind,
    names: &BTreeMap<String, Quantity>,
    notes: &mut Vec<String>,
) {
    for metric in &autoscaler.metrics {
        for name in Quantity::names_in(&metric.source) {
            if !names.contains_key(&**name) {
                let meant = Quantity::guess(name, kind).words();
                notes.push(format!("the metric {name} is taken as {meant}"));
            }
        }
        if let Source::Resource { name } | Source::ContainerResource { name, .. } = &*metric.source
            && &**name != "cpu"
            && &**name != "memory"
        {
            notes.push(format!("nothing is known of the resource {name}: it has no samples"));
        }
    }
}

/// How long a request may take if nothing is said: ten times as long as on an idle pod, and a minute
/// for what waits in a queue.
pub(super) fn objective_seconds(spec: &WorkloadSpec) -> f64 {
    match spec.kind {
        Kind::Service => (spec.latency_seconds * 10.0).max(0.01),
        Kind::Consumer => 60.0,
    }
}
