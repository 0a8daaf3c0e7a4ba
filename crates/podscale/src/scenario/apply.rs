//! Creates the objects of a scenario through the API, as anybody would.

use kube::Client;
use podscale_client::call::{self, About, CallError, query};
use podscale_client::discovery::{MapperError, RestMapper};
use serde_json::Value;

/// The field manager of the objects.
const MANAGER: &str = "podscale-demo";

/// Why an object could not be created; its text is one line.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Its kind is not known.
    #[error("cannot create {what}: {source}")]
    Kind {
        /// Kind and name of the object.
        what: String,
        /// Why not.
        source: MapperError,
    },
    /// The API server refused it.
    #[error("cannot create {what}: {source}")]
    Call {
        /// Kind and name of the object.
        what: String,
        /// Why not.
        source: CallError,
    },
}

/// Creates an object; namespaces that exist already are fine.
///
/// # Errors
/// Its kind is not known, or the API server refuses it, for instance for a field that it does not
/// know.
pub async fn apply(
    client: &Client,
    mapper: &RestMapper,
    manifest: &Value,
) -> Result<(), ApplyError> {
    let text = |pointer: &str| manifest.pointer(pointer).and_then(Value::as_str);
    let (version, kind) = (text("/apiVersion").unwrap_or(""), text("/kind").unwrap_or(""));
    let name = text("/metadata/name").unwrap_or("");
    let what = || format!("{kind} {name}");
    let resource = mapper.of_version(version, kind).await;
    let resource = resource.map_err(|source| ApplyError::Kind { what: what(), source })?;
    let mut object = manifest.clone();
    let namespace = text("/metadata/namespace").unwrap_or("default");
    if resource.namespaced
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let query = query(&[("fieldManager", MANAGER), ("fieldValidation", "Strict")]);
    let path = format!("{}{query}", resource.path(namespace));
    let about = About { resource: &resource.qualified(), name };
    let created: Result<Value, CallError> = call::send(client, "POST", &path, &object, about).await;
    match created {
        Ok(_) => Ok(()),
        Err(error) if kind == "Namespace" && error.is_already_exists() => Ok(()),
        Err(source) => Err(ApplyError::Call { what: what(), source }),
    }
}
