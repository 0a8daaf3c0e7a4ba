//! Searches settings of an autoscaler: which of them may be changed, what is better, and what there is to
//! choose from. What a choice is worth is measured elsewhere; nothing here simulates.

mod search;
mod space;

pub use search::{Search, Tried, frontier};
pub use space::{Choice, Space};

use podscale_core::Span;

/// What a choice is worth: means over loads and seeds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Worth {
    /// Which part of the requests went wrong.
    pub violations: f64,
    /// What the pods cost.
    pub pod_hours: f64,
    /// How restless it was.
    pub reversals_per_hour: f64,
}

impl Worth {
    /// Whether it is at least as good as another one in both, and better in one.
    #[must_use]
    pub fn dominates(&self, other: &Worth) -> bool {
        self.violations <= other.violations
            && self.pod_hours <= other.pod_hours
            && (self.violations < other.violations || self.pod_hours < other.pod_hours)
    }
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// The fewest pod-hours with at most this part of the requests going wrong.
    MaxViolations(f64),
    /// The smallest sum of pod-hours and violations, each percent of which counts so many pod-hours.
    Weight(f64),
}

impl Objective {
    /// What it costs: the smaller, the better; first by whether it is allowed at all.
    #[must_use]
    pub fn cost(self, worth: &Worth) -> (bool, f64) {
        match self {
            Objective::MaxViolations(most) if worth.violations > most => (true, worth.violations),
            Objective::MaxViolations(_) => (false, worth.pod_hours),
            Objective::Weight(weight) => {
                (false, worth.pod_hours + weight * worth.violations * 100.0)
            }
        }
    }

    /// Whether the first is better than the second.
    #[must_use]
    pub fn prefers(self, first: &Worth, second: &Worth) -> bool {
        let ((not_allowed, cost), (other_not_allowed, other)) =
            (self.cost(first), self.cost(second));
        (not_allowed, other_not_allowed) == (false, true)
            || (not_allowed == other_not_allowed && cost < other)
    }
}

/// A part of a load that is held out: settings are chosen by what comes before it, and scored in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Where it begins, as a part of the load.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// So many parts of a load after its first part, equally long and one after the other.
#[must_use]
pub fn held_out(first: f64, parts: u32) -> Vec<HeldOut> {
    let first = first.clamp(0.0, 1.0);
    let parts = parts.max(1);
    let border = |number: u32| first + (1.0 - first) * f64::from(number) / f64::from(parts);
    (0..parts).map(|number| HeldOut { from: border(number), to: border(number + 1) }).collect()
}

/// So much of a run of this length.
#[must_use]
pub fn share_of(length: Span, share: f64) -> Span {
    // The cast saturates.
    Span((length.0 as f64 * share.clamp(0.0, 1.0)).round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(violations: f64, pod_hours: f64) -> Worth {
        Worth { violations, pod_hours, reversals_per_hour: 0.0 }
    }

    #[test]
    fn objectives_say_what_is_better() {
        let most = Objective::MaxViolations(0.01);
        for (first, second, expected) in [
            (worth(0.005, 10.0), worth(0.001, 11.0), true),
            (worth(0.02, 1.0), worth(0.01, 100.0), false),
            (worth(0.01, 100.0), worth(0.02, 1.0), true),
            (worth(0.02, 9.0), worth(0.03, 1.0), true),
            (worth(0.01, 5.0), worth(0.01, 5.0), false),
        ] {
            assert_eq!(most.prefers(&first, &second), expected, "{first:?} {second:?}");
        }
        let weight = Objective::Weight(3.0);
        assert!(weight.prefers(&worth(0.01, 10.0), &worth(0.02, 10.5)));
        assert!(!weight.prefers(&worth(0.01, 14.0), &worth(0.02, 10.5)));
    }

    #[test]
    fn parts_that_are_held_out_follow_each_other() {
        let part = |from, to| HeldOut { from, to };
        assert_eq!(held_out(0.5, 2), [part(0.5, 0.75), part(0.75, 1.0)]);
        assert_eq!(held_out(0.9, 0), [part(0.9, 1.0)]);
        assert_eq!(share_of(Span::seconds(4000), 0.75), Span::seconds(3000));
    }

    #[test]
    fn only_what_is_better_in_something_and_worse_in_nothing_dominates() {
        assert!(worth(0.1, 1.0).dominates(&worth(0.1, 2.0)));
        assert!(!worth(0.1, 1.0).dominates(&worth(0.1, 1.0)));
        assert!(!worth(0.1, 3.0).dominates(&worth(0.2, 2.0)));
    }
}
