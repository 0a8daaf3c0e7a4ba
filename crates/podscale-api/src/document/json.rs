//! A document of JSON, and where its fields are. The parser says what it is; a second walk over the same text,
//! which is known to be right by then, counts lines and characters.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use serde_json::Value;

use super::{Content, DocumentError, Place, Places};

/// Reads one document that begins after so many lines.
pub(super) fn read(text: &str, lines_before: u32) -> Result<Content, DocumentError> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let line = number(error.line()).saturating_add(lines_before);
        let place = Place { line, column: number(error.column()) };
        DocumentError { place, problem: format!("not JSON that can be read: {error}") }
    })?;
    let mut walk = Walk {
        characters: text.chars().peekable(),
        place: Place { line: lines_before.saturating_add(1), column: 1 },
        places: BTreeMap::new(),
        duplicate: None,
    };
    walk.value(&mut String::new(), true);
    match walk.duplicate {
        Some((place, problem)) => Err(DocumentError { place, problem }),
        None => Ok(Content { value, places: Places(walk.places) }),
    }
}

struct Walk<'a> {
    characters: Peekable<Chars<'a>>,
    /// Where the next character is.
    place: Place,
    places: BTreeMap<String, Place>,
    /// The first field that is there twice.
    duplicate: Option<(Place, String)>,
}

impl Walk<'_> {
    fn next(&mut self) -> Option<char> {
        let character = self.characters.next()?;
        if character == '\n' {
            self.place = Place { line: self.place.line.saturating_add(1), column: 1 };
        } else {
            self.place.column = self.place.column.saturating_add(1);
        }
        Some(character)
    }

    /// The next character that is not space.
    fn peek(&mut self) -> Option<char> {
        while self.characters.peek().is_some_and(|one| one.is_ascii_whitespace()) {
            self.next();
        }
        self.characters.peek().copied()
    }

    /// Walks over a value; items of lists and the document itself are at their own places.
    fn value(&mut self, path: &mut String, has_place: bool) {
        let first = self.peek();
        if has_place {
            self.places.insert(path.clone(), self.place);
        }
        match first {
            Some('{') => self.members(path),
            Some('[') => self.items(path),
            Some('"') => drop(self.text()),
            _ => {
                let ends = |one: &char| one.is_ascii_whitespace() || matches!(one, ',' | ']' | '}');
                while self.characters.peek().is_some_and(|one| !ends(one)) {
                    self.next();
                }
            }
        }
    }

    fn members(&mut self, path: &mut String) {
        let length = path.len();
        self.next();
        while self.peek() == Some('"') {
            let place = self.place;
            let key = self.text();
            // Errors name keys of maps in brackets.
            self.places.insert(format!("{path}[{key}]"), place);
            if length > 0 {
                path.push('.');
            }
            path.push_str(&key);
            if self.places.insert(path.clone(), place).is_some() && self.duplicate.is_none() {
                self.duplicate = Some((place, format!("duplicate field \"{path}\"")));
            }
            self.peek();
            self.next();
            self.value(path, false);
            path.truncate(length);
            if self.peek() == Some(',') {
                self.next();
            }
            self.peek();
        }
        self.next();
    }

    fn items(&mut self, path: &mut String) {
        let length = path.len();
        self.next();
        let mut index = 0_usize;
        while self.peek().is_some_and(|one| one != ']') {
            path.push_str(&format!("[{index}]"));
            self.value(path, true);
            path.truncate(length);
            index += 1;
            if self.peek() == Some(',') {
                self.next();
            }
        }
        self.next();
    }

    /// Walks over a text and gives it.
    fn text(&mut self) -> String {
        let mut raw = String::new();
        raw.extend(self.next());
        while let Some(character) = self.next() {
            raw.push(character);
            match character {
                '\\' => raw.extend(self.next()),
                '"' => break,
                _ => {}
            }
        }
        serde_json::from_str(&raw).unwrap_or(raw)
    }
}
