//! Which version of the custom metrics API is asked. Upstream's controller looks once in every period;
//! so an adapter that is replaced by one with another version costs no more than that.

use super::super::FRESHNESS_PARTS;
use super::super::cache::Cache;
use kube::Client;
use parking_lot::Mutex;
use podscale_client::call::{self, About};
use podscale_client::clock::Clock;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

const PATH: &str = "/apis/custom.metrics.k8s.io";
/// The versions that are understood, the better one first.
const KNOWN: [&str; 2] = ["v1beta2", "v1beta1"];
/// How long a choice stands at most.
const LONGEST_KEPT: Duration = Duration::from_secs(15);

/// The version to ask, or why there is none.
pub(super) type Choice = Result<&'static str, Arc<str>>;

/// Chooses the version.
pub(super) struct Versions {
    choices: Cache<(), Choice>,
    /// What was served at last.
    last: Mutex<&'static str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Group {
    versions: Vec<Version>,
    preferred_version: Version,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Version {
    version: String,
}

impl Versions {
    /// Nothing is chosen yet.
    pub(super) fn new(clock: Clock) -> Versions {
        Versions { choices: Cache::new(clock, LONGEST_KEPT), last: Mutex::new(KNOWN[0]) }
    }

    /// The version to ask. `max_age` is how long a value may be used: a part of a sync period.
    pub(super) async fn choose(&self, client: &Client, max_age: Duration) -> Choice {
        let choose = || self.discover(client);
        match self.choices.get((), max_age.saturating_mul(FRESHNESS_PARTS), choose).await {
            Ok(version) => Ok(version),
            // An adapter that comes is found as soon as a value would be.
            Err(_) => self.choices.get((), max_age, choose).await,
        }
    }

    async fn discover(&self, client: &Client) -> Choice {
        let found = call::get::<Group>(client, PATH, About { resource: "", name: "" }).await;
        let group = match found {
            Ok(group) => group,
            Err(error) if error.is_not_found() => {
                return Err("no custom metrics API (custom.metrics.k8s.io) registered".into());
            }
            // What is asked next will tell what is wrong.
            Err(_) => return Ok(*self.last.lock()),
        };
        let offered = [&group.preferred_version].into_iter().chain(&group.versions);
        let known = |version: &Version| KNOWN.into_iter().find(|known| *known == version.version);
        let Some(version) = offered.into_iter().find_map(known) else {
            return Err("no known available metric versions found".into());
        };
        *self.last.lock() = version;
        Ok(version)
    }
}
