//! The words of an expression.

use super::ExpressionError;

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A number.
    Number(f64),
    /// A name.
    Name(String),
    /// An operator or a bracket.
    Sign(&'static str),
    /// Nothing more.
    End,
}

impl Word {
    /// The word as messages show it.
    pub(super) fn shown(&self) -> String {
        match self {
            Word::Number(number) => number.to_string(),
            Word::Name(name) => format!("{name:?}"),
            Word::Sign(sign) => format!("{sign:?}"),
            Word::End => "the end".to_owned(),
        }
    }
}

/// Longer ones first, so that `<=` is not read as `<`.
const SIGNS: [&str; 20] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")",
    ",", ".",
];

/// The words of a text, each with its place, counted in characters from one.
pub(super) fn words(text: &str) -> Result<Vec<(usize, Word)>, ExpressionError> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let place = text.chars().count() - rest.chars().count() + 1;
        let Some(first) = rest.chars().next() else {
            words.push((place, Word::End));
            return Ok(words);
        };
        let (word, length) = if first.is_ascii_digit() {
            number(rest, place)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let length = end.unwrap_or(rest.len());
            (Word::Name(rest[..length].to_owned()), length)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
            let problem = || format!("{first:?} is not part of an expression");
            let sign = sign.ok_or_else(|| ExpressionError::At { problem: problem(), place })?;
            (Word::Sign(sign), sign.len())
        };
        words.push((place, word));
        rest = &rest[length..];
    }
}

/// A number with an optional fraction; a dot without digits behind it is none of it.
fn number(rest: &str, place: usize) -> Result<(Word, usize), ExpressionError> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(rest);
    if let Some(fraction) = rest[length..].strip_prefix('.')
        && digits(fraction) > 0
    {
        length += 1 + digits(fraction);
    }
    let number = rest[..length].parse::<f64>().ok().filter(|number| number.is_finite());
    let problem = || format!("{} is too large", &rest[..length]);
    let number = number.ok_or_else(|| ExpressionError::At { problem: problem(), place })?;
    Ok((Word::Number(number), length))
}
