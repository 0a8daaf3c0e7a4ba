//! How many Jobs a load asks for. Jobs are only ever created: one that runs is left to finish.

mod explain;

pub use explain::{lines, reason};

use crate::model::Milli;
use serde::Serialize;
use std::sync::Arc;

/// The most Jobs that one decision asks for; the next one goes on.
const MOST_CREATED: i64 = 1000;
/// Values of triggers are thousandths.
const THOUSANDTHS: f64 = 1000.0;

/// How many Jobs a load asks for, as one object says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobRules {
    /// How many unfinished Jobs there always are.
    pub min: i32,
    /// How many unfinished Jobs there may be beside those.
    pub max_beside_min: i32,
    /// The rule.
    pub strategy: JobStrategy,
    /// What is made of several triggers.
    pub calculation: Calculation,
}

/// By which rule a load becomes a number of Jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum JobStrategy {
    /// The load less what runs.
    #[default]
    Default,
    /// The load less a number and a share of what runs.
    Custom {
        /// The number.
        deduction: i32,
        /// The share, one being all.
        running_share: f64,
    },
    /// The load less what is pending: what runs has taken its part of the load away already.
    Accurate,
    /// As many as there is room for.
    Eager,
}

/// What is made of several triggers that are active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Calculation {
    /// The one with the most to do.
    #[default]
    Max,
    /// The one with the least to do.
    Min,
    /// Their mean.
    Average,
    /// Their sum.
    Sum,
}

/// What one trigger says that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// How much there is to do.
    pub amount: Milli,
    /// How much of it one Job does; zero if that is not known.
    pub per_job: Milli,
    /// Whether that is enough to begin with.
    pub active: bool,
}

impl Load {
    /// How many Jobs would do it, in parts of Jobs.
    #[must_use]
    pub fn jobs(&self) -> f64 {
        if self.per_job == Milli(0) { 0.0 } else { number(self.amount) / number(self.per_job) }
    }
}

/// One metric of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTrigger {
    /// Its name.
    pub metric: Arc<str>,
    /// What it says, or why it does not.
    pub answer: Result<Load, Arc<str>>,
}

/// What one decision about Jobs is made on.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSnapshot {
    /// How many Jobs a load asks for.
    pub rules: JobRules,
    /// The Jobs that there are.
    pub counts: JobCounts,
    /// The metrics of its triggers, in their order.
    pub triggers: Vec<JobTrigger>,
}

impl JobSnapshot {
    /// What the triggers say that could be read.
    pub fn loads(&self) -> impl Iterator<Item = &Load> + Clone {
        self.triggers.iter().filter_map(|trigger| trigger.answer.as_ref().ok())
    }

    /// How many Jobs the load asks for beside the minimum, if there were no maximum.
    #[must_use]
    pub fn asked(&self) -> i64 {
        whole(combine(self.rules.calculation, f64::INFINITY, self.loads()).1)
    }

    /// Whether the load asks for more Jobs than there may be.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.asked() > self.rules.max()
    }
}

impl JobRules {
    fn max(&self) -> i64 {
        i64::from(self.max_beside_min.max(0))
    }
}

/// The unfinished Jobs of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// All of them.
    pub running: i32,
    /// Those of which no pod runs yet.
    pub pending: i32,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct JobPlan {
    /// Whether there is anything to do.
    pub active: bool,
    /// How many Jobs are to be created.
    pub create: i32,
}

/// How many Jobs are to be created. Triggers that could not be read count for nothing.
#[must_use]
pub fn decide(snapshot: &JobSnapshot) -> JobPlan {
    let JobSnapshot { rules, counts, .. } = snapshot;
    let max = rules.max();
    let (amount, jobs) = combine(rules.calculation, max as f64, snapshot.loads());
    let active = rules.min > 0 || snapshot.loads().any(|load| load.active);
    let (running, pending) = (i64::from(counts.running), i64::from(counts.pending));
    let missing = i64::from(rules.min) - running;
    if missing > 0 {
        return JobPlan { active, create: narrow(missing) };
    }
    let wish = whole(amount);
    let asked = whole(jobs.min(max as f64));
    let beside = running - i64::from(rules.min);
    let (limit, wish) = match rules.strategy {
        JobStrategy::Default => (asked.saturating_sub(beside), wish),
        JobStrategy::Custom { deduction, running_share } => {
            // The conversion cuts towards zero.
            let share = (beside as f64 * running_share) as i64;
            let rest = asked.saturating_sub(i64::from(deduction)).saturating_sub(share);
            (rest.min(max), wish)
        }
        JobStrategy::Accurate if asked.saturating_add(beside - pending) > max => {
            (max - beside, wish)
        }
        JobStrategy::Accurate => (asked.saturating_sub(pending), wish),
        JobStrategy::Eager => ((max - beside - pending).min(asked), max),
    };
    let create = if active { wish.min(limit).max(0) } else { 0 };
    JobPlan { active, create: narrow(create) }
}

/// How much there is to do, and how many Jobs would do it; only triggers that are active count.
fn combine<'a>(
    calculation: Calculation,
    max: f64,
    loads: impl Iterator<Item = &'a Load> + Clone,
) -> (f64, f64) {
    let active =
        loads.filter(|load| load.active).map(|load| (number(load.amount), load.jobs().min(max)));
    let sums = active.clone().fold((0.0, 0.0), |(a, j), (amount, jobs)| (a + amount, j + jobs));
    match calculation {
        Calculation::Max => {
            active.fold((0.0, 0.0), |best, load| if load.0 > best.0 { load } else { best })
        }
        Calculation::Min => {
            let least = |best: Option<(f64, f64)>, load: (f64, f64)| match best {
                Some(best) if best.0 <= load.0 => Some(best),
                _ => Some(load),
            };
            active.fold(None, least).unwrap_or_default()
        }
        Calculation::Sum => sums,
        Calculation::Average => match active.count() {
            0 => sums,
            count => (sums.0 / count as f64, sums.1 / count as f64),
        },
    }
}

fn number(Milli(thousandths): Milli) -> f64 {
    thousandths as f64 / THOUSANDTHS
}

/// Rounded up. The conversion saturates.
fn whole(number: f64) -> i64 {
    number.ceil() as i64
}

fn narrow(number: i64) -> i32 {
    i32::try_from(number.min(MOST_CREATED)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(strategy: JobStrategy) -> JobRules {
        JobRules { min: 0, max_beside_min: 10, strategy, calculation: Calculation::Max }
    }

    fn load(amount: f64, per_job: f64) -> Load {
        let milli = |number: f64| Milli((number * THOUSANDTHS).round() as i64);
        Load { amount: milli(amount), per_job: milli(per_job), active: amount > 0.0 }
    }

    fn snapshot(rules: JobRules, (running, pending): (i32, i32), loads: &[Load]) -> JobSnapshot {
        let trigger = |load: &Load| JobTrigger { metric: "s0-queue".into(), answer: Ok(*load) };
        let triggers = loads.iter().map(trigger).collect();
        JobSnapshot { rules, counts: JobCounts { running, pending }, triggers }
    }

    #[track_caller]
    fn check(rules: JobRules, counts: (i32, i32), loads: &[Load], create: i32) {
        let snapshot = snapshot(rules, counts, loads);
        assert_eq!(decide(&snapshot).create, create, "{snapshot:?}");
    }

    #[test]
    fn each_strategy_counts_what_runs_in_its_own_way() {
        use JobStrategy::{Accurate, Custom, Default, Eager};
        let custom = Custom { deduction: 1, running_share: 0.5 };
        for (strategy, counts, amount, create) in [
            (Default, (0, 0), 3.0, 3),
            (Default, (2, 0), 3.0, 1),
            (Default, (5, 0), 3.0, 0),
            (Default, (0, 0), 50.0, 10),
            (custom, (0, 0), 5.0, 4),
            (custom, (3, 0), 5.0, 3),
            (custom, (20, 0), 5.0, 0),
            (Accurate, (3, 0), 5.0, 5),
            (Accurate, (3, 2), 5.0, 3),
            (Accurate, (8, 0), 5.0, 2),
            (Accurate, (8, 3), 5.0, 2),
            (Eager, (0, 0), 3.0, 3),
            (Eager, (3, 1), 50.0, 6),
            (Eager, (9, 4), 50.0, 0),
        ] {
            check(rules(strategy), counts, &[load(amount, 1.0)], create);
        }
    }

    #[test]
    fn the_length_of_the_queue_is_the_wish_and_its_share_the_limit() {
        let default = rules(JobStrategy::Default);
        check(default, (0, 0), &[load(7.0, 2.0)], 4);
        check(default, (0, 0), &[load(0.5, 0.1)], 1);
        check(default, (0, 0), &[load(7.0, 0.0)], 0);
        // An eager one takes all the room that the load asks for.
        check(rules(JobStrategy::Eager), (0, 0), &[load(7.0, 2.0)], 4);
        let inactive = Load { active: false, ..load(7.0, 1.0) };
        check(default, (0, 0), &[inactive], 0);
        check(default, (0, 0), &[], 0);
        assert!(!decide(&snapshot(default, (0, 0), &[inactive])).active);
    }

    #[test]
    fn a_minimum_is_kept_beside_the_rest() {
        let min = JobRules { min: 3, ..rules(JobStrategy::Default) };
        assert!(decide(&snapshot(min, (0, 0), &[])).active);
        check(min, (0, 0), &[load(5.0, 1.0)], 3);
        check(min, (2, 0), &[], 1);
        check(min, (3, 0), &[load(5.0, 1.0)], 5);
        check(min, (5, 0), &[load(5.0, 1.0)], 3);
        check(min, (3, 0), &[], 0);
    }

    #[test]
    fn one_decision_asks_for_so_many_and_no_more() {
        let many = JobRules { max_beside_min: 5000, ..rules(JobStrategy::Default) };
        check(many, (0, 0), &[load(4000.0, 1.0)], 1000);
        check(JobRules { min: 2000, ..many }, (0, 0), &[], 1000);
    }

    #[test]
    fn a_load_that_asks_for_more_than_there_may_be_is_limited() {
        let limited = |loads: &[Load]| {
            let snapshot = snapshot(rules(JobStrategy::Default), (10, 0), loads);
            (snapshot.asked(), snapshot.is_limited())
        };
        assert_eq!(limited(&[load(20.0, 2.0)]), (10, false));
        assert_eq!(limited(&[load(21.0, 2.0)]), (11, true));
        assert_eq!(limited(&[]), (0, false));
    }

    #[test]
    fn several_triggers_become_one() {
        let loads = [load(6.0, 2.0), load(4.0, 1.0), Load { active: false, ..load(100.0, 1.0) }];
        for (calculation, create) in [
            // Six to do, by three.
            (Calculation::Max, 3),
            (Calculation::Min, 4),
            (Calculation::Sum, 7),
            (Calculation::Average, 4),
        ] {
            let rules = JobRules { calculation, ..rules(JobStrategy::Default) };
            check(rules, (0, 0), &loads, create);
            check(rules, (0, 0), &[], 0);
        }
    }
}
