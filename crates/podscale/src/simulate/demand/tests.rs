use super::*;
use crate::simulate::{ModelOptions, Objects};
use podscale_api::recording::AnyRecording;
use podscale_core::Span;
use podscale_sim::load::Spike;

const OBJECTS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  template:
    spec:
      containers: [{name: web, resources: {requests: {cpu: 500m}, limits: {cpu: 1}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 20
  metrics:
  - METRIC
";
const CPU: &str =
    "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}";
const RATE: &str = "{type: Pods, pods: {metric: {name: requests_per_second}, target: {type: AverageValue, averageValue: '25'}}}";
const QUEUE: &str = "{type: External, external: {metric: {name: queue_length}, target: {type: AverageValue, averageValue: '100'}}}";

fn only(recording: &Recording) -> Recorded {
    let mut recorded = Recorded::default();
    recorded.add(recording);
    recorded
}

/// Simulates an object with this metric under a spike, and records it.
fn recorded(metric: &str) -> (Subject, Recording) {
    let mut objects = Objects::default();
    objects.add_text("test", &OBJECTS.replace("METRIC", metric)).expect("YAML");
    let options = ModelOptions { rps_per_pod: Some(50.0), ..ModelOptions::default() };
    let mut subject = objects.subjects(&[], &options).expect("an autoscaler").remove(0);
    let spike = Spike {
        base_rps: 30.0,
        peak_rps: 300.0,
        at_seconds: 900.0,
        rise_seconds: 120.0,
        hold_seconds: 900.0,
        fall_seconds: 120.0,
        every_seconds: None,
    };
    subject.plan.load = Shape::Spike(spike).resolve(|_| Err("none")).expect("a load");
    subject.plan.length = Span::seconds(3600);
    subject.plan.workload.jitter = 0.0;
    let AnyRecording::Scale(recording) = subject.recorded(&subject.plan, "run").expect("a run")
    else {
        panic!("it is of a size")
    };
    (subject, *recording)
}

#[test]
fn a_simulated_run_is_decided_again_as_it_was() {
    for metric in [CPU, RATE, QUEUE] {
        let (_, recording) = recorded(metric);
        // Through the wire form, as a file would have it.
        let text = serde_json::to_string(&recording).expect("JSON");
        let recording: Recording = serde_json::from_str(&text).expect("a recording");
        let mut replayer = Replayer::new(&recording);
        assert!(recording.steps.len() > 200);
        for (place, step) in recording.steps.iter().enumerate() {
            let outcome = replayer.step(step, |replayed| replayed.outcome);
            assert_eq!(Some(&outcome), step.expected(), "{metric}, step {place}");
        }
        assert!(
            recording.steps.iter().any(|s| s.expected().is_some_and(|d| d.rescaled)),
            "{metric}"
        );
    }
}

#[test]
fn the_load_is_recovered_and_leads_to_the_same_sizes() {
    for (metric, peak, tolerance) in [(CPU, 3000.0, 0.1), (RATE, 300.0, 0.1)] {
        let (_, recording) = recorded(metric);
        let recovered = recover(&only(&recording)).expect(metric);
        let at_peak = recovered.subject.plan.load.rate(Span::seconds(1500));
        assert!((at_peak / peak - 1.0).abs() < tolerance, "{metric}: {at_peak}");
        assert!(!recovered.unknown.is_empty(), "{metric}");
        let plan = Plan {
            detail: Detail { changes: true, ..Detail::default() },
            ..recovered.subject.plan.clone()
        };
        let run = recovered.subject.run(&plan).expect("a run");
        let highest = run.changes.iter().map(|change| change.to).max().unwrap_or(0);
        let most = recovered.sizes.iter().map(|(_, size)| *size).max().unwrap_or(0);
        assert!((highest - most).abs() <= 2, "{metric}: {highest} {most}");
    }
}

#[test]
fn what_a_queue_got_is_recovered_as_far_as_it_can_be() {
    let (_, recording) = recorded(QUEUE);
    let recovered = recover(&only(&recording)).expect("a load");
    let plan = &recovered.subject.plan;
    assert!(plan.workload.rps_per_pod > 10.0 && plan.workload.rps_per_pod < 51.0);
    // While pods keep the queue empty, nothing is known; before that, it grows.
    let rates = (900..1500).step_by(15).map(|seconds| plan.load.rate(Span::seconds(seconds)));
    let peak = rates.fold(0.0, f64::max);
    assert!(peak > 100.0 && peak < 400.0, "{peak}");
    let unknown = recovered.unknown.join("\n");
    assert!(unknown.contains("while the queue was empty"), "{unknown}");
}

#[test]
fn what_tells_nothing_is_refused() {
    let (_, mut recording) = recorded(CPU);
    recording.steps.truncate(3);
    let error = recover(&only(&recording)).expect_err("too short").to_string();
    assert_eq!(
        error,
        "default/web: 3 steps are too few to recover a load from; at least 8 are needed"
    );
    let memory = "{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 60}}}";
    let (_, recording) = recorded(memory);
    let error = recover(&only(&recording)).expect_err("memory tells no demand").to_string();
    assert!(error.contains("no metric tells how much there was to do"), "{error}");
}

/// Live controllers record an object in many pieces, and files may come in any order.
#[test]
fn pieces_of_a_recording_are_put_together() {
    let (_, recording) = recorded(RATE);
    let whole = recover(&only(&recording)).expect("a load");
    let mut pieces = Recorded::default();
    let (first, second) = recording.steps.split_at(recording.steps.len() / 2);
    for steps in [second, first] {
        pieces.add(&Recording { steps: steps.to_vec(), ..recording.clone() });
    }
    let pieces = recover(&pieces).expect("a load");
    assert_eq!(pieces.sizes, whole.sizes);
    let rate = |recovered: &Recovered| recovered.subject.plan.load.rate(Span::seconds(1500));
    assert_eq!(rate(&pieces), rate(&whole));
}
