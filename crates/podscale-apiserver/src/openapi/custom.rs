//! Schemas of custom resources, from their definitions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::schemars::JsonSchema as _;
use serde_json::{Map, Value, json};

use super::{Resource, reference};
use crate::resource::ResourceInfo;

/// Name of a custom resource's schema: the group's domain from the end, as in `com.example.v1.Thing`.
pub(super) fn name(info: &ResourceInfo) -> String {
    let domain: Vec<&str> = info.group.rsplit('.').collect();
    format!("{}.{}.{}", domain.join("."), info.version, info.kind)
}

/// The schema of a custom resource with the fields that every object has.
pub(super) fn schema(resource: &Resource<'_>, schema: &Value) -> Value {
    let mut whole = match schema {
        Value::Object(fields) => fields.clone(),
        _ => Map::from_iter([("type".to_owned(), json!("object"))]),
    };
    let properties = whole.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        let text = |description: &str| json!({"type": "string", "description": description});
        properties.insert(
            "apiVersion".to_owned(),
            text("Group and version of the schema that this object follows."),
        );
        properties.insert(
            "kind".to_owned(),
            text("Kind of object that this is, in CamelCase, singular."),
        );
        properties.insert(
            "metadata".to_owned(),
            json!({
                "description": "Standard object's metadata: name, labels and so on.",
                "allOf": [reference(&ObjectMeta::schema_name())],
            }),
        );
    }
    whole.insert("x-kubernetes-group-version-kind".to_owned(), json!([resource.gvk()]));
    Value::Object(whole)
}
