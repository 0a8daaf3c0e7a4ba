//! The value of a formula, given what the metrics said.

use super::answer::Answer;
use crate::model::{Binary, Fact, Formula, MetricTarget, Milli, Part, Unary};
use crate::steps::{FormulaFailure, Proposal};

/// The value, or why there is none.
pub(super) fn evaluate(
    formula: &Formula,
    answers: &[Answer],
    current: i32,
) -> Result<f64, FormulaFailure> {
    let value = Facts { answers, current }.value(formula.root())?;
    if value.is_finite() { Ok(value) } else { Err(FormulaFailure::NotFinite) }
}

struct Facts<'a> {
    answers: &'a [Answer],
    current: i32,
}

const TRUE: f64 = 1.0;
const FALSE: f64 = 0.0;

fn truth(holds: bool) -> f64 {
    if holds { TRUE } else { FALSE }
}

fn is_true(value: f64) -> bool {
    value != FALSE
}

impl Facts<'_> {
    /// As deep as the formula, which is bounded.
    fn value(&self, part: &Part) -> Result<f64, FormulaFailure> {
        Ok(match part {
            Part::Number(number) => *number,
            Part::CurrentReplicas => f64::from(self.current),
            Part::Metric { metric, fact } => {
                self.fact(*metric, *fact).ok_or(FormulaFailure::Missing(*metric))?
            }
            Part::Has { metric } => truth(
                self.fact(*metric, Fact::Value)
                    .or_else(|| self.fact(*metric, Fact::Total))
                    .is_some(),
            ),
            Part::Unary(function, a) => unary(*function, self.value(a)?),
            Part::Binary(Binary::And, a, b) => self.decided(a, b, FALSE)?,
            Part::Binary(Binary::Or, a, b) => self.decided(a, b, TRUE)?,
            Part::Binary(function, a, b) => binary(*function, self.value(a)?, self.value(b)?),
            Part::If(condition, a, b) => {
                self.value(if is_true(self.value(condition)?) { a } else { b })?
            }
        })
    }

    /// Of two truths, one of this value decides, even if the other is not known.
    fn decided(&self, a: &Part, b: &Part, deciding: f64) -> Result<f64, FormulaFailure> {
        let decides = |value: &Result<f64, FormulaFailure>| {
            value.is_ok_and(|value| is_true(value) == is_true(deciding))
        };
        let a = self.value(a);
        if decides(&a) {
            return Ok(deciding);
        }
        let b = self.value(b);
        if decides(&b) {
            return Ok(deciding);
        }
        a.and(b)
    }

    fn fact(&self, metric: u32, fact: Fact) -> Option<f64> {
        let answer = self.answers.get(metric as usize)?;
        match fact {
            Fact::Replicas => answer.replicas.map(f64::from),
            Fact::Value => value_of(answer.proposal.as_ref()?),
            Fact::Ratio => Some(answer.proposal.as_ref()?.ratio),
            Fact::Total => answer.total.map(whole),
        }
    }
}

/// What a metric measured, in the unit of its target.
fn value_of(proposal: &Proposal) -> Option<f64> {
    let current = &proposal.current;
    match proposal.target {
        MetricTarget::Utilization(_) => current.average_utilization.map(f64::from),
        _ => current.value.or(current.average_value).map(whole),
    }
}

fn whole(Milli(milli): Milli) -> f64 {
    milli as f64 / 1000.0
}

fn unary(function: Unary, a: f64) -> f64 {
    match function {
        Unary::Negate => -a,
        Unary::Not => truth(!is_true(a)),
        Unary::Ceil => a.ceil(),
        Unary::Floor => a.floor(),
        Unary::Round => a.round(),
        Unary::Abs => a.abs(),
        Unary::Truncate => a.trunc(),
    }
}

fn binary(function: Binary, a: f64, b: f64) -> f64 {
    match function {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::Remainder => a % b,
        Binary::Power => a.powf(b),
        Binary::Max => a.max(b),
        Binary::Min => a.min(b),
        Binary::Equal => truth(a == b),
        Binary::NotEqual => truth(a != b),
        Binary::Less => truth(a < b),
        Binary::LessOrEqual => truth(a <= b),
        Binary::Greater => truth(a > b),
        Binary::GreaterOrEqual => truth(a >= b),
        Binary::And => truth(is_true(a) && is_true(b)),
        Binary::Or => truth(is_true(a) || is_true(b)),
    }
}
