//! The JSONPath that printer columns use: fields, indexes, slices, wildcards and filters.

use std::cmp::Ordering;

use serde_json::Value;
use thiserror::Error;

/// Why a path cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unrecognized JSONPath {path:?}: {reason} at byte {position}")]
pub struct ParseError {
    path: String,
    position: usize,
    reason: &'static str,
}

/// A path into an object.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    /// Every value below, at any depth.
    Descend,
    Wildcard,
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: usize,
    },
    Index(i64),
    Filter(Box<Filter>),
}

#[derive(Debug, Clone, PartialEq)]
struct Filter {
    left: Operand,
    comparison: Option<(Comparison, Operand)>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Filters may hold paths with filters; deeper than this is refused.
const MAX_DEPTH: usize = 8;

impl JsonPath {
    /// Reads a path such as `.status.conditions[?(@.type=="Ready")].status`.
    pub fn parse(path: &str) -> Result<Self, ParseError> {
        let mut parser = Parser { text: path, position: 0 };
        let steps = parser.steps(0)?;
        if parser.position < path.len() {
            return Err(parser.error("unexpected character"));
        }
        Ok(Self { steps })
    }

    /// All values that the path leads to; none where the object's shape does not fit the path.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![value];
        for step in &self.steps {
            match step.apply(&found) {
                Some(next) => found = next,
                None => return Vec::new(),
            }
        }
        found
    }
}

impl Step {
    /// None where Kubernetes reports an error (indexing what is no list, an index out of bounds).
    fn apply<'a>(&self, values: &[&'a Value]) -> Option<Vec<&'a Value>> {
        let mut found = Vec::new();
        for value in values.iter().copied() {
            match self {
                Self::Field(name) => found.extend(value.get(name.as_str())),
                Self::Descend => descend(value, &mut found),
                Self::Wildcard => match value {
                    Value::Array(items) => found.extend(items),
                    Value::Object(fields) => found.extend(fields.values()),
                    _ => {}
                },
                Self::Index(_) | Self::Slice { .. } if value.is_null() => {}
                Self::Index(index) => {
                    let items = value.as_array()?;
                    found.push(items.get(position(*index, items.len())?)?);
                }
                Self::Slice { start, end, step } => {
                    let items = value.as_array()?;
                    let start = position(start.unwrap_or(0), items.len())?;
                    let end = match end {
                        Some(end) => position(*end, items.len())?,
                        None => items.len(),
                    };
                    if start != end {
                        found.extend(items.get(start..end)?.iter().step_by(*step));
                    }
                }
                Self::Filter(filter) => {
                    found.extend(value.as_array()?.iter().filter(|item| filter.passes(item)));
                }
            }
        }
        Some(found)
    }
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    match value {
        Value::Array(items) => items.iter().for_each(|item| descend(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| descend(field, found)),
        _ => {}
    }
}

/// An index counted from the end where it is negative.
fn position(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

impl Filter {
    fn passes(&self, item: &Value) -> bool {
        let left = self.left.values(item);
        let Some((comparison, right)) = &self.comparison else { return !left.is_empty() };
        let right = right.values(item);
        let ([left], [right]) = (left.as_slice(), right.as_slice()) else { return false };
        comparison.holds(left, right)
    }
}

impl Operand {
    fn values<'a>(&'a self, item: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Path(path) => path.find(item),
            Self::Literal(value) => vec![value],
        }
    }
}

impl Comparison {
    fn holds(self, left: &Value, right: &Value) -> bool {
        let ordering = match (left, right) {
            (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
            (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
            (Value::Number(left), Value::Number(right)) => {
                left.as_f64().zip(right.as_f64()).and_then(|(left, right)| left.partial_cmp(&right))
            }
            _ => None,
        };
        let Some(ordering) = ordering else { return false };
        match self {
            Self::Equal => ordering == Ordering::Equal,
            Self::NotEqual => ordering != Ordering::Equal,
            Self::Less => ordering == Ordering::Less,
            Self::LessOrEqual => ordering != Ordering::Greater,
            Self::Greater => ordering == Ordering::Greater,
            Self::GreaterOrEqual => ordering != Ordering::Less,
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str, reason: &'static str) -> Result<(), ParseError> {
        if self.eat(token) { Ok(()) } else { Err(self.error(reason)) }
    }

    fn spaces(&mut self) {
        self.position += self.rest().len() - self.rest().trim_start().len();
    }

    fn error(&self, reason: &'static str) -> ParseError {
        ParseError { path: self.text.to_owned(), position: self.position, reason }
    }

    fn steps(&mut self, depth: usize) -> Result<Vec<Step>, ParseError> {
        if depth > MAX_DEPTH {
            return Err(self.error("filters nested too deeply"));
        }
        let mut steps = Vec::new();
        loop {
            if self.eat("..") {
                steps.push(Step::Descend);
                if !self.rest().starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.eat(".") {
                // A lone dot stands for the object itself.
                if !self.rest().is_empty() && !self.rest().starts_with('[') {
                    steps.push(self.field()?);
                }
            } else if self.eat("[") {
                steps.push(self.bracket(depth)?);
            } else {
                return Ok(steps);
            }
        }
    }

    fn field(&mut self) -> Result<Step, ParseError> {
        if self.eat("*") {
            return Ok(Step::Wildcard);
        }
        let mut name = String::new();
        let mut characters = self.rest().char_indices();
        let mut length = self.rest().len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
                '.' | '[' | ']' | ')' | ' ' | '=' | '!' | '<' | '>' | '@' | '{' | '}' | '*' => {
                    length = at;
                    break;
                }
                _ => name.push(character),
            }
        }
        if name.is_empty() {
            return Err(self.error("field name expected"));
        }
        self.position += length;
        Ok(Step::Field(name))
    }

    fn bracket(&mut self, depth: usize) -> Result<Step, ParseError> {
        if self.eat("?(") {
            let filter = self.filter(depth)?;
            self.expect(")]", "`)]` expected")?;
            return Ok(Step::Filter(Box::new(filter)));
        }
        if self.eat("*") {
            self.expect("]", "`]` expected")?;
            return Ok(Step::Wildcard);
        }
        if self.rest().starts_with(['\'', '"']) {
            let name = self.quoted()?;
            self.expect("]", "`]` expected")?;
            return Ok(Step::Field(name));
        }
        let inside = self.rest().split(']').next().unwrap_or_default();
        let parts: Vec<&str> = inside.split(':').map(str::trim).collect();
        let step = self.slice(&parts)?;
        self.position += inside.len();
        self.expect("]", "`]` expected")?;
        Ok(step)
    }

    fn slice(&self, parts: &[&str]) -> Result<Step, ParseError> {
        let number = |text: &str| match text {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).map_err(|_| self.error("array index expected")),
        };
        match parts {
            [index] => {
                number(index)?.map(Step::Index).ok_or_else(|| self.error("array index expected"))
            }
            [start, end] => Ok(Step::Slice { start: number(start)?, end: number(end)?, step: 1 }),
            [start, end, step] => {
                let step = usize::try_from(number(step)?.unwrap_or(1)).unwrap_or_default();
                if step == 0 {
                    return Err(self.error("step must be > 0"));
                }
                Ok(Step::Slice { start: number(start)?, end: number(end)?, step })
            }
            _ => Err(self.error("array index expected")),
        }
    }

    fn quoted(&mut self) -> Result<String, ParseError> {
        let mut characters = self.rest().char_indices();
        let quote = characters.next().map(|(_, quote)| quote);
        let mut text = String::new();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                _ if Some(character) == quote => {
                    self.position += at + 1;
                    return Ok(text);
                }
                _ => text.push(character),
            }
        }
        Err(self.error("unterminated quoted string"))
    }

    fn filter(&mut self, depth: usize) -> Result<Filter, ParseError> {
        let left = self.operand(depth)?;
        self.spaces();
        let comparisons = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let comparison = comparisons.into_iter().find(|(token, _)| self.eat(token));
        let comparison = match comparison {
            Some((_, comparison)) => Some((comparison, self.operand(depth)?)),
            None => None,
        };
        self.spaces();
        Ok(Filter { left, comparison })
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, ParseError> {
        self.spaces();
        if self.eat("@") {
            return Ok(Operand::Path(JsonPath { steps: self.steps(depth + 1)? }));
        }
        if self.rest().starts_with(['\'', '"']) {
            return Ok(Operand::Literal(Value::String(self.quoted()?)));
        }
        let end = self.rest().find([')', ' ', '=', '!', '<', '>']).unwrap_or(self.rest().len());
        let word = self.rest().get(..end).unwrap_or_default();
        match serde_json::from_str(word) {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => {
                self.position += end;
                Ok(Operand::Literal(value))
            }
            _ => Err(self.error("value expected")),
        }
    }
}

#[cfg(test)]
mod tests;
