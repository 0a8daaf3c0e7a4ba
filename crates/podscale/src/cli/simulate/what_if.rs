//! What would have been different: the load of recordings is played to the object as it was and as it is
//! to be, and both are compared with what was recorded.

mod moments;

use super::grid::{Cell, Grid, Trial, points, progress, workers};
use super::table::{columns, number, percent, scores, seconds, span, sparkline};
use super::{Arguments, Failure, Output, html, markdown, output, table};
use crate::simulate::demand::{self, Recovered};
use crate::simulate::edit::Edit;
use crate::simulate::{Course, Objects, Subject, Tried};
use moments::Moment;
use podscale_api::time::format_rfc3339;
use podscale_controller::settings;
use podscale_core::{Span, Time};
use podscale_sim::plan::Detail;
use podscale_sim::score::Summary;
use podscale_sim::{Plan, PlanError, Run};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// How many moments are told apart in the text; all are in the JSON.
const SHOWN_MOMENTS: usize = 20;

/// The comparison for one autoscaler.
struct Comparison {
    name: String,
    plan: Plan,
    seconds: f64,
    start: Time,
    edits: Vec<String>,
    unknown: Vec<String>,
    /// Whether it is a ScaledJob, whose sizes are numbers of unfinished Jobs.
    is_of_jobs: bool,
    recorded: Run,
    recorded_hours: f64,
    fidelity: Fidelity,
    unchanged: Run,
    changed: Run,
    moments: Vec<Moment>,
}

/// How well the simulation of the unchanged object explains what was recorded.
struct Fidelity {
    /// In which part of the steps it has the recorded size.
    same: f64,
    /// By how much it differs from that on average, and what that is on average.
    off: f64,
    mean: f64,
}

/// Compares, and gives the answer in the form that was asked for.
pub(super) fn run(arguments: &Arguments) -> Result<String, Failure> {
    let edits = arguments.common.input.edits()?;
    let mut given = Objects::default();
    for file in &arguments.common.input.files {
        given.add_file(file).map_err(Failure::cannot)?;
    }
    let recorded = demand::read(&arguments.recordings).map_err(Failure::cannot)?;
    let bar = progress(recorded.len(), "autoscalers");
    let work = || -> Vec<Result<Comparison, String>> {
        let compared = recorded.par_iter().map(|recordings| {
            let recovered = recordings.recover().map_err(|error| error.to_string());
            let compared = recovered.and_then(|load| compare(arguments, load, &given, &edits));
            bar.inc(1);
            compared
        });
        compared.collect()
    };
    let compared = workers(&arguments.common.input).map_err(Failure::Cannot)?.install(work);
    bar.finish_and_clear();
    let (mut comparisons, mut failures) = (Vec::new(), Vec::new());
    for one in compared {
        match one {
            Ok(comparison) => comparisons.push(comparison),
            Err(failure) => failures.push(failure),
        }
    }
    if comparisons.is_empty() {
        return Err(Failure::Cannot(failures.join("; ")));
    }
    Ok(rendered(arguments, comparisons, &failures))
}

/// The comparisons in the form that was asked for.
fn rendered(arguments: &Arguments, comparisons: Vec<Comparison>, failures: &[String]) -> String {
    if arguments.explain.is_some() {
        return comparisons.iter().map(Comparison::moment).collect();
    }
    match arguments.common.output {
        Output::Json => {
            let all: Vec<Value> = comparisons.iter().map(Comparison::json).collect();
            output::pretty(&json!({"autoscalers": all, "leftOut": failures}))
        }
        Output::Text => {
            let mut out: String = comparisons.iter().map(Comparison::text).collect();
            for failure in failures {
                let _ = writeln!(out, "left out: {failure}");
            }
            out
        }
        Output::Csv => output::csv(&grid(arguments, comparisons)),
        Output::Html => html::render(&grid(arguments, comparisons), "What if"),
        Output::Markdown => markdown::render(&grid(arguments, comparisons)),
    }
}

fn grid(arguments: &Arguments, comparisons: Vec<Comparison>) -> Grid {
    let trials = comparisons.into_iter().map(Comparison::into_trial).collect();
    Grid { first_seed: arguments.common.input.seed, trials, overall: Vec::new(), peers: Vec::new() }
}

fn compare(
    arguments: &Arguments,
    recovered: Recovered,
    given: &Objects,
    edits: &[Edit],
) -> Result<Comparison, String> {
    let subject = &recovered.subject;
    let changed = changed(subject, given, edits)?;
    let objective = arguments.common.input.model.options().objective_seconds;
    let explain_at = arguments.explain.map(|at| subject.plan.start.after(settings::span(at)));
    let plan = Plan {
        detail: Detail {
            points: points(arguments.common.output),
            changes: true,
            explain_at,
            ..Detail::default()
        },
        seed: arguments.common.input.seed,
        objective_seconds: objective.unwrap_or(subject.plan.objective_seconds),
        ..subject.plan.clone()
    };
    let fail = |error: PlanError| format!("{}: {error}", subject.name());
    let recorded = recovered.replayed(&plan).map_err(fail)?;
    let (unchanged, course) = subject.followed(&plan).map_err(fail)?;
    let (changed, changed_course) = changed.followed(&plan).map_err(fail)?;
    Ok(Comparison {
        name: subject.name(),
        seconds: plan.length.0 as f64 / 1e6,
        start: plan.start,
        edits: arguments.common.input.edits.clone(),
        moments: moments::between(plan.length, &course, &changed_course),
        is_of_jobs: matches!(subject.object, Tried::Jobs(_)),
        recorded,
        recorded_hours: recovered.hours,
        fidelity: Fidelity::of(&recovered, course),
        unknown: recovered.unknown,
        unchanged,
        changed,
        plan,
    })
}

/// The object as it is to be: the one of the same name among those given, with the changes made.
fn changed(subject: &Subject, given: &Objects, edits: &[Edit]) -> Result<Subject, String> {
    let autoscaler = subject.autoscaler();
    let of_jobs = matches!(subject.object, Tried::Jobs(_));
    let object = match given.named(of_jobs, &autoscaler.namespace, &autoscaler.name) {
        Some(object) => object,
        None if edits.is_empty() && given.has_autoscalers() => {
            let what = if of_jobs { "a ScaledJob" } else { "an autoscaler" };
            return Err(format!("{}: no file has {what} of this name", subject.name()));
        }
        None => subject.object.written(),
    };
    subject.with_object(object, edits).map_err(|error| format!("{}: {error}", subject.name()))
}

impl Fidelity {
    fn of(recovered: &Recovered, mut course: Course) -> Fidelity {
        // A live controller polls a little later or earlier than the simulation.
        let late = match &recovered.subject.object {
            Tried::Scale(_) => Span(0),
            Tried::Jobs(jobs) => Span(jobs.policy.polling.0 / 2),
        };
        if matches!(recovered.subject.object, Tried::Scale(_)) {
            course.first = recovered.sizes.first().map_or(0, |(_, size)| *size);
        }
        let times = recovered.sizes.iter().map(|(at, _)| Span(at.0.saturating_add(late.0)));
        let (mut same, mut off, mut sum) = (0_usize, 0.0, 0.0);
        for ((_, recorded), size) in recovered.sizes.iter().zip(course.at(times)) {
            same += usize::from(size == *recorded);
            off += (f64::from(size) - f64::from(*recorded)).abs();
            sum += f64::from(*recorded);
        }
        let steps = recovered.sizes.len().max(1) as f64;
        Fidelity { same: same as f64 / steps, off: off / steps, mean: sum / steps }
    }
}

impl Comparison {
    /// The decisions at the moment that was asked for.
    fn moment(&self) -> String {
        let mut out = String::new();
        for (what, run) in [("unchanged", &self.unchanged), ("changed", &self.changed)] {
            let load = format!("the recorded load, {what}");
            match &run.moment {
                Some(moment) => out.push_str(&table::moment(&self.name, &load, &self.plan, moment)),
                None => {
                    let _ =
                        writeln!(out, "{} under {load}: nothing was decided by then", self.name);
                }
            }
        }
        out
    }

    /// The runs side by side, as if each were a policy.
    fn into_trial(self) -> Trial {
        let Comparison { name, plan, seconds, start, unknown, recorded, .. } = self;
        let mut notes: Vec<String> =
            unknown.into_iter().map(|what| format!("not known: {what}")).collect();
        notes.extend(self.edits.iter().map(|edit| format!("changed: {edit}")));
        let cells =
            [("as recorded", recorded), ("unchanged", self.unchanged), ("changed", self.changed)];
        let cells = cells.map(|(policy, run)| Cell::of(policy.to_owned(), vec![run]));
        Trial {
            autoscaler: name,
            load: "the recorded load".to_owned(),
            start,
            objective_seconds: plan.objective_seconds,
            seconds,
            notes,
            cells: cells.into(),
        }
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{}: {} from {}",
            self.name,
            span(self.seconds),
            format_rfc3339(self.start)
        );
        let rows = [
            ("as recorded", &self.recorded),
            ("simulated, unchanged", &self.unchanged),
            ("simulated, changed", &self.changed),
        ];
        let summaries = rows.map(|(name, run)| (name, Summary::of(&[run.scores], None)));
        out.push_str(&scores(summaries.iter().map(|(name, summary)| (*name, summary)), false));
        let highest = rows.iter().flat_map(|(_, run)| run.points.iter().map(|p| p.replicas));
        let highest = highest.fold(0.0, f64::max);
        for (name, run) in rows {
            let sizes: Vec<f64> = run.points.iter().map(|point| point.replicas).collect();
            let _ = writeln!(out, "{name:<20}  {}", sparkline(&sizes, highest));
        }
        let (before, after) = (&self.unchanged.scores, &self.changed.scores);
        let (hours, pods) = match self.is_of_jobs {
            true => ("Job-hours", "Jobs"),
            false => ("replica-hours", "pods"),
        };
        let _ = writeln!(
            out,
            "{hours}: {} recorded, {:+.2} by the change; time with too few {pods}: {} instead of {}; \
             violated: {} instead of {}",
            number(self.recorded_hours),
            after.pod_hours - before.pod_hours,
            percent(after.below_capacity),
            percent(before.below_capacity),
            percent(after.violations),
            percent(before.violations),
        );
        out.push_str(&self.fidelity_text());
        out.push_str(&self.moments_text());
        for unknown in &self.unknown {
            let _ = writeln!(out, "not known: {unknown}");
        }
        out.push('\n');
        out
    }

    fn fidelity_text(&self) -> String {
        let Fidelity { same, off, mean } = self.fidelity;
        let same = percent(same);
        match self.is_of_jobs {
            false => {
                format!("unchanged, the simulation has the recorded size in {same} of the steps\n")
            }
            true => format!(
                "unchanged, the simulation has the recorded number of Jobs in {same} of the polls; it is off by {} of {} on \
                 average, and creates {} Jobs, of which {} were recorded\n",
                number(off),
                number(mean),
                self.unchanged.scores.pods_started,
                self.recorded.scores.pods_started,
            ),
        }
    }

    fn moments_text(&self) -> String {
        if self.moments.is_empty() {
            let what = if self.is_of_jobs { "numbers of Jobs" } else { "sizes" };
            return format!("the {what} never differ\n");
        }
        let mut table =
            vec![["DIFFERS FROM", "FOR", "UNCHANGED", "CHANGED"].map(str::to_owned).to_vec()];
        for moment in self.moments.iter().take(SHOWN_MOMENTS) {
            let length = (moment.until.0 - moment.from.0) as f64 / 1e6;
            table.push(vec![
                format_rfc3339(self.start.after(moment.from)),
                seconds(length),
                moment.unchanged.to_string(),
                moment.changed.to_string(),
            ]);
        }
        let mut out = columns(&table);
        if self.moments.len() > SHOWN_MOMENTS {
            let _ = writeln!(out, "and {} more", self.moments.len() - SHOWN_MOMENTS);
        }
        out
    }

    fn json(&self) -> Value {
        let moment = |moment: &Moment| {
            json!({
                "from": format_rfc3339(self.start.after(moment.from)),
                "seconds": (moment.until.0 - moment.from.0) as f64 / 1e6,
                "unchanged": moment.unchanged,
                "changed": moment.changed,
                "why": moment.why,
            })
        };
        json!({
            "autoscaler": self.name,
            "start": format_rfc3339(self.start),
            "seconds": self.seconds,
            "set": self.edits,
            "recordedReplicaHours": self.recorded_hours,
            "sameAsRecorded": self.fidelity.same,
            "offByOnAverage": self.fidelity.off,
            "recordedOnAverage": self.fidelity.mean,
            "recorded": self.recorded.scores,
            "unchanged": self.unchanged.scores,
            "changed": self.changed.scores,
            "differs": self.moments.iter().map(moment).collect::<Vec<_>>(),
            "unknown": self.unknown,
        })
    }
}
