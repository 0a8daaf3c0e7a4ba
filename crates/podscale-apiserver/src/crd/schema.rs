//! A CustomResourceDefinition's structural schema, read once and then used for everything.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use thiserror::Error;

use super::expression::Expression;

/// Why a schema cannot be read at all.
#[derive(Debug, Error)]
#[error("the openAPIV3Schema cannot be read: {0}")]
pub struct SchemaError(#[from] serde_json::Error);

/// One level of a schema.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schema {
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty for any.
    #[serde(rename = "type")]
    pub kind: String,
    /// Text format such as `date-time`, or number format such as `int32`.
    pub format: String,
    /// Heading for people.
    pub title: String,
    /// What it means, for people.
    pub description: String,
    /// Whether null is a value.
    pub nullable: bool,
    /// Value to use where none is given.
    pub default: Option<Value>,
    /// Fields by name.
    pub properties: BTreeMap<String, Schema>,
    /// What other fields look like.
    pub additional_properties: Option<Additional>,
    /// What a list's items look like.
    pub items: Option<Box<Schema>>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// Allowed values.
    #[serde(rename = "enum")]
    pub allowed: Vec<Value>,
    /// Smallest number.
    pub minimum: Option<f64>,
    /// Whether the smallest number itself is excluded.
    pub exclusive_minimum: bool,
    /// Largest number.
    pub maximum: Option<f64>,
    /// Whether the largest number itself is excluded.
    pub exclusive_maximum: bool,
    /// Number that values are a multiple of.
    pub multiple_of: Option<f64>,
    /// Fewest characters.
    pub min_length: Option<i64>,
    /// Most characters.
    pub max_length: Option<i64>,
    /// Regular expression that a text contains.
    #[serde(deserialize_with = "pattern")]
    pub pattern: Option<Pattern>,
    /// Fewest items.
    pub min_items: Option<i64>,
    /// Most items.
    pub max_items: Option<i64>,
    /// Whether items differ from one another.
    pub unique_items: bool,
    /// Fewest fields.
    pub min_properties: Option<i64>,
    /// Most fields.
    pub max_properties: Option<i64>,
    /// Schemas that all must fit.
    pub all_of: Vec<Schema>,
    /// Schemas of which at least one must fit.
    pub any_of: Vec<Schema>,
    /// Schemas of which exactly one must fit.
    pub one_of: Vec<Schema>,
    /// Schema that must not fit.
    pub not: Option<Box<Schema>>,
    /// An integer or a string.
    #[serde(rename = "x-kubernetes-int-or-string")]
    pub int_or_string: bool,
    /// Fields that are not specified are kept.
    #[serde(rename = "x-kubernetes-preserve-unknown-fields")]
    pub preserve_unknown_fields: bool,
    /// A whole Kubernetes object.
    #[serde(rename = "x-kubernetes-embedded-resource")]
    pub embedded_resource: bool,
    /// `atomic`, `set` or `map`.
    #[serde(rename = "x-kubernetes-list-type")]
    pub list_type: Option<String>,
    /// Fields that identify an item of a list of type `map`.
    #[serde(rename = "x-kubernetes-list-map-keys")]
    pub list_map_keys: Vec<String>,
    /// `granular` or `atomic`.
    #[serde(rename = "x-kubernetes-map-type")]
    pub map_type: Option<String>,
    /// Rules in the Common Expression Language.
    #[serde(rename = "x-kubernetes-validations")]
    pub rules: Vec<Rule>,
}

/// What fields without a schema of their own look like.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Additional {
    /// Any value, or none at all.
    Allowed(bool),
    /// Values of this schema.
    Schema(Box<Schema>),
}

impl Additional {
    /// The schema of the values, if there is one.
    pub fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Schema(schema) => Some(schema),
            Self::Allowed(_) => None,
        }
    }
}

/// A rule that objects must obey.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "RuleText")]
pub struct Rule {
    /// The expression as written.
    pub rule: String,
    /// What to say when it does not hold.
    pub message: String,
    /// Expression that makes the message, as written.
    pub message_expression: String,
    /// Machine-readable kind of the mistake.
    pub reason: Option<String>,
    /// Field to blame, relative to where the rule stands.
    pub field_path: String,
    /// Whether the rule also holds where there is no old value, as written.
    pub optional_old_self: Option<bool>,
    /// The rule compiled; the error says why it cannot be.
    pub(super) compiled: Result<Expression, String>,
    /// The message's expression compiled, if there is one.
    pub(super) compiled_message: Option<Result<Expression, String>>,
}

impl Rule {
    /// Whether the rule also holds where there is no old value.
    pub(super) fn optional_old_self(&self) -> bool {
        self.optional_old_self.unwrap_or_default()
    }

    /// The rule as messages quote it.
    pub(super) fn name(&self) -> &str {
        self.rule.trim()
    }

    /// What to say where no expression makes the message.
    pub(super) fn fixed_message(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.name()),
            message => message.to_owned(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RuleText {
    rule: String,
    message: String,
    message_expression: String,
    reason: Option<String>,
    field_path: String,
    optional_old_self: Option<bool>,
}

impl From<RuleText> for Rule {
    fn from(text: RuleText) -> Self {
        let message = text.message_expression.as_str();
        Self {
            compiled: Expression::compile(&text.rule),
            compiled_message: (!message.trim().is_empty()).then(|| Expression::compile(message)),
            rule: text.rule,
            message: text.message,
            message_expression: text.message_expression,
            reason: text.reason,
            field_path: text.field_path,
            optional_old_self: text.optional_old_self,
        }
    }
}

/// A regular expression, or the text of one that cannot be compiled.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// As written.
    pub text: String,
    /// Compiled; the error says why it cannot be.
    pub regex: Result<Regex, String>,
}

fn pattern<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Pattern>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let regex = Regex::new(&text).map_err(|error| match error {
        regex::Error::Syntax(text) => {
            // The crate draws the pattern over several lines; the last one tells what is wrong.
            let reason = text.lines().last().unwrap_or_default();
            reason.trim_start_matches("error: ").to_owned()
        }
        other => other.to_string(),
    });
    Ok(Some(Pattern { text, regex }))
}

impl Schema {
    /// Reads an `openAPIV3Schema`.
    pub fn parse(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self::deserialize(schema)?)
    }

    /// The schema of a field, whether specified by name or in general.
    pub fn field(&self, name: &str) -> Option<&Schema> {
        self.properties
            .get(name)
            .or_else(|| self.additional_properties.as_ref().and_then(Additional::schema))
    }

    /// Names of the types that values may have, as messages list them.
    pub(super) fn types(&self) -> &[&str] {
        match self.kind.as_str() {
            _ if self.int_or_string => &["integer", "string"],
            "object" => &["object"],
            "array" => &["array"],
            "string" => &["string"],
            "integer" => &["integer"],
            "number" => &["number"],
            "boolean" => &["boolean"],
            _ => &[],
        }
    }

    /// Whether any rule is written here or below.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty() || self.children().any(Schema::has_rules)
    }

    /// The schemas directly below.
    pub(super) fn children(&self) -> impl Iterator<Item = &Schema> {
        let additional = self.additional_properties.as_ref().and_then(Additional::schema);
        self.properties.values().chain(additional).chain(self.items.as_deref())
    }
}
