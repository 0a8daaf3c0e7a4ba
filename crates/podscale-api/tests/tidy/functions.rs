//! No function is longer than what one sees at once.

use crate::rust::{closing, is_word, shipped};
use crate::{none, shipped_sources};

/// The most lines of a function, from its name to its last brace.
const MOST_LINES: usize = 60;

#[test]
fn functions_have_a_readable_size() {
    let mut found = Vec::new();
    for (file, text) in shipped_sources() {
        let long = functions(&shipped(&text)).into_iter().filter(|(_, lines)| *lines > MOST_LINES);
        found.extend(long.map(|(name, lines)| format!("{file}: {name}: {lines} lines")));
    }
    none(&format!("functions of more than {MOST_LINES} lines"), &found);
}

/// The functions of a source and how many lines each has.
fn functions(code: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let rest = &code[at + 3..];
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        if code[..at].ends_with(is_word) || name.is_empty() {
            continue;
        }
        // A function without a body is a promise of a trait.
        let Some(open) = body(rest).map(|open| at + 3 + open) else { continue };
        let lines = code[at..=closing(code, open)].lines().count();
        found.push((name, lines));
    }
    found
}

/// Where the body of a function begins, if it has one: arrays in its types have semicolons as well.
fn body(signature: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in signature.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b';' if depth == 0 => return None,
            b'{' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

#[test]
fn lines_are_counted_from_the_name_to_the_last_brace() {
    let code =
        "trait T { fn promise(&self) -> [u8; 2]; }\nfn long(\n a: [u8; 3],\n) {\n if a {}\n}\n";
    assert_eq!(functions(code), [("long".to_owned(), 5)]);
}
