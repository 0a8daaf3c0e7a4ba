//! Kubelets and a Prometheus that hang, lie, are overloaded or go elsewhere. What is measured by others is decided
//! on meanwhile, as often as before: each fault lasts until that was seen, however long it takes, and whoever
//! waited for the one that hangs would wait longer than the test has patience.

#[path = "faults/prometheus.rs"]
mod prometheus;

use super::certificates::Authority;
use super::fixture::{Fixture, load};
use super::harness::Harness;
use super::program::Program;
use super::serve::node::{Node, Used, kubelet};
use anyhow::{Context, Result, ensure};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use libtest_mimic::Trial;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Longer than any test waits.
const FOR_EVER: &str = "10m";
/// To each of these sizes the others are scaled while something is wrong: so many decisions each.
const SIZES: [i64; 5] = [4, 2, 5, 3, 2];

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.alone("faults::kubelets", kubelets),
        harness.alone("faults::prometheus", prometheus::scenario),
    ]
}

/// An autoscaler that wants half of the 100m which each pod requests.
fn cpu() -> Value {
    json!([{"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}}])
}

/// Thousandths of a core for so many replicas: a little less than they are meant for, as usage and the replicas
/// that it needs are rounded up.
fn work(replicas: i64) -> f64 {
    (replicas as f64 - 0.2) * 50.0
}

/// What each workload burns; its running pods share it.
#[derive(Clone, Default)]
struct Burning(Arc<Mutex<Vec<(&'static str, f64)>>>);

impl Burning {
    fn set(&self, workload: &'static str, replicas: i64) {
        let mut all = self.0.lock();
        all.retain(|(name, _)| *name != workload);
        all.push((workload, work(replicas)));
    }

    fn of(&self, workload: &str) -> f64 {
        let all = self.0.lock();
        all.iter().find(|(name, _)| *name == workload).map_or(0.0, |(_, millis)| *millis)
    }

    /// The part of each running pod of a workload, in cores.
    fn shares(&self, fixture: &Fixture, workload: &str) -> Vec<(String, f64)> {
        let mut pods = fixture.environment.kubelet.running(Some(&fixture.namespace));
        pods.retain(|pod| pod.labels.get("app").is_some_and(|app| app == workload));
        let share = self.of(workload) / 1000.0 / pods.len().max(1) as f64;
        pods.into_iter().map(|pod| (pod.name, share)).collect()
    }
}

/// How a kubelet behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Well,
    /// Says nothing until it is well again.
    Hangs,
    /// Says one byte now and then, until it is well again.
    Drips,
    /// Says what cannot be.
    Lies,
}

async fn behave(
    State(mode): State<watch::Receiver<Mode>>,
    request: Request,
    next: Next,
) -> Response {
    let mut mode = mode;
    let now = *mode.borrow_and_update();
    match now {
        Mode::Well => next.run(request).await,
        Mode::Hangs => {
            // If nobody can change it any more, the test is over.
            let _ = mode.wait_for(|mode| *mode == Mode::Well).await;
            next.run(request).await
        }
        Mode::Drips => {
            let drops = futures::stream::unfold(mode, |mode| async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let drips = *mode.borrow() == Mode::Drips;
                drips.then(|| (Ok::<_, std::io::Error>(Bytes::from_static(b"#")), mode))
            });
            Body::from_stream(drops).into_response()
        }
        Mode::Lies => {
            let text = next.run(request).await.into_body();
            let text = axum::body::to_bytes(text, 1 << 20).await.unwrap_or_default();
            lie(&String::from_utf8_lossy(&text)).into_response()
        }
    }
}

/// The same samples with values and times that cannot be, each another one.
fn lie(text: &str) -> String {
    let values = ["NaN", "-5", "1e300", "+Inf", "7 99999999999999", "x", ""];
    let lines = text.lines().zip(values.iter().cycle()).map(|(line, value)| {
        let name = line.rsplit_once("} ").map_or(line, |(name, _)| name);
        format!("{name}}} {value}\n")
    });
    lines.collect()
}

/// `web` is measured on a node that is well, `far` on one that is not.
async fn kubelets(fixture: Fixture) -> Result<()> {
    let (plane, burning) = (&fixture.environment.plane, Burning::default());
    let usage = |workload: &'static str| {
        let (fixture, burning) = (fixture.clone(), burning.clone());
        move || {
            let used = |(pod, cores)| Used {
                namespace: fixture.namespace.clone(),
                pod,
                container: "app".to_owned(),
                cores,
            };
            burning.shares(&fixture, workload).into_iter().map(used).collect()
        }
    };
    let well = Node::start(plane, "well", Box::new(usage("web"))).await?;
    let (mode, behaviour) = watch::channel(Mode::Well);
    let router = kubelet(Box::new(usage("far"))).layer(from_fn_with_state(behaviour, behave));
    let mut bad = Node::serve(plane, "bad", router.clone()).await?;
    for name in ["web", "far"] {
        burning.set(name, 2);
        fixture.deployment(name, 2).await?;
        fixture.autoscaler(name, (1, 9), cpu(), Value::Null).await?;
    }
    let timeout = format!("--kubelet-request-timeout={FOR_EVER}");
    let flags = [
        "--leader-elect=false",
        "--resource-metrics=kubelet",
        "--metric-resolution=1s",
        "--metric-max-age=5s",
        &timeout,
    ];
    let mut program = Program::quick(&fixture.namespace, plane, &flags)?;
    let scenario = async {
        both_are_well(&fixture, &burning).await.context("at first")?;
        for fault in [Mode::Hangs, Mode::Drips, Mode::Lies] {
            mode.send_replace(fault);
            only_the_other_goes_on(&fixture, &burning)
                .await
                .with_context(|| format!("{fault:?}"))?;
            mode.send_replace(Mode::Well);
            both_are_well(&fixture, &burning).await.with_context(|| format!("after {fault:?}"))?;
        }
        let stranger = Authority::new()?.sign("bad", &["127.0.0.1"])?;
        bad.move_to(&stranger, router.clone()).await?;
        only_the_other_goes_on(&fixture, &burning).await.context("a wrong certificate")?;
        bad.move_to(&plane.authority.sign("bad", &["127.0.0.1"])?, router.clone()).await?;
        both_are_well(&fixture, &burning).await.context("at another address")
    };
    scenario.await.with_context(|| program.log_tail())?;
    for words in ["cannot be scraped", "invalid peer certificate", "is scraped again"] {
        ensure!(program.log().contains(words), "it never said {words:?}:\n{}", program.log_tail());
    }
    well.remove().await?;
    bad.remove().await?;
    program.stop().await
}

/// Both follow what they burn.
async fn both_are_well(fixture: &Fixture, burning: &Burning) -> Result<()> {
    for replicas in [3, 2] {
        for name in ["web", "far"] {
            burning.set(name, replicas);
        }
        for name in ["web", "far"] {
            fixture.until_replicas(name, replicas).await?;
            fixture.until_pods(name, i32::try_from(replicas)?).await?;
        }
    }
    Ok(())
}

/// `web` follows; `far` says that it is not measured, and stays as it is, whatever would be said of it.
async fn only_the_other_goes_on(fixture: &Fixture, burning: &Burning) -> Result<()> {
    burning.set("far", 9);
    for replicas in SIZES {
        burning.set("web", replicas);
        fixture.until_replicas("web", replicas).await?;
        fixture.until_pods("web", i32::try_from(replicas)?).await?;
    }
    let verdict = "False FailedGetResourceMetric";
    fixture.until_verdict("far", "ScalingActive", verdict).await?;
    ensure!(fixture.replicas("far").await? == 2, "far was scaled by what nobody measured");
    burning.set("far", 2);
    Ok(())
}
