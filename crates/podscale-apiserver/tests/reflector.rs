//! kube's watcher, reflector and Controller against the server, under disconnects, compaction and
//! bursts: in the end the cache equals the store.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, WatchStreamExt, reflector, watcher};
use podscale_apiserver::{ApiServer, Config};
use support::{Random, client, config_map, flaky};

type Versions = BTreeMap<String, String>;

fn versions<'a>(objects: impl IntoIterator<Item = &'a ConfigMap>) -> Versions {
    let show = |object: &ConfigMap| {
        let (name, version) =
            (object.metadata.name.clone(), object.metadata.resource_version.clone());
        (name.unwrap_or_default(), version.unwrap_or_default())
    };
    objects.into_iter().map(show).collect()
}

/// Writes at random, in bursts, and forgets history now and then.
async fn disturb(api: &Api<ConfigMap>, server: &ApiServer, random: &mut Random, writes: u64) {
    let mut done = 0;
    while done < writes {
        for _ in 0..=random.below(40) {
            done += 1;
            let name = format!("c{:03}", random.below(150));
            match random.below(4) {
                0 => {
                    let _ = api.delete(&name, &DeleteParams::default()).await;
                }
                1 => {
                    let label = serde_json::json!({
                        "metadata": { "labels": { "odd": (random.below(2) == 1).to_string() } },
                    });
                    let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(label)).await;
                }
                _ => {
                    let object = config_map(&name, &random.below(1000).to_string());
                    if api.create(&PostParams::default(), &object).await.is_err() {
                        let data = serde_json::json!({ "data": object.data });
                        let _ =
                            api.patch(&name, &PatchParams::default(), &Patch::Merge(data)).await;
                    }
                }
            }
        }
        if random.below(6) == 0 {
            server.store().compact();
        }
        tokio::time::sleep(Duration::from_millis(random.below(20))).await;
    }
}

/// Waits until the cache shows what the store holds; panics if it never does.
async fn settle(api: &Api<ConfigMap>, parameters: &ListParams, cache: impl Fn() -> Versions) {
    let mut last = (Versions::new(), Versions::new());
    for _ in 0..600 {
        let listed = api.list(parameters).await.expect("lists");
        last = (versions(&listed.items), cache());
        if last.0 == last.1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("store and cache differ:\n{:?}\n{:?}", last.0, last.1);
}

async fn run(seed: u64, config: watcher::Config, parameters: ListParams) {
    let server = ApiServer::new(Config {
        history_capacity: 64,
        seed: Some(seed),
        bookmark_interval: Duration::from_millis(200),
        ..Config::default()
    });
    let steady: Api<ConfigMap> = Api::namespaced(client(&server), "default");
    let watched: Api<ConfigMap> = Api::namespaced(flaky(&server, seed), "default");
    let (store, writer) = reflector::store();
    let stream = watcher(watched, config).default_backoff().reflect(writer).for_each(|_| async {});
    let watching = tokio::spawn(stream);
    let mut random = Random::new(seed);
    disturb(&steady, &server, &mut random, 1_500).await;
    settle(&steady, &parameters, || {
        let objects = store.state();
        versions(objects.iter().map(AsRef::as_ref))
    })
    .await;
    watching.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_and_watches_lose_nothing() {
    run(1, watcher::Config::default().page_size(20), ListParams::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streaming_lists_lose_nothing() {
    run(2, watcher::Config::default().streaming_lists(), ListParams::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selections_lose_nothing() {
    let selector = "odd=true";
    run(3, watcher::Config::default().labels(selector), ListParams::default().labels(selector))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_reconciles_every_object() {
    let server = ApiServer::new(Config { seed: Some(4), ..Config::default() });
    let api: Api<ConfigMap> = Api::namespaced(client(&server), "default");
    let seen = Arc::new(AtomicU64::new(0));
    let reconcile = |object: Arc<ConfigMap>, api: Arc<(Api<ConfigMap>, Arc<AtomicU64>)>| async move {
        let name = object.metadata.name.clone().unwrap_or_default();
        let done = object.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("done"));
        if !done {
            let patch = serde_json::json!({ "metadata": { "annotations": { "done": "yes" } } });
            api.0.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            api.1.fetch_add(1, Ordering::Relaxed);
        }
        Ok::<_, kube::Error>(Action::await_change())
    };
    let controller = Controller::new(
        Api::<ConfigMap>::namespaced(flaky(&server, 9), "default"),
        watcher::Config::default(),
    );
    let context = Arc::new((api.clone(), seen.clone()));
    let on_error =
        |_: Arc<ConfigMap>, _: &kube::Error, _: Arc<_>| Action::requeue(Duration::from_millis(50));
    let running = controller.run(reconcile, on_error, context).for_each(|_| async {});
    let running = tokio::spawn(running);
    for number in 0..100 {
        let object = config_map(&format!("c{number}"), "x");
        api.create(&PostParams::default(), &object).await.expect("created");
    }
    for _ in 0..600 {
        let listed = api.list(&ListParams::default()).await.expect("lists");
        let done = |object: &&ConfigMap| object.metadata.annotations.is_some();
        if listed.items.iter().filter(done).count() == 100 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let listed = api.list(&ListParams::default()).await.expect("lists");
    assert!(listed.items.iter().all(|object| object.metadata.annotations.is_some()));
    assert!(seen.load(Ordering::Relaxed) >= 100, "each object is marked");
    running.abort();
}
