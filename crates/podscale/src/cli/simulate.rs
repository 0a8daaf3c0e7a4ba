//! `podscale simulate`: tries autoscaler objects on loads before anybody does in production.

mod grid;
mod html;
mod loads;
mod markdown;
mod model;
mod output;
mod table;
mod what_if;

use super::{print, print_error};
use crate::scenario::Scenario;
use crate::settings::{amount, duration, period};
use crate::simulate::edit::Edit;
use crate::simulate::{InputError, ModelOptions, Objects, RunRecorder, Subject};
use clap::{Args, ValueEnum};
use grid::Grid;
use loads::{NamedLoad, TraceOptions};
use model::Model;
use podscale_api::recording::RecordingWriter;
use podscale_api::time::parse_rfc3339;
use podscale_core::{Span, Time};
use podscale_sim::plan::Detail;
use podscale_sim::policy::Peer;
use podscale_sim::policy::peers::PeerKind;
use podscale_sim::{Plan, simulate};
use std::fs::File;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Try autoscalers on loads, in virtual time, beside other autoscalers.
///
/// Objects are decided by the rules that `podscale run` decides by; their targets, pods and metrics are
/// simulated. Beside them run Kubernetes' HPA, KEDA, Knative's autoscaler and an oracle that knows the
/// load to come, and all get scores: requests that went wrong, pod-hours, reversals. With --recording
/// the load is recovered from recordings of a live cluster, and the question is what would have been
/// different. The same seed gives the same output, byte for byte.
///
/// Exit codes: 0 done, 1 something cannot be simulated, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Files with autoscalers, and with their targets if possible; `-` is standard input.
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,

    /// What the workloads are like and where they run: a built-in scenario (tour, queue) or a scenario
    /// file. Without -f, its own autoscalers are tried.
    #[arg(long, value_name = "NAME|FILE")]
    scenario: Option<String>,

    /// A load, such as constant:100, sine:mean=100,amplitude=80,period=30m,
    /// spike:base=20,peak=300,at=10m,hold=10m, steps:0=20,10m=200, or as in scenario files; may be given
    /// several times. That of the scenario if there is none.
    #[arg(long = "load", value_name = "SHAPE")]
    shapes: Vec<String>,

    /// A recorded load: a built-in trace (azure_llm_conv_1s, mooncake_conv_3s, nab_nyc_taxi_1800s), a CSV
    /// file with the columns seconds,value, also gzipped, or a folder of such files; may be given
    /// several times.
    #[arg(long = "trace", value_name = "NAME|PATH")]
    traces: Vec<String>,

    /// Scale traces so that their highest value is so many requests a second.
    #[arg(long, value_name = "RPS", value_parser = amount)]
    peak: Option<f64>,

    /// Play traces so many times as fast as they were recorded.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    compress: f64,

    /// Begin traces so far from their start.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    skip: Duration,

    /// Go from one value of a trace to the next in a straight line instead of in steps.
    #[arg(long)]
    interpolate: bool,

    /// When simulated time begins, such as 2026-11-16T06:00:00Z; matters to schedules. The beginning of
    /// the year 2000 if not given.
    #[arg(long, value_name = "TIME", value_parser = moment, conflicts_with = "recordings")]
    start: Option<Time>,

    /// How long a run is: 1h, or as long as its trace, if not given. No run is longer than its trace.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    length: Option<Duration>,

    /// How much of the beginning is not scored.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    warm_up: Option<Duration>,

    /// Who runs beside the objects: hpa-cpu, hpa-rps, keda, knative, fixed, oracle, each with
    /// parameters as in knative:target=7,stable=120; none for nobody. May be given several times.
    #[arg(long = "policy", value_name = "NAME", default_values = ["hpa-cpu", "hpa-rps", "keda", "knative", "oracle"])]
    policies: Vec<String>,

    /// Where everything random comes from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// How many seeds are run, from that one on.
    #[arg(long, value_name = "K", default_value = "3")]
    seeds: NonZeroU32,

    /// Change a field of the autoscalers, such as spec.maxReplicas=20; may be given several times.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    edits: Vec<String>,

    /// Recover the load from recordings of podscale run --record: files, or folders of them.
    #[arg(long = "recording", value_name = "PATH", conflicts_with_all = ["scenario", "shapes", "traces"])]
    recordings: Vec<PathBuf>,

    /// Explain the decision that holds so long after the start, such as 12m30s.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    explain: Option<Duration>,

    /// Write the first run of each object as a recording, which podscale replay decides again.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// A table, JSON, CSV with a line for each run, an HTML report in one file, or Markdown.
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,

    /// How many cores to use; all if not given.
    #[arg(long, value_name = "N", env = "PODSCALE_JOBS")]
    jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    model: Model,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table with sparklines.
    #[default]
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

fn moment(text: &str) -> Result<Time, String> {
    parse_rfc3339(text).map_err(|_| "not a time such as 2026-11-16T06:00:00Z".to_owned())
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (0.001..=1e6).contains(&factor) => Ok(factor),
        _ => Err("not a number between 0.001 and 1000000".to_owned()),
    }
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
    let (mut objects, scenario) = arguments.objects()?;
    for file in &arguments.files {
        objects.add_file(file).map_err(Failure::cannot)?;
    }
    let options = ModelOptions { start: arguments.start, ..arguments.model.options() };
    let subjects = objects.subjects(&arguments.edits()?, &options);
    let subjects = subjects.map_err(|error| match error {
        InputError::NoAutoscaler if arguments.files.is_empty() => {
            Failure::Usage("give an autoscaler with -f, or a --scenario that has one".to_owned())
        }
        error => Failure::cannot(error),
    })?;
    let peers = arguments.peers()?;
    let mut plans = Vec::new();
    for subject in &subjects {
        for load in arguments.loads(&objects, scenario.as_ref(), subject)? {
            plans.push((subject, arguments.plan(subject, &load, &objects), load.name));
        }
    }
    if let Some(file) = &arguments.record {
        record(file, &plans)?;
    }
    if arguments.explain.is_some() {
        return explain(arguments, &plans);
    }
    let grid = Grid::run(arguments, &plans, &peers).map_err(Failure::cannot)?;
    Ok(match arguments.output {
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
        let at = plan.start.after(crate::settings::span(at));
        let detail = Detail { explain_at: Some(at), ..Detail::default() };
        let plan = Plan { seed: arguments.seed, detail, ..plan.clone() };
        let run = simulate(&plan, &mut subject.policy()).map_err(Failure::cannot)?;
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
        let mut recorder = RunRecorder::new(subject, &name);
        let mut policy = subject.policy().observed(&mut recorder);
        simulate(plan, &mut policy).map_err(Failure::cannot)?;
        drop(policy);
        writer.write(&recorder.finish()).map_err(fail)?;
    }
    writer.finish().map(drop).map_err(fail)
}

impl Arguments {
    fn objects(&self) -> Result<(Objects, Option<Scenario>), Failure> {
        let Some(scenario) = &self.scenario else { return Ok((Objects::default(), None)) };
        let scenario = Scenario::load(scenario).map_err(Failure::cannot)?;
        Ok((Objects::of(&scenario), Some(scenario)))
    }

    fn edits(&self) -> Result<Vec<Edit>, Failure> {
        self.edits.iter().map(|edit| Edit::parse(edit).map_err(Failure::usage)).collect()
    }

    /// The peers; always with the oracle last, if it is one of them.
    fn peers(&self) -> Result<Vec<Peer>, Failure> {
        let given = self.policies.iter().filter(|name| *name != "none");
        let peers: Result<Vec<Peer>, Failure> =
            given.map(|name| Peer::parse(name).map_err(Failure::usage)).collect();
        let mut peers = peers?;
        peers.sort_by_key(|peer| peer.kind() == PeerKind::Oracle);
        Ok(peers)
    }

    fn loads(
        &self,
        objects: &Objects,
        scenario: Option<&Scenario>,
        subject: &Subject,
    ) -> Result<Vec<NamedLoad>, Failure> {
        let options = TraceOptions {
            peak_rps: self.peak,
            compress: self.compress,
            skip_seconds: self.skip.as_secs_f64(),
            interpolate: self.interpolate,
        };
        let mut loads = Vec::new();
        for shape in &self.shapes {
            let load = loads::shape(shape);
            loads.push(load.map_err(|error| Failure::Usage(format!("--load {shape}: {error}")))?);
        }
        for trace in &self.traces {
            for file in loads::traces(trace).map_err(Failure::Cannot)? {
                loads.push(loads::of_trace(&file, options).map_err(Failure::Cannot)?);
            }
        }
        if !loads.is_empty() {
            return Ok(loads);
        }
        let autoscaler = subject.autoscaler();
        let workload = objects.workload(&autoscaler.namespace, &autoscaler.target.name);
        match (workload, scenario) {
            (Some(workload), Some(scenario)) => {
                let load = loads::of_scenario(&workload.name, &workload.load, &scenario.traces);
                Ok(vec![load.map_err(Failure::Cannot)?])
            }
            _ => Err(Failure::Usage(
                "give a load with --load or --trace, or a --scenario that has one for the target"
                    .to_owned(),
            )),
        }
    }

    fn plan(&self, subject: &Subject, load: &NamedLoad, objects: &Objects) -> Plan {
        let simulation = objects.simulation();
        let of_scenario = simulation.length_seconds.map(|seconds| Span((seconds * 1e6) as i64));
        let given = self.length.map(crate::settings::span);
        let warm_up = self.warm_up.map_or(subject.plan.warm_up, crate::settings::span);
        Plan {
            load: load.load.clone(),
            length: given
                .or(of_scenario)
                .unwrap_or(load.length)
                .min(load.longest.unwrap_or(Span(i64::MAX))),
            warm_up,
            seed: self.seed,
            ..subject.plan.clone()
        }
    }
}
