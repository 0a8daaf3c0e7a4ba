//! What would have been different: the load of recordings is played to the object as it was and as it is
//! to be, and both are compared with what was recorded.

use super::grid::{Cell, Grid, Trial, points, progress, workers};
use super::table::{columns, number, percent, scores, seconds, span, sparkline};
use super::{Arguments, Failure, Output, html, markdown, output, table};
use crate::simulate::demand::{self, Recovered};
use crate::simulate::edit::Edit;
use crate::simulate::{Objects, Subject};
use podscale_api::time::format_rfc3339;
use podscale_controller::settings;
use podscale_core::{Span, Time};
use podscale_sim::plan::Detail;
use podscale_sim::policy::Scripted;
use podscale_sim::score::{Change, Summary};
use podscale_sim::{Plan, PlanError, Run, simulate};
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
    recorded: Run,
    recorded_sizes: Vec<(Span, i32)>,
    unchanged: Run,
    changed: Run,
    moments: Vec<Moment>,
}

/// A time in which the sizes differ.
struct Moment {
    from: Span,
    until: Span,
    unchanged: i32,
    changed: i32,
    why: Vec<String>,
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
            let recorded = recordings.as_ref().map_err(ToString::to_string);
            let recovered =
                recorded.and_then(|one| demand::recover(one).map_err(|e| e.to_string()));
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
    let Recovered { subject, sizes, unknown } = recovered;
    let changed = changed(&subject, given, edits)?;
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
    let recorded = simulate(&plan, &mut Scripted::new(sizes.clone())).map_err(fail)?;
    let unchanged = subject.run(&plan).map_err(fail)?;
    let changed = changed.run(&plan).map_err(fail)?;
    Ok(Comparison {
        name: subject.name(),
        seconds: plan.length.0 as f64 / 1e6,
        start: plan.start,
        edits: arguments.common.input.edits.clone(),
        unknown,
        moments: moments(&plan, &unchanged, &changed),
        recorded,
        recorded_sizes: sizes,
        unchanged,
        changed,
        plan,
    })
}

/// The object as it is to be: the one of the same name among those given, with the changes made.
fn changed(subject: &Subject, given: &Objects, edits: &[Edit]) -> Result<Subject, String> {
    let autoscaler = subject.autoscaler();
    let object = match given.named(&autoscaler.namespace, &autoscaler.name) {
        Some(object) => object,
        None if edits.is_empty() && given.has_autoscalers() => {
            return Err(format!("{}: no file has an autoscaler of this name", subject.name()));
        }
        None => subject.object.written(),
    };
    subject.with_object(object, edits).map_err(|error| error.to_string())
}

/// The times in which the sizes of two runs differ.
fn moments(plan: &Plan, unchanged: &Run, changed: &Run) -> Vec<Moment> {
    let mut events: Vec<(Span, bool, &Change)> = Vec::new();
    for (is_changed, run) in [(false, unchanged), (true, changed)] {
        for change in &run.changes {
            events.push((change.at.since(plan.start), is_changed, change));
        }
    }
    events.sort_by_key(|(at, is_changed, _)| (*at, *is_changed));
    let mut found: Vec<Moment> = Vec::new();
    let mut sizes = [plan.replicas; 2];
    let mut open: Option<Moment> = None;
    for (place, (at, is_changed, change)) in events.iter().enumerate() {
        sizes[usize::from(*is_changed)] = change.to;
        // Changes of the same moment count together.
        if events.get(place + 1).is_some_and(|next| next.0 == *at) {
            continue;
        }
        if let Some(mut moment) = open.take() {
            moment.until = *at;
            found.push(moment);
        }
        if sizes[0] != sizes[1] {
            open = Some(Moment {
                from: *at,
                until: plan.length,
                unchanged: sizes[0],
                changed: sizes[1],
                why: change.why.clone(),
            });
        }
    }
    found.extend(open);
    found
}

/// Replicas times hours of sizes that each hold until the next.
fn replica_hours(sizes: &[(Span, i32)], until: f64) -> f64 {
    let at = |place: usize| sizes.get(place).map_or(until, |(at, _)| at.0 as f64 / 1e6);
    let hours = sizes.iter().enumerate().map(|(place, (from, size))| {
        f64::from(*size) * (at(place + 1) - from.0 as f64 / 1e6).max(0.0) / 3600.0
    });
    hours.sum()
}

/// In which part of the steps two courses have the same size.
fn agreement(recorded: &[(Span, i32)], run: &Run, plan_start: Time, first: i32) -> f64 {
    let mut changes = run.changes.iter().peekable();
    let (mut size, mut same) = (first, 0_usize);
    for (at, recorded) in recorded {
        while let Some(change) = changes.next_if(|change| change.at.since(plan_start) <= *at) {
            size = change.to;
        }
        same += usize::from(size == *recorded);
    }
    same as f64 / recorded.len().max(1) as f64
}

impl Comparison {
    fn fidelity(&self) -> f64 {
        let first = self.recorded_sizes.first().map_or(0, |(_, size)| *size);
        agreement(&self.recorded_sizes, &self.unchanged, self.start, first)
    }

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
        let _ = writeln!(
            out,
            "replica-hours: {} recorded, {:+.2} by the change; time with too few pods: {} instead of {}; \
             violated: {} instead of {}",
            number(replica_hours(&self.recorded_sizes, self.seconds)),
            after.pod_hours - before.pod_hours,
            percent(after.below_capacity),
            percent(before.below_capacity),
            percent(after.violations),
            percent(before.violations),
        );
        let _ = writeln!(
            out,
            "unchanged, the simulation has the recorded size in {} of the steps",
            percent(self.fidelity())
        );
        out.push_str(&self.moments_text());
        for unknown in &self.unknown {
            let _ = writeln!(out, "not known: {unknown}");
        }
        out.push('\n');
        out
    }

    fn moments_text(&self) -> String {
        if self.moments.is_empty() {
            return "the sizes never differ\n".to_owned();
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
            "recordedReplicaHours": replica_hours(&self.recorded_sizes, self.seconds),
            "sameAsRecorded": self.fidelity(),
            "recorded": self.recorded.scores,
            "unchanged": self.unchanged.scores,
            "changed": self.changed.scores,
            "differs": self.moments.iter().map(moment).collect::<Vec<_>>(),
            "unknown": self.unknown,
        })
    }
}
