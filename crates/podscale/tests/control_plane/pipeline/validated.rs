//! `podscale validate --cluster` asks the real Prometheus what PodAutoscalers ask it.

use super::prometheus::Prometheus;
use crate::fixture::{Workspace, deployment};
use crate::harness::Harness;
use crate::plane::ControlPlane;
use anyhow::{Result, ensure};
use axum::Router;
use axum::routing::get;
use libtest_mimic::Trial;
use serde_json::json;
use std::process::Command;

pub fn trial(harness: &Harness) -> Trial {
    let folder = harness.folder().to_owned();
    harness.independent("pipeline::validate_asks_prometheus", move |name| async move {
        let plane = ControlPlane::start(&folder.join(name)).await?;
        asked(&plane).await
    })
}

async fn asked(plane: &ControlPlane) -> Result<()> {
    let space = Workspace::open(plane.client.clone(), "shop").await?;
    space.create(deployment("web", 1, &["app"])).await?;
    let exposition = async || "shop_rate{side=\"a\"} 7\nshop_rate{side=\"b\"} 8\n";
    let router = Router::new().route("/metrics", get(exposition));
    let prometheus = Prometheus::start_at("127.0.0.1", plane.folder(), router).await?;
    let url = format!("--prometheus-url={}", prometheus.url);
    space
        .until("whether the query is answered", &true, async || {
            Ok(validate(plane, "sum(shop_rate)", &[&url])?.0 == 0)
        })
        .await?;
    for (query, flags, code, says) in [
        (
            "shop_rate",
            vec![&*url],
            1,
            "spec.metrics[0].prometheus: the query gives 2 values, not one",
        ),
        ("sum(shop_none)", vec![&url], 1, "the query has no value"),
        ("sum(", vec![&url], 1, "spec.metrics[0].prometheus: "),
        ("sum(", vec![], 0, "not asked: --prometheus-url does not say where Prometheus is"),
    ] {
        let (ended, text) = validate(plane, query, &flags)?;
        ensure!(ended == code && text.contains(says), "{query}: {ended} {text}");
    }
    Ok(())
}

/// Checks an autoscaler with a query; the exit code, and all that is said.
fn validate(plane: &ControlPlane, query: &str, flags: &[&str]) -> Result<(i32, String)> {
    let source = json!({"query": query, "target": {"type": "Value", "value": "5"}});
    let object = json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxReplicas": 9, "metrics": [{"type": "Prometheus", "prometheus": source}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let file = plane.folder().join("validated.json");
    std::fs::write(&file, object.to_string())?;
    let answer = Command::new(env!("CARGO_BIN_EXE_podscale"))
        .args(["validate", "--cluster", "--kubeconfig"])
        .arg(&plane.kubeconfig)
        .arg("--filename")
        .arg(&file)
        .args(flags)
        .env_remove("PODSCALE_PROMETHEUS_URL")
        .output()?;
    let text = [answer.stdout, answer.stderr].concat();
    Ok((answer.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned()))
}
