//! Between the formulas of ScaledObjects and the expressions of PodAutoscalers: both are read into the core's formulas,
//! and written from them.

use crate::expression;
use crate::keda::formula;
use podscale_core::model::{Binary, Fact, Part, Unary};

/// What a formula makes of the values of triggers, and what that is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compared {
    /// The formula.
    pub(super) formula: String,
    /// What is one replica.
    pub(super) target: f64,
    /// Whether the target is for all replicas together, as `Value` has it.
    pub(super) is_for_all: bool,
}

/// A formula over triggers of these names as an expression for the size, which is not smaller than what these other
/// metrics ask for. None if the language of expressions cannot say it.
pub(super) fn to_expression(
    compared: &Compared,
    names: &[&str],
    others: &[&str],
) -> Option<String> {
    let read = formula::parse(&compared.formula, names).ok()?;
    let value = text(read.root(), names, Language::Expression)?;
    let current = if compared.is_for_all { "currentReplicas * " } else { "" };
    let mut size = format!("{current}{value} / {}", number(compared.target)?);
    if !others.is_empty() {
        size = format!("max({size}, {})", others.join(", "));
    }
    let all: Vec<Option<&str>> = names.iter().chain(others).map(|name| Some(*name)).collect();
    expression::parse(&size, &all).ok().map(|_| size)
}

/// An expression over metrics of these names as a formula over triggers. The last metrics, so many, are those that
/// formulas do not know. None if a formula cannot say it.
pub(super) fn to_formula(text_of: &str, names: &[&str], others: usize) -> Option<Compared> {
    let all: Vec<Option<&str>> = names.iter().map(|name| Some(*name)).collect();
    let read = expression::parse(text_of, &all).ok()?;
    let known = names.len().checked_sub(others)?;
    let (size, rest) = without_others(read.root(), known)?;
    // What is left out of the formula decides beside it, as it does with KEDA.
    if rest != others {
        return None;
    }
    let names = names.get(..known)?;
    let (value, target, is_for_all) = match size {
        Part::Binary(Binary::Divide, above, target) => match (&**above, &**target) {
            (Part::Binary(Binary::Multiply, current, value), Part::Number(target))
                if **current == Part::CurrentReplicas =>
            {
                (&**value, *target, true)
            }
            (value, Part::Number(target)) => (value, *target, false),
            _ => (size, 1.0, false),
        },
        _ => (size, 1.0, false),
    };
    let written = text(value, names, Language::Formula)?;
    let plain = written.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    // The outer brackets are one pair only if what is inside can be read by itself.
    let inside =
        plain.filter(|inside| formula::parse(inside, names).is_ok_and(|it| it.root() == value));
    let formula = inside.unwrap_or(&written).to_owned();
    let same = formula::parse(&formula, names).ok()?;
    (*same.root() == *value).then_some(Compared { formula, target, is_for_all })
}

/// A size without the metrics from this place on that it is the largest of, and how many these are.
fn without_others(size: &Part, known: usize) -> Option<(&Part, usize)> {
    match size {
        Part::Binary(Binary::Max, rest, other) => match **other {
            Part::Metric { metric, fact: Fact::Replicas } if metric as usize >= known => {
                let (size, found) = without_others(rest, known)?;
                Some((size, found + 1))
            }
            _ => Some((size, 0)),
        },
        _ => Some((size, 0)),
    }
}

/// The two ways to write the same.
#[derive(Clone, Copy, PartialEq)]
enum Language {
    Expression,
    Formula,
}

/// A part in a language, in brackets if it is made of others by operators.
fn text(part: &Part, names: &[&str], language: Language) -> Option<String> {
    let of = |part: &Part| text(part, names, language);
    let name = |metric: u32| names.get(metric as usize).copied().filter(|name| !name.is_empty());
    Some(match part {
        Part::Number(value) => number(*value)?,
        Part::Metric { metric, fact: Fact::Total } => match language {
            Language::Expression => format!("{}.total", name(*metric)?),
            Language::Formula => name(*metric)?.to_owned(),
        },
        Part::Has { metric } if language == Language::Expression => {
            format!("has({}.total)", name(*metric)?)
        }
        Part::If(condition, yes, no) => match (&**condition, &**yes) {
            (Part::Has { metric }, Part::Metric { metric: same, fact: Fact::Total })
                if language == Language::Formula && metric == same =>
            {
                format!("({} ?? {})", of(yes)?, of(no)?)
            }
            _ => format!("({} ? {} : {})", of(condition)?, of(yes)?, of(no)?),
        },
        Part::Unary(function, a) => {
            let a = of(a)?;
            match function {
                Unary::Negate => format!("(-{a})"),
                Unary::Not => format!("(!{a})"),
                Unary::Ceil => format!("ceil({a})"),
                Unary::Floor => format!("floor({a})"),
                Unary::Round => format!("round({a})"),
                Unary::Abs => format!("abs({a})"),
                Unary::Truncate if language == Language::Formula => format!("int({a})"),
                Unary::Truncate => return None,
            }
        }
        Part::Binary(function, a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            let operator = match function {
                Binary::Max => return Some(format!("max({a}, {b})")),
                Binary::Min => return Some(format!("min({a}, {b})")),
                Binary::Power if language == Language::Expression => return None,
                Binary::Power => "**",
                Binary::Add => "+",
                Binary::Subtract => "-",
                Binary::Multiply => "*",
                Binary::Divide => "/",
                Binary::Remainder => "%",
                Binary::Equal => "==",
                Binary::NotEqual => "!=",
                Binary::Less => "<",
                Binary::LessOrEqual => "<=",
                Binary::Greater => ">",
                Binary::GreaterOrEqual => ">=",
                Binary::And => "&&",
                Binary::Or => "||",
            };
            format!("({a} {operator} {b})")
        }
        Part::CurrentReplicas | Part::Has { .. } | Part::Metric { .. } => return None,
    })
}

/// A number as both languages read it.
fn number(value: f64) -> Option<String> {
    (0.0..1e15).contains(&value).then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(formula: &str, target: f64, is_for_all: bool) -> Compared {
        Compared { formula: formula.to_owned(), target, is_for_all }
    }

    #[test]
    fn what_both_can_say_comes_back_as_it_was() {
        for (formula, target, is_for_all, others, expected) in [
            ("jobs", 10.0, false, &[][..], "jobs.total / 10"),
            ("jobs + (mails * 2)", 5.0, false, &[], "(jobs.total + (mails.total * 2)) / 5"),
            ("jobs / mails", 2.5, true, &[], "currentReplicas * (jobs.total / mails.total) / 2.5"),
            (
                "max(jobs, mails)",
                1.0,
                false,
                &["cpu"],
                "max(max(jobs.total, mails.total) / 1, cpu)",
            ),
            ("jobs ?? mails", 2.0, false, &[], "(has(jobs.total) ? jobs.total : mails.total) / 2"),
            ("(jobs > 5) ? jobs : 0", 2.0, false, &[], "((jobs.total > 5) ? jobs.total : 0) / 2"),
        ] {
            let given = compared(formula, target, is_for_all);
            let found = to_expression(&given, &["jobs", "mails"], others);
            assert_eq!(found.as_deref(), Some(expected), "{formula}");
            let mut names = vec!["jobs", "mails"];
            names.extend(others);
            assert_eq!(to_formula(expected, &names, others.len()), Some(given), "{expected}");
        }
        // However the numbers are written.
        let written = to_formula("queue.total * 3 + 1", &["queue"], 0);
        assert_eq!(written, Some(compared("(queue * 3) + 1", 1.0, false)));
    }

    #[test]
    fn what_one_of_them_cannot_say_is_not_said() {
        for formula in ["jobs ** 2", "int(jobs)", "other + 1", "jobs +"] {
            assert_eq!(
                to_expression(&compared(formula, 1.0, false), &["jobs"], &[]),
                None,
                "{formula}"
            );
        }
        for (text, others) in [
            ("jobs", 0),
            ("jobs.value / 2", 0),
            ("jobs.total + currentReplicas", 0),
            ("max(jobs.total, cpu)", 0),
            ("jobs.total / 2", 1),
            ("min(jobs.total / 2, cpu)", 1),
        ] {
            assert_eq!(to_formula(text, &["jobs", "cpu"], others), None, "{text}");
        }
    }
}
