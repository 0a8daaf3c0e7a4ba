//! Autoscalers from one kind or version into another. A new kind is one file below that implements [`Form`],
//! and a line in [`FORMS`].

mod chpa;
mod hpa;
mod loss;
mod pod_autoscaler;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use crate::hpa::convert::ConvertError;
use crate::hpa::v2;
pub use loss::{Loss, losses};

/// What every form can be read as and written from: Kubernetes' own autoscaler, and what was said beyond that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hub {
    /// As `autoscaling/v2`, with nothing filled in.
    pub hpa: v2::HorizontalPodAutoscaler,
    /// What `autoscaling/v2` has no field for, at the fields that a PodAutoscaler has for it.
    pub beyond: Vec<Loss>,
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

    /// Reads an object of this form.
    fn read(&self, object: &Value) -> Result<Hub, ConvertError>;

    /// Writes an autoscaler in this form.
    fn write(&self, hub: &Hub) -> Result<Written, ConvertError>;
}

/// All forms; an object is read as the first one that describes it.
pub const FORMS: [&dyn Form; 8] = [
    &hpa::V2,
    &hpa::V1,
    &hpa::V1_BEFORE_1_6,
    &hpa::V2ALPHA1,
    &hpa::V2BETA1,
    &hpa::V2BETA2,
    &pod_autoscaler::PodAutoscaler,
    &chpa::Chpa,
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
    match form_of(object) {
        Some(from) if !to.describes(object) => to.write(&from.read(object)?).map(Some),
        _ => Ok(None),
    }
}
