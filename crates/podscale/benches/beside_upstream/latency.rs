//! How long a change of a metric takes to reach the target.

use super::autoscalers::{PODS, Places};
use super::plane::ControlPlane;
use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::apps::v1::ReplicaSet;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a controller runs before it is measured.
const WARM_UP: Duration = Duration::from_secs(30);
/// How many changes are timed, spread over the usual period so that no moment of it is preferred.
const CHANGES: usize = 200;
const PAUSE: Duration = Duration::from_millis(75);
/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(180);
/// The first lines of the table.
pub const HEAD: &str =
    "| autoscalers | controller | sample to scale, half | 99 % | longest |\n|---|---|---|---|---|";

/// Lets `double` make the pods of some autoscalers use twice as much, one autoscaler after the other, and
/// times how long it takes until their targets are larger. `turn` tells one controller from another: each
/// autoscaler is used once, so that no earlier size stands in its way.
pub async fn measure(
    name: &str,
    turn: usize,
    plane: &ControlPlane,
    places: Places,
    double: impl Fn(usize),
) -> Result<()> {
    let first = turn * CHANGES;
    let count = places.count;
    ensure!(count >= first + CHANGES, "too few autoscalers to time {CHANGES} of them");
    tokio::time::sleep(WARM_UP).await;
    let began = Mutex::new(HashMap::new());
    let changing = async {
        for number in first..first + CHANGES {
            began.lock().insert(places.place(number).name, Instant::now());
            double(number);
            tokio::time::sleep(PAUSE).await;
        }
        std::future::pending().await
    };
    let timing = tokio::time::timeout(TIMEOUT, time(plane, &began));
    let took = tokio::select! {
        took = timing => took.context("targets did not change in time")??,
        () = changing => Vec::new(),
    };
    let at = |percent: usize| {
        let took = took.get((took.len() * percent).div_ceil(100).saturating_sub(1));
        took.map(Duration::as_secs_f64).context("nothing was timed")
    };
    println!("| {count} | {name} | {:.2} s | {:.2} s | {:.2} s |", at(50)?, at(99)?, at(100)?);
    Ok(())
}

/// Sees the targets change, and how long after the change of their metric.
async fn time(
    plane: &ControlPlane,
    began: &Mutex<HashMap<String, Instant>>,
) -> Result<Vec<Duration>> {
    let sets: Api<ReplicaSet> = Api::all(plane.client.clone());
    let mut changes = watcher(sets, watcher::Config::default()).applied_objects().boxed();
    let mut took = Vec::new();
    while took.len() < CHANGES {
        let set = changes.try_next().await?.context("the watch ended")?;
        let replicas = set.spec.replicas.and_then(|replicas| usize::try_from(replicas).ok());
        if replicas.is_some_and(|replicas| replicas > PODS)
            && let Some(began) = began.lock().remove(&set.name_any())
        {
            took.push(began.elapsed());
        }
    }
    took.sort();
    Ok(took)
}
