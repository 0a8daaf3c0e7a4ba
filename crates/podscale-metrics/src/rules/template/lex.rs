//! Splits a template into its tokens.

use super::TemplateError;

/// What a template is made of.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// Text outside the delimiters.
    Text(String),
    /// The beginning of an action.
    Open,
    /// The end of an action.
    Close,
    /// A function or a keyword.
    Word(String),
    /// `.name`
    Field(String),
    /// `.` alone.
    Dot,
    /// `$name`, or `$` as an empty name.
    Variable(String),
    /// A string.
    String(String),
    /// A whole number.
    Number(i64),
    /// `(`
    OpenGroup,
    /// `)`
    CloseGroup,
    /// `|`
    Pipe,
    /// `:=`
    Declare,
    /// `=`
    Assign,
    /// `,`
    Comma,
}

/// A token, where it stands, and whether nothing is between it and the one before.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) place: usize,
    pub(super) glued: bool,
}

const OPEN: &str = "<<";
const CLOSE: &str = ">>";
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// The tokens of a template.
pub(super) fn lex(text: &str) -> Result<Vec<Placed>, TemplateError> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    let mut trim = false;
    loop {
        let rest = lexer.rest();
        let end = rest.find(OPEN).unwrap_or(rest.len());
        let mut between = rest.get(..end).unwrap_or_default();
        let action = rest.get(end..).filter(|rest| !rest.is_empty());
        let body = action.and_then(|action| action.strip_prefix(OPEN));
        let trims = body.is_some_and(trims_before);
        if trim {
            between = between.trim_start_matches(SPACES);
        }
        if trims {
            between = between.trim_end_matches(SPACES);
        }
        if !between.is_empty() {
            lexer.push(Token::Text(between.to_owned()), false);
        }
        if body.is_none() {
            return Ok(lexer.tokens);
        }
        lexer.at += end + OPEN.len() + usize::from(trims);
        trim = lexer.action()?;
    }
}

/// Whether an action begins with a mark that trims the text before it.
fn trims_before(body: &str) -> bool {
    body.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACES))
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Placed>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, token: Token, glued: bool) {
        self.tokens.push(Placed { token, place: self.at, glued });
    }

    fn error<T>(&self, problem: impl std::fmt::Display) -> Result<T, TemplateError> {
        Err(TemplateError::at(self.at, problem))
    }

    /// Reads to the end of an action; whether the text after it is to be trimmed.
    fn action(&mut self) -> Result<bool, TemplateError> {
        if self.rest().trim_start_matches(SPACES).starts_with("/*") {
            return self.comment();
        }
        self.push(Token::Open, false);
        let mut depth = 0_usize;
        loop {
            let rest = self.rest();
            let skipped = rest.len() - rest.trim_start_matches(SPACES).len();
            self.at += skipped;
            let (rest, glued) = (self.rest(), skipped == 0);
            if !glued && rest.starts_with("->>") || rest.starts_with(CLOSE) {
                if depth > 0 {
                    return self.error("a parenthesis is not closed");
                }
                let trims = rest.starts_with('-');
                self.push(Token::Close, false);
                self.at += CLOSE.len() + usize::from(trims);
                return Ok(trims);
            }
            let (token, length) = self.token(rest)?;
            match token {
                Token::OpenGroup => depth += 1,
                Token::CloseGroup if depth == 0 => {
                    return self.error("a parenthesis is closed that was not opened");
                }
                Token::CloseGroup => depth -= 1,
                _ => {}
            }
            self.push(token, glued);
            self.at += length;
        }
    }

    fn comment(&mut self) -> Result<bool, TemplateError> {
        let rest = self.rest();
        let Some(end) = rest.find("*/") else { return self.error("a comment is not closed") };
        let after = rest.get(end + 2..).unwrap_or_default();
        let (trims, close) = match after.trim_start_matches(SPACES) {
            trimmed if trimmed.starts_with("->>") && trimmed.len() < after.len() => (true, trimmed),
            _ => (false, after),
        };
        let mark = if trims { "->>" } else { CLOSE };
        match close.strip_prefix(mark) {
            Some(next) => {
                self.at = self.text.len() - next.len();
                Ok(trims)
            }
            None => self.error("a comment must be all that is between << and >>"),
        }
    }

    /// The next token of an action and how many bytes it takes.
    fn token(&self, rest: &str) -> Result<(Token, usize), TemplateError> {
        let Some(first) = rest.chars().next() else {
            return self.error("<< is not closed by >>");
        };
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let name_length = |text: &str| text.find(|c| !is_name(c)).unwrap_or(text.len());
        let name = |text: &str| text.get(..name_length(text)).unwrap_or_default().to_owned();
        Ok(match first {
            '|' => (Token::Pipe, 1),
            '(' => (Token::OpenGroup, 1),
            ')' => (Token::CloseGroup, 1),
            ',' => (Token::Comma, 1),
            '=' => (Token::Assign, 1),
            ':' if after.starts_with('=') => (Token::Declare, 2),
            '$' => (Token::Variable(name(after)), 1 + name_length(after)),
            '.' if after.starts_with(is_name)
                && !after.starts_with(|c: char| c.is_ascii_digit()) =>
            {
                (Token::Field(name(after)), 1 + name_length(after))
            }
            '.' => (Token::Dot, 1),
            '"' => self.string(rest)?,
            '`' => match after.find('`') {
                Some(end) => (Token::String(after.get(..end).unwrap_or_default().into()), end + 2),
                None => return self.error("a raw string is not closed"),
            },
            '-' | '+' | '0'..='9' => self.number(rest)?,
            c if is_name(c) => (Token::Word(name(rest)), name_length(rest)),
            other => return self.error(format!("unexpected {other:?} between << and >>")),
        })
    }

    fn number(&self, rest: &str) -> Result<(Token, usize), TemplateError> {
        let digits = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let end = digits.find(|c| !is_name(c) && c != '.').unwrap_or(digits.len());
        let length = rest.len() - digits.len() + end;
        let text = rest.get(..length).unwrap_or_default();
        match text.parse() {
            Ok(number) => Ok((Token::Number(number), length)),
            Err(_) => self.error(format!("{text:?} is not a whole number")),
        }
    }

    fn string(&self, rest: &str) -> Result<(Token, usize), TemplateError> {
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => return Ok((Token::String(text), at + 1)),
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, other)) => {
                        return self.error(format!("the escape \\{other} is not supported"));
                    }
                    None => break,
                },
                c => text.push(c),
            }
        }
        self.error("a string is not closed")
    }
}

/// Whether a character can be part of a name.
fn is_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}
