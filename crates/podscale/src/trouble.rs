//! When trouble is worth telling: when it begins, once in a while as long as it lasts, and when it is
//! over.

use std::time::{Duration, Instant};

/// How long trouble that lasts is not told again; time of the wall.
pub const TOLD: Duration = Duration::from_secs(60);

/// Trouble of one kind, and when it was told last.
#[derive(Debug, Default)]
pub struct Trouble(Option<Instant>);

/// What to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing that is not known.
    Nothing,
    /// There is trouble.
    Trouble,
    /// It is over.
    Over,
}

impl Trouble {
    /// Takes in whether there is trouble now.
    pub fn news(&mut self, is_trouble: bool, now: Instant) -> News {
        match (is_trouble, self.0) {
            (false, None) => News::Nothing,
            (false, Some(_)) => {
                self.0 = None;
                News::Over
            }
            (true, Some(told)) if now.duration_since(told) < TOLD => News::Nothing,
            (true, _) => {
                self.0 = Some(now);
                News::Trouble
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_when_it_begins_goes_on_and_ends() {
        let (mut trouble, start) = (Trouble::default(), Instant::now());
        for (seconds, is_trouble, expected) in [
            (0, false, News::Nothing),
            (1, true, News::Trouble),
            (2, true, News::Nothing),
            (60, true, News::Nothing),
            (61, true, News::Trouble),
            (62, false, News::Over),
            (63, false, News::Nothing),
            (64, true, News::Trouble),
        ] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(trouble.news(is_trouble, now), expected, "after {seconds} s");
        }
    }
}
