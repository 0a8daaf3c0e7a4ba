//! An autoscaler's status as the rules see it: what is stored, and what a decision makes of it.

use crate::model::{Autoscaler, Milli, Source};
use crate::time::Time;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;

/// The stored status of an autoscaler.
#[derive(Clone, Debug, Default)]
pub struct Status {
    /// The generation of the spec that was last observed.
    pub observed_generation: Option<i64>,
    /// When the target was last scaled.
    pub last_scale: Option<Time>,
    /// When the target was last found active, if the status says so.
    pub last_active: Option<Time>,
    /// The replicas seen last.
    pub current_replicas: i32,
    /// The replicas last asked for.
    pub desired_replicas: i32,
    /// What the metrics said, in the order of the spec they were read for.
    pub metrics: Vec<StoredMetric>,
    /// The conditions in the order in which they first appeared.
    pub conditions: Vec<Condition>,
}

impl Status {
    /// The first condition of this kind.
    #[must_use]
    pub fn condition(&self, kind: ConditionKind) -> Option<&Condition> {
        self.conditions.iter().find(|c| matches!(c.kind, Ok(known) if known == kind))
    }
}

/// What a stored status says of one metric.
#[derive(Clone, Debug, PartialEq)]
pub enum StoredMetric {
    /// The metric was read.
    Known {
        /// Which one.
        source: Arc<Source>,
        /// What it said.
        current: Current,
    },
    /// The metric could not be read.
    Unread,
    /// Something that no decision of ours would have written.
    Foreign,
}

/// What a metric said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Current {
    /// The total.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Milli>,
    /// The average over pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_value: Option<Milli>,
    /// The average in percent of what was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_utilization: Option<i32>,
}

/// One condition of a status.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Which one: a known kind, or the name of one that no rule sets.
    pub kind: Result<ConditionKind, Arc<str>>,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Since when it has had this status; `None` where that was never stored.
    pub since: Option<Time>,
    /// Why, for programs and for people.
    pub note: Note,
}

/// The conditions that rules set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ConditionKind {
    /// The target's size can be read and written.
    AbleToScale,
    /// The metrics say how many replicas are needed.
    ScalingActive,
    /// A bound holds the replicas back.
    ScalingLimited,
    /// The autoscaler itself has set the target to zero.
    ScaledToZero,
}

impl ConditionKind {
    /// All kinds, in the order in which one pass sets them for the first time.
    pub const ALL: [ConditionKind; 4] = [
        ConditionKind::AbleToScale,
        ConditionKind::ScalingActive,
        ConditionKind::ScalingLimited,
        ConditionKind::ScaledToZero,
    ];

    /// Its name in the API.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ConditionKind::AbleToScale => "AbleToScale",
            ConditionKind::ScalingActive => "ScalingActive",
            ConditionKind::ScalingLimited => "ScalingLimited",
            ConditionKind::ScaledToZero => "ScaledToZero",
        }
    }
}

/// Whether a condition holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// Something else is stored.
    Other(Arc<str>),
}

impl ConditionStatus {
    /// Whether it holds, if that is known.
    #[must_use]
    pub fn holds(&self) -> Option<bool> {
        match self {
            ConditionStatus::True => Some(true),
            ConditionStatus::False => Some(false),
            ConditionStatus::Other(_) => None,
        }
    }

    /// Its form in the API.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Other(name) => name,
        }
    }
}

/// Why a condition is as it is: a reason for programs and a message for people, kept as data where
/// the rules set it on every pass, so that nothing is formatted while nothing changes.
#[derive(Clone, Debug)]
pub enum Note {
    /// The target's size was read.
    SucceededGetScale,
    /// Nothing stands in the way of the recommendation.
    ReadyForNewScale,
    /// A recent higher recommendation holds the replicas up.
    ScaleDownStabilized,
    /// A recent lower recommendation holds the replicas down.
    ScaleUpStabilized,
    /// The target was given this many replicas.
    SucceededRescale(i32),
    /// Somebody else set the target to zero.
    ScalingDisabled,
    /// The metric of this title decided.
    ValidMetricFound(Arc<str>),
    /// No bound holds the replicas back.
    DesiredWithinRange,
    /// The minimum holds.
    TooFewReplicas,
    /// The maximum holds.
    TooManyReplicas,
    /// The rate towards more holds.
    ScaleUpLimit,
    /// The rate towards fewer holds.
    ScaleDownLimit,
    /// The target was set to zero by this autoscaler.
    ScaledToZero,
    /// The target was set to something else than zero, or not by this rule.
    NotScaledToZero,
    /// Everything else: failures, and what was read from storage.
    Text(Arc<NoteText>),
}

/// The reason and the message of a condition that is not one of the everyday ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteText {
    /// The reason, for programs.
    pub reason: Cow<'static, str>,
    /// The message, for people.
    pub message: Box<str>,
}

impl Note {
    /// A note with its own text.
    #[must_use]
    pub fn text(reason: impl Into<Cow<'static, str>>, message: impl Into<Box<str>>) -> Note {
        Note::Text(Arc::new(NoteText { reason: reason.into(), message: message.into() }))
    }
}

/// Two notes are equal if they read the same, whatever form they are in.
impl PartialEq for Note {
    fn eq(&self, other: &Note) -> bool {
        match (self, other) {
            (Note::ValidMetricFound(a), Note::ValidMetricFound(b)) => Arc::ptr_eq(a, b) || a == b,
            (Note::SucceededRescale(a), Note::SucceededRescale(b)) => a == b,
            (Note::Text(_), _) | (_, Note::Text(_)) => {
                self.reason() == other.reason() && self.message() == other.message()
            }
            (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
        }
    }
}

/// The conditions that one pass sets, at most one of each kind.
///
/// A condition may be set several times in one pass. What it was in between is not kept, but its
/// `since` is: a condition that went from False to True and back within a pass has been False only
/// since then, and that is a change to be stored although nothing else differs.
#[derive(Clone, Debug, Default)]
pub struct ConditionChanges([Option<Change>; ConditionKind::ALL.len()]);

/// What one pass makes of one condition.
#[derive(Clone, Debug)]
pub struct Change {
    /// Whether it holds.
    pub holds: bool,
    /// Why.
    pub finding: Finding,
    /// Since when it has had this status.
    pub since: Option<Time>,
}

/// Why a pass sets a condition.
#[derive(Clone, Debug)]
pub enum Finding {
    /// The metric at this place of the spec decided. Its title becomes part of the note only when
    /// the note is stored: counting references costs as much as a tenth of a decision.
    ValidMetric(u32),
    /// What the note says.
    Note(Note),
}

impl From<Note> for Finding {
    fn from(note: Note) -> Finding {
        Finding::Note(note)
    }
}

impl Finding {
    fn note(&self, autoscaler: &Autoscaler) -> Note {
        match self {
            Finding::ValidMetric(place) => {
                Note::ValidMetricFound(Arc::clone(autoscaler.title(*place)))
            }
            Finding::Note(note) => note.clone(),
        }
    }

    fn says(&self, autoscaler: &Autoscaler, note: &Note) -> bool {
        match (self, note) {
            (Finding::Note(own), note) => own == note,
            (Finding::ValidMetric(place), Note::ValidMetricFound(stored)) => {
                let title = autoscaler.title(*place);
                Arc::ptr_eq(title, stored) || title == stored
            }
            (Finding::ValidMetric(_), Note::Text(_)) => self.note(autoscaler) == *note,
            (Finding::ValidMetric(_), _) => false,
        }
    }
}

impl ConditionChanges {
    /// Sets a condition; its `since` moves only if the status differs from the one before.
    #[inline]
    pub fn set(
        &mut self,
        stored: &Status,
        kind: ConditionKind,
        holds: bool,
        finding: impl Into<Finding>,
        now: Time,
    ) {
        let finding = finding.into();
        match &mut self.0[kind as usize] {
            Some(change) => {
                if change.holds != holds {
                    (change.holds, change.since) = (holds, Some(now));
                }
                change.finding = finding;
            }
            slot => {
                let since = match stored.condition(kind) {
                    Some(before) if before.status.holds() == Some(holds) => before.since,
                    _ => Some(now),
                };
                *slot = Some(Change { holds, finding, since });
            }
        }
    }

    /// What the pass makes of this condition, if anything.
    #[must_use]
    pub fn get(&self, kind: ConditionKind) -> Option<&Change> {
        self.0[kind as usize].as_ref()
    }

    fn iter(&self) -> impl Iterator<Item = (ConditionKind, &Change)> {
        let changes = ConditionKind::ALL.into_iter().zip(&self.0);
        changes.filter_map(|(kind, change)| Some((kind, change.as_ref()?)))
    }

    /// Whether any of them differs from what is stored.
    #[must_use]
    pub fn differ_from(&self, stored: &Status, autoscaler: &Autoscaler) -> bool {
        self.iter().any(|(kind, new)| {
            let old = stored.condition(kind);
            old.is_none_or(|old| {
                old.status.holds() != Some(new.holds)
                    || old.since != new.since
                    || !new.finding.says(autoscaler, &old.note)
            })
        })
    }

    /// The stored conditions with these in their places, new ones at the end.
    #[must_use]
    pub fn merged_into(&self, stored: &[Condition], autoscaler: &Autoscaler) -> Vec<Condition> {
        let mut merged = stored.to_vec();
        for (kind, Change { holds, finding, since }) in self.iter() {
            let status = if *holds { ConditionStatus::True } else { ConditionStatus::False };
            let new =
                Condition { kind: Ok(kind), status, since: *since, note: finding.note(autoscaler) };
            match merged.iter_mut().find(|c| c.kind == new.kind) {
                Some(old) => *old = new,
                None => merged.push(new),
            }
        }
        merged
    }
}
