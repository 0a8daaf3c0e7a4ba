//! The annotations by which `autoscaling/v1` autoscalers had custom metrics before Kubernetes 1.6. Servers of
//! today leave them alone and do not act on them, so only conversions of files read them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::convert::{self, ConvertError, Version};
use super::v2::{
    HorizontalPodAutoscaler, MetricIdentifier, MetricSpec, MetricStatus, MetricTarget,
    MetricValueStatus, PodsMetricSource, PodsMetricStatus, metric_type, target_type,
};
use crate::field_error::{BadValue, FieldError, FieldPath, go_json};
use crate::meta::ObjectMeta;
use crate::quantity::Quantity;
use crate::serde_form::null_default;

/// The annotation that holds the targets.
pub const TARGET: &str = "alpha/target.custom-metrics.podautoscaler.kubernetes.io";
/// The annotation that holds what the controller found.
pub const STATUS: &str = "alpha/status.custom-metrics.podautoscaler.kubernetes.io";

/// What either annotation holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomMetrics {
    /// One for each metric.
    #[serde(deserialize_with = "null_default")]
    pub items: Vec<CustomMetric>,
}

/// A metric that each pod has, and its average, wanted or found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CustomMetric {
    /// Which metric.
    #[serde(deserialize_with = "null_default")]
    pub name: String,
    /// Its average over the pods.
    #[serde(deserialize_with = "null_default")]
    pub value: Quantity,
}

fn parse(metadata: &ObjectMeta, annotation: &str) -> Option<serde_json::Result<CustomMetrics>> {
    metadata.annotations.get(annotation).map(serde_json::from_str)
}

/// What an API server of before 1.6 refused in the targets, in its words.
pub fn check(metadata: &ObjectMeta) -> Vec<FieldError> {
    let path = FieldPath::new("metadata").child("annotations");
    let items = path.child("items");
    let targets = match parse(metadata, TARGET) {
        None => return Vec::new(),
        Some(Ok(targets)) => targets.items,
        Some(Err(_)) => {
            let shown: Vec<String> = metadata
                .annotations
                .iter()
                .map(|(key, value)| format!("{}:{}", go_json(&key), go_json(&value)))
                .collect();
            let shown = BadValue::verbatim(format!("map[string]string{{{}}}", shown.join(", ")));
            let detail = "failed to parse custom metrics target annotation";
            return vec![FieldError::invalid(&path, shown, detail)];
        }
    };
    let mut errors = Vec::new();
    if targets.is_empty() {
        errors.push(FieldError::required(&items, "custom metrics target must not be empty"));
    }
    for target in &targets {
        if target.name.is_empty() {
            let detail = "missing custom metric target name";
            errors.push(FieldError::required(&items.child("name"), detail));
        }
        if target.value.milli_value() <= 0 {
            let value = BadValue::text(&target.value.to_string());
            let detail = "custom metric target value must be greater than 0";
            errors.push(FieldError::invalid(&items.child("value"), value, detail));
        }
    }
    errors
}

/// Reads an autoscaler of any version with what these annotations say of it; nothing is filled in. Annotations
/// that cannot be read stay where they are.
pub fn as_written(object: &Value) -> Result<HorizontalPodAutoscaler, ConvertError> {
    let mut hpa = convert::as_written(object)?;
    if let Some(Ok(targets)) = parse(&hpa.metadata, TARGET) {
        hpa.metadata.annotations.remove(TARGET);
        hpa.spec.metrics.extend(targets.items.into_iter().map(spec));
    }
    if let Some(Ok(found)) = parse(&hpa.metadata, STATUS) {
        hpa.metadata.annotations.remove(STATUS);
        if !found.items.is_empty() {
            let current = &mut hpa.status.get_or_insert_default().current_metrics;
            current.get_or_insert_default().extend(found.items.into_iter().map(status));
        }
    }
    Ok(hpa)
}

/// An autoscaler in `autoscaling/v1` as it was before 1.6: metrics of pods without a selector go into these
/// annotations, whatever else `v1` cannot say into those of today.
pub fn write(hpa: &HorizontalPodAutoscaler) -> Result<Value, ConvertError> {
    let mut hpa = hpa.clone();
    let (mut targets, mut found) = (CustomMetrics::default(), CustomMetrics::default());
    hpa.spec.metrics.retain(|metric| match target_of(metric) {
        Some(target) => {
            targets.items.push(target);
            false
        }
        None => true,
    });
    if let Some(current) = hpa.status.as_mut().and_then(|status| status.current_metrics.as_mut()) {
        current.retain(|status| match value_of(status) {
            Some(value) => {
                found.items.push(value);
                false
            }
            None => true,
        });
    }
    for (annotation, list) in [(TARGET, targets), (STATUS, found)] {
        if !list.items.is_empty() {
            hpa.metadata.annotations.insert(annotation, go_json(&list));
        }
    }
    convert::write(&hpa, Version::V1)
}

fn identifier(name: String) -> MetricIdentifier {
    MetricIdentifier { name, selector: None }
}

fn spec(CustomMetric { name, value }: CustomMetric) -> MetricSpec {
    let target = MetricTarget {
        r#type: target_type::AVERAGE_VALUE.into(),
        average_value: Some(value),
        ..MetricTarget::default()
    };
    MetricSpec {
        r#type: metric_type::PODS.into(),
        pods: Some(Box::new(PodsMetricSource { metric: identifier(name), target })),
        ..MetricSpec::default()
    }
}

fn status(CustomMetric { name, value }: CustomMetric) -> MetricStatus {
    let current = MetricValueStatus { average_value: Some(value), ..MetricValueStatus::default() };
    MetricStatus {
        r#type: metric_type::PODS.into(),
        pods: Some(Box::new(PodsMetricStatus { metric: identifier(name), current })),
        ..MetricStatus::default()
    }
}

/// The metric if the annotation can say all of it.
fn target_of(metric: &MetricSpec) -> Option<CustomMetric> {
    let pods = metric.pods.as_deref()?;
    let value = pods.target.average_value.clone()?;
    let found = CustomMetric { name: pods.metric.name.clone(), value };
    (spec(found.clone()) == *metric).then_some(found)
}

fn value_of(metric: &MetricStatus) -> Option<CustomMetric> {
    let pods = metric.pods.as_deref()?;
    let value = pods.current.average_value.clone()?;
    let found = CustomMetric { name: pods.metric.name.clone(), value };
    (status(found.clone()) == *metric).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field_error::summary;
    use serde_json::json;

    fn object(targets: &str) -> Value {
        json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web", "annotations": {TARGET: targets}},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}})
    }

    #[test]
    fn errors_are_those_of_kubernetes_1_5() {
        let summary_of = |targets: &str| {
            let hpa = convert::as_written(&object(targets)).expect("an autoscaler");
            summary(&check(&hpa.metadata))
        };
        for (targets, expected) in [
            (r#"{"items":[{"name":"qps","value":"10"}]}"#, "[]"),
            (
                "broken",
                "metadata.annotations: Invalid value: map[string]string{\"alpha/target.custom-metrics.podautoscaler.kubernetes.io\":\"broken\"}: failed to parse custom metrics target annotation",
            ),
            (
                "{}",
                "metadata.annotations.items: Required value: custom metrics target must not be empty",
            ),
            (
                r#"{"items":[{"value":"20"}]}"#,
                "metadata.annotations.items.name: Required value: missing custom metric target name",
            ),
            (
                r#"{"items":[{"name":"qps","value":"0"}]}"#,
                "metadata.annotations.items.value: Invalid value: \"0\": custom metric target value must be greater than 0",
            ),
        ] {
            assert_eq!(summary_of(targets), expected, "{targets}");
        }
    }

    #[test]
    fn targets_become_metrics_of_pods_and_back() {
        let mut given = object(r#"{"items":[{"name":"qps","value":"10"}]}"#);
        given["metadata"]["annotations"][STATUS] =
            r#"{"items":[{"name":"qps","value":"7500m"}]}"#.into();
        given["spec"]["targetCPUUtilizationPercentage"] = 50.into();
        let hpa = as_written(&given).expect("an autoscaler");
        assert!(hpa.metadata.annotations.is_empty());
        assert_eq!(
            serde_json::to_value(&hpa.spec.metrics).expect("JSON"),
            json!([
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Pods", "pods": {"metric": {"name": "qps"},
                    "target": {"type": "AverageValue", "averageValue": "10"}}}])
        );
        let back = write(&hpa).expect("JSON");
        assert_eq!(back["metadata"], given["metadata"]);
        assert_eq!(back["spec"], given["spec"]);
        assert_eq!(as_written(&back).expect("an autoscaler"), hpa);
    }

    #[test]
    fn what_cannot_be_read_stays() {
        let given = object("broken");
        let hpa = as_written(&given).expect("an autoscaler");
        assert_eq!(hpa.metadata.annotations.get(TARGET), Some("broken"));
        assert!(hpa.spec.metrics.is_empty());
    }
}
