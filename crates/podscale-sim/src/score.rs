//! What a run was worth: how many requests went wrong, what the pods cost, how restless it was.

mod age;
mod recorder;
pub mod summary;

pub(crate) use recorder::{Pods, Recorder};
pub use summary::{Estimate, Summary};

use podscale_core::Time;
use serde::Serialize;

/// The scores of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    /// Which part of the requests was refused, gave up or took longer than the objective.
    pub violations: f64,
    /// Which part was refused or gave up.
    pub refused: f64,
    /// The violations of the worst minute.
    pub worst_minute: f64,
    /// Half of the requests took at most so many seconds; not a number if requests were left out, as the next two.
    pub p50_seconds: f64,
    /// 95 % of the requests took at most so many seconds.
    pub p95_seconds: f64,
    /// 99 % of the requests took at most so many seconds.
    pub p99_seconds: f64,
    /// Pods that there were, times the hours they were there.
    pub pod_hours: f64,
    /// How often in an hour the size began to move the other way.
    pub reversals_per_hour: f64,
    /// How many times the size was changed.
    pub changes: u64,
    /// Pods that were started.
    pub pods_started: u64,
    /// Which part of the time the ready pods could serve less than was offered.
    pub below_capacity: f64,
    /// How old the oldest work that waited was on average, in seconds.
    pub queue_age_mean_seconds: f64,
    /// How old the oldest work that waited ever was, in seconds.
    pub queue_age_most_seconds: f64,
    /// Requests that came.
    pub requests: f64,
    /// Hours that were scored.
    pub hours: f64,
    /// How many times the policy decided, the warm-up included.
    pub decisions: u64,
}

/// What one run led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What it was worth.
    pub scores: Scores,
    /// Its course, evenly spaced.
    pub points: Vec<Point>,
    /// Its changes of size, the first ones if there are too many.
    pub changes: Vec<Change>,
    /// The decision that was asked for, in words.
    pub moment: Option<Moment>,
}

/// The mean of a short time of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// When it begins, in seconds from the start.
    pub seconds: f64,
    /// Requests per second that came.
    pub offered_rps: f64,
    /// Requests per second that the ready pods could serve.
    pub capacity_rps: f64,
    /// The size that was last decided.
    pub replicas: f64,
    /// Pods that served.
    pub ready: f64,
    /// Work that waited.
    pub waiting: f64,
    /// Which part of the requests went wrong.
    pub violations: f64,
}

/// A change of size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// When it was decided.
    pub at: Time,
    /// From this size.
    pub from: i32,
    /// To this size.
    pub to: i32,
    /// Why, in words.
    pub why: Vec<String>,
}

/// A decision in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Moment {
    /// When it was made.
    pub at: Time,
    /// A line for each step.
    pub lines: Vec<String>,
}
