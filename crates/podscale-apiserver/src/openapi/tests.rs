use serde_json::{Value, json};

use super::*;
use crate::resource::{ALL_VERBS, ScalePaths};

fn info(group: &str, version: &str, kind: &str, plural: &str, custom: bool) -> ResourceInfo {
    let scale = ScalePaths {
        spec_replicas: ".spec.replicas".to_owned(),
        status_replicas: ".status.replicas".to_owned(),
        selector: None,
    };
    ResourceInfo {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        list_kind: format!("{kind}List"),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: true,
        verbs: ALL_VERBS,
        subresources: vec![Subresource::Status, Subresource::Scale(scale)],
        custom,
    }
}

fn document(resources: &[Resource<'_>], path: &str) -> Value {
    let bytes = Documents::default().group_version(path, resources).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn refs<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|value| refs(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| refs(item, found)),
        _ => {}
    }
}

#[test]
fn built_in_kinds_are_described() {
    let deployments = info("apps", "v1", "Deployment", "deployments", false);
    let document = document(&[Resource { info: &deployments, schema: None }], "apis/apps/v1");
    let name = "io.k8s.api.apps.v1.Deployment";
    let schema = &document["components"]["schemas"][name];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "apps", "version": "v1", "kind": "Deployment"}])
    );
    assert_eq!(
        schema["properties"]["spec"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec"
    );
    assert!(schema["description"].is_string());
    let single = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}";
    let patch = &document["paths"][single]["patch"];
    assert_eq!(
        patch["x-kubernetes-group-version-kind"],
        json!({"group": "apps", "version": "v1", "kind": "Deployment"})
    );
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(parameters.iter().any(|it| it["name"] == "fieldValidation" && it["in"] == "query"));
    assert!(document["paths"][format!("{single}/scale")]["put"].is_object());
    assert!(document["paths"]["/apis/apps/v1/deployments"]["get"].is_object());
}

#[test]
fn every_reference_leads_to_a_schema() {
    let kinds = [
        info("", "v1", "Pod", "pods", false),
        info("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", false),
        info("example.com", "v1", "Thing", "things", true),
    ];
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    let resources: Vec<Resource<'_>> = kinds
        .iter()
        .map(|info| Resource { info, schema: info.custom.then_some(&schema) })
        .collect();
    for (path, schemas, prefix) in [
        ("api/v1", "/components/schemas", "#/components/schemas/"),
        ("apis/autoscaling/v2", "/components/schemas", "#/components/schemas/"),
        ("apis/example.com/v1", "/components/schemas", "#/components/schemas/"),
        ("", "/definitions", "#/definitions/"),
    ] {
        let document: Value = match path {
            "" => serde_json::from_slice(&Documents::default().version_2(Form::Json, &resources))
                .unwrap(),
            path => document(&resources, path),
        };
        let schemas = document.pointer(schemas).unwrap();
        let mut found = Vec::new();
        refs(&document, &mut found);
        assert!(!found.is_empty(), "{path}");
        for reference in found {
            let name = reference.strip_prefix(prefix).unwrap_or_else(|| panic!("{reference}"));
            assert!(schemas.get(name).is_some(), "{path}: {name}");
        }
    }
}

#[test]
fn custom_kinds_have_what_every_object_has() {
    let things = info("stable.example.com", "v1", "Thing", "things", true);
    let schema = json!({"type": "object", "description": "A thing.", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    let resource = Resource { info: &things, schema: Some(&schema) };
    let document = document(&[resource], "apis/stable.example.com/v1");
    let schema = &document["components"]["schemas"]["com.example.stable.v1.Thing"];
    assert_eq!(schema["description"], "A thing.");
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["type"], "integer");
    assert_eq!(
        schema["properties"]["metadata"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
}

#[test]
fn addresses_change_with_content() {
    let things = info("example.com", "v1", "Thing", "things", true);
    let documents = Documents::default();
    let address = |schema: &Value| {
        let resource = Resource { info: &things, schema: Some(schema) };
        documents.index(&[resource])["paths"]["apis/example.com/v1"]["serverRelativeURL"]
            .to_string()
    };
    let small = json!({"type": "object"});
    let large = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    assert_eq!(address(&small), address(&small));
    assert_ne!(address(&small), address(&large));
    assert!(documents.group_version("apis/none/v1", &[]).is_none());
}

#[test]
fn a_document_is_made_once() {
    let things = info("example.com", "v1", "Thing", "things", true);
    let resource = Resource { info: &things, schema: None };
    let documents = Documents::default();
    let first = documents.group_version("apis/example.com/v1", &[resource]).unwrap();
    let second = documents.group_version("apis/example.com/v1", &[resource]).unwrap();
    assert!(Arc::ptr_eq(&first, &second));
}

#[test]
fn version_2_is_written_as_it_is_asked_for() {
    for (accept, expected) in [
        ("", Some(Form::Json)),
        ("*/*", Some(Form::Json)),
        ("application/json, */*", Some(Form::Json)),
        ("application/json;q=0.5", Some(Form::Json)),
        ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", Some(Form::Protobuf)),
        ("application/com.github.proto-openapi.spec.v2.v1.0+protobuf", Some(Form::Protobuf)),
        ("text/html", None),
    ] {
        assert_eq!(Form::accepted(accept), expected, "{accept}");
    }
}
