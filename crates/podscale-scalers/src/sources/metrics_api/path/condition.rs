//! Conditions on elements of a list, `#(size>5)`, as GJSON compares.

use super::Path;
use serde_json::Value;

/// What an element must meet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    /// Something is there.
    Exists,
    /// What is there compares with a text, which is a number where it is compared with one.
    Is(Operator, String),
    /// What is there counts as something, or not.
    Like(Operator, Ish),
}

/// How something is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
}

/// What something may count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ish {
    There,
    Null,
    True,
    False,
}

/// The longer ones first.
const OPERATORS: [(&str, Operator); 9] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!%", Operator::NotLike),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("%", Operator::Like),
];

impl Condition {
    /// What is compared, and with what.
    ///
    /// # Errors
    /// The path is one that cannot be used.
    pub(super) fn parse(condition: &str, nested: usize) -> Result<(Path, Condition), String> {
        let found = condition.char_indices().find_map(|(at, _)| {
            let of = |(text, operator): &(&str, Operator)| {
                condition[at..].starts_with(text).then_some((at, text.len(), *operator))
            };
            OPERATORS.iter().find_map(of)
        });
        let Some((at, length, operator)) = found else {
            return Ok((Path::parse_within(condition.trim(), nested)?, Condition::Exists));
        };
        let wanted = condition[at + length..].trim();
        let path = Path::parse_within(condition[..at].trim(), nested)?;
        if let Some(ish) = wanted.strip_prefix('~') {
            let ish = match ish {
                "*" => Ish::There,
                "null" => Ish::Null,
                "true" => Ish::True,
                "false" => Ish::False,
                _ => return Err(format!("after ~ comes *, null, true or false, not {ish:?}")),
            };
            return Ok((path, Condition::Like(operator, ish)));
        }
        // What is no text in quotes is one without.
        let wanted = serde_json::from_str::<String>(wanted).unwrap_or_else(|_| wanted.to_owned());
        Ok((path, Condition::Is(operator, wanted)))
    }

    /// Whether what was found meets it.
    pub(super) fn meets(&self, found: Option<&Value>) -> bool {
        match (self, found) {
            (Condition::Like(operator, ish), found) => of_bool(*operator, ish.is(found), "true"),
            (_, None) => false,
            (Condition::Exists, Some(_)) => true,
            (Condition::Is(operator, wanted), Some(found)) => match found {
                Value::String(found) => of_text(*operator, found, wanted),
                Value::Number(found) => {
                    let wanted = wanted.parse().unwrap_or(0.0);
                    of_number(*operator, found.as_f64().unwrap_or(0.0), wanted)
                }
                Value::Bool(found) => of_bool(*operator, *found, wanted),
                Value::Null | Value::Array(_) | Value::Object(_) => false,
            },
        }
    }
}

impl Ish {
    fn is(self, found: Option<&Value>) -> bool {
        let number = |number: &serde_json::Number| number.as_f64().unwrap_or(0.0) != 0.0;
        let text = |text: &str| match text.to_lowercase().as_str() {
            "1" | "t" | "true" => Some(true),
            "0" | "f" | "false" => Some(false),
            _ => None,
        };
        match (self, found) {
            (Ish::There, found) => found.is_some(),
            (Ish::Null | Ish::False, None | Some(Value::Null)) => true,
            (Ish::Null, Some(_)) | (Ish::True, None | Some(Value::Null)) => false,
            (Ish::True, Some(Value::Bool(found))) => *found,
            (Ish::False, Some(Value::Bool(found))) => !*found,
            (Ish::True, Some(Value::Number(found))) => number(found),
            (Ish::False, Some(Value::Number(found))) => !number(found),
            (Ish::True, Some(Value::String(found))) => text(found) == Some(true),
            (Ish::False, Some(Value::String(found))) => text(found) == Some(false),
            (Ish::True | Ish::False, Some(Value::Array(_) | Value::Object(_))) => false,
        }
    }
}

fn of_text(operator: Operator, found: &str, wanted: &str) -> bool {
    match operator {
        Operator::Equal => found == wanted,
        Operator::NotEqual => found != wanted,
        Operator::Less => found < wanted,
        Operator::LessOrEqual => found <= wanted,
        Operator::Greater => found > wanted,
        Operator::GreaterOrEqual => found >= wanted,
        Operator::Like => is_like(found, &pattern(wanted)),
        Operator::NotLike => !is_like(found, &pattern(wanted)),
    }
}

fn of_number(operator: Operator, found: f64, wanted: f64) -> bool {
    match operator {
        Operator::Equal => found == wanted,
        Operator::NotEqual => found != wanted,
        Operator::Less => found < wanted,
        Operator::LessOrEqual => found <= wanted,
        Operator::Greater => found > wanted,
        Operator::GreaterOrEqual => found >= wanted,
        Operator::Like | Operator::NotLike => false,
    }
}

fn of_bool(operator: Operator, found: bool, wanted: &str) -> bool {
    let (same, other) = if found { ("true", "false") } else { ("false", "true") };
    match operator {
        Operator::Equal => wanted == same,
        Operator::NotEqual => wanted != same,
        Operator::Greater => found && wanted == other,
        Operator::GreaterOrEqual => found,
        Operator::Less => !found && wanted == other,
        Operator::LessOrEqual => !found,
        Operator::Like | Operator::NotLike => false,
    }
}

fn pattern(text: &str) -> Vec<(char, bool)> {
    text.chars().map(|found| (found, matches!(found, '*' | '?'))).collect()
}

/// Whether a text matches a pattern, whose wild characters are marked. Goes back to the last star only, so it
/// takes no longer than both lengths multiplied.
pub(super) fn is_like(text: &str, pattern: &[(char, bool)]) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(seen) {
            Some(('*', true)) => {
                star = Some((seen, at));
                seen += 1;
            }
            Some((wanted, wild)) if *wild || *wanted == text[at] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((place, began)) = star else { return false };
                star = Some((place, began + 1));
                (seen, at) = (place + 1, began + 1);
            }
        }
    }
    pattern[seen..].iter().all(|wild| *wild == ('*', true))
}
