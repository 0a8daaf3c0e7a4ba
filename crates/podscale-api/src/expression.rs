//! Expressions over the metrics of an autoscaler, in a part of the Common Expression Language: read,
//! checked and turned into a formula of the core, which is small and cannot fail but for metrics
//! without a value.
//!
//! Every number is a double, so that `queue / 10` needs no conversion; truths are only for conditions.
//!
//! | in an expression | is |
//! |---|---|
//! | `queue`, `queue.replicas` | the replicas that the metric named queue asks for |
//! | `queue.value` | what it measured, in the unit of its target: percent for a utilization |
//! | `queue.total` | the whole of what its source has, however many pods share it; not of metrics of pods |
//! | `queue.ratio` | what it measured, divided by its target |
//! | `has(queue.value)` | whether it has a usable value |
//! | `currentReplicas` | the current size of the target |
//! | `max(a, b, …)`, `min(…)`, `math.greatest(…)`, `math.least(…)` | the largest, the smallest |
//! | `ceil(a)`, `floor(a)`, `round(a)`, `abs(a)`, each also with `math.` before it | a number, rounded or without its sign |
//! | `double(a)` | the same number |
//! | `+ - * / %`, `== != < <= > >=`, `&& \|\| !`, `a ? b : c`, `true`, `false` | as in the language |
//!
//! The result is rounded up. One that is not finite, or that needs a metric without a usable value,
//! leaves the size as it is.

use podscale_core::model::{Binary, Fact, Formula, FormulaError, Part, Unary};
use std::fmt::{self, Display, Formatter};

mod read;

/// No expression is longer than this many bytes.
pub const MAX_LENGTH: usize = 2000;
/// How expressions call the current size of the target.
pub const CURRENT_REPLICAS: &str = "currentReplicas";

/// Why an expression is refused, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// The line and the character of it, both from one; nothing if it is the whole.
    pub at: Option<(usize, usize)>,
    /// What is wrong there.
    pub problem: ExpressionProblem,
}

impl std::error::Error for ExpressionError {}

impl Display for ExpressionError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.at {
            write!(f, "line {line}, column {column}: ")?;
        }
        self.problem.fmt(f)
    }
}

/// What can be wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionProblem {
    /// It is longer than allowed.
    #[error("the expression has {0} bytes, at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// It is not an expression of the language.
    #[error("{found} is not {expected}")]
    Syntax {
        /// What is there.
        found: String,
        /// What could be there.
        expected: &'static str,
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
    #[error("a metric has no {0:?}, only value, ratio, total and replicas")]
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
    /// It is too large.
    #[error(transparent)]
    Formula(#[from] FormulaError),
}

/// What is wrong at a byte of the text.
type Fault = (usize, ExpressionProblem);

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
    let whole_is = |problem: ExpressionProblem| ExpressionError { at: None, problem };
    if text.len() > MAX_LENGTH {
        return Err(whole_is(ExpressionProblem::TooLong(text.len())));
    }
    let whole = read::read(text, Scope { names });
    let whole = whole.and_then(|whole| {
        expect("the expression", &whole, Kind::Number)?;
        Ok(whole)
    });
    let whole = whole
        .map_err(|(at, problem)| ExpressionError { at: Some(read::place(text, at)), problem })?;
    Formula::new(text, whole.part).map_err(|error| whole_is(error.into()))
}

/// A part of an expression, what it is, and at which byte it begins.
struct Typed {
    part: Part,
    kind: Kind,
    at: usize,
}

fn expect(place: impl Into<String>, found: &Typed, expected: Kind) -> Result<(), Fault> {
    if found.kind == expected {
        return Ok(());
    }
    let problem = ExpressionProblem::Type { place: place.into(), expected, found: found.kind };
    Err((found.at, problem))
}

fn number(at: usize, part: Part) -> Typed {
    Typed { part, kind: Kind::Number, at }
}

fn truth(at: usize, part: Part) -> Typed {
    Typed { part, kind: Kind::Truth, at }
}

/// What names mean.
#[derive(Clone, Copy)]
struct Scope<'a> {
    names: &'a [Option<&'a str>],
}

impl Scope<'_> {
    /// What a name alone means.
    fn name(self, at: usize, name: &str) -> Result<Typed, Fault> {
        match name {
            "true" => Ok(truth(at, Part::Number(1.0))),
            "false" => Ok(truth(at, Part::Number(0.0))),
            CURRENT_REPLICAS if !self.names.contains(&Some(name)) => {
                Ok(number(at, Part::CurrentReplicas))
            }
            _ => {
                let metric = self.metric(at, name)?;
                Ok(number(at, Part::Metric { metric, fact: Fact::Replicas }))
            }
        }
    }

    /// What a metric says.
    fn fact(self, at: usize, name: &str, fact: (usize, &str)) -> Result<Typed, Fault> {
        let metric = self.metric(at, name)?;
        let fact = match fact.1 {
            "value" => Fact::Value,
            "ratio" => Fact::Ratio,
            "total" => Fact::Total,
            "replicas" => Fact::Replicas,
            other => return Err((fact.0, ExpressionProblem::UnknownFact(other.to_owned()))),
        };
        Ok(number(at, Part::Metric { metric, fact }))
    }

    fn metric(self, at: usize, name: &str) -> Result<u32, Fault> {
        let mut places = (0u32..).zip(self.names).filter(|(_, known)| **known == Some(name));
        match (places.next(), places.next()) {
            (Some((place, _)), None) if name != CURRENT_REPLICAS => Ok(place),
            (Some(_), _) => Err((at, ExpressionProblem::AmbiguousMetric(name.to_owned()))),
            (None, _) => {
                let names: Vec<&str> = self.names.iter().flatten().copied().collect();
                let known = match names.as_slice() {
                    [] => "no metric has a name".to_owned(),
                    names => format!("known are {}", names.join(", ")),
                };
                let name = name.to_owned();
                Err((at, ExpressionProblem::UnknownMetric { name, known }))
            }
        }
    }
}

/// What a function makes of its arguments. Its name comes with `math.` before it where it has that.
fn call(at: usize, name: &str, mut arguments: Vec<Typed>) -> Result<Typed, Fault> {
    let count = arguments.len();
    let unknown =
        (at, ExpressionProblem::UnknownFunction { name: name.to_owned(), arguments: count });
    let own = name.strip_prefix("math.").unwrap_or(name);
    let function = match (name, own) {
        ("max" | "math.greatest", _) => return extreme(Binary::Max, name, arguments, unknown),
        ("min" | "math.least", _) => return extreme(Binary::Min, name, arguments, unknown),
        ("double", _) => None,
        (_, "ceil") => Some(Unary::Ceil),
        (_, "floor") => Some(Unary::Floor),
        (_, "round") => Some(Unary::Round),
        (_, "abs") => Some(Unary::Abs),
        _ => return Err(unknown),
    };
    let (Some(only), true) = (arguments.pop(), arguments.is_empty()) else { return Err(unknown) };
    expect(format!("what {name} takes"), &only, Kind::Number)?;
    Ok(match function {
        Some(function) => number(at, Part::Unary(function, only.part.into())),
        None => Typed { at, ..only },
    })
}

/// One extreme of many. The tree is balanced, so that many do not nest deep.
fn extreme(
    function: Binary,
    name: &str,
    arguments: Vec<Typed>,
    unknown: Fault,
) -> Result<Typed, Fault> {
    let mut parts = Vec::with_capacity(arguments.len());
    for argument in arguments {
        expect(format!("what {name} takes"), &argument, Kind::Number)?;
        parts.push(argument.part);
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
    parts.pop().map(|part| number(unknown.0, part)).ok_or(unknown)
}

/// What an operator makes of its two sides.
fn binary(operator: &str, a: Typed, b: Typed) -> Result<Typed, Fault> {
    use Kind::{Number, Truth};
    let (function, takes, kind) = match operator {
        "+" => (Binary::Add, Number, Number),
        "-" => (Binary::Subtract, Number, Number),
        "*" => (Binary::Multiply, Number, Number),
        "/" => (Binary::Divide, Number, Number),
        "%" => (Binary::Remainder, Number, Number),
        "<" => (Binary::Less, Number, Truth),
        "<=" => (Binary::LessOrEqual, Number, Truth),
        ">" => (Binary::Greater, Number, Truth),
        ">=" => (Binary::GreaterOrEqual, Number, Truth),
        "&&" => (Binary::And, Truth, Truth),
        "||" => (Binary::Or, Truth, Truth),
        // Both sides are of one kind, whichever.
        "==" => (Binary::Equal, a.kind, Truth),
        _ => (Binary::NotEqual, a.kind, Truth),
    };
    for side in [&a, &b] {
        expect(format!("each side of {operator}"), side, takes)?;
    }
    Ok(Typed { part: Part::Binary(function, a.part.into(), b.part.into()), kind, at: a.at })
}

/// What an operator makes of what follows it.
fn unary(at: usize, operator: &str, a: Typed) -> Result<Typed, Fault> {
    let (function, kind) = match operator {
        "!" => (Unary::Not, Kind::Truth),
        _ => (Unary::Negate, Kind::Number),
    };
    expect(format!("what {operator} takes"), &a, kind)?;
    Ok(Typed { part: Part::Unary(function, a.part.into()), kind, at })
}

/// One of two parts, by a condition.
fn choice(condition: Typed, yes: Typed, no: Typed) -> Result<Typed, Fault> {
    expect("what comes before ?", &condition, Kind::Truth)?;
    expect("what comes after :", &no, yes.kind)?;
    let part = Part::If(condition.part.into(), yes.part.into(), no.part.into());
    Ok(Typed { part, kind: yes.kind, at: condition.at })
}

#[cfg(test)]
mod tests;
