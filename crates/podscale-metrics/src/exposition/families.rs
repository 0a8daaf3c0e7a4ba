//! Exposition text as people pick from it: samples by metric, with what the text says about each.

use super::{Sample, samples};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What kind of metric it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// It only goes up.
    Counter,
    /// It goes up and down.
    Gauge,
    /// The text does not say.
    #[default]
    Untyped,
    /// It has several samples for one value, as histograms and summaries do.
    Other,
}

/// A metric and its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Family<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it means, if the text says so.
    pub help: Cow<'a, str>,
    /// Of what kind it is.
    pub kind: Kind,
    /// Its samples, in the order of the text.
    pub samples: Vec<Sample<'a>>,
}

/// The metrics of a text that have samples, in the order of the first ones. Lines that make no sense are
/// passed over.
#[must_use]
pub fn families(text: &str) -> Vec<Family<'_>> {
    let mut found: Vec<Family<'_>> = Vec::new();
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let comments = comments(text);
    for sample in samples(text).flatten() {
        let name = family_of(sample.name, &comments);
        let at = *places.entry(name).or_insert_with(|| {
            let (kind, help) = comments.get(name).cloned().unwrap_or_default();
            found.push(Family { name, help, kind, samples: Vec::new() });
            found.len() - 1
        });
        if let Some(family) = found.get_mut(at) {
            family.samples.push(sample);
        }
    }
    found
}

type Comments<'a> = BTreeMap<&'a str, (Kind, Cow<'a, str>)>;

/// What the text says about each name.
fn comments(text: &str) -> Comments<'_> {
    let mut comments = Comments::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix('#') else { continue };
        let rest = rest.trim_start();
        let (word, rest) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let rest = rest.trim_start();
        let (name, said) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        if name.is_empty() {
            continue;
        }
        let entry = comments.entry(name).or_default();
        match word {
            "HELP" => entry.1 = unescape_help(said.trim()),
            "TYPE" => entry.0 = kind(said.trim()),
            _ => {}
        }
    }
    comments
}

fn kind(word: &str) -> Kind {
    match word {
        "counter" => Kind::Counter,
        "gauge" => Kind::Gauge,
        "untyped" | "unknown" | "" => Kind::Untyped,
        _ => Kind::Other,
    }
}

/// Help has backslashes and line ends escaped, and nothing else.
fn unescape_help(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push('\n'),
                Some('\\') => out.push('\\'),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The metric that a sample belongs to: histograms and summaries have samples with longer names.
fn family_of<'a>(name: &'a str, comments: &Comments<'a>) -> &'a str {
    let of = |suffix: &str| {
        let base = name.strip_suffix(suffix)?;
        comments.get(base).filter(|(kind, _)| *kind == Kind::Other).map(|_| base)
    };
    ["_bucket", "_sum", "_count"].into_iter().find_map(of).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_gathered_by_metric() {
        let text = "# HELP a help \\\\ \\n of a\n# TYPE a counter\na 1\nb 2\na{x=\"y\"} 3\nnonsense\n\
            # TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 2\nh_count 3\nh_other 4\n# TYPE none gauge\n#\n# x";
        let told: Vec<String> = families(text)
            .iter()
            .map(|f| format!("{} {:?} {:?} {}", f.name, f.kind, f.help, f.samples.len()))
            .collect();
        let expected = [
            "a Counter \"help \\\\ \\n of a\" 2",
            "b Untyped \"\" 1",
            "h Other \"\" 3",
            "h_other Untyped \"\" 1",
        ];
        assert_eq!(told, expected);
        assert!(families("").is_empty());
    }
}
