//! Upstream's texts speak of "the HPA" and its controller. An autoscaler of another kind is called by that
//! in what is stored; the rules, and Recordings, know upstream's texts only.

use super::v2::Condition;
use std::borrow::Cow;

/// How upstream's texts call an autoscaler.
pub const HPA: &str = "HPA";

/// What a text of upstream's says of an autoscaler of this kind.
#[must_use]
pub fn about<'a>(message: &'a str, kind: &str) -> Cow<'a, str> {
    retold(message, HPA, kind)
}

/// The text of upstream's that a text about an autoscaler of this kind was made of.
#[must_use]
pub fn about_hpa<'a>(message: &'a str, kind: &str) -> Cow<'a, str> {
    retold(message, kind, HPA)
}

fn retold<'a>(message: &'a str, from: &str, to: &str) -> Cow<'a, str> {
    if from == to {
        return message.into();
    }
    let subject = message.strip_prefix("the ").and_then(|rest| rest.strip_prefix(from));
    match subject.filter(|rest| rest.starts_with(' ')) {
        Some(rest) => format!("the {to}{rest}").into(),
        None => message.into(),
    }
}

/// A condition with upstream's text as one of an autoscaler of this kind.
#[must_use]
pub fn condition_about(condition: &Condition, kind: &str) -> Condition {
    Condition { message: about(&condition.message, kind).into_owned(), ..condition.clone() }
}

/// A condition of an autoscaler of this kind as one with upstream's text.
#[must_use]
pub fn condition_about_hpa(condition: &Condition, kind: &str) -> Condition {
    Condition { message: about_hpa(&condition.message, kind).into_owned(), ..condition.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_the_kind_and_come_back() {
        for (upstream, ours) in [
            (
                "the HPA controller was able to get the target's current scale",
                "the CHPA controller was able to get the target's current scale",
            ),
            (
                "the HPA was unable to compute the replica count: the HPA x",
                "the CHPA was unable to compute the replica count: the HPA x",
            ),
            (
                "the HPA target's scale is missing a selector",
                "the CHPA target's scale is missing a selector",
            ),
            ("the HPAs are many", "the HPAs are many"),
            ("recommended size matches current size", "recommended size matches current size"),
        ] {
            assert_eq!(about(upstream, "CHPA"), ours);
            assert_eq!(about_hpa(ours, "CHPA"), upstream);
            assert_eq!(about(upstream, HPA), upstream);
        }
    }
}
