//! The functions of formulas.

use super::read::Reader;
use super::{ReadError, Value};
use podscale_core::model::{Binary, Part, Unary};

/// Reads the arguments of a function, whose first bracket was read, and what it makes of them.
pub(super) fn call(reader: &mut Reader<'_>, name: &str) -> Result<Value, ReadError> {
    match name {
        "count" | "all" | "any" | "one" | "none" | "map" => {
            let list = elements(reader, name)?;
            let found = if reader.take(",") {
                reader.closure(list)?
            } else if name == "count" {
                list
            } else {
                return Err(ReadError::UnknownFunction(name.to_owned()));
            };
            close(reader)?;
            of_list(name, found)
        }
        "sum" => {
            let mut list = elements(reader, name)?;
            if reader.take(",") {
                list = reader.closure(list)?;
            }
            close(reader)?;
            Ok(Value::Number(joined(Binary::Add, numbers(name, list)?, 0.0)))
        }
        _ => {
            let mut arguments = Vec::new();
            while !reader.take(")") {
                arguments.push(reader.expression()?);
                if !reader.take(",") {
                    close(reader)?;
                    break;
                }
            }
            plain(name, arguments)
        }
    }
}

fn close(reader: &mut Reader<'_>) -> Result<(), ReadError> {
    reader.need(")", "an operator, a comma or a )")
}

/// The list that a function takes first.
fn elements(reader: &mut Reader<'_>, name: &str) -> Result<Vec<Value>, ReadError> {
    match reader.expression()? {
        Value::List(list) => Ok(list),
        other => Err(other.mismatch(format!("what {name} takes"), "list")),
    }
}

fn numbers(name: &str, values: Vec<Value>) -> Result<Vec<Part>, ReadError> {
    values.into_iter().map(|value| value.number(format!("what {name} takes"))).collect()
}

/// A function of what a closure said of each element.
fn of_list(name: &str, found: Vec<Value>) -> Result<Value, ReadError> {
    if name == "map" {
        return Ok(Value::List(found));
    }
    let place = || format!("what {name} asks of each element");
    let truths: Result<Vec<Part>, ReadError> =
        found.into_iter().map(|value| value.truth(place())).collect();
    let truths = truths?;
    // Truths are one and zero.
    let compare = |function, truths, with| {
        let count = joined(Binary::Add, truths, 0.0);
        Value::Truth(Part::Binary(function, count.into(), Part::Number(with).into()))
    };
    Ok(match name {
        "count" => Value::Number(joined(Binary::Add, truths, 0.0)),
        "all" => Value::Truth(joined(Binary::And, truths, 1.0)),
        "any" => Value::Truth(joined(Binary::Or, truths, 0.0)),
        "one" => compare(Binary::Equal, truths, 1.0),
        _ => compare(Binary::Equal, truths, 0.0),
    })
}

/// The functions of numbers.
const PLAIN: [&str; 10] =
    ["max", "min", "mean", "len", "abs", "ceil", "floor", "round", "int", "float"];

/// A function of numbers, or of a list of them.
fn plain(name: &str, arguments: Vec<Value>) -> Result<Value, ReadError> {
    let unknown = || ReadError::UnknownFunction(name.to_owned());
    if !PLAIN.contains(&name) {
        return Err(unknown());
    }
    if let ("len", [Value::List(list)]) = (name, &*arguments) {
        return Ok(Value::Number(Part::Number(list.len() as f64)));
    }
    let flat = arguments.into_iter().flat_map(|argument| match argument {
        Value::List(list) if matches!(name, "max" | "min" | "mean") => list,
        other => vec![other],
    });
    let flat: Vec<Value> = flat.collect();
    let count = flat.len();
    let mut parts = numbers(name, flat)?;
    if parts.is_empty() {
        return Err(unknown());
    }
    let function = match name {
        "max" => return Ok(Value::Number(joined(Binary::Max, parts, 0.0))),
        "min" => return Ok(Value::Number(joined(Binary::Min, parts, 0.0))),
        "mean" => {
            let sum = joined(Binary::Add, parts, 0.0);
            let count = Part::Number(count as f64);
            return Ok(Value::Number(Part::Binary(Binary::Divide, sum.into(), count.into())));
        }
        "abs" => Some(Unary::Abs),
        "ceil" => Some(Unary::Ceil),
        "floor" => Some(Unary::Floor),
        "round" => Some(Unary::Round),
        "int" => Some(Unary::Truncate),
        "float" => None,
        _ => return Err(unknown()),
    };
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => Ok(Value::Number(match function {
            Some(function) => Part::Unary(function, only.into()),
            None => only,
        })),
        _ => Err(unknown()),
    }
}

/// One part of many, as a balanced tree, so that many do not nest deep; of none it is the given number.
fn joined(function: Binary, mut parts: Vec<Part>, of_none: f64) -> Part {
    while parts.len() > 1 {
        let mut pairs = parts.into_iter();
        let mut next = Vec::new();
        while let Some(first) = pairs.next() {
            next.push(match pairs.next() {
                Some(second) => Part::Binary(function, first.into(), second.into()),
                None => first,
            });
        }
        parts = next;
    }
    parts.pop().unwrap_or(Part::Number(of_none))
}
