//! Decoding against what the real decoder says and writes.

use serde_json::{Value, json};

use super::decode::{compact, decode};
use super::{Merge, Type, kubernetes};

fn read(name: &str, value: Value) -> Result<(Value, Vec<String>), String> {
    let types = kubernetes();
    let ty = types.find(name).expect("known type");
    let mut decoded = decode(types, &ty, value)?;
    compact(types, &ty, &mut decoded.value);
    Ok((decoded.value, decoded.unknown))
}

#[test]
fn every_line_of_the_table_is_understood() {
    let types = kubernetes();
    let lines = super::TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.starts_with("= ") && !line.starts_with('~'));
    let fields: usize = types.structures.iter().map(|structure| structure.fields.len()).sum();
    assert_eq!(fields, lines.count());
    let Some(Type::Struct(id)) = types.find("core/v1.Container") else { panic!("no container") };
    let ports = types.structure(id).and_then(|structure| structure.field("ports"));
    assert_eq!(
        ports.map(|field| &field.merge),
        Some(&Merge::Keys(vec!["containerPort", "protocol"]))
    );
}

#[test]
fn canonical_forms() {
    let cases = [
        (
            "empty fields go, kept ones come",
            "core/v1.Container",
            json!({"name": "a", "image": "", "args": [], "stdin": false, "env": null}),
            json!({"name": "a", "resources": {}}),
        ),
        (
            "quantities are canonical",
            "core/v1.ResourceRequirements",
            json!({"requests": {"cpu": "0.5", "memory": 1024}, "limits": {"cpu": 2}}),
            json!({"requests": {"cpu": "500m", "memory": "1024"}, "limits": {"cpu": "2"}}),
        ),
        (
            "times lose their fraction or gain it",
            "coordination/v1.LeaseSpec",
            json!({"renewTime": "2026-01-02T03:04:05+01:00"}),
            json!({"renewTime": "2026-01-02T02:04:05.000000Z"}),
        ),
        (
            "pointers to empty values stay",
            "apps/v1.ReplicaSetSpec",
            json!({"replicas": 0, "minReadySeconds": 0, "selector": {}}),
            json!({"replicas": 0, "selector": {}, "template": null}),
        ),
    ];
    for (name, ty, given, expected) in cases {
        let (mut value, unknown) = read(ty, given).expect(name);
        if let Some(template) = value.get_mut("template") {
            *template = Value::Null;
        }
        assert_eq!(value, expected, "{name}");
        assert!(unknown.is_empty(), "{name}");
    }
}

#[test]
fn mistakes() {
    let cases = [
        (
            "apps/v1.Deployment",
            json!({"spec": {"replicas": "three"}}),
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps/v1.Deployment",
            json!({"spec": {"replicas": 3.5}}),
            "json: cannot unmarshal number 3.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "core/v1.Pod",
            json!({"spec": {"containers": [{"image": 5}]}}),
            "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string",
        ),
        (
            "core/v1.Pod",
            json!({"spec": {"restartPolicy": {}}}),
            "json: cannot unmarshal object into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            "core/v1.Pod",
            json!({"metadata": {"labels": []}}),
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
    ];
    for (ty, given, expected) in cases {
        assert_eq!(read(ty, given), Err(expected.to_owned()));
    }
}

#[test]
fn unknown_fields_are_named_and_dropped() {
    let pod = json!({"spec": {"foo": 1, "containers": [{"name": "a"}, {"bar": 2, "name": "b"}]}});
    let (value, unknown) = read("core/v1.Pod", pod).expect("decodes");
    assert_eq!(unknown, ["spec.containers[1].bar", "spec.foo"]);
    assert_eq!(value.pointer("/spec/foo"), None);
}
