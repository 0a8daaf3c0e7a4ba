//! Label matchers of PromQL, built as prometheus-adapter builds them.

use super::query::QueryError;
use podscale_api::Selector;
use podscale_api::quote::quote;
use podscale_api::selector::{Operator, Requirement};

/// The matchers of one query, in order, and the values that they are about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matchers {
    expressions: Vec<String>,
    values: Vec<(String, String)>,
}

impl Matchers {
    /// What a selector of series asks for.
    ///
    /// # Errors
    /// Prometheus has no matcher for one of its conditions.
    pub fn of_selector(selector: &Selector) -> Result<Matchers, QueryError> {
        let mut matchers = Matchers::default();
        for requirement in selector.requirements() {
            matchers.require(requirement)?;
        }
        Ok(matchers)
    }

    fn require(&mut self, requirement: &Requirement) -> Result<(), QueryError> {
        let label = requirement.key();
        if !is_label_name(label) {
            return Err(QueryError::Label(label.into()));
        }
        let mut values: Vec<&str> = requirement.values().collect();
        values.sort_unstable();
        values.dedup();
        let joined = values.join("|");
        // Values are not quoted as expressions, so that one of them can be an expression.
        let operator = match (requirement.operator(), values.len()) {
            (Operator::Exists, _) | (Operator::NotEquals, 1) => "!=",
            (Operator::DoesNotExist, _) | (Operator::Equals | Operator::DoubleEquals, 1) => "=",
            (Operator::In | Operator::Equals | Operator::DoubleEquals, _) => "=~",
            (Operator::NotIn | Operator::NotEquals, _) => "!~",
            (operator @ (Operator::GreaterThan | Operator::LessThan), _) => {
                return Err(QueryError::Operator { label: label.into(), operator });
            }
        };
        self.push(label, operator, &joined);
        self.values.push((label.to_owned(), joined));
        Ok(())
    }

    fn push(&mut self, label: &str, operator: &str, value: &str) {
        self.expressions.push(format!("{label}{operator}{}", quote(value)));
    }

    /// The label has exactly this value.
    pub fn equals(&mut self, label: &str, value: &str) {
        self.push(label, "=", value);
        self.values.push((label.to_owned(), value.to_owned()));
    }

    /// The label has any value.
    pub fn exists(&mut self, label: &str) {
        self.push(label, "!=", "");
        self.values.push((label.to_owned(), ".+".to_owned()));
    }

    /// The label has one of these values: names of objects, in which nothing is an expression.
    pub fn one_of(&mut self, label: &str, names: &[&str]) {
        if let [name] = names {
            return self.equals(label, name);
        }
        let escaped: Vec<String> = names.iter().map(|name| literal(name)).collect();
        self.push(label, "=~", &escaped.join("|"));
        self.values.push((label.to_owned(), names.join("|")));
    }

    /// All matchers with commas between them.
    #[must_use]
    pub fn text(&self) -> String {
        self.expressions.join(",")
    }

    /// The values by label, several of one label with `|` between them.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(label, value)| (label.as_str(), value.as_str()))
    }
}

/// An expression that matches exactly this text.
fn literal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Whether Prometheus can have a label of this name, written without quotes.
#[must_use]
pub fn is_label_name(name: &str) -> bool {
    let part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(part)
}
