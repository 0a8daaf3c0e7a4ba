//! Every field decides something: with another value of it, a small world gets another size. The table is in
//! `decided.json`; a field that is neither there nor in [`ELSEWHERE`] fails the test.

use super::meaning::all;
use super::*;
use crate::pod_autoscaler::hpa_form::recorded;
use crate::recording::Recording;
use crate::replay::Replayer;
use crate::translate::scaled_object::TriggerMetric;
use podscale_core::model::{EventSource, Milli, Targets};
use serde::Deserialize;
use std::collections::BTreeSet;

/// What a row of the table says: with the first and the second value at `at`, what is decided differs.
#[derive(Deserialize)]
struct Row {
    field: String,
    at: String,
    values: [Value; 2],
    #[serde(default)]
    spec: Map<String, Value>,
    #[serde(default = "one_step")]
    steps: Vec<Value>,
}

fn one_step() -> Vec<Value> {
    vec![json!({})]
}

/// Fields that the controller acts on before or after anything is decided: the file and the name of the test
/// that fails if it does not.
const ELSEWHERE: [(&str, &str, &str); 22] = [
    ("TriggerSource.type", TRIGGERS, "an_event_source_is_asked_as_its_fields_say"),
    ("TriggerSource.metadata", TRIGGERS, "an_event_source_is_asked_as_its_fields_say"),
    ("TriggerSource.metricType", TRIGGERS, "an_event_source_is_asked_as_its_fields_say"),
    ("TriggerSource.useCachedMetrics", TRIGGERS, "an_event_source_is_asked_as_its_fields_say"),
    (
        "TriggerSource.envSourceContainerName",
        TRIGGERS,
        "an_event_source_is_asked_as_its_fields_say",
    ),
    ("AuthenticationRef.name", TRIGGERS, "an_event_source_is_asked_as_its_fields_say"),
    ("AuthenticationRef.kind", TRIGGERS, "an_event_source_is_asked_as_its_fields_say"),
    ("TargetRef.apiVersion", OF_CONTROLLER, "the_target_is_the_one_that_the_spec_names"),
    ("TargetRef.kind", OF_CONTROLLER, "the_target_is_the_one_that_the_spec_names"),
    ("TargetRef.name", OF_CONTROLLER, "the_target_is_the_one_that_the_spec_names"),
    (
        "Spec.podSelection",
        OF_CONTROLLER,
        "only_pods_that_the_target_owns_count_unless_the_spec_says",
    ),
    ("Spec.syncPeriod", PODS, "schedules_change_the_bounds_and_a_sync_period_of_its_own_counts"),
    ("Schedule.name", PODS, "schedules_change_the_bounds_and_a_sync_period_of_its_own_counts"),
    ("PodDeletionCost.metric", COSTS, "busy_pods_go_last"),
    ("PrometheusSource.server", QUERIES, "one_value_is_an_answer_and_servers_must_be_allowed"),
    ("PrometheusSource.query", QUERIES, "one_value_is_an_answer_and_servers_must_be_allowed"),
    ("DescribedObject.apiVersion", SOURCES, "each_type_asks_the_path_that_kubernetes_knows"),
    ("Predict.confidence", FORECASTS, "the_margin_grows_with_the_confidence"),
    ("Predict.scaleInGuard", AHEAD, "pods_that_are_needed_again_soon_are_kept"),
    ("Headroom.confidence", AHEAD, "there_is_room_for_what_the_demand_usually_gains"),
    ("Headroom.limitPercent", AHEAD, "there_is_room_for_what_the_demand_usually_gains"),
    ("Headroom.overloadPermille", AHEAD, "room_is_learned_by_how_often_it_was_too_little"),
];
const TRIGGERS: &str = "podscale-controller/src/triggers/tests/pod_autoscaler.rs";
const FORECASTS: &str = "podscale-core/src/predict/tests.rs";
const AHEAD: &str = "podscale-core/tests/extended/ahead.rs";
const PODS: &str = "podscale-controller/src/controller/tests/pod_autoscaler.rs";
const COSTS: &str = "podscale-controller/src/controller/tests/pod_autoscaler/costs.rs";
const OF_CONTROLLER: &str = "podscale-controller/src/controller/tests/pod_autoscaler/named.rs";
const SOURCES: &str = "podscale-controller/src/source/tests.rs";
const QUERIES: &str = "podscale-controller/src/source/prometheus_query/tests.rs";

/// A metric of the world by its name; `queue as backlog` is called by another one.
fn metric(text: &str) -> Value {
    let (what, name) = text.split_once(" as ").unwrap_or((text, text));
    let average = |value: &str| json!({"type": "AverageValue", "averageValue": value});
    let half = json!({"type": "Utilization", "averageUtilization": 50});
    let external = |name: &str, target: Value| json!({"type": "External", "external": {"metric": {"name": name}, "target": target}});
    let mut metric = match what {
        "queue" | "backlog" => external(what, average("10")),
        "whole queue" => external("queue", json!({"type": "Value", "value": "40"})),
        "sleepy queue" => {
            let mut metric = external("queue", average("10"));
            metric["activation"] = json!("100");
            metric
        }
        "rate" => {
            json!({"type": "Prometheus", "prometheus": {"query": "rate", "target": average("10")}})
        }
        "jobs" => {
            json!({"type": "Trigger", "trigger": {"type": "redis", "metadata": {"listName": "jobs"}}})
        }
        "rps" => {
            json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": average("10")}})
        }
        "cpu" => json!({"type": "Resource", "resource": {"name": "cpu", "target": half}}),
        "app" => json!({"type": "ContainerResource",
            "containerResource": {"name": "cpu", "container": "app", "target": half}}),
        "hits" => json!({"type": "Object", "object": {"metric": {"name": "hits"},
            "target": average("10"),
            "describedObject": {"apiVersion": "v1", "kind": "Service", "name": "front"}}}),
        other => panic!("there is no metric {other:?}"),
    };
    metric["name"] = json!(name.replace(' ', "_"));
    metric
}

/// Names of metrics and policies become what they stand for.
fn expand(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(expand),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("metrics" | "policies", Value::Array(items)) => {
                        items.iter_mut().for_each(named)
                    }
                    (_, value) => expand(value),
                }
            }
        }
        _ => {}
    }
}

fn named(item: &mut Value) {
    if let Some(text) = item.as_str() {
        *item = match text.split_once(" pod") {
            Some((count, _)) => {
                let count: i32 = count.parse().expect("a number");
                json!({"type": "Pods", "value": count, "periodSeconds": 600})
            }
            None => metric(text),
        };
    }
}

/// The spec of a row, with one of its values.
fn spec(row: &Row, value: &Value) -> Value {
    let policy = |kind: &str| json!([{"type": kind, "value": 100, "periodSeconds": 15}]);
    let mut spec = json!({"minReplicas": 1, "maxReplicas": 50, "metrics": ["queue"],
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "behavior": {"scaleUp": {"policies": policy("Pods")},
            "scaleDown": {"stabilizationWindowSeconds": 0, "policies": policy("Percent")}}});
    for (field, value) in &row.spec {
        spec[field] = value.clone();
    }
    let (above, last) = row.at.rsplit_once('/').expect("a pointer");
    expand(&mut spec);
    let mut value = json!({last: value});
    expand(&mut value);
    spec.pointer_mut(above).expect("what is above it is there")[last] = value[last].take();
    spec
}

const BEGIN: i64 = 1_767_600_300;

/// What the world looks like at a step, in the form of a Recording's.
fn step(number: usize, given: &Value, spec: &Value) -> Value {
    let seconds = BEGIN + 60 * i64::try_from(number).expect("few");
    let time =
        |seconds: i64| crate::time::format_rfc3339_micros(podscale_core::Time(seconds * 1_000_000));
    let amount = |name: &str, usual: i64| given[name].as_i64().unwrap_or(usual);
    let replicas = given["replicas"].as_i64();
    let count = usize::try_from(replicas.unwrap_or(4)).expect("a size");
    let container = |name: &str| {
        json!({"name": name, "resources": {"requests": {"cpu": "200m", "memory": "400Mi"},
            "limits": {"cpu": "400m", "memory": "800Mi"}}})
    };
    let pod = |place: usize| {
        let age = if place + 1 == count && given["young"] == true { 60 } else { 3600 };
        let since = time(seconds - age);
        json!({"metadata": {"name": format!("p{place}"), "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [container("app"), container("side")]},
            "status": {"phase": "Running", "startTime": since, "conditions":
                [{"type": "Ready", "status": "True", "lastTransitionTime": since}]}})
    };
    let used = |name: &str, cpu: i64| json!({"name": name, "usage": {"cpu": format!("{cpu}m"), "memory": "100Mi"}});
    let of_pod = |place: usize| {
        json!({"metadata": {"name": format!("p{place}"), "namespace": "shop", "labels": {"app": "web"}},
            "timestamp": time(seconds), "window": "15s",
            "containers": [used("app", 100), used("side", amount("side", 100))]})
    };
    let custom = |kind: &str, name: &str, metric: &str, value: i64| {
        json!({"describedObject": {"kind": kind, "namespace": "shop", "name": name},
            "metric": {"name": metric, "selector": null}, "timestamp": time(seconds),
            "value": value.to_string()})
    };
    let rps = |place: usize| {
        custom("Pod", &format!("p{place}"), "rps", given["rps"][place].as_i64().unwrap_or(10))
    };
    let external = |name: &str, queue: &str, value: i64| {
        json!({"metricName": name, "metricLabels": {"queue": queue}, "timestamp": time(seconds),
            "value": value.to_string()})
    };
    let objects = [("Service", "front", 40), ("Service", "back", 80), ("Ingress", "front", 120)];
    let hits = objects.map(|(kind, name, value)| custom(kind, name, "hits", value));
    let mut step = json!({"time": time(seconds),
        "scale": {"status": {"selector": "app=web", "replicas": count}},
        "pods": (0..count).map(pod).collect::<Value>(),
        "podMetrics": (0..count).map(of_pod).collect::<Value>(),
        "customMetrics": (0..count).map(rps).chain(hits).collect::<Value>(),
        "externalMetrics": [external("queue", "orders", amount("orders", 30)),
            external("queue", "mails", 10), external("backlog", "", 80)]});
    if number == 0 || replicas.is_some() {
        step["scale"]["spec"] = json!({"replicas": count});
    }
    let metrics = spec["metrics"].as_array().expect("metrics").iter().enumerate();
    step["answers"] = metrics
        .filter_map(|(place, metric)| {
            let name = match metric["type"].as_str() {
                Some("Prometheus") => "rate",
                Some("Trigger") => "jobs",
                _ => return None,
            };
            if given.get(name) == Some(&Value::Null) {
                return Some(json!({"metric": place, "error": "no answer"}));
            }
            let mut answer = json!({"metric": place, "values": [{"value": amount(name, 40).to_string(),
                "time": time(seconds - amount("age", 0))}]});
            if name == "jobs" {
                answer["active"] = json!(amount(name, 40) > 0);
            }
            Some(answer)
        })
        .collect();
    step
}

/// What is decided at each step, and the size that the target gets.
fn decided(row: &Row, value: &Value) -> String {
    let spec = spec(row, value);
    let object = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 1},
        "spec": spec});
    let mut pa: PodAutoscaler = serde_json::from_value(object).expect("an autoscaler");
    default::default_spec(&mut pa.spec);
    // As an event source reads its metadata.
    let average_value = Some(Milli(10_000));
    let measured = pa.spec.triggers().map(|(place, ..)| TriggerMetric::External {
        name: format!("s{place}-redis-jobs").into(),
        source: EventSource { kind: "redis".into(), key: place.to_string().into() },
        targets: Targets { average_value, ..Targets::default() },
    });
    let measured: Vec<TriggerMetric> = measured.collect();
    let model = translate::pod_autoscaler::checked(&pa, Ok(&measured));
    assert_eq!(model.invalid(), None, "{} = {value}", row.field);
    let steps = row.steps.iter().enumerate().map(|(number, given)| step(number, given, &spec));
    let recording = json!({"apiVersion": API_VERSION, "kind": "Recording", "metadata": {"name": "x"},
        "controller": {}, "autoscaler": recorded(&pa, &model, None), "steps": steps.collect::<Value>()});
    let recording: Recording = serde_json::from_value(recording).expect("a recording");
    let mut replayer = Replayer::new(&recording);
    let sizes = recording.steps.iter().map(|step| {
        replayer.step(step, |replayed| {
            let desired = replayed.decision.desired.map_or("-".to_owned(), |n| n.to_string());
            format!("{desired} ({})", replayed.outcome.replicas)
        })
    });
    sizes.collect::<Vec<_>>().join(", ")
}

#[test]
fn what_is_decided_changes_with_every_field() {
    let rows: Vec<Row> = serde_json::from_str(include_str!("decided.json")).expect("a table");
    let mut covered: BTreeSet<String> = BTreeSet::new();
    let mut ignored = Vec::new();
    for row in &rows {
        let [one, other] = [0, 1].map(|place| decided(row, &row.values[place]));
        if one == other {
            ignored.push(format!("{}: {one} with either of {:?}", row.field, row.values));
        }
        covered.insert(row.field.clone());
    }
    assert!(ignored.is_empty(), "ignored:\n{}", ignored.join("\n"));
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (field, file, test) in ELSEWHERE {
        let text = std::fs::read_to_string(crates.join(file)).expect(file);
        assert!(text.contains(&format!("fn {test}(")), "{file} has no test {test}");
        covered.insert(field.to_owned());
    }
    let missing: Vec<String> = leaves()
        .map(|(object, field)| format!("{object}.{field}"))
        .filter(|field| !covered.contains(field))
        .collect();
    assert!(missing.is_empty(), "no test fails if these are ignored: {missing:?}");
}

/// All fields but those that only hold others.
fn leaves() -> impl Iterator<Item = (&'static str, &'static str)> {
    fn holders(object: &'static Object, found: &mut BTreeSet<(&'static str, &'static str)>) {
        for field in object.fields {
            if let Some(inner) = field.shape.object() {
                found.insert((object.name, field.name));
                holders(inner, found);
            }
        }
    }
    let mut held = BTreeSet::new();
    holders(&SPEC, &mut held);
    all(&SPEC).into_iter().filter(move |name| !held.contains(name))
}
