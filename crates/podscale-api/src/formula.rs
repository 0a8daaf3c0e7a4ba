//! Expressions over metrics: a part of the Common Expression Language, read into the core's formulas and
//! checked for their types.
//!
//! A metric's name is the replicas that it asks for; `name.value` is its value and `name.ratio` its value
//! divided by its target. `current` is the target's size. Numbers are floating point throughout.

mod lex;
mod parse;
#[cfg(test)]
mod tests;

use podscale_core::model::{Formula, FormulaError};

/// What an expression calls the target's size.
pub const CURRENT: &str = "current";

/// Why an expression cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpressionError {
    /// Something at this character, counted from one, is wrong.
    #[error("{problem} at character {place}")]
    At {
        /// What is wrong.
        problem: String,
        /// Where.
        place: usize,
    },
    /// It gives something else than a number.
    #[error("must give a number of replicas, not true or false")]
    NotANumber,
    /// It is too large.
    #[error(transparent)]
    TooLarge(#[from] FormulaError),
}

/// Reads an expression over metrics with these names, by their places in the spec.
///
/// # Errors
/// It is not one, names what is not there, or mixes numbers with truths.
pub fn parse(text: &str, names: &[Option<&str>]) -> Result<Formula, ExpressionError> {
    let root = parse::Parser::new(text, names)?.number()?;
    Ok(Formula::new(text, root)?)
}
