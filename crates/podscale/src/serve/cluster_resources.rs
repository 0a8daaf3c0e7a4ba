//! The resources that labels of series may name: those of the cluster, as its discovery lists them, besides
//! those that every cluster has.

use super::rule_reports::{RuleReports, Subject};
use kube::Client;
use parking_lot::RwLock;
use podscale_client::discovery::{self, Listed};
use podscale_metrics::rules::engine::Engine;
use podscale_metrics::rules::{KnownResources, Resource, Resources};
use std::sync::Arc;
use std::time::Duration;

/// How often discovery is asked.
const EVERY: Duration = Duration::from_secs(60);
/// How often while rules name a resource that nobody knows: its definition may be about to come.
const EVERY_UNKNOWN: Duration = Duration::from_secs(10);

/// The resources of a cluster; before they are known, those that every cluster has.
pub struct ClusterResources(RwLock<KnownResources>);

impl Default for ClusterResources {
    fn default() -> ClusterResources {
        ClusterResources(RwLock::new(KnownResources::everyday()))
    }
}

impl Resources for ClusterResources {
    fn find(&self, group: &str, resource: &str) -> Option<Arc<Resource>> {
        self.0.read().find(group, resource)
    }
}

impl ClusterResources {
    /// Takes in what discovery lists; whether it is something else than before.
    pub fn replace(&self, listed: &[Listed]) -> bool {
        let resource = |Listed { resource, singular, kind }: &Listed| {
            let names = [&resource.group, &resource.version, &resource.plural, singular, kind];
            Resource::new(names.map(String::as_str), resource.namespaced)
        };
        let all = KnownResources::everyday().and(listed.iter().map(resource));
        let mut known = self.0.write();
        let other = *known != all;
        *known = all;
        other
    }

    /// Until dropped, asks discovery for the resources that rules may name, and reports those that rules
    /// name and the cluster does not have. Without rules nothing is asked.
    pub async fn follow(
        self: Arc<Self>,
        client: Client,
        engine: Arc<Engine>,
        reports: Arc<RuleReports>,
    ) {
        let mut versions = engine.versions();
        let mut readable = true;
        loop {
            versions.mark_unchanged();
            let rules = engine.rules();
            let mut wait = EVERY;
            if !rules.custom().is_empty() || !rules.external().is_empty() {
                match discovery::list(&client).await {
                    Ok(listed) => {
                        readable = true;
                        if self.replace(&listed) {
                            engine.resources_changed();
                        }
                        let unknown = rules.unknown_resources(&*self);
                        if !unknown.is_empty() {
                            wait = EVERY_UNKNOWN;
                        }
                        let unknown = unknown.iter().map(ToString::to_string);
                        reports.found(Subject::Resources, unknown.collect());
                    }
                    Err(error) => {
                        wait = EVERY_UNKNOWN;
                        if std::mem::replace(&mut readable, false) {
                            tracing::warn!(%error, "the resources of the cluster cannot be listed; rules for metrics know only those of before");
                        }
                    }
                }
            }
            // The engine is held here, so nobody ends it.
            let _ = tokio::time::timeout(wait, versions.changed()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_client::discovery::Resource as Found;

    #[test]
    fn resources_of_the_cluster_are_known_once_they_are_listed() {
        let known = ClusterResources::default();
        let name = |group: &str, resource: &str| known.find(group, resource).map(|r| r.name());
        assert_eq!(name("example.com", "fooz"), None);
        assert_eq!(name("", "pod").as_deref(), Some("pods"));
        let resource = Found {
            group: "example.com".into(),
            version: "v1".into(),
            plural: "fooz".into(),
            namespaced: true,
        };
        let listed = [Listed { resource, singular: "foo".into(), kind: "Foo".into() }];
        assert!(known.replace(&listed));
        assert!(!known.replace(&listed), "nothing is new");
        for word in ["fooz", "foo", "Foo"] {
            assert_eq!(name("example.com", word).as_deref(), Some("fooz.example.com"), "{word}");
        }
        assert_eq!(name("", "pod").as_deref(), Some("pods"));
        assert!(known.replace(&[]));
        assert_eq!(name("", "foo"), None, "its definition is gone");
    }
}
