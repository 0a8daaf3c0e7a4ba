//! Formulas over triggers, in the part of the expr language that makes numbers of numbers: read, checked
//! and turned into a formula of the core. Lists are written out when the formula is read, so that what is
//! left has no loops.
//!
//! | in a formula | is |
//! |---|---|
//! | `queue` | the value of the trigger named queue |
//! | `a ?? b` | a, or b if a is a trigger without a value |
//! | `[a, b, …]` | a list |
//! | `max`, `min`, `sum`, `mean` | of the numbers or the list in brackets |
//! | `abs`, `ceil`, `floor`, `round`, `int`, `float` | of one number |
//! | `len(list)`, `count(list, {# > 1})` | how many elements there are, or hold |
//! | `all`, `any`, `one`, `none` | whether so many elements hold |
//! | `map(list, {# * 2})`, `sum(list, {# * 2})` | each element made another, then added up |
//! | `+ - * / % ** ^`, `== != < <= > >=`, `&& and \|\| or ! not`, `a ? b : c`, `true`, `false` | as in the language |

mod call;
mod read;
#[cfg(test)]
mod tests;

use super::trigger::Trigger;
use podscale_core::model::{Binary, Fact, Formula, FormulaError, Part, Unary};

/// No formula is longer than this many bytes.
pub const MAX_LENGTH: usize = 4096;

/// Why a formula is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is longer than allowed.
    #[error("the formula has {0} bytes, at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// Something else was expected.
    #[error("{found} at byte {at} is not {expected}")]
    Unexpected {
        /// Where it is.
        at: usize,
        /// What is there.
        found: String,
        /// What could be there.
        expected: &'static str,
    },
    /// No trigger has this name.
    #[error("unknown name {0}")]
    UnknownName(String),
    /// There is no such function, or it takes something else.
    #[error("there is no function {0} that takes these arguments")]
    UnknownFunction(String),
    /// A part is of another type than its place needs.
    #[error("{place} must be a {expected}, not a {found}")]
    Type {
        /// Which part.
        place: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// It is too large.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

/// The names of triggers that a formula may use, each with its place among the triggers that are not
/// metrics of pods.
#[must_use]
pub fn names(triggers: &[Trigger]) -> Vec<&str> {
    let external = triggers.iter().filter(|trigger| !trigger.is_resource());
    external.map(|trigger| &*trigger.name).collect()
}

/// Reads a formula over triggers with these names, empty ones having none.
///
/// # Errors
/// It is not a formula, uses what is not there, or does not give a number.
pub fn parse(text: &str, names: &[&str]) -> Result<Formula, ReadError> {
    if text.len() > MAX_LENGTH {
        return Err(ReadError::TooLong(text.len()));
    }
    let whole = read::read(text, names)?;
    Ok(Formula::new(text, whole.number("the formula")?)?)
}

/// What a part of a formula is.
#[derive(Clone)]
enum Value {
    Number(Part),
    Truth(Part),
    List(Vec<Value>),
}

impl Value {
    fn type_name(&self) -> &'static str {
        match self {
            Value::Number(_) => "number",
            Value::Truth(_) => "bool",
            Value::List(_) => "list",
        }
    }

    fn mismatch(&self, place: impl Into<String>, expected: &'static str) -> ReadError {
        ReadError::Type { place: place.into(), expected, found: self.type_name() }
    }

    fn number(self, place: impl Into<String>) -> Result<Part, ReadError> {
        match self {
            Value::Number(part) => Ok(part),
            other => Err(other.mismatch(place, "number")),
        }
    }

    fn truth(self, place: impl Into<String>) -> Result<Part, ReadError> {
        match self {
            Value::Truth(part) => Ok(part),
            other => Err(other.mismatch(place, "bool")),
        }
    }
}

/// The value of a name.
fn named(name: &str, names: &[&str]) -> Result<Value, ReadError> {
    let metric = names.iter().position(|known| *known == name && !name.is_empty());
    match (name, metric) {
        ("true", _) => Ok(Value::Truth(Part::Number(1.0))),
        ("false", _) => Ok(Value::Truth(Part::Number(0.0))),
        (_, Some(metric)) => {
            Ok(Value::Number(Part::Metric { metric: metric as u32, fact: Fact::Total }))
        }
        (_, None) => Err(ReadError::UnknownName(name.to_owned())),
    }
}

/// What an operator makes of its two sides.
fn binary(operator: &str, a: Value, b: Value) -> Result<Value, ReadError> {
    let place = || format!("each side of {operator}");
    let both = |function, a: Part, b: Part| Part::Binary(function, a.into(), b.into());
    let arithmetic = match operator {
        "+" => Some(Binary::Add),
        "-" => Some(Binary::Subtract),
        "*" => Some(Binary::Multiply),
        "/" => Some(Binary::Divide),
        "%" => Some(Binary::Remainder),
        "**" | "^" => Some(Binary::Power),
        _ => None,
    };
    if let Some(function) = arithmetic {
        return Ok(Value::Number(both(function, a.number(place())?, b.number(place())?)));
    }
    let logic = match operator {
        "&&" | "and" => Some(Binary::And),
        "||" | "or" => Some(Binary::Or),
        _ => None,
    };
    if let Some(function) = logic {
        return Ok(Value::Truth(both(function, a.truth(place())?, b.truth(place())?)));
    }
    let comparison = match operator {
        "<" => Binary::Less,
        "<=" => Binary::LessOrEqual,
        ">" => Binary::Greater,
        ">=" => Binary::GreaterOrEqual,
        "==" => Binary::Equal,
        _ => Binary::NotEqual,
    };
    match (comparison, a, b) {
        // Both sides are of one type, whichever.
        (Binary::Equal | Binary::NotEqual, Value::Truth(a), Value::Truth(b)) => {
            Ok(Value::Truth(both(comparison, a, b)))
        }
        (_, a, b) => Ok(Value::Truth(both(comparison, a.number(place())?, b.number(place())?))),
    }
}

/// What stands in for a trigger without a value.
fn otherwise(a: Value, b: Value) -> Result<Value, ReadError> {
    let (a, b) = (a.number("each side of ??")?, b.number("each side of ??")?);
    Ok(Value::Number(replace_missing(a, b)))
}

/// A part that needs one trigger, or one of several, has no value if none of them has.
fn replace_missing(a: Part, b: Part) -> Part {
    match a {
        Part::Metric { metric, fact } => {
            let a = Part::Metric { metric, fact };
            Part::If(Part::Has { metric }.into(), a.into(), b.into())
        }
        // What was made by another ?? already.
        Part::If(condition, yes, no) if matches!(*condition, Part::Has { .. }) => {
            Part::If(condition, yes, replace_missing(*no, b).into())
        }
        // Anything else always has a value, or fails as a whole.
        other => other,
    }
}

/// What an operator makes of what follows it.
fn unary(operator: &str, a: Value) -> Result<Value, ReadError> {
    let place = format!("what {operator} takes");
    Ok(match operator {
        "-" => Value::Number(Part::Unary(Unary::Negate, a.number(place)?.into())),
        "+" => Value::Number(a.number(place)?),
        _ => Value::Truth(Part::Unary(Unary::Not, a.truth(place)?.into())),
    })
}

/// One of two values, by a condition.
fn choice(condition: Value, yes: Value, no: Value) -> Result<Value, ReadError> {
    let condition = condition.truth("what comes before ?")?;
    match (yes, no) {
        (Value::Number(yes), Value::Number(no)) => {
            Ok(Value::Number(Part::If(condition.into(), yes.into(), no.into())))
        }
        (Value::Truth(yes), Value::Truth(no)) => {
            Ok(Value::Truth(Part::If(condition.into(), yes.into(), no.into())))
        }
        (Value::Truth(_), other) => Err(other.mismatch("what comes after :", "bool")),
        (Value::Number(_), other) => Err(other.mismatch("what comes after :", "number")),
        (other, _) => Err(other.mismatch("what comes after ?", "number")),
    }
}
