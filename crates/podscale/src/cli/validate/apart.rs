//! Takes what cannot be read out of an object, so that the rest of it can be looked at: an API server stops at the
//! first value of a wrong type.

use podscale_apiserver::types::decode::Mismatch;
use serde_json::Value;

/// The most values that are taken out of one object.
const MOST: usize = 100;

/// What a check makes of an object without the values that it cannot read, if of anything, and which these are.
pub(super) fn checked<T>(
    object: &Value,
    check: impl Fn(&Value) -> Result<T, Mismatch>,
) -> (Option<T>, Vec<Mismatch>) {
    let mut object = object.clone();
    let mut mismatches: Vec<Mismatch> = Vec::new();
    loop {
        match check(&object) {
            Ok(checked) => return (Some(checked), mismatches),
            Err(mismatch) => {
                let removed = remove(&mut object, &mismatch.path);
                mismatches.push(mismatch);
                if !removed || mismatches.len() >= MOST {
                    return (None, mismatches);
                }
            }
        }
    }
}

/// Whether two paths are of the same field, or one is below the other.
pub(super) fn is_about(one: &str, other: &str) -> bool {
    let below = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    below(one, other) || below(other, one)
}

/// Takes out what is at a path; the keys of maps may have dots in them. Items of lists become null.
fn remove(value: &mut Value, path: &str) -> bool {
    let path = path.trim_start_matches('.');
    match value {
        Value::Object(fields) => {
            let is_next = |key: &&String| {
                let rest = path.strip_prefix(key.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            // The longest, since another key may be how this one begins.
            let Some(key) = fields.keys().filter(is_next).max_by_key(|key| key.len()).cloned()
            else {
                return false;
            };
            match path.get(key.len()..) {
                None | Some("") => fields.remove(&key).is_some(),
                Some(rest) => fields.get_mut(&key).is_some_and(|below| remove(below, rest)),
            }
        }
        Value::Array(items) => {
            let inside = path.strip_prefix('[').and_then(|path| path.split_once(']'));
            let Some((index, rest)) = inside else { return false };
            let item = index.parse::<usize>().ok().and_then(|index| items.get_mut(index));
            match (item, rest) {
                (Some(item), "") if !item.is_null() => {
                    *item = Value::Null;
                    true
                }
                (Some(item), rest) if !rest.is_empty() => remove(item, rest),
                _ => false,
            }
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_taken_out_by_their_paths() {
        for (path, expected) in [
            ("a", json!({"l": [{"x": 1}, 2], "m": {"k.a/b": 1, "k": 2}})),
            ("l[0].x", json!({"a": 0, "l": [{}, 2], "m": {"k.a/b": 1, "k": 2}})),
            ("l[1]", json!({"a": 0, "l": [{"x": 1}, null], "m": {"k.a/b": 1, "k": 2}})),
            ("m.k.a/b", json!({"a": 0, "l": [{"x": 1}, 2], "m": {"k": 2}})),
        ] {
            let mut object = json!({"a": 0, "l": [{"x": 1}, 2], "m": {"k.a/b": 1, "k": 2}});
            assert!(remove(&mut object, path), "{path}");
            assert_eq!(object, expected, "{path}");
        }
        for path in ["", "b", "l[7]", "l.x", "a.b"] {
            assert!(!remove(&mut json!({"a": 0, "l": [{"x": 1}]}), path), "{path}");
        }
    }

    #[test]
    fn fields_are_about_what_is_around_them() {
        for (one, other, expected) in [
            ("spec.a", "spec.a", true),
            ("spec.a.b", "spec.a", true),
            ("spec.a", "spec.a[1].b", true),
            ("spec.ab", "spec.a", false),
        ] {
            assert_eq!(is_about(one, other), expected, "{one} {other}");
        }
    }
}
