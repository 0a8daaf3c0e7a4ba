//! Selectors as objects: `{matchLabels: …, matchExpressions: …}`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Operator, Requirement, Selector, SelectorError, parse};
use crate::labels::Labels;
use crate::quote::quote;

/// A selector as it stands in API objects; empty, it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels and the values they must have.
    #[serde(
        skip_serializing_if = "Labels::is_empty",
        deserialize_with = "crate::serde_form::null_default"
    )]
    pub match_labels: Labels,
    /// Further conditions.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::serde_form::null_default"
    )]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One condition of a [`LabelSelector`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelectorRequirement {
    /// The label that it is about.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; anything else is refused on conversion.
    pub operator: String,
    /// The values for `In` and `NotIn`.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "crate::serde_form::null_default"
    )]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Reads a selector's text into an object. Not every selector has one: `!=`, `>` and `<` do not,
    /// and of several values that a label must equal, the last one stays.
    ///
    /// # Errors
    /// The text is no selector, or has an operator that objects do not have.
    pub fn parse(text: &str) -> Result<LabelSelector, SelectorError> {
        let requirements = parse::parse(text).map_err(|error| {
            SelectorError(format!("couldn't parse the selector string \"{text}\": {error}"))
        })?;
        let mut selector = LabelSelector::default();
        for Requirement { key, operator, values } in requirements {
            let operator = match operator {
                Operator::Equals | Operator::DoubleEquals => {
                    let value = values.into_iter().next().unwrap_or_default();
                    selector.match_labels.insert(key, value);
                    continue;
                }
                Operator::In => "In",
                Operator::NotIn => "NotIn",
                Operator::Exists => "Exists",
                Operator::DoesNotExist => "DoesNotExist",
                Operator::GreaterThan => return Err(unsupported("gt")),
                Operator::LessThan => return Err(unsupported("lt")),
                Operator::NotEquals => return Err(invalid_operator("!=")),
            };
            selector.match_expressions.push(LabelSelectorRequirement {
                key: key.into(),
                operator: operator.to_owned(),
                values: values.into_iter().map(String::from).collect(),
            });
        }
        Ok(selector)
    }

    /// The selector that it stands for.
    pub fn to_selector(&self) -> Result<Selector, SelectorError> {
        let labels = self
            .match_labels
            .iter()
            .map(|(key, value)| Requirement::new(key, Operator::Equals, &[value]));
        let expressions =
            self.match_expressions.iter().map(LabelSelectorRequirement::to_requirement);
        labels.chain(expressions).collect::<Result<_, _>>().map(Selector::from_requirements)
    }

    /// What Go prints for a pointer to a selector, `nil` for none; part of some metric names.
    pub fn go_string(selector: Option<&LabelSelector>) -> String {
        selector.map_or_else(|| "nil".into(), |selector| GoString(selector).to_string())
    }
}

impl LabelSelectorRequirement {
    fn to_requirement(&self) -> Result<Requirement, SelectorError> {
        let operator = match self.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(invalid_operator(other)),
        };
        let values: Vec<_> = self.values.iter().map(String::as_str).collect();
        Requirement::new(&self.key, operator, &values)
    }
}

fn invalid_operator(operator: &str) -> SelectorError {
    SelectorError(format!("{} is not a valid label selector operator", quote(operator)))
}

fn unsupported(operator: &str) -> SelectorError {
    SelectorError(format!("{} isn't supported in label selectors", quote(operator)))
}

struct GoString<'a>(&'a LabelSelector);

impl fmt::Display for GoString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("&LabelSelector{MatchLabels:map[string]string{")?;
        for (key, value) in self.0.match_labels.iter() {
            write!(f, "{key}: {value},")?;
        }
        f.write_str("},MatchExpressions:[]LabelSelectorRequirement{")?;
        for LabelSelectorRequirement { key, operator, values } in &self.0.match_expressions {
            let values = values.join(" ");
            write!(
                f,
                "LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},"
            )?;
        }
        f.write_str("},}")
    }
}
