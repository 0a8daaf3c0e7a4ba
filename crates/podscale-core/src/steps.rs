//! What happened on the way to a decision, in order, as data.

use crate::history::Recommendation;
use crate::model::{MetricTarget, Policy};
use crate::snapshot::Scale;
use crate::status::Current;
use serde::ser::{Serialize, Serializer};
use smallvec::SmallVec;
use std::sync::Arc;

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
    /// The steps in the order in which they happened.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Step<'_>> {
        let scale = self.scale.map(|Scale { spec_replicas, status_replicas }| Step::Scale {
            spec_replicas,
            status_replicas,
        });
        let stop = self.stop.as_ref().map(|stop| match stop {
            Stop::InvalidSpec(error) => Step::InvalidSpec { error },
            Stop::ScaleUnknown(error) => Step::ScaleUnknown { error },
            Stop::Disabled => Step::Disabled,
            Stop::OutsideBounds { bound, replicas } => {
                Step::OutsideBounds { bound: *bound, replicas: *replicas }
            }
            Stop::NoPods(error) => Step::NoPods { error },
        });
        let metrics = self.metrics.iter().enumerate().map(|(place, answer)| match answer {
            Ok(proposal) => Step::Proposal(proposal),
            Err(error) => Step::Invalid { metric: place as u32, error },
        });
        let agreement = self.agreement.map(|agreement| match agreement {
            Agreement::Winner { metric, replicas, invalid } => {
                Step::Winner { metric, replicas, invalid }
            }
            Agreement::Blocked { invalid, of, proposed } => Step::Blocked { invalid, of, proposed },
        });
        let stabilized = self.stabilized.map(|Stabilized { from, to, held_by }| Step::Stabilized {
            from,
            to,
            held_by,
        });
        let limited =
            self.limited.map(|Limited { from, to, limit }| Step::Limited { from, to, limit });
        let raised = self.raised_from_zero.map(|to| Step::RaisedFromZero { to });
        let end = self.end.map(|end| match end {
            End::Rescale { from, to } => Step::Rescale { from, to },
            End::Keep { replicas } => Step::Keep { replicas },
        });
        let withheld = self.withheld.map(|reason| Step::Withheld { reason });
        let begin = scale.into_iter().chain(stop);
        let size = agreement.into_iter().chain(stabilized).chain(limited).chain(raised);
        begin.chain(metrics).chain(size).chain(end).chain(withheld)
    }
}

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// One thing that happened on the way to a decision.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "step")]
pub enum Step<'a> {
    /// The spec cannot be acted on; the target is left alone.
    InvalidSpec {
        /// Why.
        error: &'a str,
    },
    /// The target's size is not known; nothing can be done.
    ScaleUnknown {
        /// Why.
        error: &'a str,
    },
    /// The target's size was read.
    Scale {
        /// How many replicas its spec asks for.
        #[serde(rename = "wanted")]
        spec_replicas: i32,
        /// How many it says it has.
        #[serde(rename = "existing")]
        status_replicas: i32,
    },
    /// Somebody else set the target to zero; it is left alone.
    Disabled,
    /// The size is outside the bounds and is brought back without reading the metrics.
    OutsideBounds {
        /// Which bound was crossed.
        bound: Bound,
        /// The bound, which is the new size.
        replicas: i32,
    },
    /// The target's pods are not known.
    NoPods {
        /// Why.
        error: &'a str,
    },
    /// One metric proposed a size.
    Proposal(&'a Proposal),
    /// One metric could not propose a size.
    Invalid {
        /// Its place in the spec.
        metric: u32,
        /// Why.
        error: &'a str,
    },
    /// The metrics agreed on a size.
    Winner {
        /// The place of the deciding metric in the spec.
        metric: u32,
        /// The size.
        replicas: i32,
        /// How many metrics were left out because they are broken.
        invalid: u32,
    },
    /// Broken metrics keep the size as it is.
    Blocked {
        /// How many are broken.
        invalid: u32,
        /// Of how many.
        of: u32,
        /// What the others would have asked for, if there are any.
        proposed: Option<i32>,
    },
    /// Recent recommendations were considered.
    Stabilized {
        /// What the metrics asked for.
        from: i32,
        /// What it became.
        to: i32,
        /// The recommendation that held it, where one did.
        held_by: Option<Recommendation>,
    },
    /// A limit was applied.
    Limited {
        /// What was asked for.
        from: i32,
        /// What it became.
        to: i32,
        /// By which limit.
        limit: Limit,
    },
    /// Held at zero by the autoscaler itself, but the minimum was raised since.
    RaisedFromZero {
        /// The minimum.
        to: i32,
    },
    /// The target gets another size.
    Rescale {
        /// From this size.
        from: i32,
        /// To this size.
        to: i32,
    },
    /// The target keeps its size.
    Keep {
        /// Its size.
        replicas: i32,
    },
    /// The target was not given its new size, on purpose.
    Withheld {
        /// Why.
        reason: Withheld,
    },
}

/// Why a write was left out on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Withheld {
    /// This is a dry run.
    DryRun,
    /// Another controller manages the autoscaler.
    OtherController,
    /// It is left for a later pass.
    Deferred,
    /// The object does not exist any more.
    Gone,
}

/// A bound of the spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Bound {
    /// The fewest replicas.
    Min,
    /// The most replicas.
    Max,
}

/// What kept a size from being applied in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Limit {
    /// A bound of the spec.
    Bound(Bound),
    /// The rate without a behavior: at most double, or four.
    DefaultRate,
    /// A policy of the behavior.
    Policy {
        /// The policy.
        policy: Policy,
        /// The size at the beginning of its period.
        period_start: i32,
    },
    /// The direction is closed.
    Disabled,
}

/// A size that one metric asks for, and how it came to it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Proposal {
    /// The metric's place in the spec.
    pub metric: u32,
    /// The size it asks for.
    pub replicas: i32,
    /// What the metric said.
    pub current: Current,
    /// What it is compared with.
    #[serde(rename = "aim")]
    pub target: MetricTarget,
    /// How far the value is from the target: above one asks for more.
    pub ratio: f64,
    /// The ratio after pods without a usable sample were counted in, where that was done.
    pub adjusted_ratio: Option<f64>,
    /// How the pods were sorted.
    pub pods: PodCounts,
    /// Which rule gave the size.
    pub verdict: Verdict,
}

/// How the pods were sorted for one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PodCounts {
    /// Pods that count.
    pub ready: u32,
    /// Pods that are not ready to be judged.
    pub unready: u32,
    /// Pods without a sample.
    pub missing: u32,
    /// Pods that failed or are being deleted.
    pub ignored: u32,
    /// Samples of pods that are not there.
    #[serde(rename = "strangers")]
    pub unmatched: u32,
}

/// Which rule gave the size of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// Close enough to the target: no change.
    WithinTolerance,
    /// The ratio times the pods that count.
    Scaled,
    /// Counting in the other pods would reverse the direction: no change.
    #[serde(rename = "wouldTurn")]
    DirectionReversed,
    /// The total divided by the target for one pod.
    Divided,
}
