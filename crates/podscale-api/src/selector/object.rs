//! Selectors as objects: `{matchLabels: …, matchExpressions: …}`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Operator, Requirement, Selector, SelectorError};
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
            other => {
                let text = format!("{} is not a valid label selector operator", quote(other));
                return Err(SelectorError(text));
            }
        };
        let values: Vec<_> = self.values.iter().map(String::as_str).collect();
        Requirement::new(&self.key, operator, &values)
    }
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
