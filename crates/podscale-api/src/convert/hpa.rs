//! The versions of Kubernetes' own autoscaler as forms.

use serde_json::Value;

use super::{Form, Hub, Loss, Written, losses};
use crate::hpa::convert::{self, ConvertError, Version};
use crate::hpa::custom_metrics;

/// One version.
pub(super) struct Hpa {
    name: &'static str,
    version: Version,
    /// Whether custom metrics are in the annotations of before Kubernetes 1.6.
    before_1_6: bool,
}

const fn hpa(name: &'static str, version: Version) -> Hpa {
    Hpa { name, version, before_1_6: false }
}

pub(super) const V1: Hpa = hpa("hpa.v1", Version::V1);
pub(super) const V1_BEFORE_1_6: Hpa =
    Hpa { name: "hpa.v1-before-1.6", version: Version::V1, before_1_6: true };
pub(super) const V2ALPHA1: Hpa = hpa("hpa.v2alpha1", Version::V2alpha1);
pub(super) const V2BETA1: Hpa = hpa("hpa.v2beta1", Version::V2beta1);
pub(super) const V2BETA2: Hpa = hpa("hpa.v2beta2", Version::V2beta2);
pub(super) const V2: Hpa = hpa("hpa.v2", Version::V2);

impl Form for Hpa {
    fn name(&self) -> &'static str {
        self.name
    }

    fn describes(&self, object: &Value) -> bool {
        let annotations = object.pointer("/metadata/annotations");
        let old = annotations.and_then(|all| all.get(custom_metrics::TARGET)).is_some();
        Version::of_object(object) == Some(self.version) && old == self.before_1_6
    }

    fn read(&self, object: &Value) -> Result<Hub, ConvertError> {
        let hpa = custom_metrics::as_written(object)?;
        Ok(Hub { hpa, ..Hub::default() })
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        let mut object = if self.before_1_6 {
            custom_metrics::write(&hub.hpa)?
        } else {
            convert::write(&hub.hpa, self.version)?
        };
        if let Some(fields) = object.as_object_mut().filter(|_| hub.hpa.status.is_none()) {
            fields.remove("status");
        }
        let back = self.read(&object)?;
        let mut lost: Vec<Loss> = losses(&hub.hpa, &back.hpa);
        lost.extend(hub.beyond.iter().cloned());
        Ok(Written { object, losses: lost })
    }
}
