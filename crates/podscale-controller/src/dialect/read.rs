//! Reads single objects of any dialect and version, as files and Recordings have them, checked as an API
//! server checks them.

mod jobs;

pub use jobs::{UnderstoodJobs, is_scaled_job, read_jobs};

use super::{Managed, chpa, hpa, pod_autoscaler, scaled_object};
use crate::settings::TriggerMode;
use crate::triggers::Triggered;
use crate::triggers::offline::{Measured, TriggerTarget, measured};
use podscale_api::chpa::Chpa;
use podscale_api::hpa::convert::{self, ConvertError, Version};
use podscale_api::hpa::v2::{self, HorizontalPodAutoscaler};
use podscale_api::hpa::{custom_metrics, validate};
use podscale_api::keda::{self, ScaledObject};
use podscale_api::meta::ObjectMeta;
use podscale_api::pod_autoscaler::PodAutoscaler;
use podscale_api::pod_autoscaler::default::default_spec;
use podscale_api::recording::{ORIGIN, Origin};
use podscale_api::translate::scaled_object::recorded_spec;
use podscale_core::model::Milli;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The namespace of an object that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// One object, and how it was understood.
#[derive(Clone, Debug)]
pub struct Understood {
    /// The object in the form that a controller works with.
    pub managed: Managed,
    /// The object in the newest version of its kind with defaults filled in; fields that the kind does
    /// not have are gone.
    pub object: Value,
    /// Above which values triggers are active, by the names of their metrics.
    pub activations: BTreeMap<Arc<str>, Milli>,
    /// Where triggers have their targets.
    pub targets: Vec<TriggerTarget>,
}

impl Understood {
    fn new(managed: Managed, object: Value) -> Understood {
        Understood { managed, object, activations: BTreeMap::new(), targets: Vec::new() }
    }
}

/// Why an object cannot be used; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is no autoscaler of a known version, or a field has the wrong type.
    #[error("{0}")]
    Convert(#[from] ConvertError),
    /// An API server or the controller would refuse it; the first thing that is wrong.
    #[error("{0}")]
    Invalid(String),
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> ReadError {
        ReadError::Convert(error.into())
    }
}

/// Whether an object is an autoscaler of any dialect; its version need not be a known one.
#[must_use]
pub fn is_autoscaler(object: &Value) -> bool {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let is_of = |dialect: &super::Kind| version == dialect.api_version && kind == dialect.name;
    kind == v2::KIND && version.starts_with("autoscaling/")
        || is_of(&chpa::CHPA)
        || is_of(&pod_autoscaler::POD_AUTOSCALER)
        || is_of(&scaled_object::SCALED_OBJECT)
}

/// Reads an object.
///
/// # Errors
/// It is no autoscaler, cannot be read, or would be refused.
pub fn read(object: &Value) -> Result<Understood, ReadError> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (podscale_api::chpa::API_VERSION, podscale_api::chpa::KIND) => read_chpa(object),
        (podscale_api::pod_autoscaler::API_VERSION, podscale_api::pod_autoscaler::KIND) => {
            read_pod_autoscaler(object)
        }
        (keda::API_VERSION, keda::scaled_object::KIND) => read_scaled_object(object),
        _ => read_hpa(object),
    }
}

/// Reads the object of a Recording, whatever its kind was.
///
/// # Errors
/// As [`read`].
pub fn read_recorded(hpa: &HorizontalPodAutoscaler) -> Result<Understood, ReadError> {
    let Some(origin) = Origin::of(hpa) else {
        return read(&convert::write(hpa, Version::V2)?);
    };
    let mut metadata = hpa.metadata.clone();
    metadata.annotations.remove(ORIGIN);
    let kinds = [&chpa::CHPA, &pod_autoscaler::POD_AUTOSCALER, &scaled_object::SCALED_OBJECT];
    let known = kinds.into_iter().find(|kind| kind.name == origin.kind);
    let api_version = known.map_or("", |kind| kind.api_version);
    let metadata = serde_json::to_value(metadata)?;
    // Of a ScaledObject more is noted than its spec.
    let spec = match origin.kind == scaled_object::SCALED_OBJECT.name {
        true => serde_json::to_value(recorded_spec(origin.spec))?,
        false => origin.spec,
    };
    read(&json!({"apiVersion": api_version, "kind": origin.kind, "metadata": metadata,
        "spec": spec}))
}

/// Fills in what an API server gives every object.
fn admit(metadata: &mut ObjectMeta) {
    if metadata.namespace.is_empty() {
        metadata.namespace = DEFAULT_NAMESPACE.to_owned();
    }
    metadata.generation = metadata.generation.max(1);
}

fn read_hpa(object: &Value) -> Result<Understood, ReadError> {
    let annotations = object.pointer("/metadata/annotations");
    let is_old = annotations.and_then(|all| all.get(custom_metrics::TARGET)).is_some();
    let mut hpa = if is_old {
        let written = custom_metrics::as_written(object)?;
        convert::read(&convert::write(&written, Version::V2)?)?
    } else {
        convert::read(object)?
    };
    admit(&mut hpa.metadata);
    if let Some(error) = validate::check_create(&hpa).first() {
        return Err(ReadError::Invalid(error.to_string()));
    }
    let object = convert::write(&hpa, Version::V2)?;
    Ok(Understood::new(hpa::managed(hpa), object))
}

fn read_chpa(object: &Value) -> Result<Understood, ReadError> {
    let mut chpa = Chpa::deserialize(object)?;
    admit(&mut chpa.metadata);
    let spec = chpa.checked().map_err(ReadError::Invalid)?;
    let object = json!({"apiVersion": chpa::CHPA.api_version, "kind": chpa::CHPA.name,
        "metadata": serde_json::to_value(&chpa.metadata)?, "spec": serde_json::to_value(&spec)?});
    Ok(Understood::new(chpa::managed(chpa), object))
}

/// What its triggers measure is known as far as their metadata say it.
fn read_scaled_object(object: &Value) -> Result<Understood, ReadError> {
    let mut scaled = ScaledObject::deserialize(object)?;
    admit(&mut scaled.metadata);
    scaled.status = None;
    let Measured { metrics, activations, targets } =
        measured(&Triggered::from(&scaled)).map_err(ReadError::Invalid)?;
    let object = serde_json::to_value(&scaled)?;
    let managed = scaled_object::managed(&Arc::new(scaled), &Ok(metrics), TriggerMode::Direct);
    match managed.model.invalid() {
        Some(why) => Err(ReadError::Invalid(why.to_string())),
        None => Ok(Understood { managed, object, activations, targets }),
    }
}

/// What its event sources measure is known as far as their metadata say it.
fn read_pod_autoscaler(object: &Value) -> Result<Understood, ReadError> {
    let mut pa = PodAutoscaler::deserialize(object)?;
    admit(&mut pa.metadata);
    default_spec(&mut pa.spec);
    pa.status = None;
    let object = serde_json::to_value(&pa)?;
    let measured = measured(&Triggered::from(&pa));
    let metrics = measured.as_ref().map(|measured| &measured.metrics[..]);
    let managed = pod_autoscaler::managed_with(&Arc::new(pa), metrics, &"".into(), None);
    match (managed.model.invalid(), measured) {
        (Some(why), _) => Err(ReadError::Invalid(why.to_string())),
        (None, Err(why)) => Err(ReadError::Invalid(why)),
        (None, Ok(Measured { activations, targets, .. })) => {
            Ok(Understood { managed, object, activations, targets })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::model::MetricTarget;

    fn spec(more: Value) -> Value {
        let mut spec = json!({"maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        for (name, value) in more.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        spec
    }

    fn object(version: &str, kind: &str, more: Value) -> Value {
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": spec(more)})
    }

    #[test]
    fn every_dialect_and_version_is_read() {
        let schedule =
            json!([{"name": "night", "start": "0 22 * * *", "duration": "8h", "minReplicas": 2}]);
        for (version, kind, more) in [
            (
                "autoscaling/v1",
                "HorizontalPodAutoscaler",
                json!({"targetCPUUtilizationPercentage": 60}),
            ),
            ("autoscaling/v2beta2", "HorizontalPodAutoscaler", json!({})),
            ("autoscaling/v2", "HorizontalPodAutoscaler", json!({"minReplicas": 2})),
            (
                "autoscalers.postmates.com/v1beta1",
                "CHPA",
                json!({"minReplicas": 1, "tolerance": 0.2}),
            ),
            ("podscale.dev/v1alpha1", "PodAutoscaler", json!({"schedules": schedule})),
        ] {
            let object = object(version, kind, more);
            assert!(is_autoscaler(&object), "{version} {kind}");
            let read = read(&object).unwrap_or_else(|error| panic!("{version} {kind}: {error}"));
            assert_eq!(&*read.managed.model.namespace, "default", "{kind}");
            assert_eq!(read.managed.model.max_replicas, 5, "{kind}");
            assert_eq!(read.object["kind"], kind);
            // What is recorded of it is read as the same again.
            let recorded = read_recorded(&read.managed.wire.recorded())
                .unwrap_or_else(|error| panic!("{version} {kind}: {error}"));
            assert_eq!(recorded.managed.model, read.managed.model, "{kind}");
        }
    }

    #[test]
    fn a_scaled_object_is_read_and_so_is_what_is_recorded_of_it() {
        let trigger = json!({"type": "redis", "name": "jobs", "metadata":
            {"address": "redis:6379", "listName": "jobs", "listLength": "7"}});
        let mut object = json!({"apiVersion": keda::API_VERSION, "kind": keda::scaled_object::KIND,
            "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": {"name": "web"}, "maxReplicaCount": 5, "triggers": [trigger]}});
        for formula in [json!({}), json!({"formula": "jobs * 2", "target": "20"})] {
            object["spec"]["advanced"] = json!({"scalingModifiers": formula});
            let understood = read(&object).expect("a ScaledObject");
            let recorded = read_recorded(&understood.managed.wire.recorded()).expect("the same");
            assert_eq!(recorded.managed.model, understood.managed.model, "{formula}");
            assert_eq!(recorded.activations, understood.activations, "{formula}");
        }
        object["spec"]["maxReplicas"] = json!(5);
        let read = read(&object).expect("a ScaledObject");
        assert!(read.object["spec"]["maxReplicas"].is_null(), "there is no such field");
    }

    #[test]
    fn a_pod_autoscaler_with_event_sources_is_read_and_so_is_what_is_recorded_of_it() {
        let jobs = json!({"type": "Trigger", "name": "jobs", "trigger": {"type": "redis",
            "metadata": {"address": "redis:6379", "listName": "jobs", "listLength": "7",
                "activationListLength": "2"}}});
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}});
        let own = |metrics: Value| object("podscale.dev/v1alpha1", "PodAutoscaler", metrics);
        let given = own(json!({"metrics": [cpu, jobs]}));
        let understood = read(&given).expect("a PodAutoscaler");
        let model = &understood.managed.model;
        assert_eq!(model.metrics[1].target, MetricTarget::AverageValue(Milli(7000)));
        assert_eq!(understood.activations.get("s1-redis-jobs"), Some(&Milli(2000)));
        let path = &understood.targets[0].path;
        assert_eq!(path, "spec.metrics[1].trigger.metadata.listLength");
        let recorded = read_recorded(&understood.managed.wire.recorded()).expect("the same");
        assert_eq!(recorded.managed.model, *model);
        let mut bad = jobs.clone();
        bad["trigger"]["metadata"]["listLength"] = json!("many");
        let error = read(&own(json!({"metrics": [bad]}))).expect_err("no number").to_string();
        assert!(error.starts_with("spec.metrics[0].trigger (redis): "), "{error}");
    }

    #[test]
    fn what_would_be_refused_is_refused() {
        for (version, kind, more, expected) in [
            ("autoscaling/v9", "HorizontalPodAutoscaler", json!({}), "known version"),
            (
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                json!({"maxReplicas": 0}),
                "spec.maxReplicas",
            ),
            (
                "autoscalers.postmates.com/v1beta1",
                "CHPA",
                json!({"scaleTargetRef": {"kind": "StatefulSet", "name": "web"}}),
                "StatefulSet",
            ),
            (
                "podscale.dev/v1alpha1",
                "PodAutoscaler",
                json!({"syncPeriod": "5ms"}),
                "spec.syncPeriod",
            ),
        ] {
            let error = read(&object(version, kind, more)).expect_err(kind).to_string();
            assert!(error.contains(expected), "{kind}: {error}");
        }
        let foreign =
            object("autoscaling.internal.knative.dev/v1alpha1", "PodAutoscaler", json!({}));
        assert!(!is_autoscaler(&foreign));
    }
}
