//! Custom resources: what their definitions may say, and what that means for their objects.
//!
//! An object goes through [`prune`], [`fill_defaults`] and [`check`], in this order.

pub mod definition;
mod embedded;
mod expression;
mod format;
mod keywords;
mod lists;
mod nesting;
mod numbers;
mod prune;
mod rules;
mod scale;
mod schema;
mod structural;
mod typing;
mod validate;

#[cfg(test)]
mod tests;

use podscale_api::field_error::{BadValue, FieldError, FieldPath, Problem};
use serde_json::Value;

pub use embedded::clean_embedded_metadata;
pub use scale::check_scale;
pub use schema::{Additional, Rule, Schema, SchemaError};
pub use structural::check_structural;

/// Removes what the schema does not specify, and returns the paths of what it removed, sorted.
/// The error is the refusal of an embedded object whose metadata cannot be read.
pub fn prune(object: &mut Value, schema: &Schema) -> Result<Vec<String>, FieldError> {
    let mut removed = prune::prune(object, schema);
    removed.extend(clean_embedded_metadata(object, schema)?);
    removed.sort_unstable();
    Ok(removed)
}

/// Removes meaningless nulls and fills in defaults.
pub fn fill_defaults(object: &mut Value, schema: &Schema) {
    prune::drop_nulls(object, Some(schema));
    prune::fill_defaults(object, schema);
}

/// Everything that the schema finds wrong with an object; `old` is the one that it replaces.
/// Metadata and scale are checked elsewhere.
pub fn check(object: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    let mut errors = validate::check(object, old, schema);
    errors.extend(embedded::check(object, schema));
    // Lists that were wrong before may stay so.
    let root = FieldPath::default();
    if old.is_none_or(|old| lists::check(old, schema, &root).is_empty()) {
        errors.extend(lists::check(object, schema, &root));
    }
    if schema.has_rules() {
        if errors.iter().any(|error| hides_rules(error.problem)) {
            errors.push(FieldError::invalid(
                &root,
                BadValue::verbatim("null"),
                "some validation rules were not checked because the object was invalid; correct \
                 the existing errors to complete validation",
            ));
        } else {
            errors.extend(rules::check(object, old, schema));
        }
    }
    errors
}

/// Whether rules make no sense on an object with such a mistake.
fn hides_rules(problem: Problem) -> bool {
    matches!(
        problem,
        Problem::NotSupported
            | Problem::Required
            | Problem::TooLong
            | Problem::TooMany
            | Problem::TypeInvalid
    )
}
