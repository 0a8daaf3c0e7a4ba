use serde_json::json;

use super::*;

#[test]
fn paths_lead_to_values() {
    let object = json!({
        "spec": {"a.b/c": 1, "list": [1, 2, 3], "flag": true},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "age": 3},
            {"type": "Synced", "status": "False"},
        ]},
    });
    for (path, expected) in [
        (".spec.flag", "true"),
        (".spec['a.b/c']", "1"),
        (".spec.a\\.b/c", "1"),
        (".spec.list[0]", "1"),
        (".spec.list[-1]", "3"),
        (".spec.list[1:]", "2 3"),
        (".spec.list[0:3:2]", "1 3"),
        (".spec.list[9]", ""),
        (".spec.list[*]", "1 2 3"),
        (".spec.missing.deep", ""),
        (".spec.flag[0]", ""),
        (r#".status.conditions[?(@.type=="Ready")].status"#, "\"True\""),
        (".status.conditions[?(@.type=='Synced')].status", "\"False\""),
        (".status.conditions[?(@.age)].type", "\"Ready\""),
        (".status.conditions[?(@.age >= 3)].type", "\"Ready\""),
        (".status.conditions[?(@.age < 3)].type", ""),
        ("..type", "\"Ready\" \"Synced\""),
    ] {
        let found = JsonPath::parse(path).unwrap().find(&object);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), expected, "{path}");
    }
}

#[test]
fn bad_paths_are_refused() {
    for path in [".a[", ".a[b]", ".a[?(@.b==)]", "a", ".a..", ".a['b", ".a[1:2:0]", ".a[?(x)]"] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}
