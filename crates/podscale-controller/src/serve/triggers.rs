//! External metrics from triggers of event sources: for the HPAs that stand beside ScaledObjects.

use crate::triggers::Triggers;
use jiff::Timestamp;
use podscale_api::keda::scaled_object::NAME_LABEL;
use podscale_api::{Labels, Quantity, quantity};
use podscale_metrics::answer::{Answering, Refusal};
use podscale_metrics::external::{ExternalMetrics, ExternalRequest, ExternalValue, Provider};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Metrics of triggers, and before them those of somebody else.
pub struct TriggerMetrics {
    /// The triggers.
    pub triggers: Arc<Triggers>,
    /// Where connections to their sources live.
    pub runtime: Handle,
    /// Who answers for what is no trigger's, if anybody does.
    pub others: Option<Provider>,
}

impl ExternalMetrics for TriggerMetrics {
    fn metrics(&self) -> Vec<String> {
        let others = self.others.iter().flat_map(|others| others.metrics());
        self.triggers.served_names().into_iter().chain(others).collect()
    }

    fn values<'a>(&'a self, request: &'a ExternalRequest) -> Answering<'a, Vec<ExternalValue>> {
        Box::pin(async move {
            let (triggers, asked) = (Arc::clone(&self.triggers), request.clone());
            let polling = self.runtime.spawn(async move {
                let is_asked = |name: &str| {
                    let label = |key: &str| (key == NAME_LABEL).then_some(name);
                    asked.selector.matches(label)
                };
                triggers.served_value(&asked.namespace, &asked.metric, is_asked).await
            });
            let found = polling.await.map_err(|error| Refusal::internal(&error.to_string()))?;
            match (found, &self.others) {
                (Some(Ok(served)), _) => {
                    let time = Timestamp::from_microsecond(served.at.0);
                    let time = time.map_err(|error| Refusal::internal(&error.to_string()))?;
                    let value = Quantity::from_milli(served.value.0, quantity::Format::DecimalSi);
                    let labels = Labels::default();
                    Ok(vec![ExternalValue { labels, time, window: None, value }])
                }
                (Some(Err(problem)), _) => {
                    let metric = &request.metric;
                    Err(Refusal::internal(&format!("metric {metric} cannot be had: {problem}")))
                }
                (None, Some(others)) => others.values(request).await,
                (None, None) => Err(request.not_found()),
            }
        })
    }
}
