//! Sizing by what waits in a queue and by what arrives in it.

use super::Milli;
use crate::time::Span;

/// Never fewer pods than serve what arrives and, within a time, what waits: by Little's law, work that
/// arrives at a rate and is to wait no longer than a time makes a queue of rate times time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The place of the metric that is how much waits.
    pub length: u32,
    /// The place of the metric that is how much arrives in a second.
    pub arrivals: u32,
    /// How much one pod gets through in a second.
    pub per_pod: Milli,
    /// Within which time what waits is to be served.
    pub within: Span,
}
