//! `podscale convert`: autoscalers of one kind or version as another.

use super::manifests::{self, Manifest};
use super::{print, print_error, validate};
use clap::Args;
use clap::builder::PossibleValuesParser;
use podscale_api::convert::{self, ConvertError, FORMS, Form, Loss};
use podscale_api::document::{self, Document, Format};
use podscale_api::singlecloud;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::process::ExitCode;

/// Convert autoscalers between kinds and versions.
///
/// Prints every document: autoscalers in the requested form, everything else (and what already has that form)
/// byte for byte unchanged, with comments. YAML stays YAML and JSON stays JSON; singlecloud's form is always
/// JSON. No defaults are filled in. What a version cannot express goes into the annotations that Kubernetes
/// uses for this; what even those cannot hold is listed on standard error.
///
/// Exit codes: 0 if everything was carried over, 1 if something cannot be read or converted, or an API server
/// or the controller would reject the result (it is printed unchanged), 2 if something could not be carried
/// over, unless --lossy allows that, or for a usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    manifests: manifests::Arguments,

    /// The requested form.
    #[arg(long, value_name = "FORM", value_parser = PossibleValuesParser::new(FORMS.map(|form| form.name())))]
    to: String,

    /// The namespace of singlecloud's autoscalers that do not specify one: the names of their metrics by name
    /// and labels include it.
    #[arg(long, short, value_name = "NAME", default_value = convert::DEFAULT_NAMESPACE)]
    namespace: String,

    /// Exit with 0 even if something could not be carried over.
    #[arg(long)]
    lossy: bool,
}

/// What is wanted of every document.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    form: &'a dyn Form,
    namespace: &'a str,
}

/// What came out.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// All documents.
    text: String,
    /// What could not be carried over, and of what.
    lost: Vec<String>,
    /// What cannot be read or converted.
    errors: Vec<String>,
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let Some(form) = convert::form(&arguments.to) else {
        print_error(format_args!("there is no form {}", arguments.to));
        return ExitCode::from(2);
    };
    let (manifests, unreadable) = manifests::read(&arguments.manifests);
    let outcome = convert_all(&manifests, Wanted { form, namespace: &arguments.namespace });
    print(&outcome.text);
    let Outcome { lost, errors, .. } = &outcome;
    unreadable.iter().for_each(print_error);
    errors.iter().for_each(print_error);
    lost.iter().for_each(print_error);
    if !unreadable.is_empty() || !errors.is_empty() {
        ExitCode::FAILURE
    } else if !lost.is_empty() && !arguments.lossy {
        ExitCode::from(2)
    } else {
        ExitCode::SUCCESS
    }
}

/// A document that comes out.
struct Shown<'a> {
    text: Cow<'a, str>,
    /// How the document was written.
    format: Format,
    /// Whether it is the first one of its file.
    begins: bool,
}

/// Converts all files, one after the other.
fn convert_all(manifests: &[Manifest], wanted: Wanted<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut shown = Vec::new();
    for Manifest { name, text } in manifests {
        for (index, document) in document::split(text).into_iter().enumerate() {
            let converted = outcome.convert(name, &document, wanted);
            let text = converted.map_or(Cow::Borrowed(document.text), Cow::Owned);
            shown.push(Shown { text, format: document.format, begins: index == 0 });
        }
    }
    outcome.text = joined(&shown);
    outcome
}

/// All documents one after the other. Values of JSON need nothing between them, but among documents of YAML they do.
fn joined(documents: &[Shown<'_>]) -> String {
    let is_yaml = |one: &Shown<'_>| one.format == Format::Yaml && !one.text.trim().is_empty();
    let separated = documents.iter().any(is_yaml);
    let mut all = String::new();
    for Shown { text, format, begins } in documents {
        let set_off = *begins || (separated && *format == Format::Json);
        let before = !all.is_empty();
        if before && !all.ends_with('\n') && (set_off || *format == Format::Yaml) {
            all.push('\n');
        }
        if before && set_off && separated && !text.starts_with("---") && !text.trim().is_empty() {
            all.push_str("---\n");
            all.push_str(text.trim_start_matches('\n'));
        } else {
            all.push_str(text);
        }
    }
    all
}

impl Outcome {
    /// A document in the wanted form; nothing if it stays as it is.
    fn convert(
        &mut self,
        file: &str,
        document: &Document<'_>,
        wanted: Wanted<'_>,
    ) -> Option<String> {
        if !document.has_content() {
            return None;
        }
        let mut object = match document.read() {
            Ok(content) => content.value,
            Err(error) => {
                let place = error.place;
                self.errors.push(format!("{file}:{}:{}: {error}", place.line, place.column));
                return None;
            }
        };
        if !self.convert_object(file, &mut object, wanted) {
            return None;
        }
        match write(&object, document, wanted.form) {
            Ok(text) => Some(text),
            Err(error) => {
                self.errors.push(format!("{file}: cannot be written: {error}"));
                None
            }
        }
    }

    /// Converts an object, or those in a list; says whether anything changed.
    fn convert_object(&mut self, file: &str, object: &mut Value, wanted: Wanted<'_>) -> bool {
        if let Some(items) = list_of(object) {
            let changed = items.iter_mut().map(|item| self.convert_object(file, item, wanted));
            let changed = changed.fold(false, |any, changed| any | changed);
            if changed && object.get("data").is_some() {
                // A collection of singlecloud's holds nothing but its own.
                *object = json!({"apiVersion": "v1", "kind": "List", "items": object["data"]});
            }
            return changed;
        }
        match convert::convert_in(object, wanted.form, wanted.namespace) {
            Ok(Some(written)) => {
                let (named, form) = (named(object), wanted.form.name());
                let refused = validate::refusals(&written.object);
                if !refused.is_empty() {
                    let error = |why| format!("{file}: {named}: would be refused as {form}: {why}");
                    self.errors.extend(refused.into_iter().map(error));
                    return false;
                }
                let lost =
                    |loss: &Loss| format!("{file}: {named}: not carried over to {form}: {loss}");
                self.lost.extend(written.losses.iter().map(lost));
                *object = written.object;
                true
            }
            Ok(None) => false,
            Err(error) => {
                self.fail(file, object, &error);
                false
            }
        }
    }

    fn fail(&mut self, file: &str, object: &Value, error: &ConvertError) {
        self.errors.push(format!("{file}: {}: {error}", named(object)));
    }
}

/// The objects of a list of Kubernetes', or of a collection of singlecloud's.
fn list_of(object: &mut Value) -> Option<&mut Vec<Value>> {
    let is_list = object["kind"] == "List" && object["apiVersion"] == "v1";
    let is_collection = object["resourceType"] == singlecloud::TYPE;
    let name = match (is_list, is_collection) {
        (true, _) => "items",
        (_, true) => "data",
        _ => return None,
    };
    object.get_mut(name).and_then(Value::as_array_mut)
}

/// Kind, namespace and name, as far as an object says them.
fn named(object: &Value) -> String {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    if singlecloud::is_autoscaler(object) {
        return format!("{} {}", singlecloud::TYPE, text("/name"));
    }
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let slash = if namespace.is_empty() { "" } else { "/" };
    format!("{} {namespace}{slash}{name}", text("/kind"))
}

/// An object as its document was written; what was before it stays there, unless it would not be JSON then.
fn write(object: &Value, document: &Document<'_>, form: &dyn Form) -> Result<String, String> {
    match document.format {
        Format::Yaml if form.is_json() => {
            let text = serde_json::to_string_pretty(object).map_err(|error| error.to_string())?;
            let dashes = if document.lines_before > 0 { "---\n" } else { "" };
            Ok(format!("{dashes}{text}\n"))
        }
        Format::Json => {
            let space = document.text.len() - document.text.trim_start().len();
            let before = document.text.get(..space).unwrap_or_default();
            let text = serde_json::to_string_pretty(object).map_err(|error| error.to_string())?;
            Ok(format!("{before}{text}\n"))
        }
        Format::Yaml => {
            let text = serde_saphyr::to_string(object).map_err(|error| error.to_string())?;
            let end = if text.ends_with('\n') { "" } else { "\n" };
            Ok(format!("{}{text}{end}", document.head()))
        }
    }
}

#[cfg(test)]
mod tests;
