//! What the server would say to a new object of a custom resource, without a server: for programs that check
//! files.

use podscale_api::field_error::metadata::check_create;
use podscale_api::field_error::names::dns_subdomain;
use podscale_api::field_error::{FieldError, distinct};
use serde_json::Value;

use crate::custom::{self, Custom};
use crate::types;
use crate::types::decode::{Mismatch, decode_at};
use crate::value::{fields, metadata, text};

/// The namespace of objects that name none.
const DEFAULT_NAMESPACE: &str = "default";
/// What stands for the characters that the server would add to a prefix.
const SUFFIX: &str = "xxxxx";

/// A CustomResourceDefinition whose objects can be checked.
#[derive(Debug)]
pub struct CustomResource(Custom);

/// What became of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// As it would be stored, defaults filled in.
    pub object: Value,
    /// Paths of fields that the definition does not have; kubectl asks the server to refuse them.
    pub unknown: Vec<String>,
    /// What is wrong with it.
    pub errors: Vec<FieldError>,
}

impl CustomResource {
    /// Reads a definition; nothing if it serves no version.
    pub fn new(definition: &Value) -> Option<Self> {
        custom::versions(definition).into_iter().next().map(Self)
    }

    /// Checks an object that is to be created.
    ///
    /// # Errors
    /// Its metadata cannot even be read.
    pub fn check(&self, object: &Value) -> Result<Checked, Mismatch> {
        let mut object = object.clone();
        let mut unknown = self.shape(&mut object)?;
        if self.0.info.has_status() {
            fields(&mut object).remove("status");
        }
        self.0.fill_defaults(&mut object);
        self.name(&mut object);
        let given = object.get("metadata").unwrap_or(&Value::Null);
        let mut errors = check_create(given, self.0.info.namespaced, dns_subdomain);
        errors.extend(self.0.check(&object, None, true));
        unknown.sort_unstable();
        Ok(Checked { object, unknown, errors: distinct(errors) })
    }

    /// Leaves what the definition has, and gives the paths of the rest.
    fn shape(&self, object: &mut Value) -> Result<Vec<String>, Mismatch> {
        let known = types::kubernetes();
        let mut unknown = Vec::new();
        if let Some(ty) = known.find("meta/v1.ObjectMeta") {
            let below = |path: &str| match path {
                "" => "metadata".to_owned(),
                path => format!("metadata.{path}"),
            };
            let given = fields(object).remove("metadata").unwrap_or_default();
            let decoded = decode_at(known, &ty, given).map_err(|mismatch| Mismatch {
                path: below(&mismatch.path),
                message: mismatch.message,
            })?;
            unknown.extend(decoded.unknown.iter().map(|path| below(path)));
            fields(object).insert("metadata".to_owned(), decoded.value);
        }
        let pruned = self.0.prune(object);
        let pruned = pruned.map_err(|error| {
            let message = error.body();
            Mismatch { path: error.field, message }
        })?;
        unknown.extend(pruned);
        Ok(unknown)
    }

    /// Gives it the namespace and the name that it would get.
    fn name(&self, object: &mut Value) {
        let generated =
            match (text(object, "/metadata/name"), text(object, "/metadata/generateName")) {
                ("", prefix) if !prefix.is_empty() => Some(format!("{prefix}{SUFFIX}")),
                _ => None,
            };
        let namespaceless = text(object, "/metadata/namespace").is_empty();
        let metadata = metadata(object);
        if let Some(name) = generated {
            metadata.insert("name".to_owned(), name.into());
        }
        if namespaceless && self.0.info.namespaced {
            metadata.insert("namespace".to_owned(), DEFAULT_NAMESPACE.into());
        }
    }
}
