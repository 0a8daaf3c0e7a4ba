//! The kinds of objects that the API server knows, asked for again and again since custom ones come
//! and go.

use super::queue::{Shutdown, ended};
use crate::call::call;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use kube::core::ApiResource;
use podscale_client::clock::Clock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How often is asked when nothing hints at a change.
const PERIOD: Duration = Duration::from_secs(30);

/// A kind whose objects can be listed and deleted.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    /// Its names.
    pub resource: ApiResource,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
    /// Whether its objects can be watched.
    pub watchable: bool,
    /// Whether all of its objects in a namespace can be deleted with one call.
    pub collective: bool,
}

impl Kind {
    /// `plural.group`, which is the same in all versions.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}.{}", self.resource.plural, self.resource.group)
    }
}

/// The kinds known now, and a way to have them asked for again.
#[derive(Clone, Debug)]
pub struct Kinds {
    known: watch::Sender<Arc<Vec<Kind>>>,
    refresh: Arc<Notify>,
}

impl Default for Kinds {
    fn default() -> Self {
        Kinds { known: watch::channel(Arc::default()).0, refresh: Arc::default() }
    }
}

impl Kinds {
    /// The kinds known now; none before the first answer.
    #[must_use]
    pub fn known(&self) -> Arc<Vec<Kind>> {
        Arc::clone(&self.known.borrow())
    }

    /// Tells of changes.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Arc<Vec<Kind>>> {
        self.known.subscribe()
    }

    /// Asks the API server again soon.
    pub fn refresh(&self) {
        self.refresh.notify_one();
    }

    /// Keeps the kinds up to date until the shutdown.
    pub async fn run(self, client: Client, clock: Clock, mut shutdown: Shutdown) {
        loop {
            let wait = match discover(&client).await {
                Ok(kinds) => {
                    self.known.send_if_modified(|known| {
                        let changed = **known != kinds;
                        if changed {
                            *known = Arc::new(kinds);
                        }
                        changed
                    });
                    PERIOD
                }
                Err(error) => {
                    tracing::debug!(%error, "kinds of objects not known");
                    Duration::from_secs(1)
                }
            };
            tokio::select! {
                biased;
                () = ended(&mut shutdown) => return,
                () = self.refresh.notified() => {}
                () = clock.sleep(wait) => {}
            }
        }
    }
}

/// Asks for all groups in their preferred versions; a group that does not answer is left out.
async fn discover(client: &Client) -> Result<Vec<Kind>, crate::call::CallError> {
    let core = client.list_core_api_resources("v1");
    let core = call(|| "list the core kinds".into(), core).await?;
    let groups = call(|| "list the groups".into(), client.list_api_groups()).await?;
    let mut kinds = BTreeMap::new();
    collect(&mut kinds, "", "v1", core.resources);
    for group in groups.groups {
        let preferred = group.preferred_version.as_ref().map(|preferred| &preferred.version);
        let versions =
            preferred.into_iter().chain(group.versions.iter().map(|known| &known.version));
        let mut seen = Vec::new();
        for version in versions {
            if seen.contains(version) {
                continue;
            }
            seen.push(version.clone());
            let name = format!("{}/{version}", group.name);
            let list = client.list_api_group_resources(&name);
            match call(|| format!("list the kinds of {name}"), list).await {
                Ok(list) => collect(&mut kinds, &group.name, version, list.resources),
                Err(error) => tracing::debug!(%error, "left out"),
            }
        }
    }
    Ok(kinds.into_values().collect())
}

/// The first version that has a kind is the one to use.
fn collect(
    kinds: &mut BTreeMap<String, Kind>,
    group: &str,
    version: &str,
    resources: Vec<APIResource>,
) {
    for resource in resources {
        let can = |verb: &str| resource.verbs.iter().any(|known| known == verb);
        if resource.name.contains('/') || !can("list") || !can("delete") {
            continue;
        }
        let kind = Kind {
            namespaced: resource.namespaced,
            watchable: can("watch"),
            collective: can("deletecollection"),
            resource: ApiResource {
                group: group.to_owned(),
                version: version.to_owned(),
                api_version: kube_version(group, version),
                kind: resource.kind,
                plural: resource.name,
            },
        };
        kinds.entry(kind.id()).or_insert(kind);
    }
}

fn kube_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
