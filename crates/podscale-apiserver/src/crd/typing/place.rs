//! Reports mistakes with the place in the text where they are, as the language's own compiler does.

use std::fmt::Write;

use cel::parser::Parser;

/// Most mistakes that are reported of one expression.
const MAX_REPORTED: usize = 100;

/// Something wrong with the part of an expression that has this number.
pub(super) struct Mistake {
    pub id: u64,
    pub text: String,
}

/// The mistakes in the order of the text, each with a drawing of its place.
pub(super) fn report(text: &str, mistakes: Vec<Mistake>) -> String {
    let offsets = offsets(text, &mistakes);
    let mut placed: Vec<(usize, String)> =
        offsets.into_iter().zip(mistakes).map(|(offset, mistake)| (offset, mistake.text)).collect();
    placed.sort_by_key(|(offset, _)| *offset);
    let left_out = placed.len().saturating_sub(MAX_REPORTED);
    let mut reported: Vec<String> = placed
        .iter()
        .take(MAX_REPORTED)
        .map(|(offset, mistake)| {
            let (line, column) = place_of(text, *offset);
            draw(text, line, column, mistake)
        })
        .collect();
    if left_out > 0 {
        reported.push(format!("{left_out} more errors were truncated"));
    }
    reported.join("\n")
}

/// Where each mistake's part of the expression starts, in bytes. The parser reports places only
/// along with a mistake of its own, so it reads the text once more with one at its end.
fn offsets(text: &str, mistakes: &[Mistake]) -> Vec<usize> {
    let places = match Parser::new().parse(&format!("{text}\n)")) {
        Err(found) => found.errors.into_iter().find_map(|error| error.source_info),
        Ok(_) => None,
    };
    let offset = |mistake: &Mistake| {
        let (start, _) = places.as_ref()?.offset_for(mistake.id)?;
        usize::try_from(start).ok()
    };
    mistakes.iter().map(|mistake| offset(mistake).unwrap_or_default()).collect()
}

/// Line and column of the character at a byte, both counted from one.
fn place_of(text: &str, offset: usize) -> (usize, usize) {
    let before = text.char_indices().take_while(|(at, _)| *at < offset);
    before.fold((1, 1), |(line, column), (_, character)| match character {
        '\n' => (line + 1, 1),
        _ => (line, column + 1),
    })
}

/// One mistake, its line, and a mark below the place.
pub(in crate::crd) fn draw(text: &str, line: usize, column: usize, mistake: &str) -> String {
    let mut drawn = format!("ERROR: <input>:{line}:{column}: {mistake}");
    if let Some(shown) = text.split('\n').nth(line.saturating_sub(1)) {
        let wide = |character: char| character.len_utf8() > 1;
        let mut characters = shown.chars();
        let dots: String = characters
            .by_ref()
            .take(column.saturating_sub(1))
            .map(|character| if wide(character) { '\u{ff0e}' } else { '.' })
            .collect();
        let mark = if characters.next().is_some_and(wide) { '\u{ff3e}' } else { '^' };
        // Writing to a text cannot fail.
        let _ = write!(drawn, "\n | {}\n | {dots}{mark}", shown.replace('\t', " "));
    }
    drawn
}
