//! What earlier decisions on one object left behind, as this replica knows it.

use crate::dialect::SizeChange;
use podscale_core::history::{Learned, Recommendation};
use podscale_core::model::Behavior;
use podscale_core::{History, Time};

/// A history, and whether another controller may have decided since without it being known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recalled {
    /// The history.
    pub(super) history: History,
    /// Whether recommendations may be missing at its end.
    pub(super) interrupted: bool,
}

impl Recalled {
    /// Repairs an interrupted history as a controller that has just started does: the size that is
    /// found counts as recommended, so that nothing is scaled down for want of memory.
    pub(super) fn repair_after_interruption(&mut self, replicas: i32, at: Time) {
        if self.interrupted && !self.history.recommendations.is_empty() {
            let first = Some(Recommendation { replicas, at });
            self.history.commit(&Learned { first, ..Learned::default() });
        }
        self.interrupted = false;
    }

    /// Takes in the changes of size that were made before anything was decided here, the newest first:
    /// rate policies count them. A history that has changes of its own knows better.
    pub(super) fn carry_over(&mut self, behavior: Option<&Behavior>, changes: &[SizeChange]) {
        if self.history.ups.is_empty() && self.history.downs.is_empty() {
            for SizeChange { from, to, at } in changes.iter().rev().filter(|c| c.from != c.to) {
                self.history.scaled(behavior, *from, *to, *at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Span;

    fn recalled(seconds: &[i64], interrupted: bool) -> Recalled {
        let recommendation =
            |s: &i64| Recommendation { replicas: 3, at: Time(0).after(Span::seconds(*s)) };
        let recommendations = seconds.iter().map(recommendation).collect();
        Recalled { history: History { recommendations, ..History::default() }, interrupted }
    }

    #[test]
    fn an_interrupted_history_is_repaired_with_the_size_that_is_found() {
        let at = Time(0).after(Span::seconds(100));
        let mut repaired = recalled(&[40], true);
        repaired.repair_after_interruption(3, at);
        assert_eq!(repaired, recalled(&[40, 100], false));
        for mut untouched in [recalled(&[40], false), recalled(&[], true)] {
            let before = untouched.history.clone();
            untouched.repair_after_interruption(3, at);
            assert_eq!(untouched, Recalled { history: before, interrupted: false });
        }
    }
}
