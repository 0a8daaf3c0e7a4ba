//! The HPA beside an object whose kind leaves the size of active targets to the cluster's own controller.

use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::keda::ScaledObject;
use podscale_api::translate::scaled_object::own_hpa;
use std::sync::Arc;

/// What is to become of the HPA beside an object.
#[derive(Debug)]
pub struct Beside {
    /// As it is to be; none if there is to be none.
    pub wanted: Option<Box<HorizontalPodAutoscaler>>,
    /// The name of another one that is to go, if it was made for this object here.
    pub unwanted: Option<String>,
    /// The object.
    pub(super) object: Arc<ScaledObject>,
}

impl Beside {
    /// The HPA as it is to be stored in the place of the one that was found; nothing if that is as it should be.
    ///
    /// # Errors
    /// The one that was found belongs to somebody else.
    pub fn updated(
        &self,
        found: &HorizontalPodAutoscaler,
    ) -> Result<Option<HorizontalPodAutoscaler>, String> {
        match &self.wanted {
            Some(wanted) => own_hpa::updated(found, wanted, &self.object),
            None => Ok(None),
        }
    }

    /// Whether an HPA was made for this object here, so that it may be deleted.
    #[must_use]
    pub fn is_made_for_it(&self, found: &HorizontalPodAutoscaler) -> bool {
        own_hpa::is_made_here(&found.metadata) && own_hpa::is_of(found, &self.object.metadata.uid)
    }
}
