//! How long work has waited that is served first in, first out: what has come is compared with what
//! has gone.

use podscale_core::Time;
use std::collections::VecDeque;

/// When there are more entries, every second one is forgotten.
const MAX_ENTRIES: usize = 65_536;

/// When how much had come.
#[derive(Clone, Debug, Default)]
pub(super) struct Age {
    /// Times by which this much had come, the oldest of what still waits first.
    came: VecDeque<(Time, f64)>,
}

impl Age {
    /// Takes in that nothing waits.
    pub(super) fn forget(&mut self) {
        if !self.came.is_empty() {
            self.came.clear();
        }
    }

    /// Takes in how much has come and gone until now; gives how long what is next has waited, in
    /// seconds.
    pub(super) fn take(&mut self, now: Time, came: f64, gone: f64, waiting: f64) -> f64 {
        if waiting <= 0.0 {
            self.forget();
            return 0.0;
        }
        if self.came.len() >= MAX_ENTRIES {
            let mut keep = false;
            self.came.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.came.push_back((now, came));
        while self.came.front().is_some_and(|(_, came)| *came <= gone) {
            self.came.pop_front();
        }
        let oldest = self.came.front().map_or(now, |(at, _)| *at);
        now.since(oldest).0 as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Span;

    #[test]
    fn the_oldest_work_that_waits_gives_the_age() {
        let mut age = Age::default();
        let at = |seconds: i64| Time(0).after(Span::seconds(seconds));
        assert_eq!(age.take(at(1), 10.0, 10.0, 0.0), 0.0);
        assert_eq!(age.take(at(2), 20.0, 12.0, 8.0), 0.0, "of this very slot");
        assert_eq!(age.take(at(3), 30.0, 14.0, 16.0), 1.0);
        assert_eq!(age.take(at(4), 30.0, 19.0, 11.0), 2.0);
        assert_eq!(age.take(at(5), 30.0, 21.0, 9.0), 2.0, "now what came at 3 is next");
        assert_eq!(age.take(at(6), 30.0, 30.0, 0.0), 0.0);
    }

    #[test]
    fn memory_stays_bounded() {
        let mut age = Age::default();
        for second in 0..200_000 {
            let came = second as f64 + 1.0;
            age.take(Time(0).after(Span::seconds(second)), came, 0.0, came);
        }
        assert!(age.came.len() <= MAX_ENTRIES);
        let last = age.take(Time(0).after(Span::seconds(200_000)), 2e5, 0.0, 2e5);
        assert_eq!(last, 200_000.0, "the oldest is kept");
    }
}
