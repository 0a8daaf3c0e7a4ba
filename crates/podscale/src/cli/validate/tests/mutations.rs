//! A thousand ways to spoil an autoscaler of each version and kind: every one is refused at the field that is
//! wrong.

use super::*;
use podscale_api::hpa::convert::{self, Version};
use serde_json::json;

pub(super) const MUTATIONS: u64 = 1_000;
/// Maps whose keys are no fields.
const MAPS: [&str; 3] = ["annotations", "labels", "matchLabels"];

/// Random numbers that depend on a seed alone: SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((bits ^ (bits >> 31)) % (limit as u64)).expect("small")
    }
}

/// An autoscaler that uses everything that a version has.
pub(super) fn everything(version: Version) -> Value {
    let named = json!({"name": "qps", "selector": {"matchLabels": {"app": "x"}}});
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "labels": {"app": "web"}, "annotations": {"a.b/c": "d"}},
        "spec": {"minReplicas": 1, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [
                {"type": "Pods", "pods": {"metric": named, "target": {"type": "AverageValue", "averageValue": "10"}}},
                {"type": "Object", "object": {"metric": {"name": "rps"}, "target": {"type": "Value", "value": "2k"},
                    "describedObject": {"kind": "Service", "name": "web", "apiVersion": "v1"}}},
                {"type": "External", "external": {"metric": {"name": "queue"}, "target": {"type": "Value", "value": "30"}}},
                {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "app",
                    "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "Pods", "pods": {"metric": {"name": "plain"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": 5, "selectPolicy": "Min", "tolerance": "50m",
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]},
                "scaleDown": {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 10, "periodSeconds": 30}]}}},
        "status": {"currentReplicas": 3, "desiredReplicas": 4, "currentMetrics": [
            {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 80, "averageValue": "800m"}}}]}});
    convert::write(&convert::read(&hpa).expect("an autoscaler"), version).expect("JSON")
}

/// A PodAutoscaler that uses everything.
pub(super) fn pod_autoscaler() -> Value {
    let mut object = everything(Version::V2);
    object["apiVersion"] = "podscale.dev/v1alpha1".into();
    object["kind"] = "PodAutoscaler".into();
    object.as_object_mut().expect("fields").remove("status");
    let spec = &mut object["spec"];
    let metrics = spec["metrics"].as_array_mut().expect("metrics");
    metrics[0]["aggregate"] = "P95".into();
    metrics[0]["watermarks"] = json!({"low": "5", "high": "15"});
    metrics[5]["utilizationOf"] = "Limits".into();
    metrics[2]["activation"] = "3".into();
    metrics[2]["onMissing"] = json!({"replicas": 3});
    metrics.push(json!({"type": "Prometheus", "maxAge": "90s", "onMissing": "LastValue",
        "prometheus": {"query": "up", "server": "http://prometheus:9090", "target": {"type": "Value", "value": "5"}}}));
    for (index, metric) in metrics.iter_mut().enumerate() {
        metric["name"] = format!("m{index}").into();
    }
    let more = json!({"combine": "Expression", "expression": "max(m0, m1)", "mode": "DryRun",
        "modeUntil": "2026-01-01T00:00:00Z", "podSelection": "Selector", "warmUp": "30s", "syncPeriod": "5s",
        "pause": {"scaleUp": {"until": "2026-01-01T00:00:00Z"}}, "hold": {"replicas": 3},
        "scaleToZero": {"coolDown": "1m", "zeroByOthers": "Wake"}, "fallback": {"replicas": 3, "after": "2m"},
        "schedules": [{"name": "day", "timeZone": "Europe/Zurich", "start": "0 8 * * *", "end": "0 18 * * *",
            "minReplicas": 2, "maxReplicas": 20, "ramp": "10m"}]});
    for (name, value) in more.as_object().expect("fields") {
        spec[name] = value.clone();
    }
    spec["behavior"]["scaleUp"]["limit"] = json!({"factor": "3", "minimum": 6});
    spec["behavior"]["scaleDown"]["forbiddenWindowSeconds"] = 60.into();
    object
}

/// A CHPA that uses everything.
pub(super) fn chpa() -> Value {
    json!({"apiVersion": "autoscalers.postmates.com/v1beta1", "kind": "CHPA",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"downscaleForbiddenWindowSeconds": 10, "upscaleForbiddenWindowSeconds": 20,
            "scaleUpLimitFactor": 3.5, "scaleUpLimitMinimum": 5, "tolerance": 0.2,
            "minReplicas": 3, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 80}},
                {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
                {"type": "Pods", "pods": {"metricName": "hits", "targetAverageValue": "100"}},
                {"type": "Object", "object": {"metricName": "hits", "targetValue": "5k",
                    "target": {"kind": "Service", "name": "front"}}},
                {"type": "External", "external": {"metricName": "queue", "targetAverageValue": "30",
                    "metricSelector": {"matchLabels": {"queue": "orders"}}}}]}})
}

/// An autoscaler of singlecloud's that uses everything.
fn singlecloud() -> Value {
    json!({"name": "web", "scaleTargetKind": "statefulset", "scaleTargetName": "web",
        "minReplicas": 1, "maxReplicas": 5,
        "resourceMetrics": [
            {"resourceName": "cpu", "targetType": "Utilization", "averageUtilization": 50},
            {"resourceName": "memory", "targetType": "AverageValue", "averageValue": "256Mi"}],
        "customMetrics": [
            {"metricName": "qps", "labels": {"view": "default"}, "averageValue": "2k"},
            {"metricName": "depth", "averageValue": "1500m"}]})
}

/// The path of a value and the pointer to it, for all values of an object.
pub(super) fn values(value: &Value, path: &str, pointer: &str, found: &mut Vec<(String, String)>) {
    found.push((path.to_owned(), pointer.to_owned()));
    match value {
        Value::Object(fields) => {
            for (name, below) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                let escaped = name.replace('~', "~0").replace('/', "~1");
                values(
                    below,
                    &format!("{path}{dot}{name}"),
                    &format!("{pointer}/{escaped}"),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (index, below) in items.iter().enumerate() {
                values(below, &format!("{path}[{index}]"), &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Ways to spoil a value: a field that does not exist, another type, too small, too large, empty, no amount.
const WAYS: usize = 6;

/// Spoils a value; the path of what is wrong then, or nothing if this value cannot be spoilt that way.
fn spoil(object: &mut Value, path: &str, pointer: &str, way: usize) -> Option<String> {
    let name = path.rsplit('.').next().unwrap_or_default();
    let in_map = path.split('.').rev().skip(1).any(|part| MAPS.contains(&part));
    let in_spec = path.starts_with("spec.") || object.get("kind").is_none();
    if path.is_empty() || ["apiVersion", "kind"].contains(&path) || is_open(object, path, way) {
        return None;
    }
    let value = object.pointer_mut(pointer)?;
    match way {
        // A field that does not exist.
        0 if value.is_object() && !in_map && !MAPS.contains(&name) => {
            value["misspelt"] = 1.into();
            return Some(format!("{path}.misspelt"));
        }
        // Another type.
        1 if !value.is_null() => {
            *value = match value {
                Value::Object(_) | Value::Number(_) => "text".into(),
                _ => json!({"a": [1]}),
            };
        }
        // A number that is too small, or larger than any.
        2 if value.is_number() && in_spec => *value = (-1).into(),
        3 if value.is_number() => *value = json!(99_999_999_999_i64),
        // Nothing where something must be. The objects of the core have a group without a name.
        4 if value.is_string()
            && in_spec
            && !in_map
            && !path.ends_with("Object.apiVersion")
            && !path.ends_with("target.apiVersion") =>
        {
            *value = "".into();
        }
        // An amount that is none.
        5 if in_spec && (name.ends_with("alue") || name == "tolerance") && value.is_string() => {
            *value = "-1".into();
        }
        _ => return None,
    }
    Some(path.to_owned())
}

/// What a kind lets in on purpose.
fn is_open(object: &Value, path: &str, way: usize) -> bool {
    match object["kind"].as_str() {
        // The metrics of a CHPA may have any field and name, as in the original; its target's version is ignored.
        Some("CHPA") => {
            let metric = path.starts_with("spec.metrics[");
            let named = way == 4 && metric && !path.ends_with("].type");
            (way == 0 && metric) || named || (way == 4 && path.ends_with("Ref.apiVersion"))
        }
        // Without a zone it is UTC; what is to happen without a value is refused as a whole.
        Some("PodAutoscaler") => {
            (way == 4 && path.ends_with(".timeZone")) || (way == 0 && path.ends_with(".onMissing"))
        }
        // Singlecloud ignores what it does not know.
        None => way == 0,
        _ => false,
    }
}

fn all() -> Vec<Value> {
    let versions = Version::ALL.into_iter().map(everything);
    versions.chain([pod_autoscaler(), chpa(), singlecloud()]).collect()
}

#[test]
fn mutations_are_refused_at_their_field() {
    for base in all() {
        let kind = format!("{} {}", base["apiVersion"], base["kind"]);
        let mut found = Vec::new();
        values(&base, "", "", &mut found);
        let text = serde_json::to_string_pretty(&base).expect("JSON");
        let sound = report(&[("f", &text)], &[]);
        assert_eq!(sound.errors, 0, "{kind}: {}", sound.render(OutputFormat::Text));
        let mut random = Random(1);
        let mut refused = 0;
        while refused < MUTATIONS {
            let (path, pointer) = &found[random.below(found.len())];
            let mut object = base.clone();
            let way = random.below(WAYS);
            let Some(wrong) = spoil(&mut object, path, pointer, way) else { continue };
            refused += 1;
            let text = serde_json::to_string_pretty(&object).expect("JSON");
            let place = document::split(&text)[0].read().expect("JSON").places.find(&wrong);
            let report = report(&[("f", &text)], &[]);
            let named = report.findings.iter().any(|finding| {
                finding.severity == Severity::Error
                    && (finding.line, finding.column) == (place.line, place.column)
                    && !finding.field.is_empty()
            });
            assert!(
                named,
                "{kind}: {wrong} at {place:?}\n{}\n{text}",
                report.render(OutputFormat::Text)
            );
        }
    }
}

#[test]
fn no_text_causes_a_panic() {
    for base in all() {
        let text = serde_json::to_string_pretty(&base).expect("JSON");
        let mut random = Random(7);
        for _ in 0..200 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = b"{}[]:,\"-#&*!|>'%@ \n\t0a"[random.below(22)];
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let _ = report(&[("f", &text)], &[]);
        }
    }
}
