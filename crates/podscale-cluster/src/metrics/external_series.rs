//! External metrics of the demo: the load model's series of whole workloads, by label.

use super::series::{Metric, series_labels};
use crate::load::{LoadModel, LoadState};
use podscale_metrics::answer::{Answering, Refusal, decimal, selects};
use podscale_metrics::external::{ExternalMetrics, ExternalRequest, ExternalValue};
use std::future::ready;

/// The series of a load model.
pub(super) struct LoadSeries(pub(super) LoadModel);

impl ExternalMetrics for LoadSeries {
    fn metrics(&self) -> Vec<String> {
        Metric::ALL.map(|metric| metric.name().to_owned()).into()
    }

    fn values<'a>(&'a self, request: &'a ExternalRequest) -> Answering<'a, Vec<ExternalValue>> {
        Box::pin(ready(values(&self.0.state(), request)))
    }
}

fn values(state: &LoadState, request: &ExternalRequest) -> Result<Vec<ExternalValue>, Refusal> {
    let metric = Metric::named(&request.metric).ok_or_else(|| request.not_found())?;
    let workloads = state.workloads.iter().filter(|w| *w.namespace == *request.namespace);
    let found = workloads
        .map(|workload| (workload, series_labels(workload)))
        .filter(|(_, labels)| selects(&request.selector, labels))
        .map(|(workload, labels)| ExternalValue {
            labels,
            time: state.time,
            window: Some(state.window),
            value: decimal(metric.of_workload(workload)),
        });
    Ok(found.collect())
}
