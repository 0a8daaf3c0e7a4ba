//! Sizing by the mean demand of a window, as Knative's autoscaler does.

use crate::time::Span;

/// Sizes follow the mean demand of a window, unless that of a shorter one is far beyond what the pods can
/// serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Over how long the demand is averaged.
    pub stable: Span,
    /// Over how long it is averaged to see a burst; shorter than one interval is the last demand.
    pub panic: Span,
    /// From how many percent of the ready pods on that is a burst. Then the size follows the shorter window,
    /// and does not go down before a whole window has passed without one.
    pub panic_percent: u32,
}
