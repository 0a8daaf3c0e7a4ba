use std::io::Cursor;

use serde_json::Value;

use super::*;

/// Recordings of the real Kubernetes 1.37 controller.
const SAMPLES: &str = include_str!("../../testdata/named-1.37.jsonl");

fn read(bytes: &[u8]) -> Vec<Result<Recording, String>> {
    RecordingReader::new(Cursor::new(bytes))
        .expect("readable")
        .map(|recording| recording.map_err(|error| error.to_string()))
        .collect()
}

fn samples() -> Vec<Recording> {
    read(SAMPLES.as_bytes()).into_iter().collect::<Result<_, _>>().expect("all are valid")
}

fn gzip(recordings: &[Recording]) -> Vec<u8> {
    let mut writer = RecordingWriter::gzip(Vec::new());
    recordings.iter().for_each(|recording| writer.write(recording).expect("memory"));
    writer.finish().expect("memory")
}

/// Quantities become canonical, and fractions of a second lose their zeros.
fn same_text(a: &str, b: &str) -> bool {
    let time = |text| crate::time::parse_rfc3339(text).ok();
    let quantity = |text| crate::Quantity::parse(text).map(|quantity| quantity.to_string()).ok();
    a == b || (time(a).is_some() && time(a) == time(b)) || quantity(a).is_some_and(|text| text == b)
}

/// An empty map is left out.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_blank),
        _ => false,
    }
}

/// Where two JSON values differ first, if they do.
fn difference(path: &str, a: &Value, b: &Value) -> Option<String> {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).find_map(|key| {
            let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
            difference(&format!("{path}.{key}"), a, b)
        }),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(at, (a, b))| difference(&format!("{path}[{at}]"), a, b)),
        (Value::String(a), Value::String(b)) if same_text(a, b) => None,
        (a, b) if is_blank(a) && is_blank(b) => None,
        (a, b) => (a != b).then(|| format!("{path}: {a} became {b}")),
    }
}

fn check_round_trip(lines: impl Iterator<Item = Line>) -> usize {
    let mut count = 0;
    for line in lines {
        let recording = line.parse().unwrap_or_else(|error| panic!("{error}"));
        let before: Value = serde_json::from_slice(&line.bytes).expect("JSON");
        let after = serde_json::to_value(&recording).expect("writes");
        assert_eq!(difference("", &before, &after), None, "line {}", line.number);
        count += 1;
    }
    count
}

fn lines<R: std::io::Read>(mut reader: RecordingReader<R>) -> impl Iterator<Item = Line> {
    std::iter::from_fn(move || reader.next_line().unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn keeps_what_was_in_the_file() {
    let reader = RecordingReader::new(SAMPLES.as_bytes()).expect("readable");
    assert_eq!(check_round_trip(lines(reader)), 72);
}

#[test]
#[ignore = "needs RECORDINGS=file,file"]
fn keeps_what_was_in_given_files() {
    let paths = std::env::var("RECORDINGS").expect("RECORDINGS");
    for path in paths.split(',') {
        let file = std::fs::File::open(path).expect("readable");
        let reader = RecordingReader::new(file).expect("readable");
        assert!(check_round_trip(lines(reader)) > 0);
    }
}

#[test]
fn plain_and_compressed_read_alike() {
    let recordings = samples();
    let mut writer = RecordingWriter::plain(Vec::new());
    recordings.iter().for_each(|recording| writer.write(recording).expect("memory"));
    let plain = writer.finish().expect("memory");
    assert_eq!(plain.iter().filter(|byte| **byte == b'\n').count(), recordings.len());

    let (first, second) = recordings.split_at(4);
    let members = [gzip(first), gzip(second)].concat();
    for bytes in [plain, gzip(&recordings), members] {
        let again: Vec<_> = read(&bytes).into_iter().map(|result| result.expect("valid")).collect();
        assert_eq!(again, recordings);
    }
}

#[test]
fn blank_lines_and_a_missing_last_newline_do_not_matter() {
    let line = SAMPLES.lines().next().expect("a line");
    let results = read(format!("\n{line}\r\n  \n\n{line}").as_bytes());
    assert_eq!(results.len(), 2);
    assert_eq!(results[0], results[1]);
    assert!(results[0].is_ok());
    assert!(read(b"").is_empty());
    assert!(read(b"\n").is_empty());
}

#[test]
fn errors_say_where() {
    let start = r#"{"apiVersion":"podscale.dev/v1alpha1","kind":"Recording","autoscaler":{},"#;
    for (line, error) in [
        ("{", "line 2, column 1: EOF while parsing an object"),
        ("[]", "line 2, column 2: invalid length 0, expected struct Recording with 7 elements"),
        (&format!("{start}\"steps\":[]}} x"), "line 2, column 86: trailing characters"),
        (
            &format!("{start}\"steps\":[{{}}]}}"),
            "line 2, column 84, steps[0]: missing field `time`",
        ),
        (
            &format!("{start}\"steps\":[{{\"time\":\"noon\"}}]}}"),
            "line 2, column 96, steps[0].time: \"noon\" is not an RFC 3339 time",
        ),
        (
            &format!(
                "{start}\"steps\":[{{\"time\":\"2000-01-01T00:00:00Z\",\"pods\":[{{\"spec\":\
                 {{\"overhead\":{{\"cpu\":\"1x\"}}}}}}]}}]}}"
            ),
            "line 2, column 152, steps[0].pods[0].spec.overhead.cpu: quantities must match the \
             regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            "line 2: a v1 Pod, not a podscale.dev/v1alpha1 Recording",
        ),
        (
            r#"{"apiVersion":"podscale.dev/v2","kind":"Recording","autoscaler":{}}"#,
            "line 2: a podscale.dev/v2 Recording, not a podscale.dev/v1alpha1 Recording",
        ),
    ] {
        let results = read(format!("\n{line}\n").as_bytes());
        assert_eq!(results, [Err(error.to_string())], "{line}");
    }
}

#[test]
fn text_that_is_not_unicode_is_refused() {
    let line = [b"{\"kind\":\"\xff\"}".as_slice(), b"\n"].concat();
    let error = "line 1, column 10, kind: invalid unicode code point";
    assert_eq!(read(&line), [Err(error.to_string())]);
}

#[test]
fn lines_that_follow_a_wrong_one_are_read() {
    let good = SAMPLES.lines().next().expect("a line");
    let results = read(format!("{{}}\n{good}\n").as_bytes());
    assert!(matches!(&results[..], [Err(_), Ok(_)]));
}

#[test]
fn long_lines_and_damaged_files_end_the_reading() {
    let reader = RecordingReader::new(SAMPLES.as_bytes()).expect("readable");
    let results: Vec<_> = reader.with_max_line_bytes(1000).collect();
    let [Err(error)] = &results[..] else { panic!("{} results", results.len()) };
    assert_eq!(error.to_string(), "line 1: longer than 1000 bytes");

    let longest = SAMPLES.lines().map(str::len).max().expect("lines");
    let reader = RecordingReader::new(SAMPLES.as_bytes()).expect("readable");
    assert!(reader.with_max_line_bytes(longest).all(|recording| recording.is_ok()));

    let mut damaged = gzip(&samples());
    damaged.truncate(damaged.len() - 9);
    let results = read(&damaged);
    let last = results.last().expect("at least an error");
    assert!(last.as_ref().is_err_and(|error| error.starts_with("line ")), "{last:?}");
}

#[test]
fn settings_have_the_controllers_defaults() {
    let json = r#"{"apiVersion":"podscale.dev/v1alpha1","kind":"Recording","autoscaler":{}}"#;
    let recording: Recording = serde_json::from_str(json).expect("valid");
    assert_eq!(Settings::from(recording.controller), Settings::default());
    assert_eq!(
        serde_json::to_string(&recording.controller).expect("writes"),
        r#"{"tolerance":0.1,"downscaleStabilization":"5m","cpuInitializationPeriod":"5m","initialReadinessDelay":"30s"}"#
    );
}

#[test]
fn the_saturating_decision_is_expected_where_there_is_one() {
    let recordings = samples();
    let steps = recordings.iter().flat_map(|recording| &recording.steps);
    let (saturating, others): (Vec<_>, Vec<_>) =
        steps.partition(|step| step.decision_saturating.is_some());
    assert!(!saturating.is_empty() && !others.is_empty());
    assert!(saturating.iter().all(|step| step.expected() == step.decision_saturating.as_ref()));
    assert!(others.iter().all(|step| step.expected() == step.decision.as_ref()));
}

/// A step of the first sample with these fields instead of its own.
fn step_with(fields: &str) -> Result<Step, String> {
    let mut value = serde_json::to_value(&samples()[0].steps[0]).expect("JSON");
    let fields: Value = serde_json::from_str(fields).expect(fields);
    value.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn withheld_writes_are_read_in_both_forms() {
    use podscale_core::Withheld::{Deferred, DryRun, Gone, OtherController};
    for (fields, scale, status) in [
        ("{}", None, None),
        (r#"{"scalePutOff":true,"statusPutOff":true}"#, Some(DryRun), Some(Deferred)),
        (r#"{"scalePutOff":false,"statusPutOff":null}"#, None, None),
        (r#"{"scaleWithheld":"dryRun","statusWithheld":"dryRun"}"#, Some(DryRun), Some(DryRun)),
        (
            r#"{"scaleWithheld":"otherController","statusWithheld":"gone"}"#,
            Some(OtherController),
            Some(Gone),
        ),
    ] {
        let step = step_with(fields).expect(fields);
        assert_eq!((step.scale_withheld, step.status_withheld), (scale, status), "{fields}");
        let written = serde_json::to_string(&step).expect("JSON");
        assert!(!written.contains("PutOff"), "{written}");
        assert_eq!(serde_json::from_str::<Step>(&written).expect("reads"), step);
    }
    let error = step_with(r#"{"scaleWithheld":"tired"}"#).expect_err("no such reason");
    assert!(error.contains("unknown variant `tired`, expected one of `dryRun`"), "{error}");
    let error = step_with(r#"{"scaleWithheld":3}"#).expect_err("no reason");
    assert!(error.contains("the reason why something was not written"), "{error}");
}

#[test]
fn answers_are_read_in_both_forms() {
    let old = r#"{"answers":{"0":{"error":"no"},"2":{"customMetrics":[]}}}"#;
    let new = r#"{"answers":[{"metric":0,"error":"no"},{"metric":2}]}"#;
    assert_eq!(step_with(old), step_with(new));
    assert_eq!(step_with(old).expect("reads").answers.len(), 2);
    for none in [r#"{"answers":null}"#, r#"{"answers":{}}"#, r#"{"answers":[]}"#] {
        assert!(step_with(none).expect(none).answers.is_empty());
    }
    let text = r#"[{"metric":1,"source":"prometheus","time":"2000-01-01T00:00:14.5Z","values":[{"value":"12500m","time":"2000-01-01T00:00:09Z","window":"30s","labels":{"zone":"a"},"pod":"web-1"},{"value":"1","object":{"kind":"Service","name":"s"}}]},{"metric":2,"values":[]}]"#;
    let step = step_with(&format!(r#"{{"answers":{text}}}"#)).expect("reads");
    assert_eq!(serde_json::to_string(&step.answers).expect("JSON"), text);
    for (wrong, error) in [
        (r#"{"answers":[{"metric":1},{"metric":1}]}"#, "metric 1 is answered twice"),
        (r#"{"answers":{"x":{}}}"#, "invalid"),
        (r#"{"answers":7}"#, "a list of answers"),
        (r#"{"answers":[{"metric":0,"values":[{}]}]}"#, "missing field `value`"),
        (r#"{"answers":[{"metric":0,"values":[{"value":"x"}]}]}"#, "quantities must match"),
    ] {
        let refused = step_with(wrong).expect_err(wrong);
        assert!(refused.contains(error), "{refused}");
    }
}
