//! Many objects that are new at the same time, and an API server that takes its time.

use super::*;
use axum::body::to_bytes;
use axum::http::Method;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// More than may be written to at the same time, and more than there are workers.
const OBJECTS_MADE: usize = WRITE_PERMITS + 60;
const WORKERS: usize = WRITE_PERMITS + 10;
const LABEL: &str = "scaledobject.keda.sh/name";

/// What was written to an object.
#[derive(Debug, PartialEq, Eq)]
enum Written {
    /// Its metadata: whether with the label, and with the finalizer.
    Metadata(bool, bool),
    Status,
}

/// What was written to which object, in order.
type Writes = Arc<Mutex<BTreeMap<String, Vec<Written>>>>;

impl Cluster {
    async fn make_many(&self) {
        let target = "/apis/apps/v1/namespaces/default/deployments";
        let mut workload = self.get(&format!("{target}/web")).await;
        let mut scaled = object(cron(ALL_YEAR, "1"), json!({}));
        for number in 0..OBJECTS_MADE {
            let name = format!("web-{number}");
            for made in [&mut workload, &mut scaled] {
                made["metadata"] = json!({"name": name});
            }
            self.send("POST", target, &workload).await;
            scaled["spec"]["scaleTargetRef"]["name"] = name.into();
            self.send("POST", OBJECTS, &scaled).await;
        }
    }

    /// A client whose writes to objects are noted, and wait until they may go on.
    fn slow_client(&self, writes: &Writes, open: &watch::Receiver<bool>) -> Client {
        let (writes, open) = (Arc::clone(writes), open.clone());
        let hold = move |request: Request<Body>, next: Next| {
            let (writes, mut open) = (Arc::clone(&writes), open.clone());
            async move {
                let (parts, body) = request.into_parts();
                let path = parts.uri.path().to_owned();
                let about = path.strip_prefix(OBJECTS).and_then(|rest| rest.strip_prefix('/'));
                let body = to_bytes(body, usize::MAX).await.expect("a body");
                if let Some(about) = about.filter(|_| parts.method != Method::GET) {
                    let (name, written) = match about.strip_suffix("/status") {
                        Some(name) => (name, Written::Status),
                        None => (about, metadata(&body)),
                    };
                    writes.lock().entry(name.to_owned()).or_default().push(written);
                    open.wait_for(|open| *open).await.expect("it is opened");
                }
                next.run(Request::from_parts(parts, Body::from(body))).await
            }
        };
        Client::new(self.server.router().layer(from_fn(hold)), "default")
    }
}

fn metadata(patch: &[u8]) -> Written {
    let patch: Value = serde_json::from_slice(patch).expect("a patch");
    let metadata = &patch["metadata"];
    Written::Metadata(
        metadata["labels"][LABEL].is_string(),
        metadata["finalizers"] == json!(["finalizer.keda.sh"]),
    )
}

#[tokio::test(start_paused = true)]
async fn polls_wait_for_no_write_and_metadata_is_one_patch_before_the_rest() {
    let cluster = Cluster::with_keda().await;
    cluster.make_many().await;
    let (writes, (opened, open)) = (Writes::default(), watch::channel(false));
    let client = cluster.slow_client(&writes, &open);
    let config = Config { concurrency: WORKERS, ..Config::default() };
    let (controller, triggers) =
        cluster.control_in_through(&client, TriggerMode::Direct, config, Watchers::default());
    let polled = || triggers.report().triggers.iter().filter(|it| it.value.is_some()).count();
    until("all are polled", async || polled() == OBJECTS_MADE).await;
    until("as many as may are being written to", async || writes.lock().len() == WRITE_PERMITS)
        .await;
    let is_free = |name: &String| !writes.lock().contains_key(name);
    let waiting = (0..OBJECTS_MADE).map(|number| format!("web-{number}")).find(is_free);
    let waiting = waiting.expect("one that waits to be written to");
    cluster.change(&waiting, json!({"metadata": {"annotations": {"note": "changed"}}})).await;
    // The watch brings it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    opened.send_replace(true);
    until("all have a status", async || {
        let writes = writes.lock();
        writes.len() == OBJECTS_MADE
            && writes.values().all(|writes| writes.contains(&Written::Status))
    })
    .await;
    controller.stop().await;
    let changed = cluster.object(&waiting).await;
    assert_eq!(changed["metadata"]["annotations"]["note"], "changed");
    assert_eq!(changed["metadata"]["finalizers"], json!(["finalizer.keda.sh"]));
    assert_eq!(writes.lock()[&waiting].len(), 2, "it is written to as it is then");
    for (name, writes) in &*writes.lock() {
        assert_eq!(writes[..2], [Written::Metadata(true, true), Written::Status], "{name}");
    }
}
