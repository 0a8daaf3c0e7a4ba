//! The tables in `testdata` were printed by Kubernetes' own selector code.

use super::*;
use proptest::prelude::*;

/// The objects that the last column of the tables is about, one digit each.
const OBJECTS: [&[(&str, &str)]; 7] = [
    &[],
    &[("a", "b")],
    &[("a", ""), ("x", "5")],
    &[("app", "web"), ("tier", "front")],
    &[("x", "y"), ("app", "in")],
    &[("example.com/role", "db"), ("x", "-3")],
    &[("x", "99999999999999999999")],
];

fn described(selector: Result<Selector, SelectorError>) -> String {
    let json = |text: String| serde_json::Value::from(text).to_string();
    match selector {
        Ok(selector) => {
            let matched = OBJECTS.map(|labels| {
                let label = |key: &str| labels.iter().find(|(known, _)| *known == key);
                if selector.matches(|key| label(key).map(|(_, value)| *value)) { "1" } else { "0" }
            });
            format!("{}\t{}", json(selector.to_string()), matched.concat())
        }
        Err(error) => format!("!{}", json(error.to_string())),
    }
}

/// Writes the JSON strings of a row as this side would.
fn same_escapes(row: &str) -> String {
    let column = |column: &str| {
        let (mark, json) = match column.strip_prefix('!') {
            Some(json) => ("!", json),
            None => ("", column),
        };
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        format!("{mark}{value}")
    };
    match row.split_once('\t') {
        Some((text, matched)) => format!("{}\t{matched}", column(text)),
        None => column(row),
    }
}

fn check_texts(table: &str) {
    for line in table.lines() {
        let (text, expected) = line.split_once('\t').expect("two columns");
        let text: String = serde_json::from_str(text).expect("JSON");
        assert_eq!(described(Selector::parse(&text)), same_escapes(expected), "{text:?}");
    }
}

#[test]
fn texts_agree_with_upstream() {
    check_texts(include_str!("../../testdata/selectors.tsv"));
}

#[test]
#[ignore = "needs SELECTOR_TABLE=selectors.tsv, more rows of the same form"]
fn texts_agree_with_upstream_on_given_table() {
    let path = std::env::var("SELECTOR_TABLE").expect("SELECTOR_TABLE");
    check_texts(&std::fs::read_to_string(path).expect("readable"));
}

#[test]
fn objects_agree_with_upstream() {
    for line in include_str!("../../testdata/label-selectors.tsv").lines() {
        let (json, rest) = line.split_once('\t').expect("three columns");
        let (printed, expected) = rest.split_once('\t').expect("three columns");
        let object: Option<LabelSelector> = serde_json::from_str(json).expect(json);
        let printed: String = serde_json::from_str(printed).expect("JSON");
        assert_eq!(LabelSelector::go_string(object.as_ref()), printed);
        let selector = match &object {
            Some(object) => object.to_selector(),
            None => Ok(Selector::nothing()),
        };
        assert_eq!(described(selector), same_escapes(expected), "{json}");
    }
}

#[test]
fn exact_values_are_found() {
    for (text, value) in [
        ("app=web", Some("web")),
        ("app==web,x=y", Some("web")),
        ("app in (web)", Some("web")),
        ("app in (web,db)", None),
        ("app!=web", None),
        ("app", None),
        ("x=web", None),
    ] {
        let selector = Selector::parse(text).expect(text);
        assert_eq!(selector.exact_value("app"), value, "{text}");
    }
}

fn requirement() -> impl Strategy<Value = String> {
    let key =
        "(a|b|[a-z0-9]([-a-z0-9]{0,5}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,9}[A-Za-z0-9])?)";
    let value = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,9}[A-Za-z0-9])?)?";
    let values = proptest::collection::vec(value, 1..4).prop_map(|values| values.join(","));
    (key, 0..9_u8, values, value, any::<i64>()).prop_map(|(key, kind, values, value, number)| {
        match kind {
            0 => key,
            1 => format!("!{key}"),
            2 => format!("{key}={value}"),
            3 => format!("{key}=={value}"),
            4 => format!("{key}!={value}"),
            5 => format!("{key} in ({values})"),
            6 => format!("{key} notin ({values})"),
            7 => format!("{key}>{}", number.unsigned_abs() / 2),
            _ => format!("{key}<{}", number.unsigned_abs() / 2),
        }
    })
}

proptest! {
    #[test]
    fn printed_selectors_read_the_same(all in proptest::collection::vec(requirement(), 0..5)) {
        let selector = Selector::parse(&all.join(" , ")).expect("valid by construction");
        let again = Selector::parse(&selector.to_string()).expect("printed selectors parse");
        prop_assert_eq!(again, selector);
    }

    #[test]
    fn any_text_ends(text in "[ab=!<>(),\\s\\x00-\\x05é]{0,30}|\\PC{0,30}") {
        let _ = Selector::parse(&text);
    }
}
