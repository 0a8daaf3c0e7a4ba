//! The functions that templates may call: those of Go that only compute.

use super::TemplateError;
use super::value::Value;
use podscale_api::quote::quote;
use std::cmp::Ordering;
use std::fmt::Write;
use std::rc::Rc;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    And,
    Or,
    Not,
    Index,
    Slice,
    Len,
    Print,
    Println,
    Printf,
    Compare(Comparison),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

const FUNCTIONS: [(&str, Function); 15] = [
    ("and", Function::And),
    ("or", Function::Or),
    ("not", Function::Not),
    ("index", Function::Index),
    ("slice", Function::Slice),
    ("len", Function::Len),
    ("print", Function::Print),
    ("println", Function::Println),
    ("printf", Function::Printf),
    ("eq", Function::Compare(Comparison::Eq)),
    ("ne", Function::Compare(Comparison::Ne)),
    ("lt", Function::Compare(Comparison::Lt)),
    ("le", Function::Compare(Comparison::Le)),
    ("gt", Function::Compare(Comparison::Gt)),
    ("ge", Function::Compare(Comparison::Ge)),
];

/// Functions of Go's that have no place in a query.
const UNSUPPORTED: [&str; 4] = ["call", "html", "js", "urlquery"];

impl Function {
    /// The function of a name, or why there is none.
    pub(super) fn find(name: &str) -> Result<Function, String> {
        if let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            return Ok(*function);
        }
        if UNSUPPORTED.contains(&name) {
            return Err(format!("the function {name} is not supported in rules"));
        }
        let names: Vec<&str> = FUNCTIONS.iter().map(|(known, _)| *known).collect();
        Err(format!("there is no function {name}; there are {}", names.join(", ")))
    }

    /// What the function gives.
    pub(super) fn call(self, arguments: &[Value]) -> Result<Value, TemplateError> {
        match (self, arguments) {
            (Function::And, [_, ..]) => Ok(pick(arguments, |value| !value.is_true())),
            (Function::Or, [_, ..]) => Ok(pick(arguments, Value::is_true)),
            (Function::Not, [value]) => Ok(Value::Bool(!value.is_true())),
            (Function::Index, [value, keys @ ..]) => {
                keys.iter().try_fold(value.clone(), |value, key| index(&value, key))
            }
            (Function::Slice, [value, bounds @ ..]) if bounds.len() <= 2 => slice(value, bounds),
            (Function::Len, [value]) => length(value),
            (Function::Print, values) => Ok(Value::text(&print(values))),
            (Function::Println, values) => {
                let words: Vec<String> = values.iter().map(Value::to_string).collect();
                Ok(Value::text(&format!("{}\n", words.join(" "))))
            }
            (Function::Printf, [Value::Text(format), values @ ..]) => printf(format, values),
            (Function::Compare(comparison), [first, others @ ..]) if !others.is_empty() => {
                compare(comparison, first, others)
            }
            (function, _) => Err(wrong(function)),
        }
    }
}

fn wrong(function: Function) -> TemplateError {
    let name = FUNCTIONS.iter().find(|(_, known)| *known == function).map_or("", |(name, _)| name);
    TemplateError::of(format!("{name} has the wrong number or kinds of arguments"))
}

/// The first that is as it should be, or the last.
fn pick(values: &[Value], is: impl Fn(&Value) -> bool) -> Value {
    let found = values.iter().find(|value| is(value)).or(values.last());
    found.cloned().unwrap_or(Value::Missing)
}

fn index(value: &Value, key: &Value) -> Result<Value, TemplateError> {
    match (value, key) {
        // Of a map with texts, Go gives empty text for a key that is not there.
        (Value::Map(map), Value::Text(key)) => {
            Ok(Value::Text(map.get(key).cloned().unwrap_or_else(|| "".into())))
        }
        (Value::List(list), Value::Number(place)) => {
            let found = usize::try_from(*place).ok().and_then(|place| list.get(place));
            found.cloned().map(Value::Text).ok_or_else(|| {
                TemplateError::of(format!("index {place} is outside a list of {}", list.len()))
            })
        }
        (value, key) => {
            let (value, key) = (value.kind(), key.kind());
            Err(TemplateError::of(format!("index finds nothing in {value} by {key}")))
        }
    }
}

fn slice(value: &Value, bounds: &[Value]) -> Result<Value, TemplateError> {
    let bound = |place: usize, otherwise: usize| match bounds.get(place) {
        None => Ok(otherwise),
        Some(Value::Number(bound)) => usize::try_from(*bound).map_err(|_| wrong(Function::Slice)),
        Some(_) => Err(wrong(Function::Slice)),
    };
    let outside = || TemplateError::of("slice goes outside of its value");
    match value {
        Value::Text(text) => {
            let part = text.get(bound(0, 0)?..bound(1, text.len())?).ok_or_else(outside)?;
            Ok(Value::text(part))
        }
        Value::List(list) => {
            let part = list.get(bound(0, 0)?..bound(1, list.len())?).ok_or_else(outside)?;
            Ok(Value::List(part.into()))
        }
        _ => Err(wrong(Function::Slice)),
    }
}

fn length(value: &Value) -> Result<Value, TemplateError> {
    let length = match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        _ => return Err(wrong(Function::Len)),
    };
    Ok(Value::Number(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// As Go: a space between two values of which neither is text.
fn print(values: &[Value]) -> String {
    let mut out = String::new();
    let mut after_text = true;
    for (place, value) in values.iter().enumerate() {
        let is_text = matches!(value, Value::Text(_));
        if place > 0 && !is_text && !after_text {
            out.push(' ');
        }
        after_text = is_text;
        // Writing into memory does not fail.
        let _ = write!(out, "{value}");
    }
    out
}

fn printf(format: &Rc<str>, values: &[Value]) -> Result<Value, TemplateError> {
    let mut out = String::new();
    let mut values = values.iter();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let verb = chars.next().unwrap_or_default();
        if verb == '%' {
            out.push('%');
            continue;
        }
        let value = values.next().ok_or_else(|| {
            TemplateError::of(format!("printf {} has too few values", quote(format)))
        })?;
        match (verb, value) {
            ('v', value) => out.push_str(&value.to_string()),
            ('s', value @ (Value::Text(_) | Value::List(_) | Value::Map(_))) => {
                out.push_str(&value.to_string());
            }
            ('q', Value::Text(text)) => out.push_str(&quote(text)),
            ('d', Value::Number(number)) => out.push_str(&number.to_string()),
            ('t', Value::Bool(value)) => out.push_str(&value.to_string()),
            (verb, value) => {
                let kind = value.kind();
                let problem = format!(
                    "printf supports %s, %q, %v, %d and %t with fitting values, not %{verb} with {kind}"
                );
                return Err(TemplateError::of(problem));
            }
        }
    }
    if values.next().is_some() {
        return Err(TemplateError::of(format!("printf {} has too many values", quote(format))));
    }
    Ok(Value::text(&out))
}

/// Equal to any of the others; every other comparison is with one.
fn compare(
    comparison: Comparison,
    first: &Value,
    others: &[Value],
) -> Result<Value, TemplateError> {
    let order = |other: &Value| match (first, other) {
        (Value::Number(a), Value::Number(b)) => Ok(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Ok(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (a, b) => {
            let (a, b) = (a.kind(), b.kind());
            Err(TemplateError::of(format!("{a} cannot be compared with {b}")))
        }
    };
    let mut equal = false;
    for other in others {
        equal |= order(other)? == Ordering::Equal;
    }
    let holds = match (comparison, others) {
        (Comparison::Eq, _) => equal,
        (Comparison::Ne, [_]) => !equal,
        (Comparison::Lt, [other]) => order(other)?.is_lt(),
        (Comparison::Le, [other]) => order(other)?.is_le(),
        (Comparison::Gt, [other]) => order(other)?.is_gt(),
        (Comparison::Ge, [other]) => order(other)?.is_ge(),
        (other, _) => return Err(wrong(Function::Compare(other))),
    };
    Ok(Value::Bool(holds))
}
