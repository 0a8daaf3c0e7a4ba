//! All resources of an API server, with the names by which people call them.

use super::{ApiResource, Group, Resource, Resources};
use crate::call::{self, About, CallError, segment};
use futures::StreamExt;
use kube::Client;
use serde::Deserialize;
use std::collections::HashSet;

/// How many calls are under way at once.
const CONCURRENT_CALLS: usize = 4;
/// How many versions of groups are looked at.
const MOST_VERSIONS: usize = 512;
/// Groups that list metrics and no objects.
const METRICS: [&str; 3] = ["metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"];

/// A resource and its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The resource.
    pub resource: Resource,
    /// The name of one, such as `pod`.
    pub singular: String,
    /// The kind, such as `Pod`.
    pub kind: String,
}

/// All resources of a server, as far as they could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing(Vec<OfGroup>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct OfGroup {
    name: String,
    resources: Vec<Listed>,
    /// Whether all its versions could be read.
    whole: bool,
}

impl Listing {
    /// The groups that could not be read, or not in all their versions: the server behind them may be down.
    pub fn unread(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|group| !group.whole).map(|group| &*group.name)
    }

    /// The resources, in the order in which the server lists their groups, each in the version that it prefers of
    /// those that have it. Of a group that could not be read, those that were known before are still there.
    #[must_use]
    pub fn after(self, before: &[Listed]) -> Vec<Listed> {
        let mut all = Vec::new();
        for OfGroup { name, resources, whole } in self.0 {
            let known = before.iter().filter(|one| !whole && one.resource.group == name);
            let mut seen = HashSet::new();
            let first = |one: &Listed| seen.insert(one.resource.plural.clone());
            all.extend(known.cloned().chain(resources).filter(first));
        }
        all
    }
}

#[derive(Deserialize)]
struct Groups {
    #[serde(default)]
    groups: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    #[serde(flatten)]
    group: Group,
}

/// All resources, as far as they can be read.
///
/// # Errors
/// The server could not be asked which groups it has.
pub async fn list(client: &Client) -> Result<Listing, CallError> {
    let groups: Groups = read(client, "/apis").await?;
    let mut versions = vec![(String::new(), "v1".to_owned())];
    let known = groups.groups.into_iter().filter(|group| !METRICS.contains(&&*group.name));
    for Named { name, group } in known {
        let of_group = group.in_order().into_iter().map(|version| (name.clone(), version));
        versions.extend(of_group);
    }
    versions.truncate(MOST_VERSIONS);
    let asked = versions.into_iter().map(|(group, version)| async move {
        let path = match group.as_str() {
            "" => format!("/api/{version}"),
            group => format!("/apis/{}/{}", segment(group), segment(&version)),
        };
        let resources = match read::<Resources>(client, &path).await {
            Ok(found) => Some(listed(&group, &version, found.resources)),
            // It has gone since the groups were listed.
            Err(error) if error.code() == Some(404) => Some(Vec::new()),
            Err(_) => None,
        };
        (group, resources)
    });
    let mut answers = futures::stream::iter(asked).buffered(CONCURRENT_CALLS);
    let mut all: Vec<OfGroup> = Vec::new();
    while let Some((name, resources)) = answers.next().await {
        let (whole, resources) = (resources.is_some(), resources.unwrap_or_default());
        match all.last_mut().filter(|last| last.name == name) {
            Some(group) => {
                group.resources.extend(resources);
                group.whole &= whole;
            }
            None => all.push(OfGroup { name, resources, whole }),
        }
    }
    Ok(Listing(all))
}

fn listed(group: &str, version: &str, resources: Vec<ApiResource>) -> Vec<Listed> {
    let whole = resources.into_iter().filter(|resource| !resource.name.contains('/'));
    let one = |found: ApiResource| {
        let singular = match found.singular_name {
            empty if empty.is_empty() => found.kind.to_lowercase(),
            name => name,
        };
        let (group, version) = (group.to_owned(), version.to_owned());
        let resource =
            Resource { group, version, plural: found.name, namespaced: found.namespaced };
        Listed { resource, singular, kind: found.kind }
    };
    whole.map(one).collect()
}

async fn read<T: serde::de::DeserializeOwned>(client: &Client, path: &str) -> Result<T, CallError> {
    call::get(client, path, About { resource: "", name: "" }).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU16, Ordering};

    /// A server whose group `late.example` can be read only while it is said so.
    fn server(late: Arc<AtomicU16>) -> Client {
        let late = move || async move {
            let code = StatusCode::from_u16(late.load(Ordering::Relaxed)).expect("a code");
            (code, r#"{"resources":[{"name":"bars","kind":"Bar"}]}"#)
        };
        let router = Router::new()
            .route("/apis", get(async || {
                r#"{"groups":[
                    {"name":"late.example","versions":[{"version":"v1"},{"version":"v2"}],
                     "preferredVersion":{"version":"v1"}},
                    {"name":"example.com","versions":[{"version":"v1"},{"version":"v2"}],
                     "preferredVersion":{"version":"v2"}},
                    {"name":"down.example","versions":[{"version":"v1"}]},
                    {"name":"external.metrics.k8s.io","versions":[{"version":"v1beta1"}]}]}"#
            }))
            .route("/api/v1", get(async || {
                r#"{"resources":[{"name":"pods","singularName":"pod","kind":"Pod","namespaced":true},
                    {"name":"pods/log","singularName":"","kind":"Pod","namespaced":true}]}"#
            }))
            .route("/apis/late.example/v1", get(late))
            .route("/apis/late.example/v2", get(async || {
                r#"{"resources":[{"name":"bars","kind":"Bar"},{"name":"news","kind":"New"}]}"#
            }))
            .route("/apis/example.com/v1", get(async || {
                r#"{"resources":[{"name":"fooz","kind":"Foo"},{"name":"old","kind":"Old"}]}"#
            }))
            .route("/apis/example.com/v2", get(async || {
                r#"{"resources":[{"name":"fooz","singularName":"","kind":"Foo","namespaced":true}]}"#
            }))
            .route("/apis/down.example/v1", get(async || (StatusCode::SERVICE_UNAVAILABLE, "no")))
            .route("/apis/external.metrics.k8s.io/v1beta1", get(async || {
                r#"{"resources":[{"name":"queue","kind":"ExternalMetricValueList"}]}"#
            }));
        Client::new(router, "default")
    }

    fn texts(found: &[Listed]) -> Vec<String> {
        let text = |Listed { resource, singular, kind }: &Listed| {
            let (name, version) = (resource.qualified(), &resource.version);
            format!("{name} {version} {singular} {kind} {}", resource.namespaced)
        };
        found.iter().map(text).collect()
    }

    #[tokio::test]
    async fn every_resource_is_listed_once_in_its_preferred_version_also_while_it_cannot_be_read() {
        let late = Arc::new(AtomicU16::new(503));
        let client = server(Arc::clone(&late));
        let [pods, fooz, old] = [
            "pods v1 pod Pod true",
            "fooz.example.com v2 foo Foo true",
            "old.example.com v1 old Old false",
        ];
        let (bars, news) =
            ("bars.late.example v1 bar Bar false", "news.late.example v2 new New false");
        let (second, down) = ("bars.late.example v2 bar Bar false", "down.example");
        let mut known = Vec::new();
        for (code, unread, expected) in [
            (503, &["late.example", down][..], vec![pods, second, news, fooz, old]),
            (200, &[down], vec![pods, bars, news, fooz, old]),
            (503, &["late.example", down], vec![pods, bars, news, fooz, old]),
            (404, &[down], vec![pods, second, news, fooz, old]),
        ] {
            late.store(code, Ordering::Relaxed);
            let listing = list(&client).await.expect("resources");
            assert_eq!(listing.unread().collect::<Vec<_>>(), unread, "{code}");
            known = listing.after(&known);
            assert_eq!(texts(&known), expected, "{code}");
        }
        let gone = Listing(vec![OfGroup { name: String::new(), resources: vec![], whole: true }]);
        assert!(gone.after(&known).is_empty(), "what the server does not list any more");
    }
}
