//! What decides in a demonstration.

use super::objects;
use axum::Router;
use kube::Client;
use podscale_client::clock::Clock;
use podscale_client::instrument::RequestLayer;
use podscale_controller::admin::Shown;
use podscale_controller::controller::observer::{Log, Observer};
use podscale_controller::controller::{self, Controller, ResourceSource, Watchers};
use podscale_controller::dashboard::Hub;
use podscale_controller::scaled_jobs::{self, ScaledJobs};
use podscale_controller::telemetry::DecisionMetrics;
use std::sync::Arc;
use tower::Layer;

/// What scales workloads, and what creates Jobs.
pub(super) struct Deciding {
    controller: Controller,
    jobs: Option<ScaledJobs>,
}

impl Deciding {
    /// Ends both gracefully.
    pub(super) async fn stop(self) {
        if let Some(jobs) = self.jobs {
            jobs.stop().await;
        }
        self.controller.stop().await;
    }
}

/// The controller, and what the admin pages show of it.
pub(super) fn start_controller(
    service: Router,
    clock: Clock,
    hub: &Hub,
    observers: Vec<Arc<dyn Observer>>,
    metrics: podscale_controller::metrics::Metrics,
    resource: ResourceSource,
) -> (Deciding, Shown) {
    let counting = DecisionMetrics(metrics.clone());
    let mut all: Vec<Arc<dyn Observer>> =
        vec![Arc::new(hub.clone()), Arc::new(Log), Arc::new(counting)];
    all.extend(observers);
    let watchers = Watchers { observers: all, metrics: metrics.clone(), ..Watchers::default() };
    let shown = Shown { hub: hub.clone(), metrics, readiness: watchers.readiness.clone() };
    let requests = RequestLayer::new(Arc::new(shown.metrics.clone()));
    let client = Client::new(requests.layer(service), "default");
    let (defaults, role) = (controller::Config::default(), controller::Role::alone());
    let (dialects, sources) = objects::with_triggers(&client, clock, resource);
    let jobs = sources.triggers.clone().map(|triggers| {
        let (manage, leading) = (defaults.manage.clone(), role.leading.clone());
        let instruments = Arc::new(shown.metrics.clone());
        let dry_run = false;
        let observers = watchers.observers.clone();
        let config =
            scaled_jobs::Config { triggers, manage, dry_run, leading, instruments, observers };
        ScaledJobs::start(&client, clock, config)
    });
    let controller =
        Controller::start_with(&client, clock, defaults, dialects, watchers, role, sources);
    (Deciding { controller, jobs }, shown)
}
