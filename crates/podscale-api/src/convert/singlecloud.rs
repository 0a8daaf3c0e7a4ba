//! Singlecloud's autoscaler as a form: bounds, cpu, memory, and metrics of pods by name and labels. It says
//! nothing of its namespace, which is in the path of its API, so that is kept in its links.

use serde_json::{Value, json};

use super::{DEFAULT_NAMESPACE, Form, Hub, Written, losses_in_meaning};
use crate::hpa::convert::ConvertError;
use crate::hpa::v2::{CrossVersionObjectReference, HorizontalPodAutoscaler};
use crate::meta::ObjectMeta;
use crate::singlecloud::{self, Invalid, READ_ONLY, from_hpa, to_hpa};

/// The kinds that it scales, as Kubernetes spells them.
const TARGET_KINDS: [&str; 2] = ["Deployment", "StatefulSet"];
/// The groups in which Kubernetes has, or had, these kinds.
const TARGET_GROUPS: [&str; 3] = ["apps", "extensions", ""];
/// What kubectl leaves on an object; it says nothing new.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The form.
pub(super) struct Singlecloud;

impl Form for Singlecloud {
    fn name(&self) -> &'static str {
        "singlecloud"
    }

    fn is_json(&self) -> bool {
        true
    }

    fn describes(&self, object: &Value) -> bool {
        singlecloud::is_autoscaler(object)
    }

    fn read(&self, object: &Value) -> Result<Hub, ConvertError> {
        self.read_in(object, DEFAULT_NAMESPACE)
    }

    /// The status is left out: the controller writes another one for another kind.
    fn read_in(&self, object: &Value, namespace: &str) -> Result<Hub, ConvertError> {
        let said = singlecloud::namespace_of(object);
        let autoscaler = singlecloud::read(object).map_err(unsuitable)?.autoscaler;
        if autoscaler.min_replicas == 0 {
            let why = "minReplicas: must be set, to 1 or more: it would be 0, and none of singlecloud's metrics has a \
                       value without pods";
            return Err(ConvertError::Unsuitable(why.to_owned()));
        }
        let mut hpa = to_hpa(&autoscaler, said.unwrap_or(namespace)).map_err(unsuitable)?;
        // Only the names of its metrics have the namespace in them.
        if said.is_none() && autoscaler.custom_metrics.is_empty() {
            hpa.metadata.namespace.clear();
        }
        spell(&mut hpa.spec.scale_target_ref);
        Ok(Hub { hpa, ..Hub::default() })
    }

    fn path(&self, object: &Value, field: &str) -> Option<String> {
        let own = path(object, field);
        Some(if own.is_empty() { field.to_owned() } else { own })
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        let asked = comparable(&hub.hpa);
        let target = &asked.spec.scale_target_ref;
        let group = target.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        if !TARGET_KINDS.contains(&&*target.kind) || !TARGET_GROUPS.contains(&group) {
            let (kind, version) = (&target.kind, &target.api_version);
            let why = format!("singlecloud cannot scale a {kind} of {version:?}");
            return Err(ConvertError::Unsuitable(why));
        }
        let mut object = serde_json::to_value(from_hpa(&sayable(&asked)))?;
        if let Some(fields) = object.as_object_mut() {
            fields.retain(|name, _| !READ_ONLY.contains(&name.as_str()));
        }
        let namespace = asked.metadata.namespace.as_str();
        if !namespace.is_empty() {
            object["links"] = json!({"collection": singlecloud::collection("local", namespace)});
        }
        let back = self.read_in(&object, namespace)?.hpa;
        let mut lost = losses_in_meaning(&asked, &back);
        lost.extend(hub.beyond.iter().cloned());
        Ok(Written { object, losses: lost })
    }
}

/// The path at which an autoscaler has what `autoscaling/v2` has at a path; empty if it has no such thing.
pub(crate) fn path(object: &Value, path: &str) -> String {
    let known = match path {
        // All that can be wrong with the list is that it has nothing to come back by from a size of zero.
        "spec.minReplicas" | "spec.metrics" => "minReplicas",
        "spec.maxReplicas" => "maxReplicas",
        "metadata.name" => "name",
        "spec.scaleTargetRef.kind" => "scaleTargetKind",
        _ if path.starts_with("spec.scaleTargetRef") => "scaleTargetName",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    let Some((index, rest)) =
        path.strip_prefix("spec.metrics[").and_then(|rest| rest.split_once(']'))
    else {
        return String::new();
    };
    let resources = object["resourceMetrics"].as_array().map_or(0, Vec::len);
    let index = index.parse::<usize>().unwrap_or_default();
    let list = match index.checked_sub(resources) {
        None => format!("resourceMetrics[{index}]"),
        Some(custom) => format!("customMetrics[{custom}]"),
    };
    let field = match rest.rsplit_once("target.").map(|(_, field)| field) {
        Some("averageUtilization") => ".averageUtilization",
        Some("averageValue") => ".averageValue",
        Some("type") => ".targetType",
        _ => "",
    };
    format!("{list}{field}")
}

fn unsuitable(invalid: Invalid) -> ConvertError {
    let Invalid { field, message } = invalid;
    ConvertError::Unsuitable(if field.is_empty() { message } else { format!("{field}: {message}") })
}

/// A kind as Kubernetes spells it; singlecloud has it in lower case.
fn spell(target: &mut CrossVersionObjectReference) {
    let known = TARGET_KINDS.iter().find(|kind| kind.eq_ignore_ascii_case(&target.kind));
    if let Some(kind) = known {
        target.kind = (*kind).to_owned();
    }
}

/// What somebody asked for, without what servers and tools add.
fn comparable(hpa: &HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
    let mut asked = HorizontalPodAutoscaler { status: None, ..hpa.clone() };
    asked.metadata = ObjectMeta {
        uid: String::new(),
        resource_version: String::new(),
        generation: 0,
        creation_timestamp: None,
        deletion_timestamp: None,
        ..asked.metadata
    };
    asked.metadata.other.retain(|name, _| name == "finalizers");
    asked.metadata.annotations.remove(LAST_APPLIED);
    spell(&mut asked.spec.scale_target_ref);
    asked
}

/// An autoscaler with those metrics only that singlecloud has a form for, and takes back.
fn sayable(hpa: &HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
    let mut kept = hpa.clone();
    let metrics = std::mem::take(&mut kept.spec.metrics);
    for metric in metrics {
        kept.spec.metrics.push(metric);
        if to_hpa(&from_hpa(&kept), &kept.metadata.namespace).is_err() {
            kept.spec.metrics.pop();
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::convert::{FORMS, convert, convert_in, form};

    fn object() -> Value {
        json!({"name": "web", "scaleTargetKind": "deployment", "scaleTargetName": "web",
            "minReplicas": 2, "maxReplicas": 9,
            "resourceMetrics": [
                {"resourceName": "memory", "targetType": "AverageValue", "averageValue": "512Mi"},
                {"resourceName": "cpu", "targetType": "Utilization", "averageUtilization": 60}]})
    }

    #[test]
    fn it_goes_through_every_other_form_and_back() {
        for to in FORMS.into_iter().filter(|form| form.name() != "singlecloud") {
            let there = convert(&object(), to).expect("an autoscaler").expect("another form");
            // The pace of the HPA that it stands for is not a CHPA's.
            let pace = usize::from(to.name() == "chpa");
            assert_eq!(there.losses.len(), pace, "{}: {:?}", to.name(), there.losses);
            assert_eq!(there.object["spec"]["scaleTargetRef"]["kind"], "Deployment");
            assert_eq!(there.object["metadata"]["labels"], json!({"deployment": "web"}));
            let back = convert(&there.object, &Singlecloud).expect("an autoscaler");
            let back = back.expect("another form");
            assert_eq!(back.object, object(), "{}", to.name());
            assert_eq!(back.losses.len(), 4 * pace, "{}: {:?}", to.name(), back.losses);
        }
    }

    #[test]
    fn metrics_by_name_and_labels_are_named_after_their_namespace() {
        let mut given = object();
        given["customMetrics"] =
            json!([{"metricName": "qps", "labels": {"view": "a"}, "averageValue": "1500m"}]);
        let v2 = form("hpa.v2").expect("a form");
        let shop = convert_in(&given, v2, "shop").expect("an autoscaler").expect("another form");
        assert_eq!(shop.object["metadata"]["namespace"], "shop");
        let name = shop.object["spec"]["metrics"][2]["pods"]["metric"]["name"].as_str();
        assert!(name.is_some_and(|name| name.ends_with("_shop_web")), "{name:?}");
        let back = convert(&shop.object, &Singlecloud).expect("an HPA").expect("another form");
        assert_eq!(back.losses, []);
        let place = "/apis/zcloud.cn/v1/clusters/local/namespaces/shop/horizontalpodautoscalers";
        given["links"] = json!({"collection": place});
        assert_eq!(back.object, given);
        // What says its namespace keeps it.
        let again = convert_in(&given, v2, "other").expect("an autoscaler").expect("another form");
        assert_eq!(again.object, shop.object);
    }

    #[test]
    fn what_it_cannot_say_is_lost_or_refused() {
        let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "uid": "u", "labels": {"team": "a"},
                "annotations": {LAST_APPLIED: "{}"}},
            "spec": {"maxReplicas": 5,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "metrics": [
                    {"type": "External", "external": {"metric": {"name": "queue"},
                        "target": {"type": "Value", "value": "30"}}},
                    {"type": "Pods", "pods": {"metric": {"name": "packets-per-second"},
                        "target": {"type": "AverageValue", "averageValue": "1k"}}},
                    {"type": "Pods", "pods": {"metric": {"name": "qps"},
                        "target": {"type": "AverageValue", "averageValue": "10"}}}],
                "behavior": {"scaleDown": {"selectPolicy": "Disabled"}}}});
        let written = convert(&hpa, &Singlecloud).expect("an HPA").expect("another form");
        let lost: Vec<&str> = written.losses.iter().map(|loss| loss.field.as_str()).collect();
        let expected = [
            "metadata.labels.team",
            "spec.behavior",
            "spec.metrics[0]",
            "spec.metrics[1]",
            // Singlecloud's is the series of that name, which pods have under another one.
            "spec.metrics[2]",
        ];
        assert_eq!(lost, expected);
        let metrics = json!([{"metricName": "qps", "averageValue": "10"}]);
        assert_eq!(written.object["customMetrics"], metrics);
        assert_eq!(written.object["minReplicas"], 1);
        for (kind, version) in [("Job", "batch/v1"), ("Deployment", "example.com/v1")] {
            let mut other = hpa.clone();
            other["spec"]["scaleTargetRef"]["kind"] = kind.into();
            other["spec"]["scaleTargetRef"]["apiVersion"] = version.into();
            let error = convert(&other, &Singlecloud).expect_err("no workload of its own");
            let expected = format!("singlecloud cannot scale a {kind} of {version:?}");
            assert_eq!(error.to_string(), expected);
        }
        let mut wrong = object();
        wrong["maxReplicas"] = "many".into();
        let error = convert(&wrong, form("pa").expect("a form")).expect_err("no number");
        assert_eq!(error.to_string(), "maxReplicas: field maxReplicas must be an integer");
    }
}
