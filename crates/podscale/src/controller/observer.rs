//! Those who are told of every decision: the log, the dashboard, whoever else wants to know.

use crate::dashboard::{Hub, view};
use crate::watch::world::Key;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, KIND};
use podscale_core::{Decision, Snapshot, explain};

/// One decision, after it was acted on.
#[derive(Clone, Copy, Debug)]
pub struct Decided<'a> {
    /// Whose.
    pub key: &'a Key,
    /// The object that was decided on.
    pub hpa: &'a HorizontalPodAutoscaler,
    /// What was known.
    pub snapshot: &'a Snapshot<'a>,
    /// What was decided, settled.
    pub decision: &'a Decision,
}

/// Is told of every decision. Must not wait: it is called between two decisions.
pub trait Observer: Send + Sync {
    /// An autoscaler was decided.
    fn decided(&self, decided: &Decided<'_>);

    /// An autoscaler is gone.
    fn gone(&self, _key: &Key) {}
}

impl Observer for Hub {
    fn decided(&self, decided: &Decided<'_>) {
        let (autoscaler, decision) = view(KIND, decided.snapshot, decided.decision);
        self.publish(autoscaler, decision);
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
    let telling = |step: &&Step| match step {
        Step::Scale { .. } | Step::Rescale { .. } | Step::Keep { .. } => false,
        Step::Winner { .. } => snapshot.autoscaler.metrics.len() > 1,
        Step::Stabilized { from, to, .. } | Step::Limited { from, to, .. } => from != to,
        _ => true,
    };
    let line = |step: &Step| explain::line(step, snapshot.autoscaler, snapshot.now);
    let lines: Vec<String> = decision.steps.iter().filter(telling).map(line).collect();
    lines.join("; ")
}
