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

/// All resources, in the order in which the server lists their groups, each in the version that it prefers
/// of those that have it. A group that cannot be read, because the server behind it is down, is left out.
///
/// # Errors
/// The server could not be asked which groups it has.
pub async fn list(client: &Client) -> Result<Vec<Listed>, CallError> {
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
        let found = read::<Resources>(client, &path).await;
        found.map_or_else(|_| Vec::new(), |found| listed(&group, &version, found.resources))
    });
    let answers: Vec<_> = futures::stream::iter(asked).buffered(CONCURRENT_CALLS).collect().await;
    let mut seen = HashSet::new();
    let all = answers.into_iter().flatten();
    let first =
        |one: &Listed| seen.insert((one.resource.group.clone(), one.resource.plural.clone()));
    Ok(all.filter(first).collect())
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

    #[tokio::test]
    async fn every_resource_is_listed_once_in_its_preferred_version() {
        let router = Router::new()
            .route("/apis", get(async || {
                r#"{"groups":[
                    {"name":"example.com","versions":[{"version":"v1"},{"version":"v2"}],
                     "preferredVersion":{"version":"v2"}},
                    {"name":"down.example","versions":[{"version":"v1"}]},
                    {"name":"external.metrics.k8s.io","versions":[{"version":"v1beta1"}]}]}"#
            }))
            .route("/api/v1", get(async || {
                r#"{"resources":[{"name":"pods","singularName":"pod","kind":"Pod","namespaced":true},
                    {"name":"pods/log","singularName":"","kind":"Pod","namespaced":true}]}"#
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
        let found = list(&Client::new(router, "default")).await.expect("resources");
        let texts: Vec<String> = found
            .iter()
            .map(|Listed { resource, singular, kind }| {
                let version = &resource.version;
                format!(
                    "{} {version} {singular} {kind} {}",
                    resource.qualified(),
                    resource.namespaced
                )
            })
            .collect();
        assert_eq!(
            texts,
            [
                "pods v1 pod Pod true",
                "fooz.example.com v2 foo Foo true",
                "old.example.com v1 old Old false"
            ]
        );
    }
}
