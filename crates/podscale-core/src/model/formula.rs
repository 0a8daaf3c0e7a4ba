//! Formulas over what the metrics of an autoscaler say, parsed and checked by whoever reads the spec.
//! A formula is a small tree, so that evaluating it takes bounded time and cannot fail but for metrics
//! that have no value.

use std::sync::Arc;

/// No formula has more parts than this.
pub const MAX_PARTS: usize = 256;
/// No formula is nested deeper than this.
pub const MAX_DEPTH: usize = 32;

/// A formula that gives a number of replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: Arc<str>,
    root: Part,
}

/// Why a formula is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormulaError {
    /// It has too many parts.
    #[error("the expression has more than {MAX_PARTS} parts")]
    TooLong,
    /// It is nested too deeply.
    #[error("the expression is nested more than {MAX_DEPTH} levels deep")]
    TooDeep,
}

/// One part of a formula. Truth is one, falsehood is zero.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A number.
    Number(f64),
    /// The current size of the target.
    CurrentReplicas,
    /// Something that a metric says; without it, the formula has no value.
    Metric {
        /// The metric's place in the spec.
        metric: u32,
        /// What it says.
        fact: Fact,
    },
    /// Whether a metric has a usable value.
    Has {
        /// The metric's place in the spec.
        metric: u32,
    },
    /// A function of one number.
    Unary(Unary, Box<Part>),
    /// A function of two numbers. The second is not needed if the first decides.
    Binary(Binary, Box<Part>, Box<Part>),
    /// The second if the first is true, else the third.
    If(Box<Part>, Box<Part>, Box<Part>),
}

/// What a metric says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// The replicas that it asks for.
    Replicas,
    /// Its value in the unit of its target: percent for a utilization.
    Value,
    /// Its value divided by its target.
    Ratio,
    /// The whole of what its source says, however many pods share it.
    Total,
}

/// A function of one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    /// The opposite.
    Negate,
    /// Whether it is false.
    Not,
    /// Rounded up.
    Ceil,
    /// Rounded down.
    Floor,
    /// Rounded to the nearest, away from zero in the middle.
    Round,
    /// Without its sign.
    Abs,
    /// Without its fraction.
    Truncate,
}

/// A function of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// The sum.
    Add,
    /// The difference.
    Subtract,
    /// The product.
    Multiply,
    /// The quotient.
    Divide,
    /// The remainder.
    Remainder,
    /// The first to the power of the second.
    Power,
    /// The larger.
    Max,
    /// The smaller.
    Min,
    /// Whether both are equal.
    Equal,
    /// Whether they differ.
    NotEqual,
    /// Whether the first is less.
    Less,
    /// Whether the first is not more.
    LessOrEqual,
    /// Whether the first is more.
    Greater,
    /// Whether the first is not less.
    GreaterOrEqual,
    /// Whether both are true.
    And,
    /// Whether one is true.
    Or,
}

impl Part {
    /// How many parts it has, itself included.
    #[must_use]
    pub fn size(&self) -> usize {
        1 + match self {
            Part::Number(_) | Part::CurrentReplicas | Part::Metric { .. } | Part::Has { .. } => 0,
            Part::Unary(_, a) => a.size(),
            Part::Binary(_, a, b) => a.size() + b.size(),
            Part::If(a, b, c) => a.size() + b.size() + c.size(),
        }
    }
}

impl Formula {
    /// A formula, with the text it was made from.
    ///
    /// # Errors
    /// It is too large.
    pub fn new(text: impl Into<Arc<str>>, root: Part) -> Result<Formula, FormulaError> {
        let mut parts = 0;
        count(&root, 1, &mut parts)?;
        Ok(Formula { text: text.into(), root })
    }

    /// The text it was made from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its tree.
    #[must_use]
    pub fn root(&self) -> &Part {
        &self.root
    }
}

fn count(part: &Part, depth: usize, parts: &mut usize) -> Result<(), FormulaError> {
    *parts += 1;
    if *parts > MAX_PARTS {
        return Err(FormulaError::TooLong);
    }
    if depth > MAX_DEPTH {
        return Err(FormulaError::TooDeep);
    }
    let mut below = |part: &Part| count(part, depth + 1, parts);
    match part {
        Part::Number(_) | Part::CurrentReplicas | Part::Metric { .. } | Part::Has { .. } => Ok(()),
        Part::Unary(_, a) => below(a),
        Part::Binary(_, a, b) => below(a).and_then(|()| below(b)),
        Part::If(a, b, c) => below(a).and_then(|()| below(b)).and_then(|()| below(c)),
    }
}
