//! Why so many Jobs are created, in words.

use super::{Calculation, JobCounts, JobPlan, JobRules, JobStrategy, Load, combine};

/// Why a plan is what it is, in one line: what there is to do, what is done about it already, and what follows.
#[must_use]
pub fn explain(rules: &JobRules, counts: JobCounts, loads: &[Load], plan: JobPlan) -> String {
    let JobCounts { running, pending } = counts;
    let unfinished = format!("{running} unfinished, {pending} of them pending");
    if running < rules.min {
        return format!("{} below the minimum of {}: {}", unfinished, rules.min, created(plan));
    }
    let active = loads.iter().filter(|load| load.active).count();
    if active == 0 {
        return format!("no trigger is active; {unfinished}: {}", created(plan));
    }
    let max = i64::from(rules.max_beside_min.max(0));
    let (amount, jobs) = combine(rules.calculation, max, loads);
    let of = match (active, rules.calculation) {
        (1, _) => "",
        (_, Calculation::Max) => ", the most of all",
        (_, Calculation::Min) => ", the least of all",
        (_, Calculation::Average) => ", the mean of all",
        (_, Calculation::Sum) => ", the sum of all",
    };
    let strategy = match rules.strategy {
        JobStrategy::Default => "default",
        JobStrategy::Custom { .. } => "custom",
        JobStrategy::Accurate => "accurate",
        JobStrategy::Eager => "eager",
    };
    let (count, min) = (loads.len(), rules.min);
    let beside = if min > 0 { format!(" beside the minimum of {min}") } else { String::new() };
    format!(
        "{active} of {count} triggers active with {amount} to do{of}, for {} of at most {max} Jobs{beside}; \
         {unfinished}; strategy {strategy}: {}",
        jobs.ceil(),
        created(plan)
    )
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
    use super::super::plan;
    use super::*;

    #[test]
    fn a_plan_is_told_in_one_line() {
        let rules = JobRules {
            min: 0,
            max_beside_min: 10,
            strategy: JobStrategy::Default,
            calculation: Calculation::Max,
        };
        let load = |amount: f64| Load { amount, per_job: 2.0, active: amount > 0.0 };
        let told = |rules: JobRules, running: i32, loads: &[Load]| {
            let counts = JobCounts { running, pending: 0 };
            explain(&rules, counts, loads, plan(&rules, counts, loads))
        };
        for (rules, running, loads, expected) in [
            (
                rules,
                1,
                &[load(7.0), load(0.0)][..],
                "1 of 2 triggers active with 7 to do, for 4 of at most 10 Jobs; 1 unfinished, 0 of \
                 them pending; strategy default: 3 are created",
            ),
            (
                JobRules { calculation: Calculation::Sum, min: 1, ..rules },
                1,
                &[load(1.0), load(1.0)][..],
                "2 of 2 triggers active with 2 to do, the sum of all, for 1 of at most 10 Jobs beside \
                 the minimum of 1; 1 unfinished, 0 of them pending; strategy default: 1 is created",
            ),
            (
                JobRules { min: 3, ..rules },
                1,
                &[][..],
                "1 unfinished, 0 of them pending below the minimum of 3: 2 are created",
            ),
            (
                rules,
                2,
                &[load(0.0)][..],
                "no trigger is active; 2 unfinished, 0 of them pending: none is created",
            ),
        ] {
            assert_eq!(told(rules, running, loads), expected);
        }
    }
}
