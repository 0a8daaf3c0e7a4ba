//! The controllers of the embedded cluster at work on its API server.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "cluster_controllers/garbage.rs"]
mod garbage;
#[path = "cluster_controllers/jobs.rs"]
mod jobs;
#[path = "cluster_controllers/nodes.rs"]
mod nodes;
#[path = "cluster_controllers/scaled_jobs.rs"]
mod scaled_jobs;
#[path = "cluster_controllers/world.rs"]
mod world;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use world::{World, is_ready, run};

fn template(app: &str, image: &str) -> Value {
    json!({"metadata": {"labels": {"app": app}}, "spec": {"terminationGracePeriodSeconds": 2,
        "containers": [{"name": "c", "image": image, "resources": {"requests": {"cpu": "10m"}}}]}})
}

fn deployment(name: &str, replicas: i32) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": name}}, "template": template(name, "v1")}})
}

async fn scale(world: &World, name: &str, replicas: i32) {
    world.patch::<Deployment>(name, json!({"spec": {"replicas": replicas}})).await;
}

fn condition(deployment: &Deployment, kind: &str) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_.as_deref() == Some(kind))?;
    Some(format!("{} {}", found.status.as_deref()?, found.reason.as_deref()?))
}

#[test]
fn a_deployment_scales_up_and_down() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world.node("n2", "100").await;
        world.create::<Deployment>(deployment("web", 3)).await;
        world.until_ready(3).await;
        scale(&world, "web", 20).await;
        world.until_ready(20).await;
        scale(&world, "web", 2).await;
        world.until_ready(2).await;
        scale(&world, "web", 0).await;
        world.until_ready(0).await;
        scale(&world, "web", 4).await;
        world.until_ready(4).await;
        let api = world.api::<Deployment>();
        let status = async || {
            let web = api.get("web").await.unwrap();
            let status = web.status.clone().unwrap_or_default();
            let conditions = (condition(&web, "Available"), condition(&web, "Progressing"));
            (status.replicas, status.updated_replicas, status.available_replicas, conditions)
        };
        let good = (
            Some("True MinimumReplicasAvailable".to_owned()),
            Some("True NewReplicaSetAvailable".to_owned()),
        );
        world.until("status", (Some(4), Some(4), Some(4), good), status).await;
        let [set] = &world.names::<ReplicaSet>().await[..] else { panic!("more than one set") };
        let scalings: BTreeSet<String> =
            world.events("ScalingReplicaSet").await.into_iter().collect();
        for (direction, from, to) in [("up", 0, 3), ("up", 3, 20), ("down", 20, 2), ("down", 2, 0)]
        {
            let message = format!("Scaled {direction} replica set {set} from {from} to {to}");
            assert!(scalings.contains(&message), "{message}: {scalings:?}");
        }
        let created = world.events("SuccessfulCreate").await;
        assert!(created.iter().any(|message| message.starts_with("Created pod: web-")));
        assert!(!world.events("Scheduled").await.is_empty());
        let nodes: BTreeSet<Option<String>> =
            world.pods().await.into_iter().map(|pod| pod.spec.unwrap().node_name).collect();
        assert_eq!(nodes.len(), 2, "pods are spread");
    });
}

#[test]
fn a_rolling_update_stays_within_its_bounds() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let mut web = deployment("web", 10);
        web["spec"]["strategy"] = json!({"type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
        web["spec"]["minReadySeconds"] = json!(2);
        web["spec"]["revisionHistoryLimit"] = json!(1);
        world.create::<Deployment>(web).await;
        world.until_ready(10).await;
        let api = world.api::<Deployment>();
        for image in ["v2", "v3", "v4"] {
            let patch = json!({"spec": {"template": template("web", image)}});
            world.patch::<Deployment>("web", patch).await;
            let extremes = Mutex::new((usize::MAX, 0));
            let done = async || {
                let pods = world.pods().await;
                let ready = pods.iter().filter(|pod| is_ready(pod)).count();
                let mut extremes = extremes.lock().unwrap();
                *extremes = (extremes.0.min(ready), extremes.1.max(pods.len()));
                drop(extremes);
                let web = api.get("web").await.unwrap();
                let status = web.status.clone().unwrap_or_default();
                let observed = status.observed_generation == web.metadata.generation;
                let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone();
                let new = pods.iter().filter(|pod| image(pod).as_deref() == Some(image_now(&web)));
                (observed, new.count(), status.available_replicas, condition(&web, "Progressing"))
            };
            let good = (true, 10, Some(10), Some("True NewReplicaSetAvailable".to_owned()));
            world.until(image, good, done).await;
            let (least, most) = *extremes.lock().unwrap();
            assert!(least >= 8, "{image}: only {least} ready");
            assert!(most <= 13, "{image}: {most} pods");
        }
        world
            .until("old revisions are cleaned up", 2, async || {
                world.names::<ReplicaSet>().await.len()
            })
            .await;
        let annotations = api.get("web").await.unwrap().metadata.annotations.unwrap();
        assert_eq!(annotations["deployment.kubernetes.io/revision"], "4");
    });
}

fn image_now(deployment: &Deployment) -> &str {
    let spec = deployment.spec.template.spec.as_ref().unwrap();
    spec.containers[0].image.as_deref().unwrap()
}

#[test]
fn a_recreation_never_mixes_old_and_new() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let mut web = deployment("web", 4);
        web["spec"]["strategy"] = json!({"type": "Recreate"});
        world.create::<Deployment>(web).await;
        world.until_ready(4).await;
        let patch = json!({"spec": {"template": template("web", "v2")}});
        world.patch::<Deployment>("web", patch).await;
        world
            .until("new pods alone", (4, BTreeSet::from(["v2".to_owned()])), async || {
                let list = world.api::<Pod>().list(&ListParams::default()).await.unwrap();
                let images: BTreeSet<String> = list
                    .iter()
                    .filter_map(|pod| pod.spec.as_ref()?.containers[0].image.clone())
                    .collect();
                assert!(images.len() <= 1, "{images:?} at the same time");
                (list.iter().filter(|pod| is_ready(pod)).count(), images)
            })
            .await;
    });
}

#[test]
fn orphans_are_adopted_strangers_released_and_failures_replaced() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let mut orphan = template("web", "v1");
        orphan["metadata"]["name"] = json!("orphan");
        world.create::<Pod>(orphan).await;
        let set = json!({"metadata": {"name": "web"}, "spec": {"replicas": 3,
            "selector": {"matchLabels": {"app": "web"}}, "template": template("web", "v1")}});
        let set = world.create::<ReplicaSet>(set).await;
        world.until_ready(3).await;
        assert!(world.names::<Pod>().await.contains(&"orphan".to_owned()));
        let owner = async |name: &str| {
            let pod = world.api::<Pod>().get(name).await.unwrap();
            let owners = pod.metadata.owner_references.unwrap_or_default();
            owners.first().map(|owner| owner.uid.clone())
        };
        assert_eq!(owner("orphan").await, set.metadata.uid);
        world.patch::<Pod>("orphan", json!({"metadata": {"labels": {"app": "other"}}})).await;
        world.until("released", None, async || owner("orphan").await).await;
        world.until_ready(4).await;
        let victim = world.names::<Pod>().await.into_iter().find(|name| name != "orphan").unwrap();
        let failed = json!({"status": {"phase": "Failed"}});
        let patch = kube::api::Patch::Merge(&failed);
        let params = kube::api::PatchParams::default();
        world.api::<Pod>().patch_status(&victim, &params, &patch).await.unwrap();
        world
            .until("replaced", 3, async || {
                let living = world.pods().await.into_iter();
                living
                    .filter(|pod| pod.metadata.name.as_deref() != Some("orphan"))
                    .filter(|pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Running"))
                    .count()
            })
            .await;
        let status = world.api::<ReplicaSet>().get("web").await.unwrap().status.unwrap();
        assert_eq!((status.replicas, status.fully_labeled_replicas), (3, Some(3)));
    });
}

#[test]
fn a_replication_controller_keeps_its_pods() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let object = json!({"metadata": {"name": "old"}, "spec": {"replicas": 2,
            "selector": {"app": "old"}, "template": template("old", "v1")}});
        world.create::<ReplicationController>(object).await;
        world.until_ready(2).await;
        let pod = world.names::<Pod>().await.remove(0);
        world.api::<Pod>().delete(&pod, &DeleteParams::default()).await.unwrap();
        world
            .until("replaced", (2, false), async || {
                let names: Vec<_> = world.names::<Pod>().await;
                (names.len(), names.contains(&pod))
            })
            .await;
    });
}

#[test]
fn a_stateful_set_keeps_its_order() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let object = json!({"metadata": {"name": "db"}, "spec": {"replicas": 3,
            "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": template("db", "v1")}});
        world.create::<StatefulSet>(object).await;
        let seen = Mutex::new(Vec::new());
        let ready = async || {
            let pods = world.pods().await;
            let mut seen = seen.lock().unwrap();
            for pod in &pods {
                let name = pod.metadata.name.clone().unwrap();
                if !seen.contains(&name) {
                    let others =
                        pods.iter().filter(|other| other.metadata.name != pod.metadata.name);
                    let all = others.into_iter().all(is_ready);
                    assert!(all, "{name} came before those below it were ready");
                    seen.push(name);
                }
            }
            pods.iter().filter(|pod| is_ready(pod)).count()
        };
        world.until("ready", 3, ready).await;
        assert_eq!(*seen.lock().unwrap(), ["db-0", "db-1", "db-2"]);
        let sets = world.api::<StatefulSet>();
        let patch = json!({"spec": {"template": template("db", "v2"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}});
        world.patch::<StatefulSet>("db", patch).await;
        let images = async || {
            let mut pods = world.pods().await;
            pods.retain(is_ready);
            let image = |pod: Pod| pod.spec.unwrap().containers.remove(0).image.unwrap();
            pods.into_iter().map(image).collect::<Vec<_>>().join(" ")
        };
        world.until("updated down to the partition", "v1 v2 v2".to_owned(), images).await;
        let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
        world.patch::<StatefulSet>("db", patch).await;
        world.until("updated", "v2 v2 v2".to_owned(), images).await;
        world
            .until("status", (true, Some(3), Some(3)), async || {
                let status = sets.get("db").await.unwrap().status.unwrap();
                let same = status.current_revision == status.update_revision;
                (same, status.updated_replicas, status.ready_replicas)
            })
            .await;
        world.patch::<StatefulSet>("db", json!({"spec": {"replicas": 1}})).await;
        world
            .until("scaled down", vec!["db-0".to_owned()], async || {
                let names = world.names::<Pod>().await;
                assert!(
                    !names.contains(&"db-2".into()) || names.contains(&"db-1".into()),
                    "{names:?}"
                );
                names
            })
            .await;
    });
}

#[test]
fn a_rollout_that_cannot_work_times_out_and_can_be_rolled_back() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let mut web = deployment("web", 2);
        web["spec"]["progressDeadlineSeconds"] = json!(30);
        world.create::<Deployment>(web.clone()).await;
        world.until_ready(2).await;
        let mut broken = template("web", "broken");
        broken["metadata"]["annotations"] = json!({"test/start": "never"});
        world.patch::<Deployment>("web", json!({"spec": {"template": broken}})).await;
        let api = world.api::<Deployment>();
        let late = Some("False ProgressDeadlineExceeded".to_owned());
        world
            .until("late", late, async || condition(&api.get("web").await.unwrap(), "Progressing"))
            .await;
        let ready = world.pods().await.iter().filter(|pod| is_ready(pod)).count();
        assert_eq!(ready, 2, "the old pods still serve");
        let mut fresh = api.get("web").await.unwrap();
        fresh.spec.template = serde_json::from_value(template("web", "v1")).unwrap();
        api.replace("web", &PostParams::default(), &fresh).await.unwrap();
        world.until_ready(2).await;
        let done = Some("True NewReplicaSetAvailable".to_owned());
        world
            .until("done", done, async || condition(&api.get("web").await.unwrap(), "Progressing"))
            .await;
    });
}
