//! ScaledJobs on the embedded cluster, by a trigger that is a window of time: its value is the wanted number while the
//! window is open.

use super::jobs::end_one;
use super::world::{World, run};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use podscale_api::crds;
use podscale_controller::controller::manage::Manage;
use podscale_controller::controller::{Config, Controller, MetricSources, Role, Watchers};
use podscale_controller::metrics::Metrics;
use podscale_controller::scaled_jobs::{self, ScaledJobs};
use podscale_controller::triggers::{Limits, Triggers};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What creates Jobs, and what watches the pods for it.
struct Deciding {
    _controller: Controller,
    _jobs: ScaledJobs,
}

/// Defines KEDA's kinds and begins to manage their objects.
async fn start(world: &World) -> Deciding {
    let definitions = Api::<CustomResourceDefinition>::all(world.client.clone());
    for definition in crds::keda::definitions() {
        let definition = serde_json::from_value(definition).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    let (client, clock) = (&world.client, world.clock);
    let limits = Limits { own_namespace: "podscale".to_owned(), ..Limits::default() };
    let triggers = Arc::new(Triggers::new(client, clock, limits));
    let sources =
        MetricSources { triggers: Some(Arc::clone(&triggers)), ..MetricSources::default() };
    let role = Role::alone();
    let config = scaled_jobs::Config {
        triggers,
        manage: Manage::default(),
        dry_run: false,
        leading: role.leading.clone(),
        instruments: Arc::new(Metrics::new()),
        observers: Vec::new(),
    };
    let jobs = ScaledJobs::start(client, clock, config);
    let watchers = Watchers::default();
    let controller = Controller::start_with(
        client,
        clock,
        Config::default(),
        Vec::new(),
        watchers,
        role,
        sources,
    );
    Deciding { _controller: controller, _jobs: jobs }
}

fn objects(world: &World) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("keda.sh", "v1alpha1", "ScaledJob");
    let resource = ApiResource::from_gvk(&kind);
    Api::namespaced_with(world.client.clone(), &world.namespace, &resource)
}

/// A window that is open all the year but for its last minute, or never but then.
fn window(open: bool, wanted: &str) -> Value {
    let (start, end) = ("0 0 1 1 *", "59 23 31 12 *");
    let (start, end) = if open { (start, end) } else { (end, start) };
    json!([{"type": "cron", "metadata": {"timezone": "Etc/UTC", "start": start, "end": end,
        "desiredReplicas": wanted}}])
}

async fn create(world: &World, spec: Value) {
    let mut object = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob",
        "metadata": {"name": "mail"}, "spec": {"pollingInterval": 5, "jobTargetRef": {"template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "v1"}]}}}}});
    for (field, value) in spec.as_object().unwrap() {
        object["spec"][field] = value.clone();
    }
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let api = objects(world);
    world
        .until("the kind is served", true, async || {
            api.create(&PostParams::default(), &object).await.is_ok()
        })
        .await;
}

async fn change(world: &World, patch: Value) {
    let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
    objects(world).patch("mail", &params, &patch).await.unwrap();
}

/// How many Jobs have not ended, and how many have.
async fn jobs(world: &World) -> (usize, usize) {
    let all = world.api::<Job>().list(&ListParams::default()).await.unwrap().items;
    let has_ended = |job: &&Job| {
        let conditions = job.status.iter().flat_map(|it| it.conditions.iter().flatten());
        conditions
            .into_iter()
            .any(|it| matches!(&*it.type_, "Complete" | "Failed") && it.status == "True")
    };
    let ended = all.iter().filter(has_ended).count();
    (all.len() - ended, ended)
}

async fn until_jobs(world: &World, unfinished: usize, ended: usize) {
    world.until("Jobs", (unfinished, ended), async || jobs(world).await).await;
}

/// Two polls.
async fn a_while(world: &World) {
    world.clock.sleep(Duration::from_secs(11)).await;
}

/// A condition's status and reason.
async fn said(world: &World, condition: &str) -> String {
    let object = objects(world).get("mail").await.unwrap();
    let all = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|it| it["type"] == condition).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("status"), text("reason"))
}

async fn until_said(world: &World, condition: &str, expected: &str) {
    world.until(condition, expected.to_owned(), async || said(world, condition).await).await;
}

#[test]
fn jobs_come_with_the_load_and_none_without() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let _deciding = start(&world).await;
        create(
            &world,
            json!({"triggers": window(true, "3"), "successfulJobsHistoryLimit": 2,
            "rollout": {"strategy": "gradual"}}),
        )
        .await;
        until_jobs(&world, 3, 0).await;
        until_said(&world, "Active", "True ScalerActive").await;
        until_said(&world, "Ready", "True ScaledJobReady").await;
        // Jobs that run are part of what is wanted.
        a_while(&world).await;
        assert_eq!(jobs(&world).await, (3, 0));
        assert_eq!(world.events("KEDAJobsCreated").await, ["Created 3 jobs"]);
        // One that is done makes room for another.
        end_one(&world, "Succeeded").await;
        until_jobs(&world, 3, 1).await;
        change(&world, json!({"spec": {"triggers": window(false, "3")}})).await;
        until_said(&world, "Active", "False ScalerNotActive").await;
        // Jobs of before are left alone, and no more are created.
        for _ in 0..3 {
            end_one(&world, "Succeeded").await;
        }
        until_jobs(&world, 0, 2).await;
        assert!(!world.events("ScaledJobInactive").await.is_empty());
        let object = objects(&world).get("mail").await.unwrap();
        assert_eq!(object.metadata.finalizers, Some(vec!["finalizer.keda.sh".to_owned()]));
        assert_eq!(object.data["status"]["triggersTypes"], "cron");
        objects(&world).delete("mail", &kube::api::DeleteParams::default()).await.unwrap();
        world.until("no Jobs", 0, async || world.names::<Job>().await.len()).await;
        world.until("no pods", 0, async || world.names::<Pod>().await.len()).await;
        assert_eq!(world.events("ScaledJobDeleted").await, ["ScaledJob was deleted"]);
    });
}

#[test]
fn another_generation_replaces_jobs_and_a_pause_leaves_them() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let _deciding = start(&world).await;
        create(&world, json!({"triggers": window(true, "2"), "maxReplicaCount": 4})).await;
        until_jobs(&world, 2, 0).await;
        let before = world.names::<Job>().await;
        change(&world, json!({"spec": {"triggers": window(true, "9")}})).await;
        // No more than the maximum, and none of the generation before.
        until_jobs(&world, 4, 0).await;
        let after = world.names::<Job>().await;
        assert!(before.iter().all(|name| !after.contains(name)), "{before:?}, {after:?}");
        let cleaned = world.events("ScaledJobRolloutCleanupCompleted").await;
        assert_eq!(cleaned, ["Deleted 2 jobs owned by the previous version of the scaledJob"]);
        let paused = "autoscaling.keda.sh/paused";
        change(&world, json!({"metadata": {"annotations": {paused: "true"}}})).await;
        until_said(&world, "Paused", "True ScaledJobPaused").await;
        end_one(&world, "Succeeded").await;
        until_jobs(&world, 3, 1).await;
        a_while(&world).await;
        assert_eq!(jobs(&world).await, (3, 1), "a pause creates nothing");
        change(&world, json!({"metadata": {"annotations": {paused: null}}})).await;
        until_jobs(&world, 4, 1).await;
        until_said(&world, "Paused", "False ScaledJobUnpaused").await;
    });
}

#[test]
fn a_minimum_is_kept_and_mistakes_are_said() {
    run(async |world: Arc<World>| {
        let _deciding = start(&world).await;
        create(&world, json!({"triggers": window(false, "9"), "minReplicaCount": 2})).await;
        until_jobs(&world, 2, 0).await;
        // No node takes their pods: they wait, and no more are created.
        a_while(&world).await;
        assert_eq!(jobs(&world).await, (2, 0));
        change(&world, json!({"spec": {"triggers": [{"type": "cron", "metadata": {}}]}})).await;
        until_said(&world, "Ready", "False ScaledJobCheckFailed").await;
        until_said(&world, "Active", "Unknown UnknownState").await;
        let why = world.events("ScaledJobCheckFailed").await;
        assert!(why.iter().any(|message| message.contains("timezone")), "{why:?}");
    });
}
