use super::super::pod::{FAULT, READINESS_DELAY, RUN_TIME, START_DELAY};
use super::*;
use serde_json::json;

fn pod(extra: serde_json::Value) -> WirePod {
    let mut pod = json!({
        "metadata": {"name": "web-1", "namespace": "shop", "uid": "u1", "annotations": {}},
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "app:1"}]},
    });
    json_merge(&mut pod, &extra);
    serde_json::from_value(pod).unwrap()
}

fn json_merge(into: &mut serde_json::Value, from: &serde_json::Value) {
    match (into, from) {
        (serde_json::Value::Object(into), serde_json::Value::Object(from)) => {
            for (key, value) in from {
                json_merge(into.entry(key.clone()).or_insert(serde_json::Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

const DELAYS: Delays = Delays {
    start: Duration::from_secs(2),
    ready: Duration::from_secs(3),
    stop: Duration::from_secs(4),
    crash: Duration::from_secs(5),
    work: Duration::from_secs(8),
    spread: 0.0,
};

/// Lives a pod second by second and writes down each change.
fn live(pod: &WirePod, fault: Option<Fault>, seconds: i64) -> Vec<String> {
    let facts = Facts::read(pod).unwrap();
    let mut life = Life::begin(pod, at(0));
    let mut story = Vec::new();
    for second in 0..=seconds {
        loop {
            match life.next(&facts, fault.or(facts.fault), &DELAYS, at(second)) {
                Next::Become(next) => {
                    assert_ne!(next, life, "each step changes something");
                    story.push(format!("{second}: {:?}", next.stage));
                    life = next;
                }
                Next::Remove => {
                    story.push(format!("{second}: removed"));
                    return story;
                }
                Next::Wait(due) => {
                    assert!(due.is_none_or(|due| due > at(second)), "a wait is for later");
                    break;
                }
            }
        }
    }
    story
}

#[test]
fn lives() {
    let crash = json!({"metadata": {"annotations": {FAULT: "crash"}}});
    let deleted = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}});
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"state": {"running": {"startedAt": "1970-01-12T13:46:30Z"}}, "restartCount": 1}]}});
    let mut ending = running.clone();
    json_merge(&mut ending, &deleted);
    let mut never = crash.clone();
    json_merge(&mut never, &json!({"spec": {"restartPolicy": "Never"}}));
    let job = json!({"metadata": {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j",
        "uid": "o", "controller": true}]}, "spec": {"restartPolicy": "OnFailure"}});
    let mut short = job.clone();
    json_merge(&mut short, &json!({"metadata": {"annotations": {RUN_TIME: "1s"}}}));
    let mut failing = job.clone();
    json_merge(&mut failing, &never);
    let served =
        json!({"metadata": {"annotations": {RUN_TIME: "1s"}}, "spec": {"restartPolicy": "Always"}});
    let alone =
        json!({"metadata": {"annotations": {RUN_TIME: "1s"}}, "spec": {"restartPolicy": "Never"}});
    type Case<'a> = (&'a str, serde_json::Value, Option<Fault>, i64, &'a [&'a str]);
    let cases: Vec<Case<'_>> = vec![
        (
            "healthy",
            json!({}),
            None,
            60,
            &["2: Running { ready: false }", "5: Running { ready: true }"],
        ),
        (
            "own delays",
            json!({"metadata": {"annotations": {START_DELAY: "4s", READINESS_DELAY: "10s"}}}),
            None,
            60,
            &["4: Running { ready: false }", "14: Running { ready: true }"],
        ),
        (
            "delay of the probe",
            json!({"spec": {"containers": [{"name": "a", "readinessProbe": {"initialDelaySeconds": 7}}]}}),
            None,
            60,
            &["2: Running { ready: false }", "9: Running { ready: true }"],
        ),
        ("unready", json!({}), Some(Fault::Unready), 60, &["2: Running { ready: false }"]),
        (
            "ready, then unready",
            running.clone(),
            Some(Fault::Unready),
            9,
            &["0: Running { ready: false }"],
        ),
        ("goes on where it was", running, None, 60, &[]),
        (
            "crashes again and again",
            crash,
            None,
            50,
            &[
                "2: Running { ready: false }",
                "5: Running { ready: true }",
                "7: BackOff",
                "17: Running { ready: false }",
                "20: Running { ready: true }",
                "22: BackOff",
                "42: Running { ready: false }",
                "45: Running { ready: true }",
                "47: BackOff",
            ],
        ),
        (
            "crashes once",
            never,
            None,
            60,
            &["2: Running { ready: false }", "5: Running { ready: true }", "7: Failed"],
        ),
        (
            "does its work",
            job,
            None,
            60,
            &["2: Running { ready: false }", "5: Running { ready: true }", "10: Succeeded"],
        ),
        ("a short one", short, None, 60, &["2: Running { ready: false }", "3: Succeeded"]),
        (
            "fails at its work",
            failing,
            None,
            60,
            &["2: Running { ready: false }", "5: Running { ready: true }", "7: Failed"],
        ),
        (
            "a server has no end",
            served,
            None,
            60,
            &["2: Running { ready: false }", "5: Running { ready: true }"],
        ),
        ("without a Job", alone, None, 60, &["2: Running { ready: false }", "3: Succeeded"]),
        ("deleted before it ran", deleted, None, 60, &["0: Stopping", "0: removed"]),
        ("deleted while it ran", ending, None, 60, &["0: Stopping", "3: removed"]),
    ];
    for (name, extra, fault, seconds, expected) in cases {
        assert_eq!(live(&pod(extra), fault, seconds), expected, "{name}");
    }
}

#[test]
fn restarts_wait_ever_longer_up_to_five_minutes() {
    let waits: Vec<u64> = (0..8).map(|restarts| back_off(restarts).as_secs()).collect();
    assert_eq!(waits, [10, 20, 40, 80, 160, 300, 300, 300]);
    assert_eq!(back_off(u32::MAX), BACK_OFF.1);
}

#[test]
fn starts_are_spread_but_repeatable() {
    let delays = Delays { spread: 0.5, ..DELAYS };
    let starts: Vec<Duration> = (0..50).map(|i| delays.spread_start(&format!("uid-{i}"))).collect();
    assert_eq!(starts[7], delays.spread_start("uid-7"));
    assert!(starts.iter().all(|start| (1.0..=3.0).contains(&start.as_secs_f64())), "{starts:?}");
    assert!(starts.iter().any(|start| *start != starts[0]));
}
