//! Expressions over the metrics of an autoscaler, in the Common Expression Language: read, checked and
//! turned into a formula of the core, which is small and cannot fail but for metrics without a value.
//!
//! Every number is a double, so that `queue / 10` needs no conversion; truths are only for conditions.
//!
//! | in an expression | is |
//! |---|---|
//! | `queue`, `queue.replicas` | the replicas that the metric named queue asks for |
//! | `queue.value` | what it measured, in the unit of its target: percent for a utilization |
//! | `queue.ratio` | what it measured, divided by its target |
//! | `has(queue.value)` | whether it has a usable value |
//! | `currentReplicas` | the current size of the target |
//! | `max(a, b, …)`, `min(…)`, `math.greatest(…)`, `math.least(…)` | the largest, the smallest |
//! | `ceil(a)`, `floor(a)`, `round(a)`, `abs(a)`, each also with `math.` before it | a number, rounded or without its sign |
//! | `+ - * / %`, `== != < <= > >=`, `&& \|\| !`, `a ? b : c` | as in the language |
//!
//! The result is rounded up. One that is not finite, or that needs a metric without a usable value,
//! leaves the size as it is.

use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, Expr, IdedExpr, LiteralValue, SelectExpr};
use cel::parser::Parser;
use podscale_core::model::{Binary, Fact, Formula, FormulaError, MAX_DEPTH, Part, Unary};
use std::fmt::{self, Display, Formatter};

/// No expression is longer than this many bytes.
pub const MAX_LENGTH: usize = 2000;
/// How expressions call the current size of the target.
pub const CURRENT_REPLICAS: &str = "currentReplicas";

/// Why an expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// It is longer than allowed.
    #[error("the expression has {0} bytes, at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// It is not an expression of the language.
    #[error("the expression cannot be read: line {line}, column {column}: {message}")]
    Syntax {
        /// The line, from one.
        line: isize,
        /// The column, from one.
        column: isize,
        /// What is wrong there.
        message: String,
    },
    /// No metric has this name.
    #[error("unknown metric {name:?}; {known}")]
    UnknownMetric {
        /// The name.
        name: String,
        /// Which names there are.
        known: String,
    },
    /// Two metrics have this name, or it means something else.
    #[error("{0:?} is the name of more than one thing")]
    AmbiguousMetric(String),
    /// Metrics say nothing of this name.
    #[error("a metric has no {0:?}, only value, ratio and replicas")]
    UnknownFact(String),
    /// No function has this name and so many arguments.
    #[error("there is no function {name} of {arguments} arguments")]
    UnknownFunction {
        /// The name.
        name: String,
        /// How many arguments it was given.
        arguments: usize,
    },
    /// A part is a number where a truth is needed, or the other way round.
    #[error("{place} must be a {expected}, not a {found}")]
    Type {
        /// Which part.
        place: String,
        /// What it must be.
        expected: Kind,
        /// What it is.
        found: Kind,
    },
    /// Something of the language that no formula has.
    #[error("{0} cannot be used here")]
    Unsupported(&'static str),
    /// It is too large.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

/// What a part of an expression is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A double.
    Number,
    /// A bool.
    Truth,
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Number => "number",
            Kind::Truth => "bool",
        })
    }
}

/// Reads an expression over metrics with these names, given in the order of the spec.
///
/// # Errors
/// It is not an expression, uses what is not there, or does not give a number.
pub fn parse(text: &str, names: &[Option<&str>]) -> Result<Formula, ExpressionError> {
    if text.len() > MAX_LENGTH {
        return Err(ExpressionError::TooLong(text.len()));
    }
    let parsed = Parser::new().parse(text).map_err(|errors| {
        let first = errors.errors.into_iter().next();
        let (line, column) = first.as_ref().map_or((1, 1), |error| error.pos);
        let message = first.map_or_else(String::new, |error| error.msg);
        ExpressionError::Syntax { line, column, message }
    })?;
    let (part, kind) = Reader { names }.part(&parsed, 0)?;
    expect("the expression", kind, Kind::Number)?;
    Ok(Formula::new(text, part)?)
}

fn expect(place: impl Into<String>, found: Kind, expected: Kind) -> Result<(), ExpressionError> {
    if found == expected {
        Ok(())
    } else {
        Err(ExpressionError::Type { place: place.into(), expected, found })
    }
}

type Read = Result<(Part, Kind), ExpressionError>;

struct Reader<'a> {
    names: &'a [Option<&'a str>],
}

impl Reader<'_> {
    fn part(&self, expression: &IdedExpr, depth: usize) -> Read {
        if depth > MAX_DEPTH {
            return Err(FormulaError::TooDeep.into());
        }
        match &expression.expr {
            Expr::Literal(literal) => literal_part(literal),
            Expr::Ident(name) if name == CURRENT_REPLICAS && self.find(name).is_none() => {
                Ok((Part::CurrentReplicas, Kind::Number))
            }
            Expr::Ident(name) => {
                let metric = self.metric(name)?;
                Ok((Part::Metric { metric, fact: Fact::Replicas }, Kind::Number))
            }
            Expr::Select(select) => self.selected(select),
            Expr::Call(call) => self.called(call, depth),
            Expr::List(_) => Err(ExpressionError::Unsupported("a list")),
            Expr::Map(_) => Err(ExpressionError::Unsupported("a map")),
            Expr::Struct(_) => Err(ExpressionError::Unsupported("a message")),
            Expr::Comprehension(_) => Err(ExpressionError::Unsupported("a comprehension")),
            Expr::Unspecified => Err(ExpressionError::Unsupported("an empty expression")),
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == Some(name))
    }

    fn metric(&self, name: &str) -> Result<u32, ExpressionError> {
        let known = self.names.iter().filter(|known| **known == Some(name)).count();
        match self.find(name).and_then(|place| u32::try_from(place).ok()) {
            Some(_) if known > 1 || name == CURRENT_REPLICAS => {
                Err(ExpressionError::AmbiguousMetric(name.to_owned()))
            }
            Some(place) => Ok(place),
            None => {
                Err(ExpressionError::UnknownMetric { name: name.to_owned(), known: self.known() })
            }
        }
    }

    fn known(&self) -> String {
        let names: Vec<&str> = self.names.iter().flatten().copied().collect();
        match names.as_slice() {
            [] => "no metric has a name".to_owned(),
            names => format!("known are {}", names.join(", ")),
        }
    }

    fn selected(&self, select: &SelectExpr) -> Read {
        let Expr::Ident(name) = &select.operand.expr else {
            return Err(ExpressionError::Unsupported("a field of something that is no metric"));
        };
        let metric = self.metric(name)?;
        let fact = match select.field.as_str() {
            "value" => Fact::Value,
            "ratio" => Fact::Ratio,
            "replicas" => Fact::Replicas,
            other => return Err(ExpressionError::UnknownFact(other.to_owned())),
        };
        Ok(if select.test {
            (Part::Has { metric }, Kind::Truth)
        } else {
            (Part::Metric { metric, fact }, Kind::Number)
        })
    }

    fn called(&self, call: &CallExpr, depth: usize) -> Read {
        let name = function_name(call)?;
        let below = |argument| self.part(argument, depth + 1);
        let arguments = call.args.iter().map(below).collect::<Result<Vec<_>, _>>()?;
        let unknown =
            || ExpressionError::UnknownFunction { name: name.clone(), arguments: call.args.len() };
        if let Some(function) = extreme(&name) {
            return fold(function, &name, arguments).ok_or_else(unknown)?;
        }
        let arguments = <[(Part, Kind); 3]>::try_from(arguments);
        let arguments = match arguments {
            Ok([condition, yes, no]) if name == op::CONDITIONAL => {
                expect("what comes before ?", condition.1, Kind::Truth)?;
                expect("what comes after :", no.1, yes.1)?;
                let (a, b, c) = (condition.0.into(), yes.0.into(), no.0.into());
                return Ok((Part::If(a, b, c), yes.1));
            }
            Ok(_) => return Err(unknown()),
            Err(arguments) => arguments,
        };
        let mut arguments = arguments.into_iter();
        match (arguments.next(), arguments.next(), arguments.next()) {
            (Some(a), None, _) if name == "double" || name == "math.double" => {
                expect("what double takes", a.1, Kind::Number)?;
                Ok(a)
            }
            (Some(a), None, _) => {
                let (function, kind) = unary(&name).ok_or_else(unknown)?;
                expect(format!("what {name} takes"), a.1, kind)?;
                Ok((Part::Unary(function, a.0.into()), kind))
            }
            (Some(a), Some(b), None) => two(&name, a, b).ok_or_else(unknown)?,
            _ => Err(unknown()),
        }
    }
}

/// The name of a function, with `math.` before it where it has that.
fn function_name(call: &CallExpr) -> Result<String, ExpressionError> {
    match call.target.as_deref().map(|target| &target.expr) {
        None => Ok(call.func_name.clone()),
        Some(Expr::Ident(name)) if name == "math" => Ok(format!("math.{}", call.func_name)),
        Some(_) => Err(ExpressionError::Unsupported("a method")),
    }
}

fn literal_part(literal: &LiteralValue) -> Read {
    let number = |number: f64| Ok((Part::Number(number), Kind::Number));
    match literal {
        LiteralValue::Double(value) => number(*value.inner()),
        LiteralValue::Int(value) => number(*value.inner() as f64),
        LiteralValue::UInt(value) => number(*value.inner() as f64),
        LiteralValue::Boolean(value) => {
            Ok((Part::Number(f64::from(u8::from(*value.inner()))), Kind::Truth))
        }
        LiteralValue::String(_) => Err(ExpressionError::Unsupported("a string")),
        LiteralValue::Bytes(_) => Err(ExpressionError::Unsupported("a string of bytes")),
        LiteralValue::Null => Err(ExpressionError::Unsupported("null")),
    }
}

/// The functions that take any number of arguments.
fn extreme(name: &str) -> Option<Binary> {
    match name {
        "max" | "math.greatest" => Some(Binary::Max),
        "min" | "math.least" => Some(Binary::Min),
        _ => None,
    }
}

/// One extreme of many; `None` if there are none. The tree is balanced, so that many do not nest deep.
fn fold(function: Binary, name: &str, arguments: Vec<(Part, Kind)>) -> Option<Read> {
    let mut parts = Vec::with_capacity(arguments.len());
    for (part, kind) in arguments {
        if let Err(error) = expect(format!("what {name} takes"), kind, Kind::Number) {
            return Some(Err(error));
        }
        parts.push(part);
    }
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
    Some(Ok((parts.pop()?, Kind::Number)))
}

fn unary(name: &str) -> Option<(Unary, Kind)> {
    Some(match name {
        op::NEGATE => (Unary::Negate, Kind::Number),
        op::LOGICAL_NOT => (Unary::Not, Kind::Truth),
        "ceil" | "math.ceil" => (Unary::Ceil, Kind::Number),
        "floor" | "math.floor" => (Unary::Floor, Kind::Number),
        "round" | "math.round" => (Unary::Round, Kind::Number),
        "abs" | "math.abs" => (Unary::Abs, Kind::Number),
        _ => return None,
    })
}

fn two(name: &str, a: (Part, Kind), b: (Part, Kind)) -> Option<Read> {
    use Kind::{Number, Truth};
    let (function, takes, gives) = match name {
        op::ADD => (Binary::Add, Number, Number),
        op::SUBSTRACT => (Binary::Subtract, Number, Number),
        op::MULTIPLY => (Binary::Multiply, Number, Number),
        op::DIVIDE => (Binary::Divide, Number, Number),
        op::MODULO => (Binary::Remainder, Number, Number),
        op::LESS => (Binary::Less, Number, Truth),
        op::LESS_EQUALS => (Binary::LessOrEqual, Number, Truth),
        op::GREATER => (Binary::Greater, Number, Truth),
        op::GREATER_EQUALS => (Binary::GreaterOrEqual, Number, Truth),
        op::LOGICAL_AND => (Binary::And, Truth, Truth),
        op::LOGICAL_OR => (Binary::Or, Truth, Truth),
        // Both sides are of one kind, whichever.
        op::EQUALS => (Binary::Equal, a.1, Truth),
        op::NOT_EQUALS => (Binary::NotEqual, a.1, Truth),
        _ => return None,
    };
    let place = || format!("each side of {}", name.trim_matches('_'));
    let fits = expect(place(), a.1, takes).and_then(|()| expect(place(), b.1, takes));
    Some(fits.map(|()| (Part::Binary(function, a.0.into(), b.0.into()), gives)))
}

#[cfg(test)]
mod tests;
