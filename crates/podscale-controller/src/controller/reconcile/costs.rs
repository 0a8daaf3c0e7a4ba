//! Busy pods last: before a target shrinks, its pods get deletion costs by a metric, where the spec asks
//! for it. Which pod gets which is the core's choice. Whatever goes wrong, the size is set all the same.

use super::Reconciler;
use crate::controller::deletion_cost::wanted;
use crate::dialect::Managed;
use podscale_api::pod::Pod;
use podscale_core::deletion_cost::{Cost, CostChange, cost_changes, without_ours};
use podscale_core::{CostsWrite, Pass, Rescale};
use std::sync::Arc;

/// The reason of the event that pods could not be given their costs.
const FAILED: &str = "FailedSetDeletionCost";

impl Reconciler {
    /// Gives pods their costs before the size goes down, or takes away what was given once that is not
    /// wanted any more.
    pub(super) async fn set_costs(
        &self,
        object: &Managed,
        pass: &mut Pass<'_>,
        pods: &[Arc<Pod>],
        rescale: Option<Rescale>,
    ) {
        if pods.is_empty() {
            return;
        }
        let costs: Vec<Cost> = pods.iter().map(|pod| pod.metadata.deletion_cost.cost()).collect();
        let Some(metric) = wanted(object) else {
            let write = self.write_costs(object, pods, &without_ours(&costs)).await;
            self.report_costs(object, &write);
            return;
        };
        let Some(Rescale { to, .. }) = rescale.filter(|rescale| rescale.to < rescale.from) else {
            return;
        };
        let write = match cost_changes(pass.snapshot(), metric, to, &costs) {
            Ok(changes) => self.write_costs(object, pods, &changes).await,
            Err(_) => {
                let error = Some("the metric has no value of any pod".into());
                CostsWrite { pods: 0, error }
            }
        };
        self.report_costs(object, &write);
        pass.costs_ended(metric, write);
    }

    async fn write_costs(
        &self,
        object: &Managed,
        pods: &[Arc<Pod>],
        changes: &[CostChange],
    ) -> CostsWrite {
        let change = |change: &CostChange| Some((&**pods.get(change.pod)?, change.cost));
        let changes: Vec<(&Pod, Option<i32>)> = changes.iter().filter_map(change).collect();
        self.actor.set_costs(&object.key.namespace, &changes).await
    }

    fn report_costs(&self, object: &Managed, write: &CostsWrite) {
        if let Some(error) = &write.error {
            let message = format!(
                "the deletion costs of pods could not be set, so a scale-down may take busy ones: \
                 {error}"
            );
            tracing::warn!(autoscaler = %object.key, "{message}");
            self.actor.warn(object, FAILED, message);
        }
    }
}
