//! kube's watcher, reflector and Controller against the server, under disconnects, compaction and
//! bursts: no event is lost or comes twice, and in the end the caches equal the store.
//!
//! Each test disturbs for a few seconds; `PODSCALE_DISTURB_SECONDS=180 cargo test --package
//! podscale-apiserver --test reflector` does so for minutes.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{Controller, WatchStreamExt, reflector};
use podscale_apiserver::{ApiServer, Config};
use support::{Random, client, config_map, flaky};

/// How long each test disturbs, unless told otherwise.
const SECONDS: u64 = 4;
/// How long caches may take to become equal afterwards.
const PATIENCE: Duration = Duration::from_secs(120);

type Versions = BTreeMap<String, String>;

fn name(object: &ConfigMap) -> String {
    object.metadata.name.clone().unwrap_or_default()
}

fn version(object: &ConfigMap) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

fn versions<'a>(objects: impl IntoIterator<Item = &'a ConfigMap>) -> Versions {
    objects.into_iter().map(|object| (name(object), version(object))).collect()
}

fn disturbance() -> Duration {
    let told = std::env::var("PODSCALE_DISTURB_SECONDS").ok();
    Duration::from_secs(told.map_or(SECONDS, |told| told.parse().expect("a number of seconds")))
}

/// Comes back at once, so that there is much to break.
struct Impatient;

impl Iterator for Impatient {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

impl Backoff for Impatient {
    fn reset(&mut self) {}
}

fn server(seed: u64) -> ApiServer {
    ApiServer::new(Config {
        history_capacity: 64,
        seed: Some(seed),
        bookmark_interval: Duration::from_millis(200),
        ..Config::default()
    })
}

/// Writes at random, in bursts, and forgets history now and then.
async fn disturb(api: &Api<ConfigMap>, server: &ApiServer, random: &mut Random) {
    let end = Instant::now() + disturbance();
    while Instant::now() < end {
        for _ in 0..=random.below(40) {
            write(api, random).await;
        }
        if random.below(6) == 0 {
            server.store().compact();
        }
        tokio::time::sleep(Duration::from_millis(random.below(20))).await;
    }
}

/// One write; that what it is about may be there already, or not, is part of the game.
async fn write(api: &Api<ConfigMap>, random: &mut Random) {
    let name = format!("c{:03}", random.below(150));
    let patch = PatchParams::default();
    match random.below(4) {
        0 => {
            let _ = api.delete(&name, &DeleteParams::default()).await;
        }
        1 => {
            let odd = (random.below(2) == 1).to_string();
            let label = serde_json::json!({ "metadata": { "labels": { "odd": odd } } });
            let _ = api.patch(&name, &patch, &Patch::Merge(label)).await;
        }
        _ => {
            let object = config_map(&name, &random.below(1000).to_string());
            if api.create(&PostParams::default(), &object).await.is_err() {
                let data = serde_json::json!({ "data": object.data });
                let _ = api.patch(&name, &patch, &Patch::Merge(data)).await;
            }
        }
    }
}

/// Waits until the cache shows what the store holds; panics if it never does.
async fn settle(
    what: &str,
    api: &Api<ConfigMap>,
    parameters: &ListParams,
    cache: impl Fn() -> Versions,
) {
    let end = Instant::now() + PATIENCE;
    loop {
        let listed = versions(&api.list(parameters).await.expect("lists").items);
        let cached = cache();
        if listed == cached {
            return;
        }
        assert!(Instant::now() < end, "{what}: the store has\n{listed:?}\nthe cache\n{cached:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Holds every event against what came before it.
#[derive(Default)]
struct Witness {
    seen: BTreeMap<String, u64>,
    listed: BTreeMap<String, u64>,
    lists: u64,
    changes: u64,
}

impl Witness {
    fn hear(&mut self, event: &Event<ConfigMap>) {
        let number = |object: &ConfigMap| version(object).parse::<u64>().expect("a number");
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                self.listed.insert(name(object), number(object));
            }
            Event::InitDone => {
                for (name, now) in &self.listed {
                    let before = self.seen.get(name).copied().unwrap_or_default();
                    assert!(*now >= before, "{name} went back from {before} to {now}");
                }
                self.seen = std::mem::take(&mut self.listed);
                self.lists += 1;
            }
            Event::Apply(object) => {
                let before = self.seen.insert(name(object), number(object)).unwrap_or_default();
                let (name, now) = (name(object), number(object));
                assert!(now > before, "{name} at {now} came again after {before}");
                self.changes += 1;
            }
            Event::Delete(object) => {
                let before = self.seen.remove(&name(object));
                let (name, now) = (name(object), number(object));
                let before = before.unwrap_or_else(|| panic!("{name} at {now} went twice"));
                assert!(now > before, "{name} went at {now}, before {before}");
                self.changes += 1;
            }
        }
    }
}

async fn run(seed: u64, config: watcher::Config, parameters: ListParams) {
    let server = server(seed);
    let steady: Api<ConfigMap> = Api::namespaced(client(&server), "default");
    let watched: Api<ConfigMap> = Api::namespaced(flaky(&server, seed), "default");
    let (store, writer) = reflector::store();
    let witness = Arc::new(Mutex::new(Witness::default()));
    let heard = witness.clone();
    let stream = watcher::watcher(watched, config)
        .backoff(Impatient)
        .inspect_ok(move |event| heard.lock().expect("a witness").hear(event))
        .reflect(writer)
        .for_each(|_| async {});
    let watching = tokio::spawn(stream);
    disturb(&steady, &server, &mut Random::new(seed)).await;
    let settled = settle("reflector", &steady, &parameters, || {
        let objects = store.state();
        versions(objects.iter().map(AsRef::as_ref))
    });
    settled.await;
    watching.abort();
    let witness = witness.lock().expect("the witness saw nothing wrong");
    assert!(witness.lists > 1 && witness.changes > 1, "nothing was disturbed");
    println!("{} lists, {} changes", witness.lists, witness.changes);
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

/// Reconciling copies the value into an annotation, over the same bad network.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_controller_reconciles_every_change() {
    let server = server(4);
    let steady: Api<ConfigMap> = Api::namespaced(client(&server), "default");
    let shaky: Api<ConfigMap> = Api::namespaced(flaky(&server, 9), "default");
    let reconciled = Arc::new(AtomicU64::new(0));
    let controller =
        Controller::new(shaky.clone(), watcher::Config::default()).trigger_backoff(Impatient);
    let store = controller.store();
    let reconcile = |object: Arc<ConfigMap>, api: Arc<Api<ConfigMap>>| async move {
        let value = wanted(&object);
        if shown(&object) != value {
            let patch = serde_json::json!({ "metadata": { "annotations": { "copy": value } } });
            api.patch(&name(&object), &PatchParams::default(), &Patch::Merge(patch)).await?;
        }
        Ok::<_, kube::Error>(Action::await_change())
    };
    let on_error =
        |_: Arc<ConfigMap>, _: &kube::Error, _: Arc<_>| Action::requeue(Duration::from_millis(20));
    let count = reconciled.clone();
    let running = controller.run(reconcile, on_error, Arc::new(shaky)).for_each(move |result| {
        count.fetch_add(u64::from(result.is_ok()), Ordering::Relaxed);
        std::future::ready(())
    });
    let running = tokio::spawn(running);
    disturb(&steady, &server, &mut Random::new(4)).await;
    let end = Instant::now() + PATIENCE;
    loop {
        let listed = steady.list(&ListParams::default()).await.expect("lists").items;
        let open: Vec<String> =
            listed.iter().filter(|object| shown(object) != wanted(object)).map(name).collect();
        if open.is_empty() {
            break;
        }
        assert!(Instant::now() < end, "never reconciled at the end: {open:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Nothing writes any more: the cache has to come to rest where the store is.
    settle("controller", &steady, &ListParams::default(), || {
        let objects = store.state();
        versions(objects.iter().map(AsRef::as_ref))
    })
    .await;
    println!("{} reconciled", reconciled.load(Ordering::Relaxed));
    running.abort();
}

/// What the object says.
fn wanted(object: &ConfigMap) -> String {
    object.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default()
}

/// What was made of it.
fn shown(object: &ConfigMap) -> String {
    let annotations = object.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get("copy")).cloned().unwrap_or_default()
}
