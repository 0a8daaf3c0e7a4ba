//! Text in double quotes, escaped as Go's `%q` does, because messages of the API server contain it.

use std::fmt::Write;

/// The text in double quotes with everything that does not print escaped.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            ' '..='~' => out.push(c),
            c if !c.is_ascii() && prints(c) => out.push(c),
            c => push_code(&mut out, u32::from(c)),
        }
    }
    out.push('"');
    out
}

fn push_code(out: &mut String, code: u32) {
    // Writing to a String does not fail.
    let _ = match code {
        ..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Letters, marks, numbers, punctuation and symbols.
fn prints(c: char) -> bool {
    // Marks count as printing when they follow something, so a letter goes before.
    let after_letter: String = ['a', c].iter().collect();
    after_letter.escape_debug().count() == 2
}

#[cfg(test)]
mod tests {
    use super::quote;

    #[test]
    fn escapes_as_go() {
        for (text, quoted) in [
            ("", r#""""#),
            ("a b", r#""a b""#),
            ("a\"\\", r#""a\"\\""#),
            ("\n\t\r\x07\x08\x0b\x0c\0\x1b\x7f", r#""\n\t\r\a\b\v\f\x00\x1b\x7f""#),
            ("é日🙂\u{301}", "\"é日🙂\u{301}\""),
            (
                "\u{a0}\u{200b}\u{2028}\u{e0001}\u{10ffff}\u{80}",
                r#""\u00a0\u200b\u2028\U000e0001\U0010ffff\u0080""#,
            ),
        ] {
            assert_eq!(quote(text), quoted);
        }
    }
}
