//! What happened on the way to a decision, in order, as data.

use crate::history::Recommendation;
use crate::snapshot::Scale;
use serde::ser::{Serialize, Serializer};
use smallvec::SmallVec;
use std::sync::Arc;

mod extended;
mod step;

pub use extended::{Activity, CombinedBy, Direction, FormulaFailure};
pub(crate) use extended::{
    Costs, DirectionPaused, ExtendedSteps, Fallen, Forbidden, Forecasted, Guarded, Led, Order,
    Queued, Spared, Substituted, Windowed,
};
pub use step::{Bound, Limit, PodCounts, Proposal, Step, Verdict, Withheld};

/// The steps of one decision: a place for each stage, so that noting a step is a plain write and
/// costs nothing to throw away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steps {
    pub(crate) scale: Option<Scale>,
    pub(crate) stop: Option<Stop>,
    pub(crate) metrics: SmallVec<[Result<Proposal, Arc<str>>; 1]>,
    pub(crate) agreement: Option<Agreement>,
    pub(crate) stabilized: Option<Stabilized>,
    pub(crate) limited: Option<Limited>,
    pub(crate) raised_from_zero: Option<i32>,
    pub(crate) end: Option<End>,
    pub(crate) withheld: Option<Withheld>,
    /// Steps that a native autoscaler never takes. Of all pointers this one costs least to throw away
    /// where there is nothing behind it.
    pub(crate) extended: Option<Arc<ExtendedSteps>>,
}

/// Why the metrics were not asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    InvalidSpec(Arc<str>),
    ScaleUnknown(Arc<str>),
    Disabled,
    OutsideBounds { bound: Bound, replicas: i32 },
    NoPods(Arc<str>),
}

/// What the metrics said together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Agreement {
    Winner { metric: u32, replicas: i32, invalid: u32 },
    Blocked { invalid: u32, of: u32, proposed: Option<i32> },
}

/// What recent recommendations made of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stabilized {
    pub(crate) from: i32,
    pub(crate) to: i32,
    pub(crate) held_by: Option<Recommendation>,
}

/// What a limit made of a size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limited {
    pub(crate) from: i32,
    pub(crate) to: i32,
    pub(crate) limit: Limit,
}

/// What becomes of the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    Rescale { from: i32, to: i32 },
    Keep { replicas: i32 },
}

impl Steps {
    /// The steps that a native autoscaler never takes, to be added to.
    pub(crate) fn extend(&mut self) -> &mut ExtendedSteps {
        Arc::make_mut(self.extended.get_or_insert_default())
    }

    /// Whether the autoscaler itself asks for its size to be decided and not set.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.extended.as_ref().is_some_and(|extended| extended.dry_run)
    }

    /// The steps in the order in which they happened.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let extended = self.extended.as_deref();
        let scale = self.scale.map(|Scale { spec_replicas, status_replicas }| Step::Scale {
            spec_replicas,
            status_replicas,
        });
        let metrics = self.metrics.iter().enumerate().map(|(place, answer)| match answer {
            Ok(proposal) => Step::Proposal(proposal),
            Err(error) => Step::Invalid { metric: place as u32, error },
        });
        let withheld = self.withheld.map(|reason| Step::Withheld { reason });
        let begin = scale.into_iter().chain(extended.and_then(ExtendedSteps::scheduled));
        let stop = self.stop().into_iter().chain(extended.and_then(ExtendedSteps::order));
        let answers = metrics.chain(extended.into_iter().flat_map(ExtendedSteps::substitutes));
        let agreed = extended.into_iter().flat_map(ExtendedSteps::agreed);
        let size = self.agreement().into_iter().chain(agreed).chain(self.limits());
        let held = extended.into_iter().flat_map(ExtendedSteps::held_back);
        let costs = extended.and_then(ExtendedSteps::costs);
        let end = held.chain(self.end()).chain(costs).chain(withheld);
        begin.chain(stop).chain(answers).chain(size).chain(end)
    }

    fn stop(&self) -> Option<Step<'_>> {
        Some(match self.stop.as_ref()? {
            Stop::InvalidSpec(error) => Step::InvalidSpec { error },
            Stop::ScaleUnknown(error) => Step::ScaleUnknown { error },
            Stop::Disabled => Step::Disabled,
            Stop::OutsideBounds { bound, replicas } => {
                Step::OutsideBounds { bound: *bound, replicas: *replicas }
            }
            Stop::NoPods(error) => Step::NoPods { error },
        })
    }

    fn agreement(&self) -> Option<Step<'_>> {
        Some(match self.agreement? {
            Agreement::Winner { metric, replicas, invalid } => {
                Step::Winner { metric, replicas, invalid }
            }
            Agreement::Blocked { invalid, of, proposed } => Step::Blocked { invalid, of, proposed },
        })
    }

    /// What recent recommendations, rates and bounds made of the size.
    fn limits(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let stabilized = self.stabilized.map(|Stabilized { from, to, held_by }| Step::Stabilized {
            from,
            to,
            held_by,
        });
        let limited =
            self.limited.map(|Limited { from, to, limit }| Step::Limited { from, to, limit });
        let raised = self.raised_from_zero.map(|to| Step::RaisedFromZero { to });
        stabilized.into_iter().chain(limited).chain(raised)
    }

    fn end(&self) -> Option<Step<'_>> {
        Some(match self.end? {
            End::Rescale { from, to } => Step::Rescale { from, to },
            End::Keep { replicas } => Step::Keep { replicas },
        })
    }
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
