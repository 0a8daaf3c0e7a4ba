//! The versions of Kubernetes' own autoscaler as forms.

use serde_json::Value;

use super::{Form, Hub, Loss, Written, at, losses};
use crate::hpa::convert::{self, ConvertError, Version};
use crate::hpa::default::default_behavior;
use crate::hpa::{custom_metrics, manifest};
use crate::meta::ObjectMeta;

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
        let unread = unread(object, hpa.metadata.annotations.get(custom_metrics::TARGET));
        Ok(Hub { hpa, beyond: Vec::new(), unread })
    }

    /// What is in annotations is there only if the object has them.
    fn path(&self, object: &Value, path: &str) -> Option<String> {
        let written = manifest::written_path(object, path);
        let missing = written.starts_with("metadata.annotations") && at(object, &written).is_none();
        Some(if missing { path.to_owned() } else { written })
    }

    fn write(&self, hub: &Hub) -> Result<Written, ConvertError> {
        let mut hpa = hub.hpa.clone();
        if let Some(behavior) = &mut hpa.spec.behavior
            && !matches!(self.version, Version::V2beta2 | Version::V2)
        {
            // No API server fills in what is in an annotation, but each refuses it if it is not complete.
            default_behavior(behavior);
        }
        let mut object = if self.before_1_6 {
            custom_metrics::write(&hpa)?
        } else {
            convert::write(&hpa, self.version)?
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

/// The annotations that say something in a form that nobody can read. Those of before Kubernetes 1.6 stay on the
/// object then.
fn unread(object: &Value, left: Option<&str>) -> Vec<Loss> {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap_or_default();
    let known = convert::present_annotations(&metadata).into_iter();
    let unreadable = known.filter(|(_, readable)| !readable).filter_map(|(name, _)| {
        let text = metadata.annotations.get(name)?;
        Some((name, text))
    });
    let custom = left.map(|text| (custom_metrics::TARGET, text));
    unreadable
        .chain(custom)
        .map(|(name, text)| Loss {
            field: format!("metadata.annotations[{name}]"),
            value: format!("cannot be read: {text}").into(),
        })
        .collect()
}
