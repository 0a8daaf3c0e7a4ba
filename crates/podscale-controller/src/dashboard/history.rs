//! What one autoscaler did over time, in bounded space: recent points in full, older ones ever
//! sparser, and the decisions worth showing.

use super::picture::{NO_PODS, Picture, Value};
use crate::controller::outcome::OutcomeKind;
use podscale_core::Time;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::sync::Arc;

/// One autoscaler at one moment. On the wire it is a list, to keep histories short:
/// `[time, current, desired, min, max, value, goal, value, goal, …]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// The hub's version when it was added.
    pub version: u64,
    pub time: Time,
    pub current: i32,
    pub desired: i32,
    pub min: i32,
    pub max: i32,
    /// Value and goal of each metric, as exact as a chart needs: not a number where there is none,
    /// infinite where there were no pods to share it among.
    pub metrics: SmallVec<[(f32, f32); 1]>,
}

impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(5 + 2 * self.metrics.len()))?;
        list.serialize_element(&self.time.0.div_euclid(1000))?;
        for count in [self.current, self.desired, self.min, self.max] {
            list.serialize_element(&count)?;
        }
        for (value, goal) in &self.metrics {
            if value.is_infinite() {
                list.serialize_element(NO_PODS)?;
            } else {
                list.serialize_element(&Some(value).filter(|v| v.is_finite()))?;
            }
            list.serialize_element(&Some(goal).filter(|g| g.is_finite()))?;
        }
        list.end()
    }
}

impl Point {
    pub(super) fn new(version: u64, picture: &Picture) -> Point {
        let value = |value: Value| match value {
            Value::Unread => f32::NAN,
            Value::NoPods => f32::INFINITY,
            Value::Number(number) => number as f32,
        };
        let goal = |goal: Option<f64>| goal.map_or(f32::NAN, |goal| goal as f32);
        let (min, max) = picture.bounds();
        Point {
            version,
            time: picture.time,
            current: picture.current,
            desired: picture.desired,
            min,
            max,
            metrics: picture.values().into_iter().map(|(v, g)| (value(v), goal(g))).collect(),
        }
    }

    fn same_size(&self, other: &Point) -> bool {
        (self.current, self.desired, self.min, self.max)
            == (other.current, other.desired, other.min, other.max)
    }

    /// Whether a line goes on straight from one to the other.
    fn is_level_with(&self, other: &Point) -> bool {
        let bits = |(value, goal): &(f32, f32)| (value.to_bits(), goal.to_bits());
        self.same_size(other) && self.metrics.iter().map(bits).eq(other.metrics.iter().map(bits))
    }
}

/// How much a history may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub points: usize,
    pub decisions: usize,
}

/// The past of one autoscaler.
#[derive(Debug, Default)]
pub(super) struct History {
    points: VecDeque<Point>,
    decisions: VecDeque<(u64, Arc<Picture>)>,
    /// The latest outcome, and the size that it was about.
    last: Option<(OutcomeKind, Option<i32>)>,
}

impl History {
    /// Adds what a decision left, and drops what exceeds the capacity.
    pub(super) fn add(&mut self, point: Point, decision: &Arc<Picture>, capacity: Capacity) {
        let version = point.version;
        if self.points.back().is_some_and(|p| p.metrics.len() != point.metrics.len()) {
            // Another set of metrics: the old values belong to other lines.
            self.points.iter_mut().for_each(|p| p.metrics.clear());
        }
        let mut newest = self.points.iter().rev();
        if let (Some(last), Some(before)) = (newest.next(), newest.next())
            && last.is_level_with(&point)
            && before.is_level_with(&point)
        {
            // Nothing shows between two equal points; most autoscalers have nothing to do for hours.
            self.points.pop_back();
        }
        self.points.push_back(point);
        while self.points.len() > capacity.points.max(1) {
            self.thin();
        }
        if self.is_news(decision) {
            self.decisions.push_back((version, Arc::clone(decision)));
        }
        let spare = self.decisions.len().saturating_sub(capacity.decisions.max(1));
        self.decisions.drain(..spare);
        self.last = Some((decision.outcome, decision.wanted()));
    }

    /// A size that changed, or would have; trouble that begins or ends; and the moment when a quiet
    /// autoscaler wants another size but does not get it.
    fn is_news(&self, decision: &Picture) -> bool {
        let trouble = |outcome| matches!(outcome, OutcomeKind::Failed | OutcomeKind::Paused);
        let last = self.last.map(|(outcome, _)| outcome);
        match (last, decision.outcome) {
            _ if decision.rescaled => true,
            (_, OutcomeKind::Withheld) => self.last != Some((decision.outcome, decision.wanted())),
            (Some(last), now) if last == now => false,
            (Some(last), now) if trouble(last) || trouble(now) => true,
            (None, now) => now != OutcomeKind::Steady,
            (Some(last), OutcomeKind::Held | OutcomeKind::Limited) => last == OutcomeKind::Steady,
            _ => false,
        }
    }

    /// Leaves out every other point of the older half, except where the size changed; where that
    /// frees nothing, the oldest quarter goes.
    fn thin(&mut self) {
        let half = self.points.len() / 2;
        let before = self.points.len();
        let recent = self.points.split_off(half);
        let mut kept: VecDeque<Point> = VecDeque::with_capacity(before);
        let mut skipped = true;
        for point in self.points.drain(..) {
            let change = kept.back().is_none_or(|p| !p.same_size(&point));
            if change || skipped {
                kept.push_back(point);
                skipped = false;
            } else {
                skipped = true;
            }
        }
        kept.extend(recent);
        if kept.len() == before {
            kept.drain(..before.div_ceil(4));
        }
        self.points = kept;
    }

    pub(super) fn points_since(&self, version: u64) -> Vec<Point> {
        let first = self.points.partition_point(|p| p.version <= version);
        self.points.range(first..).cloned().collect()
    }

    pub(super) fn decisions_since(&self, version: u64) -> Vec<Arc<Picture>> {
        let first = self.decisions.partition_point(|(v, _)| *v <= version);
        self.decisions.range(first..).map(|(_, d)| Arc::clone(d)).collect()
    }

    /// The target's size at evenly spread times, oldest first, for a small picture.
    pub(super) fn trend(&self, wanted: usize) -> Vec<i32> {
        let (Some(first), Some(last)) = (self.points.front(), self.points.back()) else {
            return Vec::new();
        };
        let span = last.time.since(first.time).0.max(0);
        let steps = i64::try_from(wanted.max(2) - 1).unwrap_or(i64::MAX);
        (0..=steps)
            .map(|step| {
                let at = Time(first.time.0.saturating_add((span / steps).saturating_mul(step)));
                let next = self.points.partition_point(|p| p.time <= at);
                let point = self.points.get(next.saturating_sub(1)).unwrap_or(first);
                if step == steps { last.current } else { point.current }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
