//! Two thousand autoscalers at once.

use super::fixture::Fixture;
use super::harness::Harness;
use super::metrics::Usage;
use super::plane::Autoscaler;
use super::program::{Program, sum};
use anyhow::{Result, ensure};
use axum::http::Request;
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::ListParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const COUNT: usize = 2000;
/// How many objects are created at the same time.
const CREATED_AT_ONCE: usize = 32;
/// How many requests a decision may cost when nothing changes; upstream needs two, one for the
/// target's scale and one for its metrics.
const REQUESTS_PER_DECISION: f64 = 0.2;

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.alone("many::two_thousand", two_thousand)]
}

/// Sets that nobody manages, each with a pod, and an autoscaler for each.
async fn create(fixture: &Fixture, number: usize) -> Result<()> {
    let name = format!("web-{number}");
    let labels = json!({"app": "web", "one": name});
    let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [{
        "name": "app", "image": "none", "resources": {"requests": {"cpu": "100m"}}}]}});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}});
    fixture.create(set).await?;
    let status = json!({"status": {"replicas": 1}});
    fixture.patch_status("apps/v1", "ReplicaSet", &name, status).await?;
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": labels}, "spec": template["spec"]});
    fixture.create(pod).await?;
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name}, "spec": {"minReplicas": 1, "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name},
            "metrics": [{"type": "Resource", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}}]}});
    fixture.create(hpa).await?;
    Ok(())
}

async fn two_thousand(fixture: Fixture) -> Result<()> {
    let plane = &fixture.environment.plane;
    // Nobody else may send requests while they are counted.
    plane.stop_manager();
    fixture.metrics().set_usage(&fixture.namespace, "web", "cpu", Usage::Each(50));
    let creations = stream::iter(0..COUNT).map(|number| create(&fixture, number));
    creations.buffer_unordered(CREATED_AT_ONCE).try_collect::<()>().await?;
    let flags = ["--leader-elect=false", "--horizontal-pod-autoscaler-sync-period=5s"];
    let mut program =
        Program::start(&fixture.namespace, plane.folder(), &plane.kubeconfig, &flags)?;
    let outcome = all_are_decided(&fixture, &program).await;
    program.stop().await?;
    plane.start_manager(Autoscaler::Off, &[]).await?;
    outcome
}

async fn all_are_decided(fixture: &Fixture, program: &Program) -> Result<()> {
    fixture
        .until("autoscalers that were decided", &COUNT, async || {
            let hpas = fixture.api("autoscaling/v2", "HorizontalPodAutoscaler");
            let list = hpas.list(&ListParams::default()).await?;
            Ok(list.iter().filter(|hpa| is_active(&hpa.data["status"])).count())
        })
        .await?;
    let (before, decided) = (requests(fixture).await?, program.decisions().await?);
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    let enough = decided + (2 * COUNT) as f64;
    fixture
        .until("whether each was decided twice more", &true, async || {
            let so_far = program.decisions().await?;
            ensure!(so_far >= enough, "{so_far} of {enough} decisions");
            Ok(true)
        })
        .await?;
    let decided = program.decisions().await? - decided;
    let mut asked = requests(fixture).await?;
    asked.iter_mut().for_each(|(what, count)| *count -= before.get(what).unwrap_or(&0.0));
    asked.retain(|_, count| *count > 0.0);
    let all: f64 = asked.values().sum();
    println!("{all} requests for {decided} decisions of {COUNT} autoscalers without a change");
    ensure!(all < decided * REQUESTS_PER_DECISION, "{decided} decisions needed {asked:?}");
    Ok(())
}

fn is_active(status: &Value) -> bool {
    let conditions = status["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter().any(|c| c["type"] == "ScalingActive" && c["reason"] == "ValidMetricFound")
    })
}

/// How many requests the API server has answered, by verb and resource, of the kinds that a
/// controller sends; and how many it has passed on to the metrics.
async fn requests(fixture: &Fixture) -> Result<BTreeMap<String, f64>> {
    const RESOURCES: [&str; 8] = [
        "horizontalpodautoscalers",
        "deployments",
        "replicasets",
        "statefulsets",
        "replicationcontrollers",
        "pods",
        "events",
        "configmaps",
    ];
    let request = Request::get("/metrics").body(Vec::new())?;
    let text = fixture.client().request_text(request).await?;
    let mut counts = BTreeMap::new();
    for resource in RESOURCES {
        for verb in ["GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "APPLY", "DELETE"] {
            let of = |subresource: &str| {
                let labels = format!("resource=\"{resource}\",");
                let series = text.lines().filter(|line| {
                    line.contains(&labels)
                        && line.contains(&format!("subresource=\"{subresource}\""))
                        && line.contains(&format!("verb=\"{verb}\""))
                });
                let series = series.collect::<Vec<_>>().join("\n");
                sum(&series, "apiserver_request_total", "")
            };
            for subresource in ["", "status", "scale"] {
                let what = format!("{verb} {resource}/{subresource}");
                counts.insert(what.trim_end_matches('/').to_owned(), of(subresource));
            }
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "thousands")]
    counts.insert("metrics".to_owned(), fixture.metrics().asked() as f64);
    Ok(counts)
}
