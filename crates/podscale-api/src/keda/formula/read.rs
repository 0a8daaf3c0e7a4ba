//! The grammar of formulas, read from left to right. How deep it nests is bounded, so that no text takes
//! more than a little of the stack, and so is how much lists may write out.

use super::{ReadError, Value, binary, call, choice, named, otherwise, unary};
use podscale_core::model::{FormulaError, MAX_DEPTH, Part};

/// The operators between two parts, from those that bind least. Powers bind more than any of them, and
/// more than a sign before them; `??` binds most.
const LEVELS: [&[&str]; 5] = [
    &["||", "or"],
    &["&&", "and"],
    &["==", "!=", "<=", ">=", "<", ">"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Every operator and bracket, longer ones first.
const SYMBOLS: [&str; 26] = [
    "**", "??", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "^", "!",
    "?", ":", "(", ")", "[", "]", "{", "}", ",",
];

/// No list has more elements than this.
const MAX_ELEMENTS: usize = 64;
/// No more parts are read than this, each closure once for every element of its list.
const MAX_READ: usize = 4096;

/// Reads a whole formula.
pub(super) fn read(text: &str, names: &[&str]) -> Result<Value, ReadError> {
    let mut reader = Reader { text, at: 0, names, depth: 0, parts: 0, elements: Vec::new() };
    let whole = reader.expression()?;
    match reader.peek() {
        Token::End => Ok(whole),
        _ => Err(reader.unexpected("an operator or the end")),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Element,
    Symbol(&'static str),
    Other(&'a str),
    End,
}

pub(super) struct Reader<'a> {
    text: &'a str,
    at: usize,
    names: &'a [&'a str],
    depth: usize,
    parts: usize,
    /// What `#` is, in the innermost closure last.
    elements: Vec<Value>,
}

impl<'a> Reader<'a> {
    pub(super) fn expression(&mut self) -> Result<Value, ReadError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FormulaError::TooDeep.into());
        }
        let condition = self.level(0)?;
        let whole = if self.take("?") {
            let yes = self.expression()?;
            self.need(":", "a :")?;
            choice(condition, yes, self.expression()?)?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    /// Operators of one level and all that bind more, from the left.
    fn level(&mut self, level: usize) -> Result<Value, ReadError> {
        let Some(operators) = LEVELS.get(level) else {
            return self.prefixed();
        };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.take_any(operators) {
            let right = self.level(level + 1)?;
            left = binary(operator, left, right)?;
        }
        Ok(left)
    }

    fn prefixed(&mut self) -> Result<Value, ReadError> {
        let mut operators = Vec::new();
        while let Some(operator) = self.take_any(&["!", "not", "-", "+"]) {
            operators.push(operator);
            self.count()?;
        }
        let mut value = self.power()?;
        while let Some(operator) = operators.pop() {
            value = unary(operator, value)?;
        }
        Ok(value)
    }

    /// A power, which groups from the right.
    fn power(&mut self) -> Result<Value, ReadError> {
        let base = self.with_default()?;
        match self.take_any(&["**", "^"]) {
            Some(operator) => {
                self.depth += 1;
                if self.depth > MAX_DEPTH {
                    return Err(FormulaError::TooDeep.into());
                }
                let exponent = self.prefixed()?;
                self.depth -= 1;
                binary(operator, base, exponent)
            }
            None => Ok(base),
        }
    }

    fn with_default(&mut self) -> Result<Value, ReadError> {
        let mut value = self.primary()?;
        while self.take("??") {
            let default = self.primary()?;
            value = otherwise(value, default)?;
        }
        Ok(value)
    }

    fn primary(&mut self) -> Result<Value, ReadError> {
        self.count()?;
        match self.peek() {
            Token::Number(text) => {
                let value = parse_number(text).ok_or_else(|| self.unexpected("a number"))?;
                self.skip(text.len());
                Ok(Value::Number(Part::Number(value)))
            }
            Token::Name(name) => {
                self.skip(name.len());
                if self.take("(") { call::call(self, name) } else { named(name, self.names) }
            }
            Token::Element => match self.elements.last() {
                Some(element) => {
                    // Closures in closures could double it again and again.
                    self.parts += size(element);
                    let element = element.clone();
                    self.count()?;
                    self.skip(1);
                    Ok(element)
                }
                None => Err(self.unexpected("a number, a trigger or a function")),
            },
            Token::Symbol("(") => {
                self.take("(");
                let inner = self.expression()?;
                self.need(")", "an operator or a )")?;
                Ok(inner)
            }
            Token::Symbol("[") => {
                self.take("[");
                self.list()
            }
            _ => Err(self.unexpected("a number, a trigger or a function")),
        }
    }

    /// The elements of a list, whose first bracket was read.
    fn list(&mut self) -> Result<Value, ReadError> {
        let mut elements = Vec::new();
        while !self.take("]") {
            elements.push(self.expression()?);
            if elements.len() > MAX_ELEMENTS {
                return Err(FormulaError::TooLong.into());
            }
            if !self.take(",") && self.peek() != Token::Symbol("]") {
                return Err(self.unexpected("an operator, a comma or a ]"));
            }
        }
        Ok(Value::List(elements))
    }

    /// What a closure makes of each element of a list. It is read once for each of them.
    pub(super) fn closure(&mut self, list: Vec<Value>) -> Result<Vec<Value>, ReadError> {
        let braces = self.take("{");
        let start = self.at;
        let mut made = Vec::with_capacity(list.len());
        // Of no elements it is read all the same, to find its end and what is wrong with it.
        let nothing = list.is_empty().then_some(Value::Number(Part::Number(0.0)));
        for element in list.into_iter().chain(nothing.clone()) {
            self.at = start;
            self.elements.push(element);
            made.push(self.expression()?);
            self.elements.pop();
        }
        if nothing.is_some() {
            made.clear();
        }
        if braces {
            self.need("}", "an operator or a }")?;
        }
        Ok(made)
    }

    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(found) if found == symbol);
        if found {
            self.skip(symbol.len());
        }
        found
    }

    fn take_any(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        let (Token::Symbol(found) | Token::Name(found)) = self.peek() else { return None };
        let operator = *operators.iter().find(|operator| **operator == found)?;
        self.skip(operator.len());
        Some(operator)
    }

    pub(super) fn need(&mut self, symbol: &str, expected: &'static str) -> Result<(), ReadError> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn count(&mut self) -> Result<(), ReadError> {
        self.parts += 1;
        if self.parts > MAX_READ { Err(FormulaError::TooLong.into()) } else { Ok(()) }
    }

    fn skip(&mut self, length: usize) {
        self.at = self.start() + length;
    }

    /// Where the next token begins.
    fn start(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.len() - rest.trim_start().len()
    }

    fn peek(&self) -> Token<'a> {
        let rest = &self.text[self.start()..];
        let Some(first) = rest.chars().next() else {
            return Token::End;
        };
        let word = |is_part: fn(char) -> bool| {
            &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())]
        };
        if first.is_ascii_digit() || first == '.' {
            return Token::Number(word(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_')));
        }
        if first.is_ascii_alphabetic() || matches!(first, '_' | '$') {
            return Token::Name(word(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$')));
        }
        if first == '#' {
            return Token::Element;
        }
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => Token::Symbol(symbol),
            None => Token::Other(&rest[..first.len_utf8()]),
        }
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> ReadError {
        let found = match self.peek() {
            Token::Number(text) | Token::Name(text) | Token::Other(text) => format!("{text:?}"),
            Token::Symbol(text) => format!("{text:?}"),
            Token::Element => "\"#\"".to_owned(),
            Token::End => "the end".to_owned(),
        };
        ReadError::Unexpected { at: self.start(), found, expected }
    }
}

/// How many parts a value has; a list is one besides its elements, or lists of nothing would be free.
fn size(value: &Value) -> usize {
    match value {
        Value::Number(part) | Value::Truth(part) => part.size(),
        Value::List(list) => 1 + list.iter().map(size).sum::<usize>(),
    }
}

/// A number as the language writes it: `12`, `1_000`, `1.5`, `1e3`.
fn parse_number(text: &str) -> Option<f64> {
    let digits = text.replace('_', "");
    let plain = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E'));
    digits.parse().ok().filter(|value: &f64| plain && value.is_finite())
}
