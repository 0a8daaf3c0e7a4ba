//! Comparing, merging and pruning objects along their shape.

use serde_json::{Map, Value};

use super::FieldSet;
use super::shape::{Division, Shape, item_step};

/// What differs between two versions of an object.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    /// Fields that are new or have another value.
    pub changed: FieldSet,
    /// Fields that are gone.
    pub removed: FieldSet,
}

/// Compares two versions of an object.
pub(super) fn compare(shape: Shape<'_>, old: &Value, new: &Value) -> Comparison {
    let mut found = Comparison::default();
    walk(shape, Some(old), Some(new), &mut found.changed, &mut found.removed, true);
    found
}

fn walk(
    shape: Shape<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    changed: &mut FieldSet,
    removed: &mut FieldSet,
    root: bool,
) {
    let given = |value: &Option<&Value>| value.is_some_and(|value| !value.is_null());
    let sample = Some(new).filter(given).or(Some(old).filter(given)).flatten();
    let division = sample.map_or(Division::Whole, |sample| shape.division(sample));
    // A null is there, but has nothing in it.
    let divided = match &division {
        Division::Whole => false,
        Division::Map => {
            [old, new].into_iter().flatten().all(|value| value.is_object() || value.is_null())
        }
        Division::Items(_) | Division::Set => {
            [old, new].into_iter().flatten().all(|value| value.is_array() || value.is_null())
        }
    };
    if !root {
        match (old, new) {
            (None, Some(_)) => changed.member = true,
            (Some(_), None) => removed.member = true,
            (old, new) if !divided && old != new => changed.member = true,
            _ => {}
        }
    }
    if !divided || old == new {
        return;
    }
    let below = match division {
        Division::Map => pair_fields(shape, old, new),
        _ => pair_items(shape, &division, old, new),
    };
    for (step, shape, old, new) in below {
        let (mut below_changed, mut below_removed) = (FieldSet::default(), FieldSet::default());
        walk(shape, old, new, &mut below_changed, &mut below_removed, false);
        for (set, below) in [(&mut *changed, below_changed), (&mut *removed, below_removed)] {
            if !below.is_empty() {
                set.child(&step).add(&below);
            }
        }
    }
}

type Pair<'s, 'v> = (String, Shape<'s>, Option<&'v Value>, Option<&'v Value>);

fn pair_fields<'s, 'v>(
    shape: Shape<'s>,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
) -> Vec<Pair<'s, 'v>> {
    let empty = Map::new();
    let fields = |value: Option<&'v Value>| value.and_then(Value::as_object);
    let (old, new) = (fields(old), fields(new));
    let names = old.unwrap_or(&empty).keys();
    let names = names.chain(
        new.unwrap_or(&empty)
            .keys()
            .filter(|name| !old.is_some_and(|old| old.contains_key(name.as_str()))),
    );
    names
        .map(|name| {
            let of =
                |object: Option<&'v Map<String, Value>>| object.and_then(|object| object.get(name));
            (format!("f:{name}"), shape.field(name), of(old), of(new))
        })
        .collect()
}

fn pair_items<'s, 'v>(
    shape: Shape<'s>,
    division: &Division,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
) -> Vec<Pair<'s, 'v>> {
    let item = shape.item();
    let (old, new) = (keyed(&item, division, old), keyed(&item, division, new));
    let mut pairs: Vec<Pair<'s, 'v>> = old
        .iter()
        .map(|(step, old)| {
            let new = new.iter().find(|(other, _)| other == step).map(|(_, value)| *value);
            (step.clone(), item, Some(*old), new)
        })
        .collect();
    for (step, value) in &new {
        if !old.iter().any(|(other, _)| other == step) {
            pairs.push((step.clone(), item, None, Some(value)));
        }
    }
    pairs
}

fn keyed<'v>(
    item: &Shape<'_>,
    division: &Division,
    list: Option<&'v Value>,
) -> Vec<(String, &'v Value)> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|value| Some((item_step(item, division, value)?, value))).collect()
}

/// The fields that an applied configuration names.
pub(super) fn fields_of(shape: Shape<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(shape, value, &mut set);
    set.member = false;
    set
}

fn collect(shape: Shape<'_>, value: &Value, set: &mut FieldSet) {
    let division = shape.division(value);
    match (&division, value) {
        (Division::Map, Value::Object(fields)) if !fields.is_empty() => {
            for (name, field) in fields {
                collect(shape.field(name), field, set.child(&format!("f:{name}")));
            }
        }
        (Division::Items(_) | Division::Set, Value::Array(items)) if !items.is_empty() => {
            let below = shape.item();
            for item in items {
                if let Some(step) = item_step(&below, &division, item) {
                    let child = set.child(&step);
                    child.member = true;
                    if matches!(division, Division::Items(_)) {
                        collect(below, item, child);
                    }
                }
            }
        }
        _ => set.member = true,
    }
}

/// Lays an applied configuration over the live object.
pub(super) fn merge(shape: Shape<'_>, live: Value, applied: &Value) -> Value {
    let division = shape.division(applied);
    match (&division, live, applied) {
        (Division::Map, Value::Object(mut live), Value::Object(applied)) => {
            for (name, value) in applied {
                let merged = match live.remove(name) {
                    Some(old) => merge(shape.field(name), old, value),
                    None => value.clone(),
                };
                live.insert(name.clone(), merged);
            }
            Value::Object(live)
        }
        (Division::Items(_) | Division::Set, Value::Array(live), Value::Array(applied)) => {
            Value::Array(merge_items(shape.item(), &division, live, applied))
        }
        (_, _, applied) => applied.clone(),
    }
}

fn merge_items(
    item: Shape<'_>,
    division: &Division,
    live: Vec<Value>,
    applied: &[Value],
) -> Vec<Value> {
    let step = |value: &Value| item_step(&item, division, value);
    let wanted: Vec<Option<String>> = applied.iter().map(step).collect();
    let mut result: Vec<Value> = Vec::with_capacity(live.len().max(applied.len()));
    let mut next = 0;
    for old in live {
        let key = step(&old);
        let at = wanted.iter().position(|other| other.is_some() && *other == key);
        match at {
            // Items only in the live list stay where they are.
            None => result.push(old),
            Some(at) => {
                // What is applied before this item comes before it.
                while next < at {
                    if let (Some(value), Some(key)) = (applied.get(next), wanted.get(next))
                        && !result.iter().any(|done| step(done) == *key)
                    {
                        result.push(value.clone());
                    }
                    next += 1;
                }
                let Some(value) = applied.get(at) else { continue };
                match result.iter().position(|done| step(done) == key) {
                    Some(done) => {
                        if let Some(slot) = result.get_mut(done) {
                            *slot = merge(item, old, value);
                        }
                    }
                    None => result.push(merge(item, old, value)),
                }
                next = next.max(at + 1);
            }
        }
    }
    for (value, key) in applied.iter().zip(&wanted).skip(next) {
        if !result.iter().any(|done| step(done) == *key) {
            result.push(value.clone());
        }
    }
    result
}

/// Takes out of the object what is in `gone`; items of lists stay while someone else owns a part.
pub(super) fn remove(shape: Shape<'_>, value: &mut Value, gone: &FieldSet, kept: &FieldSet) {
    let division = shape.division(value);
    let nothing = FieldSet::default();
    match (&division, value) {
        (Division::Map, Value::Object(fields)) => {
            for (step, below) in &gone.children {
                let Some(name) = step.strip_prefix("f:") else { continue };
                let kept = kept.children.get(step).unwrap_or(&nothing);
                let Some(field) = fields.get_mut(name) else { continue };
                remove(shape.field(name), field, below, kept);
                let emptied = match field {
                    Value::Object(left) => left.is_empty(),
                    Value::Array(left) => left.is_empty(),
                    _ => false,
                };
                if kept.is_empty() && (below.member || emptied) {
                    fields.remove(name);
                }
            }
        }
        (Division::Items(_) | Division::Set, Value::Array(items)) => {
            let item_shape = shape.item();
            items.retain_mut(|item| {
                let Some(step) = item_step(&item_shape, &division, item) else { return true };
                let Some(below) = gone.children.get(&step) else { return true };
                let kept = kept.children.get(&step).unwrap_or(&nothing);
                if below.member && kept.is_empty() {
                    return false;
                }
                remove(item_shape, item, below, kept);
                true
            });
        }
        _ => {}
    }
}
