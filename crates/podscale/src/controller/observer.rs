//! Those who are told of every decision: the log, the dashboard, whoever else wants to know.

use crate::dashboard::{Hub, Picture};
use crate::scrape::Answer;
use crate::watch::world::Key;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, KIND};
use podscale_api::pod::Pod;
use podscale_api::scale::Scale;
use podscale_core::snapshot::ScaleError;
use podscale_core::{Autoscaler, Decision, ScaleWrite, Snapshot, Time, explain};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Duration;

/// One decision, after it was acted on.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// Whose.
    pub key: &'a Key,
    /// The object that was decided on.
    pub hpa: &'a HorizontalPodAutoscaler,
    /// What its spec means.
    pub autoscaler: &'a Arc<Autoscaler>,
    /// What was known.
    pub snapshot: &'a Snapshot<'a>,
    /// What was decided, settled.
    pub decision: &'a Decision,
    /// How long it took.
    pub took: &'a Took,
    /// What it was made on, if somebody wants to know.
    pub inputs: Option<&'a Inputs>,
}

impl Decided<'_> {
    /// The autoscaler as it is now.
    #[must_use]
    pub fn picture(&self) -> Picture {
        Picture::of(KIND, self.autoscaler, self.snapshot, self.decision)
    }
}

/// How long a look at an autoscaler took; time of the wall.
#[derive(Clone, Debug, Default)]
pub struct Took {
    /// From its beginning until it was acted on.
    pub whole: Duration,
    /// Until each metric's source had answered, in the order of the spec.
    pub metrics: SmallVec<[Duration; 2]>,
}

/// What a decision was made on, as it was read, and what came of the writes.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// The target's scale.
    pub scale: Result<Scale, ScaleError>,
    /// The pods that the target's selector picks.
    pub pods: Vec<Arc<Pod>>,
    /// The other autoscalers that may pick them: name and selector.
    pub others: Vec<(Arc<str>, Arc<str>)>,
    /// What each metric's source answered, in the order of the spec.
    pub answers: Vec<Answer>,
    /// How the write of the scale ended, and when, if there was one.
    pub write: Option<(ScaleWrite, Time)>,
    /// What became of the status.
    pub status: StatusWrite,
}

/// What became of a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusWrite {
    /// It is as it was.
    Unchanged,
    /// It was stored.
    Written,
    /// It has changed and is not stored now.
    PutOff,
    /// It could not be stored.
    Failed(Arc<str>),
}

/// Is told of every decision. Must not wait: it is called between two decisions.
pub trait Observer: Send + Sync {
    /// An autoscaler was decided.
    fn decided(&self, decided: &Decided<'_>);

    /// Whether it wants to know what decisions are made on; keeping that costs something.
    fn wants_inputs(&self) -> bool {
        false
    }

    /// An autoscaler is gone.
    fn gone(&self, _key: &Key) {}
}

impl Observer for Hub {
    fn decided(&self, decided: &Decided<'_>) {
        self.publish(decided.picture());
    }

    fn gone(&self, key: &Key) {
        self.remove(&key.to_string());
    }
}

/// Tells the log: each change of size with its reason, and each failure when it is new.
pub struct Log;

impl Observer for Log {
    fn decided(&self, decided: &Decided<'_>) {
        let autoscaler = decided.key;
        if let Some(line) = rescale_line(decided) {
            tracing::info!(%autoscaler, "{line}");
        } else if let Some(error) = &decided.decision.error {
            tracing::debug!(%autoscaler, %error, "cannot decide");
        }
    }
}

/// A change of size in one line: from where, to where, and why.
#[must_use]
pub fn rescale_line(decided: &Decided<'_>) -> Option<String> {
    let Decided { decision, snapshot, .. } = decided;
    let rescale = decision.rescale.as_ref()?;
    decision.rescaled_at?;
    let (from, to) = (rescale.from, rescale.to);
    let target = &snapshot.autoscaler.target;
    let why = why(decided);
    Some(format!("{} {}: {from} → {to}: {why}", target.kind, target.name))
}

/// The steps that made the size, without those that say what is said elsewhere.
#[must_use]
pub fn why(decided: &Decided<'_>) -> String {
    use podscale_core::Step;
    let Decided { decision, snapshot, .. } = decided;
    let telling = |step: &Step<'_>| match step {
        Step::Scale { .. } | Step::Rescale { .. } | Step::Keep { .. } => false,
        Step::Winner { .. } => snapshot.autoscaler.metrics.len() > 1,
        Step::Stabilized { from, to, .. } | Step::Limited { from, to, .. } => from != to,
        _ => true,
    };
    let line = |step: Step<'_>| explain::line(&step, snapshot.autoscaler, snapshot.now);
    let lines: Vec<String> = decision.steps.iter().filter(telling).map(line).collect();
    lines.join("; ")
}
