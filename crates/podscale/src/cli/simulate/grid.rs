//! Every object under every load by every policy with every seed, on all cores.

use super::input::Input;
use super::{Arguments, Output, Planned};
use crate::simulate::Subject;
use crate::simulate::edit::Edit;
use indicatif::{ProgressBar, ProgressStyle};
use podscale_sim::plan::Detail;
use podscale_sim::policy::Peer;
use podscale_sim::policy::peers::PeerKind;
use podscale_sim::score::Summary;
use podscale_sim::{Plan, Run, Scores, Time, simulate};
use rayon::prelude::*;
use std::io::IsTerminal;

/// How many points of a run's course are kept for charts, and for sparklines.
const CHART_POINTS: usize = 600;
const SPARK_POINTS: usize = 60;

/// The runs of one object under one load.
pub(super) struct Trial {
    pub(super) autoscaler: String,
    pub(super) load: String,
    pub(super) start: Time,
    pub(super) objective_seconds: f64,
    pub(super) seconds: f64,
    pub(super) notes: Vec<String>,
    pub(super) cells: Vec<Cell>,
}

/// The runs of one policy in a trial.
pub(super) struct Cell {
    pub(super) policy: String,
    pub(super) scores: Vec<Scores>,
    pub(super) summary: Summary,
    /// The course of the first run.
    pub(super) first: Run,
}

/// All runs.
pub(super) struct Grid {
    pub(super) first_seed: u64,
    pub(super) trials: Vec<Trial>,
    /// Each policy over all trials, if there are several.
    pub(super) overall: Vec<(String, Summary)>,
    /// Which of the policies are peers, and what they are; a variant may be called like one.
    pub(super) peers: Vec<Option<PeerKind>>,
}

/// Changes of an object that are tried beside it.
pub(super) struct Variant {
    pub(super) text: String,
    pub(super) edits: Vec<Edit>,
}

impl Variant {
    /// An object with these changes.
    pub(super) fn of(&self, subject: &Subject) -> Result<Subject, String> {
        let changed = subject.with_object(subject.object.written(), &self.edits);
        changed.map_err(|error| format!("{}: {error}", self.text))
    }
}

/// Who decides in a run: the object itself, the object with some changes, or a peer.
#[derive(Clone, Copy)]
pub(super) enum Decider<'a> {
    Own,
    Variant(&'a Variant),
    Peer(&'a Peer),
}

impl Decider<'_> {
    fn name(self, subject: &Subject) -> String {
        match self {
            Decider::Own => subject.autoscaler().name.to_string(),
            Decider::Variant(variant) => variant.text.clone(),
            Decider::Peer(peer) => peer.text().to_owned(),
        }
    }

    fn peer(self) -> Option<PeerKind> {
        match self {
            Decider::Own | Decider::Variant(_) => None,
            Decider::Peer(peer) => Some(peer.kind()),
        }
    }

    fn run(self, subject: &Subject, plan: &Plan) -> Result<Run, String> {
        let run = match self {
            Decider::Own => subject.run(plan),
            Decider::Variant(variant) => variant.of(subject)?.run(plan),
            Decider::Peer(peer) => simulate(plan, peer.policy(subject.autoscaler(), plan).as_mut()),
        };
        run.map_err(|error| format!("{}: {error}", subject.name()))
    }
}

impl Grid {
    /// Runs everything.
    pub(super) fn run(
        arguments: &Arguments,
        plans: &[Planned<'_>],
        variants: &[Variant],
        peers: &[Peer],
    ) -> Result<Grid, String> {
        let own = std::iter::once(Decider::Own).chain(variants.iter().map(Decider::Variant));
        let deciders: Vec<Decider<'_>> = own.chain(peers.iter().map(Decider::Peer)).collect();
        let seeds = u64::from(arguments.common.input.seeds.get());
        let mut jobs = Vec::new();
        for planned in plans {
            for decider in &deciders {
                for offset in 0..seeds {
                    jobs.push((planned, *decider, offset));
                }
            }
        }
        let bar = progress(jobs.len(), "runs");
        let runs: Result<Vec<Run>, String> = workers(&arguments.common.input)?.install(|| {
            let work = jobs.par_iter().map(|((subject, plan, _), decider, offset)| {
                let seed = arguments.common.input.seed.wrapping_add(*offset);
                let detail =
                    if *offset == 0 { detail(arguments.common.output) } else { Detail::default() };
                let detail = Detail { without_requests: arguments.without_requests, ..detail };
                let run = decider.run(subject, &Plan { seed, detail, ..plan.clone() });
                bar.inc(1);
                run
            });
            work.collect()
        });
        bar.finish_and_clear();
        let mut runs = runs?.into_iter();
        let trial = |planned: &Planned<'_>| {
            let (subject, plan, load) = planned;
            let cells = deciders.iter().map(|decider| {
                let runs: Vec<Run> = runs.by_ref().take(seeds as usize).collect();
                Cell::of(decider.name(subject), runs)
            });
            Trial::new(subject, plan, load, cells.collect(), &deciders)
        };
        let trials: Vec<Trial> = plans.iter().map(trial).collect();
        let overall = overall(&trials, &deciders);
        let peers = deciders.iter().map(|decider| decider.peer()).collect();
        Ok(Grid { first_seed: arguments.common.input.seed, trials, overall, peers })
    }
}

impl Cell {
    /// The runs of a policy, before they are compared with others.
    pub(super) fn of(policy: String, runs: Vec<Run>) -> Cell {
        let scores: Vec<Scores> = runs.iter().map(|run| run.scores).collect();
        let first = runs.into_iter().next().unwrap_or_default();
        Cell { policy, summary: Summary::of(&scores, None), scores, first }
    }
}

impl Trial {
    fn new(
        subject: &Subject,
        plan: &Plan,
        load: &str,
        mut cells: Vec<Cell>,
        deciders: &[Decider<'_>],
    ) -> Trial {
        let oracle = oracle_place(deciders).map(|place| cells[place].scores.clone());
        for cell in &mut cells {
            cell.summary = Summary::of(&cell.scores, oracle.as_deref());
        }
        Trial {
            autoscaler: subject.name(),
            load: load.to_owned(),
            start: plan.start,
            objective_seconds: plan.objective_seconds,
            seconds: plan.length.0 as f64 / 1e6,
            notes: subject.notes.clone(),
            cells,
        }
    }
}

fn oracle_place(deciders: &[Decider<'_>]) -> Option<usize> {
    deciders.iter().position(|decider| decider.peer() == Some(PeerKind::Oracle))
}

fn overall(trials: &[Trial], deciders: &[Decider<'_>]) -> Vec<(String, Summary)> {
    if trials.len() < 2 {
        return Vec::new();
    }
    let of = |place: usize| -> Vec<&[Scores]> {
        trials.iter().filter_map(|trial| Some(trial.cells.get(place)?.scores.as_slice())).collect()
    };
    let oracle = oracle_place(deciders).map(of);
    let named = deciders.iter().enumerate().map(|(place, decider)| {
        let name = match decider {
            Decider::Own => "these objects".to_owned(),
            Decider::Variant(variant) => variant.text.clone(),
            Decider::Peer(peer) => peer.text().to_owned(),
        };
        (name, Summary::across(&of(place), oracle.as_deref()))
    });
    named.collect()
}

fn detail(output: Output) -> Detail {
    match output {
        Output::Html => Detail { points: CHART_POINTS, changes: true, ..Detail::default() },
        Output::Text => Detail { points: SPARK_POINTS, ..Detail::default() },
        Output::Json | Output::Csv | Output::Markdown => Detail::default(),
    }
}

/// How many points of a run's course are kept.
pub(super) fn points(output: Output) -> usize {
    detail(output).points
}

/// As many threads as were asked for, or as there are cores.
pub(super) fn workers(input: &Input) -> Result<rayon::ThreadPool, String> {
    let threads = input.jobs.map_or(0, std::num::NonZeroUsize::get);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| format!("cannot start worker threads: {error}"))
}

/// Shows how much is done, if somebody is watching.
pub(super) fn progress(jobs: usize, what: &'static str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let form = "simulating [{bar:40}] {pos}/{len} {msg}, {eta} left";
    let style = ProgressStyle::with_template(form);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(jobs as u64).with_style(style).with_message(what)
}
