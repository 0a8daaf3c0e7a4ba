//! Jobs: pods that succeed, fail, are suspended and go.

use super::world::{World, run};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::sync::Arc;

fn job(spec: Value) -> Value {
    let mut job = json!({"metadata": {"name": "count"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "terminationGracePeriodSeconds": 2,
        "containers": [{"name": "c", "image": "v1"}]}}}});
    for (field, value) in spec.as_object().unwrap() {
        job["spec"][field] = value.clone();
    }
    job
}

/// How many pods are in a phase.
async fn in_phase(world: &World, phase: &str) -> usize {
    let pods = world.api::<Pod>().list(&ListParams::default()).await.unwrap();
    let is = |pod: &&Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some(phase);
    pods.iter().filter(is).count()
}

/// Ends one pod that runs.
pub(super) async fn end_one(world: &World, phase: &str) {
    world.until("one runs", true, async || in_phase(world, "Running").await > 0).await;
    let api = world.api::<Pod>();
    let pods = api.list(&ListParams::default()).await.unwrap();
    let runs =
        |pod: &&Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    let name = pods.iter().find(runs).and_then(|pod| pod.metadata.name.clone()).unwrap();
    let status = json!({"status": {"phase": phase,
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": world.clock.now().to_string()}]}});
    let params = PatchParams::default();
    api.patch_status(&name, &params, &Patch::Strategic(&status)).await.unwrap();
}

/// The conditions that hold, and how many pods run, succeeded and failed.
async fn state(world: &World) -> String {
    let Some(job) = world.api::<Job>().get_opt("count").await.unwrap() else {
        return "gone".to_owned();
    };
    let status = job.status.unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let holding = conditions.into_iter().filter(|condition| condition.status == "True");
    let names: Vec<String> = holding.map(|condition| condition.type_).collect();
    let count = |count: Option<i32>| count.unwrap_or(0);
    let (active, succeeded, failed) =
        (count(status.active), count(status.succeeded), count(status.failed));
    format!("{active} {succeeded} {failed} {}", names.join(" ")).trim_end().to_owned()
}

async fn until(world: &World, expected: &str) {
    world.until("the Job", expected.to_owned(), async || state(world).await).await;
}

#[test]
fn a_job_runs_until_enough_pods_have_succeeded() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world.create::<Job>(job(json!({"completions": 3, "parallelism": 2}))).await;
        until(&world, "2 0 0").await;
        end_one(&world, "Succeeded").await;
        until(&world, "2 1 0").await;
        end_one(&world, "Succeeded").await;
        until(&world, "1 2 0").await;
        end_one(&world, "Succeeded").await;
        until(&world, "0 3 0 SuccessCriteriaMet Complete").await;
        assert_eq!(world.events("Completed").await, ["Job completed"]);
        assert_eq!(world.events("SuccessfulCreate").await.len(), 3);
        // Its pods stay until it goes.
        let pods = world.pods().await;
        assert_eq!(pods.len(), 3);
        let mut held = pods.iter().flat_map(|pod| pod.metadata.finalizers.iter().flatten());
        assert_eq!(held.next(), None, "counted");
        let labels = pods[0].metadata.labels.clone().unwrap();
        assert_eq!(labels["job-name"], "count");
        world.api::<Job>().delete("count", &DeleteParams::background()).await.unwrap();
        world.until("pods", 0, async || world.names::<Pod>().await.len()).await;
    });
}

#[test]
fn a_job_fails_when_its_pods_fail_too_often() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world
            .create::<Job>(job(json!({"backoffLimit": 1, "parallelism": 2, "completions": 2})))
            .await;
        until(&world, "2 0 0").await;
        end_one(&world, "Failed").await;
        until(&world, "2 0 1").await;
        end_one(&world, "Failed").await;
        // What still runs is ended, and counts as failed.
        until(&world, "0 0 3 FailureTarget Failed").await;
        let why = world.events("BackoffLimitExceeded").await;
        assert_eq!(why, ["Job has reached the specified backoff limit"]);
    });
}

#[test]
fn a_job_ends_after_its_deadline_and_goes_after_a_while() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let spec = json!({"activeDeadlineSeconds": 30, "ttlSecondsAfterFinished": 60});
        world.create::<Job>(job(spec)).await;
        until(&world, "1 0 0").await;
        until(&world, "0 0 1 FailureTarget Failed").await;
        assert_eq!(world.events("DeadlineExceeded").await.len(), 1);
        until(&world, "gone").await;
        world.until("pods", 0, async || world.names::<Pod>().await.len()).await;
    });
}

#[test]
fn a_suspended_job_has_no_pods() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world.create::<Job>(job(json!({"suspend": true}))).await;
        until(&world, "0 0 0 Suspended").await;
        assert_eq!(world.names::<Pod>().await.len(), 0);
        world.patch::<Job>("count", json!({"spec": {"suspend": false}})).await;
        until(&world, "1 0 0").await;
        world.patch::<Job>("count", json!({"spec": {"suspend": true}})).await;
        until(&world, "0 0 0 Suspended").await;
        world.until("pods", 0, async || world.names::<Pod>().await.len()).await;
        world.patch::<Job>("count", json!({"spec": {"suspend": false}})).await;
        end_one(&world, "Succeeded").await;
        until(&world, "0 1 0 SuccessCriteriaMet Complete").await;
    });
}

#[test]
fn a_job_that_cannot_be_run_says_so() {
    run(async |world: Arc<World>| {
        let policy = json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}]});
        world.create::<Job>(job(json!({"podFailurePolicy": policy}))).await;
        until(&world, "0 0 0 FailureTarget Failed").await;
        let why = world.events("NotSupported").await;
        assert!(why.iter().any(|message| message.contains("podFailurePolicy")), "{why:?}");
        assert_eq!(world.names::<Pod>().await.len(), 0);
    });
}

#[test]
fn pods_of_a_job_that_is_gone_are_not_left_behind() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world.create::<Job>(job(json!({"parallelism": 3, "completions": 3}))).await;
        until(&world, "3 0 0").await;
        world.api::<Job>().delete("count", &DeleteParams::foreground()).await.unwrap();
        until(&world, "gone").await;
        assert_eq!(world.names::<Pod>().await.len(), 0);
    });
}
