//! Keeps the values that a trigger proves itself with out of texts that its source answers with.

use podscale_scalers::Secret;
use std::sync::Arc;

/// Shorter values are parts of too many words.
const SHORTEST_BYTES: usize = 4;
/// What stands in their place.
const MASK: &str = "***";
/// How much is kept of what a source answers: it may be any amount of text, and is logged, recorded and stored.
const MOST_ANSWER_CHARS: usize = 1024;

/// The values of one trigger.
#[derive(Clone, Default)]
pub(super) struct Hidden(Arc<[Secret]>);

impl Hidden {
    /// Hides these.
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a Secret>) -> Hidden {
        let long = values.filter(|value| value.expose().trim().len() >= SHORTEST_BYTES);
        Hidden(long.cloned().collect())
    }

    /// Why a source gives nothing, without them. They are hidden first: a part of one is not recognized.
    pub(super) fn answer(&self, text: String) -> String {
        let mut text = self.hide(text);
        if let Some((end, _)) = text.char_indices().nth(MOST_ANSWER_CHARS) {
            text.truncate(end);
        }
        text
    }

    /// A text without them.
    pub(super) fn hide(&self, mut text: String) -> String {
        for value in self.0.iter().map(|value| value.expose().trim()) {
            if text.contains(value) {
                text = text.replace(value, MASK);
            }
            if let Some(begun) = begun(&text, value) {
                text.truncate(text.len() - begun);
                text.push_str(MASK);
            }
        }
        text
    }
}

/// How many bytes at the end of a text are the beginning of a value: sources give excerpts, which end anywhere.
fn begun(text: &str, value: &str) -> Option<usize> {
    let longest = value.len().min(text.len());
    let mut lengths = (SHORTEST_BYTES..=longest).rev();
    lengths.find(|length| value.get(..*length).is_some_and(|begun| text.ends_with(begun)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_hidden_wherever_they_are() {
        let values = ["hunter2\n", "abc", ""].map(Secret::from);
        let hidden = Hidden::of(values.iter());
        let shown = |text: &str| hidden.hide(text.to_owned());
        assert_eq!(shown("401: no hunter2 here, hunter2!"), "401: no *** here, ***!");
        assert_eq!(shown("abc and nothing"), "abc and nothing");
        for (cut, expected) in
            [("no hunter", "no ***"), ("no hunt", "no ***"), ("no hun", "no hun")]
        {
            assert_eq!(shown(cut), expected);
        }
        let long = "é".repeat(MOST_ANSWER_CHARS - 1);
        assert_eq!(hidden.answer(format!("{long}hunter2")), format!("{long}*"));
    }
}
