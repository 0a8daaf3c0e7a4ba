//! When trouble is worth telling: when it begins, once in a while as long as it lasts, and when it is
//! over.

use std::time::{Duration, Instant};

/// How long trouble that lasts is not told again; time of the wall.
const TOLD: Duration = Duration::from_secs(60);

/// Trouble of one kind.
#[derive(Debug, Default)]
pub struct Trouble {
    /// How long there must be none before it is over: where one success proves little, this keeps
    /// trouble that comes and goes from being told each time.
    quiet: Duration,
    /// When it was told last, and when it was there last.
    told: Option<(Instant, Instant)>,
}

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
    /// None yet; once there is, it is over after so much quiet.
    #[must_use]
    pub fn over_after(quiet: Duration) -> Trouble {
        Trouble { quiet, told: None }
    }

    /// Takes in whether there is trouble now.
    pub fn news(&mut self, is_trouble: bool, now: Instant) -> News {
        match (is_trouble, &mut self.told) {
            (false, Some((_, last))) if now.duration_since(*last) >= self.quiet => {
                self.told = None;
                News::Over
            }
            (false, _) => News::Nothing,
            (true, Some((told, last))) if now.duration_since(*told) < TOLD => {
                *last = now;
                News::Nothing
            }
            (true, _) => {
                self.told = Some((now, now));
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

    #[test]
    fn what_comes_and_goes_is_not_told_each_time() {
        let (mut trouble, start) = (Trouble::over_after(Duration::from_secs(60)), Instant::now());
        let mut told = Vec::new();
        for second in 0..250 {
            let news =
                trouble.news(second % 2 == 0 && second < 100, start + Duration::from_secs(second));
            if news != News::Nothing {
                told.push((second, news));
            }
        }
        assert_eq!(told, [(0, News::Trouble), (60, News::Trouble), (158, News::Over)]);
    }
}
