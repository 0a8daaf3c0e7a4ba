//! How fast and how far: policies, stabilization, switched-off directions, tolerance, zero.

use super::fixture::{Fixture, load};
use super::harness::Harness;
use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use serde_json::{Value, json};

/// From a size, with a load, to a size at which the behaviour holds the target.
struct Case {
    name: &'static str,
    behavior: Value,
    from: i32,
    load: f64,
    to: i64,
    /// A condition, and its status and reason, that says why.
    says: (&'static str, &'static str),
}

fn cases() -> Vec<Case> {
    let policy =
        |kind: &str, value: i32| json!({"type": kind, "value": value, "periodSeconds": 1800});
    let both = |select: &str| json!({"selectPolicy": select, "policies": [policy("Pods", 1), policy("Percent", 100)]});
    let one = |kind: &str, value: i32| json!({"policies": [policy(kind, value)]});
    const UP_LIMIT: (&str, &str) = ("ScalingLimited", "True ScaleUpLimit");
    const DOWN_LIMIT: (&str, &str) = ("ScalingLimited", "True ScaleDownLimit");
    let case = |name, behavior, from, load, to, says| Case { name, behavior, from, load, to, says };
    vec![
        case("up_by_pods", json!({"scaleUp": one("Pods", 1)}), 2, 6.0, 3, UP_LIMIT),
        case("up_by_percent", json!({"scaleUp": one("Percent", 50)}), 4, 8.0, 6, UP_LIMIT),
        case("up_by_least", json!({"scaleUp": both("Min")}), 2, 6.0, 3, UP_LIMIT),
        case("up_by_most", json!({"scaleUp": both("Max")}), 2, 6.0, 4, UP_LIMIT),
        case("up_disabled", json!({"scaleUp": {"selectPolicy": "Disabled"}}), 2, 6.0, 2, UP_LIMIT),
        case("down_by_pods", json!({"scaleDown": one("Pods", 1)}), 6, 2.0, 5, DOWN_LIMIT),
        case("down_by_percent", json!({"scaleDown": one("Percent", 50)}), 6, 1.0, 3, DOWN_LIMIT),
        case("down_by_least", json!({"scaleDown": both("Min")}), 6, 2.0, 5, DOWN_LIMIT),
        case(
            "down_disabled",
            json!({"scaleDown": {"selectPolicy": "Disabled"}}),
            4,
            2.0,
            4,
            DOWN_LIMIT,
        ),
        case(
            "up_stabilized",
            json!({"scaleUp": {"stabilizationWindowSeconds": 1800}}),
            2,
            6.0,
            2,
            ("AbleToScale", "True ScaleUpStabilized"),
        ),
        case(
            "down_stabilized",
            json!({"scaleDown": {"stabilizationWindowSeconds": 1800}}),
            4,
            2.0,
            4,
            ("AbleToScale", "True ScaleDownStabilized"),
        ),
        case(
            "up_within_tolerance",
            json!({"scaleUp": {"tolerance": "500m"}}),
            2,
            2.8,
            2,
            ("AbleToScale", "True ReadyForNewScale"),
        ),
        case(
            "beyond_the_largest_size",
            Value::Null,
            2,
            50.0,
            8,
            ("ScalingLimited", "True TooManyReplicas"),
        ),
        case(
            "below_the_smallest_size",
            Value::Null,
            3,
            0.0,
            1,
            ("ScalingLimited", "True TooFewReplicas"),
        ),
    ]
}

pub fn trials(harness: &Harness) -> Vec<Trial> {
    let trial = |case: Case| {
        harness.shared(&format!("behaviors::{}", case.name), move |fixture| held(fixture, case))
    };
    let mut trials: Vec<Trial> = cases().into_iter().map(trial).collect();
    trials.push(harness.shared("behaviors::stabilization_ends", stabilization_ends));
    trials.push(harness.shared("behaviors::spec_change_at_once", spec_change_at_once));
    trials.push(harness.shared("zero::to_and_from", to_and_from_zero));
    trials.push(harness.shared("zero::set_by_others", zero_set_by_others));
    trials
}

async fn held(fixture: Fixture, case: Case) -> Result<()> {
    fixture.deployment("web", case.from).await?;
    fixture.set_load("web", f64::from(case.from));
    fixture.autoscaler("web", (1, 8), load("web"), case.behavior).await?;
    fixture.until_seen("web", f64::from(case.from)).await?;
    fixture.set_load("web", case.load);
    fixture.until_replicas("web", case.to).await?;
    fixture.until_verdict("web", case.says.0, case.says.1).await?;
    // Two more decisions change nothing.
    for load in [case.load * 0.98, case.load] {
        fixture.until_seen("web", load).await?;
    }
    let replicas = fixture.replicas("web").await?;
    ensure!(replicas == case.to, "{replicas} replicas instead of {}", case.to);
    fixture.until_verdict("web", case.says.0, case.says.1).await
}

/// What is held for a while goes through in the end.
async fn stabilization_ends(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 5).await?;
    fixture.set_load("web", 5.0);
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 8}});
    fixture.autoscaler("web", (1, 8), load("web"), behavior).await?;
    fixture.until_seen("web", 5.0).await?;
    fixture.set_load("web", 2.0);
    fixture.until_verdict("web", "AbleToScale", "True ScaleDownStabilized").await?;
    fixture.until_replicas("web", 2).await
}

async fn spec_change_at_once(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 4).await?;
    fixture.set_load("web", 4.0);
    fixture.autoscaler("web", (1, 8), load("web"), Value::Null).await?;
    fixture.until_seen("web", 4.0).await?;
    let hpa = ("autoscaling/v2", "HorizontalPodAutoscaler");
    fixture.patch(hpa.0, hpa.1, "web", json!({"spec": {"minReplicas": 6}})).await?;
    fixture.until_replicas("web", 6).await?;
    let below = "Normal SuccessfulRescale New size: 6; reason: Current number of replicas below Spec.MinReplicas";
    fixture.until_event("web", below).await?;
    fixture
        .patch(hpa.0, hpa.1, "web", json!({"spec": {"minReplicas": 1, "maxReplicas": 3}}))
        .await?;
    fixture.until_replicas("web", 3).await?;
    let above = "Normal SuccessfulRescale New size: 3; reason: Current number of replicas above Spec.MaxReplicas";
    fixture.until_event("web", above).await
}

async fn to_and_from_zero(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 2.0);
    fixture.autoscaler("web", (0, 8), load("web"), Value::Null).await?;
    fixture.until_seen("web", 2.0).await?;
    fixture.set_load("web", 0.0);
    fixture.until_replicas("web", 0).await?;
    fixture.until_verdict("web", "ScaledToZero", "True ScaledToZero").await?;
    fixture.until_pods("web", 0).await?;
    fixture.set_load("web", 3.0);
    fixture.until_replicas("web", 3).await?;
    fixture.until_verdict("web", "ScaledToZero", "False NotScaledToZero").await
}

async fn zero_set_by_others(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 2.0);
    fixture.autoscaler("web", (1, 8), load("web"), Value::Null).await?;
    fixture.until_seen("web", 2.0).await?;
    fixture.patch("apps/v1", "Deployment", "web", json!({"spec": {"replicas": 0}})).await?;
    fixture.until_verdict("web", "ScalingActive", "False ScalingDisabled").await?;
    ensure!(fixture.replicas("web").await? == 0, "a switched-off target was switched on");
    fixture.patch("apps/v1", "Deployment", "web", json!({"spec": {"replicas": 1}})).await?;
    fixture.until_replicas("web", 2).await
}
