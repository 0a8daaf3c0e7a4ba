//! Selectors as text: `a=b, c in (d,e), !f`.

use std::collections::BTreeSet;

use super::{Operator, Requirement, SelectorError};
use crate::names::label_key_errors;
use crate::quote::quote;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Open,
    Close,
    Comma,
    Not,
    Compare(Operator),
    /// `in` and `notin` are words too: only the place decides whether they are operators.
    Word(&'a str),
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Token::End => "",
            Token::Open => "(",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Compare(Operator::Equals) => "=",
            Token::Compare(Operator::DoubleEquals) => "==",
            Token::Compare(Operator::NotEquals) => "!=",
            Token::Compare(Operator::GreaterThan) => ">",
            Token::Compare(_) => "<",
            Token::Word(word) => word,
        }
    }

    fn starts_requirement(&self) -> bool {
        matches!(self, Token::Word(_) | Token::Not)
    }
}

pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    let first = tokens.peek();
    if first == Token::End {
        return Ok(requirements);
    }
    if !first.starts_requirement() {
        return Err(unexpected(first, ", expected: !, identifier, or 'end of string'"));
    }
    loop {
        let requirement = parse_requirement(&mut tokens)
            .map_err(|error| SelectorError(format!("unable to parse requirement: {error}")))?;
        requirements.push(requirement);
        match tokens.next() {
            Token::End => return Ok(requirements),
            Token::Comma if tokens.peek().starts_requirement() => {}
            Token::Comma => {
                return Err(unexpected(tokens.peek(), ", expected: identifier after ','"));
            }
            other => return Err(unexpected(other, ", expected: ',' or 'end of string'")),
        }
    }
}

fn parse_requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, SelectorError> {
    let mut token = tokens.next();
    let absent = token == Token::Not;
    if absent {
        token = tokens.next();
    }
    let Token::Word(key) = token else {
        return Err(unexpected(token, ", expected: identifier"));
    };
    let errors = label_key_errors(key);
    if !errors.is_empty() {
        // Upstream prints the missing path of the field.
        let reasons = errors.join("; ");
        return Err(SelectorError(format!("<nil>: Invalid value: {}: {reasons}", quote(key))));
    }
    if absent {
        return Requirement::new(key, Operator::DoesNotExist, &[]);
    }
    if matches!(tokens.peek(), Token::End | Token::Comma) {
        return Requirement::new(key, Operator::Exists, &[]);
    }
    let (operator, values) = match tokens.next() {
        Token::Compare(operator) => (operator, parse_value(tokens)?),
        Token::Word("in") => (Operator::In, parse_values(tokens)?),
        Token::Word("notin") => (Operator::NotIn, parse_values(tokens)?),
        other => {
            return Err(unexpected(other, ", expected: in, notin, =, ==, !=, gt, lt"));
        }
    };
    Requirement::new(key, operator, &Vec::from_iter(values))
}

/// The value after a comparison, which may be left out.
fn parse_value<'a>(tokens: &mut Tokens<'a>) -> Result<BTreeSet<&'a str>, SelectorError> {
    if matches!(tokens.peek(), Token::End | Token::Comma) {
        return Ok(BTreeSet::from([""]));
    }
    match tokens.next() {
        Token::Word(value) => Ok(BTreeSet::from([value])),
        other => Err(unexpected(other, ", expected: identifier")),
    }
}

/// A list in parentheses; between two commas stands an empty value.
fn parse_values<'a>(tokens: &mut Tokens<'a>) -> Result<BTreeSet<&'a str>, SelectorError> {
    let open = tokens.next();
    if open != Token::Open {
        return Err(unexpected(open, " expected: '('"));
    }
    let first = tokens.peek();
    if first == Token::Close {
        tokens.next();
        return Ok(BTreeSet::from([""]));
    }
    if !matches!(first, Token::Word(_) | Token::Comma) {
        return Err(unexpected(first, ", expected: ',', ')' or identifier"));
    }
    let mut values = BTreeSet::new();
    loop {
        match tokens.next() {
            Token::Word(value) => {
                values.insert(value);
                match tokens.peek() {
                    Token::Comma => {}
                    Token::Close => break,
                    other => return Err(unexpected(other, ", expected: ',' or ')'")),
                }
            }
            Token::Comma => {
                let next = tokens.peek();
                if values.is_empty() || matches!(next, Token::Comma | Token::Close) {
                    values.insert("");
                }
                if next == Token::Close {
                    break;
                }
            }
            other => return Err(unexpected(other, ", expected: ',', or identifier")),
        }
    }
    tokens.next();
    Ok(values)
}

fn unexpected(found: Token<'_>, expected: &str) -> SelectorError {
    SelectorError(format!("found '{}'{expected}", found.text()))
}

#[derive(Clone, Copy)]
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> Token<'a> {
        let mut ahead = *self;
        ahead.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let (token, length) = match self.rest.as_bytes() {
            [] => (Token::End, 0),
            [0, ..] => (Token::End, self.rest.len()),
            [b'=', b'=', ..] => (Token::Compare(Operator::DoubleEquals), 2),
            [b'!', b'=', ..] => (Token::Compare(Operator::NotEquals), 2),
            [b'=', ..] => (Token::Compare(Operator::Equals), 1),
            [b'>', ..] => (Token::Compare(Operator::GreaterThan), 1),
            [b'<', ..] => (Token::Compare(Operator::LessThan), 1),
            [b'!', ..] => (Token::Not, 1),
            [b'(', ..] => (Token::Open, 1),
            [b')', ..] => (Token::Close, 1),
            [b',', ..] => (Token::Comma, 1),
            _ => {
                let end = self.rest.find(ends_word).unwrap_or(self.rest.len());
                (Token::Word(&self.rest[..end]), end)
            }
        };
        self.rest = &self.rest[length..];
        // A zero byte ends a token and is part of none; on its own it ends the text.
        if length > 0 {
            self.rest = self.rest.strip_prefix('\0').unwrap_or(self.rest);
        }
        token
    }
}

fn ends_word(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<' | ' ' | '\t' | '\r' | '\n' | '\0')
}
