//! What is lost on the way into another form: found by reading back what was written.

use std::fmt;

use serde_json::{Map, Value};

use crate::hpa::default::default_behavior;
use crate::hpa::v2::HorizontalPodAutoscaler;

/// The longest value that is shown.
const MOST_CHARACTERS: usize = 120;

/// Something that a form could not take in.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Where it was, as a path.
    pub field: String,
    /// What it was.
    pub value: Value,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.to_string();
        write!(f, "{}: ", self.field)?;
        match value.char_indices().nth(MOST_CHARACTERS) {
            Some((end, _)) => write!(f, "{}…", value.get(..end).unwrap_or_default()),
            None => f.write_str(&value),
        }
    }
}

/// What an autoscaler said before and does not say after. The order of metrics says nothing.
pub fn losses(before: &HorizontalPodAutoscaler, after: &HorizontalPodAutoscaler) -> Vec<Loss> {
    let json = |hpa: &HorizontalPodAutoscaler| serde_json::to_value(hpa).unwrap_or_default();
    let (before, mut after) = (json(before), json(after));
    align_metrics(&before, &mut after);
    let mut lost = Vec::new();
    for field in ["metadata", "spec", "status"] {
        compare(&before[field], &after[field], field, &mut lost);
    }
    lost
}

/// The losses without those that make no difference, since what is said there is the default.
pub(super) fn losses_in_meaning(
    before: &HorizontalPodAutoscaler,
    after: &HorizontalPodAutoscaler,
) -> Vec<Loss> {
    let filled = |hpa: &HorizontalPodAutoscaler| {
        let mut hpa = hpa.clone();
        default_behavior(hpa.spec.behavior.get_or_insert_default());
        hpa
    };
    let differences = losses(&filled(before), &filled(after));
    let mut lost = losses(before, after);
    lost.retain(|loss| {
        let within = |one: &str, other: &str| one.starts_with(other);
        differences
            .iter()
            .any(|other| within(&other.field, &loss.field) || within(&loss.field, &other.field))
    });
    lost
}

/// What an object has at a path such as `spec.metrics[1].type` or `metadata.annotations[example.com/a]`.
pub(super) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let (mut value, mut rest) = (object, path);
    while !rest.is_empty() {
        let step;
        (step, rest) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_once(']')?,
            None => {
                let name = rest.trim_start_matches('.');
                name.split_at(name.find(['.', '[']).unwrap_or(name.len()))
            }
        };
        value = match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?)?,
            fields => fields.get(step)?,
        };
    }
    Some(value)
}

/// Puts metrics into the order that they had before; those that are left stay at the end.
fn align_metrics(before: &Value, after: &mut Value) {
    let metrics = |hpa: &Value| hpa["spec"]["metrics"].as_array().cloned().unwrap_or_default();
    let (wanted, mut left) = (metrics(before), metrics(after));
    let mut aligned: Vec<Option<Value>> =
        wanted.iter().map(|metric| take(&mut left, |one| one == metric)).collect();
    for (metric, place) in wanted.iter().zip(&mut aligned).filter(|(_, place)| place.is_none()) {
        *place = take(&mut left, |one| is_same_metric(one, metric));
    }
    if wanted.is_empty() && left.is_empty() {
        return;
    }
    let list = aligned.into_iter().map(Option::unwrap_or_default).chain(left);
    if let Some(spec) = after["spec"].as_object_mut() {
        spec.insert("metrics".to_owned(), list.collect());
    }
}

fn take(list: &mut Vec<Value>, is_wanted: impl Fn(&Value) -> bool) -> Option<Value> {
    list.iter().position(is_wanted).map(|at| list.remove(at))
}

/// Whether both are about the same metric, whatever its target.
fn is_same_metric(one: &Value, other: &Value) -> bool {
    let about = |metric: &Value| -> Map<String, Value> {
        let fields = metric.as_object().into_iter().flatten();
        fields
            .map(|(name, source)| {
                let mut source = source.clone();
                if let Some(source) = source.as_object_mut() {
                    source.remove("target");
                }
                (name.clone(), source)
            })
            .collect()
    };
    about(one) == about(other)
}

fn compare(before: &Value, after: &Value, path: &str, lost: &mut Vec<Loss>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                let below = after.get(name).unwrap_or(&Value::Null);
                compare(value, below, &format!("{path}.{name}"), lost);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (index, value) in before.iter().enumerate() {
                let below = after.get(index).unwrap_or(&Value::Null);
                compare(value, below, &format!("{path}[{index}]"), lost);
            }
        }
        (Value::Array(before), Value::Null) if before.is_empty() => {}
        (before, after) if before == after => {}
        (before, _) => lost.push(Loss { field: path.to_owned(), value: before.clone() }),
    }
}
