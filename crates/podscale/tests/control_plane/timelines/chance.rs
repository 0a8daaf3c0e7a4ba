//! Everything in which two runs of kube-controller-manager itself may differ, and so is not compared.
//! This is the whole list; whatever is not named here has to be the same.
//!
//! 1. **Times.** Condition transitions and the last scaling happen at the moment of a pass. Whether they
//!    moved in a step is compared.
//! 2. **Counts of events.** An event that each pass repeats has counted as many passes as there were.
//!    Whether it happened once or again is compared.
//! 3. **The event budget.** The recorder accepts 25 events of a type about an object, then one every five
//!    minutes. Which ones come through after that depends on the number of passes. See [`BUDGET`].
//! 4. **Combined events.** From the tenth message of one reason on the recorder combines them, but forgets
//!    a random one of the ten each time (`PopAny`), so that an old message may come through by itself or
//!    combined.
//! 5. **The autoscalers that an ambiguous selector names as examples** are any two, in any order, of a map.
//! 6. **The pod that a missing request names** is the first of a map.
//! 7. **Conversions from floating point that do not fit** give the smallest integer on amd64 and the
//!    nearest one on arm64. Podscale does the latter everywhere.

/// How many events of one type about one object are recorded for certain.
pub const BUDGET: i64 = 25;

/// What the message of a combined event begins with.
pub const COMBINED: &str = "(combined from similar events): ";

/// What upstream makes of a quotient with zero on amd64.
const NOT_A_NUMBER: &str = "-9223372036854775808m";

/// A text without what is there by chance, and without the namespace, which two runs do not share.
pub fn normalise(text: &str, namespace: &str) -> String {
    let text = text.replace(NOT_A_NUMBER, "0").replace(namespace, "NAMESPACE");
    let text = replace_between(&text, "are controlled by more than one HPA (e.g. [", "])", "…");
    replace_word_after(&text, "missing request for ", " of Pod ", "…")
}

/// Replaces what is between two texts, wherever they are.
fn replace_between(text: &str, begin: &str, end: &str, with: &str) -> String {
    let mut parts = text.split(begin);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.split_once(end).map_or(part, |(_, rest)| rest);
        result.push_str(begin);
        result.push_str(with);
        result.push_str(end);
        result.push_str(rest);
    }
    result
}

/// Replaces the word after `marker` in what follows `begin`.
fn replace_word_after(text: &str, begin: &str, marker: &str, with: &str) -> String {
    if !text.contains(begin) {
        return text.to_owned();
    }
    let mut parts = text.split(marker);
    let mut result = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find([' ', '"', ',']).unwrap_or(part.len());
        result.push_str(marker);
        result.push_str(with);
        result.push_str(&part[end..]);
    }
    result
}
