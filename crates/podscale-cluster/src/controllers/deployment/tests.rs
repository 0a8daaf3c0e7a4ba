//! Rollouts as data, and whole rollouts simulated step by step against the bounds.

use super::*;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// A deployment of image `new` from words: `10 surge=3 unavailable=2 paused recreate keep=1`.
fn deployment(words: &str) -> Deployment {
    let mut json = json!({"metadata": {"name": "web", "namespace": "a", "uid": "d", "generation": 1},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template("new"),
            "progressDeadlineSeconds": 600, "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}});
    for word in words.split(' ') {
        let spec = &mut json["spec"];
        match word.split_once('=') {
            Some(("surge", n)) => spec["strategy"]["rollingUpdate"]["maxSurge"] = number(n),
            Some(("unavailable", n)) => {
                spec["strategy"]["rollingUpdate"]["maxUnavailable"] = number(n);
            }
            Some(("keep", n)) => spec["revisionHistoryLimit"] = number(n),
            None if word == "paused" => spec["paused"] = json!(true),
            None if word == "recreate" => spec["strategy"] = json!({"type": "Recreate"}),
            _ => spec["replicas"] = number(word),
        }
    }
    serde_json::from_value(json).unwrap()
}

fn number(text: &str) -> Value {
    text.parse::<i32>().map_or_else(|_| json!(text), |number| json!(number))
}

/// A replica set from words: `v1 8 available=7 desired=10 max=13 revision=1`; its name is its image,
/// and its age follows its name.
fn set(words: &str) -> Arc<ReplicaSet> {
    let mut words = words.split(' ');
    let name = words.next().unwrap();
    let size = number(words.next().unwrap());
    let mut json = json!({"metadata": {"name": name, "namespace": "a", "uid": name, "generation": 1,
            "creationTimestamp": if name == "new" { NOW } else { "2026-01-01T11:00:00Z" },
            "annotations": {}},
        "spec": {"replicas": size, "selector": {}, "template": template(name)},
        "status": {"replicas": size, "availableReplicas": size, "readyReplicas": size,
            "observedGeneration": 1}});
    for word in words {
        let (key, value) = word.split_once('=').unwrap();
        let annotation = |key: &str| format!("deployment.kubernetes.io/{key}");
        match key {
            "available" => {
                json["status"]["availableReplicas"] = number(value);
                json["status"]["readyReplicas"] = number(value);
            }
            "actual" => json["status"]["replicas"] = number(value),
            "desired" => {
                json["metadata"]["annotations"][annotation("desired-replicas")] = json!(value)
            }
            "max" => json["metadata"]["annotations"][annotation("max-replicas")] = json!(value),
            _ => json["metadata"]["annotations"][annotation("revision")] = json!(value),
        }
    }
    Arc::new(serde_json::from_value(json).unwrap())
}

fn decide(deployment: &Deployment, sets: &[Arc<ReplicaSet>]) -> Plan {
    plan(&Input { deployment, sets, running: &HashMap::new(), now: now() })
}

fn text_of(plan: &Plan) -> String {
    let words = plan.writes.iter().filter_map(|write| match write {
        Write::Create(set) => Some(format!("create {}", replicas_of(set))),
        Write::Update { set, from } => {
            let (name, to) = (set.metadata.name.clone().unwrap_or_default(), replicas_of(set));
            (*from != to).then(|| format!("{name} {from}->{to}"))
        }
        Write::Delete(set) => {
            Some(format!("delete {}", set.metadata.name.clone().unwrap_or_default()))
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn decides_the_next_step() {
    let cases: &[(&str, &str, &[&str], &str)] = &[
        ("first rollout", "3", &[], "create 3"),
        ("no replicas wanted", "0", &[], "create 0"),
        (
            "new template: surge first, and room below",
            "10 surge=3 unavailable=2",
            &["v1 10 desired=10"],
            "create 3, v1 10->8",
        ),
        ("no surge", "4 surge=0 unavailable=1", &["v1 4 desired=4"], "create 0, v1 4->3"),
        ("no unavailability", "4 surge=1 unavailable=0", &["v1 4 desired=4"], "create 1"),
        (
            "room for more new pods",
            "10 surge=3 unavailable=2",
            &["v1 8 desired=10", "new 3 available=0 desired=10"],
            "new 3->5",
        ),
        (
            "waits for new pods",
            "10 surge=3 unavailable=2",
            &["v1 8 desired=10", "new 5 available=0 desired=10"],
            "",
        ),
        (
            "one new pod available",
            "10 surge=3 unavailable=2",
            &["v1 8 desired=10", "new 5 available=1 desired=10"],
            "v1 8->7",
        ),
        (
            "broken old pods go first",
            "10 surge=3 unavailable=2",
            &["v0 3 available=0 desired=10", "v1 7 desired=10", "new 3 available=2 desired=10"],
            "v0 3->0, v1 7->6",
        ),
        (
            "a stale report of available pods is not believed",
            "10 surge=3 unavailable=2",
            &["v1 8 available=10 desired=10", "new 5 available=1 desired=10"],
            "v1 8->7",
        ),
        (
            "last old pods",
            "10 surge=3 unavailable=2",
            &["v1 3 desired=10", "new 10 desired=10"],
            "v1 3->0",
        ),
        ("scaled up, no rollout", "5", &["new 3 desired=3 max=4"], "new 3->5"),
        ("scaled to nothing", "0", &["new 3 desired=3 max=4"], "new 3->0"),
        ("scaled from nothing", "3", &["new 0 desired=0"], "new 0->3"),
        (
            "scaled in the middle of a rollout",
            "20 surge=3 unavailable=2",
            &["v1 8 desired=10 max=13", "new 5 desired=10 max=13"],
            "new 5->9, v1 8->14",
        ),
        (
            "scaled down in the middle of a rollout",
            "5 surge=3 unavailable=2",
            &["v1 8 desired=10 max=13", "new 5 desired=10 max=13"],
            "new 5->3, v1 8->5",
        ),
        (
            "scaled when the new set is complete",
            "10 surge=3",
            &["v1 3 desired=9", "new 10 desired=10"],
            "v1 3->0",
        ),
        ("paused: only scaled", "5 paused", &["v1 3 desired=3 max=4"], "v1 3->5"),
        ("paused before the first rollout", "5 paused", &[], ""),
        (
            "rolled back: the old set grows again",
            "4 surge=1 unavailable=1",
            &["new 0 revision=1", "v2 4 desired=4 revision=2"],
            "new 0->1",
        ),
        ("recreate: old pods first", "3 recreate", &["v1 3 desired=3"], "v1 3->0"),
        ("recreate: waits for old pods", "3 recreate", &["v1 0 actual=1 available=0"], ""),
        ("recreate: then the new ones", "3 recreate", &["v1 0"], "create 3"),
    ];
    for (name, words, sets, expected) in cases {
        let sets: Vec<_> = sets.iter().map(|words| set(words)).collect();
        assert_eq!(text_of(&decide(&deployment(words), &sets)), *expected, "{name}");
    }
}

#[test]
fn recreation_waits_for_pods_that_are_being_deleted() {
    let (deployment, sets) = (deployment("3 recreate"), [set("v1 0")]);
    let running = HashMap::from([("v1".to_owned(), 1)]);
    let input = Input { deployment: &deployment, sets: &sets, running: &running, now: now() };
    assert_eq!(text_of(&plan(&input)), "");
}

#[test]
fn revisions_are_numbered_and_cleaned_up() {
    let mut deployment = deployment("1 keep=1");
    let sets = [set("v1 0 revision=1"), set("v2 0 revision=2"), set("v3 0 revision=3")];
    let plan = decide(&deployment, &sets);
    let Some(Write::Create(created)) = plan.writes.first() else { panic!("{plan:?}") };
    assert_eq!(revision::of(&created.metadata), 4);
    assert_eq!(plan.revision.as_deref(), Some("4"));
    assert!(created.metadata.name.as_ref().unwrap().starts_with("web-"));
    let hash = &created.metadata.labels.as_ref().unwrap()[template::HASH_LABEL];
    assert!(created.metadata.name.as_ref().unwrap().ends_with(hash.as_str()));
    deployment.status = serde_json::from_value(json!({"replicas": 1, "updatedReplicas": 1,
        "availableReplicas": 1, "observedGeneration": 1}))
    .unwrap();
    let sets: Vec<_> = sets.into_iter().chain([set("new 1 revision=4")]).collect();
    assert_eq!(text_of(&decide(&deployment, &sets)), "delete v1, delete v2");
}

fn conditions(status: &DeploymentStatus) -> Vec<String> {
    let all = status.conditions.iter().flatten();
    all.map(|condition| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (kind, status) = (text(&condition.type_), text(&condition.status));
        format!("{kind}={status} {}: {}", text(&condition.reason), text(&condition.message))
    })
    .collect()
}

#[test]
fn reports_progress_completion_and_timeout() {
    let mut web = deployment("4 surge=1 unavailable=0");
    let first = decide(&web, &[]).status.unwrap();
    let shown = conditions(&first);
    assert!(shown[0].starts_with("Progressing=True NewReplicaSetCreated: Created new replica set"));
    assert_eq!(
        shown[1],
        "Available=False MinimumReplicasUnavailable: \
        Deployment does not have minimum availability."
    );
    web.status = Some(first);
    let half = [set("new 4 available=2 desired=4 max=5 revision=1")];
    let moving = decide(&web, &half).status.unwrap();
    assert_eq!(
        conditions(&moving)[1],
        "Progressing=True ReplicaSetUpdated: ReplicaSet \"new\" is progressing."
    );
    assert_eq!((moving.available_replicas, moving.unavailable_replicas), (Some(2), Some(2)));
    web.status = Some(moving.clone());
    web.metadata.annotations = Some([(revision::REVISION.to_owned(), "1".to_owned())].into());
    let still = decide(&web, &half);
    assert!(still.status.is_none() && still.writes.is_empty() && still.revision.is_none());
    assert_eq!(still.after, Some(Duration::from_secs(601)));
    let late = now() + jiff::SignedDuration::from_secs(602);
    let input = Input { deployment: &web, sets: &half, running: &HashMap::new(), now: late };
    let timed_out = plan(&input).status.unwrap();
    assert_eq!(
        conditions(&timed_out)[1],
        "Progressing=False ProgressDeadlineExceeded: \
        ReplicaSet \"new\" has timed out progressing."
    );
    let done = decide(&web, &[set("new 4 desired=4 max=5 revision=1")]).status.unwrap();
    assert_eq!(
        conditions(&done),
        [
            "Available=True MinimumReplicasAvailable: Deployment has minimum availability.",
            "Progressing=True NewReplicaSetAvailable: ReplicaSet \"new\" has successfully progressed.",
        ]
    );
    web.spec.paused = Some(true);
    let paused = decide(&web, &half).status.unwrap();
    assert!(
        conditions(&paused)
            .contains(&"Progressing=Unknown DeploymentPaused: Deployment is paused".to_owned())
    );
}

/// Plays the replica set controller and the kubelets: pods appear at once, become available one by
/// one, and old ones vanish one by one; checks the bounds after every step.
#[test]
fn whole_rollouts_stay_within_their_bounds() {
    for (size, surge, unavailable) in
        [(10, 3, 2), (1, 1, 0), (1, 0, 1), (7, 0, 3), (25, 25, 0), (6, 2, 6), (100, 30, 10)]
    {
        let words = format!("{size} surge={surge} unavailable={unavailable}");
        let mut web = deployment(&words);
        let mut sets = vec![set(&format!("v1 {size} desired={size} max={}", size + surge))];
        let mut steps = 0;
        loop {
            let plan = decide(&web, &sets);
            for write in &plan.writes {
                let written = match write {
                    Write::Create(set) => {
                        let mut set = set.clone();
                        set.metadata.uid = Some("new".into());
                        set.metadata.creation_timestamp = Some(Time(now()));
                        sets.push(Arc::from(set));
                        continue;
                    }
                    Write::Update { set, .. } => set,
                    Write::Delete(_) => continue,
                };
                let place = sets.iter_mut().find(|set| set.metadata.uid == written.metadata.uid);
                *place.unwrap() = Arc::from(written.clone());
            }
            let total: i32 = sets.iter().map(|set| replicas_of(set)).sum();
            assert!(total <= size + surge, "{words}: {total} pods");
            if let Some(status) = plan.status {
                web.status = Some(status);
            }
            // One event of the outside world: a pod more or less.
            let moved = sets.iter_mut().any(|set| {
                let status = Arc::make_mut(set).status.get_or_insert_default();
                let available = status.available_replicas.unwrap_or(0);
                let wanted = set.spec.replicas.unwrap();
                let next = available + (wanted - available).signum();
                let status = Arc::make_mut(set).status.get_or_insert_default();
                status.available_replicas = Some(next);
                status.ready_replicas = Some(next);
                status.replicas = next.max(wanted);
                next != available
            });
            let available: i32 = sets.iter().map(|set| available_of(set)).sum();
            assert!(available >= size - unavailable, "{words}: {available} available");
            steps += 1;
            assert!(steps < 2000, "{words}: does not end");
            if !moved && plan.writes.is_empty() {
                break;
            }
        }
        let sizes: Vec<i32> = sets.iter().map(|set| replicas_of(set)).collect();
        assert_eq!(sizes, [0, size], "{words}");
    }
}
