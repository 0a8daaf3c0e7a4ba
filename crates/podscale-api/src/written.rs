//! Autoscalers of every form as files have them: each as `autoscaling/v2` with its metrics at their places, and
//! where in the file that is which `autoscaling/v2` has at a path.

use serde_json::Value;

use crate::convert::{chpa as chpa_form, form_of, singlecloud as singlecloud_form};
use crate::hpa::convert::Version;
use crate::hpa::custom_metrics;
use crate::hpa::manifest;
use crate::hpa::v2::HorizontalPodAutoscaler;
use crate::keda::{self, scaled_job};
use crate::pod_autoscaler::PodAutoscaler;
use crate::pod_autoscaler::hpa_form::hpa_form;
use crate::singlecloud;

/// The form of an autoscaler in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// A HorizontalPodAutoscaler of any version.
    Hpa,
    /// A PodAutoscaler.
    PodAutoscaler,
    /// A CHPA.
    Chpa,
    /// A ScaledObject of KEDA's.
    ScaledObject,
    /// A ScaledJob of KEDA's, which scales nothing but creates Jobs.
    ScaledJob,
    /// An autoscaler of singlecloud's.
    Singlecloud,
}

impl Written {
    /// The form of an object; nothing if it is no autoscaler.
    pub fn of(object: &Value) -> Option<Written> {
        if Version::of_object(object).is_some() {
            return Some(Written::Hpa);
        }
        if object["apiVersion"] == keda::API_VERSION && object["kind"] == scaled_job::KIND {
            return Some(Written::ScaledJob);
        }
        Some(match form_of(object)?.name() {
            "pa" => Written::PodAutoscaler,
            "chpa" => Written::Chpa,
            "so" => Written::ScaledObject,
            _ => Written::Singlecloud,
        })
    }

    /// An object of this form as `autoscaling/v2`, with nothing filled in and each metric at the place that it
    /// has there; nothing if it cannot be read. A query to Prometheus and an event source are metrics without a
    /// source.
    pub fn as_hpa(self, object: &Value) -> Option<HorizontalPodAutoscaler> {
        match self {
            Written::Hpa => custom_metrics::as_written(object).ok(),
            Written::PodAutoscaler => {
                let pa: PodAutoscaler = serde_json::from_value(object.clone()).ok()?;
                let mut hpa = hpa_form(&pa, None);
                hpa.spec.metrics = pa.spec.metrics.into_iter().map(|metric| metric.hpa).collect();
                Some(hpa)
            }
            Written::Chpa => chpa_form::as_written(object).ok(),
            // What its triggers measure is no metric of an HPA.
            Written::ScaledObject | Written::ScaledJob => None,
            Written::Singlecloud => {
                let autoscaler = singlecloud::read(object).ok()?.autoscaler;
                let namespace = singlecloud::namespace_of(object).unwrap_or_default();
                singlecloud::to_hpa(&autoscaler, namespace).ok()
            }
        }
    }

    /// The path at which an object of this form has what `autoscaling/v2` has at a path.
    pub fn path(self, object: &Value, path: &str) -> String {
        match self {
            Written::Hpa => manifest::written_path(object, path),
            Written::PodAutoscaler | Written::ScaledObject | Written::ScaledJob => path.to_owned(),
            Written::Chpa => chpa_form::path(path),
            Written::Singlecloud => singlecloud_form::path(object, path),
        }
    }

    /// Whether people know its fields by the names of `autoscaling/v2`, as API servers name those of every
    /// version.
    pub fn is_named_as_v2(self) -> bool {
        matches!(self, Written::Hpa | Written::PodAutoscaler)
    }

    /// Whether no metrics stand for one of cpu.
    pub fn has_default_metric(self) -> bool {
        !matches!(self, Written::Chpa | Written::ScaledObject | Written::ScaledJob)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_are_where_their_form_has_them() {
        let singlecloud = json!({"resourceMetrics": [{}], "customMetrics": [{}]});
        for (form, path, expected) in [
            (Written::PodAutoscaler, "spec.metrics[0].pods.target", "spec.metrics[0].pods.target"),
            (
                Written::Chpa,
                "spec.metrics[1].resource.target.averageUtilization",
                "spec.metrics[1].resource.targetAverageUtilization",
            ),
            (Written::Chpa, "spec.behavior.scaleUp.tolerance", "spec.tolerance"),
            (Written::Chpa, "spec.maxReplicas", "spec.maxReplicas"),
            (Written::Singlecloud, "spec.maxReplicas", "maxReplicas"),
            (Written::Singlecloud, "spec.scaleTargetRef.name", "scaleTargetName"),
            (Written::Singlecloud, "spec.scaleTargetRef.kind", "scaleTargetKind"),
            (
                Written::Singlecloud,
                "spec.metrics[0].resource.target.averageUtilization",
                "resourceMetrics[0].averageUtilization",
            ),
            (Written::Singlecloud, "spec.metrics[1].pods", "customMetrics[0]"),
            (Written::Singlecloud, "spec.behavior", ""),
        ] {
            assert_eq!(form.path(&singlecloud, path), expected, "{form:?} {path}");
        }
    }

    #[test]
    fn metrics_keep_their_places() {
        let target =
            json!({"apiVersion": "extensions/v1beta1", "kind": "Deployment", "name": "web"});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 50}});
        let chpa = json!({"apiVersion": "autoscalers.postmates.com/v1beta1", "kind": "CHPA",
            "metadata": {"name": "web"}, "spec": {"maxReplicas": 5, "scaleTargetRef": target, "metrics": [cpu]}});
        let hpa = Written::of(&chpa).and_then(|form| form.as_hpa(&chpa)).expect("a CHPA");
        assert_eq!(hpa.spec.scale_target_ref.api_version, "apps/v1");
        assert_eq!(hpa.spec.metrics.len(), 1);
        let query = json!({"type": "Prometheus", "prometheus": {"query": "up", "target": {}}});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}});
        let pa = json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler",
            "metadata": {"name": "web"}, "spec": {"maxReplicas": 5, "metrics": [query, cpu]}});
        let hpa = Written::of(&pa).and_then(|form| form.as_hpa(&pa)).expect("a PodAutoscaler");
        let types: Vec<&str> = hpa.spec.metrics.iter().map(|metric| &*metric.r#type).collect();
        assert_eq!(types, ["Prometheus", "Resource"]);
    }
}
