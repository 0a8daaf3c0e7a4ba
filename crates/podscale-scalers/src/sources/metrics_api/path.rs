//! Where in a JSON document a value is, in the syntax of GJSON that KEDA uses: `a.b`, `list.0`, `list.#`,
//! `list.#(name=="x").size`, `list.#.size|0`, `odd\.name`, `wild*`, `@this`, `object.@keys.#`.

mod modifier;
#[cfg(test)]
mod tests;

use modifier::Modifier;
use serde_json::Value;
use std::borrow::Cow;

/// How deep a path goes at most.
const MOST_STEPS: usize = 64;
/// How deep conditions may stand in conditions: each takes some of the stack.
const MOST_NESTED: usize = 8;
/// How long a path is at most.
const LONGEST_BYTES: usize = 1024;

/// A path; what is after a pipe applies to all that is before it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path(Vec<Vec<Step>>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    /// A member of an object or an element of a list; `*` and `?` stand for others if it is wild.
    Key { name: Vec<(char, bool)> },
    /// Each element of a list, or how many there are if nothing follows.
    Each,
    /// The first element of a list that meets a condition, or all of them.
    Find { path: Box<Path>, condition: Condition, all: bool },
    /// Something that is made of the value.
    Modify(Modifier),
}

#[derive(Clone, Debug, PartialEq)]
enum Condition {
    Exists,
    Is(Operator, Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
}

/// The longer ones first.
const OPERATORS: [(&str, Operator); 9] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("!%", Operator::NotLike),
    ("=", Operator::Equal),
    ("<", Operator::Less),
    (">", Operator::Greater),
    ("%", Operator::Like),
];

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// It uses something of GJSON that is not known here, or is broken.
    pub(super) fn parse(text: &str) -> Result<Path, String> {
        if text.len() > LONGEST_BYTES {
            return Err(format!("it is longer than {LONGEST_BYTES} bytes"));
        }
        Path::parse_within(text, MOST_NESTED)
    }

    fn parse_within(text: &str, nested: usize) -> Result<Path, String> {
        let mut segments = vec![Vec::new()];
        let mut rest = text;
        let mut count = 0;
        while !rest.is_empty() {
            count += 1;
            if count > MOST_STEPS {
                return Err(format!("it has more than {MOST_STEPS} steps"));
            }
            let (step, after) = step(rest, nested)?;
            add(&mut segments, step, rest)?;
            rest = match after.chars().next() {
                Some('|') => {
                    segments.push(Vec::new());
                    &after[1..]
                }
                Some('.') => &after[1..],
                Some(other) => return Err(format!("{other:?} is not expected after {rest:?}")),
                None => "",
            };
        }
        let path = Path(segments);
        path.refuse_unordered()?;
        Ok(path)
    }

    /// Members of an object can be counted, and no more: which of them comes first is not known.
    fn refuse_unordered(&self) -> Result<(), String> {
        let mut steps = self.0.iter().flatten();
        let loses = |step: &Step| matches!(step, Step::Modify(found) if found.loses_order());
        if !steps.any(loses) {
            return Ok(());
        }
        let rest: Vec<&Step> = steps.collect();
        let counts = match rest.split_last() {
            Some((Step::Each, before)) => {
                before.iter().all(|step| matches!(step, Step::Find { all: true, .. }))
            }
            _ => false,
        };
        match counts {
            true => Ok(()),
            false => Err("of @keys and @values only the number is known: let # follow, or #(…)#|#"
                .to_owned()),
        }
    }

    /// What is there; nothing is `null`.
    pub(super) fn get<'a>(&self, document: &'a Value) -> Cow<'a, Value> {
        let mut at = Cow::Borrowed(document);
        for segment in &self.0 {
            at = match at {
                Cow::Borrowed(value) => walk(segment, value),
                Cow::Owned(value) => Cow::Owned(walk(segment, &value).into_owned()),
            };
        }
        at
    }
}

/// Adds a step to the last segment. A modifier begins one: it applies to all that is before it.
fn add(segments: &mut Vec<Vec<Step>>, step: Step, text: &str) -> Result<(), String> {
    let is_modifier = matches!(step, Step::Modify(_));
    let is_of_each = |step: &Step| matches!(step, Step::Each | Step::Find { all: true, .. });
    match segments.last_mut() {
        Some(last) if is_modifier && last.iter().any(is_of_each) => {
            Err(format!("{text:?} would apply to each element: write a pipe before it"))
        }
        Some(last) if !is_modifier || last.is_empty() => {
            last.push(step);
            Ok(())
        }
        _ => {
            segments.push(vec![step]);
            Ok(())
        }
    }
}

/// The first step of a path, and what follows it.
fn step(text: &str, nested: usize) -> Result<(Step, &str), String> {
    if let Some(rest) = text.strip_prefix('#') {
        let Some(condition) = rest.strip_prefix('(').or(rest.strip_prefix('[')) else {
            return Ok((Step::Each, rest));
        };
        let end =
            closing(condition).ok_or_else(|| format!("a bracket is not closed in {text:?}"))?;
        let (condition, after) = (&condition[..end], &condition[end + 1..]);
        let (all, after) = match after.strip_prefix('#') {
            Some(after) => (true, after),
            None => (false, after),
        };
        let inside = nested.checked_sub(1).ok_or_else(|| {
            format!("conditions stand in conditions more than {MOST_NESTED} deep")
        })?;
        let (path, condition) = find(condition, inside)?;
        return Ok((Step::Find { path: Box::new(path), condition, all }, after));
    }
    if let Some(rest) = text.strip_prefix('@') {
        let (modifier, rest) = Modifier::parse(rest)?;
        return Ok((Step::Modify(modifier), rest));
    }
    if let Some(first) = text.chars().next().filter(|first| "!{[".contains(*first)) {
        return Err(format!(
            "{first:?} begins a part of GJSON that is not supported; use names, numbers, # and #(…)"
        ));
    }
    let mut name = Vec::new();
    let mut chars = text.char_indices();
    while let Some((at, found)) = chars.next() {
        match found {
            '\\' => name.extend(chars.next().map(|(_, escaped)| (escaped, false))),
            '.' | '|' => return Ok((Step::Key { name }, &text[at..])),
            '*' | '?' => name.push((found, true)),
            other => name.push((other, false)),
        }
    }
    Ok((Step::Key { name }, ""))
}

/// Where the bracket closes that was opened before a text, quotes left out.
fn closing(text: &str) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (1, false, false);
    for (at, found) in text.char_indices() {
        match found {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// What is compared, and with what.
fn find(condition: &str, nested: usize) -> Result<(Path, Condition), String> {
    let found = condition.char_indices().find_map(|(at, _)| {
        let of = |(text, operator): &(&str, Operator)| {
            condition[at..].starts_with(text).then_some((at, text.len(), *operator))
        };
        OPERATORS.iter().find_map(of)
    });
    let Some((at, length, operator)) = found else {
        return Ok((Path::parse_within(condition.trim(), nested)?, Condition::Exists));
    };
    let wanted = condition[at + length..].trim();
    if wanted.starts_with('~') {
        return Err("comparisons with ~ are not supported".to_owned());
    }
    // What is no JSON is a text without quotes.
    let wanted = serde_json::from_str(wanted).unwrap_or_else(|_| Value::from(wanted));
    let path = Path::parse_within(condition[..at].trim(), nested)?;
    Ok((path, Condition::Is(operator, wanted)))
}

fn walk<'a>(steps: &[Step], value: &'a Value) -> Cow<'a, Value> {
    let nothing = Cow::Owned(Value::Null);
    let Some((step, rest)) = steps.split_first() else { return Cow::Borrowed(value) };
    match (step, value) {
        (Step::Modify(modifier), value) => match modifier.apply(value) {
            Cow::Borrowed(value) => walk(rest, value),
            Cow::Owned(value) => Cow::Owned(walk(rest, &value).into_owned()),
        },
        (Step::Key { name }, Value::Object(members)) => {
            let member = members.iter().find(|(key, _)| is_like(key, name));
            member.map_or(nothing, |(_, value)| walk(rest, value))
        }
        (Step::Key { name }, Value::Array(list)) => {
            let index: String = name.iter().map(|(found, _)| *found).collect();
            let element = index.parse::<usize>().ok().and_then(|index| list.get(index));
            element.map_or(nothing, |value| walk(rest, value))
        }
        (Step::Each, Value::Array(list)) if rest.is_empty() => Cow::Owned(list.len().into()),
        (Step::Each, Value::Array(list)) => {
            let found = list.iter().map(|value| walk(rest, value)).filter(|found| !found.is_null());
            Cow::Owned(found.map(Cow::into_owned).collect())
        }
        (Step::Find { path, condition, all: false }, Value::Array(list)) => {
            let found = list.iter().find(|element| condition.meets(&path.get(element)));
            found.map_or(nothing, |value| walk(rest, value))
        }
        (Step::Find { path, condition, all: true }, Value::Array(list)) => {
            let found = list.iter().filter(|element| condition.meets(&path.get(element)));
            let found = Value::Array(found.cloned().collect());
            let each = [&[Step::Each][..], rest].concat();
            let steps = match rest {
                [] => return Cow::Owned(found),
                [Step::Each] => rest,
                _ => &each,
            };
            Cow::Owned(walk(steps, &found).into_owned())
        }
        _ => nothing,
    }
}

impl Condition {
    fn meets(&self, found: &Value) -> bool {
        let Condition::Is(operator, wanted) = self else { return !found.is_null() };
        let order = match (found, wanted) {
            (Value::String(found), Value::String(wanted)) => Some(found.cmp(wanted)),
            (Value::Number(found), Value::Number(wanted)) => {
                found.as_f64().partial_cmp(&wanted.as_f64())
            }
            (found, wanted) if found == wanted => Some(std::cmp::Ordering::Equal),
            _ => None,
        };
        let like = || match (found, wanted) {
            (Value::String(found), Value::String(wanted)) => is_like(found, &pattern(wanted)),
            _ => false,
        };
        match operator {
            Operator::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Operator::NotEqual => !order.is_some_and(std::cmp::Ordering::is_eq),
            Operator::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Operator::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Operator::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Operator::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
            Operator::Like => like(),
            Operator::NotLike => !like(),
        }
    }
}

fn pattern(text: &str) -> Vec<(char, bool)> {
    text.chars().map(|found| (found, matches!(found, '*' | '?'))).collect()
}

/// Whether a text matches a pattern, whose wild characters are marked. Goes back to the last star only, so it
/// takes no longer than both lengths multiplied.
fn is_like(text: &str, pattern: &[(char, bool)]) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut seen, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(seen) {
            Some(('*', true)) => {
                star = Some((seen, at));
                seen += 1;
            }
            Some((wanted, wild)) if *wild || *wanted == text[at] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((place, began)) = star else { return false };
                star = Some((place, began + 1));
                (seen, at) = (place + 1, began + 1);
            }
        }
    }
    pattern[seen..].iter().all(|wild| *wild == ('*', true))
}
