//! How many requests arrive, as a pure function of the time since the scenario began.
//!
//! A [`Shape`] is what scenario files say; [`Shape::resolve`] checks it, fetches the traces that it
//! names and gives a [`Load`] that can be asked for any time.

use crate::trace::Trace;
use podscale_core::Span;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;

mod resolve;
#[cfg(test)]
mod tests;
mod wave;

/// The highest rate of any load, in requests per second.
pub const MAX_RPS: f64 = 1e12;
/// How many shapes one load may be made of.
pub const MAX_SHAPES: usize = 64;
/// How many steps one shape may have.
pub const MAX_STEPS: usize = 10_000;
/// The longest time a shape may name, in seconds (about 31 years).
pub const MAX_SECONDS: f64 = 1e9;

/// Offered load over time, as written in scenario files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Shape {
    /// Always the same.
    Constant(Constant),
    /// A new rate at each given time.
    Steps(Steps),
    /// A wave around a mean.
    Sine(Sine),
    /// A rise to a peak, a plateau and a fall, once or again and again.
    Spike(Spike),
    /// A recorded load.
    Trace(TraceShape),
    /// Several loads at once.
    Sum(Vec<Shape>),
}

/// A rate that never changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Constant {
    /// Requests per second.
    pub rps: f64,
}

/// A rate that changes at given times; nothing arrives before the first of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Steps {
    /// The steps, in order of time.
    pub steps: Vec<Step>,
    /// Begin again from zero each time so many seconds have passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat_seconds: Option<f64>,
}

/// One step: from `at_seconds` on, `rps` arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// When it begins, in seconds from the start.
    pub at_seconds: f64,
    /// Requests per second from then on.
    pub rps: f64,
}

/// A sine wave; where it would be below zero nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sine {
    /// The middle, in requests per second.
    pub mean_rps: f64,
    /// How far it goes to either side of the middle.
    pub amplitude_rps: f64,
    /// How long one wave takes.
    pub period_seconds: f64,
    /// When the first wave begins to rise through the middle.
    #[serde(default)]
    pub phase_seconds: f64,
}

/// A spike: from `base` up to `peak`, on the plateau for a while, and back down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spike {
    /// Requests per second outside the spike.
    #[serde(default)]
    pub base_rps: f64,
    /// Requests per second on the plateau.
    pub peak_rps: f64,
    /// When the rise begins.
    #[serde(default)]
    pub at_seconds: f64,
    /// How long the rise takes; zero is a jump.
    #[serde(default)]
    pub rise_seconds: f64,
    /// How long the plateau lasts.
    #[serde(default)]
    pub hold_seconds: f64,
    /// How long the fall takes.
    #[serde(default)]
    pub fall_seconds: f64,
    /// How long after its beginning the spike comes again; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every_seconds: Option<f64>,
}

/// A recorded load and how to play it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TraceShape {
    /// The trace's name or file.
    pub file: String,
    /// Scale it so that its highest value becomes this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rps: Option<f64>,
    /// How many times as fast as recorded it is played.
    #[serde(default = "one")]
    pub compress: f64,
    /// How far into the trace (in its own time) the scenario begins.
    #[serde(default)]
    pub skip_seconds: f64,
    /// Play it again after its end; otherwise the last value stays.
    #[serde(default = "yes")]
    pub repeat: bool,
    /// Go in straight lines from value to value instead of holding each for its step.
    #[serde(default)]
    pub interpolate: bool,
}

fn one() -> f64 {
    1.0
}

fn yes() -> bool {
    true
}

/// What is wrong with a load.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LoadError {
    /// A number is out of its range.
    #[error("{path}: {value} is not between {least} and {most}")]
    Range {
        /// Where in the load.
        path: String,
        /// The number found.
        value: f64,
        /// The smallest allowed.
        least: f64,
        /// The largest allowed.
        most: f64,
    },
    /// Steps are not in order of time.
    #[error("{path}: {at} is not later than the step before")]
    Order {
        /// Where in the load.
        path: String,
        /// The time found.
        at: f64,
    },
    /// There are too many parts.
    #[error("{path}: more than {most} {what}")]
    TooMany {
        /// Where in the load.
        path: String,
        /// What there are too many of.
        what: &'static str,
        /// How many are allowed.
        most: usize,
    },
    /// There are no parts.
    #[error("{path}: no {what}")]
    None {
        /// Where in the load.
        path: String,
        /// What there is none of.
        what: &'static str,
    },
    /// The trace could not be had.
    #[error("{path}: trace {file:?}: {problem}")]
    Trace {
        /// Where in the load.
        path: String,
        /// The trace's name.
        file: String,
        /// Why not.
        problem: String,
    },
}

/// Offered load, checked and with its traces at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Constant(f64),
    Steps(Steps),
    Sine(Sine),
    Spike(Spike),
    Trace { trace: Arc<Trace>, shape: TraceShape, scale: f64 },
}

impl Load {
    /// Nothing ever arrives.
    #[must_use]
    pub fn none() -> Load {
        Load { parts: Vec::new() }
    }

    /// Always the same rate; one out of range is taken as the nearest that is in range.
    #[must_use]
    pub fn constant(rps: f64) -> Load {
        Load { parts: vec![Part::Constant(in_range(rps))] }
    }

    /// Requests per second so long after the start: finite and never negative.
    #[must_use]
    pub fn rate(&self, since_start: Span) -> f64 {
        in_range(self.parts.iter().map(|part| part.rate(since_start)).sum())
    }

    /// The same, and until when, counted from the start, it certainly stays so; see [`Load::steady_until`].
    #[must_use]
    pub fn rate_and_steady(&self, since_start: Span) -> (f64, Span) {
        match self.parts.as_slice() {
            // Nearly all loads are one, and are asked for every second of a run.
            [only] => {
                let rate = in_range(only.rate(since_start));
                (rate, only.steady_until(since_start).max(since_start))
            }
            _ => (self.rate(since_start), self.steady_until(since_start)),
        }
    }

    /// The wave that is all of it, if it is one.
    pub(crate) fn as_wave(&self) -> Option<&Sine> {
        match self.parts.as_slice() {
            [Part::Sine(wave)] => Some(wave),
            _ => None,
        }
    }

    /// Until when, counted from the start, the rate certainly stays as it is at `since_start`; the
    /// same time where it changes all the time.
    #[must_use]
    pub fn steady_until(&self, since_start: Span) -> Span {
        let steady = self.parts.iter().map(|part| part.steady_until(since_start)).min();
        steady.unwrap_or(Span(i64::MAX)).max(since_start)
    }

    /// The highest rate from one time to another, looked at once a second.
    #[must_use]
    pub fn highest(&self, from: Span, to: Span) -> f64 {
        let mut at = from;
        let mut highest = self.rate(from);
        while at < to {
            at = Span(self.steady_until(at).0.max(at.0.saturating_add(Span::seconds(1).0))).min(to);
            highest = highest.max(self.rate(at));
        }
        highest
    }
}

/// A rate within bounds; `NaN` counts as zero.
fn in_range(rps: f64) -> f64 {
    // Compared by hand: `min` also looks for what is no number, which is not above zero.
    match rps > 0.0 {
        true if rps < MAX_RPS => rps,
        true => MAX_RPS,
        false => 0.0,
    }
}

impl Part {
    fn rate(&self, since_start: Span) -> f64 {
        let seconds = since_start.0 as f64 / 1e6;
        match self {
            Part::Constant(rps) => *rps,
            Part::Steps(steps) => {
                let at = match steps.repeat_seconds {
                    Some(repeat) => seconds.rem_euclid(repeat),
                    None => seconds,
                };
                let next = steps.steps.partition_point(|step| step.at_seconds <= at);
                next.checked_sub(1).map_or(0.0, |index| steps.steps[index].rps)
            }
            Part::Sine(sine) => sine.rate(since_start),
            Part::Spike(spike) => {
                spike.base_rps + (spike.peak_rps - spike.base_rps) * spike.height(seconds)
            }
            Part::Trace { trace, shape, scale } => {
                let position = seconds * shape.compress + shape.skip_seconds;
                let length = trace.length().0.max(1) as f64 / 1e6;
                let position = if shape.repeat { position.rem_euclid(length) } else { position };
                // A float too large for the span saturates.
                let at = Span((position * 1e6) as i64);
                let value =
                    if shape.interpolate { trace.interpolated_at(at) } else { trace.value_at(at) };
                value * scale
            }
        }
    }
}

impl Part {
    /// Until when it certainly stays as it is; no later than the given time if that is not known.
    fn steady_until(&self, at: Span) -> Span {
        match self {
            Part::Constant(_) => Span(i64::MAX),
            Part::Steps(Steps { steps, repeat_seconds: None }) => {
                let seconds = at.0 as f64 / 1e6;
                let next = steps.partition_point(|step| step.at_seconds <= seconds);
                steps.get(next).map_or(Span(i64::MAX), |step| Span((step.at_seconds * 1e6) as i64))
            }
            Part::Trace { trace, shape, .. }
                if !shape.interpolate && !shape.repeat && shape.compress == 1.0 =>
            {
                let skip = (shape.skip_seconds * 1e6) as i64;
                let position = Span(at.0.saturating_add(skip));
                trace.next_after(position).map_or(Span(i64::MAX), |next| Span(next.0 - skip))
            }
            Part::Steps(_) | Part::Sine(_) | Part::Spike(_) | Part::Trace { .. } => at,
        }
    }
}

impl Sine {
    /// Requests per second so long after the start.
    fn rate(&self, since_start: Span) -> f64 {
        self.at(wave::sine(self.turns(since_start)))
    }

    /// The same for many times in order: no number differs from that of its own, but they take a fraction of the time.
    pub(crate) fn rates(&self, times: &[Span], rates: &mut [f64]) {
        for (turns, since_start) in rates.iter_mut().zip(times) {
            *turns = self.turns(*since_start);
        }
        wave::sines(rates);
        for rate in rates {
            *rate = self.at(*rate);
        }
    }

    /// How many turns it has made so long after the start.
    fn turns(&self, since_start: Span) -> f64 {
        (since_start.0 as f64 / 1e6 - self.phase_seconds) / self.period_seconds
    }

    /// Its rate where the sine is this.
    fn at(&self, sine: f64) -> f64 {
        in_range(self.mean_rps + self.amplitude_rps * sine)
    }
}

impl Spike {
    /// How far up the spike is, from 0 to 1.
    fn height(&self, seconds: f64) -> f64 {
        let mut since = seconds - self.at_seconds;
        if since < 0.0 {
            return 0.0;
        }
        if let Some(every) = self.every_seconds {
            since = since.rem_euclid(every);
        }
        if since < self.rise_seconds {
            return since / self.rise_seconds;
        }
        since -= self.rise_seconds;
        if since < self.hold_seconds {
            return 1.0;
        }
        since -= self.hold_seconds;
        if since < self.fall_seconds { 1.0 - since / self.fall_seconds } else { 0.0 }
    }
}
