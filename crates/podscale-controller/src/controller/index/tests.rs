use super::*;
use crate::dialect::hpa::{self, HPA};
use crate::dialect::pod_autoscaler::{self, POD_AUTOSCALER};
use crate::source::{News, Unseen};
use podscale_api::pod_autoscaler::adopt::ADOPTED;
use podscale_core::history::Recommendation;
use podscale_core::{History, Time};
use serde_json::{Value, json};

const PERIOD: Duration = Duration::from_secs(15);

fn index(dry_run: bool) -> Index {
    Index::new(Clock::wall(), PERIOD, Settings::default(), Manage::default(), dry_run)
}

/// `name uid version max`, and annotations.
fn object(text: &str, annotations: Value) -> Managed {
    let parts: Vec<&str> = text.split(' ').collect();
    let [name, uid, version, max] = parts[..] else { panic!("{text} has four parts") };
    let max: i32 = max.parse().expect("a number");
    let hpa = json!({"metadata": {"name": name, "namespace": "shop", "uid": uid,
        "resourceVersion": version, "generation": 1, "annotations": annotations},
        "spec": {"maxReplicas": max, "scaleTargetRef": {"kind": "Deployment", "name": name}}});
    hpa::managed(serde_json::from_value(hpa).expect("an autoscaler"))
}

fn plain(text: &str) -> Managed {
    object(text, json!({}))
}

fn names(keys: &[Key]) -> String {
    keys.iter().map(Key::to_string).collect::<Vec<_>>().join(",")
}

/// Takes everything that is due now and puts it back.
fn take_due(index: &Index) -> String {
    let mut taken = Vec::new();
    while let Due::Now(key, _) = index.state.lock().take(index.now_micros()) {
        taken.push(key);
    }
    taken.iter().for_each(|key| index.done(key));
    names(&taken)
}

#[tokio::test(start_paused = true)]
async fn only_new_and_changed_specs_are_due_right_after() {
    let index = index(false);
    let steps = [
        ("all are new", Change::All(vec![plain("a 1 5 3")]), "shop/a", ""),
        ("a status", Change::Applied(plain("a 1 6 3")), "", ""),
        ("a spec", Change::Applied(plain("a 1 7 4")), "shop/a", ""),
        ("late news", Change::Applied(plain("a 1 6 3")), "", ""),
        ("made again", Change::Applied(plain("a 2 9 4")), "shop/a", ""),
        ("another", Change::All(vec![plain("b 3 10 1")]), "shop/b", "shop/a"),
        (
            "settings of its own",
            Change::Applied(object("b 3 11 1", json!({"podscale.dev/tolerance": "0.5"}))),
            "shop/b",
            "",
        ),
        ("deleted", Change::Deleted(plain("b 3 12 1")), "", "shop/b"),
    ];
    for (what, change, due, gone) in steps {
        assert_eq!(names(&index.apply(&HPA, change)), gone, "{what}");
        assert_eq!(take_due(&index), "", "{what}: what belongs together may still arrive");
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(take_due(&index), due, "{what}");
    }
    index.status_stored(plain("b 3 13 1"), StatusStored::Decided);
    assert_eq!(index.len(), 0, "what is gone stays gone");
    let state = index.state.lock();
    assert!(state.entries.is_empty() && state.queue.count_due(i64::MAX) == 0);
}

/// What the triggers of a ScaledObject refer to may change while its status is written: the watch then brings the version
/// that was stored with another meaning, and the answer of the write comes after it.
#[tokio::test(start_paused = true)]
async fn the_answer_of_a_write_does_not_undo_what_came_with_the_same_version() {
    let index = index(false);
    let most = |index: &Index| {
        let state = index.state.lock();
        state.entries.get(&plain("a 1 5 3").key).map(|entry| entry.managed.model.max_replicas)
    };
    index.apply(&HPA, Change::All(vec![plain("a 1 5 3")]));
    index.apply(&HPA, Change::Applied(plain("a 1 6 4")));
    let known = most(&index);
    assert!(known.is_some());
    index.status_stored(plain("a 1 6 3"), StatusStored::Decided);
    assert_eq!(most(&index), known);
    index.prepared(plain("a 1 6 3"));
    assert_eq!(most(&index), known);
    index.status_stored(plain("a 1 7 3"), StatusStored::Decided);
    assert_ne!(most(&index), known, "a newer one is known");
}

/// What a reconcile writes that had to wait is what is asked for then.
#[tokio::test(start_paused = true)]
async fn what_changed_while_it_waited_is_reconciled_again_and_not_written() {
    let index = index(false);
    let taken = plain("a 1 5 3");
    index.apply(&HPA, Change::All(vec![taken.clone()]));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let Due::Now(key, _) = index.state.lock().take(index.now_micros()) else { panic!("not due") };
    let version = |managed: &Managed| managed.metadata().resource_version.clone();
    index.apply(&HPA, Change::Applied(object("a 1 6 3", json!({"note": "changed"}))));
    assert_eq!(
        index.newest(&taken).as_ref().map(version).as_deref(),
        Some("6"),
        "it means the same"
    );
    index.apply(&HPA, Change::Applied(plain("a 1 7 4")));
    assert!(index.newest(&taken).is_none(), "it means something else");
    index.done(&key);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(take_due(&index), "shop/a", "and is due");
    index.apply(&HPA, Change::Deleted(plain("a 1 8 4")));
    assert!(index.newest(&taken).is_none(), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn objects_of_the_same_name_and_another_kind_do_not_collide() {
    static OTHER: Kind = Kind {
        name: "Other",
        api_version: "example.org/v1",
        plural: "others",
        resource: "others.example.org",
        presence: podscale_client::watch::Presence::Optional,
    };
    let index = index(false);
    index.apply(&HPA, Change::All(vec![plain("a 1 5 3")]));
    let mut other = plain("a 2 5 3");
    other.key.kind = &OTHER;
    index.apply(&OTHER, Change::All(vec![other.clone()]));
    assert_eq!(index.len(), 2);
    index.apply(&OTHER, Change::All(Vec::new()));
    assert!(index.contains(&plain("a 1 5 3").key) && !index.contains(&other.key));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_while_it_is_reconciled_is_not_started_twice() {
    let index = index(false);
    index.apply(&HPA, Change::All(vec![plain("a 1 5 3")]));
    let (key, _) = index.next().await;
    index.register_selector(&key, "1", "app=a");
    index.apply(&HPA, Change::Deleted(plain("a 1 6 3")));
    assert!(index.open(&key).is_none() && index.len() == 0);
    index.apply(&HPA, Change::Applied(plain("a 2 7 3")));
    assert_eq!(take_due(&index), "", "one of that name is under way");
    index.commit(&key, "1", Recalled::default(), true);
    index.done(&key);
    assert_eq!(take_due(&index), "shop/a", "its successor comes right after");
    index.apply(&HPA, Change::Deleted(plain("a 2 8 3")));
    let state = index.state.lock();
    assert!(state.entries.is_empty() && state.subscribers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_may_have_a_period_of_its_own() {
    let index = index(false);
    let fast = object("fast 1 1 3", json!({"podscale.dev/sync-period": "1s"}));
    index.apply(&HPA, Change::All(vec![fast, plain("plain 2 1 3")]));
    let mut counts = HashMap::new();
    let watching = async {
        loop {
            let (key, _) = index.next().await;
            *counts.entry(key.name.to_string()).or_insert(0) += 1;
            index.done(&key);
        }
    };
    let watched = tokio::time::timeout(Duration::from_secs(60), watching).await;
    assert!(watched.is_err(), "it goes on for ever");
    assert!((59..=62).contains(&counts["fast"]), "{counts:?}");
    assert!((4..=6).contains(&counts["plain"]), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn new_samples_enqueue_those_that_asked() {
    let index = index(false);
    index.apply(&HPA, Change::All(vec![plain("a 1 5 3"), plain("b 2 5 3")]));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(take_due(&index), "shop/a,shop/b");
    let topic = |name: &str| Topic(name.into());
    index.subscribe(&plain("a 1 5 3").key, "1", BTreeSet::from([topic("x"), topic("y")]));
    let new = |name: &str| News::from([(topic(name), Unseen::ByAll)]);
    index.announced(&News::from([(topic("x"), Unseen::ByAll), (topic("z"), Unseen::ByAll)]));
    assert_eq!(take_due(&index), "", "not sooner than the minimum interval");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(take_due(&index), "shop/a");
    index.subscribe(&plain("a 1 5 3").key, "1", BTreeSet::from([topic("y")]));
    tokio::time::sleep(Duration::from_secs(2)).await;
    index.announced(&new("x"));
    assert_eq!(take_due(&index), "", "it does not ask about that any more");
    index.announced(&new("y"));
    assert_eq!(take_due(&index), "shop/a", "but about that");
    index.apply(&HPA, Change::Deleted(plain("a 1 6 3")));
    assert!(index.state.lock().subscribers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_was_answered_with_the_new_samples_is_not_enqueued_for_them() {
    let index = index(false);
    index.apply(&HPA, Change::All(vec![plain("a 1 5 3"), plain("b 2 5 3")]));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(take_due(&index), "shop/a,shop/b");
    let (a, b) = (plain("a 1 5 3").key, plain("b 2 5 3").key);
    let (x, y) = (Topic("x".into()), Topic("y".into()));
    index.subscribe(&a, "1", BTreeSet::from([x.clone(), y.clone()]));
    index.subscribe(&b, "2", BTreeSet::from([x.clone()]));
    index.answered(&b, "2", &x);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let read = index.clock.now();
    index.answered(&a, "1", &x);
    index.answered(&b, "of another", &x);
    // What is asked about may change, and what is still asked about was answered all the same.
    index.subscribe(&a, "1", BTreeSet::from([x.clone()]));
    index.announced(&News::from([(x.clone(), Unseen::Before(read))]));
    assert_eq!(take_due(&index), "shop/b");
    tokio::time::sleep(Duration::from_secs(2)).await;
    index.announced(&News::from([(x.clone(), Unseen::Before(index.clock.now()))]));
    assert_eq!(take_due(&index), "shop/a,shop/b", "newer ones nobody has");
    index.announced(&News::from([(y, Unseen::ByAll)]));
    assert_eq!(take_due(&index), "");
}

fn recalled(replicas: i32) -> Recalled {
    let recommendations = vec![Recommendation { replicas, at: Time(0) }];
    Recalled { history: History { recommendations, ..History::default() }, interrupted: false }
}

#[tokio::test(start_paused = true)]
async fn an_object_has_its_own_history_and_a_namesake_has_not() {
    let index = index(false);
    let key = plain("a 1 5 3").key;
    let recall = |uid: &str| index.reconcile_state(&key, uid, Time(0)).map(|state| state.recalled);
    index.apply(&HPA, Change::All(vec![plain("a 1 5 3")]));
    index.commit(&key, "1", recalled(3), false);
    assert_eq!(recall("1"), Some(recalled(3)));
    assert_eq!(recall("2"), None);
    index.interrupt();
    assert_eq!(recall("1"), Some(Recalled { interrupted: true, ..recalled(3) }));
    index.restore(HashMap::from([("2".into(), recalled(7))]));
    assert_eq!(recall("1"), Some(Recalled::default()), "what the last leader knew counts");
    index.apply(&HPA, Change::Applied(plain("a 2 8 3")));
    assert_eq!(recall("2"), Some(recalled(7)), "an object that comes later has what was stored");
}

/// The PodAutoscaler that has taken the place of the HPA `a`.
fn adopting(uid: &str) -> Managed {
    let pa = json!({"metadata": {"name": "a", "namespace": "shop", "uid": uid, "resourceVersion": "20",
        "annotations": {ADOPTED: "{}"}},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}});
    pod_autoscaler::managed(serde_json::from_value(pa).expect("an autoscaler"))
}

/// Each kind has a watch of its own, so that either may be the first to tell of its object.
#[tokio::test(start_paused = true)]
async fn who_takes_a_place_has_the_history_of_it_whoever_is_seen_first() {
    let cases = [(false, false), (false, true), (true, false), (true, true)];
    for (hpa_goes_first, decided_between) in cases {
        let index = index(false);
        let recall = |managed: &Managed| {
            let state = index.reconcile_state(&managed.key, managed.uid(), Time(0));
            state.map(|state| state.recalled)
        };
        let (hpa, pa, back) = (plain("a 1 5 3"), adopting("2"), plain("a 3 30 3"));
        index.apply(&HPA, Change::All(vec![hpa.clone()]));
        index.commit(&hpa.key, "1", recalled(7), false);
        let mut steps =
            [(&HPA, Change::Deleted(hpa)), (&POD_AUTOSCALER, Change::Applied(pa.clone()))];
        if !hpa_goes_first {
            steps.reverse();
        }
        for (kind, change) in steps {
            index.apply(kind, change);
        }
        let mut expected = recalled(7);
        if decided_between {
            assert_eq!(recall(&pa), Some(expected), "{hpa_goes_first}");
            expected = recalled(8);
            index.commit(&pa.key, "2", expected.clone(), false);
        }
        let mut steps =
            [(&POD_AUTOSCALER, Change::Deleted(pa.clone())), (&HPA, Change::Applied(back.clone()))];
        if !hpa_goes_first {
            steps.reverse();
        }
        for (kind, change) in steps {
            index.apply(kind, change);
        }
        assert_eq!(recall(&back), Some(expected), "{hpa_goes_first}, {decided_between}, and back");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_annotations_are_reported_once_for_each_version_of_them() {
    let index = index(false);
    let reports = |version: &str, text: &str| {
        let annotations = json!({"podscale.dev/tolerance": text});
        let managed = object(&format!("a 1 {version} 3"), annotations);
        index.apply(&HPA, Change::Applied(managed.clone()));
        index
            .reconcile_state(&managed.key, "1", Time(0))
            .is_some_and(|state| state.report_annotations)
    };
    assert!(reports("5", "much"));
    assert!(!reports("6", "much"));
    assert!(reports("7", "more"));
}
