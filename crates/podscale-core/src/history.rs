//! What earlier decisions leave behind: recommendations, which steady later ones, and scale events,
//! which rate policies count.
//!
//! Entries are never pruned. A new entry takes the place of the last outlived one in the list or is
//! appended, so an edit that lengthens a window finds old entries again. That is how Kubernetes
//! behaves, and users rely on the sizes it leads to.

use crate::model::Behavior;
use crate::predict::Forecaster;
use crate::time::{Span, Time};
use serde::Serialize;

mod compact;
mod memory;
pub use compact::CompactError;
pub use memory::{Asked, Burst, Failures, LastAnswer, MAX_ASKED, MAX_LAST_ANSWERS, Memory, Room};

/// No list gets longer than this, whatever the windows are. At one decision a second it holds
/// over four hours, longer than any window that the API allows.
pub const MAX_ENTRIES: usize = 16_384;

/// A size that metrics asked for at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Recommendation {
    /// The size.
    pub replicas: i32,
    /// When.
    pub at: Time,
}

/// A change of size that was made at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ScaleEvent {
    /// By how many replicas, without a sign.
    pub change: i32,
    /// When.
    pub at: Time,
    /// Whether it was once found older than every policy's period. It stays so, even if a later
    /// edit makes a period longer.
    pub outdated: bool,
}

/// The memory of one autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The recommendations, in the order of their slots. The size that was found first makes the
    /// first one, so it is empty only before that.
    pub recommendations: Vec<Recommendation>,
    /// The changes towards more replicas.
    pub ups: Vec<ScaleEvent>,
    /// The changes towards fewer replicas.
    pub downs: Vec<ScaleEvent>,
    /// What only rules beyond a native autoscaler's remember.
    pub memory: Option<Box<Memory>>,
    /// What was learned of the demand, where sizes are forecast.
    pub forecaster: Option<Box<Forecaster>>,
}

/// What a pass adds to the history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Learned {
    /// The size of the target when it was first seen.
    pub first: Option<Recommendation>,
    /// What the metrics asked for, and the slot it takes; `None` is a new slot at the end.
    pub recommendation: Option<(Recommendation, Option<usize>)>,
    /// The change of size that was made, where a behavior counts it.
    pub scaled: Option<Scaled>,
    /// What the rules beyond a native autoscaler's remember from now on, if that has changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<Memory>>,
}

/// A change of size, and how long the policies of its direction remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scaled {
    /// Whether it was towards more replicas.
    pub up: bool,
    /// By how many replicas, without a sign.
    pub change: i32,
    /// When.
    pub at: Time,
    /// The longest period of the policies of this direction.
    pub longest_period: Span,
}

impl Scaled {
    /// A change between two sizes under a behavior.
    #[must_use]
    pub fn new(behavior: &Behavior, from: i32, to: i32, at: Time) -> Scaled {
        let up = to > from;
        let (rules, change) = if up {
            (&behavior.scale_up, to.wrapping_sub(from))
        } else {
            (&behavior.scale_down, from.wrapping_sub(to))
        };
        Scaled { up, change, at, longest_period: rules.longest_period() }
    }
}

impl History {
    /// Takes in what a pass learned.
    pub fn commit(&mut self, learned: &Learned) {
        if let Some(first) = learned.first {
            push_bounded(&mut self.recommendations, first, |r| r.at);
        }
        if let Some((recommendation, slot)) = learned.recommendation {
            match slot.and_then(|slot| self.recommendations.get_mut(slot)) {
                Some(outlived) => *outlived = recommendation,
                None => push_bounded(&mut self.recommendations, recommendation, |r| r.at),
            }
        }
        if let Some(scaled) = learned.scaled {
            self.commit_scaled(scaled);
        }
        if let Some(memory) = &learned.memory {
            self.remember(memory);
        }
    }

    /// Takes in what the rules beyond a native autoscaler's remember. A demand is learned from once; where
    /// none is remembered, nothing is forecast, and what was learned is forgotten.
    fn remember(&mut self, memory: &Memory) {
        match memory.demand {
            Some(demand) => self.forecaster.get_or_insert_default().observe(demand),
            None => self.forecaster = None,
        }
        self.memory = (*memory != Memory::default()).then(|| Box::new(memory.clone()));
    }

    /// Takes in a change of size, whoever made it. Only behaviors count them, so none is kept
    /// without one.
    pub fn scaled(&mut self, behavior: Option<&Behavior>, from: i32, to: i32, at: Time) {
        if let Some(behavior) = behavior {
            self.commit_scaled(Scaled::new(behavior, from, to, at));
        }
    }

    fn commit_scaled(&mut self, Scaled { up, change, at, longest_period }: Scaled) {
        let events = if up { &mut self.ups } else { &mut self.downs };
        let cutoff = at.before(longest_period);
        for event in events.iter_mut() {
            event.outdated |= event.at < cutoff;
        }
        let event = ScaleEvent { change, at, outdated: false };
        match events.iter_mut().rev().find(|e| e.outdated) {
            Some(outlived) => *outlived = event,
            None => push_bounded(events, event, |e| e.at),
        }
    }
}

/// The sum of the changes that are younger than `period`.
#[must_use]
pub fn changed_within(events: &[ScaleEvent], period: Span, now: Time) -> i32 {
    let cutoff = now.before(period);
    events.iter().filter(|e| e.at > cutoff).fold(0, |sum, e| sum.wrapping_add(e.change))
}

/// Appends, or takes the place of the oldest entry of a list that is full.
fn push_bounded<T>(list: &mut Vec<T>, entry: T, at: impl Fn(&T) -> Time) {
    if list.len() < MAX_ENTRIES {
        list.push(entry);
    } else if let Some(oldest) = list.iter_mut().min_by_key(|e| at(e)) {
        *oldest = entry;
    }
}

#[cfg(test)]
mod tests;
