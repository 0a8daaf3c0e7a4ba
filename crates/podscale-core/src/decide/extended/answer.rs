//! What one metric said, for the stages that follow.

use crate::model::Milli;
use crate::steps::Proposal;
use crate::time::Time;

/// What one metric said.
#[derive(Default)]
pub(super) struct Answer {
    /// The replicas that it asks for, or that something else asks for in its place.
    pub(super) replicas: Option<i32>,
    /// What it said itself.
    pub(super) proposal: Option<Proposal>,
    /// When that was measured.
    pub(super) taken: Option<Time>,
    /// The whole of what its source said, if that is one value.
    pub(super) total: Option<Milli>,
    /// Whether its source says itself that it is active, or not.
    pub(super) active: Option<bool>,
}
