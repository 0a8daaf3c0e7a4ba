//! Cron expressions: which minutes of which days, without a time zone.
//!
//! Five fields, or a name such as `@daily`: minute, hour, day of the month, month, day of the week. A
//! field is a list of numbers, ranges and steps; months and days of the week have English names too,
//! and Sunday is 0 or 7. If both days are restricted, a day needs to match one of them only.

use jiff::civil::{Date, DateTime, Time};

/// How far away a day is looked for: the longest time between two 29ths of February, and a bit.
const SEARCH_DAYS: usize = 366 * 8 + 2;

/// Minutes that come again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether a day of the month and a day of the week are both asked for.
    either_day: bool,
}

/// Why a cron expression is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// There are more or fewer than five fields.
    #[error("a cron expression has 5 fields, not {0}")]
    Fields(usize),
    /// A name such as `@daily` is not known.
    #[error("unknown name {0:?}; known are @yearly, @monthly, @weekly, @daily and @hourly")]
    Name(String),
    /// A field cannot be read.
    #[error("{field} {text:?} is not {expected}")]
    Field {
        /// Which field.
        field: &'static str,
        /// The part of it that cannot be read.
        text: String,
        /// What could be read.
        expected: String,
    },
    /// No day of any year matches.
    #[error("no day matches it")]
    Never,
}

struct Field {
    name: &'static str,
    first: u8,
    last: u8,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", first: 0, last: 59, names: &[] },
    Field { name: "hour", first: 0, last: 23, names: &[] },
    Field { name: "day of the month", first: 1, last: 31, names: &[] },
    Field {
        name: "month",
        first: 1,
        last: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Field {
        name: "day of the week",
        first: 0,
        last: 7,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

/// All hours of a day.
const EVERY_HOUR: u64 = (1 << 24) - 1;

impl Cron {
    /// Reads a cron expression.
    ///
    /// # Errors
    /// It is none, or matches no day at all.
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        let text = text.trim();
        let text = if text.starts_with('@') { named(text)? } else { text };
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts[..] else {
            return Err(CronError::Fields(parts.len()));
        };
        let [minutes, hours, days, months, weekdays] = &FIELDS;
        let sundays = weekdays.parse(weekday)?;
        let cron = Cron {
            minutes: minutes.parse(minute)?,
            hours: hours.parse(hour)?,
            days: days.parse(day)?,
            months: months.parse(month)?,
            weekdays: (sundays | sundays >> 7) & 0x7f,
            either_day: is_restricted(day) && is_restricted(weekday),
        };
        // Every combination that exists comes within the search, whatever day it begins on.
        let some_day = Date::constant(2000, 1, 1).at(0, 0, 0, 0);
        if cron.next(some_day).is_none() { Err(CronError::Never) } else { Ok(cron) }
    }

    /// Whether it does not care for the hour.
    #[must_use]
    pub fn is_every_hour(&self) -> bool {
        self.hours == EVERY_HOUR
    }

    /// The latest matching minute at or before a time.
    #[must_use]
    pub fn previous(&self, at: DateTime) -> Option<DateTime> {
        self.previous_since(at, Date::MIN)
    }

    /// The same, unless it is before a day.
    #[must_use]
    pub fn previous_since(&self, at: DateTime, first: Date) -> Option<DateTime> {
        let mut date = at.date();
        let mut latest = (at.hour() as u8, at.minute() as u8);
        for _ in 0..SEARCH_DAYS {
            if date < first {
                return None;
            }
            if self.matches_day(date)
                && let Some(time) = self.last_time(latest)
            {
                return Some(date.to_datetime(time));
            }
            date = date.yesterday().ok()?;
            latest = (23, 59);
        }
        None
    }

    /// The earliest matching minute at or after a time.
    #[must_use]
    pub fn next(&self, at: DateTime) -> Option<DateTime> {
        let mut date = at.date();
        let in_minute = at.second() > 0 || at.subsec_nanosecond() > 0;
        let mut earliest = (at.hour() as u8, at.minute() as u8 + u8::from(in_minute));
        for _ in 0..SEARCH_DAYS {
            if self.matches_day(date)
                && let Some(time) = self.first_time(earliest)
            {
                return Some(date.to_datetime(time));
            }
            date = date.tomorrow().ok()?;
            earliest = (0, 0);
        }
        None
    }

    fn matches_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day() as u8);
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset() as u8);
        let days = if self.either_day { day || weekday } else { day && weekday };
        days && has(self.months, date.month() as u8)
    }

    fn last_time(&self, (hour, minute): (u8, u8)) -> Option<Time> {
        let in_hour = has(self.hours, hour).then(|| last(self.minutes, minute)).flatten();
        match in_hour {
            Some(minute) => time(hour, minute),
            None => time(last(self.hours, hour.checked_sub(1)?)?, last(self.minutes, 59)?),
        }
    }

    fn first_time(&self, (hour, minute): (u8, u8)) -> Option<Time> {
        let in_hour = has(self.hours, hour).then(|| first(self.minutes, minute)).flatten();
        match in_hour {
            Some(minute) => time(hour, minute),
            None => time(first(self.hours, hour + 1)?, first(self.minutes, 0)?),
        }
    }
}

fn time(hour: u8, minute: u8) -> Option<Time> {
    Time::new(hour as i8, minute as i8, 0, 0).ok()
}

fn has(set: u64, number: u8) -> bool {
    number < 64 && set >> number & 1 == 1
}

/// The largest member that is not above a number.
fn last(set: u64, number: u8) -> Option<u8> {
    (0..=number).rev().find(|n| has(set, *n))
}

/// The smallest member that is not below a number.
fn first(set: u64, number: u8) -> Option<u8> {
    (number..64).find(|n| has(set, *n))
}

fn named(text: &str) -> Result<&'static str, CronError> {
    Ok(match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => return Err(CronError::Name(text.to_owned())),
    })
}

/// Whether a field of days asks for some of them. Every second one is some of them.
fn is_restricted(text: &str) -> bool {
    !text.split(',').any(|part| matches!(part, "*" | "?" | "*/1" | "?/1"))
}

impl Field {
    fn parse(&self, text: &str) -> Result<u64, CronError> {
        text.split(',').try_fold(0, |set, part| Ok(set | self.part(part)?))
    }

    fn part(&self, text: &str) -> Result<u64, CronError> {
        let refuse = |expected: String| CronError::Field {
            field: self.name,
            text: text.to_owned(),
            expected,
        };
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => {
                let step = step.parse::<u8>().ok().filter(|step| *step > 0);
                let step = step.ok_or_else(|| refuse("a range with a step of 1 or more".into()))?;
                (range, Some(step))
            }
            None => (text, None),
        };
        let number = |text: &str| {
            let expected = || refuse(format!("a number from {} to {}", self.first, self.last));
            self.number(text).ok_or_else(expected)
        };
        let (from, to) = match range.split_once('-') {
            // A week has no eighth day: all days are 0 to 6, and 7 is only another name.
            _ if matches!(range, "*" | "?") => (self.first, self.everything()),
            Some((from, to)) => (number(from)?, number(to)?),
            None if step.is_some() => (number(range)?, self.everything()),
            None => (number(range)?, number(range)?),
        };
        if from > to {
            return Err(refuse("a range from a smaller to a larger number".into()));
        }
        let step = usize::from(step.unwrap_or(1));
        Ok((from..=to).step_by(step).fold(0, |set, n| set | 1 << n))
    }

    /// The last number of a range without an end.
    fn everything(&self) -> u8 {
        if self.last == 7 { 6 } else { self.last }
    }

    fn number(&self, text: &str) -> Option<u8> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        let number = match named {
            Some(place) => u8::try_from(place).ok()?.checked_add(self.first)?,
            None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.first..=self.last).contains(&number).then_some(number)
    }
}
