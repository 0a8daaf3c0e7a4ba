//! `podscale tune`: searches settings of autoscalers on loads.

mod report;

use super::grid::{progress, workers};
use super::input::Common;
use super::loads::NamedLoad;
use super::table::span;
use super::{Failure, finish};
use crate::simulate::Subject;
use crate::simulate::tune::{
    Choice, HeldOut, Objective, Search, Space, Tried, Worth, frontier, held_out, share_of,
};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use podscale_controller::settings::amount;
use podscale_core::Span;
use podscale_sim::{Plan, Scores};
use rayon::ThreadPool;
use rayon::prelude::*;
use report::{Fold, Report, Row};
use std::num::NonZeroU32;
use std::process::ExitCode;

/// No more settings of the frontier than these are tried on what is held out, and shown.
const MOST_ROWS: usize = 12;

/// Search for autoscaler settings: targets, windows, policies, scaling ahead of demand, and strategies and polling
/// intervals of ScaledJobs.
///
/// The end of each load is held out in parts. For each part, settings are chosen on the load before it and
/// scored on the part alone, so that no score covers anything the search has seen. The output shows how the
/// settings did, the frontier of violations and pod-hours in the last part, and the recommended object as YAML
/// with its changes. The same seed gives the same output, byte for byte.
///
/// Exit codes: 0 done, 1 something cannot be simulated, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Minimize pod-hours with at most this percentage of requests refused or too slow.
    #[arg(long, value_name = "PERCENT", default_value = "0.5%", value_parser = percent)]
    max_violations: f64,

    /// Minimize a sum instead: pod-hours, plus this many pod-hours for each percent of violations.
    #[arg(
        long,
        value_name = "POD-HOURS",
        value_parser = amount,
        allow_negative_numbers = true,
        conflicts_with = "max_violations"
    )]
    weight: Option<f64>,

    /// The share of each load that is never held out, from 0.1 to 0.9.
    #[arg(long, value_name = "SHARE", default_value = "0.6", value_parser = share)]
    train: f64,

    /// How many consecutive parts the rest is held out in. Each part takes one search.
    #[arg(long, value_name = "N", default_value = "2", value_parser = parts)]
    parts: NonZeroU32,

    /// How many settings are tried at random before the best one is improved step by step.
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = at_most(MOST_SAMPLES))]
    samples: usize,

    /// The maximum number of such steps.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = at_most(MOST_ROUNDS))]
    rounds: usize,

    #[command(flatten)]
    common: Common<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Tables, a chart, what changes, and the recommended objects.
    Text,
    /// The recommended objects, ready to apply; unchanged where a change did worse in a part.
    Yaml,
}

/// More parts than these have too little of a load each.
const MOST_PARTS: u32 = 20;
/// More settings and steps than these take longer than anybody waits.
const MOST_SAMPLES: u64 = 10_000;
const MOST_ROUNDS: u64 = 1000;

fn at_most(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(0..=most)
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

fn parts(text: &str) -> Result<NonZeroU32, String> {
    let number = text.parse().ok().filter(|number: &NonZeroU32| number.get() <= MOST_PARTS);
    number.ok_or_else(|| format!("not a number between 1 and {MOST_PARTS}"))
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    finish(tune_all(arguments))
}

fn tune_all(arguments: &Arguments) -> Result<String, Failure> {
    let input = &arguments.common.input;
    let (objects, scenario) = input.objects()?;
    let subjects = input.subjects(&objects)?;
    let pool = workers(input).map_err(Failure::Cannot)?;
    let mut out = String::new();
    for subject in &subjects {
        let loads = input.loads(&objects, scenario.as_ref(), subject)?;
        let plan = |load: &NamedLoad| {
            let plan = input.plan(subject, load, &objects);
            leaves_something(&plan, &load.name, arguments.train)?;
            Ok(plan)
        };
        let plans = loads.iter().map(plan).collect::<Result<_, Failure>>()?;
        let space = Space::of(subject.object.written(), subject.object.targets());
        if space.sizes().is_empty() {
            let nothing = "there is nothing to tune: no metric of it has a target";
            return Err(Failure::Cannot(format!("{}: {nothing}", subject.name())));
        }
        let bench = Bench { arguments, subject, plans, space, pool: &pool };
        let names: Vec<&str> = loads.iter().map(|load| load.name.as_str()).collect();
        out.push_str(&bench.tune(&names)?);
    }
    Ok(out)
}

/// What comes before the first part that is held out must be longer than what is not scored.
fn leaves_something(plan: &Plan, load: &str, train: f64) -> Result<(), Failure> {
    let first = share_of(plan.length, train);
    if plan.warm_up < first {
        return Ok(());
    }
    let text = |length: Span| span(length.0 as f64 / 1e6);
    Err(Failure::Usage(format!(
        "{load}: settings are chosen by its first {:.0}%, which is {}, and the warm-up of {} leaves nothing of that; \
         give a shorter --warm-up, a larger --train or a longer load",
        train * 100.0,
        text(first),
        text(plan.warm_up)
    )))
}

/// One autoscaler with the loads that it is tuned on.
struct Bench<'a> {
    arguments: &'a Arguments,
    subject: &'a Subject,
    plans: Vec<Plan>,
    space: Space,
    pool: &'a ThreadPool,
}

/// The part of a load that is scored.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// What comes before this share of it, by which settings are chosen.
    Before(f64),
    /// What is held out.
    HeldOut(HeldOut),
}

impl Bench<'_> {
    fn tune(&self, loads: &[&str]) -> Result<String, Failure> {
        let objective = self.objective();
        let parts = held_out(self.arguments.train, self.arguments.parts.get());
        let (mut folds, mut last) = (Vec::new(), None);
        for part in parts {
            let (tried, best) = self.search(objective, part)?;
            // Where nothing is better, there is nothing to compare it with.
            let mut choices = vec![vec![0; best.len()], best.clone()];
            choices.dedup();
            let worths = self.measure(&choices, Part::HeldOut(part))?;
            folds.push(Fold {
                part,
                settings: self.space.text(&best),
                current: worths.first().copied().unwrap_or_default(),
                chosen: worths.last().copied().unwrap_or_default(),
            });
            last = Some((tried, best));
        }
        // There is always a part that is held out.
        let (Some((tried, best)), Some(fold)) = (last, folds.last()) else {
            return Ok(String::new());
        };
        let report = Report {
            name: self.subject.name(),
            loads: loads.join(", "),
            tried: tried.len(),
            objective,
            rows: self.rows(fold, &tried, &best)?,
            folds,
            current: self.subject.object.written().clone(),
            recommended: self.changed(&best)?.object.written().clone(),
        };
        match self.arguments.common.output {
            Output::Text => report.render(),
            Output::Yaml => report.yaml(),
        }
        .map_err(Failure::Cannot)
    }

    fn objective(&self) -> Objective {
        let Arguments { weight, max_violations, .. } = self.arguments;
        weight.map_or(Objective::MaxViolations(*max_violations), Objective::Weight)
    }

    /// Looks for settings by what comes before a part: everything that was tried, and the best of it.
    fn search(&self, objective: Objective, part: HeldOut) -> Result<(Tried, Choice), Failure> {
        let Arguments { samples, rounds, common, .. } = self.arguments;
        let seed = common.input.seed;
        let search = Search { objective, samples: *samples, rounds: *rounds, seed };
        let before = Part::Before(part.from);
        search.run(&self.space.sizes(), |choices| self.measure(choices, before))
    }

    /// The frontier of what was tried, the object as it is and the best one, scored in the last part that is
    /// held out. Of the latter two the scores are known.
    fn rows(&self, fold: &Fold, tried: &Tried, best: &Choice) -> Result<Vec<Row>, Failure> {
        let is_current = |choice: &Choice| choice.iter().all(|place| *place == 0);
        let shown = shown(tried, best);
        let others = shown.iter().filter(|choice| !is_current(choice) && *choice != best);
        let others: Vec<Choice> = others.cloned().collect();
        let mut worths = self.measure(&others, Part::HeldOut(fold.part))?.into_iter();
        let rows = shown.iter().map(|choice| Row {
            settings: self.space.text(choice),
            worth: match (is_current(choice), choice == best) {
                (true, _) => fold.current,
                (false, true) => fold.chosen,
                (false, false) => worths.next().unwrap_or_default(),
            },
            is_current: is_current(choice),
            is_recommended: choice == best,
        });
        Ok(rows.collect())
    }

    fn changed(&self, choice: &Choice) -> Result<Subject, Failure> {
        let edits = self.space.edits(choice).map_err(Failure::cannot)?;
        self.subject.with_object(self.subject.object.written(), &edits).map_err(Failure::cannot)
    }

    /// What choices are worth on a part of every load, with every seed.
    fn measure(&self, choices: &[Choice], part: Part) -> Result<Vec<Worth>, Failure> {
        let input = &self.arguments.common.input;
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
        let scores: Result<Vec<Scores>, String> = self.pool.install(|| {
            let work = jobs.par_iter().map(|(subject, plan, offset)| {
                let seed = input.seed.wrapping_add(*offset);
                let plan = Plan { seed, ..self.part(plan, part) };
                let run = subject.run(&plan);
                bar.inc(1);
                run.map(|run| run.scores).map_err(|error| format!("{}: {error}", subject.name()))
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

    /// A plan of which only a part is scored. What is held out is played after what comes before it, so that
    /// the autoscaler has seen that.
    fn part(&self, plan: &Plan, part: Part) -> Plan {
        let border = |share: f64| share_of(plan.length, share);
        match part {
            Part::Before(share) => Plan { length: border(share), ..plan.clone() },
            Part::HeldOut(HeldOut { from, to }) => {
                Plan { length: border(to), warm_up: border(from).max(plan.warm_up), ..plan.clone() }
            }
        }
    }
}

/// The frontier of what was tried, thinned out, with the object as it is and the best one.
fn shown(tried: &Tried, best: &Choice) -> Vec<Choice> {
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
