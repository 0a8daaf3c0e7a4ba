//! The CHPA of postmates as a form: bounds and metrics as in `autoscaling/v2beta1`, and a pace of its own. What it
//! has beyond `autoscaling/v2` is told by the names that a PodAutoscaler has for it, with its defaults filled in:
//! without them its meaning would be another one.

use serde_json::{Map, Value, json};

use super::{Form, Hub, Loss, Written, losses_in_meaning};
use crate::chpa::{API_VERSION, KIND, TARGET_API_VERSION, TARGET_KIND, default};
use crate::hpa::convert::{self, ConvertError, Version};
use crate::hpa::default::{CPU_UTILIZATION, cpu_metric};
use crate::hpa::manifest::before_targets;
use crate::hpa::v2::{self, HorizontalPodAutoscaler, HpaScalingPolicy, metric_type};
use crate::quantity::Quantity;

/// A number of its pace.
struct Pace {
    name: &'static str,
    default: f64,
    range: (f64, f64),
    /// What a PodAutoscaler calls it.
    field: &'static str,
}

const fn window(name: &'static str, field: &'static str) -> Pace {
    let (least, most) = default::FORBIDDEN_WINDOW_RANGE;
    let range = (least as f64, most as f64);
    Pace { name, default: default::FORBIDDEN_WINDOW_SECONDS as f64, range, field }
}

const PACE: [Pace; 4] = [
    window("downscaleForbiddenWindowSeconds", "spec.behavior.scaleDown.forbiddenWindowSeconds"),
    window("upscaleForbiddenWindowSeconds", "spec.behavior.scaleUp.forbiddenWindowSeconds"),
    Pace {
        name: FACTOR,
        default: default::SCALE_UP_LIMIT_FACTOR,
        range: default::SCALE_UP_LIMIT_FACTOR_RANGE,
        field: "spec.behavior.scaleUp.limit.factor",
    },
    Pace {
        name: "scaleUpLimitMinimum",
        default: default::SCALE_UP_LIMIT_MINIMUM as f64,
        range: (
            default::SCALE_UP_LIMIT_MINIMUM_RANGE.0 as f64,
            default::SCALE_UP_LIMIT_MINIMUM_RANGE.1 as f64,
        ),
        field: "spec.behavior.scaleUp.limit.minimum",
    },
];
const FACTOR: &str = "scaleUpLimitFactor";
const LIMIT: &str = "spec.behavior.scaleUp.limit";
const BEHAVIOR: &str = "spec.behavior";
const TOLERANCE: &str = "spec.tolerance";
/// What is lost of an autoscaler that says nothing of its pace.
const HPA_PACE: &str = "the default pace of an HPA";
/// What is meant by a CHPA without metrics, and by no other form.
const NO_METRICS: &str = "none, which keeps the size at minReplicas";
/// What it has in common with `autoscaling/v2beta1`.
const SHARED: [&str; 4] = ["scaleTargetRef", "minReplicas", "maxReplicas", "metrics"];
/// The groups in which Kubernetes has, or had, Deployments.
const TARGET_GROUPS: [&str; 3] = ["apps", "extensions", ""];

/// The form.
pub(super) struct Chpa;

impl Form for Chpa {
    fn name(&self) -> &'static str {
        "chpa"
    }

    fn describes(&self, object: &Value) -> bool {
        object["apiVersion"] == API_VERSION && object["kind"] == KIND
    }

    /// The status is left out: the controller writes another one for another kind.
    fn read(&self, object: &Value) -> Result<Hub, ConvertError> {
        let given = &object["spec"];
        let mut hpa = as_written(object)?;
        switch_off_policies(&mut hpa);
        let mut beyond = Vec::new();
        for pace in PACE {
            let number = number(given, pace.name, pace.default)?;
            // The factor is an amount there; the others are whole numbers.
            let value = if pace.name == FACTOR {
                number.to_string().into()
            } else {
                let own = given.get(pace.name).filter(|_| number != pace.default);
                own.cloned().unwrap_or_else(|| whole(pace.default))
            };
            beyond.push(Loss { field: pace.field.to_owned(), value });
        }
        let unread = match hpa.spec.metrics.is_empty() {
            true => vec![Loss { field: "spec.metrics".to_owned(), value: NO_METRICS.into() }],
            false => Vec::new(),
        };
        Ok(Hub { hpa, beyond, unread })
    }

    /// Of an HPA's behavior it has the tolerance.
    fn path(&self, object: &Value, field: &str) -> Option<String> {
        let own = path(field);
        if !field.starts_with(BEHAVIOR) {
            return Some(own);
        }
        let said = object["spec"]["tolerance"].as_f64().filter(|said| *said != 0.0);
        let around = !["policies", "Policy", "Window"].iter().any(|other| field.contains(other));
        said.filter(|_| around).map(|_| TOLERANCE.to_owned())
    }

    fn path_beyond(&self, _object: &Value, path: &str) -> Option<String> {
        let own = PACE.iter().find(|pace| pace.field == path);
        Some(own.map_or_else(|| path.to_owned(), |pace| format!("spec.{}", pace.name)))
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        check_target(&hub.hpa)?;
        let mut known = HorizontalPodAutoscaler { status: None, ..hub.hpa.clone() };
        // It refuses what it does not know.
        known.spec.metrics.retain(|metric| metric.r#type != metric_type::CONTAINER_RESOURCE);
        known.spec.behavior = None;
        if known.spec.metrics.is_empty() && hub.hpa.spec.metrics.is_empty() {
            // Without metrics it would stay at its minimum.
            known.spec.metrics.push(cpu_metric(CPU_UTILIZATION));
        }
        let mut object = convert::write(&known, Version::V2beta1)?;
        object["apiVersion"] = API_VERSION.into();
        object["kind"] = KIND.into();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let tolerance = tolerance(&hub.hpa).map(Quantity::as_approximate_f64);
        let (least, most) = default::TOLERANCE_RANGE;
        if let Some(tolerance) = tolerance.filter(|given| (least..=most).contains(given)) {
            object["spec"]["tolerance"] = json!(tolerance);
        }
        let others = write_pace(&hub.beyond, &mut object["spec"]);
        let mut lost =
            losses_in_meaning(&comparable(&hub.hpa), &comparable(&self.read(&object)?.hpa));
        if !is_paced(&hub.beyond) && !lost.iter().any(|loss| loss.field.starts_with(BEHAVIOR)) {
            lost.push(Loss { field: BEHAVIOR.to_owned(), value: HPA_PACE.into() });
        }
        lost.extend(others);
        Ok(Written { object, losses: lost })
    }
}

/// A CHPA as `autoscaling/v2`, with what it says itself and no more.
pub(crate) fn as_written(object: &Value) -> Result<HorizontalPodAutoscaler, ConvertError> {
    let given = &object["spec"];
    let shared: Map<String, Value> = SHARED
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), given.get(name)?.clone())))
        .collect();
    let hpa = json!({"apiVersion": Version::V2beta1.api_version(), "kind": v2::KIND,
        "metadata": object["metadata"], "spec": shared});
    let mut hpa = convert::as_written(&hpa)?;
    hpa.spec.scale_target_ref.api_version = TARGET_API_VERSION.to_owned();
    let tolerance = number(given, "tolerance", default::TOLERANCE)?;
    if tolerance != default::TOLERANCE {
        let behavior = hpa.spec.behavior.get_or_insert_default();
        for rules in [&mut behavior.scale_up, &mut behavior.scale_down] {
            rules.get_or_insert_default().tolerance = Quantity::parse(&tolerance.to_string()).ok();
        }
    }
    Ok(hpa)
}

/// The path at which a CHPA has what `autoscaling/v2` has at a path.
pub(crate) fn path(path: &str) -> String {
    if path.starts_with("spec.behavior.") && path.ends_with(".tolerance") {
        return TOLERANCE.to_owned();
    }
    match path.strip_prefix("spec.metrics[").and_then(|rest| rest.split_once(']')) {
        Some((index, rest)) => format!("spec.metrics[{index}]{}", before_targets(rest)),
        None => path.to_owned(),
    }
}

fn check_target(hpa: &HorizontalPodAutoscaler) -> Result<(), ConvertError> {
    let target = &hpa.spec.scale_target_ref;
    let (kind, version) = (&target.kind, &target.api_version);
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    if kind != TARGET_KIND {
        return Err(ConvertError::Unsuitable(format!("a CHPA cannot scale a {kind}")));
    }
    if !TARGET_GROUPS.contains(&group) {
        let why = format!("a CHPA cannot scale a {kind} of {version:?}");
        return Err(ConvertError::Unsuitable(why));
    }
    Ok(())
}

/// Nothing but its own pace holds a CHPA back: it has no rate policies, and no window in which the highest
/// recommendation counts.
fn switch_off_policies(hpa: &mut HorizontalPodAutoscaler) {
    let policy = open_policy(hpa);
    let behavior = hpa.spec.behavior.get_or_insert_default();
    behavior.scale_up.get_or_insert_default().policies = Some(vec![policy]);
    behavior.scale_down.get_or_insert_default().stabilization_window_seconds = Some(0);
}

/// A policy that allows everything at once.
fn open_policy(hpa: &HorizontalPodAutoscaler) -> HpaScalingPolicy {
    let value = hpa.spec.max_replicas.max(1);
    HpaScalingPolicy { r#type: "Pods".into(), value, period_seconds: 15 }
}

/// An autoscaler with one word for what means the same.
fn comparable(hpa: &HorizontalPodAutoscaler) -> HorizontalPodAutoscaler {
    let open = open_policy(hpa);
    let mut asked = HorizontalPodAutoscaler { status: None, ..hpa.clone() };
    asked.spec.scale_target_ref.api_version = TARGET_API_VERSION.to_owned();
    let usual = tolerance(hpa).is_some_and(|it| it.as_approximate_f64() == default::TOLERANCE);
    let Some(behavior) = &mut asked.spec.behavior else { return asked };
    for rules in [&mut behavior.scale_up, &mut behavior.scale_down].into_iter().flatten() {
        rules.tolerance = rules.tolerance.take().filter(|_| !usual);
    }
    if let Some(rules) = &mut behavior.scale_up
        && rules.select_policy.as_deref().is_none_or(|select| select == "Max")
        && let Some(policies) = &mut rules.policies
        && policies.iter().any(|policy| policy.r#type == "Pods" && policy.value >= open.value)
    {
        *policies = vec![open];
    }
    asked
}

/// Whether an autoscaler has the windows and the limit that a CHPA always has.
fn is_paced(beyond: &[Loss]) -> bool {
    let has = |field: &str| beyond.iter().any(|one| one.field.starts_with(field));
    PACE.iter().take(2).all(|pace| has(pace.field)) && has(LIMIT)
}

/// Writes the numbers of the pace into a spec, each within its range, and gives what cannot be said.
fn write_pace(beyond: &[Loss], spec: &mut Value) -> Vec<Loss> {
    let mut others = Vec::new();
    for loss in beyond.iter().filter(|loss| loss.field != LIMIT) {
        let amount = match &loss.value {
            Value::String(text) => Quantity::parse(text).ok().map(|it| it.as_approximate_f64()),
            other => other.as_f64(),
        };
        let pace = PACE.iter().find(|pace| pace.field == loss.field);
        let (Some(pace), Some(amount)) = (pace, amount) else {
            others.push(loss.clone());
            continue;
        };
        let (least, most) = pace.range;
        let within = amount.clamp(least, most);
        if within != amount {
            others.push(loss.clone());
        }
        spec[pace.name] = if pace.name == FACTOR { json!(within) } else { whole(within) };
    }
    others
}

/// A number of a spec; 0 stands for its default, too.
fn number(spec: &Value, name: &str, usual: f64) -> Result<f64, ConvertError> {
    match spec.get(name) {
        None | Some(Value::Null) => Ok(usual),
        Some(given) => match given.as_f64() {
            Some(0.0) => Ok(usual),
            Some(number) => Ok(number),
            None => Err(ConvertError::Unsuitable(format!("spec.{name} is no number: {given}"))),
        },
    }
}

fn whole(number: f64) -> Value {
    serde_json::from_str(&number.to_string()).unwrap_or_default()
}

/// The tolerance, if it is the same in both directions.
fn tolerance(hpa: &HorizontalPodAutoscaler) -> Option<&Quantity> {
    let behavior = hpa.spec.behavior.as_ref()?;
    let up = behavior.scale_up.as_ref()?.tolerance.as_ref();
    let down = behavior.scale_down.as_ref()?.tolerance.as_ref();
    up.filter(|_| up == down)
}

#[cfg(test)]
mod tests;
