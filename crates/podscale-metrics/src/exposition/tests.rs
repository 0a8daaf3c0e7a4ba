use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Vec<String> {
    samples(text)
        .map(|sample| match sample {
            Ok(sample) => {
                let labels: Vec<String> =
                    sample.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("{} {:?} {} {:?}", sample.name, labels, sample.value, sample.time_ms)
            }
            Err(error) => error.to_string(),
        })
        .collect()
}

#[test]
fn samples_are_read() {
    let cases: &[(&str, &[&str])] = &[
        ("", &[]),
        ("# HELP a b\n# TYPE a gauge\n\n", &[]),
        ("a 1", &["a [] 1 None"]),
        ("a 1.5 1000\r\nb 2\n", &["a [] 1.5 Some(1000)", "b [] 2 None"]),
        ("a{} 1", &["a [] 1 None"]),
        ("a{x=\"1\",y=\"2\"} -3e2 -5", &["a [\"x=1\", \"y=2\"] -300 Some(-5)"]),
        ("a{ x = \"1\" , y=\"2\", }\t4", &["a [\"x=1\", \"y=2\"] 4 None"]),
        ("a{x=\"}{, \"} 1", &["a [\"x=}{, \"] 1 None"]),
        (r#"a{x="q\"b\\n\nz\t"} 1"#, &["a [\"x=q\\\"b\\\\n\\nz\\\\t\"] 1 None"]),
        ("a NaN\na +Inf\na -Inf", &["a [] NaN None", "a [] inf None", "a [] -inf None"]),
        ("a_b:c1{é=\"ü\"} 1", &["line 1: not a label name"]),
        ("a{x=\"ü\\é\"} 1", &["a [\"x=ü\\\\é\"] 1 None"]),
        ("1a 1", &["line 1: not a metric name"]),
        ("\n\na", &["line 3: no value"]),
        ("a ", &["line 1: no value"]),
        ("a x", &["line 1: the value is not a number"]),
        ("a 1 x", &["line 1: the timestamp is not a whole number"]),
        ("a 1 2 3", &["line 1: something follows the timestamp"]),
        ("a{x=\"1\" 1", &["line 1: the labels are broken"]),
        ("a{x=\"1", &["line 1: the labels are broken"]),
        ("a{x=\"1\\", &["line 1: the labels are broken"]),
        ("a{x=1} 1", &["line 1: the labels are broken"]),
        ("a{x=\"1\"y=\"2\"} 1", &["line 1: the labels are broken"]),
        ("a{", &["line 1: the labels are broken"]),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text), *expected, "{text:?}");
    }
}

#[test]
fn a_label_is_found_by_name() {
    let sample = samples(r#"a{pod="p",namespace="n"} 1"#).next().unwrap().unwrap();
    assert_eq!(sample.labels.get("namespace").as_deref(), Some("n"));
    assert_eq!(sample.labels.get("container"), None);
}

proptest! {
    #[test]
    fn no_text_breaks_it(text in "[a{}=\",\\\\ 1\n#é.]{0,60}") {
        for sample in samples(&text).flatten() {
            prop_assert!(sample.labels.iter().count() <= text.len());
        }
    }

    #[test]
    fn what_is_written_is_read_back(value in any::<f64>(), label in "\\PC{0,20}", time in any::<i64>()) {
        use super::write::{Label, Number};
        let text = format!("m{{l=\"{}\"}} {} {time}\n", Label(&label), Number(value));
        let sample = samples(&text).next().unwrap().unwrap();
        prop_assert_eq!(sample.labels.get("l").unwrap(), label);
        prop_assert!(sample.value == value || (sample.value.is_nan() && value.is_nan()));
        prop_assert_eq!(sample.time_ms, Some(time));
    }
}
