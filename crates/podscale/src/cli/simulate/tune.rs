//! `podscale tune`: searches settings of autoscalers on loads.

mod report;

use super::grid::{progress, workers};
use super::input::Input;
use super::{Failure, finish};
use crate::settings::amount;
use crate::simulate::Subject;
use crate::simulate::tune::{Choice, Objective, Search, Space, Tried, Worth, frontier, trained};
use clap::Args;
use podscale_sim::{Plan, Scores, simulate};
use rayon::prelude::*;
use report::{Report, Row};
use std::process::ExitCode;

/// No more settings of the frontier than these are tried on what is held out, and shown.
const MOST_ROWS: usize = 12;

/// Search settings of autoscalers: targets, windows, policies and what is done ahead of the demand.
///
/// Settings are chosen by the first part of each load. How they do is shown on the rest alone, which the
/// search has not seen: the frontier of violations and pod-hours, the object as it is and the recommended one,
/// as YAML with what changes in it. The same seed gives the same output, byte for byte.
///
/// Exit codes: 0 done, 1 something cannot be simulated, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Look for the fewest pod-hours with at most so many requests refused or too slow.
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = percent)]
    max_violations: f64,

    /// Look for the smallest sum instead: pod-hours, and so many of them for each percent of violations.
    #[arg(long, value_name = "POD-HOURS", value_parser = amount, conflicts_with = "max_violations")]
    weight: Option<f64>,

    /// Which part of each load settings are chosen by, from 0.1 to 0.9; the rest is held out.
    #[arg(long, value_name = "SHARE", default_value = "0.6", value_parser = share)]
    train: f64,

    /// How many settings are tried at random before the best one is improved step by step.
    #[arg(long, value_name = "N", default_value_t = 40)]
    samples: usize,

    /// How many steps are made at most.
    #[arg(long, value_name = "N", default_value_t = 6)]
    rounds: usize,

    #[command(flatten)]
    input: Input,
}

fn percent(text: &str) -> Result<f64, String> {
    let wrong = || "not a part of the requests, such as 0.5%".to_owned();
    let number = text.strip_suffix('%').ok_or_else(wrong)?;
    let number = amount(number).map_err(|_| wrong())?;
    if number <= 100.0 { Ok(number / 100.0) } else { Err(wrong()) }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.1..=0.9).contains(&share) => Ok(share),
        _ => Err("not a number between 0.1 and 0.9".to_owned()),
    }
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    finish(tune_all(arguments))
}

fn tune_all(arguments: &Arguments) -> Result<String, Failure> {
    let input = &arguments.input;
    let (objects, scenario) = input.objects()?;
    let subjects = input.subjects(&objects)?;
    let mut out = String::new();
    for subject in &subjects {
        let loads = input.loads(&objects, scenario.as_ref(), subject)?;
        let plans = loads.iter().map(|load| input.plan(subject, load, &objects)).collect();
        let space = Space::of(&subject.object.object);
        let bench = Bench { arguments, subject, plans, space };
        let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        out.push_str(&bench.tune(&names)?);
    }
    Ok(out)
}

/// One autoscaler with the loads that it is tuned on.
struct Bench<'a> {
    arguments: &'a Arguments,
    subject: &'a Subject,
    plans: Vec<Plan>,
    space: Space,
}

/// The part of a load that is scored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Trained,
    HeldOut,
}

impl Bench<'_> {
    fn tune(&self, loads: &[&str]) -> Result<String, Failure> {
        let Arguments { weight, max_violations, samples, rounds, input, .. } = self.arguments;
        let objective = weight.map_or(Objective::MaxViolations(*max_violations), Objective::Weight);
        let search = Search { objective, samples: *samples, rounds: *rounds, seed: input.seed };
        let (tried, best) =
            search.run(&self.space.sizes(), |choices| self.measure(choices, Part::Trained))?;
        let shown = self.shown(&tried, &best);
        let worths = self.measure(&shown, Part::HeldOut)?;
        let rows = shown.iter().zip(worths).map(|(choice, worth)| Row {
            settings: self.space.text(choice),
            worth,
            is_current: choice.iter().all(|place| *place == 0),
            is_recommended: *choice == best,
        });
        let report = Report {
            name: self.subject.name(),
            loads: loads.join(", "),
            train_percent: (self.arguments.train * 100.0).round(),
            tried: tried.len(),
            objective,
            rows: rows.collect(),
            current: self.subject.object.object.clone(),
            recommended: self.changed(&best)?.object.object,
        };
        report.render().map_err(Failure::Cannot)
    }

    /// The frontier of what was tried, thinned out, with the object as it is and the best one.
    fn shown(&self, tried: &Tried, best: &Choice) -> Vec<Choice> {
        let frontier = frontier(tried);
        let every = frontier.len().div_ceil(MOST_ROWS).max(1);
        let thinned = frontier.into_iter().step_by(every).map(|(choice, _)| choice.clone());
        let mut shown: Vec<Choice> = thinned.collect();
        for choice in [vec![0; best.len()], best.clone()] {
            if !shown.contains(&choice) {
                shown.push(choice);
            }
        }
        shown
    }

    fn changed(&self, choice: &Choice) -> Result<Subject, Failure> {
        let edits = self.space.edits(choice).map_err(Failure::cannot)?;
        self.subject.with_object(&self.subject.object.object, &edits).map_err(Failure::cannot)
    }

    /// What choices are worth on a part of every load, with every seed.
    fn measure(&self, choices: &[Choice], part: Part) -> Result<Vec<Worth>, Failure> {
        let input = &self.arguments.input;
        let seeds = u64::from(input.seeds.get());
        // What an API server would refuse is not tried.
        let subjects: Vec<Option<Subject>> =
            choices.iter().map(|choice| self.changed(choice).ok()).collect();
        let mut jobs = Vec::new();
        for subject in subjects.iter().flatten() {
            for plan in &self.plans {
                jobs.extend((0..seeds).map(|offset| (subject, plan, offset)));
            }
        }
        let bar = progress(jobs.len(), "runs");
        let scores: Result<Vec<Scores>, String> =
            workers(input).map_err(Failure::Cannot)?.install(|| {
                let work = jobs.par_iter().map(|(subject, plan, offset)| {
                    let seed = input.seed.wrapping_add(*offset);
                    let plan = Plan { seed, ..self.part(plan, part) };
                    let run = simulate(&plan, &mut subject.policy());
                    bar.inc(1);
                    run.map(|run| run.scores)
                        .map_err(|error| format!("{}: {error}", subject.name()))
                });
                work.collect()
            });
        bar.finish_and_clear();
        let scores = scores.map_err(Failure::Cannot)?;
        let mut runs = scores.chunks((self.plans.len() * seeds as usize).max(1));
        let worth = |subject: &Option<Subject>| match subject {
            Some(_) => mean(runs.next().unwrap_or_default()),
            None => Worth { violations: 1.0, pod_hours: f64::MAX, reversals_per_hour: 0.0 },
        };
        Ok(subjects.iter().map(worth).collect())
    }

    /// A plan of which only a part is scored. What is held out is played after the rest, so that the
    /// autoscaler has seen what comes before it.
    fn part(&self, plan: &Plan, part: Part) -> Plan {
        let border = trained(plan.length, self.arguments.train);
        match part {
            Part::Trained => Plan { length: border, ..plan.clone() },
            Part::HeldOut => Plan { warm_up: border.max(plan.warm_up), ..plan.clone() },
        }
    }
}

fn mean(scores: &[Scores]) -> Worth {
    let of = |score: fn(&Scores) -> f64| {
        scores.iter().map(score).sum::<f64>() / scores.len().max(1) as f64
    };
    Worth {
        violations: of(|scores| scores.violations),
        pod_hours: of(|scores| scores.pod_hours),
        reversals_per_hour: of(|scores| scores.reversals_per_hour),
    }
}

#[cfg(test)]
mod tests;
