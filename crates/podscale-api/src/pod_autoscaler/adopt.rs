//! An HPA as the PodAutoscaler that takes its place, and the way back.

mod changes;
mod edits;

pub use changes::{ReportedEvent, changes};
pub use edits::{Edit, edits};

use super::hpa_form::from_hpa;
use super::{PodAutoscaler, PodAutoscalerStatus};
use crate::hpa::v2::{API_VERSION, Condition, HorizontalPodAutoscaler, KIND};
use crate::labels::Labels;
use crate::meta::ObjectMeta;
use crate::singlecloud::TARGET_UID;

/// The annotation that holds the HPA whose place a PodAutoscaler has taken.
pub const ADOPTED: &str = "podscale.dev/adopted-hpa";
/// What kubectl keeps of an object for itself; of another object it would be wrong.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The annotation or label that says whether Podscale manages an object.
const MANAGED: &str = "podscale.dev/managed";

/// Why an object cannot be put in the place of another.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Its owner would make it again.
    #[error("it belongs to {kind} {name:?}, which would make it again")]
    Owned {
        /// The owner's kind.
        kind: String,
        /// The owner's name.
        name: String,
    },
    /// It is what became of a resource of singlecloud's API.
    #[error("it is kept by singlecloud's API, which would not find it any more")]
    Singlecloud,
    /// It was not adopted.
    #[error("it has no annotation {ADOPTED}, so it has not taken the place of an HPA")]
    NotAdopted,
    /// The HPA that it keeps cannot be read, or written.
    #[error("the HPA in its annotation {ADOPTED}: {0}")]
    Json(#[from] serde_json::Error),
}

/// The PodAutoscaler that means the same as an HPA, and keeps it.
///
/// # Errors
/// The HPA belongs to another object, or to singlecloud's API.
pub fn adopted(hpa: &HorizontalPodAutoscaler) -> Result<PodAutoscaler, AdoptError> {
    if let Some(owner) = hpa.metadata.owner_references.first() {
        return Err(AdoptError::Owned { kind: owner.kind.clone(), name: owner.name.clone() });
    }
    if hpa.metadata.annotations.get(TARGET_UID).is_some() {
        return Err(AdoptError::Singlecloud);
    }
    Ok(replacement(hpa)?)
}

/// What takes the place of any HPA.
fn replacement(hpa: &HorizontalPodAutoscaler) -> serde_json::Result<PodAutoscaler> {
    let kept = HorizontalPodAutoscaler {
        kind: KIND.to_owned(),
        api_version: API_VERSION.to_owned(),
        metadata: plain(&hpa.metadata),
        spec: hpa.spec.clone(),
        status: None,
    };
    let mut pa = from_hpa(hpa);
    pa.metadata = plain(&hpa.metadata);
    // That Podscale left the HPA alone is not meant for what takes its place on request.
    for marks in [&mut pa.metadata.annotations, &mut pa.metadata.labels] {
        if marks.get(MANAGED) == Some("false") {
            marks.remove(MANAGED);
        }
    }
    pa.metadata.annotations.insert(ADOPTED.to_owned(), serde_json::to_string(&kept)?);
    pa.status = hpa.status.as_ref().map(|status| PodAutoscalerStatus {
        last_scale_time: status.last_scale_time,
        current_replicas: status.current_replicas,
        desired_replicas: status.desired_replicas,
        // What is set to zero by the HPA is so by what takes its place.
        conditions: status.conditions.iter().filter(|c| is_complete(c)).cloned().collect(),
        ..PodAutoscalerStatus::default()
    });
    Ok(pa)
}

/// A status with what an HPA left, where it does not say otherwise itself: whoever decides on the
/// PodAutoscaler may have stored one meanwhile.
#[must_use]
pub fn with_left_behind(
    stored: Option<PodAutoscalerStatus>,
    left: &PodAutoscalerStatus,
) -> PodAutoscalerStatus {
    let Some(mut status) = stored else { return left.clone() };
    status.last_scale_time = status.last_scale_time.or(left.last_scale_time);
    if status.decisions.is_empty() {
        status.decisions.clone_from(&left.decisions);
    }
    for condition in &left.conditions {
        if !status.conditions.iter().any(|known| known.r#type == condition.r#type) {
            status.conditions.push(condition.clone());
        }
    }
    status
}

/// The HPA whose place a PodAutoscaler has taken.
///
/// # Errors
/// It has taken no HPA's place.
pub fn restored(pa: &PodAutoscaler) -> Result<HorizontalPodAutoscaler, AdoptError> {
    let text = pa.metadata.annotations.get(ADOPTED).ok_or(AdoptError::NotAdopted)?;
    let mut hpa: HorizontalPodAutoscaler = serde_json::from_str(text)?;
    // Whoever may edit an annotation must not name another place with it.
    hpa.metadata.name.clone_from(&pa.metadata.name);
    hpa.metadata.namespace.clone_from(&pa.metadata.namespace);
    hpa.metadata = plain(&hpa.metadata);
    Ok(hpa)
}

/// As much of the metadata as another object can have.
fn plain(metadata: &ObjectMeta) -> ObjectMeta {
    let kept = metadata.annotations.iter().filter(|(name, _)| *name != LAST_APPLIED);
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        labels: metadata.labels.clone(),
        annotations: kept.collect::<Labels>(),
        ..ObjectMeta::default()
    }
}

/// A PodAutoscaler as people write one, without what a cluster adds to it.
#[must_use]
pub fn as_written(pa: &PodAutoscaler) -> PodAutoscaler {
    PodAutoscaler { metadata: plain(&pa.metadata), status: None, ..pa.clone() }
}

/// Whether a condition has all that standard conditions must have.
fn is_complete(condition: &Condition) -> bool {
    condition.last_transition_time.is_some() && !condition.reason.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::translate;
    use serde_json::json;

    #[test]
    fn an_hpa_comes_back_as_it_was() {
        let given = json!({"kind": KIND, "apiVersion": API_VERSION,
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": "9",
                "labels": {"a": "b"}, "annotations": {"note": "x", LAST_APPLIED: "{}", MANAGED: "false"}},
            "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "minReplicas": 2, "maxReplicas": 5, "metrics": [{"type": "Resource", "resource":
                    {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]},
            "status": {"currentReplicas": 3, "desiredReplicas": 3, "lastScaleTime": "2026-01-01T00:00:00Z",
                "currentMetrics": null}});
        let mut hpa: HorizontalPodAutoscaler = serde_json::from_value(given).expect("an HPA");
        let pa = adopted(&hpa).expect("adopted");
        assert_eq!(translate::pod_autoscaler::autoscaler(&pa, &[]), translate::autoscaler(&hpa));
        assert_eq!((pa.metadata.uid.as_str(), pa.metadata.annotations.get(MANAGED)), ("", None));
        let status = pa.status.as_ref().expect("a status");
        assert_eq!((status.current_replicas, status.last_scale_time.is_some()), (3, true));
        let left = status.clone();
        assert_eq!(with_left_behind(None, &left), left);
        let known = PodAutoscalerStatus { current_replicas: 7, ..PodAutoscalerStatus::default() };
        let both = with_left_behind(Some(known), &left);
        assert_eq!((both.current_replicas, both.last_scale_time), (7, left.last_scale_time));
        let back = restored(&pa).expect("restored");
        assert_eq!(back.spec, hpa.spec);
        assert_eq!(back.metadata, plain(&hpa.metadata));
        assert_eq!(back.metadata.annotations.get(LAST_APPLIED), None);
        let error = restored(&from_hpa(&hpa)).expect_err("not adopted").to_string();
        assert!(error.starts_with("it has no annotation"), "{error}");
        hpa.metadata.owner_references =
            serde_json::from_value(json!([{"apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject", "name": "web", "uid": "x"}]))
            .expect("owners");
        let error = adopted(&hpa).expect_err("owned").to_string();
        assert_eq!(error, "it belongs to ScaledObject \"web\", which would make it again");
        hpa.metadata.owner_references.clear();
        hpa.metadata.annotations.insert(TARGET_UID, "u");
        assert!(matches!(adopted(&hpa), Err(AdoptError::Singlecloud)));
    }
}
