//! How the choices of another controller compare with ours, one object at a time.

use super::ObservedWrite;
use super::attempt::{Attempt, SLACK, decide_nearby};
use super::verdict::{Disagreement, Reason, Verdict};
use podscale_core::model::{Behavior, ScalingRules};
use podscale_core::{Autoscaler, Settings, Snapshot, Span, Time};

/// After how many decisions in a row a choice that was not made counts as refused.
const REFUSED_AFTER: u32 = 3;
/// After how many writes in a row with other values of the metrics that is reported.
const REPORTED_AFTER: u32 = 5;

/// How far back decisions on an autoscaler look.
fn memory(autoscaler: &Autoscaler, settings: &Settings) -> Span {
    let longest = |rules: &ScalingRules| {
        let window = rules.stabilization_window.unwrap_or(settings.downscale_stabilization);
        window.max(rules.longest_period())
    };
    match &autoscaler.behavior {
        Some(Behavior { scale_up, scale_down }) => longest(scale_up).max(longest(scale_down)),
        None => settings.downscale_stabilization,
    }
}

/// One object's choices, those of the other controller against ours.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// When it was first compared.
    since: Option<Time>,
    /// Our last attempt.
    last: Option<Attempt>,
    /// When the other one last decided on values that were not seen here, or the pods changed.
    changed: Option<Time>,
    /// How many of ours in a row were another than the stored one.
    differing: u32,
    /// How many observed writes in a row were made on other values.
    other_values: u32,
    /// What the other controller wrote since the last reconcile.
    observed: Option<ObservedWrite>,
}

/// When a choice is judged, and how far back it may look.
#[derive(Clone, Copy, Debug)]
struct Moment {
    now: Time,
    memory: Span,
}

impl Comparison {
    /// Notes what was written, to be compared at the next reconcile. Of two writes before it, the
    /// rescale of the first is kept.
    pub(crate) fn observed(&mut self, observed: ObservedWrite) {
        let unread = self.observed.as_ref().is_some_and(|unread| unread.rescaled.is_some());
        if !unread || observed.rescaled.is_some() {
            self.observed = Some(observed);
        }
    }

    /// What was written since the last reconcile.
    pub(crate) fn take_observed(&mut self) -> Option<ObservedWrite> {
        let mut observed = self.observed.take()?;
        if observed.rescaled.is_some() {
            observed.existed = self.last.as_ref().map(|last| last.existing);
        }
        Some(observed)
    }

    /// Holds an attempt against what was written, or against what is stored.
    pub(crate) fn judge(
        &mut self,
        observed: Option<&ObservedWrite>,
        snapshot: &Snapshot<'_>,
        attempt: Attempt,
        period: Span,
    ) -> Option<Verdict> {
        let memory = memory(snapshot.autoscaler, snapshot.settings);
        let memory = Span(memory.0.saturating_add(period.0).saturating_add(SLACK.0));
        let at = Moment { now: snapshot.now, memory };
        let verdict = match observed {
            Some(observed) => {
                let nearby = |chosen| decide_nearby(snapshot, period, |ours| ours == chosen);
                self.written(observed, attempt, nearby, at)
            }
            // Without conditions nobody has decided yet.
            None if snapshot.status.conditions.is_empty() => None,
            None => self.unwritten(snapshot.status.desired_replicas, attempt, at),
        };
        let watched = snapshot.now.since(*self.since.get_or_insert(snapshot.now));
        verdict.filter(|_| watched > memory)
    }

    /// Takes in an attempt; the one before, and whether the pods are as they were then.
    fn advance(&mut self, attempt: &Attempt, at: Moment) -> (Option<Attempt>, bool) {
        let last = self.last.replace(attempt.clone());
        let settled = last.as_ref().is_some_and(|last| last.pods == attempt.pods);
        // What either of us decides while the pods change, the other one may not have seen.
        if last.is_some() && !settled {
            self.changed = Some(at.now);
        }
        (last, settled)
    }

    /// Judges an observed write by what we decide on the same; `nearby` says whether it would be
    /// decided at other moments.
    fn written(
        &mut self,
        observed: &ObservedWrite,
        attempt: Attempt,
        nearby: impl FnOnce(i32) -> bool,
        at: Moment,
    ) -> Option<Verdict> {
        self.differing = 0;
        let blind = self.is_blind(at);
        let (last, settled) = self.advance(&attempt, at);
        let same_view =
            |last: &&Attempt| last.metrics == observed.metrics && last.found == observed.found;
        let before = last.as_ref().filter(same_view).and_then(|last| last.chosen);
        let chosen = Some(observed.desired);
        if attempt.same_inputs {
            self.other_values = 0;
            if attempt.chosen == chosen || nearby(observed.desired) {
                return Some(Verdict::Agreed);
            }
        }
        if before == chosen {
            return Some(Verdict::Agreed);
        }
        if !attempt.same_inputs {
            self.changed = Some(at.now);
            self.other_values = self.other_values.saturating_add(1);
            let lasting = self.other_values == REPORTED_AFTER;
            return Some(Verdict::Unknown(if lasting {
                Reason::ValuesRepeatedly
            } else {
                Reason::Values
            }));
        }
        let ours = attempt.chosen?;
        if !settled {
            return Some(Verdict::Unknown(Reason::Pods));
        }
        if blind {
            return Some(Verdict::Unknown(Reason::Past));
        }
        Some(Verdict::Disagreed(Disagreement::Chose { observed: observed.desired, ours }))
    }

    /// Judges the stored choice by what we decide while the other controller writes nothing.
    fn unwritten(&mut self, stored: i32, attempt: Attempt, at: Moment) -> Option<Verdict> {
        let (_, settled) = self.advance(&attempt, at);
        let ours = attempt.chosen.filter(|_| attempt.same_inputs)?;
        if ours == stored {
            self.differing = 0;
            return Some(Verdict::Agreed);
        }
        if !settled || self.is_blind(at) {
            self.differing = 0;
            return None;
        }
        self.differing = self.differing.saturating_add(1);
        let said = self.differing == REFUSED_AFTER;
        said.then_some(Verdict::Disagreed(Disagreement::Kept { observed: stored, ours }))
    }

    /// Whether the other controller may remember what was not seen here.
    fn is_blind(&self, Moment { now, memory }: Moment) -> bool {
        self.changed.is_some_and(|changed| now.since(changed) <= memory)
    }
}

#[cfg(test)]
mod tests;
