use super::*;

fn wire(text: &str) -> Wire {
    serde_json::from_str(text).expect("a workload")
}

#[test]
fn a_written_size_stands_until_the_watch_has_something_newer() {
    let known = Known::default();
    let deployment = |version: u32, replicas: i32| {
        wire(&format!(
            r#"{{"metadata":{{"name":"web","namespace":"shop","uid":"u","resourceVersion":"{version}"}},
            "spec":{{"replicas":{replicas},"selector":{{"matchLabels":{{"app":"web"}}}},"template":{{}}}},
            "status":{{"replicas":2}}}}"#
        ))
    };
    known.take_in(Change::All(vec![deployment(5, 2)]));
    let size = |known: &Known| {
        let namespaces = known.namespaces.read();
        let web = &namespaces["shop"]["web"];
        (web.wanted, web.version.to_string(), web.selector.to_string())
    };
    assert_eq!(size(&known), (2, "5".into(), "app=web".into()));
    known.take_in(Change::Applied(deployment(9, 4)));
    known.take_in(Change::Applied(deployment(7, 2)));
    assert_eq!(size(&known), (4, "9".into(), "app=web".into()));
    known.take_in(Change::Deleted(deployment(10, 4)));
    assert!(known.namespaces.read().is_empty());
}

#[test]
fn a_target_that_belongs_to_its_autoscaler_is_found_with_its_other_owners() {
    let known = Known::default();
    let owner = |kind: &str, group: &str, uid: &str| {
        format!(r#"{{"apiVersion":"{group}/v1","kind":"{kind}","name":"x","uid":"{uid}"}}"#)
    };
    let chpa = owner("CHPA", "autoscalers.postmates.com", "c");
    let app = owner("App", "example.org", "a");
    let set = owner("Deployment", "apps", "d");
    for (owners, expected) in [
        (String::new(), None),
        (set.clone(), None),
        (app.clone(), None),
        (chpa.clone(), Some(0)),
        (format!("{chpa},{app}"), Some(1)),
    ] {
        let text = format!(
            r#"{{"metadata":{{"name":"web","namespace":"shop","uid":"u","resourceVersion":"5",
            "ownerReferences":[{owners}]}}}}"#
        );
        known.take_in(Change::All(vec![wire(&text)]));
        let target = ObjectMeta {
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            uid: "u".to_owned(),
            ..ObjectMeta::default()
        };
        let owned = known.owned(&target, "c");
        assert_eq!(owned.map(|owned| owned.others.len()), expected, "{owners}");
    }
}
