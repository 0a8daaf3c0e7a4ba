use super::*;
use crate::dashboard::OutcomeKind;
use crate::dashboard::picture::sample::picture;

fn hub() -> Hub {
    Hub::new(Clock::wall())
}

fn publish(hub: &Hub, name: &str, current: i32) {
    hub.publish(picture(name, 1, current, OutcomeKind::Up));
}

fn names(changes: &Changes) -> Vec<String> {
    changes.rows.iter().map(|glimpse| glimpse.row().view.name).collect()
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
    let changes = hub.changes(first.version, Some("shop/a"), first.version);
    assert!(!changes.whole);
    assert_eq!(names(&changes), ["a"], "only the last state of what changed");
    let past = changes.past.unwrap();
    let sizes: Vec<i32> = past.points.iter().map(|p| p.current).collect();
    assert_eq!(sizes, [2, 3], "but all of the watched one's past");
    assert_eq!(past.decisions.len(), 2);

    hub.remove("shop/b");
    hub.remove("shop/never");
    let changes = hub.changes(changes.version, Some("shop/a"), changes.version);
    assert_eq!(changes.removed, ["shop/b".into()]);
    assert!(changes.rows.is_empty() && changes.past.is_none());
}

#[tokio::test]
async fn the_last_change_of_a_size_is_remembered_where_no_status_says_it() {
    let hub = hub();
    publish(&hub, "a", 1);
    let mut later = picture("a", 1, 2, OutcomeKind::Steady);
    later.last_scale = None;
    hub.publish(later);
    let rows = hub.everything(None).rows;
    assert_eq!(rows[0].row().view.last_scale, Some(podscale_core::Time(5_000_000)));
}

#[tokio::test]
async fn what_came_back_is_not_removed() {
    let hub = hub();
    publish(&hub, "a", 1);
    let seen = hub.everything(None).version;
    hub.remove("shop/a");
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
        hub.remove(&format!("shop/{name}"));
    }
    let changes = hub.changes(seen, None, seen);
    assert!(changes.whole);
    assert_eq!(names(&changes), ["kept"]);
    assert!(hub.changes(changes.version + 1000, None, 0).whole, "a version of the future");
}
