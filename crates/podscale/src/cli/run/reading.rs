//! What the controller decides by, and for whom.

use super::super::pipeline::{PipelineError, Reading};
use super::Arguments;
use kube::Client;
use podscale_client::clock::Clock;
use podscale_client::connect::Cluster;
use podscale_controller::controller::{MetricSources, Role};
use podscale_controller::dialect::{self, AnyDialect};
use podscale_controller::kubelets::Purpose;
use podscale_controller::metrics::Metrics;
use podscale_controller::serve::Served;
use podscale_controller::settings::ResourceMetrics;
use std::sync::Arc;

impl Arguments {
    /// Begins to read what is decided by and what is served.
    pub(super) fn read(
        &self,
        cluster: &Cluster,
        clock: Clock,
        metrics: &Metrics,
        role: &Role,
    ) -> Result<Reading, PipelineError> {
        let served = self.serve_metrics.then(|| self.serving.wanted(self.resource_metrics));
        let mut wanted = served.unwrap_or_default();
        wanted.dry_run = self.dry_run;
        // External metrics may be those of triggers alone.
        wanted.prometheus &= self.pipeline.has_prometheus();
        match self.resource_metrics {
            ResourceMetrics::Kubelet if wanted.kubelets.is_none() => {
                wanted.kubelets = Some(Purpose::Deciding(role.leading.clone()));
            }
            ResourceMetrics::Prometheus => wanted.prometheus = true,
            ResourceMetrics::Kubelet | ResourceMetrics::Api => {}
        }
        self.pipeline.start(cluster, clock, metrics, wanted)
    }

    /// The kinds of objects that are managed, and where metrics are read for them.
    pub(super) fn decides_by(
        &self,
        cluster: &Cluster,
        clock: Clock,
        reading: &Reading,
    ) -> (Vec<Arc<dyn AnyDialect>>, MetricSources) {
        let native = (dialect::built_in(), reading.sources(self.resource_metrics));
        let (namespace, manage) = (self.election.own_namespace(cluster), self.config().manage);
        self.triggers.add(cluster, namespace, clock, manage, native)
    }

    /// What metrics are served, from what is read.
    pub(super) fn served(
        &self,
        reading: &Reading,
        client: &Client,
        sources: &MetricSources,
    ) -> Served {
        let mut served = self.serving.served(reading, client);
        self.triggers.serve(sources, &mut served);
        served
    }
}
