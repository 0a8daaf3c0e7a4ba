//! What is recorded of ScaledObjects comes out the same when it is decided anew.

use super::*;
use crate::controller::observer::Observer;
use crate::record::{Limits as Bounds, Recorder};

/// The sizes of all steps of a ScaledObject; see [`sizes_of`].
async fn sizes(test: &str, object: Value, replicas: i64) -> Vec<i32> {
    let cluster = Cluster::with_keda().await;
    sizes_of(test, &cluster, (OBJECTS, &object), replicas).await
}

/// Runs a controller that records, until the Deployment has so many replicas, and replays; the sizes of all steps.
pub(super) async fn sizes_of(
    test: &str,
    cluster: &Cluster,
    (path, object): (&str, &Value),
    replicas: i64,
) -> Vec<i32> {
    let folder = recordings::folder(test);
    let metrics = Metrics::new();
    let (recorder, writing) =
        Recorder::start(&folder, Bounds::default(), metrics.clone()).expect("a folder");
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(recorder)];
    let watchers = Watchers { observers, metrics, ..Watchers::default() };
    let controller = cluster.watch_triggers(Config::default(), watchers);
    cluster.send("POST", path, object).await;
    until("it has its size", async || cluster.replicas().await == replicas).await;
    tokio::time::sleep(MINUTE).await;
    controller.stop().await;
    writing.finish();
    let (names, sizes) = recordings::replay(&folder);
    let expected = format!("default/web {} ", object["kind"].as_str().expect("a kind"));
    assert!(names.iter().all(|name| name.starts_with(&expected)), "{names:?}");
    sizes
}

#[tokio::test(start_paused = true)]
async fn triggers_replay() {
    let plain = object(cron(ALL_YEAR, "4"), json!({}));
    let found = sizes("so-plain", plain, 4).await;
    assert!(found.len() >= 3 && found.contains(&4), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn formulas_replay() {
    let mut triggers = cron(ALL_YEAR, "4");
    triggers[0]["name"] = json!("window");
    let modifiers = json!({"advanced": {"scalingModifiers":
        {"formula": "window + 1", "target": "1", "activationTarget": "2"}}});
    let found = sizes("so-formula", object(triggers, modifiers), 5).await;
    assert!(found.contains(&5), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_used_replays() {
    let unknown = object(json!([{"type": "crom", "metadata": {}}]), json!({}));
    let found = sizes("so-unknown", unknown, 1).await;
    assert!(!found.is_empty() && found.iter().all(|size| *size == 1), "{found:?}");
}
