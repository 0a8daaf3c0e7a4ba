//! Why so many Jobs are created, in words.

use super::{
    Calculation, JobCounts, JobPlan, JobRules, JobSnapshot, JobStrategy, JobTrigger, combine,
    number, whole,
};
use crate::model::Milli;

/// Why a plan is what it is, in one line: what there is to do, what is done about it already, and what follows.
#[must_use]
pub fn reason(snapshot: &JobSnapshot, plan: JobPlan) -> String {
    let JobSnapshot { rules, counts: JobCounts { running, pending }, triggers } = snapshot;
    let unfinished = format!("{running} unfinished, {pending} of them pending");
    if *running < rules.min {
        return format!("{} below the minimum of {}: {}", unfinished, rules.min, created(plan));
    }
    let active = snapshot.loads().filter(|load| load.active).count();
    if active == 0 {
        return format!("no trigger is active; {unfinished}: {}", created(plan));
    }
    let max = rules.max();
    let (amount, jobs) = combine(rules.calculation, max as f64, snapshot.loads());
    let of = match (active, rules.calculation) {
        (1, _) => "",
        (_, Calculation::Max) => ", the most of all",
        (_, Calculation::Min) => ", the least of all",
        (_, Calculation::Average) => ", the mean of all",
        (_, Calculation::Sum) => ", the sum of all",
    };
    let (count, min, strategy) = (triggers.len(), rules.min, name(rules.strategy));
    let beside = if min > 0 { format!(" beside the minimum of {min}") } else { String::new() };
    format!(
        "{active} of {count} triggers active with {amount} to do{of}, for {} of at most {max} Jobs{beside}; \
         {unfinished}; strategy {strategy}: {}",
        jobs.ceil(),
        created(plan)
    )
}

/// Why a plan is what it is, step by step.
#[must_use]
pub fn lines(snapshot: &JobSnapshot, plan: JobPlan) -> Vec<String> {
    let JobSnapshot { rules, counts: JobCounts { running, pending }, triggers } = snapshot;
    let unfinished = match running {
        1 => "1 Job is unfinished".to_owned(),
        running => format!("{running} Jobs are unfinished"),
    };
    let mut lines = vec![format!("{unfinished}, {pending} of them pending")];
    lines.extend(triggers.iter().map(trigger_line));
    let active = snapshot.loads().filter(|load| load.active).count();
    if *running < rules.min {
        let missing = rules.min.saturating_sub(*running);
        lines.push(format!("there are at least {} always: {missing} are missing", rules.min));
    } else if active == 0 {
        lines.push("no trigger is active, so there is nothing to do".to_owned());
    } else {
        lines.extend(combined_line(snapshot, active));
        lines.extend(strategy_line(snapshot));
    }
    lines.push(format!("so {}", created(plan)));
    lines
}

fn trigger_line(JobTrigger { metric, answer }: &JobTrigger) -> String {
    match answer {
        Err(why) => format!("{metric} could not be read: {why}"),
        Ok(load) if !load.active => {
            format!("{metric} is not active with {} to do", number(load.amount))
        }
        Ok(load) if load.per_job == Milli(0) => {
            format!("{metric} has {} to do, and no target for one Job", number(load.amount))
        }
        Ok(load) => {
            let (amount, each) = (number(load.amount), number(load.per_job));
            let jobs = whole(load.jobs());
            format!("{metric} has {amount} to do, {each} for each Job: asks for {jobs}")
        }
    }
}

/// What becomes of several triggers and of more than there may be.
fn combined_line(snapshot: &JobSnapshot, active: usize) -> Vec<String> {
    let JobRules { min, calculation, .. } = snapshot.rules;
    let max = snapshot.rules.max();
    let mut lines = Vec::new();
    if active > 1 {
        let of = match calculation {
            Calculation::Max => "the one with the most to do",
            Calculation::Min => "the one with the least to do",
            Calculation::Average => "the mean",
            Calculation::Sum => "the sum",
        };
        let asked = snapshot.asked();
        lines.push(format!("of {active} active triggers {of} counts: {asked}"));
    }
    if snapshot.is_limited() {
        let beside = if min > 0 { format!(" beside the minimum of {min}") } else { String::new() };
        let asked = snapshot.asked();
        lines.push(format!("limited from {asked} to {max}, the most Jobs there may be{beside}"));
    }
    lines
}

/// What the strategy takes off.
fn strategy_line(snapshot: &JobSnapshot) -> Option<String> {
    let JobSnapshot { rules, counts: JobCounts { running, pending }, .. } = snapshot;
    let beside = running.saturating_sub(rules.min);
    let says = match rules.strategy {
        JobStrategy::Default if beside == 0 => return None,
        JobStrategy::Default => format!("less {beside} that are unfinished"),
        JobStrategy::Custom { deduction, running_share } => {
            format!("less {deduction}, and less {running_share} of {beside} unfinished Jobs")
        }
        JobStrategy::Accurate => {
            format!("what runs is no part of the load any more; {pending} pending Jobs are")
        }
        JobStrategy::Eager => {
            let room = rules.max() - i64::from(beside) - i64::from(*pending);
            format!("all the room there is, which is for {}", room.max(0))
        }
    };
    Some(format!("strategy {}: {says}", name(rules.strategy)))
}

fn name(strategy: JobStrategy) -> &'static str {
    match strategy {
        JobStrategy::Default => "default",
        JobStrategy::Custom { .. } => "custom",
        JobStrategy::Accurate => "accurate",
        JobStrategy::Eager => "eager",
    }
}

fn created(plan: JobPlan) -> String {
    match plan.create {
        0 => "none is created".to_owned(),
        1 => "1 is created".to_owned(),
        create => format!("{create} are created"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Load, decide};
    use super::*;

    const RULES: JobRules = JobRules {
        min: 0,
        max_beside_min: 10,
        strategy: JobStrategy::Default,
        calculation: Calculation::Max,
    };

    /// Two units a Job; a negative amount could not be read.
    fn snapshot(rules: JobRules, running: i32, amounts: &[i64]) -> JobSnapshot {
        let trigger = |(place, amount): (usize, &i64)| {
            let (amount, per_job) = (Milli(amount * 1000), Milli(2000));
            let load = Load { amount, per_job, active: amount > Milli(0) };
            let answer = if amount < Milli(0) { Err("no route".into()) } else { Ok(load) };
            JobTrigger { metric: format!("s{place}").into(), answer }
        };
        let triggers = amounts.iter().enumerate().map(trigger).collect();
        JobSnapshot { rules, counts: JobCounts { running, pending: 0 }, triggers }
    }

    #[test]
    fn a_plan_is_told_in_one_line() {
        for (rules, running, amounts, expected) in [
            (
                RULES,
                1,
                &[7, 0][..],
                "1 of 2 triggers active with 7 to do, for 4 of at most 10 Jobs; 1 unfinished, 0 of \
                 them pending; strategy default: 3 are created",
            ),
            (
                JobRules { calculation: Calculation::Sum, min: 1, ..RULES },
                1,
                &[1, 1][..],
                "2 of 2 triggers active with 2 to do, the sum of all, for 1 of at most 10 Jobs beside \
                 the minimum of 1; 1 unfinished, 0 of them pending; strategy default: 1 is created",
            ),
            (
                JobRules { min: 3, ..RULES },
                1,
                &[][..],
                "1 unfinished, 0 of them pending below the minimum of 3: 2 are created",
            ),
            (
                RULES,
                2,
                &[0][..],
                "no trigger is active; 2 unfinished, 0 of them pending: none is created",
            ),
        ] {
            let snapshot = snapshot(rules, running, amounts);
            assert_eq!(reason(&snapshot, decide(&snapshot)), expected);
        }
    }

    #[test]
    fn a_plan_is_told_step_by_step() {
        let eager = JobRules { strategy: JobStrategy::Eager, ..RULES };
        let sum = JobRules { calculation: Calculation::Sum, ..RULES };
        for (rules, running, amounts, expected) in [
            (
                RULES,
                1,
                &[7, 0, -1][..],
                "1 Job is unfinished, 0 of them pending; s0 has 7 to do, 2 for each Job: asks for 4; \
                 s1 is not active with 0 to do; s2 could not be read: no route; strategy default: less \
                 1 that are unfinished; so 3 are created",
            ),
            (
                sum,
                0,
                &[30, 2][..],
                "0 Jobs are unfinished, 0 of them pending; s0 has 30 to do, 2 for each Job: asks for \
                 15; s1 has 2 to do, 2 for each Job: asks for 1; of 2 active triggers the sum counts: \
                 16; limited from 16 to 10, the most Jobs there may be; so 10 are created",
            ),
            (
                eager,
                4,
                &[30][..],
                "4 Jobs are unfinished, 0 of them pending; s0 has 30 to do, 2 for each Job: asks for \
                 15; limited from 15 to 10, the most Jobs there may be; strategy eager: all the room \
                 there is, which is for 6; so 6 are created",
            ),
            (
                JobRules { min: 3, ..RULES },
                1,
                &[0][..],
                "1 Job is unfinished, 0 of them pending; s0 is not active with 0 to do; there are at \
                 least 3 always: 2 are missing; so 2 are created",
            ),
            (
                RULES,
                0,
                &[0][..],
                "0 Jobs are unfinished, 0 of them pending; s0 is not active with 0 to do; no trigger is \
                 active, so there is nothing to do; so none is created",
            ),
        ] {
            let snapshot = snapshot(rules, running, amounts);
            assert_eq!(lines(&snapshot, decide(&snapshot)).join("; "), expected);
        }
    }
}
