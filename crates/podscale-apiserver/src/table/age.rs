//! Ages in the short form people read: two or three significant figures.

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Time passed since an RFC 3339 time; `<unknown>` if there is none.
pub fn since(timestamp: &str, now: Timestamp) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(then) => human_duration(now.duration_since(then).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// A duration in whole seconds (cut towards zero) as kubectl prints it.
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours, days, years) =
        (seconds / MINUTE, seconds / HOUR, seconds / DAY, seconds / YEAR);
    // Clocks may differ a little: up to a second in the future still counts as now.
    if seconds < -1 {
        "<invalid>".to_owned()
    } else if seconds < 2 * MINUTE {
        format!("{}s", seconds.max(0))
    } else if minutes < 10 {
        with_rest(minutes, "m", seconds % MINUTE, "s")
    } else if hours < 3 {
        format!("{minutes}m")
    } else if hours < 8 {
        with_rest(hours, "h", minutes % 60, "m")
    } else if hours < 48 {
        format!("{hours}h")
    } else if days < 8 {
        with_rest(days, "d", hours % 24, "h")
    } else if years < 2 {
        format!("{days}d")
    } else if years < 8 {
        with_rest(years, "y", days % 365, "d")
    } else {
        format!("{years}y")
    }
}

fn with_rest(whole: i64, unit: &str, rest: i64, rest_unit: &str) -> String {
    if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{rest_unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shortened() {
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (3 * HOUR - 1, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR, "8h"),
            (48 * HOUR - 1, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (8 * DAY + HOUR, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (2 * YEAR + DAY, "2y1d"),
            (8 * YEAR + DAY, "8y"),
        ] {
            assert_eq!(human_duration(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn a_missing_time_has_an_unknown_age() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        assert_eq!(since("", now), "<unknown>");
        assert_eq!(since("2026-01-01T23:59:58.5Z", now), "1s");
        assert_eq!(since("2026-01-01T00:00:00+01:00", now), "25h");
    }
}
