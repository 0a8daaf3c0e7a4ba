//! The HPA beside an object: it is there while it is wanted, as it should be, and goes when it is not.
//!
//! It is read at every reconcile, since its status says something of the object's; whatever somebody changed in it is put
//! right then.

use super::super::index::ReconcileState;
use super::Reconciler;
use crate::dialect::Managed;
use podscale_api::translate::scaled_object::own_hpa::HpaSeen;

impl Reconciler {
    /// Does what is to be done; what became of it, if there is, was or is to be one.
    pub(super) async fn keep_hpa(
        &self,
        object: &Managed,
        state: &ReconcileState,
    ) -> Option<HpaSeen> {
        let beside = object.wire.beside()?;
        let namespace = &*object.key.namespace;
        if self.withheld(state).is_some() {
            return None;
        }
        let mut is_gone = true;
        if let Some(name) = &beside.unwanted {
            match self.actor.remove_hpa(namespace, name, &beside).await {
                Ok(gone) => is_gone = gone,
                Err(error) => {
                    is_gone = false;
                    tracing::warn!(autoscaler = %object.key, hpa = %name, %error, "cannot be deleted");
                }
            }
        }
        match &beside.wanted {
            Some(wanted) => Some(self.actor.ensure_hpa(namespace, &beside, wanted).await),
            None => is_gone.then_some(HpaSeen::Gone),
        }
    }
}
