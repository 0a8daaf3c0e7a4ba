//! The dry run beside another controller: what that one wrote against what would have been written.
//!
//! The two look at different moments, so what they see is never quite the same. A disagreement is told
//! only where the other one decided otherwise on the same: the same values of the metrics, as its status
//! shows them, the same size, the same pods and the same past. The rules:
//!
//! - When the other one writes a status, the object is decided at once from the status before, the size
//!   that it says it found and the pods that were there before it changed the size. It agrees if it
//!   chose what this decision says, or the look before, if that saw the same; or what would be decided
//!   a moment earlier or later, since stored times are whole seconds, and two controllers remember the
//!   same recommendation at moments up to a period apart.
//! - Otherwise it disagrees, unless its choice cannot be judged: it saw other values; or the pods
//!   changed since the look before; or it may remember something that was never seen here, which is so
//!   for as long as the longest window after either of these happened.
//! - While it writes nothing, its stored choice is judged in the same way, and disagrees once
//!   [`PATIENCE`] decisions in a row would have been another.
//! - An object is compared once it was watched for as long as its longest window.

use crate::watch::world::Key;
use parking_lot::Mutex;
use podscale_api::hpa::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricSpec, MetricStatus, metric_type,
};
use podscale_api::pod::Pod;
use podscale_api::translate;
use podscale_core::model::{Behavior, ScalingRules};
use podscale_core::snapshot::Reading;
use podscale_core::{Autoscaler, Decision, History, Settings, Snapshot, Span, Time, decide};
use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// After how many decisions in a row a choice that was not made counts as refused.
const PATIENCE: u32 = 3;
/// After how many writes in a row with other values of the metrics that is told.
const UNLIKE: u32 = 5;
/// How far the moments of two controllers may be apart.
pub const SLACK: Span = Span::seconds(1);

/// What another controller wrote into a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    /// The status that it overwrote.
    pub before: Option<HorizontalPodAutoscalerStatus>,
    /// The size that it found.
    pub found: i32,
    /// How many pods there were at the look before, if it has changed the size since.
    pub existed: Option<i32>,
    /// The size that it chose.
    pub desired: i32,
    /// When it changed the size, if it did with this write.
    pub rescaled: Option<Time>,
    /// What it saw of the metrics.
    pub metrics: Option<Vec<MetricStatus>>,
    /// The generation of the object that it decided on.
    pub generation: Option<i64>,
}

impl Theirs {
    /// What was written, if the status has changed.
    #[must_use]
    pub fn of(before: &HorizontalPodAutoscaler, after: &HorizontalPodAutoscaler) -> Option<Theirs> {
        let (old, new) = (before.status.as_ref(), after.status.as_ref()?);
        if before.metadata.uid != after.metadata.uid || old == Some(new) {
            return None;
        }
        let last = new.last_scale_time.map(|time| time.0);
        let moved = last != old.and_then(|old| old.last_scale_time).map(|time| time.0);
        Some(Theirs {
            before: old.cloned(),
            found: new.current_replicas,
            existed: None,
            desired: new.desired_replicas,
            rescaled: last.filter(|_| moved),
            metrics: new.current_metrics.clone(),
            generation: new.observed_generation,
        })
    }

    /// Adds the change of size to a history as if it had been our own.
    pub fn teach(&self, behavior: Option<&Behavior>, history: &mut History) {
        if let Some(at) = self.rescaled
            && self.found != self.desired
        {
            history.scaled(behavior, self.found, self.desired, at);
        }
    }

    /// Whether a pod was there before the size was changed.
    #[must_use]
    pub fn met(&self, pod: &Pod) -> bool {
        self.rescaled.is_none_or(|at| pod.status.start_time.is_some_and(|start| start.0 < at))
    }
}

/// One look of ours, to be held against a choice of theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// The size that was found.
    found: i32,
    /// How many pods there were.
    existing: i32,
    /// What was chosen, if anything could be.
    chosen: Option<i32>,
    /// What was seen of the metrics.
    metrics: Option<Vec<MetricStatus>>,
    /// What was seen of the pods, if it matters.
    pods: u64,
    /// Whether the other controller saw the same values last.
    pub alike: bool,
}

impl Look {
    /// What a decision was made on, next to what the other controller wrote or has stored.
    #[must_use]
    pub fn of(
        decision: &Decision,
        snapshot: &Snapshot<'_>,
        hpa: &HorizontalPodAutoscaler,
        theirs: Option<&Theirs>,
    ) -> Look {
        let stored = hpa.status.as_ref();
        let (seen, generation) = match theirs {
            Some(theirs) => (theirs.metrics.as_ref(), theirs.generation),
            None => (
                stored.and_then(|status| status.current_metrics.as_ref()),
                stored.and_then(|status| status.observed_generation),
            ),
        };
        let metrics = translate::status::to_wire(decision, snapshot, hpa).current_metrics;
        let same_spec = generation.is_none_or(|seen| seen == hpa.metadata.generation);
        let alike = metrics.as_ref() == seen && same_spec;
        let (found, existing) =
            snapshot.scale.as_ref().map_or((0, 0), |scale| (scale.wanted, scale.existing));
        let mut pods = DefaultHasher::new();
        if hpa.spec.metrics.iter().any(asks_for_pods) {
            format!("{:?}", snapshot.pods).hash(&mut pods);
        }
        let (chosen, pods) = (decision.desired, pods.finish());
        Look { found, existing, chosen, metrics, pods, alike }
    }
}

/// Whether what a metric proposes depends on the state of pods. Values that are shared out among the
/// replicas depend on their number alone, which a status shows.
fn asks_for_pods(metric: &MetricSpec) -> bool {
    let target = match metric.r#type.as_str() {
        metric_type::OBJECT => metric.object.as_ref().map(|source| &source.target),
        metric_type::EXTERNAL => metric.external.as_ref().map(|source| &source.target),
        _ => None,
    };
    target.is_none_or(|target| target.average_value.is_none())
}

/// Decides once more, a moment earlier or later, until somebody has seen enough.
fn decide_nearby(
    snapshot: &Snapshot<'_>,
    period: Span,
    mut enough: impl FnMut(i32) -> bool,
) -> bool {
    let far = Span(period.0.saturating_add(SLACK.0));
    let zero = Span::seconds(0);
    let samples = [zero, SLACK, Span(SLACK.0.saturating_neg())].map(|shift| {
        let shifted = snapshot.readings.iter().cloned().map(|reading| shifted(reading, shift));
        shifted.collect::<Vec<Reading>>()
    });
    samples.iter().any(|readings| {
        [zero, SLACK, far].into_iter().any(|shift| {
            [snapshot.now.before(shift), snapshot.now.after(shift)].into_iter().any(|now| {
                let decision = decide(&Snapshot { now, readings, ..*snapshot });
                decision.desired.is_some_and(&mut enough)
            })
        })
    })
}

/// What a metric says, as if it had been measured so much later.
fn shifted(mut reading: Reading, shift: Span) -> Reading {
    if let Reading::PerPod(of_pods) = &mut reading {
        for sample in of_pods.samples.iter_mut().flatten() {
            sample.taken = sample.taken.after(shift);
        }
    }
    reading
}

/// How a choice of theirs compares with ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the same.
    Agreed,
    /// It is another one, on the same.
    Disagreed(Disagreement),
    /// It cannot be judged.
    Unknown(Reason),
}

/// Why a choice cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It was made on other values of the metrics, or on another spec.
    Values,
    /// The same, many times in a row.
    OtherValues,
    /// The pods changed at about that time.
    Pods,
    /// It may remember what was not seen here.
    Past,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Values => "it was made on other values of the metrics",
            Reason::OtherValues => {
                "the other controller keeps seeing other values of the metrics than Podscale"
            }
            Reason::Pods => "the pods changed meanwhile",
            Reason::Past => "the other controller may remember what was not seen here",
        })
    }
}

/// A choice that was another than ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// It chose a size that we would not have.
    Chose {
        /// Its size.
        theirs: i32,
        /// Ours.
        ours: i32,
    },
    /// It kept a size that we would have changed.
    Kept {
        /// Its size.
        theirs: i32,
        /// Ours.
        ours: i32,
    },
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Chose { theirs, ours } => {
                write!(
                    f,
                    "the other controller chose {theirs} replicas, Podscale would have chosen {ours}"
                )
            }
            Disagreement::Kept { theirs, ours } => write!(
                f,
                "the other controller stays at {theirs} replicas, Podscale would have gone to {ours}"
            ),
        }
    }
}

/// How far back decisions on an autoscaler look.
#[must_use]
pub fn memory(autoscaler: &Autoscaler, settings: &Settings) -> Span {
    let longest = |rules: &ScalingRules| {
        let window = rules.stabilization_window.unwrap_or(settings.downscale_stabilization);
        window.max(rules.longest_period())
    };
    match &autoscaler.behavior {
        Some(Behavior { scale_up, scale_down }) => longest(scale_up).max(longest(scale_down)),
        None => settings.downscale_stabilization,
    }
}

/// One object's choices, theirs against ours.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// When it was first looked at.
    since: Option<Time>,
    /// Our look before.
    last: Option<Look>,
    /// When the other one last decided on values that were not seen here, or the pods changed.
    changed: Option<Time>,
    /// How many of ours in a row were another than the stored one.
    apart: u32,
    /// How many of their writes in a row were made on other values.
    unlike: u32,
}

/// When a choice is judged, and how far back it may look.
#[derive(Clone, Copy, Debug)]
struct Moment {
    now: Time,
    memory: Span,
}

impl Comparison {
    /// Takes in a look; the one before, and whether the pods are as they were then. Sizes are told with
    /// the choices.
    fn take_in(&mut self, look: &Look, at: Moment) -> (Option<Look>, bool) {
        let last = self.last.replace(look.clone());
        let settled = last.as_ref().is_some_and(|last| last.pods == look.pods);
        // What either of us decides while the pods change, the other one may not have seen.
        if last.is_some() && !settled {
            self.changed = Some(at.now);
        }
        (last, settled)
    }

    /// Judges what they wrote by what we decide on the same; `nearby` says whether it would be decided
    /// at other moments.
    fn written(
        &mut self,
        theirs: &Theirs,
        look: Look,
        nearby: impl FnOnce(i32) -> bool,
        at: Moment,
    ) -> Option<Verdict> {
        self.apart = 0;
        let blind = self.is_blind(at);
        let (last, settled) = self.take_in(&look, at);
        let saw_the_same =
            |last: &&Look| last.metrics == theirs.metrics && last.found == theirs.found;
        let before = last.as_ref().filter(saw_the_same).and_then(|last| last.chosen);
        let chosen = Some(theirs.desired);
        if look.alike {
            self.unlike = 0;
            if look.chosen == chosen || nearby(theirs.desired) {
                return Some(Verdict::Agreed);
            }
        }
        if before == chosen {
            return Some(Verdict::Agreed);
        }
        if !look.alike {
            self.changed = Some(at.now);
            self.unlike = self.unlike.saturating_add(1);
            let lasting = self.unlike == UNLIKE;
            return Some(Verdict::Unknown(if lasting {
                Reason::OtherValues
            } else {
                Reason::Values
            }));
        }
        let ours = look.chosen?;
        if !settled {
            return Some(Verdict::Unknown(Reason::Pods));
        }
        if blind {
            return Some(Verdict::Unknown(Reason::Past));
        }
        Some(Verdict::Disagreed(Disagreement::Chose { theirs: theirs.desired, ours }))
    }

    /// Judges the stored choice by what we decide while they write nothing.
    fn unwritten(&mut self, stored: i32, look: Look, at: Moment) -> Option<Verdict> {
        let (_, settled) = self.take_in(&look, at);
        let ours = look.chosen.filter(|_| look.alike)?;
        if ours == stored {
            self.apart = 0;
            return Some(Verdict::Agreed);
        }
        if !settled || self.is_blind(at) {
            self.apart = 0;
            return None;
        }
        self.apart = self.apart.saturating_add(1);
        let said = self.apart == PATIENCE;
        said.then_some(Verdict::Disagreed(Disagreement::Kept { theirs: stored, ours }))
    }

    /// Whether they may remember what was not seen here.
    fn is_blind(&self, Moment { now, memory }: Moment) -> bool {
        self.changed.is_some_and(|changed| now.since(changed) <= memory)
    }
}

/// The comparisons of all objects.
#[derive(Default)]
pub struct Shadows(Mutex<HashMap<Key, Shadow>>);

#[derive(Default)]
struct Shadow {
    comparison: Comparison,
    theirs: Option<Theirs>,
}

impl Shadows {
    /// Notes what was written, to be compared at the next look. Of two writes before it, the rescale
    /// of the first is kept.
    pub fn note(&self, key: &Key, theirs: Theirs) {
        let mut shadows = self.0.lock();
        let shadow = shadows.entry(key.clone()).or_default();
        let unread = shadow.theirs.as_ref().is_some_and(|unread| unread.rescaled.is_some());
        if !unread || theirs.rescaled.is_some() {
            shadow.theirs = Some(theirs);
        }
    }

    /// What was written since the last look.
    #[must_use]
    pub fn take(&self, key: &Key) -> Option<Theirs> {
        let mut shadows = self.0.lock();
        let shadow = shadows.get_mut(key)?;
        let mut theirs = shadow.theirs.take()?;
        if theirs.rescaled.is_some() {
            theirs.existed = shadow.comparison.last.as_ref().map(|last| last.existing);
        }
        Some(theirs)
    }

    /// Compares a look with what was written, or with what is stored.
    pub fn compare(
        &self,
        key: &Key,
        theirs: Option<&Theirs>,
        snapshot: &Snapshot<'_>,
        look: Look,
        period: Span,
    ) -> Option<Verdict> {
        let mut shadows = self.0.lock();
        let comparison = &mut shadows.entry(key.clone()).or_default().comparison;
        let memory = memory(snapshot.autoscaler, snapshot.settings);
        let memory = Span(memory.0.saturating_add(period.0).saturating_add(SLACK.0));
        let at = Moment { now: snapshot.now, memory };
        let verdict = match theirs {
            Some(theirs) => {
                let nearby = |chosen| decide_nearby(snapshot, period, |ours| ours == chosen);
                comparison.written(theirs, look, nearby, at)
            }
            // Without conditions nobody has decided yet.
            None if snapshot.status.conditions.is_empty() => None,
            None => comparison.unwritten(snapshot.status.desired_replicas, look, at),
        };
        let watched = snapshot.now.since(*comparison.since.get_or_insert(snapshot.now));
        verdict.filter(|_| watched > memory)
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests;
