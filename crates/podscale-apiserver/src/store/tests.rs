//! The store's promises: order, concurrency, history.

use serde_json::json;

use super::*;

fn pods() -> GroupResource {
    GroupResource { group: "".into(), resource: "pods".into() }
}

fn draft(name: &str, label: &str) -> Draft {
    let value = json!({
        "spec": {}, "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "default", "name": name, "labels": {"app": label}},
    });
    Draft { value, fields: vec![("spec.nodeName", "n1".into())] }
}

fn add(store: &Store, name: &str) -> Arc<Object> {
    store.create(&pods(), &key("default", name), draft(name, "a")).expect("created")
}

#[test]
fn writes_count_up_and_conflicts_are_refused() {
    let store = Store::new(100);
    let first = add(&store, "a");
    assert!(matches!(store.create(&pods(), "default/a", draft("a", "a")), Err(Refusal::Exists(_))));
    let second =
        store.replace(&pods(), "default/a", first.revision, draft("a", "b")).expect("replaced");
    assert_eq!(second.revision, first.revision + 1);
    assert_eq!(second.label("app"), Some("b"));
    assert_eq!(second.field("spec.nodeName"), Some("n1"));
    assert!(matches!(
        store.replace(&pods(), "default/a", first.revision, draft("a", "c")),
        Err(Refusal::Changed(_))
    ));
    assert!(matches!(
        store.remove(&pods(), "default/x", 1, draft("x", "c")),
        Err(Refusal::Missing)
    ));
    assert_eq!(store.revision(), second.revision);
}

#[test]
fn bytes_start_with_kind_and_carry_the_revision() {
    let store = Store::new(100);
    let object = add(&store, "a");
    let text = String::from_utf8(object.bytes().to_vec()).expect("text");
    assert!(text.starts_with(r#"{"kind":"Pod","apiVersion":"v1","metadata":{"#), "{text}");
    assert!(object.body().starts_with(br#""metadata":{"#));
    assert_eq!(object.value()["metadata"]["resourceVersion"], object.revision.to_string());
    assert_eq!((object.namespace(), object.name()), ("default", "a"));
}

#[test]
fn the_past_can_be_listed_until_it_is_compacted() {
    let store = Store::new(100);
    let first = add(&store, "a");
    let then = store.revision();
    add(&store, "b");
    store.replace(&pods(), "default/a", first.revision, draft("a", "new")).expect("replaced");
    let b = store.get(&pods(), "default/b").expect("there");
    store.remove(&pods(), "default/b", b.revision, draft("b", "a")).expect("removed");

    let past = store.snapshot_at(&pods(), then).expect("kept");
    let names: Vec<_> =
        past.objects.values().map(|object| (object.name(), object.revision)).collect();
    assert_eq!(names, [("a", first.revision)]);
    store.compact();
    assert!(store.snapshot_at(&pods(), then).is_err());
    assert!(store.snapshot_at(&pods(), store.revision()).is_ok());
}

#[tokio::test]
async fn cursors_see_everything_or_learn_that_they_cannot() {
    let store = Store::new(3);
    let (snapshot, mut cursor) = store.snapshot_and_follow(&pods());
    assert!(snapshot.objects.is_empty());
    for name in ["a", "b", "c"] {
        add(&store, name);
    }
    cursor.changed().await;
    let batch = cursor.read().expect("all kept");
    assert_eq!(batch.events.len(), 3);
    assert_eq!(batch.revision, store.revision());
    for name in ["d", "e", "f", "g"] {
        add(&store, name);
    }
    assert!(cursor.read().is_err());
    assert!(store.follow(&pods(), snapshot.revision).is_err());
    assert!(store.follow(&pods(), store.revision() + 5).is_err());
    assert!(store.follow(&pods(), store.revision()).is_ok());
}
