//! The grammar of expressions, read from left to right. How deep it nests is bounded, so that no text
//! takes more than a little of the stack.

use super::{ExpressionProblem, Fault, Scope, Typed, binary, call, choice, number, truth, unary};
use podscale_core::model::{FormulaError, MAX_DEPTH, Part};

/// Reads a whole expression.
pub(super) fn read(text: &str, scope: Scope<'_>) -> Result<Typed, Fault> {
    let mut reader = Reader { text, at: 0, scope, depth: 0 };
    let whole = reader.expression()?;
    match reader.peek() {
        Token::End => Ok(whole),
        _ => Err(reader.unexpected("an operator or the end")),
    }
}

/// The operators between two parts, from those that bind least.
const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

/// Every operator and bracket, longer ones first.
const SYMBOLS: [&str; 21] = [
    "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "(", ")",
    ",", ".", "=",
];

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Symbol(&'static str),
    Other(&'a str),
    End,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    scope: Scope<'a>,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn expression(&mut self) -> Result<Typed, Fault> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err((self.start(), FormulaError::TooDeep.into()));
        }
        let condition = self.level(0)?;
        let whole = if self.take("?") {
            let yes = self.level(0)?;
            self.need(":", "a :")?;
            choice(condition, yes, self.expression()?)?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    /// Operators of one level and all that bind more, from the left.
    fn level(&mut self, level: usize) -> Result<Typed, Fault> {
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

    fn prefixed(&mut self) -> Result<Typed, Fault> {
        let mut operators = Vec::new();
        let mut at = self.start();
        while let Some(operator) = self.take_any(&["!", "-"]) {
            operators.push((at, operator));
            at = self.start();
        }
        let mut part = self.primary()?;
        while let Some((at, operator)) = operators.pop() {
            part = unary(at, operator, part)?;
        }
        Ok(part)
    }

    fn primary(&mut self) -> Result<Typed, Fault> {
        let at = self.start();
        match self.peek() {
            Token::Number(text) => {
                let value = parse_number(text).ok_or_else(|| self.unexpected("a number"))?;
                self.skip(text);
                Ok(number(at, Part::Number(value)))
            }
            Token::Name(name) => {
                self.skip(name);
                self.named(at, name)
            }
            Token::Symbol("(") => {
                self.take("(");
                let inner = self.expression()?;
                self.need(")", "an operator or a )")?;
                Ok(Typed { at, ..inner })
            }
            _ => Err(self.unexpected("a number, a metric or a function")),
        }
    }

    /// A name: alone, of a function, or of a metric of which something is asked.
    fn named(&mut self, at: usize, name: &str) -> Result<Typed, Fault> {
        if name == "has" && self.peek() == Token::Symbol("(") {
            return self.has(at);
        }
        if self.take("(") {
            return call(at, name, self.arguments()?);
        }
        if !self.take(".") {
            return self.scope.name(at, name);
        }
        let field = self.field()?;
        if name == "math" && self.take("(") {
            return call(at, &format!("math.{}", field.1), self.arguments()?);
        }
        self.scope.fact(at, name, field)
    }

    fn has(&mut self, begin: usize) -> Result<Typed, Fault> {
        self.need("(", "a (")?;
        let at = self.start();
        let Token::Name(name) = self.peek() else {
            return Err(self.unexpected("a metric"));
        };
        self.skip(name);
        self.need(".", "a . and value, ratio or replicas")?;
        let field = self.field()?;
        self.need(")", "a )")?;
        // Whichever is asked for, it is there if the metric has a usable value.
        self.scope.fact(at, name, field)?;
        Ok(truth(begin, Part::Has { metric: self.scope.metric(at, name)? }))
    }

    /// The name of a field, and where it is.
    fn field(&mut self) -> Result<(usize, &'a str), Fault> {
        let at = self.start();
        let Token::Name(field) = self.peek() else {
            return Err(self.unexpected("value, ratio or replicas"));
        };
        self.skip(field);
        Ok((at, field))
    }

    /// What is between brackets, the first of which was read.
    fn arguments(&mut self) -> Result<Vec<Typed>, Fault> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.expression()?);
            if !self.take(",") {
                self.need(")", "an operator, a comma or a )")?;
                return Ok(arguments);
            }
        }
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.peek() == Token::Symbol(symbol_of(symbol));
        if found {
            self.skip(symbol);
        }
        found
    }

    fn take_any(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        match self.peek() {
            Token::Symbol(found) if symbols.contains(&found) => {
                self.skip(found);
                Some(found)
            }
            _ => None,
        }
    }

    fn need(&mut self, symbol: &str, expected: &'static str) -> Result<(), Fault> {
        if self.take(symbol) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn skip(&mut self, token: &str) {
        self.at = self.start() + token.len();
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
        if first.is_ascii_digit() {
            return Token::Number(word(|c| c.is_ascii_alphanumeric() || c == '.'));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Token::Name(word(|c| c.is_ascii_alphanumeric() || c == '_'));
        }
        match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            Some(symbol) => Token::Symbol(symbol),
            None => Token::Other(&rest[..first.len_utf8()]),
        }
    }

    fn unexpected(&self, expected: &'static str) -> Fault {
        let found = match self.peek() {
            Token::Number(text) | Token::Name(text) | Token::Other(text) => format!("{text:?}"),
            Token::Symbol(text) => format!("{text:?}"),
            Token::End => "the end".to_owned(),
        };
        (self.start(), ExpressionProblem::Syntax { found, expected })
    }
}

/// The line and the character of a byte, both from one.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1)
}

fn symbol_of(text: &str) -> &'static str {
    SYMBOLS.iter().find(|symbol| **symbol == text).copied().unwrap_or_default()
}

/// A number as the language writes it: `12`, `12u`, `1.5`, `1e3`.
fn parse_number(text: &str) -> Option<f64> {
    let digits = text.strip_suffix(['u', 'U']).unwrap_or(text);
    let plain = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E'));
    let whole = digits.len() == text.len() || !digits.contains(['.', 'e', 'E']);
    digits.parse().ok().filter(|value: &f64| plain && whole && value.is_finite())
}
