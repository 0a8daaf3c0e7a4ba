//! The table of durations in `testdata` was printed by Go.

use super::*;
use proptest::prelude::*;

fn check_durations(table: &str) {
    for line in table.lines() {
        let (text, expected) = line.split_once('\t').expect("two columns");
        let text: String = serde_json::from_str(text).expect("JSON");
        match (GoDuration::parse(&text), expected.strip_prefix('!')) {
            (Ok(duration), None) => assert_eq!(format!("{}\t{duration}", duration.0), expected),
            (Err(error), Some(expected)) => {
                let expected: String = serde_json::from_str(expected).expect("JSON");
                assert_eq!(error.to_string(), expected);
            }
            (result, _) => panic!("{text}: {result:?} instead of {expected}"),
        }
    }
}

#[test]
fn durations_agree_with_go() {
    check_durations(include_str!("../../testdata/durations.tsv"));
}

#[test]
#[ignore = "needs DURATION_TABLE=durations.tsv, more rows of the same form"]
fn durations_agree_with_go_on_given_table() {
    let path = std::env::var("DURATION_TABLE").expect("DURATION_TABLE");
    check_durations(&std::fs::read_to_string(path).expect("readable"));
}

#[test]
fn short_durations_leave_out_zero_units() {
    for (text, short) in [
        ("0s", "0s"),
        ("300s", "5m"),
        ("90s", "1m30s"),
        ("3600s", "1h"),
        ("3660s", "1h1m"),
        ("3605s", "1h0m5s"),
        ("10m", "10m"),
        ("600m", "10h"),
        ("1500ms", "1.5s"),
    ] {
        let duration = GoDuration::parse(text).expect(text);
        assert_eq!(duration.to_short_string(), short);
        assert_eq!(GoDuration::parse(short), Ok(duration));
    }
}

#[test]
fn times_are_read_and_written() {
    for (text, micros, seconds, exact) in [
        ("1970-01-01T00:00:00Z", 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
        (
            "2000-02-29T23:59:59.25Z",
            951_868_799_250_000,
            "2000-02-29T23:59:59Z",
            "2000-02-29T23:59:59.25Z",
        ),
        (
            "2000-01-01T00:00:00,1234567+05:30",
            946_665_000_123_456,
            "1999-12-31T18:30:00Z",
            "1999-12-31T18:30:00.123456Z",
        ),
        ("1969-12-31T23:59:59.999999Z", -1, "1969-12-31T23:59:59Z", "1969-12-31T23:59:59.999999Z"),
        (
            "0001-01-01T00:00:00Z",
            -62_135_596_800_000_000,
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00Z",
        ),
        (
            "9999-12-31T23:59:59-01:00",
            253_402_304_399_000_000,
            "10000-01-01T00:59:59Z",
            "10000-01-01T00:59:59Z",
        ),
    ] {
        let time = parse_rfc3339(text).expect(text);
        assert_eq!(time, Time(micros), "{text}");
        assert_eq!(format_rfc3339(time), seconds);
        assert_eq!(format_rfc3339_exact(time), exact);
    }
    assert_eq!(format_rfc3339_micros(Time(1_500_000)), "1970-01-01T00:00:01.500000Z");
}

#[test]
fn other_texts_are_no_times() {
    for text in [
        "",
        "2000-01-01",
        "2000-01-01T00:00:00",
        "2000-01-01 00:00:00Z",
        "2000-01-01t00:00:00z",
        "2000-13-01T00:00:00Z",
        "2000-00-01T00:00:00Z",
        "2001-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2000-04-31T00:00:00Z",
        "2000-01-01T24:00:00Z",
        "2000-01-01T00:60:00Z",
        "2000-01-01T00:00:60Z",
        "2000-01-01T00:00:00.Z",
        "2000-01-01T00:00:00+5:30",
        "2000-01-01T00:00:00+05:60",
        "2000-01-01T00:00:00ZZ",
        "+200-01-01T00:00:00Z",
        "２０００-01-01T00:00:00Z",
    ] {
        assert!(parse_rfc3339(text).is_err(), "{text}");
    }
}

#[test]
fn json_forms() {
    let json = r#"["2000-01-01T00:00:15.250Z","1m30s"]"#;
    let (time, window): (Timestamp, GoDuration) = serde_json::from_str(json).expect("valid");
    let written = serde_json::to_string(&(time, ExactTimestamp(time.0), window)).expect("valid");
    assert_eq!(written, r#"["2000-01-01T00:00:15Z","2000-01-01T00:00:15.25Z","1m30s"]"#);
    let error = serde_json::from_str::<GoDuration>(r#""5""#).expect_err("no unit").to_string();
    assert!(error.starts_with(r#"time: missing unit in duration "5""#), "{error}");
}

proptest! {
    #[test]
    fn durations_round_trip(nanos in any::<i64>()) {
        let duration = GoDuration(nanos);
        prop_assert_eq!(GoDuration::parse(&duration.to_string()), Ok(duration));
        prop_assert_eq!(GoDuration::parse(&duration.to_short_string()), Ok(duration));
    }

    #[test]
    fn times_round_trip(micros in -62_135_596_800_000_000..253_402_300_800_000_000_i64) {
        prop_assert_eq!(parse_rfc3339(&format_rfc3339_exact(Time(micros))), Ok(Time(micros)));
        prop_assert_eq!(parse_rfc3339(&format_rfc3339_micros(Time(micros))), Ok(Time(micros)));
    }

    #[test]
    fn any_text_ends(text in "[0-9.hmsnuµ+-]{0,40}|\\PC{0,40}", micros in any::<i64>()) {
        let _ = (GoDuration::parse(&text), parse_rfc3339(&text), format_rfc3339_exact(Time(micros)));
    }
}
