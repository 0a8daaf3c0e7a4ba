//! What an API server says of a custom object, with our own words where its own are those of its parts: regular
//! expressions, combinations of schemas, rules that cannot be evaluated.

use podscale_api::pod_autoscaler::crd::pattern_in_words;
use podscale_api::pod_autoscaler::spec::ON_MISSING;

/// What is said of a field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Said {
    pub(super) field: String,
    pub(super) problem: String,
}

const UNCHECKED: &str = "some validation rules were not checked";
const MORE: &str =
    "more may be wrong: what must hold between fields is checked once the other errors are gone";
const EVALUATING: &str = " evaluating rule: ";

/// Everything that is said, in words that need no knowledge of the definition; nothing twice.
pub(super) fn plain(said: Vec<Said>) -> Vec<Said> {
    let mut all: Vec<Said> = Vec::with_capacity(said.len());
    let (failed, others): (Vec<Said>, Vec<Said>) =
        said.into_iter().partition(|one| one.problem.contains(EVALUATING));
    for one in others {
        let one = reworded(one);
        if !all.contains(&one) {
            all.push(one);
        }
    }
    for Said { field, problem } in failed {
        // A rule cannot judge what is wrong already.
        if !all.iter().any(|known| known.field == field) {
            let rule = problem.split_once(EVALUATING).map_or("", |(_, rule)| rule);
            let problem = format!("the rule of the definition cannot be evaluated for it: {rule}");
            all.push(Said { field, problem });
        }
    }
    all
}

fn reworded(Said { field, problem }: Said) -> Said {
    if problem.contains(UNCHECKED) {
        return Said { field: String::new(), problem: MORE.to_owned() };
    }
    // Combinations of schemas are reported without a place, which is in the text.
    let placed = problem.strip_prefix("Invalid value: \"\": \"").filter(|_| field == "<nil>");
    let field = match placed.and_then(|rest| rest.split_once("\" must ")) {
        Some((path, _)) => path.to_owned(),
        None => field,
    };
    if field.ends_with(".onMissing") || field.ends_with(".onMissing.replicas") {
        let problem = format!("Invalid value: {}must be {ON_MISSING}", value_of(&problem));
        return Said { field, problem };
    }
    let pattern = problem.split_once(" in body should match '");
    let pattern = pattern.and_then(|(_, rest)| rest.strip_suffix('\''));
    if let Some(words) = pattern.and_then(pattern_in_words) {
        let problem = format!("Invalid value: {}must be {words}", value_of(&problem));
        return Said { field, problem };
    }
    if placed.is_some() {
        return Said { field, problem: "Invalid value: it is none of what may be here".to_owned() };
    }
    Said { field, problem }
}

/// The value that a refusal shows, with what separates it from the rest.
fn value_of(problem: &str) -> String {
    let value = problem.strip_prefix("Invalid value: ").and_then(|rest| rest.split_once(": spec."));
    value.map_or_else(String::new, |(value, _)| format!("{value}: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_schemas_and_rules_become_plain() {
        let path = "spec.metrics[0].onMissing";
        let missing = format!("must be {ON_MISSING}");
        let below = format!("{path}.replicas");
        let duration = r#"Invalid value: "soon": spec.warmUp in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'"#;
        for (said, expected) in [
            (
                vec![(
                    path,
                    "Invalid value: -3: spec.metrics[0].onMissing in body should be greater than or equal to 0",
                )],
                vec![(path, format!("Invalid value: -3: {missing}"))],
            ),
            (
                vec![(
                    "<nil>",
                    "Invalid value: \"\": \"spec.metrics[0].onMissing\" must not validate the schema (not)",
                )],
                vec![(path, format!("Invalid value: {missing}"))],
            ),
            (
                vec![(below.as_str(), "Required value"), (&below, "Required value")],
                vec![(&below, format!("Invalid value: {missing}"))],
            ),
            (
                vec![("spec.warmUp", duration)],
                vec![(
                    "spec.warmUp",
                    "Invalid value: \"soon\": must be a length of time such as 90s or 1h30m"
                        .to_owned(),
                )],
            ),
            (
                vec![
                    (
                        "spec.syncPeriod",
                        "Invalid value: \"string\": no such overload evaluating rule: duration(self) > 1",
                    ),
                    (
                        "<nil>",
                        "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
                    ),
                ],
                vec![
                    ("", MORE.to_owned()),
                    (
                        "spec.syncPeriod",
                        "the rule of the definition cannot be evaluated for it: duration(self) > 1"
                            .to_owned(),
                    ),
                ],
            ),
            // It was said already.
            (
                vec![
                    ("spec.a", "Invalid value: no such overload evaluating rule: x"),
                    ("spec.a", "Required value"),
                ],
                vec![("spec.a", "Required value".to_owned())],
            ),
        ] {
            let given = said.iter().map(|(field, problem)| Said {
                field: (*field).to_owned(),
                problem: (*problem).to_owned(),
            });
            let found: Vec<(String, String)> =
                plain(given.collect()).into_iter().map(|one| (one.field, one.problem)).collect();
            let expected: Vec<(String, String)> =
                expected.into_iter().map(|(field, problem)| (field.to_owned(), problem)).collect();
            assert_eq!(found, expected, "{said:?}");
        }
    }
}
