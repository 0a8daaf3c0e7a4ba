mod cron;

use super::*;
use crate::time::Timestamp as WireTime;
use jiff::SignedDuration;
use proptest::prelude::*;

const BASE: Bounds = Bounds { min: 2, max: 10 };

fn time(text: &str) -> Time {
    let parsed: WireTime = serde_json::from_str(&format!("{text:?}")).expect("a time");
    parsed.0
}

/// `START | END | ZONE | MIN | MAX | RAMP`, separated by semicolons where there are several. The end is
/// an expression or a number of minutes, as the ramp is; `-` is absent.
fn table(text: &str) -> Schedules {
    let lines: Vec<Vec<&str>> =
        text.split(';').map(|line| line.split('|').map(str::trim).collect()).collect();
    let names: Vec<String> = (0..lines.len()).map(|place| format!("s{place}")).collect();
    let number = |text: &str| (text != "-").then(|| text.parse().expect("a number"));
    let minutes = |text: &str| Span::seconds(text.parse::<i64>().expect("minutes") * 60);
    let specs: Vec<ScheduleSpec<'_>> = lines
        .iter()
        .zip(&names)
        .map(|(line, name)| ScheduleSpec {
            name,
            start: line[0],
            end: match line[1].parse::<i64>() {
                Ok(_) => ScheduleEnd::After(minutes(line[1])),
                Err(_) => ScheduleEnd::Cron(line[1]),
            },
            time_zone: Some(line[2]).filter(|zone| *zone != "-"),
            min_replicas: number(line[3]),
            max_replicas: number(line[4]),
            ramp: minutes(line[5]),
        })
        .collect();
    schedules(&specs).expect("schedules")
}

/// What is in force: `MIN..MAX NAME since TIME`, with the ramp's percent if it is not over.
fn shown(scheduled: Option<Scheduled>) -> String {
    let Some(Scheduled { bounds, schedule, since, ramp_percent, .. }) = scheduled else {
        return "base".to_owned();
    };
    let since = serde_json::to_string(&WireTime(since)).expect("a time");
    let ramp = if ramp_percent < 100 { format!(" {ramp_percent}%") } else { String::new() };
    format!("{}..{} {schedule} {}{ramp}", bounds.min, bounds.max, since.trim_matches('"'))
}

#[track_caller]
fn check(schedules: &str, rows: &[(&str, &str)]) {
    let schedules = table(schedules);
    for (now, expected) in rows {
        assert_eq!(shown(schedules.at(time(now), BASE)), *expected, "at {now}");
    }
}

#[test]
fn a_working_day_in_a_zone() {
    check(
        "0 8 * * MON-FRI | 0 18 * * MON-FRI | Europe/Berlin | 5 | - | 0",
        &[
            // A Friday in winter: 8:00 is 7:00Z.
            ("2026-01-16T06:59:59Z", "base"),
            ("2026-01-16T07:00:00Z", "5..10 s0 2026-01-16T07:00:00Z"),
            ("2026-01-16T16:59:59Z", "5..10 s0 2026-01-16T07:00:00Z"),
            ("2026-01-16T17:00:00Z", "base"),
            // The weekend.
            ("2026-01-17T10:00:00Z", "base"),
            // A Monday in summer: 8:00 is 6:00Z.
            ("2026-07-13T06:00:00Z", "5..10 s0 2026-07-13T06:00:00Z"),
            ("2026-07-13T16:00:00Z", "base"),
        ],
    );
}

#[test]
fn over_midnight_and_over_a_weekend() {
    check(
        "0 22 * * FRI | 480 | - | - | 4 | 0",
        &[
            ("2026-01-16T21:59:00Z", "base"),
            ("2026-01-17T05:59:59Z", "2..4 s0 2026-01-16T22:00:00Z"),
            ("2026-01-17T06:00:00Z", "base"),
        ],
    );
    check(
        "0 18 * * 5 | 0 6 * * 1 | - | 0 | - | 0",
        &[
            ("2026-01-18T12:00:00Z", "0..10 s0 2026-01-16T18:00:00Z"),
            ("2026-01-19T06:00:00Z", "base"),
        ],
    );
}

/// In Berlin clocks went from 2:00 to 3:00 on 2026-03-29, which is 1:00Z.
#[test]
fn a_time_that_is_skipped_comes_when_clocks_change() {
    check(
        "30 2 * * * | 60 | Europe/Berlin | 5 | - | 0",
        &[
            ("2026-03-28T01:29:59Z", "base"),
            ("2026-03-28T01:30:00Z", "5..10 s0 2026-03-28T01:30:00Z"),
            ("2026-03-29T00:59:59Z", "base"),
            ("2026-03-29T01:00:00Z", "5..10 s0 2026-03-29T01:00:00Z"),
            ("2026-03-29T01:59:59Z", "5..10 s0 2026-03-29T01:00:00Z"),
            ("2026-03-29T02:00:00Z", "base"),
            ("2026-03-30T00:30:00Z", "5..10 s0 2026-03-30T00:30:00Z"),
        ],
    );
    // The end is skipped: it ends when clocks change. A time after the change is as always.
    check(
        "0 1 * * * | 15 2 * * * | Europe/Berlin | 5 | - | 0",
        &[
            ("2026-03-29T00:59:59Z", "5..10 s0 2026-03-29T00:00:00Z"),
            ("2026-03-29T01:00:00Z", "base"),
        ],
    );
    // Both are skipped: it begins and ends at the same moment, so it begins.
    check(
        "10 2 * * * | 50 2 * * * | Europe/Berlin | 5 | - | 0",
        &[("2026-03-29T01:00:00Z", "5..10 s0 2026-03-29T01:00:00Z")],
    );
}

/// In Berlin clocks went from 3:00 to 2:00 on 2026-10-25, which is 1:00Z: 2:30 was at 0:30Z and 1:30Z.
#[test]
fn a_time_that_comes_twice_counts_once() {
    check(
        "30 2 * * * | 20 | Europe/Berlin | 5 | - | 0",
        &[
            ("2026-10-25T00:29:59Z", "base"),
            ("2026-10-25T00:30:00Z", "5..10 s0 2026-10-25T00:30:00Z"),
            ("2026-10-25T00:50:00Z", "base"),
            // The second 2:10, before which 2:30 has been already, and the second 2:30.
            ("2026-10-25T01:10:00Z", "base"),
            ("2026-10-25T01:30:00Z", "base"),
            ("2026-10-26T01:30:00Z", "5..10 s0 2026-10-26T01:30:00Z"),
        ],
    );
    // One that lasts is in force through the repeated hour, since the first time.
    check(
        "30 2 * * * | 45 3 * * * | Europe/Berlin | 5 | - | 0",
        &[
            ("2026-10-25T01:10:00Z", "5..10 s0 2026-10-25T00:30:00Z"),
            ("2026-10-25T01:40:00Z", "5..10 s0 2026-10-25T00:30:00Z"),
            ("2026-10-25T02:45:00Z", "base"),
        ],
    );
    // What is about every hour comes in both.
    check(
        "15 * * * * | 10 | Europe/Berlin | 5 | - | 0",
        &[
            ("2026-10-25T00:20:00Z", "5..10 s0 2026-10-25T00:15:00Z"),
            ("2026-10-25T01:10:00Z", "base"),
            ("2026-10-25T01:20:00Z", "5..10 s0 2026-10-25T01:15:00Z"),
        ],
    );
}

#[test]
fn later_schedules_win_and_bounds_never_cross() {
    let both = "0 0 * * * | 1440 | - | 4 | 8 | 0 ; 0 12 * * * | 60 | - | 6 | - | 0";
    check(
        both,
        &[
            ("2026-01-16T12:30:00Z", "6..8 s1 2026-01-16T12:00:00Z"),
            ("2026-01-16T13:30:00Z", "4..8 s0 2026-01-16T00:00:00Z"),
        ],
    );
    let crossing = "0 0 1 * * | 1440 | - | 20 | - | 0 ; 0 12 1 * * | 60 | - | - | 1 | 0";
    check(
        crossing,
        &[
            ("2026-01-01T11:00:00Z", "20..20 s0 2026-01-01T00:00:00Z"),
            ("2026-01-01T12:00:00Z", "1..1 s1 2026-01-01T12:00:00Z"),
        ],
    );
}

/// Since when a schedule is in force is said only where that is known, whether there is a ramp or not.
#[test]
fn one_that_begins_before_it_ends_is_in_force_for_longer() {
    for (schedule, expected) in [
        ("0 8 * * * | 60 | - | 5 | - | 0", (30, false)),
        ("0 8 * * * | 60 | - | 5 | - | 20", (30, false)),
        ("0 * * * * | 60 | - | 5 | - | 0", (30, true)),
        ("0 * * * * | 60 | - | 5 | - | 20", (90, true)),
        ("0 7-8 * * * | 60 | - | 5 | - | 0", (30, true)),
        ("0 7-8 * * * | 60 | - | 5 | - | 90", (90, false)),
        ("0 8 * * * | 0 9 * * * | - | 5 | - | 20", (30, false)),
    ] {
        let now = time("2026-01-16T08:30:00Z");
        let found = table(schedule).at(now, BASE).expect("in force");
        let minutes = now.since(found.since).as_whole_seconds() / 60;
        assert_eq!((minutes, found.or_longer), expected, "{schedule}");
    }
}

#[test]
fn ramps_go_in_a_straight_line() {
    check(
        "0 8 * * * | 600 | - | 12 | 30 | 60",
        &[
            ("2026-01-16T08:00:00Z", "2..10 s0 2026-01-16T08:00:00Z 0%"),
            ("2026-01-16T08:15:00Z", "4..15 s0 2026-01-16T08:00:00Z 25%"),
            ("2026-01-16T08:59:59Z", "11..29 s0 2026-01-16T08:00:00Z 99%"),
            ("2026-01-16T09:00:00Z", "12..30 s0 2026-01-16T08:00:00Z"),
            ("2026-01-16T18:00:00Z", "base"),
        ],
    );
    // One that begins again while it is in force goes on.
    check(
        "*/30 8-9 * * * | 60 | - | 12 | 12 | 60",
        &[("2026-01-16T09:45:00Z", "12..12 s0 2026-01-16T08:30:00Z")],
    );
    check(
        "*/30 8-9 * * * | 0 12 * * * | - | 12 | 12 | 60",
        &[("2026-01-16T09:45:00Z", "12..12 s0 2026-01-16T08:00:00Z")],
    );
    // Downwards, on the way from a higher maximum.
    check(
        "0 8 * * * | 600 | - | - | 2 | 60",
        &[("2026-01-16T08:30:00Z", "2..6 s0 2026-01-16T08:00:00Z 50%")],
    );
}

#[test]
fn times_beyond_the_calendar_have_no_schedule() {
    let schedules = table("* * * * * | 1 | - | 1 | 1 | 0");
    for now in [i64::MIN, i64::MAX] {
        assert_eq!(schedules.at(Time(now), BASE), None);
    }
}

#[test]
fn schedules_are_equal_if_they_read_the_same() {
    let (a, b) = ("0 8 * * * | 60 | - | 1 | - | 0", "0 8 * * * | 61 | - | 1 | - | 0");
    assert_eq!(table(a), table(a));
    assert_ne!(table(a), table(b));
}

#[test]
fn what_cannot_be_used_is_refused() {
    let good = ScheduleSpec {
        name: "n",
        start: "0 8 * * *",
        end: ScheduleEnd::After(Span::seconds(60)),
        time_zone: None,
        min_replicas: Some(1),
        max_replicas: None,
        ramp: Span(0),
    };
    let refused = |spec: ScheduleSpec<'_>| {
        schedules(&[good, spec]).map_err(|(place, error)| format!("{place}: {error}")).err()
    };
    assert_eq!(refused(good), None);
    for (spec, error) in [
        (
            ScheduleSpec { start: "0 8 * *", ..good },
            "1: start: a cron expression has 5 fields, not 4",
        ),
        (
            ScheduleSpec { end: ScheduleEnd::Cron("0 25 * * *"), ..good },
            "1: end: hour \"25\" is not a number from 0 to 23",
        ),
        (
            ScheduleSpec { end: ScheduleEnd::After(Span(0)), ..good },
            "1: duration: must be more than 0s and at most a year",
        ),
        (ScheduleSpec { ramp: Span(-1), ..good }, "1: ramp: must not be negative"),
        (
            ScheduleSpec { time_zone: Some("Mars/Base"), ..good },
            "1: timeZone: unknown time zone \"Mars/Base\"",
        ),
        (
            ScheduleSpec { time_zone: Some("europe/berlin"), ..good },
            "1: timeZone: unknown time zone \"europe/berlin\"",
        ),
        (
            ScheduleSpec { min_replicas: None, ..good },
            "1: minReplicas: a schedule sets minReplicas, maxReplicas or both",
        ),
        (
            ScheduleSpec { max_replicas: Some(0), ..good },
            "1: maxReplicas: bounds must be 0 or more, and maxReplicas not below minReplicas",
        ),
    ] {
        assert_eq!(refused(spec).as_deref(), Some(error));
    }
    let many = vec![good; MAX_SCHEDULES + 1];
    assert_eq!(schedules(&many).err(), Some((MAX_SCHEDULES, ScheduleError::TooMany)));
}

/// Whether a schedule of so many minutes is in force, by watching the clock on the wall minute by
/// minute: what it shows for the first time, or skips, begins it.
fn watched(start: &Cron, zone: &TimeZone, minutes: i64, now: Timestamp) -> bool {
    let begin = now.checked_sub(SignedDuration::from_mins(minutes + 24 * 60)).expect("a time");
    let mut shown = zone.to_datetime(begin);
    let mut latest = shown;
    let mut left = 0;
    for minute in 1..=minutes + 24 * 60 {
        let moment = begin.checked_add(SignedDuration::from_mins(minute)).expect("a time");
        shown = zone.to_datetime(moment);
        left -= 1;
        let is_new = shown > latest;
        let mut at = if is_new {
            latest.checked_add(SignedDuration::from_mins(1)).expect("a time")
        } else {
            shown
        };
        while (is_new || start.is_every_hour()) && at <= shown {
            if start.next(at) == Some(at) {
                left = minutes;
            }
            at = at.checked_add(SignedDuration::from_mins(1)).expect("a time");
        }
        latest = latest.max(shown);
    }
    left > 0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Around changes of clocks, a schedule is in force exactly when a watcher of the clock says so.
    #[test]
    fn a_watcher_of_the_clock_agrees(
        zone in prop_oneof![
            Just("UTC"), Just("Europe/Berlin"), Just("America/New_York"), Just("Asia/Kolkata"),
            Just("Australia/Lord_Howe"), Just("America/Sao_Paulo")
        ],
        change in 0..40usize,
        offset in -1500..1500i64,
        cron in prop_oneof![
            Just("30 2 * * *"), Just("0 0 * * *"), Just("*/20 1-3 * * *"), Just("15 * * * *"),
            Just("45 1 * * SUN"), Just("0 3,12 * * *")
        ],
        minutes in 1..600i64,
    ) {
        let name = zone;
        let zone = time_zone(zone).expect("a zone");
        let start: Timestamp = "2005-01-01T00:00:00Z".parse().expect("a time");
        let change = zone.following(start).nth(change).map_or(start, |change| change.timestamp());
        let now = change.checked_add(SignedDuration::from_mins(offset)).expect("a time");
        let cron_text = cron;
        let cron = Cron::parse(cron).expect("an expression");
        let expected = watched(&cron, &zone, minutes, now);
        let schedules = table(&format!("{cron_text} | {minutes} | {name} | 3 | 4 | 0"));
        let scheduled = schedules.at(Time(now.as_microsecond()), BASE);
        prop_assert_eq!(scheduled.is_some(), expected, "{} {} {}", now, cron_text, minutes);
    }

    /// Bounds never contradict each other, and a ramp stays between where it begins and where it ends.
    #[test]
    fn bounds_are_in_order(
        mins in (0..20i32, 0..20i32), more in (0..20i32, 0..20i32), ramp in 0..90i64, at in any::<u32>(),
    ) {
        let (a, b) = (mins.0, mins.1);
        let text = format!(
            "0 */2 * * * | 70 | - | {a} | {} | {ramp} ; 30 */3 * * * | 100 | - | {b} | {} | {ramp}",
            a + more.0, b + more.1
        );
        if let Some(scheduled) = table(&text).at(Time(i64::from(at) * 1_000_000), BASE) {
            let Bounds { min, max } = scheduled.bounds;
            prop_assert!(0 <= min && min <= max && max <= 40, "{scheduled:?}");
            prop_assert!(scheduled.ramp_percent <= 100 && scheduled.since <= Time(i64::from(at) * 1_000_000));
        }
    }
}
