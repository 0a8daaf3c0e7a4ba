//! Cron expressions: minute, hour, day of the month, month, day of the week.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// A field's least and greatest number, and the names of its numbers.
struct Range {
    what: &'static str,
    least: u8,
    most: u8,
    names: &'static [&'static str],
}

const MINUTE: Range = Range { what: "minute", least: 0, most: 59, names: &[] };
const HOUR: Range = Range { what: "hour", least: 0, most: 23, names: &[] };
const DAY: Range = Range { what: "day of the month", least: 1, most: 31, names: &[] };
const MONTH: Range = Range {
    what: "month",
    least: 1,
    most: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Sunday is 0, and 7 as well.
const WEEKDAY: Range = Range {
    what: "day of the week",
    least: 0,
    most: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

/// What happens at all happens within eight years: a 29th of February may be that far away.
const MOST_DAYS: u32 = 8 * 366;
/// The end of a leap year, from which the past eight years are looked at.
const LEAP: i64 = 1_861_920_000;
/// No clock is set back by more hours than this.
const SET_BACK_HOURS: i8 = 3;

/// The moments that an expression names in a time zone.
pub(super) struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether both days are limited: then one of them is enough.
    either_day: bool,
    zone: TimeZone,
}

impl Cron {
    /// Reads an expression.
    pub(super) fn parse(text: &str, zone: &TimeZone) -> Result<Cron, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            return Err(format!(
                "{text:?} has {} fields, not the five of minute, hour, day of the month, month and day \
                 of the week",
                fields.len()
            ));
        };
        let weekdays = numbers(weekday, &WEEKDAY)?;
        let cron = Cron {
            minutes: numbers(minute, &MINUTE)?,
            hours: numbers(hour, &HOUR)?,
            days: numbers(day, &DAY)?,
            months: numbers(month, &MONTH)?,
            weekdays: weekdays | (weekdays >> 7),
            either_day: !day.starts_with('*') && !weekday.starts_with('*'),
            zone: zone.clone(),
        };
        let leap = Timestamp::from_second(LEAP).map_err(|error| error.to_string())?;
        if cron.previous(leap).is_none() {
            return Err(format!("{text:?} never happens"));
        }
        Ok(cron)
    }

    /// The last moment that is not after a time.
    pub(super) fn previous(&self, now: Timestamp) -> Option<Timestamp> {
        let local = self.zone.to_datetime(now);
        let mut date = local.date();
        for _ in 0..MOST_DAYS {
            if self.has_day(date) {
                let latest = if date == local.date() { local.hour() + SET_BACK_HOURS } else { 23 };
                if let Some(found) = self.last_of_day(date, latest, now) {
                    return Some(found);
                }
            }
            date = date.yesterday().ok()?;
        }
        None
    }

    fn has_day(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let days = if self.either_day { day || weekday } else { day && weekday };
        days && has(self.months, date.month())
    }

    /// The last moment of a day, up to an hour, that is not after a time.
    fn last_of_day(&self, date: Date, latest: i8, now: Timestamp) -> Option<Timestamp> {
        let hours = (0..=latest.min(23)).rev().filter(|hour| has(self.hours, *hour));
        let times = hours.flat_map(|hour| {
            let minutes = (0..60).rev().filter(|minute| has(self.minutes, *minute));
            minutes.map(move |minute| date.at(hour, minute, 0, 0))
        });
        times.filter_map(|time| self.moment(time)).find(|moment| *moment <= now)
    }

    fn moment(&self, time: DateTime) -> Option<Timestamp> {
        self.zone.to_ambiguous_timestamp(time).compatible().ok()
    }
}

fn has(numbers: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| numbers & 1_u64.checked_shl(number).unwrap_or(0) != 0)
}

/// The numbers of a field, as bits.
fn numbers(field: &str, range: &Range) -> Result<u64, String> {
    let mut bits = 0;
    for part in field.split(',') {
        let (span, step) = match part.split_once('/') {
            Some((span, step)) => (span, Some(step)),
            None => (part, None),
        };
        let (first, last) = match (span, span.split_once('-')) {
            ("*", _) => (range.least, range.most),
            (_, Some((first, last))) => (number(first, range)?, number(last, range)?),
            // One number with a step is the first of those up to the end.
            (_, None) if step.is_some() => (number(span, range)?, range.most),
            (_, None) => (number(span, range)?, number(span, range)?),
        };
        let step = match step {
            Some(step) => step.parse::<u8>().ok().filter(|step| *step > 0),
            None => Some(1),
        };
        let step = step.ok_or_else(|| format!("{part:?} is no step for the {}", range.what))?;
        if first > last {
            return Err(format!("{part:?} ends before it begins in the {}", range.what));
        }
        (first..=last).step_by(usize::from(step)).for_each(|number| bits |= 1 << number);
    }
    Ok(bits)
}

fn number(text: &str, range: &Range) -> Result<u8, String> {
    let name = text.to_ascii_lowercase();
    let named = range.names.iter().position(|known| *known == name);
    let named = named.and_then(|place| u8::try_from(place).ok());
    let found = named.map(|place| place + range.least).or_else(|| text.parse().ok());
    let within = |number: &u8| (range.least..=range.most).contains(number);
    found.filter(within).ok_or_else(|| {
        format!("{text:?} is no {}: {} to {}", range.what, range.least, range.most)
    })
}
