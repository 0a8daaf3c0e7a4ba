//! The reference of all fields, in Markdown.

use std::fmt::Write;

use super::fields::{SPEC, STATUS};
use super::schema::{Field, Object};
use super::{API_VERSION, KIND};

/// The page `docs/podautoscaler-reference.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = format!(
        "# {KIND}: all fields\n\n\
         All fields of `{API_VERSION}`, generated from the description that the schema is made from as \
         well; a test keeps it current. What they are good for is in \
         [podautoscaler.md](podautoscaler.md).\n\n\
         Durations are written as in Go (`90s`, `1h30m`), times as `2026-01-01T08:00:00Z`, quantities as \
         everywhere in Kubernetes (`500m`, `1Gi`).\n"
    );
    let mut objects: Vec<&'static Object> = Vec::new();
    for root in [&SPEC, &STATUS] {
        collect(root, &mut objects);
    }
    for object in objects {
        section(object, &mut page);
    }
    page
}

/// An object and those inside it, each once, in the order in which they are met.
fn collect(object: &'static Object, found: &mut Vec<&'static Object>) {
    if found.iter().any(|known| std::ptr::eq(*known, object)) {
        return;
    }
    found.push(object);
    for inner in object.fields.iter().filter_map(|field| field.shape.object()) {
        collect(inner, found);
    }
}

fn section(object: &Object, page: &mut String) {
    // Writing to a String does not fail.
    let _ = write!(page, "\n## {}\n{}\n\n", object.name, object.about);
    page.push_str("| field | values | default | meaning |\n|---|---|---|---|\n");
    for field in object.fields {
        row(field, page);
    }
    let rules = object.rules.iter().map(|rule| (rule.blames, rule.message));
    for (blames, message) in rules {
        let field = blames.map_or(String::new(), |field| format!("`{}` ", &field[1..]));
        let _ = write!(page, "\n- {field}{message}");
    }
    if !object.rules.is_empty() {
        page.push('\n');
    }
}

fn row(field: &Field, page: &mut String) {
    let default = match (field.default_value(), field.required) {
        (Some(value), _) => format!("`{value}`"),
        (None, true) => "required".to_owned(),
        (None, false) => String::new(),
    };
    let rules: Vec<String> =
        field.rules.iter().map(|rule| format!(" It {}.", rule.message)).collect();
    // A bar would end the cell.
    let about = format!("{}{}", field.about, rules.concat()).replace('|', "\\|");
    let words = field.shape.words();
    let _ = writeln!(page, "| `{}` | {words} | {default} | {about} |", field.name);
}
