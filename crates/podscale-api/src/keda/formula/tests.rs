use super::*;
use podscale_core::model::{MAX_DEPTH, MAX_PARTS};

const NAMES: [&str; 4] = ["a", "b", "trig_one", ""];

/// What a formula gives for a = 3, b = 8, trig_one = 2.5; triggers in `missing` have no value.
fn value(part: &Part, missing: &[u32]) -> Option<f64> {
    let value = |part: &Part| value(part, missing);
    let truth = |holds: bool| f64::from(u8::from(holds));
    Some(match part {
        Part::Number(number) => *number,
        Part::Metric { metric, fact } => {
            assert_eq!(*fact, Fact::Total);
            (!missing.contains(metric)).then(|| [3.0, 8.0, 2.5][*metric as usize])?
        }
        Part::Has { metric } => truth(!missing.contains(metric)),
        Part::Unary(Unary::Negate, a) => -value(a)?,
        Part::Unary(Unary::Not, a) => truth(value(a)? == 0.0),
        Part::Unary(Unary::Truncate, a) => value(a)?.trunc(),
        Part::Unary(Unary::Ceil, a) => value(a)?.ceil(),
        Part::Unary(Unary::Round, a) => value(a)?.round(),
        Part::Unary(Unary::Floor, a) => value(a)?.floor(),
        Part::Unary(Unary::Abs, a) => value(a)?.abs(),
        Part::Binary(function, a, b) => {
            let (a, b) = (value(a)?, value(b)?);
            match function {
                Binary::Add => a + b,
                Binary::Subtract => a - b,
                Binary::Multiply => a * b,
                Binary::Divide => a / b,
                Binary::Remainder => a % b,
                Binary::Power => a.powf(b),
                Binary::Max => a.max(b),
                Binary::Min => a.min(b),
                Binary::Equal => truth(a == b),
                Binary::NotEqual => truth(a != b),
                Binary::Less => truth(a < b),
                Binary::LessOrEqual => truth(a <= b),
                Binary::Greater => truth(a > b),
                Binary::GreaterOrEqual => truth(a >= b),
                Binary::And => truth(a != 0.0 && b != 0.0),
                Binary::Or => truth(a != 0.0 || b != 0.0),
            }
        }
        Part::If(condition, yes, no) => value(if value(condition)? != 0.0 { yes } else { no })?,
        Part::CurrentReplicas => unreachable!("formulas over triggers do not know it"),
    })
}

#[track_caller]
fn check(text: &str, expected: f64) {
    let formula = parse(text, &NAMES).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(value(formula.root(), &[]), Some(expected), "{text}");
}

#[test]
fn numbers_and_operators_are_as_in_the_language() {
    for (text, expected) in [
        ("a", 3.0),
        ("float(a)", 3.0),
        ("(a + b) / 2", 5.5),
        ("a + b * 2 - 1", 18.0),
        ("-a ** 2", -9.0),
        ("2 ** 3 ** 2", 512.0),
        ("2 ^ -1", 0.5),
        ("b % a", 2.0),
        ("1_000 + .5 + 1e2", 1100.5),
        ("trig_one > 2 ? trig_one + a : 1", 5.5),
        ("a > b ? 1 : b > a ? 2 : 3", 2.0),
        ("a > 2 && b > 2 or false ? 1 : 0", 1.0),
        ("not (a > 2) ? 1 : 0", 0.0),
        ("!(a == 3) ? 1 : +4", 4.0),
        ("(a > 1) == true ? 7 : 0", 7.0),
        ("max(a, b) + min([a, b, 1])", 9.0),
        ("sum([a, b]) / len([a, b])", 5.5),
        ("mean([a, b, 4])", 5.0),
        ("ceil(trig_one) + floor(trig_one) + round(trig_one) + int(-trig_one) + abs(-1)", 7.0),
        ("count([a, b, trig_one], {# > 2.6})", 2.0),
        ("count([a, b], # > 5) > 0 ? 10 : 1", 10.0),
        ("count([a > 1, b > 9])", 1.0),
        ("all([a, b], {# > 2}) ? 1 : 0", 1.0),
        ("any([a, b], {# > 7}) && !none([a], {# > 2}) && one([a, b], {# > 7}) ? 1 : 0", 1.0),
        ("sum([a, b], {# * 2}) + sum(map([a, b], {# + 1}))", 35.0),
        ("max(map([a, b], {sum(map([1, 2], {# * 10}))}))", 30.0),
        ("count([], {# > 1}) + sum([])", 0.0),
    ] {
        check(text, expected);
    }
}

#[test]
fn something_else_stands_for_a_trigger_without_a_value() {
    for (text, missing, expected) in [
        ("a ?? b", &[][..], Some(3.0)),
        ("a ?? b", &[0][..], Some(8.0)),
        ("a ?? b", &[0, 1][..], None),
        ("a ?? b ?? 5", &[0, 1][..], Some(5.0)),
        ("(a ?? 1) + b", &[0][..], Some(9.0)),
        ("a ?? 1 + b", &[0][..], Some(9.0)),
        ("a + b", &[0][..], None),
        ("a > 1 ? a ?? 0 : 1", &[0][..], None),
    ] {
        let formula = parse(text, &NAMES).expect("a formula");
        assert_eq!(value(formula.root(), missing), expected, "{text} without {missing:?}");
    }
}

#[test]
fn what_is_no_formula_is_refused_with_the_place() {
    for (text, expected) in [
        ("", "the end at byte 0 is not a number, a trigger or a function"),
        ("a +", "the end at byte 3 is not a number, a trigger or a function"),
        ("a b", "\"b\" at byte 2 is not an operator or the end"),
        ("nosuch + 1", "unknown name nosuch"),
        ("a > 1", "the formula must be a number, not a bool"),
        ("[a]", "the formula must be a number, not a list"),
        ("a + (b > 1)", "each side of + must be a number, not a bool"),
        ("a ? 1 : 2", "what comes before ? must be a bool, not a number"),
        ("true ? 1 : false", "what comes after : must be a number, not a bool"),
        ("median([a])", "there is no function median that takes these arguments"),
        ("abs(a, b)", "there is no function abs that takes these arguments"),
        ("max()", "there is no function max that takes these arguments"),
        ("len(a)", "there is no function len that takes these arguments"),
        ("count(a, {# > 1})", "what count takes must be a list, not a number"),
        ("count([a], {#})", "what count asks of each element must be a bool, not a number"),
        ("# + 1", "\"#\" at byte 0 is not a number, a trigger or a function"),
        ("count([a], {# > 1)", "\")\" at byte 17 is not an operator or a }"),
        ("a @ b", "\"@\" at byte 2 is not an operator or the end"),
        ("1..2", "\"1..2\" at byte 0 is not a number"),
    ] {
        let error = parse(text, &NAMES).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn no_formula_is_too_large() {
    let deep = format!("{}a{}", "(".repeat(MAX_DEPTH + 1), ")".repeat(MAX_DEPTH + 1));
    let powers = format!("a{}", "**a".repeat(MAX_DEPTH + 1));
    let signs = format!("{}a", "-".repeat(4000));
    let long = format!("max({}a)", "a,".repeat(MAX_PARTS));
    let doubled = (0..20).fold("[a]".to_owned(), |list, _| format!("map({list},{{#+#}})"));
    let doubled = format!("sum({doubled})");
    let elements = ["#"; 60].join(",");
    let of_nothing =
        (0..5).fold("[[]]".to_owned(), |list, _| format!("map({list},{{[{elements}]}})"));
    for text in [deep, powers, signs, long, doubled, of_nothing] {
        assert!(matches!(parse(&text, &NAMES), Err(ReadError::Formula(_))), "{text}");
    }
    let text = " ".repeat(MAX_LENGTH + 1);
    assert_eq!(parse(&text, &NAMES), Err(ReadError::TooLong(MAX_LENGTH + 1)));
}
