//! Values and expressions of the Common Expression Language.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cel::functions::{duration, timestamp};
use cel::objects::{Key, Map, OptionalValue};
use cel::{Context, ExecutionError, Program, Value as CelValue};
use serde_json::Value;

use super::nesting;
use super::schema::Schema;
use super::typing::place::draw;
use super::typing::{self, Purpose, Subject};

/// Longest expression that is compiled.
const MAX_LENGTH: usize = 10_000;

/// Functions of the language and its macros that can be used here.
const FUNCTIONS: [&str; 31] = [
    "bytes",
    "contains",
    "double",
    "duration",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "int",
    "lowerAscii",
    "matches",
    "max",
    "min",
    "optional.none",
    "optional.of",
    "orValue",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "trim",
    "uint",
    "value",
];

/// A compiled expression.
#[derive(Debug, Clone)]
pub(super) struct Expression {
    text: Arc<str>,
    program: Arc<Program>,
    /// How deep it nests at most.
    levels: usize,
}

impl Expression {
    /// Compiles an expression; the error tells why it cannot be used.
    pub(super) fn compile(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("expressions of more than {MAX_LENGTH} bytes are not compiled"));
        }
        let levels = nesting::levels(text)?;
        nesting::with_room(levels, || Self::read(text, levels))
    }

    fn read(text: &str, levels: usize) -> Result<Self, String> {
        let program = Program::compile(text).map_err(|found| {
            let drawn = found.errors.iter().map(|error| {
                let place = |part: isize| usize::try_from(part).unwrap_or(1);
                draw(text, place(error.pos.0), place(error.pos.1), &error.msg)
            });
            drawn.collect::<Vec<_>>().join("\n")
        })?;
        let references = program.references();
        // Operators are functions too, with names that no one can write.
        let named = |name: &&str| name.starts_with(|first: char| first.is_ascii_alphabetic());
        if let Some(unknown) =
            references.functions().into_iter().filter(named).find(|name| !FUNCTIONS.contains(name))
        {
            return Err(format!("the function '{unknown}' is not supported"));
        }
        Ok(Self { text: text.into(), program: Arc::new(program), levels })
    }

    /// Checks the expression against the schema that it is written for; the error is the message.
    pub(super) fn check(&self, subject: Subject<'_>, purpose: Purpose) -> Result<(), String> {
        nesting::with_room(self.levels, || {
            typing::check(self.program.expression(), &self.text, subject, purpose)
        })
    }

    /// How deep it nests at most.
    pub(super) fn levels(&self) -> usize {
        self.levels
    }

    /// Whether the expression reads the old value.
    pub(super) fn uses_old(&self) -> bool {
        self.program.references().has_variable("oldSelf")
    }

    /// Evaluates the expression, on a larger stack if it needs one.
    pub(super) fn evaluate(
        &self,
        value: CelValue,
        old: Option<CelValue>,
    ) -> Result<CelValue, String> {
        let mut context = Context::default();
        context.add_function("lowerAscii", lower_ascii);
        context.add_function("trim", trim);
        context.add_variable_from_value("self", value);
        if let Some(old) = old {
            context.add_variable_from_value("oldSelf", old);
        }
        let result = nesting::with_room(self.levels, || self.program.execute(&context));
        result.map_err(|error| match error {
            ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
            other => other.to_string(),
        })
    }
}

fn lower_ascii(cel::extractors::This(text): cel::extractors::This<Arc<String>>) -> String {
    text.to_ascii_lowercase()
}

fn trim(cel::extractors::This(text): cel::extractors::This<Arc<String>>) -> String {
    text.trim().to_owned()
}

/// An old value that may be absent, as expressions see it.
pub(super) fn optional(value: Option<CelValue>) -> CelValue {
    CelValue::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// A value as expressions see it: typed by the schema, with only the fields that it specifies.
pub(super) fn typed(value: &Value, schema: &Schema) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) if schema.kind != "number" => CelValue::Int(integer),
            _ => CelValue::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => typed_text(text, &schema.format),
        Value::Array(items) => {
            let any = Schema::default();
            let schema = schema.items.as_deref().unwrap_or(&any);
            CelValue::List(Arc::new(items.iter().map(|item| typed(item, schema)).collect()))
        }
        Value::Object(fields) => {
            let mut entries = HashMap::new();
            for (name, value) in fields {
                if let Some(property) = schema.properties.get(name) {
                    entries.insert(key(escaped(name)), typed(value, property));
                } else if let Some(schema) = schema.field(name) {
                    entries.insert(key(name.clone()), typed(value, schema));
                } else if schema.embedded_resource && matches!(name.as_str(), "apiVersion" | "kind")
                {
                    entries.insert(key(name.clone()), typed(value, &Schema::default()));
                }
            }
            CelValue::Map(Map { map: Arc::new(entries) })
        }
    }
}

/// Texts of some formats are values of their own; what cannot be read as one stays a text.
fn typed_text(text: &str, format: &str) -> CelValue {
    let owned = |text: &str| Arc::new(text.to_owned());
    let read = match format {
        "byte" => STANDARD.decode(text).ok().map(|bytes| CelValue::Bytes(Arc::new(bytes))),
        "date" => timestamp(owned(&format!("{text}T00:00:00Z"))).ok(),
        "date-time" => timestamp(owned(text)).ok(),
        "duration" => duration(owned(text)).ok(),
        _ => None,
    };
    read.unwrap_or_else(|| CelValue::String(owned(text)))
}

fn key(name: String) -> Key {
    Key::String(Arc::new(name))
}

/// The name of a field in expressions, where not every character can be written.
pub(super) fn escaped(name: &str) -> String {
    const RESERVED: [&str; 20] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
    ];
    if RESERVED.contains(&name) || name == "while" {
        return format!("__{name}__");
    }
    name.replace("__", "__underscores__")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__")
}
