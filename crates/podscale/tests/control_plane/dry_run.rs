//! The dry run beside kube-controller-manager's own controller, under a load that changes all the time:
//! the two decide alike, so that no disagreement may be reported; one with other settings is found out.

use super::fixture::{Fixture, autoscaler, load};
use super::metrics::Usage;
use super::program::Program;
use anyhow::{Result, ensure};
use serde_json::json;
use std::time::Duration;

/// How many times the load changes, and how often.
const CHANGES: u32 = 22;
const PAUSE: Duration = Duration::from_millis(2700);

const APPS: [&str; 4] = ["cpu", "rps", "queue", "paced"];

async fn set_up(fixture: &Fixture) -> Result<()> {
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let rps = json!([{"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}}]);
    let rules = |kind: &str, value: i32, seconds: i32, window: i32| {
        json!({"stabilizationWindowSeconds": window,
            "policies": [{"type": kind, "value": value, "periodSeconds": seconds}]})
    };
    // Windows are short, so that comparing begins soon and goes on soon.
    let quick = json!({"scaleUp": rules("Percent", 900, 3, 0),
        "scaleDown": rules("Percent", 100, 3, 6)});
    let paced = json!({"scaleUp": rules("Pods", 2, 5, 0), "scaleDown": rules("Percent", 50, 5, 4)});
    let held = json!({"scaleDown": {"stabilizationWindowSeconds": 6}});
    change(fixture, 0);
    for (name, metric, behavior) in [
        ("cpu", cpu, quick.clone()),
        ("rps", rps, quick),
        ("queue", load("queue"), held),
        ("paced", load("paced"), paced),
    ] {
        fixture.deployment(name, 3).await?;
        fixture.create(autoscaler(name, (1, 8), metric, behavior)).await?;
    }
    Ok(())
}

/// Sets all loads; they go up and down without a pattern that anything could fall in step with.
fn change(fixture: &Fixture, number: u32) {
    let wave = |seed: u32, most: u32| i64::from((number * seed + number * number * 7) % most);
    let (metrics, namespace) = (fixture.metrics(), &fixture.namespace);
    metrics.set_usage(namespace, "cpu", "cpu", Usage::Total(60 + 37 * wave(5, 9)));
    metrics.set_usage(namespace, "rps", "rps", Usage::Total(11_000 + 7_300 * wave(3, 8)));
    for (name, seed) in [("queue", 11), ("paced", 13)] {
        metrics.set_external(namespace, name, &[(&[], 1_100 + 1_370 * wave(seed, 6))]);
    }
}

/// A dry run beside upstream's controller, which was started with these flags and scales in this
/// namespace.
pub async fn reports_no_false_alarm(fixture: &Fixture, flags: &[&str]) -> Result<()> {
    let plane = &fixture.environment.plane;
    set_up(fixture).await?;
    for name in APPS {
        fixture.until_verdict(name, "AbleToScale", "True ReadyForNewScale").await?;
    }
    let only = format!("--namespaces={}", fixture.namespace);
    let start = |name: &str, more: &[&str]| {
        let own = ["--dry-run", &only];
        let flags: Vec<&str> = flags.iter().chain(&own).chain(more).copied().collect();
        Program::start(name, plane.folder(), &plane.kubeconfig, &flags)
    };
    let like = start("dry-like", &["--log-level=info,podscale_controller::controller=debug"])?;
    let unlike = start("dry-unlike", &["--horizontal-pod-autoscaler-tolerance=20"])?;
    for number in 1..=CHANGES {
        tokio::time::sleep(PAUSE).await;
        change(fixture, number);
    }
    let compared = async |program: &Program, outcome: &str| {
        let labels = format!("outcome=\"{outcome}\"");
        program.metric("podscale_comparisons_total", &labels).await
    };
    let what = "whether other settings are found out";
    fixture.until(what, &true, async || Ok(compared(&unlike, "disagreed").await? >= 1.0)).await?;
    let [agreed, disagreed, unknown] = [
        compared(&like, "agreed").await?,
        compared(&like, "disagreed").await?,
        compared(&like, "unknown").await?,
    ];
    let counts = format!("{agreed} agreed, {disagreed} disagreed, {unknown} unknown");
    println!("choices of upstream beside a dry run: {counts}");
    ensure!(disagreed == 0.0, "{counts}:\n{}", like.log_tail());
    ensure!(agreed > unknown, "{counts}:\n{}", like.log_tail());
    let reported = like.metric("podscale_disagreements_total", "").await?;
    ensure!(reported == 0.0, "{reported} disagreements were reported");
    Ok(())
}
