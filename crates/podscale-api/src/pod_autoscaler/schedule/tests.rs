use super::*;
use crate::time::parse_rfc3339;

fn at(text: &str) -> Time {
    parse_rfc3339(text).expect("a time")
}

fn schedule(text: &str) -> Schedule {
    let mut parts = text.split(" | ");
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let number = |text: String| text.parse().ok();
    let (name, zone, start, end) = (next(), next(), next(), next());
    let (min_replicas, max_replicas, ramp) = (number(next()), number(next()), next());
    Schedule {
        name,
        time_zone: (!zone.is_empty()).then_some(zone),
        start,
        end,
        min_replicas,
        max_replicas,
        ramp: (!ramp.is_empty()).then_some(ramp),
    }
}

const BASE: Bounds = Bounds { min: 1, max: 10 };

/// What the schedules say at a time: the bounds, and whose they are since when.
fn shown(schedules: &[&str], time: &str) -> String {
    let schedules: Vec<Schedule> = schedules.iter().map(|text| schedule(text)).collect();
    let calendar = calendar(&schedules).expect("schedules").expect("some");
    match calendar.at(at(time), BASE) {
        None => "-".to_owned(),
        Some(Scheduled { bounds, schedule, since, ramp_percent }) => {
            let since = crate::time::format_rfc3339(since);
            format!("{}..{} {schedule} {ramp_percent}% since {since}", bounds.min, bounds.max)
        }
    }
}

#[test]
fn a_schedule_is_in_force_from_its_start_to_its_end() {
    let office = ["office | Europe/Zurich | 0 8 * * 1-5 | 0 18 * * 1-5 | 5 | 20"];
    let monday = "5..20 office 100% since 2026-11-16T07:00:00Z";
    for (time, expected) in [
        ("2026-11-16T06:59:59Z", "-"),
        ("2026-11-16T07:00:00Z", monday),
        ("2026-11-16T16:59:59Z", monday),
        ("2026-11-16T17:00:00Z", "-"),
        ("2026-11-15T12:00:00Z", "-"),
        // In summer an hour earlier.
        ("2026-07-01T06:00:00Z", "5..20 office 100% since 2026-07-01T06:00:00Z"),
        ("2026-07-01T05:59:00Z", "-"),
    ] {
        assert_eq!(shown(&office, time), expected, "{time}");
    }
    // The last of both counts, however rarely one of them comes.
    let rare = ["rare | UTC | 0 8 * * mon | 0 18 * * * | 3 | "];
    assert_eq!(shown(&rare, "2026-11-17T10:00:00Z"), "-");
    let leap = ["leap | UTC | 0 0 29 2 * | 0 0 1 3 * | 3 | "];
    assert_eq!(shown(&leap, "2028-02-29T10:00:00Z"), "3..10 leap 100% since 2028-02-29T00:00:00Z");
    assert_eq!(shown(&leap, "2031-03-01T10:00:00Z"), "-");
    let always = ["always | UTC | 0 0 * * * | 0 0 * * * | 3 | "];
    assert!(shown(&always, "2026-11-17T00:00:00Z").starts_with("3..10"));
}

#[test]
fn clocks_that_are_set_forward_or_back() {
    // On 2026-03-29 at 2:00 it is 3:00, on 2026-10-25 at 3:00 it is 2:00 again.
    let night = ["night | Europe/Zurich | 30 2 * * * | 45 2 * * * | 4 | "];
    for (time, expected) in [
        ("2026-03-29T00:59:00Z", "-"),
        ("2026-03-29T01:29:00Z", "-"),
        ("2026-03-29T01:30:00Z", "4..10 night 100% since 2026-03-29T01:30:00Z"),
        ("2026-03-29T01:45:00Z", "-"),
        ("2026-10-25T00:30:00Z", "4..10 night 100% since 2026-10-25T00:30:00Z"),
        ("2026-10-25T00:45:00Z", "-"),
        ("2026-10-25T01:35:00Z", "-"),
    ] {
        assert_eq!(shown(&night, time), expected, "{time}");
    }
    let hourly = ["hourly | Europe/Zurich | 0 * * * * | 30 * * * * | 4 | "];
    assert!(shown(&hourly, "2026-10-25T02:10:00Z").starts_with("4..10"));
}

#[test]
fn of_several_the_largest_bounds_count() {
    let both = [
        "day | UTC | 0 8 * * * | 0 18 * * * | 5 | 8",
        "noon | UTC | 0 12 * * * | 0 13 * * * | 3 | 30",
        "more | UTC | 30 12 * * * | 0 13 * * * | 40 | ",
    ];
    assert_eq!(shown(&both, "2026-11-16T09:00:00Z"), "5..8 day 100% since 2026-11-16T08:00:00Z");
    assert_eq!(shown(&both, "2026-11-16T12:00:00Z"), "5..30 noon 100% since 2026-11-16T12:00:00Z");
    assert_eq!(shown(&both, "2026-11-16T12:30:00Z"), "40..40 more 100% since 2026-11-16T12:30:00Z");
}

#[test]
fn a_ramp_leads_gradually_to_the_bounds() {
    let ramp = ["up | UTC | 0 8 * * * | 0 18 * * * | 11 | 2 | 10m"];
    for (minute, expected) in [(0, "1..10 up 0%"), (5, "6..6 up 50%"), (9, "10..10 up 90%"), (10, "11..11 up 100%")] {
        let found = shown(&ramp, &format!("2026-11-16T08:{minute:02}:00Z"));
        assert!(found.starts_with(expected), "{minute}: {found}");
    }
}

#[test]
fn what_is_wrong_is_said_of_its_field() {
    for (text, expected) in [
        ("a | Mars/Olympus | 0 8 * * * | 0 9 * * *", "timeZone: there is no time zone \"Mars/Olympus\""),
        ("a | | 0 8 * * | 0 9 * * *", "start: \"0 8 * *\" has 4 fields"),
        ("a | | 0 24 * * * | 0 9 * * *", "start: \"24\" is no hour: 0 to 23"),
        ("a | | 0 8 * * * | 0 9 * * fun", "end: \"fun\" is no day of the week: 0 to 7"),
        ("a | | */0 8 * * * | 0 9 * * *", "start: \"*/0\" is no step for the minute"),
        ("a | | 9-8 8 * * * | 0 9 * * *", "start: \"9-8\" ends before it begins in the minute"),
        ("a | | 0 8 31 2 * | 0 9 * * *", "start: \"0 8 31 2 *\" never happens"),
        ("a | | 0 8 * * * | 0 9 * * * | 1 | 2 | soon", "ramp: time: invalid duration \"soon\""),
    ] {
        let error = calendar(&[schedule(text)]).expect_err("refused").to_string();
        assert!(error.starts_with(&format!("schedule 0: {expected}")), "{text}: {error}");
    }
}

#[test]
fn fields_have_ranges_lists_steps_and_names() {
    let utc = TimeZone::UTC;
    for (text, now, expected) in [
        ("*/20 * * * *", "2026-11-16T10:59:00Z", "2026-11-16T10:40:00Z"),
        ("5/20 * * * *", "2026-11-16T10:59:00Z", "2026-11-16T10:45:00Z"),
        ("0 6-8,20 * * *", "2026-11-16T19:00:00Z", "2026-11-16T08:00:00Z"),
        ("0 0 1 jan *", "2026-11-16T19:00:00Z", "2026-01-01T00:00:00Z"),
        ("0 0 * * 7", "2026-11-16T19:00:00Z", "2026-11-15T00:00:00Z"),
        ("0 0 13 * fri", "2026-11-16T19:00:00Z", "2026-11-13T00:00:00Z"),
        ("0 0 14 * mon", "2026-11-15T19:00:00Z", "2026-11-14T00:00:00Z"),
    ] {
        let cron = Cron::parse(text, &utc).expect("an expression");
        let now = Timestamp::from_microsecond(at(now).0).expect("a time");
        assert_eq!(cron.previous(now).expect("a moment").to_string(), expected, "{text}");
    }
}
