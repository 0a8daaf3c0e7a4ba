//! `podscale simulate`: tries autoscaler objects on loads before anybody does in production.

mod grid;
mod html;
mod input;
mod loads;
mod markdown;
mod model;
mod output;
mod table;
pub mod tune;
mod what_if;

use super::{print, print_error};
use crate::simulate::edit::Edit;
use crate::simulate::{Subject, Tried};
use clap::{Args, ValueEnum};
use grid::{Grid, Variant};
use input::Common;
use podscale_api::recording::RecordingWriter;
use podscale_controller::settings::duration;
use podscale_sim::Plan;
use podscale_sim::plan::Detail;
use podscale_sim::policy::Peer;
use podscale_sim::policy::peers::PeerKind;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Try autoscalers on loads, in virtual time, next to other autoscalers.
///
/// Objects are decided by the same rules as in `podscale run`; their targets, pods and metrics are simulated.
/// Kubernetes' HPA, KEDA, Knative's autoscaler and an oracle that knows the future load run next to them, and
/// all get scores: requests refused or too slow, pod-hours, reversals. With --recording, the load is recovered from
/// recordings of a live cluster, to show what would have been different. The same seed gives the same output,
/// byte for byte.
///
/// Exit codes: 0 done, 1 something cannot be simulated, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// What to run next to the objects: hpa-cpu, hpa-rps, keda, knative, fixed, oracle, each with parameters as
    /// in knative:target=7,stable=120; or none. Repeatable. If not given, all but fixed; next to ScaledJobs
    /// keda, fixed and oracle.
    #[arg(long = "policy", value_name = "NAME")]
    policies: Vec<String>,

    /// Also run the objects with changes, such as spec.maxReplicas=20;spec.minReplicas=4, optionally with a
    /// name, as in "larger: spec.maxReplicas=20"; repeatable.
    #[arg(
        long = "variant",
        value_name = "[NAME: ]PATH=VALUE[;PATH=VALUE]",
        conflicts_with_all = ["recordings", "explain"]
    )]
    variants: Vec<String>,

    /// Recover the load from recordings of podscale run --record: files, or folders of them.
    #[arg(long = "recording", value_name = "PATH", conflicts_with_all = ["scenario", "shapes", "traces", "start"])]
    recordings: Vec<PathBuf>,

    /// Explain the decision in effect this long after the start, such as 12m30s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    explain: Option<Duration>,

    /// Do not simulate how long individual requests take: several times as fast, but latencies and slow
    /// requests are not scored.
    #[arg(long, conflicts_with = "recordings")]
    without_requests: bool,

    /// Write the first run of each object as a recording, for podscale replay.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    #[command(flatten)]
    common: Common<Output>,
}

/// Who runs beside objects if nothing is said.
const USUAL: [PeerKind; 5] =
    [PeerKind::HpaCpu, PeerKind::HpaRps, PeerKind::Keda, PeerKind::Knative, PeerKind::Oracle];
/// Who runs beside ScaledJobs: pods that take the same items, by the length of the queue, always, and by what is to come.
const BESIDE_JOBS: [PeerKind; 3] = [PeerKind::Keda, PeerKind::Fixed, PeerKind::Oracle];

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table with sparklines.
    Text,
    /// One JSON object.
    Json,
    /// One line for each run.
    Csv,
    /// A report in one file.
    Html,
    /// A page with tables and a chart of all policies.
    Markdown,
}

/// Why nothing was simulated, and whether that was a usage error.
#[derive(Debug)]
enum Failure {
    Usage(String),
    Cannot(String),
}

impl Failure {
    fn usage(error: impl std::fmt::Display) -> Failure {
        Failure::Usage(error.to_string())
    }

    fn cannot(error: impl std::fmt::Display) -> Failure {
        Failure::Cannot(error.to_string())
    }
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let done = match arguments.recordings.is_empty() {
        true => try_loads(arguments),
        false => what_if::run(arguments),
    };
    finish(done)
}

/// Prints what came of it.
fn finish(done: Result<String, Failure>) -> ExitCode {
    match done {
        Ok(text) => {
            print(&text);
            ExitCode::SUCCESS
        }
        Err(Failure::Usage(message)) => {
            print_error(message);
            ExitCode::from(2)
        }
        Err(Failure::Cannot(message)) => {
            print_error(message);
            ExitCode::FAILURE
        }
    }
}

fn try_loads(arguments: &Arguments) -> Result<String, Failure> {
    let (objects, scenario) = arguments.common.input.objects()?;
    let input = &arguments.common.input;
    let subjects = input.subjects(&objects)?;
    let (peers, variants) = (arguments.peers(&subjects)?, arguments.variants(&subjects)?);
    let mut plans = Vec::new();
    for subject in &subjects {
        for load in input.loads(&objects, scenario.as_ref(), subject)? {
            plans.push((subject, input.plan(subject, &load, &objects), load.name));
        }
    }
    if let Some(file) = &arguments.record {
        record(file, &plans)?;
    }
    if arguments.explain.is_some() {
        return explain(arguments, &plans);
    }
    let grid = Grid::run(arguments, &plans, &variants, &peers).map_err(Failure::cannot)?;
    Ok(match arguments.common.output {
        Output::Text => table::render(&grid),
        Output::Json => output::json(&grid),
        Output::Csv => output::csv(&grid),
        Output::Html => html::render(&grid, "Simulation"),
        Output::Markdown => markdown::render(&grid),
    })
}

/// One plan: of which object, and under which load.
type Planned<'a> = (&'a Subject, Plan, String);

fn explain(arguments: &Arguments, plans: &[Planned<'_>]) -> Result<String, Failure> {
    let mut out = String::new();
    for (subject, plan, load) in plans {
        let at = arguments.explain.unwrap_or_default();
        let at = plan.start.after(podscale_controller::settings::span(at));
        let detail = Detail { explain_at: Some(at), ..Detail::default() };
        let plan = Plan { seed: arguments.common.input.seed, detail, ..plan.clone() };
        let run = subject.run(&plan).map_err(Failure::cannot)?;
        let Some(moment) = run.moment else {
            return Err(Failure::Usage("no decision has been made by then".to_owned()));
        };
        out.push_str(&table::moment(&subject.name(), load, &plan, &moment));
    }
    Ok(out)
}

fn record(file: &Path, plans: &[Planned<'_>]) -> Result<(), Failure> {
    let fail = |error: std::io::Error| {
        Failure::Cannot(format!("cannot write {}: {error}", file.display()))
    };
    let output = File::create(file).map_err(fail)?;
    let compressed = file.extension().is_some_and(|extension| extension == "gz");
    let mut writer = match compressed {
        true => RecordingWriter::gzip(output),
        false => RecordingWriter::plain(output),
    };
    for (subject, plan, load) in plans {
        let name = format!("{} on {load}", subject.name());
        let recording = subject.recorded(plan, &name).map_err(Failure::cannot)?;
        writer.write(&recording).map_err(fail)?;
    }
    writer.finish().map(drop).map_err(fail)
}

impl Arguments {
    /// The changes that are tried beside the objects, once it is known that each can be made in all of them.
    fn variants(&self, subjects: &[Subject]) -> Result<Vec<Variant>, Failure> {
        let variant = |text: &String| -> Result<Variant, Failure> {
            // A name comes before anything that is changed.
            let named = text.split_once(": ").filter(|(name, _)| !name.contains('='));
            let (name, changes) = named.unwrap_or((text, text));
            let edits = changes.split(';').map(|edit| Edit::parse(edit).map_err(Failure::usage));
            Ok(Variant { text: name.to_owned(), edits: edits.collect::<Result<_, Failure>>()? })
        };
        let variants: Vec<Variant> =
            self.variants.iter().map(variant).collect::<Result<_, Failure>>()?;
        for (variant, subject) in variants.iter().flat_map(|v| subjects.iter().map(move |s| (v, s)))
        {
            variant.of(subject).map_err(Failure::Cannot)?;
        }
        Ok(variants)
    }

    /// The peers; always with the oracle last, if it is one of them.
    fn peers(&self, subjects: &[Subject]) -> Result<Vec<Peer>, Failure> {
        if self.policies.is_empty() {
            let only_jobs = subjects.iter().all(|subject| matches!(subject.object, Tried::Jobs(_)));
            let usual = if only_jobs { &BESIDE_JOBS[..] } else { &USUAL[..] };
            return Ok(usual.iter().copied().map(Peer::new).collect());
        }
        let given = self.policies.iter().filter(|name| *name != "none");
        let peers: Result<Vec<Peer>, Failure> =
            given.map(|name| Peer::parse(name).map_err(Failure::usage)).collect();
        let mut peers = peers?;
        peers.sort_by_key(|peer| peer.kind() == PeerKind::Oracle);
        Ok(peers)
    }
}
