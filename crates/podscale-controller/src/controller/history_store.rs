//! Stores the histories of objects in ConfigMaps, so that rate policies and stabilization windows
//! hold across restarts and from one leader to the next.

mod config_map;

use super::index::Index;
use crate::time::now;
use config_map::{Stamp, Stored};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_client::clock::Clock;
use podscale_client::election::Term;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long is waited after a rescale, so that many are stored at once; wall-clock.
const BATCHING: Duration = Duration::from_millis(400);
/// The longest wait before a store is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a part is sent while it meets somebody else's write.
const STORE_TRIES: u32 = 3;
/// How often loading is tried before it goes on without.
const LOAD_TRIES: u32 = 3;
/// How long one try to load may take.
const LOAD_DEADLINE: Duration = Duration::from_secs(5);
/// How long one part, or all of them at the end, may take.
const DEADLINE: Duration = Duration::from_secs(2);
const RESOURCE: &str = "configmaps";

/// Where histories are stored.
#[derive(Clone, Debug)]
pub struct Config {
    /// The namespace of the ConfigMaps.
    pub namespace: String,
    /// What their names begin with; two installations in a namespace have two.
    pub name: String,
}

/// Stores and loads histories.
pub(super) struct HistoryStore {
    client: Client,
    clock: Clock,
    config: Config,
    index: Arc<Index>,
    /// The versions of the stored parts; held while they are written.
    versions: Mutex<HashMap<u8, String>>,
    /// The parts that were stored as incomplete, or may have been, since more was to come.
    incomplete: parking_lot::Mutex<BTreeSet<u8>>,
    failing: AtomicBool,
}

impl HistoryStore {
    /// Stores the histories of these objects.
    pub(super) fn new(
        client: Client,
        clock: Clock,
        config: Config,
        index: Arc<Index>,
    ) -> HistoryStore {
        let (versions, incomplete) = (Mutex::default(), parking_lot::Mutex::default());
        let failing = AtomicBool::new(false);
        HistoryStore { client, clock, config, index, versions, incomplete, failing }
    }

    fn folder(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", segment(&self.config.namespace))
    }

    /// Takes over what the last leader stored. Whatever goes wrong, deciding goes on.
    pub(super) async fn load(&self, term: Term) {
        let mut outcome = self.list().await;
        for _ in 1..LOAD_TRIES {
            let lost = matches!(outcome, Err(CallError::Unreachable(_) | CallError::Late(_)));
            if !lost {
                break;
            }
            tokio::time::sleep(BATCHING).await;
            outcome = self.list().await;
        }
        let maps = match outcome {
            Ok(maps) => maps,
            Err(error) => {
                tracing::warn!(%error, "cannot load histories; going on without");
                self.index.interrupt();
                return;
            }
        };
        let mut versions = self.versions.lock().await;
        versions.clear();
        let (mut all, mut unreadable) = (HashMap::new(), 0);
        for map in &maps {
            let Stored { shard, version, histories, broken } =
                config_map::read(map, &self.config.name, term, now(&self.clock));
            unreadable += broken;
            all.extend(histories);
            if let Some(shard) = shard {
                versions.insert(shard, version);
            }
        }
        if unreadable > 0 {
            tracing::warn!(unreadable, "some histories cannot be read; going on without them");
        }
        tracing::info!(autoscalers = all.len(), "histories loaded");
        self.index.restore(all);
        if term == Term::Alone {
            // What says that it is complete must not be believed once more after a crash.
            self.index.store_soon(versions.keys().copied().collect::<Vec<_>>());
        }
    }

    async fn list(&self) -> Result<Vec<ConfigMap>, CallError> {
        #[derive(Deserialize)]
        struct Maps {
            items: Option<Vec<ConfigMap>>,
        }
        let selector = format!("{}={}", config_map::LABEL, self.config.name);
        let path = format!("{}{}", self.folder(), query(&[("labelSelector", &selector)]));
        let about = About { resource: RESOURCE, name: "" };
        let maps = call::get::<Maps>(&self.client, &path, about);
        let maps = tokio::time::timeout(LOAD_DEADLINE, maps)
            .await
            .unwrap_or(Err(CallError::Late(LOAD_DEADLINE)))?;
        Ok(maps.items.unwrap_or_default())
    }

    /// Stores what was rescaled, soon after it was, for ever.
    pub(super) async fn store_rescaled(&self, term: Term) {
        let mut pause = BATCHING;
        loop {
            self.index.rescaled().await;
            tokio::time::sleep(pause).await;
            let shards = self.index.take_changed_shards(false);
            let stamp = Stamp { term, complete: false };
            self.incomplete.lock().extend(&shards);
            pause = if self.save(&shards, stamp).await {
                BATCHING
            } else {
                pause.saturating_mul(2).min(LONGEST_PAUSE)
            };
        }
    }

    /// Stores everything that has changed, for whoever leads next, and that nothing is missing.
    pub(super) async fn finish(&self, term: Term) {
        let mut shards = self.index.take_changed_shards(true);
        shards.append(&mut self.incomplete.lock());
        let saving = self.save(&shards, Stamp { term, complete: true });
        if tokio::time::timeout(DEADLINE, saving).await.is_err() {
            tracing::warn!("some histories could not be stored in time");
        }
    }

    /// Stores parts; whether all of them could be. The others are noted to be stored again.
    async fn save(&self, shards: &BTreeSet<u8>, stamp: Stamp) -> bool {
        let parts = self.index.shards(shards, now(&self.clock));
        let mut versions = self.versions.lock().await;
        let saves = parts.into_iter().map(|(shard, part)| {
            let version = versions.get(&shard).cloned();
            async move { (shard, self.save_part(shard, part, version, stamp).await) }
        });
        let mut failed = Vec::new();
        for (shard, outcome) in futures::future::join_all(saves).await {
            match outcome {
                Ok(Some(version)) => drop(versions.insert(shard, version)),
                Ok(None) => {}
                Err(error) => {
                    if !self.failing.swap(true, Ordering::Relaxed) {
                        tracing::warn!(%error, "cannot store histories; rate policies and \
                            stabilization windows may be shorter after a restart");
                    }
                    failed.push(shard);
                }
            }
        }
        let well = failed.is_empty();
        if well && !shards.is_empty() && self.failing.swap(false, Ordering::Relaxed) {
            tracing::info!("histories can be stored again");
        }
        self.index.store_soon(failed);
        well
    }

    /// Stores one part; its version then, or none if there was nothing to store.
    async fn save_part(
        &self,
        shard: u8,
        part: BTreeMap<String, Vec<u8>>,
        mut version: Option<String>,
        stamp: Stamp,
    ) -> Result<Option<String>, CallError> {
        if part.is_empty() && version.is_none() {
            return Ok(None);
        }
        let name = config_map::name(&self.config.name, shard);
        let about = About { resource: RESOURCE, name: &name };
        let (folder, at) = (self.folder(), now(&self.clock));
        let path = format!("{folder}/{}", segment(&name));
        let mut map = config_map::map(&self.config, shard, part, stamp, at);
        let mut tries = 0;
        loop {
            tries += 1;
            map.metadata.resource_version.clone_from(&version);
            let (verb, path) = if version.is_some() { ("PUT", &path) } else { ("POST", &folder) };
            let sent = call::send::<ConfigMap>(&self.client, verb, path, &map, about);
            let error = match tokio::time::timeout(DEADLINE, sent).await {
                Ok(Ok(stored)) => return Ok(stored.metadata.resource_version),
                Ok(Err(error)) => error,
                Err(_) => CallError::Late(DEADLINE),
            };
            let meets = error.is_conflict() || error.is_already_exists() || error.is_not_found();
            if !meets || tries >= STORE_TRIES {
                return Err(error);
            }
            version = self.version_below(&name, stamp.term).await?;
        }
    }

    /// The version of a stored part, none if there is none, an error if a later leader stored it.
    async fn version_below(&self, name: &str, term: Term) -> Result<Option<String>, CallError> {
        let path = format!("{}/{}", self.folder(), segment(name));
        let about = About { resource: RESOURCE, name };
        match call::get::<ConfigMap>(&self.client, &path, about).await {
            Ok(map) if config_map::term(&map) > term => {
                Err(CallError::Unreadable(format!("{name} was stored by a later leader")))
            }
            Ok(map) => Ok(map.metadata.resource_version),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
