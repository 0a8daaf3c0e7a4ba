//! The resources that labels of series may name: those of the cluster, as its discovery lists them, besides
//! those that every cluster has.

use super::rule_reports::{RuleReports, Subject};
use kube::Client;
use parking_lot::RwLock;
use podscale_client::discovery::{self, Listed};
use podscale_metrics::rules::engine::Engine;
use podscale_metrics::rules::{KnownResources, Resource, Resources};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How soon discovery is asked again after the rules or what it lists have changed: definitions may be about to
/// come. Nothing makes it be asked sooner.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
/// How often while nothing changes; the pause doubles up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

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
        let mut asking =
            Asking { client, listed: Vec::new(), readable: true, unread: BTreeSet::new() };
        let mut pause = FIRST_PAUSE;
        // The engine is held here, so nobody ends it.
        loop {
            versions.mark_unchanged();
            let rules = engine.rules();
            if rules.custom().is_empty() && rules.external().is_empty() {
                reports.found(Subject::Resources, BTreeSet::new());
                let _ = versions.changed().await;
                continue;
            }
            if asking.ask().await {
                if self.replace(&asking.listed) {
                    engine.resources_changed();
                    pause = FIRST_PAUSE;
                }
                let unknown = rules.unknown_resources(&*self);
                let unknown = unknown.iter().map(ToString::to_string);
                reports.found(Subject::Resources, unknown.collect());
            }
            tokio::time::sleep(FIRST_PAUSE).await;
            let rest = pause.saturating_sub(FIRST_PAUSE);
            pause = match tokio::time::timeout(rest, versions.changed()).await {
                Ok(_) => FIRST_PAUSE,
                Err(_) => pause.saturating_mul(2).min(LONGEST_PAUSE),
            };
        }
    }
}

/// What discovery listed, and whether it could be asked: each change of that is logged once.
struct Asking {
    client: Client,
    listed: Vec<Listed>,
    readable: bool,
    /// The groups that could not be read.
    unread: BTreeSet<String>,
}

impl Asking {
    /// Asks discovery; whether it answered.
    async fn ask(&mut self) -> bool {
        let listing = match discovery::list(&self.client).await {
            Ok(listing) => listing,
            Err(error) => {
                if std::mem::replace(&mut self.readable, false) {
                    tracing::warn!(%error, "the resources of the cluster cannot be listed; rules for metrics know only those of before");
                }
                return false;
            }
        };
        self.readable = true;
        let unread: BTreeSet<String> = listing.unread().map(str::to_owned).collect();
        for group in unread.difference(&self.unread) {
            tracing::warn!(
                group,
                "the resources of the group cannot be listed; rules for metrics know only those of before"
            );
        }
        self.unread = unread;
        self.listed = listing.after(&self.listed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use podscale_client::discovery::Resource as Found;
    use podscale_metrics::prometheus;
    use podscale_metrics::rules::RuleSet;
    use podscale_metrics::rules::engine::Timings;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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

    /// An API server with a resource in a group that is down at times; counts how often it is asked.
    fn api_server(down: Arc<AtomicBool>, asked: Arc<AtomicU32>) -> Client {
        let groups = move || async move {
            asked.fetch_add(1, Ordering::Relaxed);
            r#"{"groups":[{"name":"example.com","versions":[{"version":"v1"}]}]}"#
        };
        let resources = move || async move {
            let code = match down.load(Ordering::Relaxed) {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::OK,
            };
            (code, r#"{"resources":[{"name":"fooz","singularName":"foo","kind":"Foo"}]}"#)
        };
        let router = Router::new()
            .route("/apis", get(groups))
            .route("/api/v1", get(async || r#"{"resources":[]}"#))
            .route("/apis/example.com/v1", get(resources));
        Client::new(router, "default")
    }

    fn rules(resources: &[&str]) -> RuleSet {
        let rule = |resource: &&str| {
            let named = format!("{{group: example.com, resource: {resource}}}");
            format!(
                "- {{seriesQuery: a, metricsQuery: a, resources: {{overrides: {{x: {named}}}}}}}\n"
            )
        };
        let text = format!("rules:\n{}", resources.iter().map(rule).collect::<String>());
        RuleSet::parse(&text).expect("rules")
    }

    #[tokio::test(start_paused = true)]
    async fn discovery_is_asked_less_and_less_often_and_what_it_knew_stays() {
        let (down, asked) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
        let client = api_server(Arc::clone(&down), Arc::clone(&asked));
        let nobody = prometheus::Client::new(prometheus::Config::new("http://127.0.0.1:9"));
        let resources = Arc::new(ClusterResources::default());
        let known = Arc::clone(&resources);
        let nobody = Arc::new(nobody.expect("a client"));
        let engine = Engine::new(nobody, rules(&["fooz", "unknown"]), known, Timings::default());
        let (engine, metrics) = (Arc::new(engine), Metrics::new());
        let reports = Arc::new(RuleReports::new(metrics.clone(), None));
        let following = Arc::clone(&resources).follow(client, Arc::clone(&engine), reports);
        let following = tokio::spawn(following);
        let errors = |count: usize| {
            let line = format!("podscale_metric_rules_errors {count}\n");
            assert!(metrics.text().contains(&line), "{}", metrics.text());
        };
        let taken = || asked.swap(0, Ordering::Relaxed);
        let second = Duration::from_secs(1);
        tokio::time::sleep(second).await;
        assert_eq!(taken(), 1);
        errors(1);
        assert!(resources.find("example.com", "foo").is_some());
        down.store(true, Ordering::Relaxed);
        tokio::time::sleep(3600 * second).await;
        // After 10, 20, 40, 80, 160 and 320 seconds, and then every ten minutes.
        assert_eq!(taken(), 10);
        errors(1);
        assert!(resources.find("example.com", "foo").is_some(), "its group is only down");
        for _ in 0..100 {
            engine.replace(rules(&["fooz", "unknown", "unknown"]));
            tokio::time::sleep(second).await;
        }
        let often = taken();
        assert!((9..=11).contains(&often), "{often} times in a hundred seconds");
        errors(2);
        engine.replace(RuleSet::default());
        tokio::time::sleep(30 * second).await;
        errors(0);
        taken();
        tokio::time::sleep(3600 * second).await;
        assert_eq!(taken(), 0, "there are no rules");
        following.abort();
    }
}
