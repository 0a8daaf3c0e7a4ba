//! The dry run beside kube-controller-manager's own controller, under a load that changes all the time:
//! the two decide alike, so that no disagreement may be told; one with other settings is found out.

use super::metrics::Usage;
use super::plane::Autoscaler;
use super::program::Program;
use super::room::{Room, autoscaler, load};
use super::stage::Theatre;
use anyhow::{Result, ensure};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use std::time::Duration;

pub fn trials(theatre: &Theatre) -> Vec<Trial> {
    vec![theatre.alone("beside_upstream::dry_run", dry_run)]
}

/// For both; windows are short, so that comparing begins soon.
const FLAGS: [&str; 4] = [
    "--horizontal-pod-autoscaler-sync-period=2s",
    "--horizontal-pod-autoscaler-downscale-stabilization=6s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
];
/// How many times the load changes, and how often.
const CHANGES: u32 = 22;
const PAUSE: Duration = Duration::from_millis(2700);

const APPS: [&str; 4] = ["cpu", "rps", "queue", "paced"];

async fn furnish(room: &Room) -> Result<()> {
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}]);
    let rps = json!([{"type": "Pods", "pods": {"metric": {"name": "rps"},
        "target": {"type": "AverageValue", "averageValue": "10"}}}]);
    let policies = json!({"policies": [{"type": "Pods", "value": 2, "periodSeconds": 5}]});
    let down = json!({"stabilizationWindowSeconds": 4,
        "policies": [{"type": "Percent", "value": 50, "periodSeconds": 5}]});
    // The usual rules look back over 15 s; these over less.
    let quick = json!({"scaleUp": {"stabilizationWindowSeconds": 0, "policies":
        [{"type": "Percent", "value": 900, "periodSeconds": 3}]}});
    let paced = json!({"scaleUp": policies, "scaleDown": down});
    change(room, 0);
    for (name, metric, behavior) in [
        ("cpu", cpu, quick.clone()),
        ("rps", rps, quick),
        ("queue", load("queue"), Value::Null),
        ("paced", load("paced"), paced),
    ] {
        room.deployment(name, 3).await?;
        room.create(autoscaler(name, (1, 8), metric, behavior)).await?;
    }
    Ok(())
}

/// Sets all loads; they go up and down without a pattern that anything could fall in step with.
fn change(room: &Room, number: u32) {
    let wave = |seed: u32, most: u32| i64::from((number * seed + number * number * 7) % most);
    let (metrics, namespace) = (room.metrics(), &room.namespace);
    metrics.set_usage(namespace, "cpu", "cpu", Usage::Total(60 + 37 * wave(5, 9)));
    metrics.set_usage(namespace, "rps", "rps", Usage::Total(11_000 + 7_300 * wave(3, 8)));
    for (name, seed) in [("queue", 11), ("paced", 13)] {
        metrics.set_external(namespace, name, &[(&[], 1_100 + 1_370 * wave(seed, 6))]);
    }
}

async fn dry_run(room: Room) -> Result<()> {
    let plane = &room.stage.plane;
    plane.start_manager(Autoscaler::On, &FLAGS).await?;
    furnish(&room).await?;
    for name in APPS {
        room.until_verdict(name, "AbleToScale", "True ReadyForNewScale").await?;
    }
    let start = |name: &str, more: &[&str]| {
        let flags: Vec<&str> = FLAGS.iter().chain(&["--dry-run"]).chain(more).copied().collect();
        Program::start(name, plane.folder(), &plane.kubeconfig, &flags)
    };
    let like = start("dry-like", &["--log-level=info,podscale::controller=debug"])?;
    let unlike = start("dry-unlike", &["--horizontal-pod-autoscaler-tolerance=20"])?;
    for number in 1..=CHANGES {
        tokio::time::sleep(PAUSE).await;
        change(&room, number);
    }
    let compared = async |program: &Program, outcome: &str| {
        let labels = format!("outcome=\"{outcome}\"");
        program.meter("podscale_comparisons_total", &labels).await
    };
    let what = "whether other settings are found out";
    room.until(what, &true, async || Ok(compared(&unlike, "disagreed").await? >= 1.0)).await?;
    let [agreed, disagreed, unknown] = [
        compared(&like, "agreed").await?,
        compared(&like, "disagreed").await?,
        compared(&like, "unknown").await?,
    ];
    plane.start_manager(Autoscaler::Off, &[]).await?;
    let counts = format!("{agreed} agreed, {disagreed} disagreed, {unknown} unknown");
    println!("beside_upstream::dry_run: {counts}");
    ensure!(disagreed == 0.0, "{counts}:\n{}", like.last_words());
    ensure!(agreed > unknown, "{counts}:\n{}", like.last_words());
    let told = like.meter("podscale_disagreements_total", "").await?;
    ensure!(told == 0.0, "{told} disagreements were told");
    Ok(())
}
