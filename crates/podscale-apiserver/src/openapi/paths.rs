//! The endpoints of a resource.

use serde_json::{Map, Value, json};

use super::{Resource, reference};
use crate::resource::Subresource;

/// All endpoints of a resource; `schema` names the schema of its objects, `scale` that of its scale.
pub(super) fn of(
    resource: &Resource<'_>,
    schema: Option<&str>,
    scale: Option<&str>,
) -> Map<String, Value> {
    let info = resource.info;
    let root = if info.group.is_empty() {
        format!("/api/{}", info.version)
    } else {
        format!("/apis/{}/{}", info.group, info.version)
    };
    let collection = match info.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", info.plural),
        false => format!("{root}/{}", info.plural),
    };
    let endpoint = Endpoint { gvk: resource.gvk(), schema, namespaced: info.namespaced };
    let allowed = |verb: &str| info.verbs.contains(&verb);
    let mut paths = Map::new();
    let mut add = |path: String, operations: Vec<(&str, Value)>| {
        if !operations.is_empty() {
            let operations = operations.into_iter().map(|(verb, it)| (verb.to_owned(), it));
            paths.insert(path, Value::Object(operations.collect()));
        }
    };
    add(
        collection.clone(),
        [("get", "list"), ("post", "create"), ("delete", "deletecollection")]
            .into_iter()
            .filter(|(_, verb)| allowed(verb))
            .map(|(method, verb)| (method, endpoint.operation(verb, false)))
            .collect(),
    );
    if info.namespaced && allowed("list") {
        let everywhere = Endpoint { namespaced: false, ..endpoint.clone() };
        add(format!("{root}/{}", info.plural), vec![("get", everywhere.operation("list", false))]);
    }
    let single = [("get", "get"), ("put", "update"), ("patch", "patch"), ("delete", "delete")];
    add(
        format!("{collection}/{{name}}"),
        single
            .into_iter()
            .filter(|(_, verb)| allowed(verb))
            .map(|(method, verb)| (method, endpoint.operation(verb, true)))
            .collect(),
    );
    for subresource in &info.subresources {
        let below = match subresource {
            Subresource::Status => endpoint.clone(),
            Subresource::Scale(_) => Endpoint {
                gvk: json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
                schema: scale,
                ..endpoint.clone()
            },
            // The others are endpoints for machines, which do not read this.
            _ => continue,
        };
        add(
            format!("{collection}/{{name}}/{}", subresource.name()),
            single[..3]
                .iter()
                .map(|(method, verb)| (*method, below.operation(verb, true)))
                .collect(),
        );
    }
    paths
}

#[derive(Clone)]
struct Endpoint<'a> {
    gvk: Value,
    schema: Option<&'a str>,
    namespaced: bool,
}

impl Endpoint<'_> {
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
