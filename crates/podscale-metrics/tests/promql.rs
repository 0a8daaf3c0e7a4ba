//! Whatever is asked for, the matchers of queries are PromQL and mean what was asked for. The strings are read
//! by a small reader of Go's escapes here; tests/prometheus.rs has the real Prometheus read such ones.

use podscale_api::Selector;
use podscale_metrics::rules::matchers::Matchers;
use proptest::prelude::*;
use regex::Regex;

/// A matcher as Prometheus reads it.
struct Matcher {
    operator: String,
    value: String,
}

impl Matcher {
    /// Reads `label operator "string"`, and nothing may be left.
    fn read(text: &str) -> Matcher {
        let (before, quoted) = text.split_once('"').expect("a string");
        let label = before.trim_end_matches(['=', '!', '~']);
        assert!(label.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()), "{text}");
        let mut value = String::new();
        let mut chars = quoted.chars();
        loop {
            match chars.next().expect("the end of the string") {
                '"' => break,
                '\n' => panic!("a line break in {text:?}"),
                '\\' => value.push(escaped(&mut chars)),
                c => value.push(c),
            }
        }
        assert_eq!(chars.as_str(), "", "{text}");
        Matcher { operator: before[label.len()..].to_owned(), value }
    }

    fn accepts(&self, text: &str) -> bool {
        let matches = || Regex::new(&format!("^(?s:{})$", self.value)).expect("RE2").is_match(text);
        match self.operator.as_str() {
            "=" => self.value == text,
            "!=" => self.value != text,
            "=~" => matches(),
            "!~" => !matches(),
            other => panic!("{other} is no operator"),
        }
    }
}

fn escaped(chars: &mut std::str::Chars<'_>) -> char {
    let digits = match chars.next().expect("an escape") {
        'n' => return '\n',
        't' => return '\t',
        'r' => return '\r',
        'a' => return '\x07',
        'b' => return '\x08',
        'f' => return '\x0c',
        'v' => return '\x0b',
        c @ ('"' | '\\') => return c,
        'x' => 2,
        'u' => 4,
        'U' => 8,
        other => panic!("\\{other} is no escape"),
    };
    let code: String = chars.by_ref().take(digits).collect();
    char::from_u32(u32::from_str_radix(&code, 16).expect("digits")).expect("a character")
}

proptest! {
    #[test]
    fn names_of_objects_match_themselves_and_nothing_else(
        names in prop::collection::vec("[ -~é日\\n\\t\"\\\\\u{7f}\u{200b}]{0,12}", 1..6),
        other in "[ -~]{0,6}",
    ) {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut matchers = Matchers::default();
        matchers.one_of("pod", &names);
        let matcher = Matcher::read(&matchers.text());
        for name in &names {
            prop_assert!(matcher.accepts(name), "{:?} by {}", name, matchers.text());
        }
        prop_assert_eq!(matcher.accepts(&other), names.contains(&other.as_str()));
    }

    #[test]
    fn selectors_become_matchers(
        key in "[a-zA-Z][a-zA-Z0-9_]{0,8}[a-zA-Z]",
        values in prop::collection::vec("[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,6}[a-zA-Z0-9])?", 1..4),
        shape in 0..6_u8,
    ) {
        let (first, list) = (&values[0], values.join(","));
        let text = match shape {
            0 => format!("{key}={first}"),
            1 => format!("{key}!={first}"),
            2 => format!("{key} in ({list})"),
            3 => format!("{key} notin ({list})"),
            4 => key.clone(),
            _ => format!("!{key}"),
        };
        let Ok(selector) = Selector::parse(&text) else { return Ok(()) };
        let matchers = Matchers::of_selector(&selector).expect("matchers");
        let matcher = Matcher::read(&matchers.text());
        // An absent label is an empty one for Prometheus.
        prop_assert_eq!(matcher.accepts(""), selector.matches(|_| None), "{}", text);
        for value in &values {
            let selected = selector.matches(|_| Some(value));
            prop_assert_eq!(matcher.accepts(value), selected, "{} {}", text, value);
        }
    }
}
