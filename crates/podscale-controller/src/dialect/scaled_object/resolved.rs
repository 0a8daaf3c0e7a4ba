//! What the resolver has to know of a ScaledObject.

use super::{Managed, Mode, managed_with};
use crate::dialect::resolver::{Measures, Resolvable};
use crate::triggers::{OwnerKind, Triggered};
use podscale_api::keda::ScaledObject;
use podscale_api::keda::annotations::Orders;
use podscale_api::meta::ObjectMeta;
use podscale_core::Autoscaler;
use std::sync::Arc;

impl Resolvable for ScaledObject {
    const KIND: OwnerKind = OwnerKind::ScaledObject;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn triggered(&self) -> Triggered {
        self.into()
    }

    fn has_spec_of(&self, other: &ScaledObject) -> bool {
        self.spec == other.spec
    }

    fn is_paused(&self) -> bool {
        Orders::read(&self.metadata.annotations).is_any_paused()
    }

    fn managed(
        object: &Arc<ScaledObject>,
        metrics: &Arc<Measures>,
        warnings: &Arc<str>,
        mode: Mode,
        before: Option<&Arc<Autoscaler>>,
    ) -> Managed {
        managed_with(object, metrics, warnings, mode, before)
    }
}
