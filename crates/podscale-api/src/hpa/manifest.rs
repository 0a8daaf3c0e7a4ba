//! Autoscalers in files: what an API server would say to them, and where in the file that is.

use serde_json::Value;

use super::convert::{self, BEHAVIOR, ConvertError, METRICS, TOLERANCES, Version};
use super::validate;
use crate::field_error::FieldError;

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";

/// Everything that an API server would refuse in an autoscaler of any version that is to be created. Fields are
/// named as in `autoscaling/v2`, as an API server names them, too; [`written_path`] finds them.
pub fn check(object: &Value) -> Result<Vec<FieldError>, ConvertError> {
    let mut hpa = convert::read(object)?;
    if hpa.metadata.namespace.is_empty() {
        hpa.metadata.namespace = DEFAULT_NAMESPACE.into();
    }
    Ok(validate::check_create(&hpa))
}

/// The path at which an object of any version has what `autoscaling/v2` has at a path.
pub fn written_path(object: &Value, path: &str) -> String {
    let Some(version) = Version::of_object(object) else { return path.to_owned() };
    if path.starts_with("spec.behavior") {
        return match version {
            Version::V2 => path.to_owned(),
            Version::V2beta2 => match path.strip_suffix(".tolerance") {
                Some(rules) => annotation(TOLERANCES[usize::from(rules.ends_with("Up"))]),
                None => path.to_owned(),
            },
            Version::V1 | Version::V2alpha1 | Version::V2beta1 => annotation(BEHAVIOR),
        };
    }
    let metric = path.strip_prefix("spec.metrics[").and_then(|rest| rest.split_once(']'));
    match (version, metric) {
        (Version::V2 | Version::V2beta2, _) | (_, None) => path.to_owned(),
        (Version::V1, Some((index, _))) => {
            let kept = object.pointer("/metadata/annotations").and_then(|all| all.get(METRICS));
            let kept: Option<Vec<Value>> =
                kept.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
            let kept = kept.map_or(0, |list| list.len());
            match index.parse::<usize>() {
                Ok(index) if index < kept => annotation(METRICS),
                _ => "spec.targetCPUUtilizationPercentage".to_owned(),
            }
        }
        (Version::V2alpha1 | Version::V2beta1, Some((index, rest))) => {
            let own = object.pointer("/spec/metrics").and_then(Value::as_array).map_or(0, Vec::len);
            match index.parse::<usize>() {
                Ok(at) if at >= own && own > 0 => annotation(METRICS),
                _ => format!("spec.metrics[{index}]{}", before_targets(rest)),
            }
        }
    }
}

fn annotation(name: &str) -> String {
    format!("metadata.annotations[{name}]")
}

/// A path below a metric as it was before metrics had a `target`.
pub(crate) fn before_targets(path: &str) -> String {
    let mut parts = path.trim_start_matches('.').splitn(2, '.');
    let (source, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let field = match (source, rest) {
        ("external", rest) if rest.starts_with("metric.selector") => "metricSelector",
        (_, rest) if rest.starts_with("metric.selector") => "selector",
        (_, "metric.name") => "metricName",
        ("object", "target.averageValue") => "averageValue",
        (_, "target.averageValue") => "targetAverageValue",
        (_, "target.value") => "targetValue",
        (_, "target.averageUtilization") => "targetAverageUtilization",
        (_, "target.type" | "target" | "metric") => "",
        ("object", rest) => {
            return match rest.strip_prefix("describedObject") {
                Some(below) => format!(".object.target{below}"),
                None => path.to_owned(),
            };
        }
        _ => return path.to_owned(),
    };
    if field.is_empty() { format!(".{source}") } else { format!(".{source}.{field}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_where_their_version_has_them() {
        let object = |version: &str| {
            json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
                "metadata": {"annotations": {METRICS: "[{},{}]"}},
                "spec": {"metrics": [{}, {}]}})
        };
        let kept = annotation(METRICS);
        for (version, path, expected) in [
            ("v2", "spec.metrics[0].pods.target.type", "spec.metrics[0].pods.target.type"),
            ("v2beta2", "spec.behavior.scaleUp.policies", "spec.behavior.scaleUp.policies"),
            ("v2beta2", "spec.behavior.scaleUp.tolerance", &annotation(TOLERANCES[1])),
            ("v2beta2", "spec.behavior.scaleDown.tolerance", &annotation(TOLERANCES[0])),
            ("v2beta1", "spec.behavior.scaleUp.policies[0].type", &annotation(BEHAVIOR)),
            (
                "v2beta1",
                "spec.metrics[0].pods.target.averageValue",
                "spec.metrics[0].pods.targetAverageValue",
            ),
            (
                "v2beta1",
                "spec.metrics[1].object.target.averageValue",
                "spec.metrics[1].object.averageValue",
            ),
            (
                "v2beta1",
                "spec.metrics[1].object.describedObject.kind",
                "spec.metrics[1].object.target.kind",
            ),
            (
                "v2beta1",
                "spec.metrics[1].external.metric.name",
                "spec.metrics[1].external.metricName",
            ),
            ("v2beta1", "spec.metrics[1].resource.target.type", "spec.metrics[1].resource"),
            ("v2beta1", "spec.metrics[1].type", "spec.metrics[1].type"),
            ("v2alpha1", "spec.metrics[2].external.target.value", &kept),
            ("v1", "spec.metrics[1].pods.metric.name", &kept),
            (
                "v1",
                "spec.metrics[2].resource.target.averageUtilization",
                "spec.targetCPUUtilizationPercentage",
            ),
            ("v1", "spec.maxReplicas", "spec.maxReplicas"),
        ] {
            assert_eq!(written_path(&object(version), path), expected, "{version} {path}");
        }
    }

    #[test]
    fn every_version_is_checked() {
        for version in Version::ALL {
            let object = json!({"apiVersion": version.api_version(), "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web"}, "spec": {"maxReplicas": 2, "minReplicas": 3,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
            let errors: Vec<String> =
                check(&object).expect("an autoscaler").iter().map(ToString::to_string).collect();
            let expected = "spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`";
            assert_eq!(errors, [expected], "{version:?}");
        }
    }
}
