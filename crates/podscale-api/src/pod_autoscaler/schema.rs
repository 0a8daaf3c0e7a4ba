//! The words in which the fields of an object are described once: what each may be, what it is for, its
//! default and its rules. The schema of the CustomResourceDefinition and the reference in the
//! documentation are both made from such a description.

use serde_json::{Map, Value, json};

/// What values a field takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// A text of so many characters at most.
    Text(u32),
    /// A text of so many characters at most that a regular expression describes.
    Pattern(u32, &'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number within these bounds.
    Integer(i64, i64),
    /// A count that Kubernetes keeps in 64 bits.
    Long,
    /// An amount such as `500m` or `1Gi`.
    Quantity,
    /// An amount above zero.
    PositiveQuantity,
    /// One of these words, or an object with a number of replicas.
    ReplicasOr(&'static [&'static str]),
    /// A length of time in Go's form, such as `90s` or `1h30m`.
    Duration,
    /// A point in time such as `2026-01-01T08:00:00Z`.
    Time,
    /// Texts by name.
    Labels,
    /// Texts of any length by name.
    Texts,
    /// Yes or no.
    Truth,
    /// So many items at most.
    List(u32, &'static Shape),
    /// Items, so many at most, of which this field tells one from another.
    Named(u32, &'static str, &'static Shape),
    /// Fields of its own.
    Object(&'static Object),
}

/// An object and its fields.
#[derive(Debug)]
pub(super) struct Object {
    /// Its name in the reference.
    pub(super) name: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// Its fields, in the order of the reference.
    pub(super) fields: &'static [Field],
    /// What must hold between them.
    pub(super) rules: &'static [Rule],
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Its name.
    pub(super) name: &'static str,
    /// What it is for.
    pub(super) about: &'static str,
    /// What it may be.
    pub(super) shape: Shape,
    /// Whether it must be there.
    pub(super) required: bool,
    /// What it is if it is not given, in JSON.
    pub(super) default: Option<&'static str>,
    /// What must hold of it.
    pub(super) rules: &'static [Rule],
}

/// Something that must hold, in the Common Expression Language.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The expression.
    pub(super) holds: &'static str,
    /// What is said if it does not.
    pub(super) message: &'static str,
    /// The field below that is to blame, such as `.minReplicas`.
    pub(super) blames: Option<&'static str>,
}

/// A field that may be left out.
pub(super) const fn field(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, shape, required: false, default: None, rules: &[] }
}

impl Field {
    pub(super) const fn required(self) -> Field {
        Field { required: true, ..self }
    }

    pub(super) const fn default(self, json: &'static str) -> Field {
        Field { default: Some(json), ..self }
    }

    pub(super) const fn rules(self, rules: &'static [Rule]) -> Field {
        Field { rules, ..self }
    }
}

/// A rule about a value or an object as a whole.
pub(super) const fn rule(holds: &'static str, message: &'static str) -> Rule {
    Rule { holds, message, blames: None }
}

/// A rule about an object that one of its fields breaks.
pub(super) const fn rule_of(
    blames: &'static str,
    holds: &'static str,
    message: &'static str,
) -> Rule {
    Rule { holds, message, blames: Some(blames) }
}

/// Go's durations without signs; longer texts only repeat units.
const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$";
const DURATION_LENGTH: u32 = 32;
/// What Kubernetes takes as an amount.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
/// An amount with a digit other than zero and without a minus sign.
const POSITIVE_QUANTITY: &str = r"^\+?(0*[1-9][0-9]*(\.[0-9]*)?|0*\.0*[1-9][0-9]*)(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
const QUANTITY_LENGTH: u32 = 64;
/// What expressions can call a metric.
pub(super) const NAME: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// What can stand in a path.
pub(super) const SEGMENT: &str = "^[^/%]+$";

/// What a text must be that a pattern of the schema describes.
pub(super) fn pattern_in_words(pattern: &str) -> Option<&'static str> {
    Some(match pattern {
        DURATION => "a length of time such as 90s or 1h30m",
        QUANTITY => "an amount such as 10, 500m or 1Gi",
        POSITIVE_QUANTITY => "an amount above zero, such as 10, 500m or 1Gi",
        NAME => "letters, digits and underscores that do not begin with a digit",
        SEGMENT => "a name without / and %",
        _ => return None,
    })
}

impl Shape {
    /// The structural schema of such values.
    pub(super) fn schema(&self) -> Value {
        match self {
            Shape::Text(longest) => json!({"type": "string", "maxLength": longest}),
            Shape::Pattern(longest, pattern) => {
                json!({"type": "string", "maxLength": longest, "pattern": pattern})
            }
            Shape::OneOf(words) => json!({"type": "string", "enum": words}),
            Shape::Integer(least, most) => {
                json!({"type": "integer", "format": "int32", "minimum": least, "maximum": most})
            }
            Shape::Long => json!({"type": "integer", "format": "int64"}),
            Shape::Quantity => quantity(QUANTITY),
            Shape::PositiveQuantity => {
                let mut schema = quantity(POSITIVE_QUANTITY);
                schema["minimum"] = json!(1);
                schema
            }
            Shape::ReplicasOr(words) => replicas_or(words),
            Shape::Duration => {
                json!({"type": "string", "maxLength": DURATION_LENGTH, "pattern": DURATION})
            }
            Shape::Time => json!({"type": "string", "format": "date-time"}),
            Shape::Labels => json!({
                "type": "object", "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 63},
            }),
            Shape::Texts => json!({
                "type": "object", "maxProperties": 64,
                "additionalProperties": {"type": "string", "maxLength": 4096},
            }),
            Shape::Truth => json!({"type": "boolean"}),
            Shape::List(most, item) => json!({
                "type": "array", "maxItems": most, "items": item.schema(),
                "x-kubernetes-list-type": "atomic",
            }),
            Shape::Named(most, key, item) => json!({
                "type": "array", "maxItems": most, "items": item.schema(),
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key],
            }),
            Shape::Object(object) => object.schema(),
        }
    }

    /// The object inside, if values are objects or lists of them.
    pub(super) fn object(&self) -> Option<&'static Object> {
        match self {
            Shape::Object(object) => Some(object),
            Shape::List(_, item) | Shape::Named(_, _, item) => item.object(),
            _ => None,
        }
    }

    /// Such values in a few words, for the reference.
    pub(super) fn words(&self) -> String {
        match self {
            Shape::Text(_) | Shape::Pattern(..) => "text".to_owned(),
            Shape::OneOf(words) => code(words),
            Shape::Integer(least, most) if *most == i64::from(i32::MAX) => {
                format!("integer ≥ {least}")
            }
            Shape::Integer(least, most) => format!("integer, {least} to {most}"),
            Shape::Long => "integer".to_owned(),
            Shape::Quantity => "quantity".to_owned(),
            Shape::PositiveQuantity => "quantity > 0".to_owned(),
            Shape::ReplicasOr(words) => format!("{} or `{{replicas: N}}`", code(words)),
            Shape::Duration => "duration".to_owned(),
            Shape::Time => "time".to_owned(),
            Shape::Labels | Shape::Texts => "texts by name".to_owned(),
            Shape::Truth => "`true`, `false`".to_owned(),
            Shape::List(_, item) | Shape::Named(_, _, item) => format!("list of {}", item.words()),
            Shape::Object(object) => {
                format!("[{}](#{})", object.name, object.name.to_lowercase())
            }
        }
    }
}

fn code(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    quoted.join(", ")
}

/// No type is both a text and an object, so there is none, and each keyword judges the values that it is about: the
/// pattern texts, the fields objects. A bare number is what such fields were before they were objects.
fn replicas_or(words: &[&str]) -> Value {
    json!({
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"replicas": Shape::Integer(0, i32::MAX.into()).schema()},
        "required": ["replicas"],
        "maxProperties": 1,
        "maxLength": QUANTITY_LENGTH,
        "pattern": format!("^({})$", words.join("|")),
        "minimum": 0,
        "maximum": i32::MAX,
        "multipleOf": 1,
        "not": {"enum": [true, false]},
        "maxItems": 0,
        "minItems": 1,
    })
}

fn quantity(pattern: &str) -> Value {
    json!({
        "x-kubernetes-int-or-string": true,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": QUANTITY_LENGTH,
        "pattern": pattern,
    })
}

impl Object {
    /// The structural schema of the object.
    pub(super) fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.fields.iter().map(|field| (field.name.to_owned(), field.schema())).collect();
        let required: Vec<&str> =
            self.fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        let mut schema = json!({
            "type": "object", "description": self.about, "properties": properties,
        });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        add_rules(&mut schema, self.rules);
        schema
    }
}

impl Field {
    fn schema(&self) -> Value {
        let mut schema = self.shape.schema();
        schema["description"] = json!(self.about);
        if let Some(default) = self.default_value() {
            schema["default"] = default;
        }
        add_rules(&mut schema, self.rules);
        schema
    }

    /// What it is if it is not given.
    pub(super) fn default_value(&self) -> Option<Value> {
        self.default.and_then(|json| serde_json::from_str(json).ok())
    }
}

/// Adds rules to those that the schema has.
fn add_rules(schema: &mut Value, rules: &[Rule]) {
    if rules.is_empty() {
        return;
    }
    let mut all = schema["x-kubernetes-validations"].as_array().cloned().unwrap_or_default();
    all.extend(rules.iter().map(|Rule { holds, message, blames }| {
        let mut rule = json!({"rule": holds, "message": message});
        if let Some(field) = blames {
            rule["fieldPath"] = json!(field);
        }
        rule
    }));
    schema["x-kubernetes-validations"] = Value::Array(all);
}
