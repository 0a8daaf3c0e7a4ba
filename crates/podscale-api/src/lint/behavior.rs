//! Lints about how fast and how steadily.

use super::{Autoscaler, Lint, Manifests, Remark, remark};
use crate::hpa::v2::{HorizontalPodAutoscaler, HpaScalingRules};
use crate::quantity::Quantity;
use serde_json::Value;

pub(super) const LINTS: &[Lint] = &[
    Lint {
        name: "disabled-with-rules",
        reason: "A direction with selectPolicy Disabled never scales, whatever its policies and window say.",
        check: disabled_with_rules,
    },
    Lint {
        name: "no-downscale-window",
        reason: "Without a window every dip of a metric removes pods at once, and the next rise has to start them again.",
        check: no_downscale_window,
    },
    Lint {
        name: "policy-without-effect",
        reason: "A policy that allows the whole range in one period limits nothing, and under Max it makes all others pointless too.",
        check: policy_without_effect,
    },
    Lint {
        name: "tolerance-too-wide",
        reason: "A metric is never less than zero, so with a tolerance of 1 or more for scaling down nothing is ever scaled down.",
        check: tolerance_too_wide,
    },
    Lint {
        name: "window-outlasts-policies",
        reason: "If the policies allow the whole range in less time than the stabilization window lasts, the window alone sets the pace.",
        check: window_outlasts_policies,
    },
];

/// The longest that policies are followed, in seconds; windows are shorter.
const LONGEST_SECONDS: i64 = 3600;

/// The directions that have rules: name, rules, and whether pods are added.
fn directions(hpa: &HorizontalPodAutoscaler) -> Vec<(&'static str, &HpaScalingRules, bool)> {
    let Some(behavior) = &hpa.spec.behavior else { return Vec::new() };
    let up = behavior.scale_up.as_ref().map(|rules| ("scaleUp", rules, true));
    let down = behavior.scale_down.as_ref().map(|rules| ("scaleDown", rules, false));
    up.into_iter().chain(down).collect()
}

fn bounds(hpa: &HorizontalPodAutoscaler) -> (i64, i64) {
    (i64::from(hpa.spec.min_replicas.unwrap_or(1)), i64::from(hpa.spec.max_replicas))
}

fn is_disabled(rules: &HpaScalingRules) -> bool {
    rules.select_policy.as_deref() == Some("Disabled")
}

fn disabled_with_rules(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (name, rules, _) in directions(autoscaler.hpa) {
        let given = [
            ("policies", rules.policies.as_ref().is_some_and(|list| !list.is_empty())),
            ("stabilizationWindowSeconds", rules.stabilization_window_seconds.is_some()),
            ("tolerance", rules.tolerance.is_some()),
        ];
        for (field, _) in given.into_iter().filter(|(_, set)| *set && is_disabled(rules)) {
            let path = format!("spec.behavior.{name}.{field}");
            remarks.push(remark(path, format!("{name} is Disabled, so this has no effect")));
        }
    }
    remarks
}

fn no_downscale_window(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let down = directions(autoscaler.hpa).into_iter().find(|(.., up)| !up);
    // A PodAutoscaler has another window, which does as well.
    let other = autoscaler.object.pointer("/spec/behavior/scaleDown/forbiddenWindowSeconds");
    let windowless = other.and_then(Value::as_i64).unwrap_or_default() == 0;
    let without = down.filter(|(_, rules, _)| {
        rules.stabilization_window_seconds == Some(0) && windowless && !is_disabled(rules)
    });
    without
        .map(|_| {
            let problem = "a window of 0 s removes pods at every dip; the default is 300 s";
            remark("spec.behavior.scaleDown.stabilizationWindowSeconds", problem)
        })
        .into_iter()
        .collect()
}

fn tolerance_too_wide(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let one = Quantity::parse("1").unwrap_or_default();
    let down = directions(autoscaler.hpa).into_iter().find(|(.., up)| !up);
    let tolerance = down.and_then(|(_, rules, _)| rules.tolerance.as_ref());
    tolerance
        .filter(|tolerance| **tolerance >= one)
        .map(|tolerance| {
            let problem = format!("with a tolerance of {tolerance} nothing is ever scaled down");
            remark("spec.behavior.scaleDown.tolerance", problem)
        })
        .into_iter()
        .collect()
}

/// How many pods a policy allows to add to, or remove from, so many.
fn allowed(kind: &str, value: i32, replicas: i64) -> i64 {
    let value = i64::from(value);
    if kind != "Percent" {
        return value;
    }
    // A part of a pod is a whole one, in both directions.
    replicas.saturating_mul(value).saturating_add(99) / 100
}

fn policy_without_effect(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let (min, max) = bounds(autoscaler.hpa);
    let mut remarks = Vec::new();
    for (name, rules, up) in directions(autoscaler.hpa) {
        let policies = rules.policies.as_deref().unwrap_or_default();
        // Alone it is a way to say that there is no limit.
        let several = policies.len() > 1 && !is_disabled(rules) && max > min;
        for (index, policy) in policies.iter().enumerate().filter(|_| several) {
            let from = if up { min } else { max };
            if allowed(&policy.r#type, policy.value, from) >= max - min {
                remarks.push(remark(
                    format!("spec.behavior.{name}.policies[{index}]"),
                    format!(
                        "{} {} allows to go from {from} to {} in one period",
                        policy.r#type,
                        policy.value,
                        if up { max } else { min }
                    ),
                ));
            }
        }
    }
    remarks
}

fn window_outlasts_policies(autoscaler: &Autoscaler<'_>, _: &Manifests<'_>) -> Vec<Remark> {
    let (min, max) = bounds(autoscaler.hpa);
    let mut remarks = Vec::new();
    for (name, rules, up) in directions(autoscaler.hpa) {
        let Some(window) = rules.stabilization_window_seconds.map(i64::from) else { continue };
        let policies = rules.policies.as_deref().unwrap_or_default();
        if policies.is_empty() || is_disabled(rules) || max <= min || window <= 0 {
            continue;
        }
        if let Some(seconds) = seconds_for_range(rules, (min, max), up)
            && seconds < window
        {
            remarks.push(remark(
                format!("spec.behavior.{name}.stabilizationWindowSeconds"),
                format!(
                    "the policies allow the whole range of {min} to {max} within {seconds} s, the window lasts {window} s"
                ),
            ));
        }
    }
    remarks
}

/// In how many seconds the policies allow to cross the whole range; nothing if that takes too long.
fn seconds_for_range(rules: &HpaScalingRules, (min, max): (i64, i64), up: bool) -> Option<i64> {
    let slowest = rules.select_policy.as_deref() == Some("Min");
    let times = rules.policies.as_deref().unwrap_or_default().iter().map(|policy| {
        let period = i64::from(policy.period_seconds).max(1);
        let (mut replicas, mut seconds) = (if up { min } else { max }, 0);
        while (min..max).contains(&if up { replicas } else { min + max - replicas }) {
            let step = allowed(&policy.r#type, policy.value, replicas);
            if step <= 0 || seconds > LONGEST_SECONDS {
                return None;
            }
            replicas = if up { replicas + step } else { replicas - step };
            seconds += period;
        }
        Some(seconds)
    });
    if slowest {
        times.collect::<Option<Vec<_>>>()?.into_iter().max()
    } else {
        times.flatten().min()
    }
}
