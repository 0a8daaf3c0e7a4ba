//! No function is longer than what one sees at once.

use crate::rust::{closing, is_word, shipped};
use crate::{none, shipped_sources};

/// The most lines of a function, from its name to its last brace.
const MOST_LINES: usize = 60;

/// Functions that are longer so far, with their length: the list may only become shorter.
const KNOWN: [(&str, &str, usize); 8] = [
    ("crates/podscale-api/src/hpa/convert/metrics.rs", "spec_up", 64),
    ("crates/podscale-apiserver/src/http/params.rs", "version", 75),
    ("crates/podscale-apiserver/src/openapi/builtin.rs", "add", 82),
    ("crates/podscale-apiserver/src/openapi/paths.rs", "of", 66),
    ("crates/podscale-apiserver/src/rules/pod_spec.rs", "check_spec", 62),
    ("crates/podscale-core/src/decide/per_pod.rs", "propose", 65),
    ("crates/podscale-core/src/decide/propose.rs", "propose", 63),
    ("crates/podscale-sim/src/load.rs", "resolve_into", 67),
];

#[test]
fn functions_have_a_readable_size() {
    let mut known = KNOWN.to_vec();
    let mut found = Vec::new();
    for (file, text) in shipped_sources() {
        for (name, lines) in functions(&shipped(&text)).into_iter().filter(|f| f.1 > MOST_LINES) {
            let before = known.len();
            known.retain(|known| *known != (file.as_str(), name.as_str(), lines));
            if known.len() == before {
                found.push(format!("{file}: {name}: {lines} lines"));
            }
        }
    }
    found.extend(known.iter().map(|(file, name, lines)| {
        format!("{file}: {name}: no longer {lines} lines: shorten the list")
    }));
    none(&format!("functions of more than {MOST_LINES} lines that the list does not have"), &found);
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
