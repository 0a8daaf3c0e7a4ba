//! What the API server fills in when it stores an autoscaler.

use super::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior, HorizontalPodAutoscalerSpec,
    HpaScalingPolicy, HpaScalingRules, MetricSpec, MetricTarget, ResourceMetricSource, metric_type,
    target_type,
};

/// The target of an autoscaler that names no metric, in percent of the requested cpu.
pub const CPU_UTILIZATION: i32 = 80;

/// Fills in everything that was left open, once; doing it again changes nothing.
pub fn default_hpa(hpa: &mut HorizontalPodAutoscaler) {
    default_spec(&mut hpa.spec);
}

/// Fills in the spec alone.
pub fn default_spec(spec: &mut HorizontalPodAutoscalerSpec) {
    default_bounds_and_metrics(spec);
    if let Some(behavior) = &mut spec.behavior {
        default_behavior(behavior);
    }
}

/// Fills in what every version fills in.
pub fn default_bounds_and_metrics(spec: &mut HorizontalPodAutoscalerSpec) {
    spec.min_replicas.get_or_insert(1);
    if spec.metrics.is_empty() {
        spec.metrics.push(cpu_metric(CPU_UTILIZATION));
    }
}

/// Fills in both directions, whichever were given.
pub fn default_behavior(behavior: &mut HorizontalPodAutoscalerBehavior) {
    let up = behavior.scale_up.get_or_insert_default();
    up.stabilization_window_seconds.get_or_insert(0);
    fill_policies(up, &[("Pods", 4), ("Percent", 100)]);
    // The window for removing pods is left to the controller's setting.
    let down = behavior.scale_down.get_or_insert_default();
    fill_policies(down, &[("Percent", 100)]);
}

/// A cpu metric with a utilization target, as autoscalers get that were written without metrics.
pub fn cpu_metric(percent: i32) -> MetricSpec {
    let target = MetricTarget {
        r#type: target_type::UTILIZATION.into(),
        average_utilization: Some(percent),
        ..MetricTarget::default()
    };
    MetricSpec {
        r#type: metric_type::RESOURCE.into(),
        resource: Some(ResourceMetricSource { name: "cpu".into(), target }),
        ..MetricSpec::default()
    }
}

fn fill_policies(rules: &mut HpaScalingRules, policies: &[(&str, i32)]) {
    rules.select_policy.get_or_insert_with(|| "Max".into());
    rules.policies.get_or_insert_with(|| {
        let every_15_seconds = |(kind, value): &(&str, i32)| HpaScalingPolicy {
            r#type: (*kind).into(),
            value: *value,
            period_seconds: 15,
        };
        policies.iter().map(every_15_seconds).collect()
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(given: serde_json::Value, stored: serde_json::Value) {
        let mut spec: HorizontalPodAutoscalerSpec = serde_json::from_value(given).expect("a spec");
        default_spec(&mut spec);
        assert_eq!(serde_json::to_value(&spec).expect("a value"), stored);
        let once = spec.clone();
        default_spec(&mut spec);
        assert_eq!(spec, once);
    }

    #[test]
    fn fills_what_is_open() {
        let target = json!({"kind": "Deployment", "name": "web"});
        let cpu = |percent: i32| {
            json!([{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": percent}}}])
        };
        check(
            json!({"scaleTargetRef": target, "maxReplicas": 3}),
            json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3, "metrics": cpu(80)}),
        );
        check(
            json!({"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 3, "metrics": cpu(50),
                "behavior": {}}),
            json!({"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 3, "metrics": cpu(50),
                "behavior": {
                    "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [
                        {"type": "Pods", "value": 4, "periodSeconds": 15},
                        {"type": "Percent", "value": 100, "periodSeconds": 15}]},
                    "scaleDown": {"selectPolicy": "Max", "policies": [
                        {"type": "Percent", "value": 100, "periodSeconds": 15}]}}}),
        );
    }

    #[test]
    fn keeps_what_is_given() {
        let mut behavior: HorizontalPodAutoscalerBehavior = serde_json::from_value(json!({
            "scaleUp": {"selectPolicy": "Disabled", "policies": []},
            "scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "50m"}
        }))
        .expect("a behavior");
        default_behavior(&mut behavior);
        let up = behavior.scale_up.expect("filled in");
        assert_eq!((up.select_policy.as_deref(), up.policies), (Some("Disabled"), Some(vec![])));
        let down = behavior.scale_down.expect("filled in");
        assert_eq!(down.stabilization_window_seconds, Some(60));
        assert_eq!(down.tolerance.map(|tolerance| tolerance.to_string()), Some("50m".into()));
        assert_eq!(down.policies.map(|policies| policies.len()), Some(1));
    }
}
