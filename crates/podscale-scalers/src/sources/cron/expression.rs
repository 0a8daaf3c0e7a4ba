//! Cron expressions as KEDA reads them: five fields, refused in the words of Go's cron library, and times that
//! exist only: one that clocks skip does not come that day, and one that comes twice does.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use podscale_api::schedule::Cron;

/// Clocks never go back further than this.
const LONGEST_REPEAT: jiff::SignedDuration = jiff::SignedDuration::from_hours(3);
/// How many times are looked at around a change of clocks: every minute of both hours, and many skipped days.
const MOST_TIMES: usize = 1024;

/// Minutes that come again and again.
#[derive(Clone, Debug)]
pub(super) struct Expression(Option<Cron>);

/// The fields with their bounds and the names of their values.
const FIELDS: [(u32, u32, &[&str]); 5] = [
    (0, 59, &[]),
    (0, 23, &[]),
    (1, 31, &[]),
    (
        1,
        12,
        &["", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    ),
    (0, 6, &["sun", "mon", "tue", "wed", "thu", "fri", "sat"]),
];

impl Expression {
    /// One that no time matches.
    pub(super) fn never() -> Expression {
        Expression(None)
    }

    /// Reads an expression.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn parse(text: &str) -> Result<Expression, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        if text.starts_with('@') {
            return Err(format!("parser does not accept descriptors: {text}"));
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        if fields.len() != FIELDS.len() {
            let (found, shown) = (fields.len(), fields.join(" "));
            return Err(format!("expected exactly 5 fields, found {found}: [{shown}]"));
        }
        for (field, bounds) in fields.iter().zip(FIELDS) {
            for part in field.split(',').filter(|part| !part.is_empty()) {
                check(part, bounds)?;
            }
        }
        // What is left is what no day matches, such as a 30th of February.
        Cron::parse(text).map(|cron| Expression(Some(cron))).map_err(|error| error.to_string())
    }

    /// The first moment after another at which clocks of a zone show one of its times.
    pub(super) fn next(&self, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
        let cron = self.0.as_ref()?;
        let local = zone.to_datetime(now);
        let first = cron.next(after(local)?)?;
        let ambiguous = zone.to_ambiguous_timestamp(first);
        if let AmbiguousOffset::Unambiguous { offset } = ambiguous.offset()
            && offset == zone.to_offset(now)
        {
            return offset.to_timestamp(first).ok();
        }
        // Clocks change in between, so times may come twice, earlier than they look, or not at all.
        let mut at = cron.next(local.checked_sub(LONGEST_REPEAT).ok()?)?;
        let mut earliest: Option<(Timestamp, DateTime)> = None;
        for _ in 0..MOST_TIMES {
            if let Some((found, seen)) = earliest
                && at > seen.checked_add(LONGEST_REPEAT).ok()?
            {
                return Some(found);
            }
            for moment in moments(zone, at).into_iter().flatten().filter(|moment| *moment > now) {
                if earliest.is_none_or(|(found, _)| moment < found) {
                    earliest = Some((moment, at));
                }
            }
            at = cron.next(after(at)?)?;
        }
        earliest.map(|(found, _)| found)
    }
}

/// The minute after a time.
fn after(at: DateTime) -> Option<DateTime> {
    let whole = at.with().second(0).subsec_nanosecond(0).build().ok()?;
    whole.checked_add(jiff::SignedDuration::from_mins(1)).ok()
}

/// When clocks of a zone show a time: never, once or twice.
fn moments(zone: &TimeZone, at: DateTime) -> [Option<Timestamp>; 2] {
    let moment = |offset: jiff::tz::Offset| offset.to_timestamp(at).ok();
    match zone.to_ambiguous_timestamp(at).offset() {
        AmbiguousOffset::Unambiguous { offset } => [moment(offset), None],
        AmbiguousOffset::Gap { .. } => [None, None],
        AmbiguousOffset::Fold { before, after } => [moment(before), moment(after)],
    }
}

/// Checks one part of a field.
fn check(part: &str, (least, most, names): (u32, u32, &[&str])) -> Result<(), String> {
    let mut slashes = part.split('/');
    let range = slashes.next().unwrap_or_default();
    let step = slashes.next();
    if slashes.next().is_some() {
        return Err(format!("too many slashes: {part}"));
    }
    let mut ends = range.split('-');
    let (from, to) = (ends.next().unwrap_or_default(), ends.next());
    if ends.next().is_some() {
        return Err(format!("too many hyphens: {part}"));
    }
    let (from, to) = match (from, to) {
        ("*" | "?", _) => (least, most),
        (from, Some(to)) => (number(from, names)?, number(to, names)?),
        // With a step, a single number is where it begins.
        (from, None) if step.is_some() => (number(from, names)?, most),
        (from, None) => (number(from, names)?, number(from, names)?),
    };
    let step = step.map_or(Ok(1), |step| number(step, &[]))?;
    if from < least {
        return Err(format!("beginning of range ({from}) below minimum ({least}): {part}"));
    }
    if to > most {
        return Err(format!("end of range ({to}) above maximum ({most}): {part}"));
    }
    if from > to {
        return Err(format!("beginning of range ({from}) beyond end of range ({to}): {part}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {part}"));
    }
    Ok(())
}

fn number(text: &str, names: &[&str]) -> Result<u32, String> {
    let lower = text.to_ascii_lowercase();
    let named = names.iter().position(|name| !name.is_empty() && *name == lower);
    if let Some(place) = named {
        return u32::try_from(place).map_err(|error| error.to_string());
    }
    if let Some(digits) = text.strip_prefix('-')
        && digits.parse::<u32>().is_ok()
    {
        return Err(format!("negative number ({text}) not allowed: {text}"));
    }
    text.parse().map_err(|_| {
        format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
    })
}
