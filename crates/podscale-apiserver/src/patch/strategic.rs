//! Strategic merge patch: lists of built-in types merge by key, directives say what goes.

use serde_json::{Map, Value};

use crate::status::{ApiError, ApiResult};
use crate::types::{self, Strategy, Type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PRIMITIVES: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Applies a patch to an object of a built-in type.
pub(super) fn apply(ty: &Type, object: Value, patch: Map<String, Value>) -> ApiResult<Value> {
    let fields = match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    merge_map(Some(ty), fields, patch).map(Value::Object)
}

/// The type below a field, and how the field is patched.
fn below<'t>(ty: Option<&'t Type>, name: &str) -> (Option<&'t Type>, Strategy) {
    match ty {
        Some(Type::Optional(inner)) => below(Some(inner), name),
        Some(Type::Struct(id)) => types::kubernetes()
            .structure(*id)
            .and_then(|structure| structure.field(name))
            .map_or((None, Strategy::default()), |field| (Some(&field.ty), field.strategy)),
        Some(Type::Map(inner)) => (Some(inner), Strategy::default()),
        _ => (None, Strategy::default()),
    }
}

fn item_type(ty: Option<&Type>) -> Option<&Type> {
    match ty {
        Some(Type::Optional(inner)) => item_type(Some(inner)),
        Some(Type::List(inner)) => Some(inner),
        _ => None,
    }
}

fn merge_map(
    ty: Option<&Type>,
    mut fields: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> ApiResult<Map<String, Value>> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(Value::String(word)) => match word.as_str() {
            "replace" => return merge_map(ty, Map::new(), patch),
            "delete" => return Ok(Map::new()),
            "merge" => {}
            other => return Err(unknown_directive(other, &patch)),
        },
        Some(other) => return Err(unknown_directive(&other.to_string(), &patch)),
    }
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        let keys = keys.as_array().cloned().unwrap_or_default();
        fields.retain(|name, _| keys.iter().any(|key| key.as_str() == Some(name)));
    }
    let mut orders = Vec::new();
    let before = fields.clone();
    for (name, value) in patch {
        if let Some(name) = name.strip_prefix(DELETE_PRIMITIVES) {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(list) = fields.get_mut(name).and_then(Value::as_array_mut) {
                list.retain(|item| !gone.contains(item));
            }
        } else if let Some(name) = name.strip_prefix(ELEMENT_ORDER) {
            orders.push((name.to_owned(), value));
        } else {
            let (ty, strategy) = below(ty, &name);
            match merge_value(ty, strategy, fields.remove(&name), value)? {
                Value::Null => {}
                merged => {
                    fields.insert(name, merged);
                }
            }
        }
    }
    for (name, order) in orders {
        let (_, strategy) = below(ty, &name);
        if let (Some(list), Some(order)) =
            (fields.get_mut(&name).and_then(Value::as_array_mut), order.as_array())
        {
            let before = before.get(&name).and_then(Value::as_array);
            interleave(list, order, before.map_or(&[][..], Vec::as_slice), strategy.key);
        }
    }
    Ok(fields)
}

fn merge_value(
    ty: Option<&Type>,
    strategy: Strategy,
    old: Option<Value>,
    patch: Value,
) -> ApiResult<Value> {
    Ok(match (old, patch) {
        (_, Value::Null) => Value::Null,
        (old, Value::Object(patch)) => {
            let deleted = patch.get(DIRECTIVE).and_then(Value::as_str) == Some("delete");
            if deleted {
                return Ok(Value::Null);
            }
            let old = match old {
                Some(Value::Object(fields)) if !strategy.replace => fields,
                _ => Map::new(),
            };
            Value::Object(merge_map(ty, old, patch)?)
        }
        (old, Value::Array(items)) => {
            let old = match old {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            if strategy.merge {
                Value::Array(merge_list(item_type(ty), strategy.key, old, items)?)
            } else {
                let replaced = items.into_iter().filter(|item| !is_directive(item)).collect();
                Value::Array(replaced)
            }
        }
        (_, scalar) => scalar,
    })
}

fn is_directive(item: &Value) -> bool {
    item.as_object().is_some_and(|item| item.contains_key(DIRECTIVE))
}

fn merge_list(
    ty: Option<&Type>,
    key: Option<&str>,
    mut list: Vec<Value>,
    patch: Vec<Value>,
) -> ApiResult<Vec<Value>> {
    let replaces = |item: &Value| item.get(DIRECTIVE).and_then(Value::as_str) == Some("replace");
    if patch.iter().any(replaces) {
        return Ok(patch.into_iter().filter(|item| !replaces(item)).collect());
    }
    let (before, order) = (list.clone(), patch.clone());
    for item in patch {
        let (Some(key), Value::Object(mut item)) = (key, item.clone()) else {
            // Scalars form a set.
            if !list.contains(&item) {
                list.push(item);
            }
            continue;
        };
        let Some(id) = item.get(key).cloned() else {
            return Err(ApiError::unexplained(format!(
                "map: {} does not contain declared merge key: {key}",
                go_map(&item)
            )));
        };
        let at = list.iter().position(|old| old.get(key) == Some(&id));
        match item.get(DIRECTIVE).and_then(Value::as_str) {
            Some("delete") => list.retain(|old| old.get(key) != Some(&id)),
            Some("merge") | None => {
                item.remove(DIRECTIVE);
                match at.and_then(|at| list.get_mut(at)) {
                    Some(slot) => {
                        let old = match slot.take() {
                            Value::Object(fields) => fields,
                            _ => Map::new(),
                        };
                        *slot = Value::Object(merge_map(ty, old, item)?);
                    }
                    None => list.push(Value::Object(merge_map(ty, Map::new(), item)?)),
                }
            }
            Some(other) => {
                let word = other.to_owned();
                return Err(unknown_directive(&word, &item));
            }
        }
    }
    interleave(&mut list, &order, &before, key);
    Ok(list)
}

/// Puts the items that the patch lists into its order; each other item goes before the first listed
/// one that came after it on the server, or else to the end.
fn interleave(list: &mut Vec<Value>, order: &[Value], before: &[Value], key: Option<&str>) {
    let same = |item: &Value, other: &Value| match key {
        Some(key) => item.get(key).is_some() && item.get(key) == other.get(key),
        None => item == other,
    };
    let rank = |item: &Value, among: &[Value]| among.iter().position(|other| same(item, other));
    let (mut listed, others): (Vec<Value>, Vec<Value>) =
        list.drain(..).partition(|item| rank(item, order).is_some());
    listed.sort_by_key(|item| rank(item, order));
    let mut at = 0;
    for item in others {
        let own = rank(&item, before);
        let after = |other: &Value| matches!((own, rank(other, before)), (Some(own), Some(other)) if other > own);
        at = (at..listed.len())
            .find(|at| listed.get(*at).is_some_and(after))
            .unwrap_or(listed.len());
        listed.insert(at, item);
        at += 1;
    }
    *list = listed;
}

fn unknown_directive(word: &str, patch: &Map<String, Value>) -> ApiError {
    let mut shown = patch.clone();
    shown.insert(DIRECTIVE.to_owned(), Value::from(word));
    ApiError::unexplained(format!("unknown patch type: {word} in map: {}", go_map(&shown)))
}

fn go_map(map: &Map<String, Value>) -> String {
    let parts: Vec<String> = map
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}:{text}"),
            other => format!("{name}:{other}"),
        })
        .collect();
    format!("map[{}]", parts.join(" "))
}
