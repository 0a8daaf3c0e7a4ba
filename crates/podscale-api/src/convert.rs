//! Autoscalers from one kind or version into another. A new kind is one file below that implements [`Form`],
//! and a line in [`FORMS`].

pub(crate) mod chpa;
mod hpa;
mod loss;
mod pod_autoscaler;
mod scaled_object;
pub(crate) mod singlecloud;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use crate::hpa::convert::ConvertError;
use crate::hpa::v2;
pub use loss::{Loss, losses};
use loss::{at, losses_in_meaning};

/// The namespace of objects that name none.
pub const DEFAULT_NAMESPACE: &str = "default";

/// What every form can be read as and written from: Kubernetes' own autoscaler, and what was said beyond that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hub {
    /// As `autoscaling/v2`, with nothing filled in.
    pub hpa: v2::HorizontalPodAutoscaler,
    /// What `autoscaling/v2` has no field for, at the fields that a PodAutoscaler has for it.
    pub beyond: Vec<Loss>,
    /// What cannot be read, or means something in this form alone, at the fields that the object has for it.
    pub unread: Vec<Loss>,
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

    /// The path at which an object of this form says what its [`Hub`] has at a path of `autoscaling/v2`; nothing if
    /// the object does not say it, but only what it was read as.
    fn path(&self, _object: &Value, path: &str) -> Option<String> {
        Some(path.to_owned())
    }

    /// As [`Form::path`], for what its [`Hub`] has beyond that.
    fn path_beyond(&self, _object: &Value, path: &str) -> Option<String> {
        Some(path.to_owned())
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
            let Written { object: written, losses } = to.write(&hub)?;
            let mut named = named(losses, from, object, &hub);
            named.extend(hub.unread);
            Ok(Some(Written { object: written, losses: named }))
        }
        _ => Ok(None),
    }
}

/// Losses by the fields and with the values that the object has which was read.
fn named(losses: Vec<Loss>, from: &dyn Form, object: &Value, hub: &Hub) -> Vec<Loss> {
    let mut named: Vec<Loss> = Vec::with_capacity(losses.len());
    for loss in losses {
        let path = match hub.beyond.contains(&loss) {
            true => from.path_beyond(object, &loss.field),
            false => from.path(object, &loss.field),
        };
        let Some(field) = path else { continue };
        let said = at(object, &field).filter(|value| !value.is_null());
        let value = said.cloned().unwrap_or(loss.value);
        // Several fields may be one in another form.
        if !named.iter().any(|known| known.field == field) {
            named.push(Loss { field, value });
        }
    }
    named
}
