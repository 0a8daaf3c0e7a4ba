//! The part of Go's `text/template` that rules are written in, between `<<` and `>>`: fields, variables,
//! `index`, `printf` and the other functions that only compute, pipelines, `if`, `with`, `range`, comments
//! and trimming. What is left out (`define`, `template`, `block`, `call`, methods) is refused by name.

mod evaluate;
mod functions;
mod lex;
mod parse;
mod value;

pub use value::Value;

use std::fmt;
use thiserror::Error;

/// The longest template.
const MOST_BYTES: usize = 64 << 10;

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct TemplateError {
    /// Where in the template, in bytes from its beginning, if it is at one place.
    pub place: Option<usize>,
    /// What is wrong.
    pub problem: Box<str>,
}

impl TemplateError {
    fn at(place: usize, problem: impl fmt::Display) -> TemplateError {
        TemplateError { place: Some(place), problem: problem.to_string().into() }
    }

    fn of(problem: impl fmt::Display) -> TemplateError {
        TemplateError { place: None, problem: problem.to_string().into() }
    }
}

/// A template that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    nodes: Vec<parse::Node>,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// It is none, or uses what is not supported.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        if text.len() > MOST_BYTES {
            return Err(TemplateError::of(format!("longer than {MOST_BYTES} bytes")));
        }
        Ok(Template { nodes: parse::parse(lex::lex(text)?)? })
    }

    /// The text that the template gives for these values.
    ///
    /// # Errors
    /// It asks for what is not there, or gives too much.
    pub fn render(&self, data: &Value) -> Result<String, TemplateError> {
        evaluate::render(&self.nodes, data)
    }

    /// Whether a field is used anywhere.
    #[must_use]
    pub fn mentions(&self, field: &str) -> bool {
        parse::mentions(&self.nodes, field)
    }
}

#[cfg(test)]
mod tests;
