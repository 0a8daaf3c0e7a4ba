use super::*;
use podscale_core::model::{Fact, Part};

const NAMES: [Option<&str>; 3] = [Some("cpu"), None, Some("queue")];

/// A part in brackets.
fn shown(part: &Part) -> String {
    match part {
        Part::Number(number) => number.to_string(),
        Part::CurrentReplicas => "current".to_owned(),
        Part::Metric { metric, fact: Fact::Replicas } => format!("m{metric}"),
        Part::Metric { metric, fact } => format!("m{metric}.{fact:?}"),
        Part::Has { metric } => format!("has{metric}"),
        Part::Unary(unary, a) => format!("({unary:?} {})", shown(a)),
        Part::Binary(binary, a, b) => format!("({} {binary:?} {})", shown(a), shown(b)),
        Part::If(a, b, c) => format!("({} ? {} : {})", shown(a), shown(b), shown(c)),
    }
}

fn check(text: &str, expected: &str) {
    let found = match parse(text, &NAMES) {
        Ok(formula) => shown(formula.root()),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn operators_bind_as_everywhere() {
    check("cpu", "m0");
    check("max(cpu, queue) + 1", "((m0 Max m2) Add 1)");
    check("math.greatest(cpu, queue, 3)", "((m0 Max m2) Max 3)");
    check("1 + 2 * 3 - 4", "((1 Add (2 Multiply 3)) Subtract 4)");
    check("(1 + 2) * -cpu.value", "((1 Add 2) Multiply (Negate m0.Value))");
    check("queue.ratio > 1.5 && !has(cpu) ? queue : current / 2",
        "(((m2.Ratio Greater 1.5) And (Not has0)) ? m2 : (current Divide 2))");
    check("true || cpu == 2 ? 1 : 2 % 3 > 0 ? 4 : 5",
        "((1 Or (m0 Equal 2)) ? 1 : (((2 Remainder 3) Greater 0) ? 4 : 5))");
    check("ceil(cpu.replicas * 1.2)", "(Ceil (m0 Multiply 1.2))");
}

#[test]
fn errors_say_what_and_where() {
    check("", "a value is expected, not the end at character 1");
    check("cpu > 1", "must give a number of replicas, not true or false");
    check("cpu + (1 < 2)", "a number is expected, not true or false at character 7");
    check("cpu ? 1 : 2", "true or false is expected, not a number at character 1");
    check("memory", "no metric is called \"memory\": cpu, queue at character 1");
    check("cpu.p99", "cpu has no \"p99\": replicas, value and ratio at character 5");
    check("sqrt(cpu)", "there is no function \"sqrt\" at character 1");
    check("ceil(cpu, 1)", "ceil takes one argument at character 1");
    check("max(cpu", "\")\" is expected, not the end at character 8");
    check("cpu cpu", "\"cpu\" is not expected at character 5");
    check("cpu # x", "'#' is not part of an expression at character 5");
    check("has(x)", "no metric is called \"x\": cpu, queue at character 5");
    check(&format!("1{}", "0".repeat(400)), &format!("1{} is too large at character 1", "0".repeat(400)));
    check(&"(".repeat(1000), "nested more than 32 levels deep at character 33");
    check(&"-".repeat(1000), "nested more than 32 levels deep at character 32");
    check(&vec!["1"; 200].join(" + "), "the expression is nested more than 32 levels deep");
}

#[test]
fn no_text_is_too_much() {
    let alphabet = ["cpu", "queue", "(", ")", "+", "-", "!", "?", ":", "1", ".", ",", "has", "max", "é"];
    let mut state = 7_u64;
    for _ in 0..5_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let word = usize::try_from(state >> 33).expect("small") % alphabet.len();
            text.push_str(alphabet[word]);
        }
        // Whatever it is, it is read or refused.
        let _ = parse(&text, &NAMES);
    }
}
