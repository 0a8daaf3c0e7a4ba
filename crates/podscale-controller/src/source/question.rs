//! What a metric asks its source. Questions are made from the model, so that every dialect asks the
//! same way.

use podscale_core::model::{Series, Source};
use std::sync::Arc;
use std::time::Duration;

/// A question about one metric of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question<'a> {
    /// The namespace of the object, its target and its pods.
    pub(crate) namespace: &'a str,
    /// What is asked for.
    pub(crate) metric: &'a Source,
    /// The selector of the target's pods.
    pub(crate) pods: &'a str,
    /// How old an answer may be that was given to somebody else.
    pub(crate) max_age: Duration,
    /// How often it is asked, if nothing happens.
    pub(crate) period: Duration,
}

/// The selector of a metric's series in the form of requests; nothing selects everything.
///
/// # Errors
/// The selector cannot be used, which the core reports; nothing is read for it.
pub(super) fn series_query(series: &Series) -> Result<&str, Arc<str>> {
    match &series.selector_error {
        Some(error) => Err(Arc::clone(error)),
        None => Ok(series.query.as_deref().unwrap_or_default()),
    }
}
