//! How far a rollout may stray from the wanted number of pods.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The two bounds of a rolling update, as numbers of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many pods more than wanted there may be.
    pub max_surge: i32,
    /// How many pods fewer than wanted may be available.
    pub max_unavailable: i32,
}

/// Whether the deployment replaces its pods step by step.
#[must_use]
pub fn is_rolling(spec: &DeploymentSpec) -> bool {
    let kind = spec.strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
    kind.is_none_or(|kind| kind == "RollingUpdate")
}

/// The bounds: a share of surge is rounded up, one of unavailability down, and if nothing could move
/// one pod may be unavailable. A deployment that recreates its pods has no bounds to keep.
#[must_use]
pub fn limits(deployment: &Deployment) -> Limits {
    let spec = &deployment.spec;
    let wanted = spec.replicas.unwrap_or(1);
    if !is_rolling(spec) {
        return Limits { max_surge: 0, max_unavailable: 0 };
    }
    let limits = fence_posts(spec, wanted);
    Limits { max_unavailable: limits.max_unavailable.min(wanted.max(0)), ..limits }
}

fn fence_posts(spec: &DeploymentSpec, wanted: i32) -> Limits {
    let rolling = spec.strategy.as_ref().and_then(|strategy| strategy.rolling_update.as_ref());
    let quarter = IntOrString::String("25%".into());
    let surge = rolling.and_then(|rolling| rolling.max_surge.as_ref()).unwrap_or(&quarter);
    let missing = rolling.and_then(|rolling| rolling.max_unavailable.as_ref()).unwrap_or(&quarter);
    let max_surge = scaled(surge, wanted, true);
    let mut max_unavailable = scaled(missing, wanted, false);
    if max_surge == 0 && max_unavailable == 0 {
        max_unavailable = 1;
    }
    Limits { max_surge, max_unavailable }
}

/// A number, or a share of the whole rounded up or down; nonsense is nothing.
#[must_use]
pub fn scaled(value: &IntOrString, whole: i32, up: bool) -> i32 {
    match value {
        IntOrString::Int(number) => (*number).max(0),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|percent| percent.parse::<i64>().ok());
            let share = percent.unwrap_or(0).max(0).saturating_mul(i64::from(whole.max(0)));
            let rounded = if up { share.saturating_add(99) / 100 } else { share / 100 };
            i32::try_from(rounded).unwrap_or(i32::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn shares_are_rounded_as_kubernetes_rounds_them() {
        let cases = [
            (10, json!("25%"), json!("25%"), (3, 2)),
            (1, json!("25%"), json!("25%"), (1, 0)),
            (3, json!(0), json!("25%"), (0, 1)),
            (4, json!(2), json!(1), (2, 1)),
            (2, json!(0), json!(5), (0, 2)),
            (0, json!("25%"), json!("25%"), (0, 0)),
            (10, json!("100%"), json!("0%"), (10, 0)),
            (7, json!("rubbish"), json!(1), (0, 1)),
            (3, json!(null), json!(null), (1, 0)),
        ];
        for (replicas, surge, unavailable, expected) in cases {
            let deployment: Deployment = serde_json::from_value(json!({"spec": {
                "replicas": replicas, "selector": {}, "template": {},
                "strategy": {"type": "RollingUpdate",
                    "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}}))
            .unwrap();
            let limits = limits(&deployment);
            let found = (limits.max_surge, limits.max_unavailable);
            assert_eq!(found, expected, "{replicas} replicas, {surge} and {unavailable}");
        }
        let recreate: Deployment = serde_json::from_value(json!({"spec": {"replicas": 5,
            "selector": {}, "template": {}, "strategy": {"type": "Recreate"}}}))
        .unwrap();
        assert_eq!(limits(&recreate), Limits { max_surge: 0, max_unavailable: 0 });
    }
}
