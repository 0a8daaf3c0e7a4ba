//! The three metrics APIs of the embedded cluster, as routers that an aggregating API server can
//! forward to, and a plain REST form of the first.
//!
//! `metrics.k8s.io` is made from real scrapes of the kubelets over HTTP; `custom.metrics.k8s.io` and
//! `external.metrics.k8s.io` from the load model's own series.

use crate::call::{CallError, call};
use crate::load::LoadModel;
use axum::Router;
use axum::response::IntoResponse;
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use podscale_client::clock::Clock;
use podscale_metrics::directory::Directory;
use podscale_metrics::kubelet::KubeletReader;
use podscale_metrics::scraper::address::Addressing;
use podscale_metrics::scraper::fleet::Fleet;
use podscale_metrics::scraper::{self, Observer, Scraper};
use podscale_metrics::store::{Limits, Store};
use podscale_metrics::{answer, custom, external, resource};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

mod custom_series;
mod external_series;
pub mod prometheus;
pub mod scrape;
pub mod series;
#[cfg(test)]
mod tests;

/// How often kubelets are scraped, and how long a sample is used.
pub const LIMITS: Limits =
    Limits { resolution: Duration::from_secs(15), max_age: Duration::from_secs(60) };
/// The namespace and name of the Service that the APIServices name.
pub const SERVICE: (&str, &str) = ("kube-system", "podscale-metrics");

/// How kubelets are reached, and how their samples are judged.
pub struct Way {
    /// Reads them.
    pub reader: KubeletReader,
    /// Finds them.
    pub addressing: Addressing,
    /// How often, in the cluster's time, and for how long a sample is used.
    pub limits: Limits,
}

/// The metrics server: scrapes while it lives.
pub struct Metrics {
    /// What was scraped.
    pub store: Arc<Store>,
    /// The labels of pods and nodes.
    pub directory: Arc<Directory>,
    now: podscale_metrics::store::Clock,
    _tasks: JoinSet<()>,
}

impl Metrics {
    /// Begins to scrape the kubelets of all nodes that the API server knows, and reports to the
    /// observer.
    #[must_use]
    pub fn start(client: Client, clock: Clock, way: Way, observer: Arc<dyn Observer>) -> Metrics {
        let Way { reader, addressing, limits } = way;
        let store = Arc::new(Store::new(limits));
        let directory = Arc::new(Directory::default());
        let now: podscale_metrics::store::Clock = Arc::new(move || clock.now());
        let scraper = Scraper::start(scraper::Config {
            resolution: clock.to_wall(limits.resolution),
            reader,
            store: Arc::clone(&store),
            clock: Arc::clone(&now),
            observer,
        });
        let fleet = Fleet { scraper, directory: Arc::clone(&directory), addressing };
        let mut tasks = JoinSet::new();
        tasks.spawn(scrape::follow_pods(Arc::clone(&directory), client.clone()));
        tasks.spawn(scrape::follow_nodes(Arc::new(fleet), client));
        Metrics { store, directory, now, _tasks: tasks }
    }

    /// What the metrics API answers from.
    #[must_use]
    pub fn source(&self) -> resource::Source {
        let (store, directory) = (Arc::clone(&self.store), Arc::clone(&self.directory));
        resource::Source::scraped(store, directory, Arc::clone(&self.now))
    }
}

/// All three APIs in one router.
pub fn router(source: resource::Source, load: LoadModel) -> Router {
    let of_objects = Arc::new(custom_series::LoadSeries(load.clone()));
    let of_workloads = Arc::new(external_series::LoadSeries(load));
    resource::router(source)
        .merge(custom::router(of_objects))
        .merge(external::router(of_workloads))
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
