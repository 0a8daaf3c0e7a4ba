use super::*;
use crate::dashboard::Outcome;
use podscale_core::Time;

fn hub() -> Hub {
    Hub::new(Clock::wall())
}

fn publish(hub: &Hub, name: &str, current: i32) {
    let view = AutoscalerView {
        namespace: "default".into(),
        name: name.into(),
        kind: "HorizontalPodAutoscaler".into(),
        target: format!("Deployment/{name}"),
        min: 1,
        max: 10,
        current,
        desired: current,
        metrics: Vec::new(),
        conditions: Vec::new(),
        last_scale: None,
    };
    let decision = DecisionView {
        time: Time(1_000_000),
        from: current,
        to: current,
        rescaled: true,
        outcome: Outcome::Up,
        reason: "load".into(),
        lines: vec!["it grew".into()],
    };
    hub.publish(view, decision);
}

fn names(changes: &Changes) -> Vec<&str> {
    changes.rows.iter().map(|row| &*row.view.name).collect()
}

#[tokio::test]
async fn a_reader_gets_what_it_has_not_seen() {
    let hub = hub();
    publish(&hub, "a", 1);
    publish(&hub, "b", 1);
    let first = hub.everything(None);
    assert!(first.whole);
    assert_eq!(names(&first), ["a", "b"]);
    assert!(hub.changes(first.version, None, 0).rows.is_empty());

    publish(&hub, "a", 2);
    publish(&hub, "a", 3);
    let changes = hub.changes(first.version, Some("default/a"), first.version);
    assert!(!changes.whole);
    assert_eq!(names(&changes), ["a"], "only the last state of what changed");
    let past = changes.past.unwrap();
    let sizes: Vec<i32> = past.points.iter().map(|p| p.current).collect();
    assert_eq!(sizes, [2, 3], "but all of the watched one's past");
    assert_eq!(past.decisions.len(), 2);

    hub.remove("default/b");
    hub.remove("default/never");
    let changes = hub.changes(changes.version, Some("default/a"), changes.version);
    assert_eq!(changes.removed, ["default/b".into()]);
    assert!(changes.rows.is_empty() && changes.past.is_none());
}

#[tokio::test]
async fn what_came_back_is_not_removed() {
    let hub = hub();
    publish(&hub, "a", 1);
    let seen = hub.everything(None).version;
    hub.remove("default/a");
    publish(&hub, "a", 5);
    let changes = hub.changes(seen, None, seen);
    assert_eq!(names(&changes), ["a"]);
    assert!(changes.removed.is_empty());
}

#[tokio::test]
async fn whoever_was_away_too_long_starts_anew() {
    let hub = hub();
    publish(&hub, "kept", 1);
    let seen = hub.everything(None).version;
    for n in 0..=REMOVALS {
        let name = format!("n{n}");
        publish(&hub, &name, 1);
        hub.remove(&format!("default/{name}"));
    }
    let changes = hub.changes(seen, None, seen);
    assert!(changes.whole);
    assert_eq!(names(&changes), ["kept"]);
    assert!(hub.changes(changes.version + 1000, None, 0).whole, "a version of the future");
}
