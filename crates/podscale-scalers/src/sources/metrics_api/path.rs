//! Where in a JSON document a value is, in the syntax of GJSON that KEDA uses: `a.b`, `list.0`, `list.#`,
//! `list.#(name=="x").size`, `list.#.size|0`, `odd\.name`, `wild*`, `@this`, `object.@keys.#`, `[a.x,b.y].#`.
//! Objects are not kept in their order, so nothing is answered that depends on it.

mod condition;
mod modifier;
mod selectors;
#[cfg(test)]
mod tests;

use condition::{Condition, is_like};
use modifier::Modifier;
use selectors::Selectors;
use serde_json::Value;
use std::borrow::Cow;

/// How deep a path goes at most.
const MOST_STEPS: usize = 64;
/// How deep conditions may stand in conditions: each takes some of the stack.
const MOST_NESTED: usize = 8;
/// How often a value may come to stand in what is made of it.
const MOST_COPIES: usize = 64;
/// From how many elements of lists new ones are made at most: each takes much more room than in the document.
const MOST_MADE: usize = 10_000;
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
    /// An object or a list of what several paths find.
    Select(Selectors),
}

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
        if path.copies() > MOST_COPIES {
            return Err(format!("it would repeat what it finds more than {MOST_COPIES} times"));
        }
        Ok(path)
    }

    /// How many times as much as it is given it may make.
    fn copies(&self) -> usize {
        let copies = self.0.iter().flatten().map(|step| match step {
            Step::Modify(modifier) => modifier.copies(),
            Step::Select(selectors) => selectors.copies(),
            _ => 1,
        });
        copies.fold(1, usize::saturating_mul)
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
            false => Err("of @keys, @values and @dig only the number is known: let # follow, or \
                          #(…)#|#"
                .to_owned()),
        }
    }

    /// What is there; nothing is `null`.
    pub(super) fn get<'a>(&self, document: &'a Value) -> Cow<'a, Value> {
        self.find(Some(document)).unwrap_or(Cow::Owned(Value::Null))
    }

    /// What is there, if anything.
    fn find<'a>(&self, document: Option<&'a Value>) -> Option<Cow<'a, Value>> {
        let mut at = document.map(Cow::Borrowed);
        for segment in &self.0 {
            at = match at {
                Some(Cow::Borrowed(value)) => walk(segment, Some(value)),
                Some(Cow::Owned(value)) => {
                    walk(segment, Some(&value)).map(|found| Cow::Owned(found.into_owned()))
                }
                None => walk(segment, None),
            };
        }
        at
    }
}

/// Adds a step to the last segment. A modifier begins one: it applies to all that is before it.
fn add(segments: &mut Vec<Vec<Step>>, step: Step, text: &str) -> Result<(), String> {
    let is_modifier = matches!(step, Step::Modify(_));
    let is_selection = matches!(step, Step::Select(_));
    let is_of_each = |step: &Step| matches!(step, Step::Each | Step::Find { all: true, .. });
    match segments.last_mut() {
        Some(last) if is_modifier && last.iter().any(is_of_each) => {
            Err(format!("{text:?} would apply to each element: write a pipe before it"))
        }
        // Of each element something is selected; of what is not there, nothing is.
        Some(last)
            if is_selection && (last.is_empty() || last.iter().any(is_of_each))
                || !is_modifier && !is_selection
                || last.is_empty() =>
        {
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
        let (path, condition) = Condition::parse(condition, inside(nested)?)?;
        return Ok((Step::Find { path: Box::new(path), condition, all }, after));
    }
    if let Some(rest) = text.strip_prefix('@') {
        let (modifier, rest) = Modifier::parse(rest, nested)?;
        return Ok((Step::Modify(modifier), rest));
    }
    if text.starts_with(['{', '[']) {
        let (selectors, rest) = Selectors::parse(text, inside(nested)?)?;
        return Ok((Step::Select(selectors), rest));
    }
    if text.starts_with('!') {
        return Err(
            "'!' begins a literal of GJSON, which is not supported; use names, numbers, #, \
                    #(…), {…} and […]"
                .to_owned(),
        );
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

/// How deep what is inside may go.
fn inside(nested: usize) -> Result<usize, String> {
    nested.checked_sub(1).ok_or_else(|| {
        format!("conditions and selections stand in each other more than {MOST_NESTED} deep")
    })
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

fn walk<'a>(steps: &[Step], value: Option<&'a Value>) -> Option<Cow<'a, Value>> {
    let Some((step, rest)) = steps.split_first() else { return value.map(Cow::Borrowed) };
    let on = |made: Value| walk(rest, Some(&made)).map(|found| Cow::Owned(found.into_owned()));
    match (step, value) {
        (Step::Modify(modifier), value) => match modifier.apply(value) {
            Some(Cow::Borrowed(value)) => walk(rest, Some(value)),
            Some(Cow::Owned(made)) => on(made),
            None => walk(rest, None),
        },
        (Step::Select(selectors), value) => on(selectors.select(value)),
        (Step::Key { name }, Some(Value::Object(members))) => {
            let member = members.iter().find(|(key, _)| is_like(key, name));
            walk(rest, Some(member?.1))
        }
        (Step::Key { name }, Some(Value::Array(list))) => {
            let index: String = name.iter().map(|(found, _)| *found).collect();
            walk(rest, Some(list.get(index.parse::<usize>().ok()?)?))
        }
        (Step::Each, Some(Value::Array(list))) if rest.is_empty() => {
            Some(Cow::Owned(list.len().into()))
        }
        (Step::Each, Some(Value::Array(list)))
            if list.len() > MOST_MADE
                && rest.iter().any(|step| matches!(step, Step::Select(_))) =>
        {
            None
        }
        (Step::Each, Some(Value::Array(list))) => {
            let found = list.iter().filter_map(|value| walk(rest, Some(value)));
            Some(Cow::Owned(found.map(Cow::into_owned).collect()))
        }
        (Step::Find { path, condition, all: false }, Some(Value::Array(list))) => {
            let found = |element: &&Value| condition.meets(path.find(Some(*element)).as_deref());
            walk(rest, Some(list.iter().find(found)?))
        }
        (Step::Find { path, condition, all: true }, Some(Value::Array(list))) => {
            let found = |element: &&Value| condition.meets(path.find(Some(*element)).as_deref());
            let found = Value::Array(list.iter().filter(found).cloned().collect());
            let each = [&[Step::Each][..], rest].concat();
            let steps = match rest {
                [] => return Some(Cow::Owned(found)),
                [Step::Each] => rest,
                _ => &each,
            };
            walk(steps, Some(&found)).map(|found| Cow::Owned(found.into_owned()))
        }
        _ => None,
    }
}
