//! Rules that a schema states in the Common Expression Language.

use cel::Value as CelValue;
use podscale_api::field_error::{BadValue, FieldError, FieldPath, Problem};
use serde_json::Value;

use super::expression::{Expression, optional, typed};
use super::nesting;
use super::schema::{Rule, Schema};
use super::validate::{bad_value, counterpart, type_name};

/// Longest message that an expression may make.
const MAX_MESSAGE_LENGTH: usize = 5 * 1024;

pub(super) fn check(object: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    // Once for all rules: a larger stack is not made anew for each.
    nesting::with_room(deepest(schema), || {
        check_at(object, old, schema, &FieldPath::default(), &mut errors);
    });
    errors
}

/// How deep the deepest rule nests.
fn deepest(schema: &Schema) -> usize {
    let levels = |rule: &Rule| {
        let all = std::iter::once(&rule.compiled).chain(&rule.compiled_message);
        all.filter_map(|compiled| compiled.as_ref().ok()).map(Expression::levels).max()
    };
    let own = schema.rules.iter().filter_map(levels);
    own.chain(schema.children().map(deepest)).max().unwrap_or_default()
}

fn check_at(
    value: &Value,
    old: Option<&Value>,
    schema: &Schema,
    path: &FieldPath,
    errors: &mut Vec<FieldError>,
) {
    if value.is_null() || !schema.has_rules() {
        return;
    }
    let unchanged = old == Some(value);
    for rule in &schema.rules {
        errors.extend(check_rule(rule, value, old, unchanged, schema, path));
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let old = old.and_then(|old| old.get(name));
                match schema.properties.get(name) {
                    Some(property) => check_at(value, old, property, &path.child(name), errors),
                    None => {
                        if let Some(schema) = schema.field(name) {
                            check_at(value, old, schema, &path.key(name), errors);
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            if let Some(item_schema) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    let old = old.and_then(|old| counterpart(item, old, schema));
                    check_at(item, old, item_schema, &path.index(index), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_rule(
    rule: &Rule,
    value: &Value,
    old: Option<&Value>,
    unchanged: bool,
    schema: &Schema,
    path: &FieldPath,
) -> Option<FieldError> {
    let expression = match &rule.compiled {
        Ok(expression) => expression,
        Err(reason) => {
            let detail = format!("rule compile error: {reason}");
            return Some(FieldError::invalid(path, type_name(value), detail));
        }
    };
    let uses_old = expression.uses_old();
    // Rules about changes need something to compare with; others leave alone what did not change.
    let compares = uses_old && !rule.optional_old_self();
    if (compares && old.is_none()) || (!uses_old && unchanged) {
        return None;
    }
    let typed_value = typed(value, schema);
    let typed_old = old.filter(|_| uses_old).map(|old| typed(old, schema));
    let typed_old = if rule.optional_old_self() { Some(optional(typed_old)) } else { typed_old };
    match expression.evaluate(typed_value.clone(), typed_old.clone()) {
        Ok(CelValue::Bool(true)) => None,
        Ok(_) => {
            let message = rule
                .compiled_message
                .as_ref()
                .and_then(|message| message.as_ref().ok())
                .and_then(|message| message.evaluate(typed_value, typed_old).ok())
                .and_then(usable_message)
                .unwrap_or_else(|| rule.fixed_message());
            Some(broken(rule, value, path, message))
        }
        Err(reason) => {
            let detail = format!("{reason} evaluating rule: {}", rule.name());
            Some(FieldError::invalid(path, type_name(value), detail))
        }
    }
}

/// What an expression made, if it can be shown in one line.
fn usable_message(message: CelValue) -> Option<String> {
    match message {
        CelValue::String(text) => {
            let text = text.trim();
            let usable =
                !text.is_empty() && !text.contains('\n') && text.len() <= MAX_MESSAGE_LENGTH;
            usable.then(|| text.to_owned())
        }
        _ => None,
    }
}

fn broken(rule: &Rule, value: &Value, path: &FieldPath, message: String) -> FieldError {
    let field = rule
        .field_path
        .split(['.', '[', ']'])
        .map(|part| part.trim_matches('\''))
        .filter(|part| !part.is_empty())
        .fold(path.clone(), |path, part| path.child(part));
    // Objects and lists would make the message long; what is wrong with them is in the message.
    let shown = match value {
        Value::Object(_) | Value::Array(_) => BadValue::verbatim(""),
        scalar => bad_value(scalar),
    };
    match rule.reason.as_deref() {
        Some("FieldValueRequired") => FieldError::required(&field, message),
        Some("FieldValueForbidden") => FieldError::forbidden(&field, message),
        Some("FieldValueDuplicate") => FieldError {
            problem: Problem::Duplicate,
            ..FieldError::invalid(&field, shown, message)
        },
        _ => FieldError::invalid(&field, shown, message),
    }
}
