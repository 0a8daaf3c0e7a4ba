//! What is a cron expression, and what is not.

use super::*;

#[test]
fn cron_expressions_are_read() {
    let at = |text: &str| text.parse::<DateTime>().expect("a time");
    for (cron, before, after) in [
        ("*/20 * * * *", "2026-01-16T10:40", "2026-01-16T11:00"),
        ("5/20 * * * *", "2026-01-16T10:45", "2026-01-16T11:05"),
        ("0 0 29 feb *", "2024-02-29T00:00", "2028-02-29T00:00"),
        ("0 0 13 * FRI", "2026-01-16T00:00", "2026-01-23T00:00"),
        ("0 0 */10 * SUN", "2026-01-11T00:00", "2026-01-18T00:00"),
        ("0 0 * * 7", "2026-01-11T00:00", "2026-01-18T00:00"),
        ("0 0 * * 5-7", "2026-01-16T00:00", "2026-01-17T00:00"),
        ("0,30 9-17 1,15 * ?", "2026-01-15T17:30", "2026-02-01T09:00"),
        ("@monthly", "2026-01-01T00:00", "2026-02-01T00:00"),
        ("@hourly", "2026-01-16T10:00", "2026-01-16T11:00"),
    ] {
        let parsed = Cron::parse(cron).expect(cron);
        let now = at("2026-01-16T10:50:30");
        assert_eq!(parsed.previous(now), Some(at(before)), "{cron}");
        assert_eq!(parsed.next(now), Some(at(after)), "{cron}");
        // A minute that matches is both.
        assert_eq!(parsed.previous(at(after)), Some(at(after)), "{cron}");
        assert_eq!(parsed.next(at(before)), Some(at(before)), "{cron}");
    }
}

#[test]
fn what_is_no_cron_expression_is_refused() {
    for (cron, error) in [
        ("", "a cron expression has 5 fields, not 0"),
        ("* * * * * *", "a cron expression has 5 fields, not 6"),
        ("60 * * * *", "minute \"60\" is not a number from 0 to 59"),
        ("* * 0 * *", "day of the month \"0\" is not a number from 1 to 31"),
        ("* * * foo *", "month \"foo\" is not a number from 1 to 12"),
        ("* * * * 8", "day of the week \"8\" is not a number from 0 to 7"),
        ("5-2 * * * *", "minute \"5-2\" is not a range from a smaller to a larger number"),
        ("*/0 * * * *", "minute \"*/0\" is not a range with a step of 1 or more"),
        ("+5 * * * *", "minute \"+5\" is not a number from 0 to 59"),
        ("0 0 30 2 *", "no day matches it"),
        (
            "@often",
            "unknown name \"@often\"; known are @yearly, @monthly, @weekly, @daily and @hourly",
        ),
    ] {
        let refused = Cron::parse(cron).map_err(|error| error.to_string());
        assert_eq!(refused, Err(error.to_owned()), "{cron}");
    }
}
