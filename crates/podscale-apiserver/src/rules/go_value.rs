//! Values in messages that the real server prints from its internal Go types, which carry no names
//! for JSON: every field shows, in the type's order and with its name in Go.

use podscale_api::field_error::{BadValue, go_json};
use serde_json::Value;

use crate::types::{self, Structure, Type};

/// A value of the named structure as the real server shows it.
pub(crate) fn internal(name: &str, value: &Value) -> BadValue {
    let Some(ty) = types::kubernetes().find(name) else { return BadValue::json(value) };
    BadValue::verbatim(shown(&ty, Some(value)))
}

fn shown(ty: &Type, value: Option<&Value>) -> String {
    let value = value.filter(|value| !value.is_null());
    match (ty, value) {
        (Type::Struct(id), value) => match types::kubernetes().structure(*id) {
            Some(structure) => shown_structure(structure, value),
            None => "{}".to_owned(),
        },
        (Type::Optional(inner), Some(value)) => shown(inner, Some(value)),
        (Type::List(inner), Some(Value::Array(items))) => {
            let items: Vec<String> = items.iter().map(|item| shown(inner, Some(item))).collect();
            format!("[{}]", items.join(","))
        }
        (_, Some(value)) => go_json(value),
        (Type::Text(_), None) => "\"\"".to_owned(),
        (Type::Bool(_), None) => "false".to_owned(),
        (Type::Integer { .. } | Type::Float(_), None) => "0".to_owned(),
        (Type::Quantity, None) => "\"0\"".to_owned(),
        (_, None) => "null".to_owned(),
    }
}

fn shown_structure(structure: &Structure, value: Option<&Value>) -> String {
    // Types of the API machinery are shared by all versions, so they have names for JSON.
    let tagged = structure.name.starts_with("meta/");
    let fields: Vec<String> = structure
        .fields()
        .iter()
        .filter_map(|field| {
            let given = value.and_then(|value| value.get(field.name));
            if tagged && given.is_none() {
                return None;
            }
            if !tagged && field.name == "metadata" {
                // Embedded, so its fields are among the structure's own.
                let inner = shown(&field.ty, given);
                let inner = inner.strip_prefix('{')?.strip_suffix('}')?;
                return (!inner.is_empty()).then(|| inner.to_owned());
            }
            let name = if tagged { field.name.to_owned() } else { go_name(field.name) };
            Some(format!("\"{name}\":{}", shown(&field.ty, given)))
        })
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// Abbreviations are in capitals in Go.
const ABBREVIATIONS: [(&str, &str); 6] = [
    ("tty", "TTY"),
    ("dns", "DNS"),
    ("os", "OS"),
    ("fs", "FS"),
    ("seLinux", "SELinux"),
    ("ttl", "TTL"),
];

fn go_name(name: &str) -> String {
    if name == "serviceAccount" {
        return "DeprecatedServiceAccount".to_owned();
    }
    for (prefix, capitals) in ABBREVIATIONS {
        if let Some(rest) = name.strip_prefix(prefix)
            && rest.chars().next().is_none_or(|next| next.is_ascii_uppercase())
        {
            return format!("{capitals}{rest}");
        }
    }
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_shows_except_in_shared_types() {
        let spec = json!({"minAvailable": 1, "maxUnavailable": "50%", "selector": {"matchLabels": {"a": "b"}}});
        let expected = r#"{"MinAvailable":1,"Selector":{"matchLabels":{"a":"b"}},"MaxUnavailable":"50%","UnhealthyPodEvictionPolicy":null}"#;
        assert_eq!(
            internal("policy/v1.PodDisruptionBudgetSpec", &spec),
            BadValue::verbatim(expected)
        );
    }
}
