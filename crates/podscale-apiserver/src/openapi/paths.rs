//! The endpoints of a resource.

use serde_json::{Map, Value, json};

use super::{Resource, reference};
use crate::resource::{ResourceInfo, Subresource};

/// Methods on a collection and the verbs that allow them.
const COLLECTION: [(&str, &str); 3] =
    [("get", "list"), ("post", "create"), ("delete", "deletecollection")];
/// Methods on one object that its subresources have as well.
const READ_AND_WRITE: [(&str, &str); 3] = [("get", "get"), ("put", "update"), ("patch", "patch")];
const DELETE: (&str, &str) = ("delete", "delete");

/// All endpoints of a resource; `schema` names the schema of its objects, `scale` that of its scale.
pub(super) fn of(
    resource: &Resource<'_>,
    schema: Option<&str>,
    scale: Option<&str>,
) -> Map<String, Value> {
    let info = resource.info;
    let root = root(info);
    let collection = match info.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", info.plural),
        false => format!("{root}/{}", info.plural),
    };
    let object = format!("{collection}/{{name}}");
    let endpoint = Endpoint { gvk: resource.gvk(), schema, namespaced: info.namespaced };
    let allowed = |(_, verb): &(&str, &str)| info.verbs.contains(verb);
    let mut paths = Map::new();
    let mut add = |path: String, operations: Map<String, Value>| {
        if !operations.is_empty() {
            paths.insert(path, Value::Object(operations));
        }
    };
    let on_collection = COLLECTION.into_iter().filter(allowed);
    add(collection, endpoint.operations(on_collection, false));
    if info.namespaced {
        let everywhere = Endpoint { namespaced: false, ..endpoint.clone() };
        let list = COLLECTION.into_iter().filter(|(_, verb)| *verb == "list").filter(allowed);
        add(format!("{root}/{}", info.plural), everywhere.operations(list, false));
    }
    let on_object = READ_AND_WRITE.into_iter().chain([DELETE]).filter(allowed);
    add(object.clone(), endpoint.operations(on_object, true));
    for subresource in &info.subresources {
        if let Some(below) = endpoint.below(subresource, scale) {
            let path = format!("{object}/{}", subresource.name());
            add(path, below.operations(READ_AND_WRITE, true));
        }
    }
    paths
}

/// Where the paths of a group and version begin.
fn root(info: &ResourceInfo) -> String {
    if info.group.is_empty() {
        format!("/api/{}", info.version)
    } else {
        format!("/apis/{}/{}", info.group, info.version)
    }
}

#[derive(Clone)]
struct Endpoint<'a> {
    gvk: Value,
    schema: Option<&'a str>,
    namespaced: bool,
}

impl<'a> Endpoint<'a> {
    /// The endpoint of a subresource; none if it is one for machines, which do not read this.
    fn below(&self, subresource: &Subresource, scale: Option<&'a str>) -> Option<Self> {
        match subresource {
            Subresource::Status => Some(self.clone()),
            Subresource::Scale(_) => Some(Self {
                gvk: json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
                schema: scale,
                ..self.clone()
            }),
            _ => None,
        }
    }

    /// The operations of methods and their verbs, by method.
    fn operations<'v>(
        &self,
        methods: impl IntoIterator<Item = (&'v str, &'v str)>,
        named: bool,
    ) -> Map<String, Value> {
        let methods = methods.into_iter();
        methods.map(|(method, verb)| (method.to_owned(), self.operation(verb, named))).collect()
    }

    fn operation(&self, verb: &str, named: bool) -> Value {
        let action = match verb {
            "create" => "post",
            "update" => "put",
            verb => verb,
        };
        let body = self.schema.map_or_else(|| json!({"type": "object"}), reference);
        let mut operation = json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self.gvk,
            "parameters": self.parameters(verb, named),
            "responses": {
                "200": {"description": "OK", "content": {"application/json": {"schema": body}}},
            },
        });
        let contents: &[&str] = match verb {
            "create" | "update" => &["application/json"],
            // Strategic merge patches are understood but not listed: kubectl would make them from
            // these schemas, which do not tell how lists merge, instead of from its own types.
            "patch" => &[
                "application/apply-patch+yaml",
                "application/json-patch+json",
                "application/merge-patch+json",
            ],
            _ => &[],
        };
        if !contents.is_empty() {
            let content: Map<String, Value> = contents
                .iter()
                .map(|kind| ((*kind).to_owned(), json!({"schema": {"type": "object"}})))
                .collect();
            operation["requestBody"] = json!({"content": content, "required": true});
        }
        operation
    }

    fn parameters(&self, verb: &str, named: bool) -> Vec<Value> {
        let parameter = |name: &str, place: &str, kind: &str| {
            let mut parameter = json!({"name": name, "in": place, "schema": {"type": kind}});
            if place == "path" {
                parameter["required"] = json!(true);
            }
            parameter
        };
        let mut parameters = Vec::new();
        if self.namespaced {
            parameters.push(parameter("namespace", "path", "string"));
        }
        if named {
            parameters.push(parameter("name", "path", "string"));
        }
        let queries: &[(&str, &str)] = match verb {
            "create" | "update" => {
                &[("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")]
            }
            "patch" => &[
                ("dryRun", "string"),
                ("fieldManager", "string"),
                ("fieldValidation", "string"),
                ("force", "boolean"),
            ],
            "delete" | "deletecollection" => &[
                ("dryRun", "string"),
                ("gracePeriodSeconds", "integer"),
                ("propagationPolicy", "string"),
            ],
            "list" => &[
                ("allowWatchBookmarks", "boolean"),
                ("continue", "string"),
                ("fieldSelector", "string"),
                ("labelSelector", "string"),
                ("limit", "integer"),
                ("resourceVersion", "string"),
                ("resourceVersionMatch", "string"),
                ("sendInitialEvents", "boolean"),
                ("timeoutSeconds", "integer"),
                ("watch", "boolean"),
            ],
            _ => &[],
        };
        parameters.extend(queries.iter().map(|(name, kind)| parameter(name, "query", kind)));
        parameters
    }
}
