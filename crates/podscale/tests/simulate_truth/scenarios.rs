//! The scenarios: one workload each, scaled in one way each, under loads that rise and fall.

use podscale_sim::Shape;
use podscale_sim::load::{Step, Steps};
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

/// A service whose pods serve 50 requests a second at 4 ms of cpu, of which they request 200m.
fn service() -> Value {
    json!({"rpsPerPod": 50, "cpuMsPerRequest": 4, "baseMemoryBytes": 50_000_000})
}

fn consumer() -> Value {
    json!({"kind": "consumer", "rpsPerPod": 5, "cpuMsPerRequest": 20, "baseMemoryBytes": 50_000_000})
}

/// Goes down after half a minute.
fn quick_down(min: i32, max: i32) -> Value {
    json!({"minReplicas": min, "maxReplicas": max,
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}}})
}

fn case(
    name: &'static str,
    steps: &[(u32, f64)],
    model: Value,
    metrics: Value,
    spec: Value,
) -> Case {
    Case { name, steps: steps.to_vec(), model, metrics, spec }
}

/// All of them.
pub fn cases() -> Vec<Case> {
    let wave = [(0, 50.0), (60, 220.0), (240, 60.0)];
    let memory_wave = [(0, 20.0), (60, 110.0), (240, 20.0)];
    let gentle = [(0, 100.0), (60, 180.0), (240, 100.0)];
    let burst = [(0, 0.0), (30, 20.0), (210, 0.0)];
    let awake = [(0, 0.0), (45, 12.0), (150, 0.0)];
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
    let both = {
        let mut both = resource("cpu", utilization(70));
        let more = pods("requests_per_second", average("25"));
        both.as_array_mut().expect("a list").extend(more.as_array().expect("a list").clone());
        both
    };
    let policies = json!({"minReplicas": 1, "maxReplicas": 12, "behavior": {
        "scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 30}]},
        "scaleDown": {"stabilizationWindowSeconds": 0,
            "policies": [{"type": "Percent", "value": 50, "periodSeconds": 30}]}}});
    let held = json!({"minReplicas": 1, "maxReplicas": 12,
        "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}});
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
        case("zero", &awake, consumer(), queue("zero", "40"), quick_down(0, 8)),
        case("both", &wave, service(), both, down()),
        case("policies", &wave, service(), plain(), policies),
        case("held", &wave, service(), plain(), held),
    ]
}

/// The scenario that has them all.
pub fn text(cases: &[Case]) -> String {
    let mut text = format!("name: truth\nspeed: 10\nnodes: 4\n{ENVIRONMENT}\nworkloads:\n");
    for Case { name, steps, model, .. } in cases {
        let base = steps[0].1;
        let workload = json!({"name": name, "model": model, "container": "app",
            "load": {"constant": {"rps": base}}});
        let _ = writeln!(text, "- {workload}");
    }
    text.push_str("manifests:\n");
    for Case { name, .. } in cases {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [
                    {"name": "app", "image": "example.com/app",
                        "resources": {"requests": {"cpu": "200m", "memory": "256Mi"}}}]}}}});
        let _ = writeln!(text, "- {deployment}");
    }
    for Case { name, metrics, spec, .. } in cases {
        let mut spec = spec.clone();
        spec["scaleTargetRef"] =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
        spec["metrics"] = metrics.clone();
        let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name}, "spec": spec});
        let _ = writeln!(text, "- {hpa}");
    }
    text
}
