//! Rust sources without what is not code: comments, strings and tests.

/// The code of a source, with comments, strings and characters blanked; lines stay where they are.
pub fn code(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = literal_end(text, at);
        if end == at {
            let char = text[at..].chars().next().expect("a character");
            out.push(char);
            at += char.len_utf8();
        } else {
            blank(&text[at..end], &mut out);
            at = end;
        }
    }
    out
}

/// The code that is shipped: without items that are compiled for tests only.
pub fn shipped(text: &str) -> String {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut rest = code(text);
    while let Some(start) = rest.find(ATTRIBUTE) {
        let body = start + ATTRIBUTE.len();
        let end = rest[body..].find(['{', ';']).map_or(rest.len(), |found| body + found);
        let end = if rest[end..].starts_with('{') { closing(&rest, end) } else { end };
        let end = (end + 1).min(rest.len());
        let mut blanked = String::new();
        blank(&rest[start..end], &mut blanked);
        rest.replace_range(start..end, &blanked);
    }
    rest
}

/// Where the brace at `open` is closed, in code.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return at,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    panic!("a brace that nothing closes, line {}", code[..open].lines().count());
}

fn blank(text: &str, out: &mut String) {
    out.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
}

/// Where the comment or literal that begins here ends; here, if none begins.
fn literal_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let after_word = text[..at].ends_with(is_word);
    if rest.starts_with("//") {
        return at + rest.find('\n').unwrap_or(rest.len());
    }
    if rest.starts_with("/*") {
        return at + rest.find("*/").map_or(rest.len(), |end| end + 2);
    }
    if rest.starts_with('"') {
        return at + string_end(rest);
    }
    if !after_word && let Some(end) = raw_string_end(rest) {
        return at + end;
    }
    if rest.starts_with('\'') { at + char_end(rest) } else { at }
}

fn string_end(rest: &str) -> usize {
    let mut escaped = false;
    for (at, char) in rest.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_string_end(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r')?;
    let hashes = body.len() - body.trim_start_matches('#').len();
    let text = body[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let end = text.find(&close)? + close.len();
    Some(rest.len() - text.len() + end)
}

/// The length of a character's literal; nothing for a lifetime.
fn char_end(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        // What is escaped may be a quote itself.
        Some((_, '\\')) => rest[3..].find('\'').map_or(0, |end| 3 + end + 1),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// Whether a character can be part of a name.
pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn only_code_is_left() {
    let text = "a /* { */ \"{\\\"\" b'{' '\\'' r#\"}\"# &'a x // {\nfn f<'a>() {}";
    let left: Vec<String> =
        code(text).lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(left, ["ab&'ax", "fnf<'a>(){}"]);
    let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n fn g() {}\n}\nfn h() {}";
    let left: Vec<String> = shipped(text).split_whitespace().map(str::to_owned).collect();
    assert_eq!(left, ["fn", "f()", "{}", "fn", "h()", "{}"]);
}
