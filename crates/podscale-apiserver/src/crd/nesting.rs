//! How deep an expression nests. Reading, checking and evaluating one all go down its tree, so the deepest one
//! that is taken has a bound, and the stack has room for it.

/// The most brackets and choices (`? :`) inside one another; the parser itself takes no more than 96.
const MAX_BRACKETS: usize = 64;
/// The most levels of the tree, where each operator of a chain such as `a.b + c.d` is one.
const MAX_LEVELS: usize = 200;
/// What a level takes of the stack at most: the parser has a function for every rule of the grammar, and
/// without optimisation each of them takes a lot.
const LEVEL_BYTES: usize = if cfg!(debug_assertions) { 256 << 10 } else { 64 << 10 };
/// What everything else takes.
const BASE_BYTES: usize = 256 << 10;

/// How many levels an expression has at most, or why that is too many.
pub(super) fn levels(text: &str) -> Result<usize, String> {
    let Depth { levels, brackets } = Depth::of(text);
    if brackets > MAX_BRACKETS {
        return Err(format!(
            "brackets and choices are nested {brackets} deep, {MAX_BRACKETS} is the most"
        ));
    }
    if levels > MAX_LEVELS {
        return Err(format!("operators are nested {levels} deep, {MAX_LEVELS} is the most"));
    }
    Ok(levels)
}

/// Runs something that goes down so many levels, on a larger stack if this one has no room for it.
pub(super) fn with_room<T>(levels: usize, run: impl FnOnce() -> T) -> T {
    let bytes = BASE_BYTES + levels.min(MAX_LEVELS) * LEVEL_BYTES;
    stacker::maybe_grow(bytes, bytes, run)
}

/// The deepest place of a text, never less than it really is.
#[derive(Debug, Default, PartialEq, Eq)]
struct Depth {
    levels: usize,
    brackets: usize,
}

/// An open bracket, or the whole text.
#[derive(Clone, Copy, Default)]
struct Open {
    /// The level at which each of its parts begins.
    base: usize,
    /// The level of the chain that it belongs to.
    outside: usize,
    /// The choices inside that are not over.
    choices: usize,
}

impl Depth {
    fn of(text: &str) -> Depth {
        let mut depth = Depth::default();
        let (mut open, mut around, mut level, mut choices) =
            (Open::default(), Vec::new(), 0_usize, 0_usize);
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let token = token(rest);
            rest = rest.get(token..).unwrap_or_default();
            match first {
                '(' | '[' | '{' => {
                    level += 1;
                    around.push(open);
                    open = Open { base: level, outside: level, choices: 0 };
                }
                ')' | ']' | '}' => {
                    level = open.outside;
                    choices -= open.choices;
                    open = around.pop().unwrap_or_default();
                }
                // Each is a choice of its own inside the one before.
                '?' => {
                    choices += 1;
                    open.choices += 1;
                    open.base += 1;
                    level = open.base;
                }
                // Between these one part does not contain the other.
                ',' | ':' | '&' | '|' => level = open.base,
                '/' if token > 1 => {}
                '.' | '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' => level += 1,
                'i' if token == 2 => level += 1,
                _ => {}
            }
            depth.levels = depth.levels.max(level);
            depth.brackets = depth.brackets.max(around.len() + choices);
        }
        depth
    }
}

/// The length of the token that a text begins with. Texts, comments and words are one; everything else is one
/// character, also a quote that nothing closes.
fn token(text: &str) -> usize {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let first = text.chars().next().map_or(0, char::len_utf8);
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    let length = text.find(|c| !word(c)).unwrap_or(text.len());
    let (prefix, quoted) = text.split_at(length);
    let raw = match prefix {
        "" | "b" | "B" => Some(false),
        "r" | "R" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB" => Some(true),
        _ => None,
    };
    match raw.and_then(|raw| literal(quoted, raw)) {
        Some(literal) => length + literal,
        None => length.max(first),
    }
}

/// The length of the text in quotes that another text begins with.
fn literal(text: &str, raw: bool) -> Option<usize> {
    let long = ["\"\"\"", "'''"].into_iter().find(|quote| text.starts_with(quote));
    // Two quotes in a row are an empty text, unless a third one opens a long one that is closed.
    if let Some(length) = long.and_then(|quote| closed(text, quote, raw)) {
        return Some(length);
    }
    let short = ["\"", "'"].into_iter().find(|quote| text.starts_with(quote))?;
    closed(text, short, raw)
}

fn closed(text: &str, quote: &str, raw: bool) -> Option<usize> {
    let mut at = quote.len();
    loop {
        let rest = text.get(at..)?;
        let next = rest.chars().next()?;
        if rest.starts_with(quote) {
            return Some(at + quote.len());
        }
        if matches!(next, '\n' | '\r') && quote.len() == 1 {
            return None;
        }
        at += next.len_utf8();
        if next == '\\' && !raw {
            at += text.get(at..)?.chars().next()?.len_utf8();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crd::expression::Expression;
    use cel::Value;

    fn nested(depth: usize) -> String {
        format!("{}1{} == 1", "(".repeat(depth), ")".repeat(depth))
    }

    #[test]
    fn depth_is_that_of_the_tree_or_more() {
        for (text, levels, brackets) in [
            ("", 0, 0),
            ("self", 0, 0),
            ("self.a.b", 2, 0),
            ("a && b && c", 0, 0),
            ("(a) && (b)", 1, 1),
            ("[[1], [2]]", 2, 2),
            ("a.f(b.g(c)).h", 4, 2),
            ("a ? b : c ? d : e", 2, 2),
            ("(a ? b : c) && (d ? e : f)", 2, 2),
            ("1 in [1]", 2, 1),
            ("index", 0, 0),
            ("'((((' == \"[[\" // ((", 2, 0),
            (r"'\'((' == r'\' && ((a))", 2, 2),
            ("'''a'((''' == b'('", 2, 0),
            ("'((\n((a))", 4, 4),
            ("a)))((b", 2, 2),
        ] {
            assert_eq!(Depth::of(text), Depth { levels, brackets }, "{text}");
        }
    }

    /// On a thread with as little room as those of the server.
    fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
        let small = std::thread::Builder::new().stack_size(2 << 20).spawn(run);
        small.expect("a thread").join().expect("it does not overflow");
    }

    #[test]
    fn what_is_taken_is_read_and_evaluated_with_room_to_spare() {
        on_a_small_stack(|| {
            let lists = format!("{}{} == [1]", "[".repeat(60), "]".repeat(60));
            let choices = format!("{}true", "false ? true : ".repeat(60));
            let chain = format!("1{} == 95", "+1".repeat(94));
            let selects = format!("has(self.a{})", ".a".repeat(150));
            let each = format!("{}true{}", "[1].all(x, ".repeat(60), ")".repeat(60));
            for (text, expected) in [
                (nested(MAX_BRACKETS), Ok(Value::Bool(true))),
                (lists, Ok(Value::Bool(false))),
                (choices, Ok(Value::Bool(true))),
                (chain, Ok(Value::Bool(true))),
                (each, Ok(Value::Bool(true))),
                (selects, Err("no such key: a".to_owned())),
            ] {
                let expression = Expression::compile(&text).expect("it is not too deep");
                let empty = Value::Map(std::collections::HashMap::<String, Value>::new().into());
                let found = expression.evaluate(empty, None);
                assert_eq!(found, expected, "{text}");
            }
        });
    }

    #[test]
    fn what_is_too_deep_is_refused_before_it_is_read() {
        on_a_small_stack(|| {
            for (text, reason) in [
                (nested(65), "brackets and choices are nested 65 deep, 64 is the most"),
                (nested(4_000), "brackets and choices are nested 4000 deep, 64 is the most"),
                ("[".repeat(9_000), "brackets and choices are nested 9000 deep, 64 is the most"),
                ("a?b:".repeat(2_000), "brackets and choices are nested 2000 deep, 64 is the most"),
                ("1+".repeat(4_000), "operators are nested 4000 deep, 200 is the most"),
                (
                    format!("self{}", ".a".repeat(4_000)),
                    "operators are nested 4000 deep, 200 is the most",
                ),
            ] {
                let refused = Expression::compile(&text).expect_err("too deep");
                assert_eq!(refused, reason, "{}…", &text[..40]);
            }
        });
    }
}
