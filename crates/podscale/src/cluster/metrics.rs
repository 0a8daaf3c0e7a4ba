//! The three metrics APIs of the embedded cluster, as routers that an aggregating API server can
//! forward to, and a plain REST form of the first.
//!
//! `metrics.k8s.io` is made from real scrapes of the kubelets over HTTP; `custom.metrics.k8s.io` and
//! `external.metrics.k8s.io` from the load model's own series.

use super::load::LoadModel;
use super::nodes::{CallError, call};
use crate::clock::Clock;
use axum::Router;
use axum::response::IntoResponse;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

pub mod answer;
pub mod custom;
pub mod exposition;
pub mod external;
pub mod plain;
pub mod resource;
pub mod scrape;
pub mod series;
pub mod store;
#[cfg(test)]
mod tests;

/// How often kubelets are scraped.
pub const RESOLUTION: Duration = Duration::from_secs(15);
/// The namespace and name of the Service that the APIServices name.
pub const SERVICE: (&str, &str) = ("kube-system", "podscale-metrics");

/// The metrics server: scrapes while it lives.
pub struct Metrics {
    source: resource::Source,
    _tasks: JoinSet<()>,
}

impl Metrics {
    /// Begins to scrape the kubelets of all nodes that the API server knows.
    #[must_use]
    pub fn start(client: Client, clock: Clock, resolution: Duration) -> Metrics {
        let store = Arc::new(store::Store::new(resolution));
        let directory = Arc::new(scrape::Directory::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&directory).follow_pods(client.clone()));
        let scraper = scrape::Scraper {
            client,
            clock,
            resolution,
            store: Arc::clone(&store),
            directory: Arc::clone(&directory),
        };
        tasks.spawn(scraper.run());
        Metrics { source: resource::Source { store, directory }, _tasks: tasks }
    }

    /// What was scraped.
    #[must_use]
    pub fn source(&self) -> resource::Source {
        self.source.clone()
    }
}

/// All three APIs in one router.
pub fn router(source: resource::Source, load: LoadModel) -> Router {
    resource::router(source)
        .merge(custom::router(load.clone()))
        .merge(external::router(load))
        .fallback(async || answer::Refusal::no_path().into_response())
        .method_not_allowed_fallback(async || answer::Refusal::not_allowed().into_response())
}

/// Tells the API server that [`SERVICE`] answers for the three groups.
///
/// # Errors
/// Says which APIService could not be written.
pub async fn announce(client: &Client) -> Result<(), CallError> {
    let kind = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let resource = ApiResource::from_gvk_with_plural(&kind, "apiservices");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    for (group, version, priority) in [
        (resource::GROUP, "v1beta1", 100),
        (custom::GROUP, "v1beta2", 200),
        (custom::GROUP, "v1beta1", 100),
        (external::GROUP, "v1beta1", 100),
    ] {
        let name = format!("{version}.{group}");
        let object = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name},
            "spec": {
                "service": {"namespace": SERVICE.0, "name": SERVICE.1},
                "group": group, "version": version, "insecureSkipTLSVerify": true,
                "groupPriorityMinimum": 100, "versionPriority": priority,
            },
        });
        let params = PatchParams::apply("podscale-demo").force();
        let what = || format!("announcing APIService {name}");
        call(what, api.patch(&name, &params, &Patch::Apply(&object))).await?;
    }
    Ok(())
}

/// The discovery document of a group; the first version is preferred.
fn group_document(group: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    json!({
        "kind": "APIGroup", "apiVersion": "v1", "name": group,
        "versions": versions, "preferredVersion": versions.first(),
    })
}
