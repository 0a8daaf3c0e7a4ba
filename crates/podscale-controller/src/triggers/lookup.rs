//! Looks up what triggers refer to in the cluster.

use super::{AuthenticationName, Limits, Triggers};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use podscale_client::call::{self, About, CallError, segment};
use podscale_scalers::Secret;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use tokio::sync::OnceCell;

/// How long a token of a service account holds; all are asked for again long before.
const TOKEN_SECONDS: i64 = 3600;
/// The largest file of credentials that is read.
const LARGEST_FILE_BYTES: u64 = 1024 * 1024;

/// Why something that a trigger refers to cannot be had. No text has a value in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LookupError {
    /// The API server did not answer as it usually does: it may be different in a moment.
    #[error("{what} cannot be read: {problem}")]
    Unsure {
        /// What was to be read.
        what: String,
        /// What the API server says.
        problem: String,
    },
    /// It is not there, or is not what it should be.
    #[error("{0}")]
    Missing(String),
}

impl LookupError {
    /// Why a read failed.
    fn of(what: &str, error: &CallError) -> LookupError {
        match error.code() {
            Some(404) => LookupError::Missing(format!("{what} does not exist")),
            Some(403) => LookupError::Missing(format!("{what} may not be read: {error}")),
            _ => LookupError::Unsure { what: what.to_owned(), problem: error.to_string() },
        }
    }
}

/// What keeps values by key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// A Secret.
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

/// A key of a Secret or ConfigMap.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key<'a> {
    /// Its value is a text.
    Text(&'a str),
    /// Its value is a file, which need not be a text.
    File(&'a str),
}

impl Store {
    fn kind(self) -> &'static str {
        match self {
            Store::Secret => "Secret",
            Store::ConfigMap => "ConfigMap",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Store::Secret => "secrets",
            Store::ConfigMap => "configmaps",
        }
    }

    /// A value of it, if it has the key.
    fn value(self, object: &Value, key: &str) -> Option<Result<Secret, &'static str>> {
        let text = object.get("data")?.get(key)?.as_str()?;
        if self == Store::ConfigMap {
            return Some(Ok(text.into()));
        }
        let decoded = STANDARD.decode(text).map_err(|_| "is not base64");
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "is not a text"));
        Some(text.map(Secret::from))
    }

    /// As [`Store::value`], but a file that is no text stays in base64, as its source expects it.
    fn file(self, object: &Value, key: &str) -> Option<Result<Secret, &'static str>> {
        let text = object.get("data")?.get(key)?.as_str()?;
        let is_binary = |bytes: &Vec<u8>| bytes.contains(&0);
        match self == Store::Secret && STANDARD.decode(text).as_ref().is_ok_and(is_binary) {
            true => Some(Ok(text.into())),
            false => self.value(object, key),
        }
    }
}

/// What was read while some objects are resolved: each thing once, and nothing is kept longer than that.
#[derive(Default)]
pub(crate) struct Reads {
    answers: Mutex<HashMap<String, Answer>>,
    vaults: Mutex<HashMap<AuthenticationName, FromVault>>,
}

type Answer = Arc<OnceCell<Result<Arc<Value>, CallError>>>;
/// Parameters with their values.
type FromVault = Arc<OnceCell<Result<Arc<[(String, Secret)]>, LookupError>>>;

impl Reads {
    /// The place for what an authentication has in Vault.
    pub(super) fn vault(&self, name: &AuthenticationName) -> FromVault {
        Arc::clone(self.vaults.lock().entry(name.clone()).or_default())
    }
}

impl Limits {
    /// Whether credentials of a namespace are read.
    pub(super) fn allow(&self, namespace: &str) -> Result<(), LookupError> {
        let all = self.namespaces.is_empty();
        if all || self.namespaces.contains(namespace) || self.own_namespace == namespace {
            return Ok(());
        }
        Err(LookupError::Missing(format!(
            "namespace {namespace:?} is not one of the controller's --trigger-namespaces: no Secrets \
             and ConfigMaps are read there"
        )))
    }

    /// Where a file of credentials is.
    pub(super) fn file(&self, path: &str) -> Result<PathBuf, LookupError> {
        let Some(folder) = &self.files else {
            let missing = "filePath needs a controller that was started with --trigger-files";
            return Err(LookupError::Missing(missing.to_owned()));
        };
        let inside = Path::new(path.trim_start_matches('/'));
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if path.is_empty() || !inside.components().all(is_plain) {
            let outside = format!("filePath {path:?} is not a path below --trigger-files");
            return Err(LookupError::Missing(outside));
        }
        Ok(folder.join(inside))
    }
}

impl Triggers {
    /// Reads an object, once for all who need it now.
    pub(super) async fn read(
        &self,
        reads: &Reads,
        what: &str,
        path: &str,
        about: About<'_>,
    ) -> Result<Arc<Value>, LookupError> {
        let answer = Arc::clone(reads.answers.lock().entry(path.to_owned()).or_default());
        let get = || async { call::get::<Value>(&self.client, path, about).await.map(Arc::new) };
        let read = answer.get_or_init(|| Box::pin(get())).await;
        read.clone().map_err(|error| LookupError::of(what, &error))
    }

    /// A value of a Secret or ConfigMap; none if it has no such key.
    ///
    /// # Errors
    /// It cannot be read, or its value is no text.
    pub(super) async fn value(
        &self,
        reads: &Reads,
        store: Store,
        namespace: &str,
        name: &str,
        key: Key<'_>,
    ) -> Result<Option<Secret>, LookupError> {
        self.limits.allow(namespace)?;
        let (kind, plural) = (store.kind(), store.plural());
        let what = format!("{kind} {name:?} of namespace {namespace:?}");
        let path = format!("/api/v1/namespaces/{}/{plural}/{}", segment(namespace), segment(name));
        let object = self.read(reads, &what, &path, About { resource: plural, name }).await?;
        let (value, key) = match key {
            Key::Text(key) => (store.value(&object, key), key),
            Key::File(key) => (store.file(&object, key), key),
        };
        let value = value.transpose();
        value.map_err(|problem| LookupError::Missing(format!("key {key:?} of {what} {problem}")))
    }

    /// A token of a service account: for the API server, or for somebody else.
    ///
    /// # Errors
    /// The API server gives none.
    pub(super) async fn token(
        &self,
        namespace: &str,
        name: &str,
        audience: Option<&str>,
    ) -> Result<Secret, LookupError> {
        self.limits.allow(namespace)?;
        let what = format!("a token of ServiceAccount {name:?} of namespace {namespace:?}");
        let (namespace, account) = (segment(namespace), segment(name));
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let mut request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS}});
        if let Some(audience) = audience {
            request["spec"]["audiences"] = json!([audience]);
        }
        let about = About { resource: "serviceaccounts", name };
        let answer: Value = call::send(&self.client, "POST", &path, &request, about)
            .await
            .map_err(|error| LookupError::of(&what, &error))?;
        let token = answer.pointer("/status/token").and_then(Value::as_str);
        token.map(Secret::from).ok_or_else(|| {
            LookupError::Missing(format!("{what} is not in the answer of the API server"))
        })
    }

    /// The values of a file of credentials: a JSON object of texts.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub(super) async fn file(&self, path: &str) -> Result<HashMap<String, Secret>, LookupError> {
        let file = self.limits.file(path)?;
        let wrong = |problem: String| LookupError::Missing(format!("filePath {path:?}: {problem}"));
        let about = tokio::fs::metadata(&file).await.map_err(|error| wrong(error.to_string()))?;
        if about.len() > LARGEST_FILE_BYTES {
            return Err(wrong(format!("it has more than {LARGEST_FILE_BYTES} bytes")));
        }
        let text = tokio::fs::read(&file).await.map_err(|error| wrong(error.to_string()))?;
        // What serde says of wrong JSON may have values in it.
        let values: HashMap<String, String> = serde_json::from_slice(&text)
            .map_err(|_| wrong("it is not a JSON object of texts".to_owned()))?;
        Ok(values.into_iter().map(|(name, value)| (name, Secret::from(value))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_need_not_be_texts() {
        let keytab = STANDARD.encode([5, 2, 0, 0, 0, 255]);
        let secret = json!({"data": {"file": keytab, "text": STANDARD.encode("BQIA"), "odd": "%"}});
        for (key, as_text, as_file) in [
            ("file", Err("is not a text"), Ok(keytab.as_str())),
            ("text", Ok("BQIA"), Ok("BQIA")),
            ("odd", Err("is not base64"), Err("is not base64")),
        ] {
            let expose = |value: Option<Result<Secret, &'static str>>| {
                value.expect("a key").map(|value| value.expose().to_owned())
            };
            assert_eq!(expose(Store::Secret.value(&secret, key)), as_text.map(str::to_owned));
            assert_eq!(expose(Store::Secret.file(&secret, key)), as_file.map(str::to_owned));
        }
        assert!(Store::Secret.file(&secret, "absent").is_none());
    }
}
