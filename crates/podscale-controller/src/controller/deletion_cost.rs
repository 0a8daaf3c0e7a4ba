//! Whether an object's pods have, or are to have, deletion costs.

use crate::dialect::Managed;
use podscale_api::pod::Pod;
use podscale_core::deletion_cost::Cost;
use std::sync::Arc;

/// The metric by which an object wants deletion costs to be set.
pub(super) fn wanted(object: &Managed) -> Option<u32> {
    object.model.extensions.as_deref()?.deletion_cost_by
}

/// Whether the costs of an object's pods may have to change: it wants them to be set, or does not any
/// more. Native autoscalers never do.
pub(super) fn may_change(object: &Managed, pods: &[Arc<Pod>]) -> bool {
    let is_ours = |pod: &Arc<Pod>| matches!(pod.metadata.deletion_cost.cost(), Cost::Ours(_));
    !object.key.kind.is_native() && (wanted(object).is_some() || pods.iter().any(is_ours))
}
