//! ScaledJobs on the embedded cluster, by a trigger that is a window of time: its value is the wanted number while the
//! window is open.

use super::jobs::end_one;
use super::world::{World, run};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use podscale_api::crds;
use podscale_api::recording::{AnyRecording, RecordingReader};
use podscale_api::replay::jobs::JobsReplayer;
use podscale_controller::controller::manage::Manage;
use podscale_controller::controller::observer::Observer;
use podscale_controller::controller::{Config, Controller, MetricSources, Role, Watchers};
use podscale_controller::dashboard::{Hub, router};
use podscale_controller::metrics::Metrics;
use podscale_controller::record::{Limits as RecordLimits, Recorder};
use podscale_controller::scaled_jobs::{self, ScaledJobs};
use podscale_controller::triggers::{Limits, Triggers};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::sync::Arc;
use std::time::Duration;
use tower::ServiceExt;

/// What creates Jobs, and what watches the pods for it.
struct Deciding {
    _controller: Controller,
    jobs: ScaledJobs,
}

/// Defines KEDA's kinds and begins to manage their objects.
async fn start(world: &World) -> Deciding {
    start_with(world, Vec::new()).await
}

/// The same, and these hear of it.
async fn start_with(world: &World, observers: Vec<Arc<dyn Observer>>) -> Deciding {
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
        observers,
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
    Deciding { _controller: controller, jobs }
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

/// A Job as KEDA's operator creates it.
async fn create_as_keda(world: &World, name: &str) {
    let job = json!({"metadata": {"name": name, "labels": {"scaledjob.keda.sh/name": "mail",
        "app.kubernetes.io/managed-by": "keda-operator"}}, "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "c", "image": "v1"}]}}}});
    let job: Job = serde_json::from_value(job).unwrap();
    world.api::<Job>().create(&PostParams::default(), &job).await.unwrap();
}

#[test]
fn jobs_are_left_to_another_controller_until_it_is_gone() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        // What KEDA has left is no conflict.
        create_as_keda(&world, "left").await;
        let _deciding = start(&world).await;
        create(&world, json!({"triggers": window(true, "3"), "rollout": {"strategy": "gradual"}}))
            .await;
        until_jobs(&world, 3, 0).await;
        a_while(&world).await;
        assert_eq!(said(&world, "podscale.dev/Conflict").await, " ");
        create_as_keda(&world, "beside").await;
        until_said(&world, "podscale.dev/Conflict", "True AnotherController").await;
        let warned = world.events("AnotherController").await;
        assert!(warned.iter().any(|text| text.contains("podscale.dev/managed")), "{warned:?}");
        for _ in 0..4 {
            end_one(&world, "Succeeded").await;
        }
        a_while(&world).await;
        assert_eq!(jobs(&world).await, (0, 4), "nothing is created beside it");
        // Twenty polls without a sign of it.
        until_jobs(&world, 3, 4).await;
        until_said(&world, "podscale.dev/Conflict", " ").await;
    });
}

#[test]
fn a_status_that_another_controller_overwrites_is_a_conflict() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let _deciding = start(&world).await;
        create(&world, json!({"triggers": window(true, "1")})).await;
        until_jobs(&world, 1, 0).await;
        let params =
            PatchParams { field_manager: Some("keda".to_owned()), ..PatchParams::default() };
        for round in 0..30 {
            if said(&world, "podscale.dev/Conflict").await == "True AnotherController" {
                return;
            }
            let status =
                json!({"status": {"lastActiveTime": format!("2026-01-01T00:00:{round:02}Z")}});
            objects(&world).patch_status("mail", &params, &Patch::Merge(&status)).await.unwrap();
            world.clock.sleep(Duration::from_secs(5)).await;
        }
        panic!("the other controller was not noticed");
    });
}

/// What the dashboard tells of an object.
async fn shown(hub: &Hub, name: &str) -> Value {
    let path = format!("/api/autoscalers/{name}?kind=scaledjobs.keda.sh");
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = router(hub.clone()).oneshot(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn decisions_are_shown_recorded_and_decided_again() {
    let folder = std::env::temp_dir().join(format!("podscale-jobs-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let hub = Hub::new(world.clock);
        let limits = RecordLimits { bytes: 1 << 20, age: Duration::from_secs(3600) };
        let (recorder, writing) = Recorder::start(&folder, limits, Metrics::new()).unwrap();
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(hub.clone()), Arc::new(recorder)];
        let deciding = start_with(&world, observers).await;
        create(&world, json!({"triggers": window(true, "3"), "maxReplicaCount": 2})).await;
        until_jobs(&world, 2, 0).await;
        a_while(&world).await;
        let shown = shown(&hub, &format!("{}/mail", world.namespace)).await;
        let row = &shown["autoscaler"];
        let told =
            ["outcome", "kind", "target"].map(|field| row[field].as_str().unwrap_or_default());
        assert_eq!(told, ["limited", "ScaledJob", "Jobs"], "{shown:#}");
        assert_eq!((&row["current"], &row["max"]), (&json!(2), &json!(2)), "{shown:#}");
        assert_eq!(row["metrics"][0]["current"], "3", "{shown:#}");
        let first = &shown["past"]["decisions"][0];
        assert_eq!((&first["from"], &first["to"]), (&json!(0), &json!(2)), "{shown:#}");
        let last = first["lines"].as_array().and_then(|lines| lines.last());
        assert_eq!(last, Some(&json!("so 2 are created")), "{shown:#}");
        change(&world, json!({"spec": {"triggers": window(false, "3")}})).await;
        until_said(&world, "Active", "False ScalerNotActive").await;
        change(&world, json!({"spec": {"triggers": [{"type": "cron", "metadata": {}}]}})).await;
        until_said(&world, "Ready", "False ScaledJobCheckFailed").await;
        let paused = json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}});
        change(&world, paused).await;
        until_said(&world, "Paused", "True ScaledJobPaused").await;
        deciding.jobs.stop().await;
        writing.finish();
    });
    let (mut created, mut steps) = (0, 0);
    for file in fs::read_dir(&folder).unwrap() {
        let mut lines = RecordingReader::new(File::open(file.unwrap().path()).unwrap()).unwrap();
        while let Some(line) = lines.next_line().unwrap() {
            let AnyRecording::Jobs(recording) = line.parse_any().unwrap() else { panic!("a size") };
            let text = String::from_utf8(line.bytes.clone()).unwrap();
            assert!(!text.contains("\"image\""), "what Jobs are made of is not recorded: {text}");
            let mut replayer = JobsReplayer::new(&recording);
            for step in &recording.steps {
                let again = replayer.step(step);
                let expected = step.decision.as_ref().expect("a decision");
                assert_eq!(&again.outcome, expected, "{step:?}");
                (created, steps) = (created + expected.created, steps + 1);
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(created, 2);
    assert!(steps >= 5, "{steps} steps");
}
