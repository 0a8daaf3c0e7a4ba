use super::*;
use proptest::prelude::*;

const NAMES: [Option<&str>; 4] = [Some("cpu"), None, Some("queue"), Some("odd")];

fn read(text: &str) -> Result<String, String> {
    parse(text, &NAMES).map(|f| show(f.root())).map_err(|error| error.to_string())
}

/// The tree in a form that is short to read.
fn show(part: &Part) -> String {
    match part {
        Part::Number(number) => number.to_string(),
        Part::CurrentReplicas => "current".to_owned(),
        Part::Metric { metric, fact } => format!("{fact:?}{metric}"),
        Part::Has { metric } => format!("Has{metric}"),
        Part::Unary(function, a) => format!("{function:?}({})", show(a)),
        Part::Binary(function, a, b) => format!("{function:?}({}, {})", show(a), show(b)),
        Part::If(a, b, c) => format!("If({}, {}, {})", show(a), show(b), show(c)),
    }
}

#[test]
fn expressions_become_formulas() {
    for (text, formula) in [
        ("cpu", "Replicas0"),
        ("queue / 10", "Divide(Replicas2, 10)"),
        ("1.5 * cpu + 2u", "Add(Multiply(1.5, Replicas0), 2)"),
        ("max(cpu, min(queue, 20))", "Max(Replicas0, Min(Replicas2, 20))"),
        ("max(cpu, queue, odd)", "Max(Max(Replicas0, Replicas2), Replicas3)"),
        ("math.greatest(cpu, queue)", "Max(Replicas0, Replicas2)"),
        ("math.ceil(queue.value / 7.0)", "Ceil(Divide(Value2, 7))"),
        ("has(queue.value) ? queue : cpu", "If(Has2, Replicas2, Replicas0)"),
        ("cpu.ratio > 1.2 && !(queue.replicas == 3)", ""),
        (
            "cpu.ratio > 1.2 || queue < 3 ? currentReplicas + 1 : -cpu % 2",
            "If(Or(Greater(Ratio0, 1.2), Less(Replicas2, 3)), Add(current, 1), \
             Remainder(Negate(Replicas0), 2))",
        ),
        ("(cpu > 1) == true ? 1 : 2", "If(Equal(Greater(Replicas0, 1), 1), 1, 2)"),
        ("double(cpu)", "Replicas0"),
        ("1 - 2 - 3 * 4", "Subtract(Subtract(1, 2), Multiply(3, 4))"),
        ("(1 - 2) * -3e2", "Multiply(Subtract(1, 2), Negate(300))"),
        (
            "cpu > 1 ? 1 : cpu > 2 ? 2 : 3",
            "If(Greater(Replicas0, 1), 1, If(Greater(Replicas0, 2), 2, 3))",
        ),
        ("false || !false && true ? 1 : 2", "If(Or(0, And(Not(0), 1)), 1, 2)"),
    ] {
        match read(text) {
            Ok(read) => assert_eq!(read, formula, "{text}"),
            Err(error) => {
                let expected = "line 1, column 1: the expression must be a number, not a bool";
                assert_eq!(error, expected, "{text}");
                assert_eq!(formula, "", "{text}");
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    for (text, column, error) in [
        ("cpu + memory", 7, "unknown metric \"memory\"; known are cpu, queue, odd"),
        ("cpu > 3", 1, "the expression must be a number, not a bool"),
        ("cpu && queue", 1, "each side of && must be a bool, not a number"),
        ("cpu + (queue > 1)", 7, "each side of + must be a number, not a bool"),
        ("cpu == true ? 1 : 2", 8, "each side of == must be a number, not a bool"),
        ("cpu ? 1 : 2", 1, "what comes before ? must be a bool, not a number"),
        ("cpu > 1 ? 1 : cpu > 2", 15, "what comes after : must be a number, not a bool"),
        ("max(cpu > 1, 2)", 5, "what max takes must be a number, not a bool"),
        ("max()", 1, "there is no function max of 0 arguments"),
        ("sqrt(cpu)", 1, "there is no function sqrt of 1 arguments"),
        ("ceil(cpu, 1)", 1, "there is no function ceil of 2 arguments"),
        ("math.max(cpu)", 1, "there is no function math.max of 1 arguments"),
        ("!cpu", 2, "what ! takes must be a bool, not a number"),
        ("-(cpu > 1)", 2, "what - takes must be a number, not a bool"),
        ("cpu.p99", 5, "a metric has no \"p99\", only value, ratio, total and replicas"),
    ] {
        assert_eq!(read(text), Err(format!("line 1, column {column}: {error}")), "{text}");
    }
    for (text, error) in [
        ("", "line 1, column 1: the end is not a number, a metric or a function"),
        ("cpu +", "line 1, column 6: the end is not a number, a metric or a function"),
        ("cpu queue", "line 1, column 5: \"queue\" is not an operator or the end"),
        ("(cpu", "line 1, column 5: the end is not an operator or a )"),
        ("max(cpu queue)", "line 1, column 9: \"queue\" is not an operator, a comma or a )"),
        ("cpu > 1 ? 2", "line 1, column 12: the end is not a :"),
        ("cpu\n  = 3", "line 2, column 3: \"=\" is not an operator or the end"),
        ("[cpu, queue]", "line 1, column 1: \"[\" is not a number, a metric or a function"),
        ("'a'", "line 1, column 1: \"'\" is not a number, a metric or a function"),
        ("0x10", "line 1, column 1: \"0x10\" is not a number"),
        ("1.5u", "line 1, column 1: \"1.5u\" is not a number"),
        ("cpu.", "line 1, column 5: the end is not value, ratio or replicas"),
        ("cpu.value.value", "line 1, column 10: \".\" is not an operator or the end"),
        ("has(cpu)", "line 1, column 8: \")\" is not a . and value, ratio or replicas"),
        ("\u{0}", "line 1, column 1: \"\\0\" is not a number, a metric or a function"),
        ("cpu + ü", "line 1, column 7: \"ü\" is not a number, a metric or a function"),
    ] {
        assert_eq!(read(text), Err(error.to_owned()), "{text:?}");
    }
    let names = [Some("a"), Some("a"), Some(CURRENT_REPLICAS)];
    for name in ["a", CURRENT_REPLICAS] {
        let error = parse(name, &names).map_err(|error| error.to_string()).map(|_| ());
        assert_eq!(
            error,
            Err(format!("line 1, column 1: {name:?} is the name of more than one thing"))
        );
    }
    assert!(
        parse("a", &[]).is_err_and(|error| error.to_string().ends_with("no metric has a name"))
    );
}

#[test]
fn large_expressions_are_refused() {
    let long = format!("cpu{}", " + cpu".repeat(400));
    assert_eq!(read(&long), Err("the expression has 2403 bytes, at most 2000 are allowed".into()));
    for (text, limit) in [
        (format!("cpu{}", " + cpu".repeat(300)), "more than 32 levels deep"),
        (format!("{}cpu{}", "(-".repeat(60), ")".repeat(60)), "more than 32 levels deep"),
        (format!("{}cpu{}", "(".repeat(900), ")".repeat(900)), "more than 32 levels deep"),
        (format!("{}cpu", "-".repeat(1900)), "more than 32 levels deep"),
        (format!("{}1", "cpu > 1 ? 1 : ".repeat(100)), "more than 32 levels deep"),
        (format!("max({}cpu)", "1, ".repeat(300)), "more than 256 parts"),
    ] {
        let error = read(&text).expect_err(&text);
        assert!(error.contains(limit), "{error}");
    }
    let wide = format!("max({}cpu)", "1, ".repeat(100));
    assert!(read(&wide).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// No text makes reading panic.
    #[test]
    fn any_text_can_be_tried(text in "[cpuqe0-9 .+*/()?:<>=&|!,\"'\\[\\]{}x_\\\\-]{0,40}", other in ".{0,20}") {
        let _ = parse(&text, &NAMES);
        let _ = parse(&other, &NAMES);
    }
}
