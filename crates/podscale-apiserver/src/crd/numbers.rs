//! Limits of numbers. Kubernetes compares whole numbers as integers and others as floats, and its
//! messages show the difference.

use podscale_api::field_error::{BadValue, FieldError, FieldPath, go_float};
use serde_json::{Number, Value};

use super::schema::Schema;
use super::validate::Findings;

/// The value at a dotted path such as `.spec.replicas`.
pub(super) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |value, name| value.get(name))
}

/// A number as Go prints it.
pub(super) fn go_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => integer.to_string(),
        (None, Some(float)) => go_float(float),
        (None, None) => number.to_string(),
    }
}

/// Whether a float is a whole number that JSON readers agree on.
pub(super) fn is_whole(float: f64) -> bool {
    const LIMIT: f64 = 9_007_199_254_740_991.0;
    float.fract() == 0.0 && float.abs() <= LIMIT
}

pub(super) fn check(path: &str, number: &Number, schema: &Schema, findings: &mut Findings) {
    let field = FieldPath::new(path);
    let kind = Kind::of(schema);
    let float = number.as_f64().unwrap_or_default();
    // Only integers that are integers in the JSON are compared as such.
    let integer = number.as_i64();
    findings.errors.extend(kind.misfit(integer, float, "Checked", path));
    let mut limit = |what: &str, limit: Option<f64>, holds: &dyn Fn(Compared) -> Option<String>| {
        let Some(limit) = limit else { return };
        let whole_limit = is_whole(limit).then_some(limit as i64);
        let misfit = kind.misfit(whole_limit, limit, what, path);
        let compared = match integer {
            Some(integer) if misfit.is_none() => Compared::Integers(integer, limit as i64),
            _ => Compared::Floats(float, limit),
        };
        findings.errors.extend(misfit);
        if let Some(message) = holds(compared) {
            // Of a factor of zero the factor is shown, as it is what is wrong.
            let value = match (what, compared) {
                ("MultipleOf", Compared::Integers(_, 0)) => "0".to_owned(),
                _ => compared.value(),
            };
            let value = BadValue::verbatim(value);
            findings.errors.push(FieldError::invalid(&field, value, message));
        }
    };
    limit("MultipleOf", schema.multiple_of, &|compared| match compared {
        Compared::Integers(_, 0) => {
            Some(format!("factor MultipleOf declared for {path} must be positive: 0"))
        }
        Compared::Integers(value, factor) if value.checked_rem(factor) == Some(0) => None,
        Compared::Floats(value, factor) if factor > 0.0 && is_whole(value / factor) => None,
        _ => Some(format!("{path} in body should be a multiple of {}", compared.limit())),
    });
    limit("Minimum boundary", schema.minimum, &|compared| {
        let exclusive = schema.exclusive_minimum;
        let holds = if exclusive { compared.above() } else { !compared.below() };
        let words = if exclusive { "greater than" } else { "greater than or equal to" };
        (!holds).then(|| format!("{path} in body should be {words} {}", compared.limit()))
    });
    limit("Maximum boundary", schema.maximum, &|compared| {
        let exclusive = schema.exclusive_maximum;
        let holds = if exclusive { compared.below() } else { !compared.above() };
        let words = if exclusive { "less than" } else { "less than or equal to" };
        (!holds).then(|| format!("{path} in body should be {words} {}", compared.limit()))
    });
    findings.passed += 1;
}

/// A value and its limit.
#[derive(Clone, Copy)]
enum Compared {
    Integers(i64, i64),
    Floats(f64, f64),
}

impl Compared {
    fn below(self) -> bool {
        match self {
            Self::Integers(value, limit) => value < limit,
            Self::Floats(value, limit) => value < limit,
        }
    }

    fn above(self) -> bool {
        match self {
            Self::Integers(value, limit) => value > limit,
            Self::Floats(value, limit) => value > limit,
        }
    }

    fn value(self) -> String {
        match self {
            Self::Integers(value, _) => value.to_string(),
            Self::Floats(value, _) => go_float(value),
        }
    }

    fn limit(self) -> String {
        match self {
            Self::Integers(_, limit) => limit.to_string(),
            Self::Floats(_, limit) => go_float(limit),
        }
    }
}

/// The range that a schema's type and format give.
enum Kind {
    Any,
    Integer,
    Int32,
    Int64,
    Float32,
}

impl Kind {
    fn of(schema: &Schema) -> Self {
        match (schema.kind.as_str(), schema.format.as_str()) {
            _ if schema.int_or_string => Self::Any,
            ("integer", "int32") => Self::Int32,
            ("integer", "int64") => Self::Int64,
            ("integer", _) => Self::Integer,
            ("number", "float") => Self::Float32,
            _ => Self::Any,
        }
    }

    /// The error about a value that is out of the range.
    fn misfit(
        &self,
        integer: Option<i64>,
        float: f64,
        what: &str,
        path: &str,
    ) -> Option<FieldError> {
        let integer = integer.or_else(|| is_whole(float).then_some(float as i64));
        let (fits, description) = match self {
            Self::Any => return None,
            Self::Integer => (integer.is_some(), "integer (default format)"),
            Self::Int64 => (integer.is_some(), "integer with format int64"),
            Self::Int32 => (
                integer.is_some_and(|integer| i32::try_from(integer).is_ok()),
                "integer with format int32",
            ),
            Self::Float32 => (float.abs() <= f64::from(f32::MAX), "number with format float"),
        };
        (!fits).then(|| {
            let message = format!("{what} value must be of type {description} in {path}");
            FieldError::invalid(&FieldPath::default(), "", message)
        })
    }
}
