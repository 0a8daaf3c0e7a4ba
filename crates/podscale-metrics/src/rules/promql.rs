//! What can be said about a query without Prometheus: whether its brackets and quotes close, and whether its
//! ranges are durations.

use super::config::prometheus_duration;

/// Checks a query or a selector.
///
/// # Errors
/// Says what does not fit.
pub(super) fn check(query: &str) -> Result<(), String> {
    let mut open: Vec<(char, usize)> = Vec::new();
    let mut rest = query.char_indices();
    while let Some((at, character)) = rest.next() {
        match character {
            '"' | '\'' | '`' => close(&mut rest, character).ok_or_else(|| {
                format!("the text that begins with {} has no end", near(query, at))
            })?,
            '#' => {
                rest.by_ref().find(|(_, character)| *character == '\n');
            }
            '(' | '[' | '{' => open.push((character, at)),
            ')' | ']' | '}' => match open.pop() {
                Some((begin, start)) if closing(begin) == character => {
                    if begin == '[' {
                        check_range(query.get(start + 1..at).unwrap_or_default())?;
                    }
                }
                Some((begin, _)) => {
                    let expected = closing(begin);
                    return Err(format!("has {character:?} where {expected:?} must be"));
                }
                None => return Err(format!("has {character:?} that nothing opens")),
            },
            _ => {}
        }
    }
    match open.pop() {
        Some((begin, at)) => Err(format!("has no {:?} for {}", closing(begin), near(query, at))),
        None => Ok(()),
    }
}

/// Goes on behind the end of a text in quotes, if there is one.
fn close(rest: &mut std::str::CharIndices<'_>, quote: char) -> Option<()> {
    while let Some((_, character)) = rest.next() {
        if character == quote {
            return Some(());
        }
        // In back quotes nothing is escaped.
        if character == '\\' && quote != '`' {
            rest.next();
        }
    }
    None
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

/// The beginning of what is meant.
fn near(query: &str, at: usize) -> String {
    let text: String = query.get(at..).unwrap_or_default().chars().take(20).collect();
    format!("{text:?}")
}

/// A range, perhaps with a resolution. Only what looks like a duration and is none is wrong: newer servers
/// understand expressions.
fn check_range(range: &str) -> Result<(), String> {
    for part in range.split(':').map(str::trim) {
        let word = part.chars().all(|c| c.is_ascii_alphanumeric())
            && part.starts_with(|c: char| c.is_ascii_digit())
            && part.ends_with(|c: char| c.is_ascii_alphabetic());
        if word && prometheus_duration(part).is_none() {
            return Err(format!("[{range}] is not a range such as [5m]"));
        }
    }
    if range.trim().is_empty() {
        return Err("has a range without a duration".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_quotes_and_ranges_are_checked() {
        for (query, problem) in [
            ("foo", None),
            (r#"sum(rate(foo{a=~"x[(",b='}',c=`\`}[5m])) by (pod) # it's (one"#, None),
            (r#"max_over_time(foo{a="\""}[1h30m:15s] offset 5m)"#, None),
            ("rate(foo[5m:])", None),
            ("rate(foo[300])", None),
            ("rate(foo[step() + 1m])", None),
            ("foo{", Some(r#"has no '}' for "{""#)),
            ("sum(rate(foo[5m])", Some(r#"has no ')' for "(rate(foo[5m])""#)),
            ("rate(foo[5q])", Some("[5q] is not a range such as [5m]")),
            ("rate(foo[5m:1x])", Some("[5m:1x] is not a range such as [5m]")),
            ("rate(foo[])", Some("has a range without a duration")),
            ("foo{a=\"b}", Some(r#"the text that begins with "\"b}" has no end"#)),
            ("foo)", Some("has ')' that nothing opens")),
            ("sum(foo]", Some("has ']' where ')' must be")),
        ] {
            assert_eq!(check(query).err().as_deref(), problem, "{query}");
        }
    }
}
