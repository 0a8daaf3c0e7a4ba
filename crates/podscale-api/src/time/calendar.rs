//! RFC 3339 text to and from microseconds since 1970.

use std::fmt;

use podscale_core::Time;

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;
/// The calendar repeats after 400 years, which are this many days.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const EPOCH_DAYS: i64 = 719_468;

/// A text that is not a time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an RFC 3339 time")]
pub struct ParseTimeError(String);

/// Reads a time with any fraction and offset; what is finer than a microsecond is dropped.
pub fn parse_rfc3339(text: &str) -> Result<Time, ParseTimeError> {
    parse(text.as_bytes()).ok_or_else(|| ParseTimeError(text.chars().take(64).collect()))
}

fn parse(text: &[u8]) -> Option<Time> {
    let (date, rest) = text.split_at_checked(10)?;
    let (clock, rest) = rest.split_at_checked(9)?;
    let [b'T', h1, h2, b':', m1, m2, b':', s1, s2] = clock else {
        return None;
    };
    let [y1, y2, y3, y4, b'-', mo1, mo2, b'-', d1, d2] = date else {
        return None;
    };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let month = number(&[*mo1, *mo2])?;
    let day = number(&[*d1, *d2])?;
    let (hour, minute, second) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?, number(&[*s1, *s2])?);
    let valid = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !valid {
        return None;
    }
    let (micros, rest) = fraction(rest)?;
    let offset = offset_seconds(rest)?;
    let seconds = days(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    Some(Time((seconds - offset) * MICROS_PER_SECOND + micros))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else {
        return Some((0, text));
    };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = rest.split_at(length);
    if digits.is_empty() {
        return None;
    }
    let padded = digits.iter().copied().chain(std::iter::repeat(b'0')).take(6);
    Some((padded.fold(0, |micros, digit| micros * 10 + i64::from(digit - b'0')), rest))
}

fn offset_seconds(text: &[u8]) -> Option<i64> {
    match text {
        [b'Z'] => Some(0),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (number(&[*h1, *h2])?, number(&[*m1, *m2])?);
            let seconds = hours * 3600 + minutes * 60;
            let valid = hours <= 24 && minutes < 60;
            valid.then_some(if *sign == b'-' { -seconds } else { seconds })
        }
        _ => None,
    }
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970. Years here start in March, so that the leap day comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - EPOCH_DAYS
}

/// Year, month and day of a number of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let leaps = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leaps) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + i64::from(month < 3);
    (year, month, day)
}

/// Prints a time in UTC with a fixed number of digits (0 to 6) after the point.
pub(super) struct Rfc3339 {
    pub(super) time: Time,
    pub(super) fraction_digits: u32,
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.0.div_euclid(MICROS_PER_SECOND);
        let micros = self.time.0.rem_euclid(MICROS_PER_SECOND);
        let (year, month, day) = date(seconds.div_euclid(SECONDS_PER_DAY));
        let clock = seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if self.fraction_digits > 0 {
            let dropped = 6_u32.saturating_sub(self.fraction_digits);
            let width = (6 - dropped) as usize;
            write!(f, ".{:0width$}", micros / 10_i64.pow(dropped))?;
        }
        f.write_str("Z")
    }
}
