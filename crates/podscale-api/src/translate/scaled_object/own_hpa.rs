//! The HPA of a ScaledObject, where the cluster's own controller decides how many replicas an active target has: the
//! object as KEDA makes it, what becomes of one that is there, and what it says in the status of the ScaledObject.
//!
//! Where that is on purpose not the same as with KEDA: it is labelled as Podscale's, so that it can be told from one
//! that KEDA has left; it is annotated so that Podscale does not manage it as an HPA; it does not get what `kubectl
//! apply` remembers of another object; labels and annotations follow those of the ScaledObject at every reconcile.

use super::hpa_form;
use super::status::{ACTIVE, READY};
use crate::hpa::default::default_behavior;
use crate::hpa::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior};
use crate::keda::annotations::{Orders, Pause};
use crate::keda::check::step;
use crate::keda::scaled_object::{KIND, ScaledObject, ScaledObjectStatus};
use crate::keda::{API_VERSION, Condition};
use crate::labels::Labels;
use crate::meta::{ObjectMeta, OwnerReference};
use podscale_core::Autoscaler;

/// The label that says who made an HPA, and what it says of those that are made here.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "podscale");
/// The condition about the HPA.
pub const HPA_ACTIVE: &str = "HPAActive";

/// What keeps Podscale from managing an HPA.
const UNMANAGED: (&str, &str) = ("podscale.dev/managed", "false");
/// What kubectl remembers of the object that it is on.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The condition of an HPA that says whether it decides.
const SCALING_ACTIVE: &str = "ScalingActive";
/// The reason of an HPA whose target has no replicas.
const SCALING_DISABLED: &str = "ScalingDisabled";

/// The HPA that an object has, given what it means; none while everything is paused.
#[must_use]
pub fn own_hpa(
    object: &ScaledObject,
    model: &Autoscaler,
    version: &str,
) -> Option<HorizontalPodAutoscaler> {
    let orders = Orders::read(&object.metadata.annotations);
    if orders.pause != Pause::No {
        return None;
    }
    let mut hpa = hpa_form(object, model);
    hpa.metadata = metadata(object, &orders, version);
    hpa.spec.metrics.sort_by(|a, b| a.r#type.cmp(&b.r#type));
    for (is_paused, direction) in
        [(orders.scale_out_paused, Direction::Up), (orders.scale_in_paused, Direction::Down)]
    {
        if is_paused {
            disable(hpa.spec.behavior.get_or_insert_default(), direction);
        }
    }
    // As the API server stores it.
    if let Some(behavior) = &mut hpa.spec.behavior {
        default_behavior(behavior);
    }
    Some(hpa)
}

#[derive(Clone, Copy)]
enum Direction {
    Up,
    Down,
}

fn disable(behavior: &mut HorizontalPodAutoscalerBehavior, direction: Direction) {
    let rules = match direction {
        Direction::Up => &mut behavior.scale_up,
        Direction::Down => &mut behavior.scale_down,
    };
    rules.get_or_insert_default().select_policy = Some("Disabled".to_owned());
}

fn metadata(object: &ScaledObject, orders: &Orders, version: &str) -> ObjectMeta {
    let given = &object.metadata;
    let name = object.hpa_name();
    let excluded = |label: &str| orders.excluded_labels.iter().any(|other| other.trim() == label);
    let mut labels: Labels = given.labels.iter().filter(|(label, _)| !excluded(label)).collect();
    for (label, value) in [
        ("app.kubernetes.io/name", name.as_str()),
        ("app.kubernetes.io/version", version),
        ("app.kubernetes.io/part-of", given.name.as_str()),
        MANAGED_BY,
    ] {
        labels.insert(label, value);
    }
    let mut annotations: Labels =
        given.annotations.iter().filter(|(name, _)| *name != LAST_APPLIED).collect();
    annotations.insert(UNMANAGED.0, UNMANAGED.1);
    let owner = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: given.name.clone(),
        uid: given.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let (namespace, owner_references) = (given.namespace.clone(), vec![owner]);
    ObjectMeta { name, namespace, labels, annotations, owner_references, ..ObjectMeta::default() }
}

/// Whether an object is the one that an HPA belongs to.
#[must_use]
pub fn is_of(hpa: &HorizontalPodAutoscaler, uid: &str) -> bool {
    let mut owners = hpa.metadata.owner_references.iter();
    owners.any(|owner| owner.controller == Some(true) && owner.uid == uid)
}

/// Whether an HPA was made here, for a ScaledObject.
#[must_use]
pub fn is_made_here(metadata: &ObjectMeta) -> bool {
    let mut owners = metadata.owner_references.iter();
    metadata.labels.get(MANAGED_BY.0) == Some(MANAGED_BY.1)
        && owners.any(|owner| owner.controller == Some(true) && owner.kind == KIND)
}

/// The HPA as it is to be stored in the place of one that is there; nothing if that says it all already.
///
/// # Errors
/// The one that is there belongs to somebody else.
pub fn updated(
    found: &HorizontalPodAutoscaler,
    wanted: &HorizontalPodAutoscaler,
    object: &ScaledObject,
) -> Result<Option<HorizontalPodAutoscaler>, String> {
    let transfers = Orders::read(&object.metadata.annotations).transfer_hpa_ownership;
    if !transfers && !is_of(found, &object.metadata.uid) {
        let name = &found.metadata.name;
        return Err(format!(
            "HorizontalPodAutoscaler {name:?} exists and does not belong to this ScaledObject; delete it, or set the \
             annotation scaledobject.keda.sh/transfer-hpa-ownership: \"true\" to take it over"
        ));
    }
    let mut new = found.clone();
    wanted.metadata.labels.iter().for_each(|(name, value)| new.metadata.labels.insert(name, value));
    for (name, value) in wanted.metadata.annotations.iter() {
        new.metadata.annotations.insert(name, value);
    }
    new.metadata.owner_references.clone_from(&wanted.metadata.owner_references);
    new.spec = wanted.spec.clone();
    Ok((new != *found).then_some(new))
}

/// What became of the HPA of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum HpaSeen {
    /// It is there.
    There(Box<HorizontalPodAutoscaler>),
    /// There is none, and none is wanted.
    Gone,
    /// It cannot be as it should be, and why.
    Failed(String),
}

/// Puts into the status of an object what became of its HPA.
pub fn note_hpa(status: &mut ScaledObjectStatus, seen: &HpaSeen) {
    match seen {
        HpaSeen::There(hpa) => {
            status.hpa_name.clone_from(&hpa.metadata.name);
            if let Some(condition) = hpa_active(hpa) {
                set(status, condition);
            }
        }
        HpaSeen::Gone => {
            status.hpa_name.clear();
            status.conditions.retain(|condition| condition.r#type != HPA_ACTIVE);
        }
        HpaSeen::Failed(problem) => {
            let message = format!("{}: {problem}", step::HPA);
            set(status, condition(READY, "False", "ScaledObjectCheckFailed", message));
            let message = "ScaledObject check failed".to_owned();
            set(status, condition(ACTIVE, "Unknown", "UnknownState", message));
        }
    }
}

/// What KEDA makes of the condition of an HPA that says whether it decides.
fn hpa_active(hpa: &HorizontalPodAutoscaler) -> Option<Condition> {
    let conditions = &hpa.status.as_ref()?.conditions;
    let found = conditions.iter().find(|condition| condition.r#type == SCALING_ACTIVE)?;
    let (reason, message) = (found.reason.as_str(), found.message.as_str());
    Some(match (found.status.as_str(), reason) {
        ("True", _) => {
            condition(HPA_ACTIVE, "True", "HPAActive", "HPA is actively scaling".to_owned())
        }
        (_, SCALING_DISABLED) => {
            condition(HPA_ACTIVE, "True", SCALING_DISABLED, message.to_owned())
        }
        (_, reason) => {
            let reason = if reason.is_empty() { "HPAMetricsUnavailable" } else { reason };
            let message = format!("HPA is not actively scaling: {message}");
            condition(HPA_ACTIVE, "False", reason, message)
        }
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: String) -> Condition {
    let [r#type, status, reason] = [kind, status, reason].map(str::to_owned);
    Condition { r#type, status, reason, message }
}

/// Puts a condition in the place of the one of its kind, or behind all others.
fn set(status: &mut ScaledObjectStatus, new: Condition) {
    match status.conditions.iter_mut().find(|known| known.r#type == new.r#type) {
        Some(known) => *known = new,
        None => status.conditions.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TriggerMetric, autoscaler};
    use super::*;
    use podscale_core::model::{EventSource, Milli, Source, TargetKind, Targets};
    use serde_json::{Value, json};

    fn object(annotations: Value) -> ScaledObject {
        let object = json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u1",
                "labels": {"team": "shop", "secret": "x"}, "annotations": annotations},
            "spec": {"scaleTargetRef": {"name": "web"}, "maxReplicaCount": 9, "triggers": [
                {"type": "redis", "metadata": {}},
                {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60"}}]}});
        serde_json::from_value(object).expect("an object")
    }

    fn hpa(object: &ScaledObject) -> Option<Value> {
        let source = EventSource { kind: "redis".into(), key: "0".into() };
        let amount = Targets {
            kind: TargetKind::AverageValue,
            average_value: Some(Milli(10_000)),
            ..Targets::default()
        };
        let cpu = Targets {
            kind: TargetKind::Utilization,
            average_utilization: Some(60),
            ..Targets::default()
        };
        let triggers = vec![
            TriggerMetric::Resource {
                source: Source::Resource { name: "cpu".into() },
                targets: cpu,
            },
            TriggerMetric::External { name: "s0-redis".into(), source, targets: amount },
        ];
        let model = autoscaler(object, &Ok(triggers));
        own_hpa(object, &model, "0.1.0").map(|hpa| serde_json::to_value(hpa).expect("JSON"))
    }

    #[test]
    fn it_is_the_one_that_keda_makes() {
        let excluded = json!({"scaledobject.keda.sh/hpa-excluded-labels": "secret, other",
            LAST_APPLIED: "{}", "note": "n"});
        let made = hpa(&object(excluded)).expect("an HPA");
        let labels = json!({"app.kubernetes.io/name": "keda-hpa-web", "app.kubernetes.io/version": "0.1.0",
            "app.kubernetes.io/part-of": "web", "app.kubernetes.io/managed-by": "podscale", "team": "shop"});
        assert_eq!(made["metadata"]["labels"], labels);
        let annotations = json!({"scaledobject.keda.sh/hpa-excluded-labels": "secret, other",
            "note": "n", "podscale.dev/managed": "false"});
        assert_eq!(made["metadata"]["annotations"], annotations);
        let owner = json!([{"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "web",
            "uid": "u1", "controller": true, "blockOwnerDeletion": true}]);
        assert_eq!(made["metadata"]["ownerReferences"], owner);
        let selector = json!({"matchLabels": {"scaledobject.keda.sh/name": "web"}});
        let expected = json!({
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1, "maxReplicas": 9, "metrics": [
                {"type": "External", "external": {"metric": {"name": "s0-redis", "selector": selector},
                    "target": {"type": "AverageValue", "averageValue": "10"}}},
                {"type": "Resource", "resource": {"name": "cpu",
                    "target": {"type": "Utilization", "averageUtilization": 60}}}]});
        assert_eq!(made["spec"], expected);
    }

    #[test]
    fn pauses_disable_a_direction_or_take_it_away() {
        let paused = hpa(&object(json!({"autoscaling.keda.sh/paused-scale-in": "true"})));
        let behavior = &paused.expect("an HPA")["spec"]["behavior"];
        assert_eq!(behavior["scaleDown"]["selectPolicy"], "Disabled");
        assert_eq!(behavior["scaleUp"]["selectPolicy"], "Max");
        for annotation in ["autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-replicas"] {
            assert_eq!(hpa(&object(json!({annotation: "2"}))), None, "{annotation}");
        }
    }

    #[test]
    fn one_that_is_there_is_put_right_if_it_is_ours() {
        let object = object(json!({}));
        let read = |value: Value| -> HorizontalPodAutoscaler {
            serde_json::from_value(value).expect("an HPA")
        };
        let wanted = read(hpa(&object).expect("an HPA"));
        let mut found = wanted.clone();
        found.metadata.resource_version = "7".to_owned();
        found.metadata.labels.insert("others", "stay");
        assert_eq!(updated(&found, &wanted, &object), Ok(None));
        found.spec.max_replicas = 3;
        let new = updated(&found, &wanted, &object).expect("ours").expect("a change");
        assert_eq!((new.spec.max_replicas, &*new.metadata.resource_version), (9, "7"));
        assert_eq!(new.metadata.labels.get("others"), Some("stay"));
        assert!(is_of(&new, "u1") && is_made_here(&new.metadata) && !is_of(&new, "u2"));
        found.metadata.owner_references.clear();
        let refused = updated(&found, &wanted, &object).expect_err("somebody else's");
        assert!(refused.contains("keda-hpa-web"), "{refused}");
        let mut transfers = object.clone();
        transfers
            .metadata
            .annotations
            .insert("scaledobject.keda.sh/transfer-hpa-ownership", "true");
        assert!(matches!(updated(&found, &wanted, &transfers), Ok(Some(_))));
    }

    #[test]
    fn its_condition_is_one_of_the_object() {
        for (status, reason, expected) in [
            ("True", "ValidMetricFound", "True HPAActive HPA is actively scaling"),
            ("False", "ScalingDisabled", "True ScalingDisabled m"),
            (
                "False",
                "FailedGetExternalMetric",
                "False FailedGetExternalMetric HPA is not actively scaling: m",
            ),
            ("False", "", "False HPAMetricsUnavailable HPA is not actively scaling: m"),
        ] {
            let conditions = json!([{"type": "ScalingActive", "status": status, "reason": reason, "message": "m"}]);
            let hpa: HorizontalPodAutoscaler =
                serde_json::from_value(json!({"metadata": {"name": "x"},
                "status": {"conditions": conditions}}))
                .expect("an HPA");
            let mut said = ScaledObjectStatus::default();
            note_hpa(&mut said, &HpaSeen::There(Box::new(hpa)));
            let Condition { status, reason, message, .. } = &said.conditions[0];
            assert_eq!(
                (format!("{status} {reason} {message}"), &*said.hpa_name),
                (expected.to_owned(), "x")
            );
            note_hpa(&mut said, &HpaSeen::Gone);
            assert_eq!(said, ScaledObjectStatus::default());
        }
        let mut said = ScaledObjectStatus::default();
        note_hpa(&mut said, &HpaSeen::Failed("no".to_owned()));
        let ready = "failed to ensure HPA is correctly created for ScaledObject: no";
        assert_eq!(said.conditions[0].message, ready);
    }
}
