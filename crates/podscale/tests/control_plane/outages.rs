//! API servers and controllers that die, and those that take over.

use super::fixture::{Fixture, load};
use super::harness::Harness;
use super::program::Program;
use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use kube::runtime::{WatchStreamExt, watcher};
use libtest_mimic::Trial;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::task::AbortHandle;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.alone("outages::controller_restarted", controller_restarted),
        harness.alone("outages::leader_killed", leader_killed),
        harness.alone("outages::graceful_hand_over", graceful_hand_over),
        harness.alone("outages::server_killed", server_killed),
        harness.alone("outages::watch_expired", watch_expired),
    ]
}

fn start(fixture: &Fixture, name: &str, flags: &[&str]) -> Result<Program> {
    let name = format!("{}-{name}", fixture.namespace);
    Program::quick(&name, &fixture.environment.plane, flags)
}

/// Short leases, of a name of their own.
fn election(fixture: &Fixture) -> [String; 6] {
    [
        "--leader-elect=true".to_owned(),
        "--leader-elect-lease-duration=6s".to_owned(),
        "--leader-elect-renew-deadline=4s".to_owned(),
        "--leader-elect-retry-period=1s".to_owned(),
        format!("--leader-elect-resource-name={}", fixture.namespace),
        format!("--leader-elect-resource-namespace={}", fixture.namespace),
    ]
}

async fn holder(fixture: &Fixture) -> Result<String> {
    let leases = fixture.api("coordination.k8s.io/v1", "Lease");
    let lease = leases.get_opt(&fixture.namespace).await?;
    let holder =
        lease.and_then(|lease| lease.data["spec"]["holderIdentity"].as_str().map(str::to_owned));
    Ok(holder.unwrap_or_default())
}

/// Waits until somebody leads who is not `old`.
async fn until_leader(fixture: &Fixture, old: &str) -> Result<String> {
    fixture
        .until("whether there is a new leader", &true, async || {
            let holder = holder(fixture).await?;
            Ok(!holder.is_empty() && holder != old)
        })
        .await?;
    holder(fixture).await
}

/// The sizes that a Deployment was given, in order.
struct Sizes {
    seen: Arc<Mutex<Vec<i64>>>,
    task: AbortHandle,
}

impl Sizes {
    fn of(fixture: &Fixture, name: &str) -> Sizes {
        let seen = Arc::<Mutex<Vec<i64>>>::default();
        let (api, log) = (fixture.api("apps/v1", "Deployment"), Arc::clone(&seen));
        let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
        let task = tokio::spawn(async move {
            let mut changes = Box::pin(watcher(api, config).default_backoff().applied_objects());
            while let Some(change) = changes.next().await {
                let Ok(object) = change else { continue };
                let Some(size) = object.data["spec"]["replicas"].as_i64() else { continue };
                let mut log = log.lock();
                if log.last() != Some(&size) {
                    log.push(size);
                }
            }
        });
        Sizes { seen, task: task.abort_handle() }
    }

    fn so_far(&self) -> Vec<i64> {
        self.seen.lock().clone()
    }
}

impl Drop for Sizes {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One more pod in every two seconds.
fn slowly() -> Value {
    json!({"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 2}]}})
}

/// Two more pods, and then none for long.
fn once() -> Value {
    json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 1800}]},
        "scaleDown": {"stabilizationWindowSeconds": 1800}})
}

async fn leader_killed(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    let sizes = Sizes::of(&fixture, "web");
    let election = election(&fixture);
    let flags: Vec<&str> = election.iter().map(String::as_str).collect();
    let mut first = start(&fixture, "first", &flags)?;
    let leader = until_leader(&fixture, "").await?;
    let mut second = start(&fixture, "second", &flags)?;
    fixture.set_load("web", 9.0);
    fixture.autoscaler("web", (1, 9), load("web"), slowly()).await?;
    fixture
        .until("whether the scale-up is under way", &true, async || {
            Ok(fixture.replicas("web").await? >= 4)
        })
        .await?;
    first.kill();
    let before = fixture.replicas("web").await?;
    ensure!(before < 9, "it was over already");
    until_leader(&fixture, &leader).await?;
    fixture.until_replicas("web", 9).await?;
    let sizes = sizes.so_far();
    let steps: Vec<i64> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    ensure!(steps.iter().all(|step| *step == 1), "not one at a time: {sizes:?}");
    second.stop().await
}

/// The standby takes over at once, and knows what the policies have left.
async fn graceful_hand_over(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    let election = election(&fixture);
    let flags: Vec<&str> = election.iter().map(String::as_str).collect();
    let mut first = start(&fixture, "first", &flags)?;
    let leader = until_leader(&fixture, "").await?;
    let mut second = start(&fixture, "second", &flags)?;
    fixture.set_load("web", 8.0);
    fixture.autoscaler("web", (1, 9), load("web"), once()).await?;
    fixture.until_replicas("web", 4).await?;
    fixture.until_pods("web", 4).await?;
    fixture.until_verdict("web", "ScalingLimited", "True ScaleUpLimit").await?;
    first.stop().await?;
    let next = until_leader(&fixture, &leader).await?;
    for load in [7.0, 8.0] {
        fixture.until_seen("web", load).await?;
    }
    let replicas = fixture.replicas("web").await?;
    ensure!(replicas == 4, "the new leader forgot what its policy had spent: {replicas}");
    fixture.set_load("web", 1.0);
    fixture.until_verdict("web", "AbleToScale", "True ScaleDownStabilized").await?;
    ensure!(fixture.replicas("web").await? == 4, "the new leader forgot past recommendations");
    second.stop().await?;
    ensure!(holder(&fixture).await? != next, "the lease was not given back");
    Ok(())
}

/// The only controller comes back and knows what it knew.
async fn controller_restarted(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    let election = election(&fixture);
    let flags: Vec<&str> = election.iter().map(String::as_str).collect();
    let mut program = start(&fixture, "first", &flags)?;
    fixture.set_load("web", 8.0);
    fixture.autoscaler("web", (1, 9), load("web"), once()).await?;
    fixture.until_replicas("web", 4).await?;
    fixture.until_pods("web", 4).await?;
    program.stop().await?;
    let mut program = start(&fixture, "second", &flags)?;
    for load in [7.0, 8.0] {
        fixture.until_seen("web", load).await?;
    }
    let replicas = fixture.replicas("web").await?;
    ensure!(replicas == 4, "it forgot what its policy had spent: {replicas}");
    program.stop().await
}

async fn server_killed(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.set_load("web", 3.0);
    let mut program = start(&fixture, "run", &["--leader-elect=false"])?;
    fixture.autoscaler("web", (1, 9), load("web"), Value::Null).await?;
    fixture.until_replicas("web", 3).await?;
    let plane = &fixture.environment.plane;
    plane.kill_server();
    fixture.set_load("web", 5.0);
    plane.start_server().await?;
    fixture.metrics().until_available(&plane.client).await?;
    fixture.until_replicas("web", 5).await?;
    // What was created after the restart is seen as well.
    fixture.deployment("late", 1).await?;
    fixture.set_load("late", 4.0);
    fixture.autoscaler("late", (1, 9), load("late"), Value::Null).await?;
    fixture.until_replicas("late", 4).await?;
    program.stop().await
}

/// The controller sleeps while the API server is replaced by one that keeps no changes in memory, and
/// etcd forgets what happened meanwhile: nobody can tell, and the watches have to begin anew.
async fn watch_expired(fixture: Fixture) -> Result<()> {
    fixture.deployment("web", 2).await?;
    fixture.deployment("gone", 2).await?;
    fixture.set_load("web", 3.0);
    fixture.set_load("gone", 3.0);
    let mut program = start(&fixture, "run", &["--leader-elect=false"])?;
    for name in ["web", "gone"] {
        fixture.autoscaler(name, (1, 9), load(name), Value::Null).await?;
        fixture.until_replicas(name, 3).await?;
    }
    let plane = &fixture.environment.plane;
    let expired = "reason=\"expired\"";
    let before = program.metric("podscale_watch_restarts_total", expired).await?;
    ensure!(before == 0.0, "a watch expired too early");
    program.signal("STOP")?;
    plane.kill_server();
    plane.start_server_with(&["--watch-cache=false"]).await?;
    fixture.metrics().until_available(&plane.client).await?;
    let hpa = ("autoscaling/v2", "HorizontalPodAutoscaler");
    fixture.patch(hpa.0, hpa.1, "web", json!({"spec": {"minReplicas": 6}})).await?;
    fixture.delete(hpa.0, hpa.1, "gone").await?;
    fixture.deployment("late", 1).await?;
    fixture.set_load("late", 4.0);
    fixture.autoscaler("late", (1, 9), load("late"), Value::Null).await?;
    plane.compact().await?;
    program.signal("CONT")?;
    fixture.until_replicas("web", 6).await?;
    fixture.until_replicas("late", 4).await?;
    for resource in ["pods", "deployments.apps", "horizontalpodautoscalers.autoscaling"] {
        let labels = format!("resource=\"{resource}\",{expired}");
        fixture
            .until(&format!("whether {labels} is reported"), &true, async || {
                Ok(program.metric("podscale_watch_restarts_total", &labels).await? >= 1.0)
            })
            .await?;
    }
    fixture.set_load("gone", 8.0);
    for load in [4.1, 4.0] {
        fixture.until_seen("late", load).await?;
    }
    let gone = fixture.replicas("gone").await.context("the target of a deleted autoscaler")?;
    ensure!(gone == 3, "a deleted autoscaler went on: {gone}");
    program.stop().await?;
    plane.kill_server();
    plane.start_server().await?;
    fixture.metrics().until_available(&plane.client).await
}
