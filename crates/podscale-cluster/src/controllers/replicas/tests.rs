//! Scale-down order, batches and status, as data.

use super::*;
use serde_json::json;

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A pod from words: `name node=n1 Running ready=60s cost=5 restarts=2 age=600s app=web`.
fn pod(words: &str) -> Arc<Pod> {
    let mut words = words.split(' ');
    let name = words.next().unwrap();
    let ago = |text: &str| {
        let seconds: i64 = text.trim_end_matches('s').parse().unwrap();
        (now() - jiff::SignedDuration::from_secs(seconds)).to_string()
    };
    let mut json = json!({"metadata": {"name": name, "uid": name, "creationTimestamp": ago("3600s")},
        "status": {"phase": "Running"}});
    for word in words {
        match word.split_once('=') {
            Some(("node", node)) => json["spec"]["nodeName"] = json!(node),
            Some(("ready", time)) => {
                json["status"]["conditions"] =
                    json!([{"type": "Ready", "status": "True", "lastTransitionTime": ago(time)}]);
            }
            Some(("cost", cost)) => {
                json["metadata"]["annotations"] =
                    json!({"controller.kubernetes.io/pod-deletion-cost": cost});
            }
            Some(("restarts", count)) => {
                let count: i32 = count.parse().unwrap();
                json["status"]["containerStatuses"] = json!([{"name": "c", "restartCount": count}]);
            }
            Some(("age", time)) => json["metadata"]["creationTimestamp"] = json!(ago(time)),
            Some((label, value)) => json["metadata"]["labels"][label] = json!(value),
            None => json["status"]["phase"] = json!(word),
        }
    }
    Arc::new(serde_json::from_value(json).unwrap())
}

fn pods(lines: &[&str]) -> Vec<Arc<Pod>> {
    lines.iter().map(|line| pod(line)).collect()
}

fn deleted(wanted: i32, active: &[&str], related: &[&str]) -> Vec<String> {
    let active = pods(active);
    let related: Vec<_> = active.iter().cloned().chain(pods(related)).collect();
    match plan(wanted, &active, &related, now()) {
        Step::Delete(victims) => victims.iter().map(|pod| pod.name().to_owned()).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn scale_down_takes_pods_in_order() {
    let cases: &[(&str, &[&str], &[&str], &str)] = &[
        ("unplaced first", &["a node=n1 Pending", "b Pending", "c node=n1 ready=9s"], &[], "b a"),
        (
            "pending before unknown before running",
            &["a node=n1", "b node=n1 Unknown", "c node=n1 Pending"],
            &[],
            "c b",
        ),
        ("not ready before ready", &["a node=n1 ready=9s", "b node=n1"], &[], "b"),
        ("cheap before dear", &["a node=n1 ready=9s", "b node=n1 ready=9999s cost=-5"], &[], "b"),
        (
            "cost that is no number counts as nothing",
            &["a node=n1 ready=9s cost=x", "b node=n2 ready=9s cost=-1"],
            &[],
            "b",
        ),
        ("readiness before cost", &["a node=n1 ready=9s cost=-9", "b node=n1 cost=9"], &[], "b"),
        (
            "doubled up on a node",
            &["a node=n1 ready=9s", "b node=n2 ready=9s", "c node=n2 ready=9s"],
            &[],
            "b",
        ),
        (
            "doubled up with pods of a sibling set",
            &["a node=n1 ready=9s", "b node=n2 ready=9s"],
            &["x node=n1", "y node=n1"],
            "a",
        ),
        (
            "ended siblings do not count",
            &["b node=n1 ready=9s", "a node=n2 ready=9s"],
            &["x node=n1 Failed"],
            "a",
        ),
        (
            "ready for a shorter time",
            &["a node=n1 ready=4000s", "b node=n2 ready=10s", "c node=n3 ready=300s"],
            &[],
            "b c",
        ),
        (
            "same order of magnitude: the uid decides",
            &["b node=n1 ready=10s", "a node=n2 ready=11s"],
            &[],
            "a",
        ),
        (
            "restarted often",
            &["a node=n1 ready=9s restarts=1", "b node=n2 ready=9s restarts=4"],
            &[],
            "b",
        ),
        ("young", &["a node=n1 age=9000s", "b node=n2 age=5s"], &[], "b"),
    ];
    for (name, active, related, expected) in cases {
        let expected: Vec<&str> = expected.split(' ').collect();
        let wanted = i32::try_from(active.len() - expected.len()).unwrap();
        assert_eq!(deleted(wanted, active, related), expected, "{name}");
    }
}

#[test]
fn creates_what_is_missing_in_bounded_passes() {
    let count = |wanted, active: usize| {
        let active: Vec<_> = (0..active).map(|number| pod(&format!("p{number}"))).collect();
        match plan(wanted, &active, &active, now()) {
            Step::Nothing => 0,
            Step::Create(count) => i64::try_from(count).unwrap(),
            Step::Delete(pods) => -i64::try_from(pods.len()).unwrap(),
        }
    };
    let cases = [
        (0, 0, 0),
        (3, 0, 3),
        (3, 3, 0),
        (2, 3, -1),
        (10_000, 1, 500),
        (0, 700, -500),
        (-1, 2, -2),
    ];
    for (wanted, active, expected) in cases {
        assert_eq!(count(wanted, active), expected, "{wanted} wanted, {active} active");
    }
    assert_eq!(batches(10).collect::<Vec<_>>(), [1, 2, 4, 3]);
    assert_eq!(batches(0).count(), 0);
}

#[test]
fn status_counts_and_keeps_a_failure_until_it_is_overcome() {
    let active = pods(&["a ready=5s app=web tier=x", "b ready=50s app=web", "c app=web"]);
    let labels =
        BTreeMap::from([("app".to_owned(), "web".to_owned()), ("tier".into(), "x".into())]);
    let observed = |error| Observed {
        active: &active,
        terminating: 2,
        template_labels: &labels,
        min_ready_seconds: 10,
        generation: Some(4),
        wanted: 5,
        error,
    };
    let failed = status(&Status::default(), &observed(Some("quota")), now());
    let counts = (failed.replicas, failed.fully_labeled, failed.ready, failed.available);
    assert_eq!(counts, (3, 1, 2, 1));
    assert_eq!((failed.terminating, failed.observed_generation), (Some(2), Some(4)));
    let failure = failed.failure.clone().unwrap();
    assert_eq!((failure.reason.as_str(), failure.message.as_str()), ("FailedCreate", "quota"));
    let again = status(&failed, &observed(Some("other words")), now());
    assert_eq!(again.failure, failed.failure);
    assert_eq!(status(&again, &observed(None), now()).failure, None);
    assert_eq!(next_available(&active, 10, now()), Some(Duration::from_secs(5)));
    assert_eq!(next_available(&active, 0, now()), None);
}
