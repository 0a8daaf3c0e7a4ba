//! How long a change of a metric takes to reach the target.

use super::load::{Load, Place, USED};
use super::plane::ControlPlane;
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How long a controller runs before it is measured.
const WARM_UP: Duration = Duration::from_secs(30);
/// How many changes are timed, and how many of them at once.
const CHANGES: usize = 200;
const AT_ONCE: usize = 20;
/// How often it is looked whether the target has changed.
const LOOK: Duration = Duration::from_millis(20);
/// The first lines of the table.
pub const HEAD: &str =
    "| autoscalers | controller | sample to scale, half | 99 % | longest |\n|---|---|---|---|---|";

/// Doubles what the pods of some autoscalers use, one after the other, and times how long it takes
/// until their targets are larger. `turn` tells one controller from another: each autoscaler is used
/// once, so that no earlier size stands in its way.
pub async fn measure(name: &str, turn: usize, plane: &ControlPlane, load: &Load) -> Result<()> {
    ensure!(
        load.places.count >= (turn + 1) * CHANGES,
        "too few autoscalers to time {CHANGES} of them"
    );
    tokio::time::sleep(WARM_UP).await;
    let mut took = Vec::new();
    for first in (turn * CHANGES..(turn + 1) * CHANGES).step_by(AT_ONCE) {
        let numbers = first..first + AT_ONCE;
        let timing = numbers.map(|number| time(plane, load, number));
        took.extend(futures::future::try_join_all(timing).await?);
    }
    took.sort();
    let at = |part: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
        let place = (part * took.len() as f64).ceil() as usize;
        took.get(place.saturating_sub(1)).map(Duration::as_secs_f64).context("nothing was timed")
    };
    let count = load.places.count;
    println!("| {count} | {name} | {:.2} s | {:.2} s | {:.2} s |", at(0.5)?, at(0.99)?, at(1.0)?);
    Ok(())
}

/// One change: others begin a bit earlier and later, so that no moment of the period is preferred.
async fn time(plane: &ControlPlane, load: &Load, number: usize) -> Result<Duration> {
    let Place { namespace, name } = load.places.place(number);
    tokio::time::sleep(Duration::from_millis(number as u64 * 739 % 15_000)).await;
    let before = replicas(plane, &namespace, &name).await?;
    load.set(number, 2 * USED);
    let began = Instant::now();
    while replicas(plane, &namespace, &name).await? == before {
        tokio::time::sleep(LOOK).await;
    }
    Ok(began.elapsed())
}

async fn replicas(plane: &ControlPlane, namespace: &str, name: &str) -> Result<i64> {
    let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets/{name}");
    let set: Value = plane.client.request(Request::get(path).body(Vec::new())?).await?;
    set["spec"]["replicas"].as_i64().context("replicas")
}
