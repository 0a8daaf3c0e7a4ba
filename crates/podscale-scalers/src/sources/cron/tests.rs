use super::*;
use crate::trigger::TriggerSpec;
use crate::{Parsed, connect, parse, tests as testing};

fn spec(start: &str, end: &str, zone: &str, replicas: &str) -> TriggerSpec {
    testing::spec(
        "cron",
        &[("start", start), ("end", end), ("timezone", zone), ("desiredReplicas", replicas)],
    )
}

#[test]
fn fields_are_checked_in_the_words_of_keda() {
    let context = "error parsing cron metadata: ";
    for (start, end, replicas, expected) in [
        ("0 8 * * *", "0 18 * * *", "10", "s0-cron-Etc-UTC-08xxx-018xxx"),
        ("*/15 8,9 * * MON-FRI", "0 18 ? * *", "1", "s0-cron-Etc-UTC-xSl158Cm9xxMON-FRI-018Qmxx"),
        (
            "61 * * * *",
            "0 * * * *",
            "1",
            "error parsing start schedule: end of range (61) above maximum (59): 61",
        ),
        (
            "0 * * *",
            "0 * * * *",
            "1",
            "error parsing start schedule: expected exactly 5 fields, found 4: [0 * * *]",
        ),
        (
            "0 * * * *",
            "@daily",
            "1",
            "error parsing end schedule: parser does not accept descriptors: @daily",
        ),
        (
            "0 * * * 7",
            "0 1 * * *",
            "1",
            "error parsing start schedule: end of range (7) above maximum (6): 7",
        ),
        (
            "0 * 0 * *",
            "0 1 * * *",
            "1",
            "error parsing start schedule: beginning of range (0) below minimum (1): 0",
        ),
        (
            "5-2 * * * *",
            "0 1 * * *",
            "1",
            "error parsing start schedule: beginning of range (5) beyond end of range (2): 5-2",
        ),
        (
            "*/0 * * * *",
            "0 1 * * *",
            "1",
            "error parsing start schedule: step of range should be a positive number: */0",
        ),
        (
            "1/2/3 * * * *",
            "0 1 * * *",
            "1",
            "error parsing start schedule: too many slashes: 1/2/3",
        ),
        (
            "1-2-3 * * * *",
            "0 1 * * *",
            "1",
            "error parsing start schedule: too many hyphens: 1-2-3",
        ),
        (
            "x * * * *",
            "0 1 * * *",
            "1",
            "error parsing start schedule: failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        ("0 8 * * *", "0 8 * * *", "1", "start and end can not have exactly same time input"),
        ("0 8 * * *", "0 9 * * *", "0", "no desiredReplicas specified"),
        ("0 8 30 2 *", "0 9 * * *", "1", "error parsing start schedule: no day matches it"),
        (
            "",
            "0 9 * * *",
            "1",
            "missing required parameter \"start\" in [triggerMetadata]\nerror parsing start schedule: empty spec string",
        ),
    ] {
        let found = match parse(&spec(start, end, "Etc/UTC", replicas)) {
            Ok(parsed) => parsed.metric_name().to_owned(),
            Err(errors) => errors.to_string(),
        };
        assert_eq!(found.strip_prefix(context).unwrap_or(&found), expected, "{start}");
    }
}

/// Values at some moments.
async fn values(start: &str, end: &str, zone: &str, moments: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for moment in moments {
        let now: Timestamp = moment.parse().expect("a time");
        let context = Context { clock: Arc::new(move || now), ..testing::context() };
        let parsed: Parsed = parse(&spec(start, end, zone, "7")).expect("a window");
        let scaler = connect(parsed, &context).expect("a scaler");
        let value = scaler.poll(testing::soon()).await;
        found.push(match value {
            Ok(values) => format!("{}{}", values[0].value, if values[0].active { "!" } else { "" }),
            Err(error) => error.to_string(),
        });
    }
    found
}

#[tokio::test]
async fn replicas_are_wanted_from_start_to_end() {
    for (start, end, zone, moment, expected) in [
        ("0 8 * * *", "0 18 * * *", "UTC", "2026-11-16T07:59:59Z", "0"),
        ("0 8 * * *", "0 18 * * *", "UTC", "2026-11-16T08:00:00Z", "7!"),
        ("0 8 * * *", "0 18 * * *", "UTC", "2026-11-16T17:59:59.999Z", "7!"),
        ("0 8 * * *", "0 18 * * *", "UTC", "2026-11-16T18:00:00Z", "0"),
        ("0 22 * * *", "0 6 * * *", "UTC", "2026-11-16T23:00:00Z", "7!"),
        ("0 22 * * *", "0 6 * * *", "UTC", "2026-11-16T12:00:00Z", "0"),
        ("0 8 * * *", "0 18 * * *", "Europe/Berlin", "2026-11-16T07:00:00Z", "7!"),
        ("0 8 * * *", "0 18 * * *", "America/New_York", "2026-11-16T12:59:00Z", "0"),
        ("0 8 * * 1-5", "0 18 * * 1-5", "UTC", "2026-11-15T12:00:00Z", "0"),
        // Clocks go from 2:00 to 3:00: there is no 2:30. What would end then starts again before it ends, so that
        // it does not begin; what would begin then has begun when it ended the day before.
        ("0 1 * * *", "30 2 * * *", "Europe/Berlin", "2026-03-29T00:30:00Z", "0"),
        ("0 1 * * *", "30 2 * * *", "Europe/Berlin", "2026-03-29T10:00:00Z", "0"),
        ("30 2 * * *", "0 4 * * *", "Europe/Berlin", "2026-03-28T10:00:00Z", "7!"),
        ("30 2 * * *", "0 4 * * *", "Europe/Berlin", "2026-03-29T01:30:00Z", "7!"),
        ("30 2 * * *", "0 4 * * *", "Europe/Berlin", "2026-03-29T02:30:00Z", "0"),
        // Clocks go from 3:00 to 2:00: 2:30 comes twice.
        ("30 2 * * *", "45 2 * * *", "Europe/Berlin", "2026-10-25T00:40:00Z", "7!"),
        ("30 2 * * *", "45 2 * * *", "Europe/Berlin", "2026-10-25T00:50:00Z", "0"),
        ("30 2 * * *", "45 2 * * *", "Europe/Berlin", "2026-10-25T01:40:00Z", "7!"),
        ("30 2 * * *", "45 2 * * *", "Europe/Berlin", "2026-10-25T01:50:00Z", "0"),
        (
            "0 8 * * *",
            "0 18 * * *",
            "Mars/Base",
            "2026-11-16T07:00:00Z",
            "unable to load timezone: unknown time zone Mars/Base",
        ),
    ] {
        let found = values(start, end, zone, &[moment]).await;
        assert_eq!(found, [expected], "{start} to {end} in {zone} at {moment}");
    }
}

#[test]
fn the_next_moment_is_the_first_whose_clock_matches() {
    let zone = podscale_api::schedule::time_zone("Europe/Berlin").expect("a zone");
    for text in ["*/7 * * * *", "30 2 * * *", "0 0 1 * *", "15,45 1-3 * * *"] {
        let expression = Expression::parse(text).expect("an expression");
        for day in ["2026-03-28T20:00:00Z", "2026-10-24T20:00:30Z", "2026-06-01T12:34:56Z"] {
            let mut now: Timestamp = day.parse().expect("a time");
            for _ in 0..40 {
                let next = expression.next(&zone, now).expect("there is one");
                assert_eq!(next, watched(text, &zone, now), "{text} after {now}");
                now = next;
            }
        }
    }
}

/// The same by looking at every minute.
fn watched(text: &str, zone: &TimeZone, now: Timestamp) -> Timestamp {
    let cron = podscale_api::schedule::Cron::parse(text).expect("an expression");
    let minute = now.as_second().div_euclid(60);
    let minutes = (minute + 1..).map(|m| Timestamp::from_second(m * 60).expect("a time"));
    let matches = |at: &Timestamp| cron.next(zone.to_datetime(*at)) == Some(zone.to_datetime(*at));
    minutes.take(60 * 24 * 40).find(matches).expect("it comes")
}
