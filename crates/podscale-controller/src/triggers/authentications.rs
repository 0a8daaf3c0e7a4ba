//! The TriggerAuthentications and ClusterTriggerAuthentications of the cluster. They name Secrets and hold none.

use kube::Client;
use parking_lot::Mutex;
use podscale_api::keda::API_VERSION;
use podscale_api::keda::authentication::{
    self, AuthenticationSpec, CLUSTER_PLURAL, PLURAL, TriggerAuthentication,
};
use podscale_api::keda::trigger::AuthenticationRef;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, Watched, follow};
use serde::Deserialize;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a start waits for both lists. They may be missing or forbidden, which concerns only who refers to them.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Which authentication.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct AuthenticationName {
    /// Its namespace; none if it is one of the cluster.
    pub(crate) namespace: Option<Box<str>>,
    /// Its name.
    pub(crate) name: Box<str>,
}

impl AuthenticationName {
    /// What a trigger in a namespace refers to.
    pub(crate) fn of(reference: &AuthenticationRef, namespace: &str) -> AuthenticationName {
        let namespace = (!reference.is_of_cluster()).then(|| namespace.into());
        AuthenticationName { namespace, name: reference.name.as_str().into() }
    }
}

impl fmt::Display for AuthenticationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.namespace {
            Some(_) => authentication::KIND,
            None => authentication::CLUSTER_KIND,
        };
        write!(f, "{kind} {:?}", self.name)
    }
}

/// An object as lists and watches bring it.
#[derive(Deserialize)]
#[serde(transparent)]
struct Wire(TriggerAuthentication);

impl Watched for Wire {
    fn version(&self) -> Option<&str> {
        Some(&self.0.metadata.resource_version)
    }
}

type Known = HashMap<AuthenticationName, Arc<AuthenticationSpec>>;

/// What is known of them.
pub(super) struct Authentications {
    known: Mutex<Known>,
    /// Whether those of namespaces and those of the cluster were listed.
    listed: watch::Sender<(bool, bool)>,
}

impl Default for Authentications {
    fn default() -> Authentications {
        Authentications { known: Mutex::default(), listed: watch::channel((false, false)).0 }
    }
}

impl Authentications {
    /// What an authentication says.
    pub(super) fn get(&self, name: &AuthenticationName) -> Option<Arc<AuthenticationSpec>> {
        self.known.lock().get(name).cloned()
    }

    /// Waits until both kinds were listed, or for a while.
    pub(super) async fn known(&self) {
        let mut listed = self.listed.subscribe();
        let both = listed.wait_for(|(namespaced, of_cluster)| *namespaced && *of_cluster);
        if tokio::time::timeout(LONGEST_WAIT, both).await.is_err() {
            tracing::warn!(
                "TriggerAuthentications cannot be listed; triggers that refer to one fail"
            );
        }
    }

    /// Follows both kinds, for ever, and reports which have changed.
    pub(super) async fn follow(
        &self,
        client: &Client,
        instruments: &Instruments,
        changed: impl Fn(BTreeSet<AuthenticationName>) + Sync,
    ) {
        let (path, of_cluster) = (
            format!("/apis/{API_VERSION}/{PLURAL}"),
            format!("/apis/{API_VERSION}/{CLUSTER_PLURAL}"),
        );
        let namespaced = follow(
            client,
            &path,
            authentication::RESOURCE,
            Presence::Optional,
            instruments,
            |change: Change<Wire>| {
                changed(self.apply(change, false));
                self.listed.send_modify(|(namespaced, _)| *namespaced = true);
            },
        );
        let of_cluster = follow(
            client,
            &of_cluster,
            authentication::CLUSTER_RESOURCE,
            Presence::Optional,
            instruments,
            |change: Change<Wire>| {
                changed(self.apply(change, true));
                self.listed.send_modify(|(_, of_cluster)| *of_cluster = true);
            },
        );
        tokio::join!(namespaced, of_cluster);
    }

    /// Takes in one object, as its watch would.
    #[cfg(test)]
    pub(super) fn put(&self, object: serde_json::Value, of_cluster: bool) {
        let object = serde_json::from_value(object).expect("an authentication");
        self.apply(Change::Applied(Wire(object)), of_cluster);
    }

    /// Takes in a change of one kind; those that say something else than before.
    fn apply(&self, change: Change<Wire>, of_cluster: bool) -> BTreeSet<AuthenticationName> {
        let mut known = self.known.lock();
        let mut changed = BTreeSet::new();
        let mut put = |known: &mut Known, Wire(object): Wire| {
            let name = named(&object, of_cluster);
            let spec = Arc::new(object.spec);
            if known.get(&name) != Some(&spec) {
                known.insert(name.clone(), spec);
                changed.insert(name.clone());
            }
            name
        };
        match change {
            Change::All(all) => {
                let there: BTreeSet<AuthenticationName> =
                    all.into_iter().map(|object| put(&mut known, object)).collect();
                let is_gone = |name: &AuthenticationName| {
                    name.namespace.is_none() == of_cluster && !there.contains(name)
                };
                let gone: Vec<AuthenticationName> =
                    known.keys().filter(|name| is_gone(name)).cloned().collect();
                gone.iter().for_each(|name| drop(known.remove(name)));
                changed.extend(gone);
            }
            Change::Applied(object) => drop(put(&mut known, object)),
            Change::Deleted(Wire(object)) => {
                let name = named(&object, of_cluster);
                known.remove(&name);
                changed.insert(name);
            }
        }
        changed
    }
}

fn named(object: &TriggerAuthentication, of_cluster: bool) -> AuthenticationName {
    let metadata = &object.metadata;
    let namespace = (!of_cluster).then(|| metadata.namespace.as_str().into());
    AuthenticationName { namespace, name: metadata.name.as_str().into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(namespace: &str, name: &str, key: &str) -> Wire {
        let object = json!({"metadata": {"name": name, "namespace": namespace}, "spec":
            {"secretTargetRef": [{"parameter": "password", "name": "s", "key": key}]}});
        serde_json::from_value(object).expect("an authentication")
    }

    #[test]
    fn only_what_says_something_else_has_changed() {
        let known = Authentications::default();
        let names = |change, of_cluster| -> Vec<String> {
            known.apply(change, of_cluster).iter().map(ToString::to_string).collect()
        };
        let all = || vec![object("a", "x", "k"), object("a", "y", "k")];
        let both = ["TriggerAuthentication \"x\"", "TriggerAuthentication \"y\""];
        assert_eq!(names(Change::All(all()), false), both);
        assert_eq!(names(Change::All(all()), false), [""; 0]);
        let of_cluster = ["ClusterTriggerAuthentication \"x\""];
        assert_eq!(names(Change::Applied(object("", "x", "k")), true), of_cluster);
        assert_eq!(names(Change::Applied(object("a", "x", "other")), false), both[..1]);
        assert_eq!(names(Change::Applied(object("a", "x", "other")), false), [""; 0]);
        assert_eq!(names(Change::All(vec![object("a", "x", "other")]), false), both[1..]);
        assert_eq!(names(Change::Deleted(object("", "x", "k")), true), of_cluster);
        assert_eq!(known.known.lock().len(), 1);
    }
}
