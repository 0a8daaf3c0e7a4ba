//! The scenarios: one workload each, scaled in one way each, under loads that rise and fall.

use podscale_api::pod_autoscaler::crd;
use podscale_sim::environment::Rollout;
use podscale_sim::load::{Step, Steps};
use podscale_sim::{Environment, Shape};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One scenario.
pub struct Case {
    pub name: &'static str,
    /// From which second on how much comes.
    steps: Vec<(u32, f64)>,
    model: Value,
    metrics: Value,
    /// Bounds and behavior of the autoscaler.
    spec: Value,
    /// From which second on pods are replaced by those of a new version.
    pub rollout: Option<u32>,
    /// Whether nodes have no metrics of its pods.
    without_samples: bool,
    /// Whether its autoscaler is a PodAutoscaler.
    own_kind: bool,
}

/// Where everything runs, as the embedded cluster has it.
const ENVIRONMENT: &str = "
simulation:
  environment:
    apiLatencySeconds: 0.5
    startUp: {uniform: {leastSeconds: 1.4, mostSeconds: 2.6}}
    readiness: {fixed: {seconds: 3}}
    termination: {fixed: {seconds: 2}}
    resourceMetrics: {resolutionSeconds: 15, windowSeconds: 15, delaySeconds: 0.5}
    customMetrics: {resolutionSeconds: 1, windowSeconds: 1, delaySeconds: 0}
    arrivals: even
";

/// How many nodes there are. Each is scraped at a moment of its own, and a simulation has one for all pods: those of
/// a case are therefore on one node.
const NODES: usize = 8;

impl Case {
    /// The load so many seconds later; before that it is as at the beginning.
    pub fn shape(&self, later: u32) -> Shape {
        let first = (later > 0).then_some((0, self.steps[0].1));
        let steps = self.steps.iter().map(|(at, rps)| (at + later, *rps));
        let steps = first.into_iter().chain(steps);
        let steps = steps.map(|(at, rps)| Step { at_seconds: at.into(), rps }).collect();
        Shape::Steps(Steps { steps, repeat_seconds: None })
    }
}

impl Case {
    /// What is special about where it runs, so many seconds later.
    pub fn adapt(&self, environment: &mut Environment, later: u32) {
        if self.without_samples {
            environment.resource_metrics.missing = 1.0;
        }
        environment.rollouts.extend(self.rollout.map(|at| Rollout {
            at_seconds: (at + later).into(),
            max_surge: 0.25,
            max_unavailable: 0.25,
        }));
    }
}

/// A change of a Deployment that makes a new version of it.
pub fn new_version() -> Value {
    json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})
}

fn resource(name: &str, target: Value) -> Value {
    json!([{"type": "Resource", "resource": {"name": name, "target": target}}])
}

fn utilization(percent: i32) -> Value {
    json!({"type": "Utilization", "averageUtilization": percent})
}

fn average(value: &str) -> Value {
    json!({"type": "AverageValue", "averageValue": value})
}

fn pods(name: &str, target: Value) -> Value {
    json!([{"type": "Pods", "pods": {"metric": {"name": name}, "target": target}}])
}

fn queue(workload: &str, per_pod: &str) -> Value {
    let metric =
        json!({"name": "queue_length", "selector": {"matchLabels": {"workload": workload}}});
    json!([{"type": "External", "external": {"metric": metric, "target": average(per_pod)}}])
}

/// A service whose pods serve 150 requests a second at 4 ms of cpu, of which they request 200m. Two of them are enough
/// for every load here: how much of a backlog is left depends on moments that no two runs share.
fn service() -> Value {
    json!({"rpsPerPod": 150, "cpuMsPerRequest": 4, "baseMemoryBytes": 50_000_000})
}

/// A consumer, slow enough that a second more or less of a load changes the size by a small part of a pod.
fn consumer() -> Value {
    json!({"kind": "consumer", "rpsPerPod": 1, "cpuMsPerRequest": 20, "baseMemoryBytes": 50_000_000})
}

/// Goes down after 40 seconds. No window here is a multiple of the sync period: whether a decision is within it would
/// then be a matter of milliseconds.
fn quick_down(min: i32, max: i32) -> Value {
    json!({"minReplicas": min, "maxReplicas": max,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 40}}})
}

fn case(
    name: &'static str,
    steps: &[(u32, f64)],
    model: Value,
    metrics: Value,
    spec: Value,
) -> Case {
    let steps = steps.to_vec();
    let (rollout, without_samples, own_kind) = (None, false, false);
    Case { name, steps, model, metrics, spec, rollout, without_samples, own_kind }
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let wave = [(0, 50.0), (30, 220.0), (150, 65.0)];
    let memory_wave = [(0, 20.0), (30, 110.0), (150, 20.0)];
    let gentle = [(0, 100.0), (30, 180.0), (150, 100.0)];
    let burst = [(0, 0.0), (30, 4.0), (130, 0.0)];
    let awake = [(0, 0.0), (30, 3.0), (100, 0.0)];
    let memory = json!({"rpsPerPod": 60, "cpuMsPerRequest": 1, "memoryBytesPerRequest": 4_000_000,
        "baseMemoryBytes": 50_000_000, "latencySeconds": 1});
    let described = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "object"});
    let object = json!([{"type": "Object", "object": {"describedObject": described,
        "metric": {"name": "requests_per_second"}, "target": average("30")}}]);
    let object_value = json!([{"type": "Object", "object": {"describedObject":
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "object-value"},
        "metric": {"name": "requests_per_second"}, "target": {"type": "Value", "value": "100"}}}]);
    let container = json!([{"type": "ContainerResource", "containerResource":
        {"name": "cpu", "container": "app", "target": utilization(50)}}]);
    let both = || {
        let mut both = resource("cpu", utilization(70));
        let more = pods("requests_per_second", average("25"));
        both.as_array_mut().expect("a list").extend(more.as_array().expect("a list").clone());
        both
    };
    let policies = json!({"minReplicas": 1, "maxReplicas": 12, "behavior": {
        "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 25}]},
        "scaleDown": {"stabilizationWindowSeconds": 0,
            "policies": [{"type": "Percent", "value": 50, "periodSeconds": 25}]}}});
    let held = json!({"minReplicas": 1, "maxReplicas": 12,
        "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}});
    let idle = json!({"minReplicas": 1, "maxReplicas": 8,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 40}},
        "scaleToZero": {"coolDown": "50s"}});
    let plain = || pods("requests_per_second", average("30"));
    let down = || quick_down(1, 12);
    let cpu = || resource("cpu", utilization(50));
    let cpu_amount = resource("cpu", average("120m"));
    let bytes = resource("memory", average("150M"));
    vec![
        case("cpu", &wave, service(), cpu(), down()),
        case("cpu-amount", &wave, service(), cpu_amount, down()),
        case("memory", &memory_wave, memory, bytes, down()),
        case("container", &wave, service(), container, down()),
        case("pods", &wave, service(), plain(), down()),
        case("object", &wave, service(), object, down()),
        case("object-value", &gentle, service(), object_value, quick_down(2, 6)),
        case("queue", &burst, consumer(), queue("queue", "50"), quick_down(1, 10)),
        case("zero", &awake, consumer(), queue("zero", "25"), quick_down(0, 8)),
        case("both", &wave, service(), both(), down()),
        case("policies", &wave, service(), plain(), policies),
        case("held", &wave, service(), plain(), held),
        Case { rollout: Some(90), ..case("rollout", &wave, service(), cpu(), down()) },
        Case { without_samples: true, ..case("no-samples", &wave, service(), both(), down()) },
        Case {
            own_kind: true,
            ..case("own-kind", &awake, consumer(), queue("own-kind", "25"), idle)
        },
    ]
}

/// The scenario that has them all.
pub fn text(cases: &[Case]) -> String {
    let mut text = format!("name: truth\nnodes: {NODES}\n{ENVIRONMENT}\nworkloads:\n");
    for Case { name, steps, model, .. } in cases {
        let base = steps[0].1;
        let workload = json!({"name": name, "model": model, "container": "app",
            "load": {"constant": {"rps": base}}});
        let _ = writeln!(text, "- {workload}");
    }
    text.push_str("manifests:\n");
    let _ = writeln!(text, "- {}", crd::definition());
    for (index, Case { name, without_samples, .. }) in cases.iter().enumerate() {
        let node = format!("node-{}", 1 + index % NODES);
        let annotations = match without_samples {
            true => json!({"demo.podscale.dev/fault": "no-metrics"}),
            false => json!({}),
        };
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}, "annotations": annotations},
                    "spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [
                    {"name": "app", "image": "example.com/app",
                        "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}]}}}});
        let _ = writeln!(text, "- {deployment}");
    }
    for Case { name, metrics, spec, own_kind, .. } in cases {
        let mut spec = spec.clone();
        spec["scaleTargetRef"] =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        spec["metrics"] = metrics.clone();
        let (version, kind) = match own_kind {
            true => ("podscale.dev/v1alpha1", "PodAutoscaler"),
            false => ("autoscaling/v2", "HorizontalPodAutoscaler"),
        };
        let autoscaler = json!({"apiVersion": version, "kind": kind, "metadata": {"name": name},
            "spec": spec});
        let _ = writeln!(text, "- {autoscaler}");
    }
    text
}
