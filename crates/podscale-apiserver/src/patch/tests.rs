//! Patches as tables of before, patch and after.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::types;

fn patch(kind: PatchKind, before: Value, patch: Value) -> Result<Value, String> {
    let ty = types::kubernetes().find("apps/v1.Deployment");
    apply(kind, ty.as_ref(), before, patch.to_string().as_bytes()).map_err(|error| error.message)
}

fn containers(items: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": items}}}})
}

#[test]
fn strategic_merge() {
    let cases = [
        (
            "items merge by name",
            containers(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])),
            containers(json!([{"name": "b", "image": "2"}, {"name": "c"}])),
            containers(
                json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]),
            ),
        ),
        (
            "an item is deleted by directive",
            containers(json!([{"name": "a"}, {"name": "b"}])),
            containers(json!([{"name": "a", "$patch": "delete"}])),
            containers(json!([{"name": "b"}])),
        ),
        (
            "a list is replaced by directive",
            containers(json!([{"name": "a"}, {"name": "b"}])),
            containers(json!([{"$patch": "replace"}, {"name": "c"}])),
            containers(json!([{"name": "c"}])),
        ),
        (
            "order is set",
            containers(json!([{"name": "a"}, {"name": "b"}, {"name": "x"}])),
            json!({"spec": {"template": {"spec": {
                "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "a", "image": "2"}]}}}}),
            containers(json!([{"name": "b"}, {"name": "a", "image": "2"}, {"name": "x"}])),
        ),
        (
            "keys that are not retained go",
            json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            json!({"spec": {"strategy": {"type": "Recreate"}}}),
        ),
        (
            "primitive lists merge and lose items",
            json!({"metadata": {"finalizers": ["a", "b"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}),
            json!({"metadata": {"finalizers": ["c", "b"]}}),
        ),
        (
            "lists without a key are replaced, nulls delete",
            containers(json!([{"name": "a", "args": ["1"], "image": "x"}])),
            containers(json!([{"name": "a", "args": ["2", "3"], "image": null}])),
            containers(json!([{"name": "a", "args": ["2", "3"]}])),
        ),
    ];
    for (name, before, change, after) in cases {
        assert_eq!(patch(PatchKind::Strategic, before, change), Ok(after), "{name}");
    }
    let keyless = patch(PatchKind::Strategic, json!({}), containers(json!([{"image": "x"}])));
    assert_eq!(
        keyless,
        Err("map: map[image:x] does not contain declared merge key: name".to_owned())
    );
}

#[test]
fn merge_and_json_patches() {
    let before = json!({"a": {"b": 1, "c": 2}, "l": [1]});
    assert_eq!(
        patch(
            PatchKind::Merge,
            before.clone(),
            json!({"a": {"b": null, "d": {"e": null}}, "l": [2]})
        ),
        Ok(json!({"a": {"c": 2, "d": {}}, "l": [2]}))
    );
    assert_eq!(
        patch(PatchKind::Json, before.clone(), json!([{"op": "add", "path": "/l/-", "value": 3}])),
        Ok(json!({"a": {"b": 1, "c": 2}, "l": [1, 3]}))
    );
    assert_eq!(
        patch(PatchKind::Json, before, json!([{"op": "test", "path": "/l", "value": 3}])),
        Err("the server rejected our request due to an error in our request".to_owned())
    );
}

const NAMES: &str = "(name|spec|\\$patch|metadata|labels|[a-c])";

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-d$/]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(NAMES, inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Value> {
    let map = prop::collection::hash_map(NAMES, any_json(), 0..4);
    map.prop_map(|map| Value::Object(map.into_iter().collect()))
}

proptest! {
    #[test]
    fn merge_patch_is_idempotent(before in any_json(), change in any_object()) {
        let once = patch(PatchKind::Merge, before, change.clone()).expect("merges");
        prop_assert_eq!(patch(PatchKind::Merge, once.clone(), change), Ok(once));
    }

    #[test]
    fn strategic_merge_never_panics_and_leaves_no_directive_of_its_own(
        before in any_object(), change in any_object(),
    ) {
        if let Ok(after) = patch(PatchKind::Strategic, before.clone(), change) {
            prop_assert!(before.get("$patch").is_some() || after.get("$patch").is_none());
        }
    }
}
