//! Columns that a CustomResourceDefinition asks for.

use jiff::Timestamp;
use podscale_api::field_error::{go_float, go_json};
use serde_json::Value;

use super::jsonpath::{JsonPath, ParseError};
use super::{Column, Row, age, name_cell, text};

/// The columns of one version of a custom resource, after the name.
#[derive(Debug, Clone, Default)]
pub struct CustomColumns {
    columns: Vec<CustomColumn>,
}

/// A column and the path of its value.
#[derive(Debug, Clone)]
pub struct CustomColumn {
    column: Column,
    path: JsonPath,
}

impl CustomColumns {
    /// Reads `additionalPrinterColumns`; without any, the age is shown.
    pub fn parse(definitions: &[Value]) -> Result<Self, ParseError> {
        if definitions.is_empty() {
            let path = JsonPath::parse(".metadata.creationTimestamp")?;
            let column = Column { kind: "date".into(), ..Column::age() };
            return Ok(Self { columns: vec![CustomColumn { column, path }] });
        }
        let column = |definition: &Value| {
            let json_path = text(definition, "/jsonPath");
            let description = match text(definition, "/description") {
                "" => {
                    format!("Custom resource definition column (in JSONPath format): {json_path}")
                }
                given => given.to_owned(),
            };
            let column = Column {
                name: text(definition, "/name").to_owned().into(),
                kind: text(definition, "/type").to_owned().into(),
                format: text(definition, "/format").to_owned().into(),
                description: description.into(),
                priority: super::integer(definition, "/priority"),
            };
            Ok(CustomColumn { column, path: JsonPath::parse(json_path)? })
        };
        Ok(Self { columns: definitions.iter().map(column).collect::<Result<_, ParseError>>()? })
    }

    pub(super) fn headings(&self) -> Vec<Column> {
        let own = self.columns.iter().map(|column| column.column.clone());
        std::iter::once(Column::name()).chain(own).collect()
    }

    pub(super) fn row(&self, object: &Value, now: Timestamp) -> Row {
        let own = self.columns.iter().map(|column| column.cell(object, now));
        Row::from(std::iter::once(name_cell(object)).chain(own).collect::<Vec<_>>())
    }
}

impl CustomColumn {
    /// The first value found, shaped as the column's type asks; null where it does not fit.
    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        let Some(value) = self.path.find(object).into_iter().next() else { return Value::Null };
        match (self.column.kind.as_ref(), value) {
            ("string", value) => go_text(value).into(),
            ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => integer.into(),
                // The cast saturates, which is what a JSON reader would make of it anyway.
                (None, Some(float)) => (float as i64).into(),
                (None, None) => Value::Null,
            },
            ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
            ("boolean", Value::Bool(flag)) => (*flag).into(),
            ("date", Value::String(time)) => match time.as_str() {
                "" => "<unknown>".into(),
                time if time.parse::<Timestamp>().is_ok() => age::since(time, now).into(),
                _ => "<invalid>".into(),
            },
            _ => Value::Null,
        }
    }
}

/// A value of any type as Go prints it in a text column.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => go_float(float),
            _ => number.to_string(),
        },
        Value::Bool(flag) => flag.to_string(),
        Value::Array(_) | Value::Object(_) => go_json(value),
    }
}
