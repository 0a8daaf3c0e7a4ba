//! API groups that other servers answer for.

/// The servers behind APIServices.
#[derive(Debug, Default)]
pub(crate) struct Backends {}
