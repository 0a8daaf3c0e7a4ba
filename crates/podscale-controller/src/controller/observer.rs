//! What the controller reports of every pass. Observers import this; the controller imports none of
//! them.

mod jobs;

use super::outcome::OutcomeKind;
use crate::dialect::{Key, Managed};
use crate::source::Answer;
pub use jobs::{JobsDecided, StatusStored};
use podscale_api::pod::Pod;
use podscale_api::scale::Scale;
use podscale_core::pass;
use podscale_core::snapshot::ScaleError;
use podscale_core::{Decision, Snapshot, Step, explain};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// One pass, after its writes have ended.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// The object that was decided on.
    pub object: &'a Managed,
    /// What was known.
    pub snapshot: &'a Snapshot<'a>,
    /// What it led to.
    pub outcome: &'a pass::Outcome,
    /// How long it took.
    pub took: &'a Took,
    /// What it was made on, if somebody wants to know.
    pub(crate) inputs: Option<&'a Inputs>,
    /// Which other controller or autoscaler is in the way, if nothing is written for that.
    pub conflict: Option<&'a str>,
}

impl<'a> Decided<'a> {
    /// A pass of which nobody wants to know what it was made on.
    #[must_use]
    pub fn new(
        object: &'a Managed,
        snapshot: &'a Snapshot<'a>,
        outcome: &'a pass::Outcome,
        took: &'a Took,
    ) -> Decided<'a> {
        Decided { object, snapshot, outcome, took, inputs: None, conflict: None }
    }

    /// Whose pass it was.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.object.key
    }

    /// What was decided.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.outcome.decision
    }

    /// The kind of its outcome.
    #[must_use]
    pub fn outcome_kind(&self) -> OutcomeKind {
        OutcomeKind::of(&self.outcome.decision)
    }
}

/// How long a pass took; wall-clock.
#[derive(Clone, Debug, Default)]
pub struct Took {
    /// From its beginning until its writes had ended.
    pub whole: Duration,
    /// Until each metric's source had answered, in the order of the spec.
    pub metrics: SmallVec<[Duration; 2]>,
}

/// What a decision was made on, as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Inputs {
    /// The target's scale.
    pub(crate) scale: Result<Scale, ScaleError>,
    /// The pods that the target's selector picks.
    pub(crate) pods: Vec<Arc<Pod>>,
    /// The other objects whose selectors may pick them.
    pub(crate) others: Vec<OtherSelector>,
    /// What each metric's source answered, in the order of the spec.
    pub(crate) answers: Vec<Answer>,
}

/// Another object whose target's selector may pick the same pods.
#[derive(Clone, Debug)]
pub(crate) struct OtherSelector {
    /// Its kind.
    pub(crate) kind: &'static str,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// The selector of its target.
    pub(crate) selector: Arc<str>,
}

/// Hears of every pass. Must not wait: it is called between two passes.
pub trait Observer: Send + Sync {
    /// An object was decided.
    fn decided(&self, decided: &Decided<'_>);

    /// Whether it wants to know what decisions are made on; keeping that costs something.
    fn wants_inputs(&self) -> bool {
        false
    }

    /// An object is gone.
    fn gone(&self, _key: &Key) {}

    /// It was decided how many Jobs an object creates.
    fn jobs_decided(&self, _decided: &JobsDecided<'_>) {}
}

/// The steps that made the size, in words, without those that are said elsewhere.
#[must_use]
pub fn why(decided: &Decided<'_>) -> String {
    let snapshot = decided.snapshot;
    let matters = |step: &Step<'_>| match step {
        Step::Scale { .. } | Step::Rescale { .. } | Step::Keep { .. } => false,
        Step::Winner { .. } => snapshot.autoscaler.metrics.len() > 1,
        Step::Stabilized { from, to, .. } | Step::Limited { from, to, .. } => from != to,
        _ => true,
    };
    let line = |step: Step<'_>| explain::line(&step, snapshot.autoscaler, snapshot.now);
    let lines: Vec<String> = decided.decision().steps.iter().filter(matters).map(line).collect();
    lines.join("; ")
}

/// A change of size in one line: from where, to where, and why.
#[must_use]
pub fn rescale_line(decided: &Decided<'_>) -> Option<String> {
    let decision = decided.decision();
    let rescale = decision.rescale.as_ref()?;
    decision.rescaled_at?;
    let (from, to) = (rescale.from, rescale.to);
    let target = &decided.snapshot.autoscaler.target;
    Some(format!("{} {}: {from} → {to}: {}", target.kind, target.name, why(decided)))
}

/// Logs each change of size with its reason, and why nothing could be decided.
pub struct Log;

impl Observer for Log {
    fn decided(&self, decided: &Decided<'_>) {
        let autoscaler = decided.key();
        if let Some(line) = rescale_line(decided) {
            tracing::info!(%autoscaler, "{line}");
        } else if let Some(error) = &decided.decision().error {
            tracing::debug!(%autoscaler, %error, "cannot decide");
        }
    }

    fn jobs_decided(&self, decided: &JobsDecided<'_>) {
        let (scaled_job, reason) = (decided.key, decided.reason());
        match decided.outcome_kind() {
            OutcomeKind::Up => {
                tracing::info!(%scaled_job, "created {} Jobs: {reason}", decided.created());
            }
            OutcomeKind::Withheld => {
                tracing::info!(%scaled_job, "would create {} Jobs: {reason}", decided.wanted());
            }
            _ => tracing::debug!(%scaled_job, %reason, "no Jobs are created"),
        }
    }
}
