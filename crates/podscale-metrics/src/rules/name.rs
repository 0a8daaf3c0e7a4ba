//! How a series is called in the API: `matches` finds, `as` replaces.

use super::series::expression;
use regex::Regex;

/// How series are named.
#[derive(Clone, Debug)]
pub(super) struct NameRule {
    matches: Regex,
    replacement: Box<str>,
}

/// A part of `name` that cannot be used, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NameProblem {
    Matches(String),
    As(String),
}

impl NameRule {
    /// Reads both parts; without an expression every name is kept.
    pub(super) fn new(matches: &str, replacement: &str) -> Result<NameRule, NameProblem> {
        let pattern = if matches.is_empty() { ".*" } else { matches };
        let pattern = expression(pattern).map_err(NameProblem::Matches)?;
        let replacement = match (replacement, pattern.captures_len()) {
            ("", 1) => "$0",
            ("", 2) => "$1",
            ("", _) => {
                let problem =
                    "must be set, because matches has several groups: for instance ${1}_${2}";
                return Err(NameProblem::As(problem.to_owned()));
            }
            (text, _) => text,
        };
        check_references(replacement, &pattern).map_err(NameProblem::As)?;
        Ok(NameRule { matches: pattern, replacement: replacement.into() })
    }

    /// Whether a series has a name by this rule.
    pub(super) fn accepts(&self, series: &str) -> bool {
        self.matches.is_match(series)
    }

    /// The name of a series: what `as` makes of the part that matches; the rest is dropped.
    pub(super) fn of(&self, series: &str) -> Option<String> {
        let mut name = String::new();
        self.matches.captures(series)?.expand(&self.replacement, &mut name);
        Some(name)
    }
}

/// Every `$name` must be a group: Go replaces others with nothing, which is never meant.
fn check_references(replacement: &str, pattern: &Regex) -> Result<(), String> {
    let exists = |name: &str| match name.parse::<usize>() {
        Ok(number) => number < pattern.captures_len(),
        Err(_) => pattern.capture_names().flatten().any(|known| known == name),
    };
    let mut rest = replacement;
    while let Some(at) = rest.find('$') {
        rest = rest.get(at + 1..).unwrap_or_default();
        if let Some(after) = rest.strip_prefix('$') {
            rest = after;
            continue;
        }
        let (name, braces) = match rest.strip_prefix('{') {
            Some(inner) => match inner.split_once('}') {
                Some((name, _)) => (name, true),
                None => return Err("${ is not closed by }".to_owned()),
            },
            None => {
                let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
                (rest.get(..end).unwrap_or_default(), false)
            }
        };
        if !exists(name) {
            let digits = name.find(|c: char| !c.is_ascii_digit()).filter(|end| *end > 0);
            let hint = match digits.and_then(|end| name.split_at_checked(end)) {
                Some((number, text)) if !braces => format!("; did you mean ${{{number}}}{text}?"),
                _ => "; write $$ for a dollar sign".to_owned(),
            };
            return Err(format!("${name} is not a group of matches{hint}"));
        }
    }
    Ok(())
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_from_groups() {
        for (matches, replacement, series, expected) in [
            ("", "", "http_total", Some("http_total")),
            ("", "fixed", "http_total", Some("fixed")),
            ("", "a_$0", "http", Some("a_http")),
            ("", "${0}_b", "http", Some("http_b")),
            ("", "${0}_${0}", "http", Some("http_http")),
            ("", "a$$b", "http", Some("a$b")),
            ("^(.*)_total$", "", "http_total", Some("http")),
            ("^(.*)_total$", "", "http", None),
            ("^(.*)_total$", "${1}_per_second", "http_total", Some("http_per_second")),
            ("^container_(.*)_seconds_total$", "", "container_cpu_seconds_total", Some("cpu")),
            ("http", "", "xhttpx", Some("http")),
            ("(?P<kind>a|b)_(c)", "${kind}.$2", "b_c", Some("b.c")),
            ("^a$", "$$1", "a", Some("$1")),
            ("(a)|b", "x$1", "b", Some("x")),
        ] {
            let rule = NameRule::new(matches, replacement).expect(matches);
            assert_eq!(rule.of(series).as_deref(), expected, "{matches} {replacement} {series}");
            assert_eq!(rule.accepts(series), expected.is_some(), "{matches} {series}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (matches, replacement, problem) in [
            ("(a)(b)", "", "must be set"),
            (
                "(a)",
                "$1_per_second",
                "$1_per_second is not a group of matches; did you mean ${1}_per_second?",
            ),
            ("(a)", "$2", "$2 is not a group of matches; write $$"),
            ("", "$1", "$1 is not a group"),
            ("(a)", "${b}", "$b is not a group"),
            ("(a)", "${1", "not closed"),
            ("(a", "", "not a regular expression: unclosed group"),
        ] {
            let problem_found = match NameRule::new(matches, replacement) {
                Err(NameProblem::As(problem) | NameProblem::Matches(problem)) => problem,
                Ok(_) => panic!("{matches} {replacement} is accepted"),
            };
            assert!(problem_found.contains(problem), "{matches} {replacement}: {problem_found}");
        }
    }
}
