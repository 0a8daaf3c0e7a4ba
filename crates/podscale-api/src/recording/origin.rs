//! What an autoscaler was before it was put into the form of a Recording, where it was no HPA: its kind
//! and its spec, in an annotation. What is decided anew is decided by that.

use crate::hpa::v2::HorizontalPodAutoscaler;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The annotation.
pub const ORIGIN: &str = "podscale.dev/recorded-from";

/// The kind and the spec of an object that is recorded in the form of an HPA.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Its kind.
    pub kind: String,
    /// Its spec, as it came.
    pub spec: Value,
}

impl Origin {
    /// Notes in an HPA what it was before.
    pub fn note(kind: &str, spec: &Value, hpa: &mut HorizontalPodAutoscaler) {
        let origin = Origin { kind: kind.to_owned(), spec: spec.clone() };
        // A spec that came as JSON can be put into JSON.
        if let Ok(text) = serde_json::to_string(&origin) {
            hpa.metadata.annotations.insert(ORIGIN, text);
        }
    }

    /// What an HPA was before, if that was something else.
    #[must_use]
    pub fn of(hpa: &HorizontalPodAutoscaler) -> Option<Origin> {
        serde_json::from_str(hpa.metadata.annotations.get(ORIGIN)?).ok()
    }
}
