//! A judge of objects in the same process, in the place of admission webhooks, which this server does not call.

use std::sync::Arc;

use podscale_api::admission::Refusal;
use serde_json::Value;

/// An object that is about to be stored, and with which nothing else is wrong.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The group of its kind.
    pub group: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its name.
    pub name: &'a str,
    /// As it would be stored.
    pub object: &'a Value,
    /// The one that it replaces.
    pub old: Option<&'a Value>,
}

/// Says why an object is refused, if it is.
pub type Judge = Arc<dyn Fn(&Candidate<'_>) -> Option<Refusal> + Send + Sync>;

/// Who judges objects before they are stored; never their status or scale alone.
#[derive(Clone)]
pub struct Admission {
    /// What clients see it as.
    pub webhook: &'static str,
    /// Judges an object; whatever it says, it must not wait.
    pub judge: Judge,
}
