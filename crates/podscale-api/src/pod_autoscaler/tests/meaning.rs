//! Every field means something: the model changes with it.

use super::*;
use crate::pod_autoscaler::schema::Field;
use crate::pod_autoscaler::validate::check;
use podscale_core::Autoscaler;
use std::collections::BTreeSet;

/// A spec that uses everything.
fn full() -> Value {
    serde_json::from_str(include_str!("full.json")).expect("JSON")
}

fn object(spec: &Value) -> PodAutoscaler {
    let object =
        json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec});
    serde_json::from_value(object).expect("an autoscaler")
}

fn model(spec: &Value) -> Autoscaler {
    translate::pod_autoscaler::autoscaler(&object(spec), &[])
}

/// A field of an object, and where it stands.
type Place = (&'static Object, &'static Field, String);

/// Every place at which a field of the description stands in a value.
fn places(value: &Value, shape: &Shape, pointer: &str, found: &mut Vec<Place>) {
    match (value, shape) {
        (Value::Array(items), Shape::List(_, item) | Shape::Named(_, _, item)) => {
            for (index, value) in items.iter().enumerate() {
                places(value, item, &format!("{pointer}/{index}"), found);
            }
        }
        (Value::Object(fields), Shape::Object(object)) => {
            for field in object.fields {
                let Some(value) = fields.get(field.name) else { continue };
                let pointer = format!("{pointer}/{}", field.name);
                places(value, &field.shape, &pointer, found);
                found.push((object, field, pointer));
            }
        }
        _ => {}
    }
}

/// Two values of a field that mean different things.
fn two_values(field: &Field) -> Option<[Value; 2]> {
    let texts = |one: &str, other: &str| Some([json!(one), json!(other)]);
    match (field.name, &field.shape) {
        ("start" | "end", _) => texts("5 8 * * *", "6 8 * * *"),
        ("timeZone", _) => texts("UTC", "Europe/Zurich"),
        ("expression", _) => texts("cpu", "cpu + 1"),
        ("server", _) => texts("http://a", "http://b"),
        ("apiVersion", _) => texts("a/v1", "b/v1"),
        ("metric", Shape::Pattern(..)) => texts("cpu", "rps"),
        ("length" | "arrivals", _) => texts("queue", "hits"),
        (_, Shape::Text(_) | Shape::Pattern(..)) => texts("aa", "bb"),
        (_, Shape::OneOf(words)) => texts(words[0], words[1]),
        (_, Shape::Integer(..)) => Some([json!(12), json!(13)]),
        (_, Shape::Quantity | Shape::PositiveQuantity) => texts("1", "2"),
        (_, Shape::ReplicasOr(words)) => Some([json!(words[1]), json!({"replicas": 3})]),
        (_, Shape::Duration) => texts("70s", "80s"),
        (_, Shape::Time) => texts("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        (_, Shape::Truth) => Some([json!(true), json!(false)]),
        (_, Shape::Labels | Shape::Texts) => Some([json!({"a": "b"}), json!({"a": "c"})]),
        (_, Shape::List(_, Shape::Text(_))) => Some([json!(["a"]), json!(["b"])]),
        // Their fields mean something.
        (_, Shape::List(..) | Shape::Named(..) | Shape::Object(_)) => None,
        (_, Shape::Long) => None,
    }
}

#[test]
fn the_model_changes_with_every_field() {
    let full = full();
    assert_eq!(check(&object(&full)), [], "the sample itself is right");
    let mut found = Vec::new();
    places(&full, &Shape::Object(&SPEC), "", &mut found);
    let (mut meant, mut present) = (BTreeSet::new(), BTreeSet::new());
    for (object, field, pointer) in &found {
        present.insert((object.name, field.name));
        let Some(values) = two_values(field) else {
            meant.insert((object.name, field.name));
            continue;
        };
        let [one, other] = values.map(|value| {
            let mut changed = full.clone();
            *changed.pointer_mut(pointer).expect("it is there") = value;
            model(&changed)
        });
        if one != other {
            meant.insert((object.name, field.name));
        }
    }
    // How often an object is decided is for the controller, which asks the object itself.
    meant.insert((SPEC.name, "syncPeriod"));
    // What an event source is asked, and with what, is for whoever asks it.
    meant.extend(all(&SPEC).into_iter().filter(|(object, field)| {
        ["TriggerSource", "AuthenticationRef"].contains(object) && *field != "type"
    }));
    // A profile says what is not given, and here everything is.
    meant.insert((SPEC.name, "profile"));
    let ignored: Vec<_> = present.difference(&meant).collect();
    assert!(ignored.is_empty(), "fields without a meaning: {ignored:?}");
    let missing: Vec<_> = all(&SPEC).difference(&present).copied().collect();
    assert!(missing.is_empty(), "fields that the sample does not use: {missing:?}");
}

pub(super) fn all(object: &'static Object) -> BTreeSet<(&'static str, &'static str)> {
    let mut names = BTreeSet::new();
    for field in object.fields {
        names.insert((object.name, field.name));
        names.extend(field.shape.object().map(all).into_iter().flatten());
    }
    names
}

/// Whatever an object says, it is read or refused, and what is read has a model and a list of errors.
#[test]
fn no_change_of_an_object_is_too_much() {
    let odd = [
        json!(null),
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(1.5),
        json!(""),
        json!("x y"),
        json!("-3"),
        json!("9999999999999999999999h"),
        json!(true),
        json!([]),
        json!({}),
        json!([{}]),
    ];
    let full = full();
    let mut found = Vec::new();
    places(&full, &Shape::Object(&SPEC), "", &mut found);
    let (mut read, mut refused, mut wrong) = (0, 0, 0);
    for (_, _, pointer) in &found {
        for value in &odd {
            let mut spec = full.clone();
            *spec.pointer_mut(pointer).expect("it is there") = value.clone();
            let object =
                json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u"}, "spec": spec});
            let Ok(pa) = serde_json::from_value::<PodAutoscaler>(object) else {
                refused += 1;
                continue;
            };
            read += 1;
            let errors = check(&pa);
            wrong += i32::from(!errors.is_empty());
            assert!(errors.iter().all(|error| error.field.starts_with("spec")), "{errors:?}");
            let _ = translate::pod_autoscaler::autoscaler(&pa, &[]);
        }
    }
    assert!(
        read > 500 && refused > 300 && wrong > 300,
        "{read} read, {refused} refused, {wrong} wrong"
    );
}
