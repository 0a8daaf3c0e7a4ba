//! One version of one object: its bytes as they go over the wire, and what selectors ask about.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;

use super::Draft;

/// Values that field selectors can ask for, besides name and namespace.
pub type Fields = Vec<(&'static str, Box<str>)>;

/// One version of one object. Never changes once it is written.
#[derive(Debug)]
pub struct Object {
    /// Key within its resource.
    pub key: Arc<str>,
    /// The revision that wrote this version.
    pub revision: u64,
    /// Labels in order of their keys.
    labels: Box<[(Box<str>, Box<str>)]>,
    fields: Box<[(&'static str, Box<str>)]>,
    bytes: Bytes,
    /// Where the bytes continue after kind and apiVersion.
    body: usize,
}

impl Object {
    pub(super) fn new(key: &str, revision: u64, draft: Draft) -> Self {
        let Draft { mut value, fields } = draft;
        let metadata = value.get_mut("metadata").and_then(Value::as_object_mut);
        let mut labels = Vec::new();
        if let Some(metadata) = metadata {
            metadata.insert("resourceVersion".to_owned(), Value::from(revision.to_string()));
            if let Some(given) = metadata.get("labels").and_then(Value::as_object) {
                labels = given
                    .iter()
                    .map(|(key, value)| {
                        (Box::from(key.as_str()), Box::from(value.as_str().unwrap_or_default()))
                    })
                    .collect();
                labels.sort_unstable();
            }
        }
        let (bytes, body) = encode(&value);
        Self {
            key: key.into(),
            revision,
            labels: labels.into(),
            fields: fields.into(),
            bytes,
            body,
        }
    }

    /// The same object, said to be of another revision.
    pub fn at_revision(&self, revision: u64) -> Self {
        let draft = Draft { value: self.value(), fields: self.fields.to_vec() };
        Self::new(&self.key, revision, draft)
    }

    /// The whole object as JSON.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// The object's JSON after `{`, kind and apiVersion.
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.body..).unwrap_or_default()
    }

    /// The object as a value.
    pub fn value(&self) -> Value {
        // The bytes were written from a value, so they parse.
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The object's namespace; empty for cluster-wide objects.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&*self.key, |(_, name)| name)
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        let at = self.labels.binary_search_by(|(given, _)| (**given).cmp(key)).ok()?;
        self.labels.get(at).map(|(_, value)| &**value)
    }

    /// The value of a field that selectors may ask for; `None` if they may not.
    pub fn field(&self, path: &str) -> Option<&str> {
        match path {
            "metadata.name" => Some(self.name()),
            "metadata.namespace" => Some(self.namespace()),
            _ => self.fields.iter().find(|(name, _)| *name == path).map(|(_, value)| &**value),
        }
    }
}

/// Writes kind and apiVersion first, so that list items can be cut out without them.
fn encode(value: &Value) -> (Bytes, usize) {
    let mut out = BytesMut::with_capacity(1024).writer();
    let Some(object) = value.as_object() else {
        return (Bytes::from_static(b"{}"), 1);
    };
    let mut first = true;
    let mut body = 1;
    out.get_mut().put_u8(b'{');
    let order = ["kind", "apiVersion", "metadata"];
    let leading = order.iter().filter_map(|name| object.get_key_value(*name));
    let rest = object.iter().filter(|(name, _)| !order.contains(&name.as_str()));
    for (name, value) in leading.chain(rest) {
        if !first {
            out.get_mut().put_u8(b',');
        }
        if matches!(name.as_str(), "kind" | "apiVersion") {
            body = usize::MAX;
        } else if body == usize::MAX {
            body = out.get_ref().len();
        }
        first = false;
        // Writing into memory cannot fail, and every key is a string.
        let _ = serde_json::to_writer(&mut out, name);
        out.get_mut().put_u8(b':');
        let _ = serde_json::to_writer(&mut out, value);
    }
    out.get_mut().put_u8(b'}');
    let bytes = out.into_inner().freeze();
    let body = body.min(bytes.len().saturating_sub(1));
    (bytes, body)
}
