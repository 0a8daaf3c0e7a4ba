//! Autoscalers from one kind or version into another. A new kind is one file below that implements [`Form`],
//! and a line in [`FORMS`].

mod chpa;
mod hpa;
mod loss;
mod pod_autoscaler;
mod scaled_object;
mod singlecloud;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use crate::hpa::convert::ConvertError;
use crate::hpa::v2;
pub use loss::{Loss, losses};

/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// What every form can be read as and written from: Kubernetes' own autoscaler, and what was said beyond that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hub {
    /// As `autoscaling/v2`, with nothing filled in.
    pub hpa: v2::HorizontalPodAutoscaler,
    /// What `autoscaling/v2` has no field for, at the fields that a PodAutoscaler has for it.
    pub beyond: Vec<Loss>,
    /// What only the form has that it was read from, at the fields that it has there.
    pub foreign: Vec<Loss>,
}

/// An autoscaler in another form, and what that form could not take in.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// The object.
    pub object: Value,
    /// What could not be carried over.
    pub losses: Vec<Loss>,
}

/// A kind and version of autoscaler.
pub trait Form: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Whether an object is of this form.
    fn describes(&self, object: &Value) -> bool;

    /// Whether it is written in JSON whatever it came from, since those who take it read nothing else.
    fn is_json(&self) -> bool {
        false
    }

    /// Reads an object of this form.
    fn read(&self, object: &Value) -> Result<Hub, ConvertError>;

    /// Reads an object of this form that is in a namespace unless it names another one.
    fn read_in(&self, object: &Value, _namespace: &str) -> Result<Hub, ConvertError> {
        self.read(object)
    }

    /// Writes an autoscaler in this form.
    fn write(&self, hub: &Hub) -> Result<Written, ConvertError>;
}

/// All forms; an object is read as the first one that describes it.
pub const FORMS: [&dyn Form; 10] = [
    &hpa::V2,
    &hpa::V1,
    &hpa::V1_BEFORE_1_6,
    &hpa::V2ALPHA1,
    &hpa::V2BETA1,
    &hpa::V2BETA2,
    &pod_autoscaler::PodAutoscaler,
    &chpa::Chpa,
    &scaled_object::ScaledObjects,
    &singlecloud::Singlecloud,
];

/// The form of that name.
pub fn form(name: &str) -> Option<&'static dyn Form> {
    FORMS.into_iter().find(|form| form.name() == name)
}

/// The form that an object has, if it is an autoscaler.
pub fn form_of(object: &Value) -> Option<&'static dyn Form> {
    FORMS.into_iter().find(|form| form.describes(object))
}

/// Writes an object in another form; nothing if it has that form already or is no autoscaler.
pub fn convert(object: &Value, to: &dyn Form) -> Result<Option<Written>, ConvertError> {
    convert_in(object, to, DEFAULT_NAMESPACE)
}

/// As [`convert`], for objects that are in a namespace unless they name another one.
pub fn convert_in(
    object: &Value,
    to: &dyn Form,
    namespace: &str,
) -> Result<Option<Written>, ConvertError> {
    match form_of(object) {
        Some(from) if !to.describes(object) => {
            let hub = from.read_in(object, namespace)?;
            let mut written = to.write(&hub)?;
            written.losses.extend(hub.foreign);
            Ok(Some(written))
        }
        _ => Ok(None),
    }
}
