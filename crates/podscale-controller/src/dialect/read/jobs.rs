//! Reads ScaledJobs, which give no target a size.

use super::{ReadError, admit};
use crate::dialect::scaled_job::SCALED_JOB;
use crate::triggers::Triggered;
use crate::triggers::offline::{Measured, TriggerTarget, measured};
use podscale_api::keda::ScaledJob;
use podscale_api::keda::check;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_core::model::Milli;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One ScaledJob, and how it was understood.
#[derive(Clone, Debug)]
pub struct UnderstoodJobs {
    /// The object.
    pub job: ScaledJob,
    /// The same as it is written; fields that the kind does not have are gone.
    pub object: Value,
    /// What its triggers measure, in their order.
    pub metrics: Vec<TriggerMetric>,
    /// Above which values they are active, by the names of their metrics.
    pub activations: BTreeMap<Arc<str>, Milli>,
    /// Where they have their targets.
    pub targets: Vec<TriggerTarget>,
}

/// Whether an object is a ScaledJob.
#[must_use]
pub fn is_scaled_job(object: &Value) -> bool {
    let is = |field: &str, value: &str| object.get(field).and_then(Value::as_str) == Some(value);
    is("apiVersion", SCALED_JOB.api_version) && is("kind", SCALED_JOB.name)
}

/// Reads a ScaledJob. What its triggers measure is known as far as their metadata say it.
///
/// # Errors
/// It cannot be read, or would be refused.
pub fn read_jobs(object: &Value) -> Result<UnderstoodJobs, ReadError> {
    let mut job = ScaledJob::deserialize(object)?;
    admit(&mut job.metadata);
    job.status = None;
    check::scaled_job(&job).map_err(|wrong| ReadError::Invalid(wrong.to_string()))?;
    let Measured { metrics, activations, targets } =
        measured(&Triggered::from(&job)).map_err(ReadError::Invalid)?;
    let object = serde_json::to_value(&job)?;
    Ok(UnderstoodJobs { job, object, metrics, activations, targets })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(triggers: Value) -> Value {
        json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": "mail"},
            "spec": {"jobTargetRef": {"template": {}}, "maxReplicas": 3, "triggers": triggers}})
    }

    fn redis() -> Value {
        json!({"type": "redis", "metadata": {"address": "redis:6379", "listName": "mails",
            "listLength": "7", "activationListLength": "2"}})
    }

    #[test]
    fn a_scaled_job_is_read() {
        let object = object(json!([redis()]));
        assert!(is_scaled_job(&object));
        let read = read_jobs(&object).expect("a ScaledJob");
        assert_eq!(read.job.metadata.namespace, "default");
        assert!(read.object["spec"]["maxReplicas"].is_null(), "there is no such field");
        let TriggerMetric::External { name, targets, .. } = &read.metrics[0] else {
            panic!("{:?}", read.metrics)
        };
        assert_eq!((&**name, targets.average_value), ("s0-redis-mails", Some(Milli(7000))));
        assert_eq!(read.activations.get(name), Some(&Milli(2000)));
        assert_eq!(read.targets[0].path, "spec.triggers[0].metadata.listLength");
    }

    #[test]
    fn what_would_be_refused_is_refused() {
        let mut typed = redis();
        typed["metricType"] = json!("Value");
        for (triggers, expected) in [
            (json!([]), "trigger"),
            (json!([typed]), "metricType is set in the trigger of type redis"),
            (json!([{"type": "crom", "metadata": {}}]), "no scaler found for type: crom"),
        ] {
            let error = read_jobs(&object(triggers)).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
