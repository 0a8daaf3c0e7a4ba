//! Podscale's own PodAutoscaler as a form. It has every field of `autoscaling/v2` at the same place and more
//! beside them, so what goes beyond is told by the names of its fields.

use serde_json::{Map, Value, json};

use super::{Form, Hub, Loss, Written};
use crate::hpa::convert::{self, ConvertError, Version};
use crate::hpa::v2::{self, metric_type};
use crate::pod_autoscaler::default::filled_in;
use crate::pod_autoscaler::spec::metric_type as own_type;
use crate::pod_autoscaler::{API_VERSION, KIND};

/// The fields that `autoscaling/v2` has in a spec, in a metric and in the rules of a direction.
const SPEC: [&str; 5] = ["scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"];
const METRIC: [&str; 6] = ["type", "object", "pods", "resource", "containerResource", "external"];
/// The fields that a trigger of a ScaledObject has, in a metric and in its event source.
const TRIGGER: [&str; 3] = ["type", "name", "trigger"];
const SOURCE: [&str; 5] =
    ["type", "metadata", "authenticationRef", "metricType", "useCachedMetrics"];
const RULES: [&str; 4] = ["stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"];
const METRIC_TYPES: [&str; 5] = [
    metric_type::OBJECT,
    metric_type::PODS,
    metric_type::RESOURCE,
    metric_type::CONTAINER_RESOURCE,
    metric_type::EXTERNAL,
];

/// How pods are picked, and how all others do it.
const POD_SELECTION: &str = "spec.podSelection";
const BY_SELECTOR: &str = "Selector";

/// The form.
pub(super) struct PodAutoscaler;

impl Form for PodAutoscaler {
    fn name(&self) -> &'static str {
        "pa"
    }

    fn describes(&self, object: &Value) -> bool {
        object["apiVersion"] == API_VERSION && object["kind"] == KIND
    }

    /// The status is left out: the controller writes another one for another kind. So is what the API server would
    /// fill in anyway, which says nothing.
    fn read(&self, object: &Value) -> Result<Hub, ConvertError> {
        let mut beyond = Vec::new();
        let mut spec = object["spec"].clone();
        set_apart(&mut spec, &SPEC, "spec", &mut beyond);
        for direction in ["scaleUp", "scaleDown"] {
            if let Some(rules) = spec.pointer_mut(&format!("/behavior/{direction}")) {
                set_apart(rules, &RULES, &format!("spec.behavior.{direction}"), &mut beyond);
            }
        }
        if let Some(Value::Array(metrics)) = spec.get_mut("metrics") {
            let mut kept = Vec::new();
            for (index, mut metric) in std::mem::take(metrics).into_iter().enumerate() {
                let field = format!("spec.metrics[{index}]");
                if is_known(&metric) {
                    set_apart(&mut metric, &METRIC, &field, &mut beyond);
                    kept.push(metric);
                } else {
                    if metric["type"] == own_type::TRIGGER {
                        set_apart(&mut metric, &TRIGGER, &field, &mut beyond);
                        let (source, field) = (&mut metric["trigger"], format!("{field}.trigger"));
                        set_apart(source, &SOURCE, &field, &mut beyond);
                    }
                    beyond.push(Loss { field, value: metric });
                }
            }
            *metrics = kept;
        }
        beyond.retain(|loss| !says_nothing(loss));
        let hpa = json!({"apiVersion": v2::API_VERSION, "kind": v2::KIND,
            "metadata": object["metadata"], "spec": spec});
        let mut hpa = convert::as_written(&hpa)?;
        name_namespaces(&mut hpa);
        Ok(Hub { hpa, beyond, unread: Vec::new() })
    }

    /// Metrics of the other forms are counted without those that they do not have.
    fn path(&self, object: &Value, path: &str) -> Option<String> {
        let metric = path.strip_prefix("spec.metrics[").and_then(|rest| rest.split_once(']'));
        let Some((place, rest)) = metric else { return Some(path.to_owned()) };
        let metrics = object.pointer("/spec/metrics").and_then(Value::as_array)?;
        let mut known = (0..).zip(metrics).filter(|(_, metric)| is_known(metric));
        let (index, _): (usize, _) = known.nth(place.parse().ok()?)?;
        Some(format!("spec.metrics[{index}]{rest}"))
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        let mut object = convert::write(&hub.hpa, Version::V2)?;
        object["apiVersion"] = API_VERSION.into();
        object["kind"] = KIND.into();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        // All others pick pods by the selector, which is not what a PodAutoscaler does if nobody says so.
        put(&mut object, POD_SELECTION, BY_SELECTOR.into());
        for Loss { field, value } in &hub.beyond {
            put(&mut object, field, value.clone());
        }
        Ok(Written { object, losses: Vec::new() })
    }
}

/// Whether other forms have metrics of this type.
fn is_known(metric: &Value) -> bool {
    METRIC_TYPES.iter().any(|kind| metric["type"] == *kind)
}

/// Whether a field could as well be absent in the other forms, which all pick pods by the selector.
fn says_nothing(Loss { field, value }: &Loss) -> bool {
    let (parent, name) = field.rsplit_once('.').unwrap_or_default();
    let direct = ["spec", "spec.behavior.scaleUp", "spec.behavior.scaleDown"].contains(&parent)
        || (parent.starts_with("spec.metrics[") && parent.ends_with(']'));
    value.is_null()
        || (field == POD_SELECTION && *value == BY_SELECTOR)
        || (name == "forbiddenWindowSeconds" && *value == 0)
        || (field == "spec.schedules" && *value == json!([]))
        || (field == "spec.pause" && *value == json!({}))
        || (direct && field != POD_SELECTION && filled_in(field).as_ref() == Some(value))
}

/// The others name even the namespace that is always meant.
fn name_namespaces(hpa: &mut v2::HorizontalPodAutoscaler) {
    let objects = hpa.spec.metrics.iter_mut().filter_map(|metric| metric.object.as_deref_mut());
    for described in objects.map(|object| &mut object.described_object) {
        if described.kind == "Namespace" && described.name.is_empty() {
            described.name.clone_from(&hpa.metadata.namespace);
        }
    }
}

/// Takes the fields out of an object that are not among those known.
fn set_apart(object: &mut Value, known: &[&str], path: &str, beyond: &mut Vec<Loss>) {
    let Some(fields) = object.as_object_mut() else { return };
    let (kept, others): (Map<String, Value>, Map<String, Value>) =
        std::mem::take(fields).into_iter().partition(|(name, _)| known.contains(&name.as_str()));
    *fields = kept;
    for (name, value) in others {
        flatten(format!("{path}.{name}"), value, beyond);
    }
}

/// Each field of an object by itself; one without fields says something, too.
fn flatten(field: String, value: Value, beyond: &mut Vec<Loss>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                flatten(format!("{field}.{name}"), value, beyond);
            }
        }
        value => beyond.push(Loss { field, value }),
    }
}

/// Puts a value at a path such as `spec.metrics[1].maxAge`; at the index of a list it is inserted.
fn put(object: &mut Value, path: &str, value: Value) {
    let Some((name, rest)) = next(path) else { return };
    if let Some(index) = name.strip_prefix('[').and_then(|name| name.parse::<usize>().ok()) {
        if !object.is_array() {
            *object = Value::Array(Vec::new());
        }
        if let Value::Array(items) = object {
            match (items.get_mut(index), rest.is_empty()) {
                (Some(item), false) => put(item, rest, value),
                _ => items.insert(index.min(items.len()), value),
            }
        }
        return;
    }
    if !object.is_object() {
        *object = json!({});
    }
    match rest.is_empty() {
        true => object[name] = value,
        false => put(&mut object[name], rest, value),
    }
}

/// The first part of a path, an index still with its opening bracket, and what follows.
fn next(path: &str) -> Option<(&str, &str)> {
    let path = path.trim_start_matches('.');
    if path.is_empty() {
        return None;
    }
    if let Some(inside) = path.strip_prefix('[') {
        let end = inside.find(']')? + 1;
        return Some((path.get(..end)?, path.get(end + 1..)?));
    }
    let end = path.find(['.', '[']).unwrap_or(path.len());
    Some((path.get(..end)?, path.get(end..)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{convert, form};

    fn everything() -> Value {
        json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": "web"},
            "spec": {"minReplicas": 1, "maxReplicas": 9, "mode": "DryRun", "combine": "Average",
                "podSelection": "Selector",
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metrics": [
                    {"type": "Prometheus", "prometheus": {"query": "up", "target": {"type": "Value", "value": "1"}}},
                    {"type": "Resource", "maxAge": "1m", "resource": {"name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": 50}}}],
                "behavior": {"scaleUp": {"selectPolicy": "Max", "limit": {"factor": "2"}}},
                "fallback": {"replicas": 3}}})
    }

    #[test]
    fn an_hpa_is_one_as_it_stands() {
        let pa = everything();
        let hub = PodAutoscaler.read(&pa).expect("an autoscaler");
        assert_eq!(PodAutoscaler.write(&hub).expect("JSON").object, pa);
        let hpa = form("hpa.v2").expect("a form").write(&hub).expect("JSON");
        let lost: Vec<&str> = hpa.losses.iter().map(|loss| loss.field.as_str()).collect();
        assert_eq!(
            lost,
            [
                "spec.combine",
                "spec.fallback.replicas",
                "spec.mode",
                "spec.behavior.scaleUp.limit.factor",
                "spec.metrics[0]",
                "spec.metrics[1].maxAge"
            ]
        );
        assert_eq!(hpa.object["spec"]["metrics"].as_array().map(Vec::len), Some(1));
        let back = convert(&hpa.object, &PodAutoscaler).expect("an autoscaler").expect("another");
        assert_eq!(back.losses, []);
        let mut expected = hpa.object["spec"].clone();
        expected["podSelection"] = "Selector".into();
        assert_eq!(back.object["spec"], expected, "its pods are picked as before");
        assert_eq!(back.object["kind"], KIND);
    }

    /// What is lost of a PodAutoscaler with these fields of its spec and its metric.
    fn lost(spec: &Value, metric: &Value, to: &str) -> Vec<String> {
        let mut pa = everything();
        pa["spec"] = json!({"maxReplicas": 9, "metrics": [everything()["spec"]["metrics"][1]],
            "scaleTargetRef": pa["spec"]["scaleTargetRef"]});
        pa["spec"]["metrics"][0]["maxAge"] = Value::Null;
        for (target, fields) in [("/spec", spec), ("/spec/metrics/0", metric)] {
            for (name, value) in fields.as_object().expect("fields") {
                pa.pointer_mut(target).expect("an object")[name] = value.clone();
            }
        }
        let written = convert(&pa, form(to).expect("a form")).expect("an autoscaler");
        written.expect("another").losses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn defaults_are_no_losses() {
        let none = json!({});
        for (spec, metric, expected) in [
            (json!({"combine": "Max", "mode": "Active"}), &none, vec![]),
            (json!({"podSelection": "Selector", "schedules": [], "pause": {}}), &none, vec![]),
            (json!({"podSelection": "Owned"}), &none, vec![r#"spec.podSelection: "Owned""#]),
            (
                none.clone(),
                &json!({"onMissing": "Hold", "aggregate": "Average", "utilizationOf": "Requests"}),
                vec![],
            ),
            (json!({"behavior": {"scaleUp": {"forbiddenWindowSeconds": 0}}}), &none, vec![]),
            (json!({"combine": "Min"}), &none, vec![r#"spec.combine: "Min""#]),
            (
                none.clone(),
                &json!({"onMissing": {"replicas": 3}}),
                vec!["spec.metrics[0].onMissing.replicas: 3"],
            ),
            // What it holds are defaults, but being there it means something.
            (
                json!({"scaleToZero": {"idleReplicas": 0}}),
                &none,
                vec!["spec.scaleToZero.idleReplicas: 0"],
            ),
        ] {
            for to in ["hpa.v2", "singlecloud"] {
                assert_eq!(lost(&spec, metric, to), expected, "{spec} {metric} to {to}");
            }
        }
    }

    #[test]
    fn losses_of_metrics_are_named_by_their_places() {
        let mut pa = everything();
        let odd = json!({"type": "Pods", "pods": {"metric": {"name": "qps"},
            "target": {"type": "Value", "averageValue": "7"}}});
        pa["spec"]["metrics"][1] = odd;
        let v1 = convert(&pa, form("hpa.v1").expect("a form")).expect("one").expect("another");
        let lost: Vec<String> = v1.losses.iter().map(ToString::to_string).collect();
        assert_eq!(lost[0], r#"spec.metrics[1].pods.target.type: "Value""#);
        assert!(lost.iter().any(|one| one.starts_with("spec.metrics[0]: {")), "{lost:?}");
    }

    #[test]
    fn the_namespace_that_is_meant_is_named() {
        let mut pa = everything();
        pa["metadata"]["namespace"] = "shop".into();
        pa["spec"]["metrics"] = json!([{"type": "Object", "object": {"describedObject": {"kind": "Namespace"},
            "metric": {"name": "rps"}, "target": {"type": "Value", "value": "5"}}}]);
        let hpa = convert(&pa, form("hpa.v2").expect("a form")).expect("one").expect("another");
        let described = &hpa.object["spec"]["metrics"][0]["object"]["describedObject"];
        assert_eq!(described["name"], "shop");
    }
}
