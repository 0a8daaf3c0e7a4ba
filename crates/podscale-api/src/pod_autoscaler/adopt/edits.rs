//! What was changed in a PodAutoscaler since it took the place of an HPA.

use super::{AdoptError, replacement, restored};
use crate::pod_autoscaler::default::default_spec;
use crate::pod_autoscaler::fields::SPEC;
use crate::pod_autoscaler::schema::Object;
use crate::pod_autoscaler::{PodAutoscaler, PodAutoscalerSpec};
use serde_json::{Map, Value};
use std::fmt::{self, Display, Formatter};

/// The longest value that is shown.
const LONGEST_SHOWN: usize = 60;

/// A field that is not as it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// Which one.
    pub field: String,
    /// What it was, if it was there.
    pub was: Option<Value>,
    /// What it is, if it is there.
    pub is: Option<Value>,
}

impl Display for Edit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let short = |value: &Value| {
            let text = value.to_string();
            (text.len() <= LONGEST_SHOWN).then_some(text)
        };
        let field = &self.field;
        match (&self.was, &self.is) {
            (None, Some(is)) => match short(is) {
                Some(is) => write!(f, "{field}: {is} was added"),
                None => write!(f, "{field} was added"),
            },
            (Some(was), Some(is)) => match (short(was), short(is)) {
                (Some(was), Some(is)) => write!(f, "{field}: {was} became {is}"),
                _ => write!(f, "{field} was changed"),
            },
            (_, None) => write!(f, "{field} was removed"),
        }
    }
}

/// The fields of a PodAutoscaler's spec, and its labels, that are not as they were when it took the place
/// of its HPA.
///
/// # Errors
/// It has taken no HPA's place.
pub fn edits(pa: &PodAutoscaler) -> Result<Vec<Edit>, AdoptError> {
    let before = replacement(&restored(pa)?)?;
    let mut edits = Vec::new();
    compare("spec", &whole(&before.spec)?, &whole(&pa.spec)?, &mut edits);
    let labels = |pa: &PodAutoscaler| serde_json::to_value(&pa.metadata.labels);
    compare("metadata.labels", &labels(&before)?, &labels(pa)?, &mut edits);
    Ok(edits)
}

/// A spec with all defaults, as an API server stores it.
fn whole(spec: &PodAutoscalerSpec) -> Result<Value, AdoptError> {
    let mut spec = spec.clone();
    default_spec(&mut spec);
    let mut value = serde_json::to_value(&spec)?;
    fill_in(&SPEC, &mut value);
    Ok(value)
}

fn fill_in(object: &'static Object, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(object, item)),
        Value::Object(given) => {
            for field in object.fields {
                if let (false, Some(default)) =
                    (given.contains_key(field.name), field.default_value())
                {
                    given.insert(field.name.to_owned(), default);
                }
                if let (Some(inner), Some(value)) =
                    (field.shape.object(), given.get_mut(field.name))
                {
                    fill_in(inner, value);
                }
            }
        }
        _ => {}
    }
}

fn compare(field: &str, was: &Value, is: &Value, edits: &mut Vec<Edit>) {
    match (was, is) {
        _ if was == is => {}
        (Value::Object(was), Value::Object(is)) => compare_fields(field, was, is, edits),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (place, (was, is)) in a.iter().zip(b).enumerate() {
                compare(&format!("{field}[{place}]"), was, is, edits);
            }
        }
        (was, is) => {
            let present = |value: &Value| (!value.is_null()).then(|| value.clone());
            edits.push(Edit { field: field.to_owned(), was: present(was), is: present(is) });
        }
    }
}

fn compare_fields(
    field: &str,
    was: &Map<String, Value>,
    is: &Map<String, Value>,
    edits: &mut Vec<Edit>,
) {
    let added = is.keys().filter(|name| !was.contains_key(*name));
    for name in was.keys().chain(added) {
        let of = |fields: &Map<String, Value>| fields.get(name).cloned().unwrap_or_default();
        compare(&format!("{field}.{name}"), &of(was), &of(is), edits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_somebody_changed_is_an_edit() {
        let hpa = json!({"metadata": {"name": "web", "namespace": "shop", "labels": {"a": "b"}},
            "spec": {"maxReplicas": 5, "metrics": [{"type": "Resource", "resource":
                    {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 30}},
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
        let hpa = serde_json::from_value(hpa).expect("an HPA");
        let pa = replacement(&hpa).expect("adopted");
        assert_eq!(edits(&pa).expect("adopted"), [], "as it was");
        let mut stored = pa.clone();
        // As an API server stores it.
        stored.spec = serde_json::from_value(whole(&pa.spec).expect("JSON")).expect("a spec");
        assert_ne!(stored.spec, pa.spec);
        assert_eq!(edits(&stored).expect("adopted"), [], "defaults are nobody's edits");
        let change = |place: &str, value: Value| {
            let mut object = serde_json::to_value(&stored).expect("JSON");
            let (parent, name) = place.rsplit_once('/').expect("a place");
            let parent = object.pointer_mut(parent).expect("it is there").as_object_mut();
            let parent = parent.expect("an object");
            match value {
                Value::Null => drop(parent.remove(name)),
                value => drop(parent.insert(name.to_owned(), value)),
            }
            let changed: PodAutoscaler = serde_json::from_value(object).expect("an object");
            let edits = edits(&changed).expect("adopted");
            edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        let long =
            json!([{"name": "night", "start": "0 22 * * *", "duration": "8h", "maxReplicas": 2}]);
        for (place, value, expected) in [
            ("/spec/maxReplicas", json!(9), "spec.maxReplicas: 5 became 9"),
            ("/spec/syncPeriod", json!("5s"), "spec.syncPeriod: \"5s\" was added"),
            ("/spec/schedules", long, "spec.schedules was added"),
            (
                "/spec/metrics/0/resource/target/averageUtilization",
                json!(60),
                "spec.metrics[0].resource.target.averageUtilization: 50 became 60",
            ),
            ("/spec/behavior", Value::Null, "spec.behavior was removed"),
            ("/metadata/labels/a", json!("c"), "metadata.labels.a: \"b\" became \"c\""),
        ] {
            assert_eq!(change(place, value), expected);
        }
    }
}
