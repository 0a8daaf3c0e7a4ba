//! Answers in the form for every source lead to the same decisions as those of the metrics APIs, and
//! writes that were withheld are replayed as such.

use podscale_api::recording::{RecordedAnswer, RecordedDecision, RecordedValue, Recording, Step};
use podscale_api::replay::Replayer;
use podscale_api::time::ExactTimestamp;
use podscale_core::{ScaleWrite, Withheld};
use serde_json::{Value, json};

const STEP_TIME: &str = "2000-01-01T00:00:15Z";

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        "status": {
            "phase": "Running", "startTime": "1999-12-31T00:00:00Z",
            "conditions": [{"type": "Ready", "status": "True",
                            "lastTransitionTime": "1999-12-31T00:00:00Z"}],
        },
    })
}

/// One step over two pods with this metric; `answered` is merged into the step.
fn recording(metric: &Value, answered: &Value) -> Recording {
    let mut step = json!({
        "time": STEP_TIME,
        "scale": {"spec": {"replicas": 2}, "status": {"replicas": 2, "selector": "app=web"}},
        "pods": [pod("web-1"), pod("web-2")],
    });
    let fields = answered.as_object().expect("fields").clone();
    step.as_object_mut().expect("a step").extend(fields);
    let recording = json!({
        "apiVersion": "podscale.dev/v1alpha1", "kind": "Recording",
        "autoscaler": {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 1, "maxReplicas": 10, "metrics": [metric],
            },
        },
        "steps": [step],
    });
    serde_json::from_value(recording).expect("a recording")
}

fn decided(metric: &Value, answered: &Value) -> RecordedDecision {
    let recording = recording(metric, answered);
    Replayer::new(&recording).step(&recording.steps[0], |replayed| replayed.outcome)
}

fn cpu() -> Value {
    json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}})
}

fn per_pod() -> Value {
    json!({"type": "Pods", "pods": {
        "metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "10"}}})
}

fn object() -> Value {
    json!({"type": "Object", "object": {
        "metric": {"name": "rate"}, "target": {"type": "Value", "value": "10"},
        "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "s"}}})
}

fn external() -> Value {
    json!({"type": "External", "external": {
        "metric": {"name": "rate"}, "target": {"type": "AverageValue", "averageValue": "10"}}})
}

fn usage(pod: &str, cpu: &str) -> Value {
    json!({"metadata": {"name": pod, "namespace": "default", "labels": {"app": "web"}},
           "timestamp": STEP_TIME, "window": "15s",
           "containers": [{"name": "c", "usage": {"cpu": cpu}}]})
}

fn custom(kind: &str, name: &str, value: &str) -> Value {
    json!({"describedObject": {"kind": kind, "namespace": "default", "name": name},
           "metric": {"name": "rate"}, "timestamp": STEP_TIME, "value": value})
}

#[test]
fn both_forms_decide_alike() {
    let values = |values: Value| json!({"answers": [{"metric": 0, "values": values}]});
    let outside = |value: &str| json!({"metricName": "rate", "metricLabels": {}, "value": value});
    for (metric, kubernetes, general, replicas) in [
        (
            cpu(),
            json!({"podMetrics": [usage("web-1", "90m"), usage("web-2", "110m")]}),
            values(json!([{"value": "90m", "pod": "web-1"}, {"value": "0.11", "pod": "web-2"}])),
            4,
        ),
        // One pod has no value.
        (
            cpu(),
            json!({"podMetrics": [usage("web-2", "110m")]}),
            values(json!([{"value": "110m", "pod": "web-2"}])),
            2,
        ),
        (
            per_pod(),
            json!({"customMetrics": [custom("Pod", "web-1", "25"), custom("Pod", "gone", "15")]}),
            values(json!([{"value": "25", "pod": "web-1"}, {"value": "15", "pod": "gone"}])),
            4,
        ),
        (
            object(),
            json!({"customMetrics": [custom("Service", "s", "30")]}),
            values(json!([{"value": "30", "object": {"kind": "Service", "name": "s"}}])),
            4,
        ),
        // An object metric has exactly one value.
        (object(), json!({"customMetrics": []}), values(json!([])), 2),
        (
            object(),
            json!({"customMetrics": [custom("Service", "s", "30"), custom("Service", "s", "1")]}),
            values(json!([{"value": "30"}, {"value": "1"}])),
            2,
        ),
        (
            external(),
            json!({"externalMetrics": [outside("20"), outside("25")]}),
            values(json!([{"value": "20", "labels": {"queue": "a"}}, {"value": "25"}])),
            4,
        ),
        (external(), json!({}), values(json!([])), 2),
        (
            external(),
            json!({"errors": {"externalMetrics": "no answer"}}),
            json!({"answers": [{"metric": 0, "source": "queue", "error": "no answer"}]}),
            2,
        ),
        // An answer of its own takes precedence, one for another metric does not count.
        (
            external(),
            json!({"externalMetrics": [outside("50")],
                   "answers": [{"metric": 1, "values": [{"value": "1"}]}]}),
            json!({"externalMetrics": [outside("1")],
                   "answers": [{"metric": 0, "values": [{"value": "50"}]}]}),
            4,
        ),
    ] {
        let expected = decided(&metric, &kubernetes);
        assert_eq!(expected.replicas, replicas, "{metric} {kubernetes}");
        assert_eq!(decided(&metric, &general), expected, "{metric} {general}");
    }
}

/// Fresh cpu samples of a starting pod count only if they were taken after it became ready, so the
/// time of a value matters.
#[test]
fn values_have_times() {
    let metric = cpu();
    let with_times = |answer: &str, value: &str| {
        let mut young = pod("web-1");
        young["status"]["startTime"] = json!("2000-01-01T00:00:00Z");
        young["status"]["conditions"][0]["lastTransitionTime"] = json!("2000-01-01T00:00:05Z");
        let mut measured = json!({"value": "100m", "pod": "web-1", "window": "5s"});
        if !value.is_empty() {
            measured["time"] = json!(value);
        }
        let mut answer_value = json!({"metric": 0, "values": [measured]});
        if !answer.is_empty() {
            answer_value["time"] = json!(answer);
        }
        decided(&metric, &json!({"pods": [young, pod("web-2")], "answers": [answer_value]})).error
    };
    let (early, late) = ("2000-01-01T00:00:09.9Z", "2000-01-01T00:00:10Z");
    for (answer, value, counts) in [
        ("", "", true),
        (late, "", true),
        (early, "", false),
        (early, late, true),
        (late, early, false),
        ("", early, false),
    ] {
        assert_eq!(with_times(answer, value).is_none(), counts, "{answer} {value}");
    }
}

/// Asked for the pods of one autoscaler alone, an answer with an amount that is none cannot be
/// decoded. So that autoscaler has no metrics, while its neighbour has them all.
#[test]
fn an_unreadable_amount_costs_only_those_who_select_it() {
    let bad = json!({"podMetrics": [usage("web-1", "90m"), usage("web-2", "lots")]});
    let error = decided(&cpu(), &bad).error.expect("no metrics");
    assert!(
        error.ends_with(
            "failed to get cpu utilization: unable to get metrics for resource cpu: unable to fetch \
             metrics from resource metrics API: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ),
        "{error}"
    );
    let mut neighbour = usage("other", "lots");
    neighbour["metadata"]["labels"]["app"] = json!("other");
    let elsewhere =
        json!({"podMetrics": [usage("web-1", "90m"), neighbour, usage("web-2", "110m")]});
    assert_eq!(decided(&cpu(), &elsewhere).replicas, 4);
    // It is written as it was read, so a Recording of it replays.
    let recording = recording(&cpu(), &bad);
    let again = serde_json::to_value(&recording.steps[0].pod_metrics).expect("JSON");
    assert_eq!(again[1]["containers"][0]["usage"]["cpu"], "lots");
}

#[test]
fn withheld_writes_are_replayed() {
    let answers = vec![RecordedAnswer {
        values: Some(vec![RecordedValue {
            value: "50".parse().expect("a quantity"),
            time: None,
            window: None,
            labels: podscale_api::Labels::default(),
            pod: None,
            object: None,
        }]),
        ..RecordedAnswer::default()
    }];
    let recording = recording(&external(), &json!({}));
    let mut replayer = Replayer::new(&recording);
    let dry = Some(Withheld::DryRun);
    let first = Step {
        answers: answers.clone(),
        scale_withheld: dry,
        status_withheld: dry,
        ..recording.steps[0].clone()
    };
    replayer.step(&first, |replayed| {
        assert_eq!(replayed.pass.scale_withheld(), dry);
        assert_eq!(replayed.pass.status_withheld(), dry);
        assert_eq!(replayed.decision.desired, Some(4));
        let RecordedDecision { replicas, rescaled, error, status_written, events, .. } =
            replayed.outcome;
        assert_eq!((replicas, rescaled, error, status_written), (2, false, None, false));
        assert!(events.is_empty(), "{events:?}");
    });
    // The size is still the old one, and what was recommended is remembered.
    let time = ExactTimestamp(first.time.0.after(podscale_core::Span::seconds(15)));
    let second = Step { time, scale: None, answers, ..recording.steps[0].clone() };
    replayer.step(&second, |replayed| {
        assert_eq!(replayed.snapshot.history.recommendations.len(), 2);
        assert_eq!(
            replayed.pass.scale,
            podscale_core::pass::WriteOutcome::Ended(ScaleWrite::Written)
        );
        assert_eq!((replayed.outcome.replicas, replayed.outcome.rescaled), (4, true));
    });
}
