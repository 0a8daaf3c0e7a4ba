//! When an outage is worth reporting: when it begins, once in a while as long as it lasts, and when
//! it is over.

use std::time::{Duration, Instant};

/// How long an outage that lasts is not reported again; wall-clock.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// An outage of one thing, such as one server.
#[derive(Debug, Default)]
pub struct Outage {
    /// How long there must be no failure before it is over: where one success proves little, this
    /// keeps an outage that comes and goes from being reported each time.
    quiet: Duration,
    /// When it was last reported, and when it was last seen.
    reported: Option<(Instant, Instant)>,
}

/// What to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Nothing that is not known already.
    Nothing,
    /// It has begun, or still lasts.
    Ongoing,
    /// It is over.
    Over,
}

impl Outage {
    /// None yet; once there is one, it is over after so long without a failure.
    #[must_use]
    pub fn over_after(quiet: Duration) -> Outage {
        Outage { quiet, reported: None }
    }

    /// Takes in whether the last attempt failed.
    pub fn observe(&mut self, failed: bool, now: Instant) -> Notice {
        match (failed, &mut self.reported) {
            (false, Some((_, last))) if now.duration_since(*last) >= self.quiet => {
                self.reported = None;
                Notice::Over
            }
            (false, _) => Notice::Nothing,
            (true, Some((reported, last))) if now.duration_since(*reported) < REPORT_INTERVAL => {
                *last = now;
                Notice::Nothing
            }
            (true, _) => {
                self.reported = Some((now, now));
                Notice::Ongoing
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_reported_when_it_begins_goes_on_and_ends() {
        let (mut outage, start) = (Outage::default(), Instant::now());
        for (seconds, failed, expected) in [
            (0, false, Notice::Nothing),
            (1, true, Notice::Ongoing),
            (2, true, Notice::Nothing),
            (60, true, Notice::Nothing),
            (61, true, Notice::Ongoing),
            (62, false, Notice::Over),
            (63, false, Notice::Nothing),
            (64, true, Notice::Ongoing),
        ] {
            let now = start + Duration::from_secs(seconds);
            assert_eq!(outage.observe(failed, now), expected, "after {seconds} s");
        }
    }

    #[test]
    fn one_that_comes_and_goes_is_not_reported_each_time() {
        let (mut outage, start) = (Outage::over_after(Duration::from_secs(60)), Instant::now());
        let mut reported = Vec::new();
        for second in 0..250 {
            let failed = second % 2 == 0 && second < 100;
            let notice = outage.observe(failed, start + Duration::from_secs(second));
            if notice != Notice::Nothing {
                reported.push((second, notice));
            }
        }
        assert_eq!(reported, [(0, Notice::Ongoing), (60, Notice::Ongoing), (158, Notice::Over)]);
    }
}
