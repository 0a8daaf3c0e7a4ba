//! The OpenAPI documents, versions 2 and 3, of the metrics APIs: what `kubectl explain` shows.

use serde_json::{Map, Value, json};

mod schemas;

/// One version of a group, with the resources that can be read in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Api {
    /// `metrics.k8s.io/v1beta1`.
    Resource,
    /// `custom.metrics.k8s.io/v1beta1`.
    CustomV1beta1,
    /// `custom.metrics.k8s.io/v1beta2`.
    CustomV1beta2,
    /// `external.metrics.k8s.io/v1beta1`.
    External,
}

/// One path that can be read, and what it answers with.
struct Operation {
    path: &'static str,
    id: &'static str,
    action: &'static str,
    kind: &'static str,
    schema: &'static str,
    description: &'static str,
}

const RESOURCE: [Operation; 5] = [
    Operation {
        path: "/nodes",
        id: "listMetricsV1beta1NodeMetrics",
        action: "list",
        kind: "NodeMetrics",
        schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetricsList",
        description: "list what nodes use",
    },
    Operation {
        path: "/nodes/{name}",
        id: "readMetricsV1beta1NodeMetrics",
        action: "get",
        kind: "NodeMetrics",
        schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.NodeMetrics",
        description: "read what a node uses",
    },
    Operation {
        path: "/pods",
        id: "listMetricsV1beta1PodMetricsForAllNamespaces",
        action: "list",
        kind: "PodMetrics",
        schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetricsList",
        description: "list what the pods of all namespaces use",
    },
    Operation {
        path: "/namespaces/{namespace}/pods",
        id: "listMetricsV1beta1NamespacedPodMetrics",
        action: "list",
        kind: "PodMetrics",
        schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetricsList",
        description: "list what the pods of a namespace use",
    },
    Operation {
        path: "/namespaces/{namespace}/pods/{name}",
        id: "readMetricsV1beta1NamespacedPodMetrics",
        action: "get",
        kind: "PodMetrics",
        schema: "io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics",
        description: "read what a pod uses",
    },
];
const CUSTOM_V1BETA1: [Operation; 1] = [Operation {
    path: "/namespaces/{namespace}/{resource}/{name}/{metric}",
    id: "listCustomMetricsV1beta1NamespacedValues",
    action: "list",
    kind: "MetricValueList",
    schema: "io.k8s.metrics.pkg.apis.custom_metrics.v1beta1.MetricValueList",
    description: "list values of a metric of objects",
}];
const CUSTOM_V1BETA2: [Operation; 1] = [Operation {
    path: "/namespaces/{namespace}/{resource}/{name}/{metric}",
    id: "listCustomMetricsV1beta2NamespacedValues",
    action: "list",
    kind: "MetricValueList",
    schema: "io.k8s.metrics.pkg.apis.custom_metrics.v1beta2.MetricValueList",
    description: "list values of a metric of objects",
}];
const EXTERNAL: [Operation; 1] = [Operation {
    path: "/namespaces/{namespace}/{metric}",
    id: "listExternalMetricsV1beta1NamespacedValues",
    action: "list",
    kind: "ExternalMetricValueList",
    schema: "io.k8s.metrics.pkg.apis.external_metrics.v1beta1.ExternalMetricValueList",
    description: "list values of a metric",
}];

impl Api {
    /// Group and version, as paths have them.
    #[must_use]
    pub fn group_version(self) -> &'static str {
        match self {
            Api::Resource => "metrics.k8s.io/v1beta1",
            Api::CustomV1beta1 => "custom.metrics.k8s.io/v1beta1",
            Api::CustomV1beta2 => "custom.metrics.k8s.io/v1beta2",
            Api::External => "external.metrics.k8s.io/v1beta1",
        }
    }

    fn schemas(self) -> Map<String, Value> {
        match self {
            Api::Resource => schemas::resource(),
            Api::CustomV1beta1 => schemas::custom_v1beta1(),
            Api::CustomV1beta2 => schemas::custom_v1beta2(),
            Api::External => schemas::external(),
        }
    }

    fn operations(self) -> &'static [Operation] {
        match self {
            Api::Resource => &RESOURCE,
            Api::CustomV1beta1 => &CUSTOM_V1BETA1,
            Api::CustomV1beta2 => &CUSTOM_V1BETA2,
            Api::External => &EXTERNAL,
        }
    }

    /// The document of version 3.
    #[must_use]
    pub fn document(self) -> Value {
        let paths = self.paths(&|schema| {
            json!({
                "description": "OK",
                "content": {"application/json": {"schema": {"$ref": format!("#/components/schemas/{schema}")}}},
            })
        }, &|name, place, description| {
            json!({
                "name": name, "in": place, "description": description, "required": place == "path",
                "schema": {"type": "string", "uniqueItems": true},
            })
        });
        let mut schemas = self.schemas();
        for schema in schemas.values_mut() {
            rewrite_references(schema);
        }
        json!({
            "openapi": "3.0.0", "info": info(), "paths": paths,
            "components": {"schemas": schemas},
        })
    }

    fn paths(
        self,
        answer: &dyn Fn(&str) -> Value,
        parameter: &dyn Fn(&str, &str, &str) -> Value,
    ) -> Map<String, Value> {
        let (group, version) = self.group_version().split_once('/').unwrap_or_default();
        let of = |operation: &Operation| {
            let mut parameters: Vec<Value> = names(operation.path)
                .map(|name| parameter(name, "path", &format!("the {name}")))
                .collect();
            if operation.action == "list" {
                let text = "which objects, or series, by their labels";
                parameters.push(parameter("labelSelector", "query", text));
            }
            let path = format!("/apis/{group}/{version}{}", operation.path);
            let get = json!({
                "description": operation.description, "operationId": operation.id,
                "tags": [format!("{group}_{version}").replace('.', "_")],
                "parameters": parameters, "responses": {"200": answer(operation.schema)},
                "x-kubernetes-action": operation.action,
                "x-kubernetes-group-version-kind":
                    {"group": group, "version": version, "kind": operation.kind},
            });
            (path, json!({"get": get}))
        };
        self.operations().iter().map(of).collect()
    }
}

/// The names in braces of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn info() -> Value {
    json!({"title": "Podscale", "version": env!("CARGO_PKG_VERSION")})
}

/// Schemas are written as version 2 has them; version 3 keeps them elsewhere.
fn rewrite_references(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(text) if key == "$ref" => {
                        *text = text.replace("#/definitions/", "#/components/schemas/");
                    }
                    other => rewrite_references(other),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(rewrite_references),
        _ => {}
    }
}

/// The document of version 2 for these APIs.
#[must_use]
pub fn swagger(apis: &[Api]) -> Value {
    let (mut paths, mut definitions) = (Map::new(), Map::new());
    for api in apis {
        let answer = |schema: &str| json!({"description": "OK", "schema": {"$ref": format!("#/definitions/{schema}")}});
        let parameter = |name: &str, place: &str, description: &str| {
            json!({
                "name": name, "in": place, "description": description, "required": place == "path",
                "type": "string", "uniqueItems": true,
            })
        };
        paths.extend(api.paths(&answer, &parameter).into_iter().map(|(path, mut item)| {
            item["get"]["produces"] = json!(["application/json"]);
            item["get"]["schemes"] = json!(["https"]);
            (path, item)
        }));
        definitions.extend(api.schemas());
    }
    json!({"swagger": "2.0", "info": info(), "paths": paths, "definitions": definitions})
}

/// The list of version 3 documents, each with the path under which it is.
#[must_use]
pub fn index(apis: &[Api]) -> Value {
    let paths: Map<String, Value> = apis
        .iter()
        .map(|api| {
            let name = format!("apis/{}", api.group_version());
            // The documents only change with the program.
            let url = format!("/openapi/v3/{name}?hash=podscale-{}", env!("CARGO_PKG_VERSION"));
            (name, json!({"serverRelativeURL": url}))
        })
        .collect();
    json!({"paths": paths})
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Api; 4] = [Api::Resource, Api::CustomV1beta1, Api::CustomV1beta2, Api::External];

    /// Everything that a document refers to.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                for (key, field) in fields {
                    match field.as_str() {
                        Some(text) if key == "$ref" => found.push(text),
                        _ => references(field, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let documents = ALL.map(Api::document).into_iter().chain([swagger(&ALL)]);
        for document in documents {
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(found.len() > 5);
            for reference in found {
                let place = reference.strip_prefix('#').unwrap();
                assert!(document.pointer(place).is_some(), "{reference}");
            }
        }
    }

    #[test]
    fn kinds_are_found_by_their_paths() {
        let document = Api::Resource.document();
        let get =
            &document["paths"]["/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"]["get"];
        let kind = &get["x-kubernetes-group-version-kind"];
        assert_eq!(kind["kind"], "PodMetrics");
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let is_it = |schema: &&Value| schema["x-kubernetes-group-version-kind"] == json!([kind]);
        assert_eq!(schemas.values().filter(is_it).count(), 1);
        let index = index(&[Api::External]);
        assert_eq!(index["paths"].as_object().unwrap().len(), 1);
    }
}
