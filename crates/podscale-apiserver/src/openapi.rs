//! OpenAPI documents of what is served: version 3 for each group and version, version 2 for all.
//!
//! Clients read from them what fields there are (`kubectl explain`) and whether the server checks
//! fields itself (`kubectl apply`, `kubectl create`). Documents are made when first asked for.

mod builtin;
mod custom;
mod paths;
mod v2;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::resource::{ResourceInfo, Subresource};

/// Where version 3 documents hold their schemas.
const SCHEMAS: &str = "#/components/schemas/";

/// One resource of the documents.
#[derive(Debug, Clone, Copy)]
pub struct Resource<'a> {
    /// Names, scope and endpoints.
    pub info: &'a ResourceInfo,
    /// The `openAPIV3Schema` of a custom resource.
    pub schema: Option<&'a Value>,
}

impl Resource<'_> {
    /// Path of its group and version in the index, such as `apis/apps/v1`.
    fn document(&self) -> String {
        let ResourceInfo { group, version, .. } = self.info;
        if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
    }

    fn gvk(&self) -> Value {
        let ResourceInfo { group, version, kind, .. } = self.info;
        json!({"group": group, "version": version, "kind": kind})
    }

    fn fingerprint(&self, hasher: &mut DefaultHasher) {
        let info = self.info;
        (&info.group, &info.version, &info.kind, &info.plural, info.namespaced).hash(hasher);
        let names: Vec<&str> = info.subresources.iter().map(Subresource::name).collect();
        names.hash(hasher);
        self.schema.map(Value::to_string).hash(hasher);
    }
}

fn fingerprint<'a>(resources: impl IntoIterator<Item = &'a Resource<'a>>) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    resources.into_iter().for_each(|resource| resource.fingerprint(&mut hasher));
    hasher.finish()
}

/// What a document describes, as a hash, and its bytes.
type Document = (u64, Arc<[u8]>);

/// Makes documents and keeps them until what they describe changes.
#[derive(Debug, Default)]
pub struct Documents {
    made: Mutex<HashMap<String, Document>>,
}

impl Documents {
    /// The index at `/openapi/v3`; a document's address changes with its content.
    pub fn index(&self, resources: &[Resource<'_>]) -> Value {
        let mut groups: BTreeMap<String, Vec<Resource<'_>>> = BTreeMap::new();
        for resource in resources {
            groups.entry(resource.document()).or_default().push(*resource);
        }
        let paths: Map<String, Value> = groups
            .into_iter()
            .map(|(path, resources)| {
                let hash = fingerprint(&resources);
                let address = format!("/openapi/v3/{path}?hash={hash:016X}");
                (path, json!({"serverRelativeURL": address}))
            })
            .collect();
        json!({ "paths": paths })
    }

    /// The document at `/openapi/v3/` and this path, such as `apis/apps/v1`; none if nothing of it
    /// is served.
    pub fn group_version(&self, path: &str, resources: &[Resource<'_>]) -> Option<Arc<[u8]>> {
        let own: Vec<Resource<'_>> =
            resources.iter().copied().filter(|resource| resource.document() == path).collect();
        if own.is_empty() {
            return None;
        }
        Some(self.kept(path, fingerprint(&own), || json_bytes(&version_3(&own))))
    }

    /// The document at `/openapi/v2`, in the form that is wanted.
    pub fn version_2(&self, form: Form, resources: &[Resource<'_>]) -> Arc<[u8]> {
        let hash = fingerprint(resources);
        let document = || v2::document(&version_3(resources));
        match form {
            Form::Json => self.kept("v2", hash, || json_bytes(&document())),
            Form::Protobuf => {
                self.kept("v2 in protobuf", hash, || v2::protobuf::encode(&document()))
            }
        }
    }

    fn kept(&self, name: &str, hash: u64, make: impl FnOnce() -> Vec<u8>) -> Arc<[u8]> {
        let made = || self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((old, bytes)) = made().get(name)
            && *old == hash
        {
            return Arc::clone(bytes);
        }
        // Made without the lock held: it takes a while, and doing it twice harms no one.
        let bytes: Arc<[u8]> = make().into();
        made().insert(name.to_owned(), (hash, Arc::clone(&bytes)));
        bytes
    }
}

fn json_bytes(document: &Value) -> Vec<u8> {
    document.to_string().into_bytes()
}

/// How version 2 is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As JSON.
    Json,
    /// As gnostic's protobuf messages.
    Protobuf,
}

impl Form {
    /// The first form of an `Accept` header that is written here.
    pub fn accepted(accept: &str) -> Option<Self> {
        let known = |range: &str| match range.split(';').next().unwrap_or_default().trim() {
            "" | "*/*" | "application/*" | "application/json" => Some(Self::Json),
            // The second is how it was called before; clients still do.
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
            | "application/com.github.proto-openapi.spec.v2@v1.0+protobuf" => Some(Self::Protobuf),
            _ => None,
        };
        accept.split(',').find_map(known)
    }

    /// The type of the answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
        }
    }
}

fn version_3(resources: &[Resource<'_>]) -> Value {
    let mut schemas = builtin::Schemas::default();
    let mut all_paths = Map::new();
    let mut own = Map::new();
    for resource in resources {
        let name = match resource.schema {
            Some(schema) => {
                schemas.add_metadata();
                let name = custom::name(resource.info);
                own.insert(name.clone(), custom::schema(resource, schema));
                Some(name)
            }
            None if resource.info.custom => {
                let name = custom::name(resource.info);
                own.insert(name.clone(), custom::schema(resource, &Value::Null));
                Some(name)
            }
            None => schemas.add(resource.info),
        };
        let scale = resource.info.scale().is_some().then(|| schemas.add_scale());
        all_paths.extend(paths::of(resource, name.as_deref(), scale.as_deref()));
    }
    let mut components = schemas.take(resources);
    components.extend(own);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.0"},
        "paths": all_paths,
        "components": {"schemas": components},
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("{SCHEMAS}{name}")})
}
