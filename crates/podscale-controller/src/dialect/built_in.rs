//! Which dialects there are.

use super::pod_autoscaler::PodAutoscalers;
use super::scaled_object::ScaledObjects;
use super::{AnyDialect, IsManaged, chpa, hpa};
use crate::settings::TriggerMode;
use crate::triggers::Triggers;
use std::sync::Arc;

/// The dialects that the program knows; a kind that a cluster does not have may come later.
#[must_use]
pub fn built_in() -> Vec<Arc<dyn AnyDialect>> {
    let own = PodAutoscalers::default();
    vec![Arc::new(hpa::Hpa), Arc::new(chpa::Chpas), Arc::new(own)]
}

/// These dialects with all that have triggers: the kinds of KEDA, and PodAutoscalers whose metrics may be triggers.
#[must_use]
pub fn with_triggers(
    mut dialects: Vec<Arc<dyn AnyDialect>>,
    triggers: &Arc<Triggers>,
    is_managed: &IsManaged,
    mode: TriggerMode,
) -> Vec<Arc<dyn AnyDialect>> {
    let own = PodAutoscalers::with_triggers(Arc::clone(triggers), Arc::clone(is_managed));
    let own: Arc<dyn AnyDialect> = Arc::new(own);
    for dialect in dialects.iter_mut().filter(|dialect| dialect.kind() == own.kind()) {
        *dialect = Arc::clone(&own);
    }
    let objects = ScaledObjects::new(Arc::clone(triggers), Arc::clone(is_managed));
    dialects.push(Arc::new(objects.in_mode(mode)));
    dialects
}
