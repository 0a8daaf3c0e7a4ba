//! Reads an autoscaler that a client sent, and says what is wrong with it in singlecloud's words.
//!
//! Names of fields are taken in any case, as Go takes them. What only the server says (identity, links,
//! times, status) is passed over, so that what was read can be sent back.

use super::{Autoscaler, CustomMetric, Invalid, RESOURCE_NAMES, ResourceMetric, TARGET_KINDS};
use super::{TARGET_TYPES, TYPE};
use crate::labels::Labels;
use serde_json::{Map, Value};

/// The longest name.
const NAME_LIMIT: usize = 253;
/// What only the server says.
pub const READ_ONLY: [&str; 6] =
    ["id", "type", "links", "creationTimestamp", "deletionTimestamp", "status"];

/// What a client sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The autoscaler.
    pub autoscaler: Autoscaler,
    /// Fields that mean nothing, which are ignored.
    pub unknown: Vec<String>,
}

/// Whether a document is an autoscaler of singlecloud's: it has no kind, but says what it scales in its words.
pub fn is_autoscaler(document: &Value) -> bool {
    let Value::Object(fields) = document else { return false };
    let names = ["scaleTargetKind", "scaleTargetName"];
    let told = fields.keys().any(|key| names.iter().any(|name| key.eq_ignore_ascii_case(name)));
    let typed = fields.get("type").is_some_and(|given| given == TYPE);
    (told || typed) && !fields.contains_key("kind") && !fields.contains_key("apiVersion")
}

/// The namespace that an autoscaler's links lead to, if it has any.
pub fn namespace_of(body: &Value) -> Option<&str> {
    let links = body.get("links")?;
    let link = ["collection", "self"].iter().find_map(|name| links.get(name)?.as_str())?;
    let (_, rest) = link.split_once("/namespaces/")?;
    rest.split('/').next().filter(|namespace| !namespace.is_empty())
}

/// Reads an autoscaler.
///
/// # Errors
/// Says which field is wrong, and why.
pub fn read(body: &Value) -> Result<Read, Invalid> {
    let (read, mut wrong) = read_all(body);
    if wrong.is_empty() { Ok(read) } else { Err(wrong.swap_remove(0)) }
}

/// Reads an autoscaler as far as it makes sense, and says of every field that makes none why, the one first that
/// [`read`] gives.
pub fn read_all(body: &Value) -> (Read, Vec<Invalid>) {
    let (mut unknown, mut wrong) = (Vec::new(), Vec::new());
    let fields = noted(Fields::of(body, ""), &mut wrong);
    let Some(mut fields) = fields else {
        return (Read { autoscaler: Autoscaler::default(), unknown }, wrong);
    };
    fields.pass_over(&READ_ONLY);
    let name = fields.required("name").and_then(|field| field.text());
    let name = noted(name, &mut wrong);
    let kind = noted(fields.required("scaleTargetKind"), &mut wrong);
    let target = fields.required("scaleTargetName").and_then(|field| field.text());
    let target = noted(target, &mut wrong);
    let max_replicas = fields.required("maxReplicas").and_then(|field| field.number());
    let max_replicas = noted(max_replicas, &mut wrong);
    if let Some(name) = name {
        noted(check_name("name", name), &mut wrong);
    }
    // Whatever the case of its name: an unknown kind can never be scaled.
    let kind = kind.and_then(|kind| noted(kind.one_of(&TARGET_KINDS), &mut wrong));
    if let Some(target) = target {
        noted(check_name("scaleTargetName", target), &mut wrong);
    }
    let min_replicas = fields.take("minReplicas").map_or(Ok(0), |field| field.number());
    let min_replicas = noted(min_replicas, &mut wrong);
    let resource_metrics = items(fields.take("resourceMetrics"), &mut wrong, |item| {
        resource_metric(item, &mut unknown)
    });
    let custom_metrics =
        items(fields.take("customMetrics"), &mut wrong, |item| custom_metric(item, &mut unknown));
    unknown.extend(fields.rest());
    let autoscaler = Autoscaler {
        r#type: TYPE.to_owned(),
        name: name.unwrap_or_default().to_owned(),
        scale_target_kind: kind.unwrap_or_default().to_owned(),
        scale_target_name: target.unwrap_or_default().to_owned(),
        min_replicas: min_replicas.unwrap_or_default(),
        max_replicas: max_replicas.unwrap_or_default(),
        resource_metrics,
        custom_metrics,
        ..Autoscaler::default()
    };
    (Read { autoscaler, unknown }, wrong)
}

/// What was read, unless it is wrong.
fn noted<T>(read: Result<T, Invalid>, wrong: &mut Vec<Invalid>) -> Option<T> {
    read.map_err(|invalid| wrong.push(invalid)).ok()
}

/// The items of a list; those that cannot be read are empty, so that the others keep their places.
fn items<T: Default>(
    list: Option<Field<'_>>,
    wrong: &mut Vec<Invalid>,
    mut read: impl FnMut(&Field<'_>) -> Result<T, Invalid>,
) -> Vec<T> {
    let given = list.map_or(Ok(Vec::new()), |list| list.items());
    let given = noted(given, wrong).unwrap_or_default();
    given.iter().map(|item| noted(read(item), wrong).unwrap_or_default()).collect()
}

fn resource_metric(item: &Field<'_>, unknown: &mut Vec<String>) -> Result<ResourceMetric, Invalid> {
    let mut fields = Fields::of(item.value, &item.path)?;
    // Singlecloud checks these by the exact names of their fields; the rest is checked when it is used.
    let word = |field: Field<'_>, options: &[&'static str]| -> Result<String, Invalid> {
        if field.exact { field.one_of(options) } else { field.text() }.map(str::to_owned)
    };
    let text = |field: Option<Field<'_>>| -> Result<String, Invalid> {
        field.map_or(Ok(String::new()), |field| field.text().map(str::to_owned))
    };
    let resource_name = fields.take("resourceName");
    let target_type = fields.take("targetType");
    let metric = ResourceMetric {
        resource_name: resource_name.map_or(Ok(String::new()), |f| word(f, &RESOURCE_NAMES))?,
        target_type: target_type.map_or(Ok(String::new()), |f| word(f, &TARGET_TYPES))?,
        average_value: text(fields.take("averageValue"))?,
        average_utilization: fields.take("averageUtilization").map_or(Ok(0), |f| f.number())?,
    };
    unknown.extend(fields.rest());
    Ok(metric)
}

fn custom_metric(item: &Field<'_>, unknown: &mut Vec<String>) -> Result<CustomMetric, Invalid> {
    let mut fields = Fields::of(item.value, &item.path)?;
    let text = |field: Option<Field<'_>>| -> Result<String, Invalid> {
        field.map_or(Ok(String::new()), |field| field.text().map(str::to_owned))
    };
    let metric = CustomMetric {
        metric_name: text(fields.take("metricName"))?,
        labels: fields.take("labels").map_or(Ok(Labels::default()), |field| field.labels())?,
        average_value: text(fields.take("averageValue"))?,
    };
    unknown.extend(fields.rest());
    Ok(metric)
}

/// A name as Kubernetes' objects have it.
fn check_name(field: &str, name: &str) -> Result<(), Invalid> {
    if name.len() > NAME_LIMIT {
        let message = format!("exceed max domain name len limitation({NAME_LIMIT})");
        return Err(Invalid::new(field, message));
    }
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let part = |part: &str| {
        part.starts_with(letter)
            && part.ends_with(letter)
            && part.chars().all(|c| letter(c) || c == '-')
    };
    if name.split('.').all(part) {
        return Ok(());
    }
    Err(Invalid::new(
        field,
        "subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and \
         end with an alphanumeric character",
    ))
}

/// The fields of an object that are not read yet.
struct Fields<'a> {
    path: String,
    left: Vec<(&'a str, &'a Value)>,
}

/// One field.
struct Field<'a> {
    path: String,
    value: &'a Value,
    /// Whether its name is spelled as it should be.
    exact: bool,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value, path: &str) -> Result<Fields<'a>, Invalid> {
        let Value::Object(map) = value else {
            let what =
                if path.is_empty() { "the body".to_owned() } else { format!("field {path}") };
            return Err(Invalid::new(path, format!("{what} must be an object")));
        };
        Ok(Fields { path: path.to_owned(), left: entries(map) })
    }

    fn within(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A field that is there and not null; its exact spelling goes before others.
    fn take(&mut self, name: &str) -> Option<Field<'a>> {
        let exact = self.left.iter().position(|(key, _)| *key == name);
        let any = || self.left.iter().position(|(key, _)| key.eq_ignore_ascii_case(name));
        let at = exact.or_else(any)?;
        let (_, value) = self.left.swap_remove(at);
        let path = self.within(name);
        (!value.is_null()).then_some(Field { path, value, exact: exact.is_some() })
    }

    fn required(&mut self, name: &str) -> Result<Field<'a>, Invalid> {
        let path = self.within(name);
        self.take(name).ok_or_else(|| Invalid::new(path, format!("field {name} is missing")))
    }

    fn pass_over(&mut self, names: &[&str]) {
        self.left.retain(|(key, _)| !names.iter().any(|name| key.eq_ignore_ascii_case(name)));
    }

    /// What nobody asked for.
    fn rest(self) -> Vec<String> {
        self.left.iter().map(|(key, _)| self.within(key)).collect()
    }
}

fn entries(map: &Map<String, Value>) -> Vec<(&str, &Value)> {
    map.iter().map(|(key, value)| (key.as_str(), value)).collect()
}

impl<'a> Field<'a> {
    fn wrong(&self, form: &str) -> Invalid {
        Invalid::new(&self.path, format!("field {} must be {form}", self.path))
    }

    fn text(&self) -> Result<&'a str, Invalid> {
        self.value.as_str().ok_or_else(|| self.wrong("a string"))
    }

    fn number(&self) -> Result<i32, Invalid> {
        let number = self.value.as_i64().ok_or_else(|| self.wrong("an integer"))?;
        i32::try_from(number).map_err(|_| self.wrong("an integer of 32 bits"))
    }

    fn one_of(&self, options: &[&str]) -> Result<&'a str, Invalid> {
        let text = self.text()?;
        if options.contains(&text) {
            return Ok(text);
        }
        let message = format!("{text} isn't included in options [{}]", options.join(" "));
        Err(Invalid::new(&self.path, message))
    }

    fn items(&self) -> Result<Vec<Field<'a>>, Invalid> {
        let items = self.value.as_array().ok_or_else(|| self.wrong("a list"))?.iter();
        let field =
            |(at, value)| Field { path: format!("{}[{at}]", self.path), value, exact: true };
        Ok(items.enumerate().map(field).collect())
    }

    fn labels(&self) -> Result<Labels, Invalid> {
        let map = self.value.as_object().ok_or_else(|| self.wrong("an object"))?;
        let label = |(key, value): (&'a String, &'a Value)| {
            let field = Field { path: format!("{}.{key}", self.path), value, exact: true };
            Ok((key.as_str(), if value.is_null() { "" } else { field.text()? }))
        };
        map.iter().map(label).collect()
    }
}
