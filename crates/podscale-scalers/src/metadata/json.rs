//! Numbers and switches are read as JSON, and what is none is refused in the words of Go's JSON reader, as
//! people know them from KEDA.

use serde_json::Value;

/// The types of fields, by Go's names for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Float,
    Integer,
    Bool,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Float => "float64",
            Type::Integer => "int64",
            Type::Bool => "bool",
        }
    }
}

/// Reads a value of a type.
///
/// # Errors
/// The text is none.
pub(super) fn read(text: &str, wanted: Type) -> Result<Value, String> {
    let value = serde_json::from_str::<Value>(text);
    let problem = match value {
        Ok(Value::Number(n)) if wanted == Type::Float && n.as_f64().is_some_and(f64::is_finite) => {
            return Ok(Value::Number(n));
        }
        Ok(Value::Number(n)) if wanted == Type::Integer && n.as_i64().is_some() => {
            return Ok(Value::Number(n));
        }
        Ok(Value::Bool(b)) if wanted == Type::Bool => return Ok(Value::Bool(b)),
        Ok(Value::Null) => return Ok(Value::Null),
        Ok(other) => mismatch(&other, text, wanted),
        // A number that no float can hold is one nevertheless.
        Err(_) if is_number(text) => mismatch_text(&format!("number {text}"), wanted),
        Err(_) => syntax(text),
    };
    Err(format!("unable to unmarshal to field type {}: {problem}", wanted.name()))
}

fn mismatch(value: &Value, text: &str, wanted: Type) -> String {
    let what = match value {
        Value::Number(_) if wanted == Type::Bool => "number".to_owned(),
        Value::Number(_) => format!("number {text}"),
        Value::String(_) => "string".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Null => "null".to_owned(),
    };
    mismatch_text(&what, wanted)
}

fn mismatch_text(what: &str, wanted: Type) -> String {
    format!("json: cannot unmarshal {what} into Go value of type {}", wanted.name())
}

/// Whether all of it is one number.
fn is_number(text: &str) -> bool {
    !text.is_empty() && number_end(text) == Ok(text.len())
}

/// Where the number at the beginning ends, or the character that breaks it off and where it stands.
fn number_end(text: &str) -> Result<usize, (usize, &'static str)> {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let some_digits = |at: usize, place: &'static str| match digits(at) {
        end if end > at => Ok(end),
        _ => Err((at, place)),
    };
    let mut at = usize::from(text.starts_with('-'));
    at = match bytes.get(at) {
        Some(b'0') => at + 1,
        _ => some_digits(at, "in numeric literal")?,
    };
    if bytes.get(at) == Some(&b'.') {
        at = some_digits(at + 1, "after decimal point in numeric literal")?;
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        at += 1;
        at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
        at = some_digits(at, "in exponent of numeric literal")?;
    }
    Ok(at)
}

/// What is wrong with a text that is no JSON.
fn syntax(text: &str) -> String {
    let stops = |at: usize, place: &str| match text[at..].chars().next() {
        Some(character) => format!("invalid character {} {place}", quoted(character)),
        None => "unexpected end of JSON input".to_owned(),
    };
    match text.bytes().next() {
        Some(b'-' | b'0'..=b'9') => match number_end(text) {
            Ok(end) => stops(end, "after top-level value"),
            Err((at, place)) => stops(at, place),
        },
        Some(b't') => literal(text, "true"),
        Some(b'f') => literal(text, "false"),
        Some(b'n') => literal(text, "null"),
        Some(b'{' | b'[' | b'"') => "unexpected end of JSON input".to_owned(),
        _ => stops(0, "looking for beginning of value"),
    }
}

/// What is wrong with a text that begins like a word of JSON.
fn literal(text: &str, word: &str) -> String {
    let mut expected = word.chars();
    for found in text.chars() {
        match expected.next() {
            Some(wanted) if wanted == found => {}
            Some(wanted) => {
                let found = quoted(found);
                return format!(
                    "invalid character {found} in literal {word} (expecting '{wanted}')"
                );
            }
            None => return format!("invalid character {} after top-level value", quoted(found)),
        }
    }
    "unexpected end of JSON input".to_owned()
}

fn quoted(character: char) -> String {
    match character {
        '\'' => r"'\''".to_owned(),
        '"' => "'\"'".to_owned(),
        other => format!("'{}'", other.escape_debug()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_refused_in_the_words_of_go() {
        use Type::{Bool, Float, Integer};
        for (text, wanted, expected) in [
            ("5", Float, "5"),
            ("-0.5e3", Float, "-500.0"),
            ("12", Integer, "12"),
            ("true", Bool, "true"),
            ("null", Float, "null"),
            ("ten", Float, "float64: invalid character 'e' in literal true (expecting 'r')"),
            ("yes", Bool, "bool: invalid character 'y' looking for beginning of value"),
            ("True", Bool, "bool: invalid character 'T' looking for beginning of value"),
            ("5x", Float, "float64: invalid character 'x' after top-level value"),
            ("05", Integer, "int64: invalid character '5' after top-level value"),
            ("5.", Float, "float64: unexpected end of JSON input"),
            ("-x", Float, "float64: invalid character 'x' in numeric literal"),
            ("1.x", Float, "float64: invalid character 'x' after decimal point in numeric literal"),
            ("1ex", Float, "float64: invalid character 'x' in exponent of numeric literal"),
            (
                "5.5",
                Integer,
                "int64: json: cannot unmarshal number 5.5 into Go value of type int64",
            ),
            (
                "1e999",
                Float,
                "float64: json: cannot unmarshal number 1e999 into Go value of type float64",
            ),
            (
                "\"5\"",
                Float,
                "float64: json: cannot unmarshal string into Go value of type float64",
            ),
            ("1", Bool, "bool: json: cannot unmarshal number into Go value of type bool"),
            ("", Float, "float64: unexpected end of JSON input"),
            ("tru", Bool, "bool: unexpected end of JSON input"),
        ] {
            let found = match read(text, wanted) {
                Ok(value) => value.to_string(),
                Err(problem) => problem.replace("unable to unmarshal to field type ", ""),
            };
            assert_eq!(found, expected, "{text}");
        }
    }
}
