//! Custom resources, which come and go with their definition.

use super::{run, server, step};
use serde_json::{Value, json};

#[tokio::test]
async fn custom_resources_come_and_go_with_their_definition() {
    let definition = json!({
        "metadata": { "name": "toys.x.example" },
        "spec": {
            "group": "x.example", "scope": "Namespaced",
            "names": { "plural": "toys", "kind": "Toy", "shortNames": ["ty"] },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                  "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                      "spec": { "type": "object", "properties": {
                          "size": { "type": "integer", "default": 3, "maximum": 9 } } },
                      "status": { "type": "object", "properties": { "seen": { "type": "integer" } } } } } } },
                { "name": "v1beta1", "served": true, "storage": false,
                  "schema": { "openAPIV3Schema": { "type": "object",
                      "x-kubernetes-preserve-unknown-fields": true } } },
            ],
        },
    });
    let toy = |size: Value| {
        json!({
            "apiVersion": "x.example/v1", "kind": "Toy", "metadata": { "name": "t" },
            "spec": { "size": size, "other": 1 }, "status": { "seen": 5 },
        })
    };
    run(
        &server(),
        vec![
            step(
                "unknown",
                "GET /apis/x.example/v1/namespaces/default/toys",
                Value::Null,
                404,
                vec![],
            ),
            step(
                "define",
                "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                definition,
                201,
                vec![],
            ),
            step(
                "established",
                "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.x.example",
                Value::Null,
                200,
                vec![
                    ("/status/conditions/1/type", json!("Established")),
                    ("/status/conditions/1/status", json!("True")),
                    ("/status/storedVersions", json!(["v1"])),
                ],
            ),
            step(
                "too large",
                "POST /apis/x.example/v1/namespaces/default/toys",
                toy(json!(10)),
                422,
                vec![("/details/causes/0/field", json!("spec.size"))],
            ),
            step(
                "create",
                "POST /apis/x.example/v1/namespaces/default/toys",
                toy(Value::Null),
                201,
                vec![
                    ("/spec", json!({ "size": 3 })),
                    ("/status", Value::Null),
                    ("/metadata/generation", json!(1)),
                ],
            ),
            step(
                "other version",
                "GET /apis/x.example/v1beta1/namespaces/default/toys/t",
                Value::Null,
                200,
                vec![("/apiVersion", json!("x.example/v1beta1"))],
            ),
            step(
                "status alone",
                "MERGE /apis/x.example/v1/namespaces/default/toys/t/status",
                json!({ "spec": { "size": 1 }, "status": { "seen": 2 } }),
                200,
                vec![
                    ("/spec/size", json!(3)),
                    ("/status/seen", json!(2)),
                    ("/metadata/generation", json!(1)),
                ],
            ),
            step(
                "spec alone",
                "MERGE /apis/x.example/v1/namespaces/default/toys/t",
                json!({ "spec": { "size": 4 }, "status": { "seen": 9 } }),
                200,
                vec![("/status/seen", json!(2)), ("/metadata/generation", json!(2))],
            ),
            step(
                "undefine",
                "DELETE /apis/apiextensions.k8s.io/v1/customresourcedefinitions/toys.x.example",
                Value::Null,
                200,
                vec![],
            ),
            step(
                "no longer served",
                "GET /apis/x.example/v1/namespaces/default/toys",
                Value::Null,
                404,
                vec![],
            ),
        ],
    )
    .await;
}
