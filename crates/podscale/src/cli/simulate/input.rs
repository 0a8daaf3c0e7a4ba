//! Flags that say what is simulated: objects, loads, seeds.

use super::Failure;
use super::loads::{self, NamedLoad, TraceOptions};
use super::model::Model;
use crate::scenario::Scenario;
use crate::simulate::edit::Edit;
use crate::simulate::{InputError, ModelOptions, Objects, Subject};
use clap::{Args, ValueEnum};
use podscale_api::time::parse_rfc3339;
use podscale_controller::settings::{amount, duration, period};
use podscale_core::{Span, Time};
use podscale_sim::Plan;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

/// What every command has that simulates: what is tried, and how the outcome is printed.
#[derive(Debug, Args)]
pub(super) struct Common<F: ValueEnum + Clone + Send + Sync + 'static> {
    /// The output format.
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    pub(super) output: F,

    #[command(flatten)]
    pub(super) input: Input,
}

/// Which objects are tried, on which loads.
#[derive(Debug, Args)]
pub(super) struct Input {
    /// Files with autoscalers, and with their targets if possible; `-` is standard input.
    #[arg(short, long = "filename", value_name = "FILE", num_args = 1..)]
    pub(super) files: Vec<PathBuf>,

    /// The workloads and their environment: a built-in scenario (tour, queue) or a scenario file. Without -f,
    /// its own autoscalers are tried.
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) scenario: Option<String>,

    /// A load, such as constant:100, sine:mean=100,amplitude=80,period=30m,
    /// spike:base=20,peak=300,at=10m,hold=10m, steps:0=20,10m=200, or as in scenario files; repeatable. If not
    /// given, the scenario's.
    #[arg(long = "load", value_name = "SHAPE")]
    pub(super) shapes: Vec<String>,

    /// A recorded load: a built-in trace (azure_llm_conv_1s, mooncake_conv_3s, nab_nyc_taxi_1800s), a CSV file
    /// with the columns seconds,value, plain or gzipped, or a folder of such files; repeatable.
    #[arg(long = "trace", value_name = "NAME|PATH")]
    pub(super) traces: Vec<String>,

    /// Scale traces so that their highest value is this many requests per second.
    #[arg(long, value_name = "RPS", value_parser = amount)]
    pub(super) peak: Option<f64>,

    /// Play traces at this multiple of their recorded speed.
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = factor)]
    pub(super) compress: f64,

    /// Skip this much of the beginning of traces.
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = duration)]
    pub(super) skip: Duration,

    /// Interpolate linearly between the values of a trace instead of in steps.
    #[arg(long)]
    pub(super) interpolate: bool,

    /// When simulated time begins, such as 2026-11-16T06:00:00Z; matters for schedules. The beginning of the
    /// year 2000 if not given.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub(super) start: Option<Time>,

    /// How long a run is: 1h, or as long as its trace, if not given. No run is longer than its trace.
    #[arg(long, value_name = "DURATION", value_parser = period)]
    pub(super) length: Option<Duration>,

    /// How much of the beginning is not scored.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(super) warm_up: Option<Duration>,

    /// The seed of all randomness.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// How many seeds to run, starting with that one.
    #[arg(long, value_name = "K", default_value = "3")]
    pub(super) seeds: NonZeroU32,

    /// Change a field of the autoscalers, such as spec.maxReplicas=20; repeatable.
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(super) edits: Vec<String>,

    /// How many cores to use; all if not given.
    #[arg(long, value_name = "N", env = "PODSCALE_JOBS")]
    pub(super) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(super) model: Model,
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

impl Input {
    /// The objects of the files and of the scenario, and the scenario itself.
    pub(super) fn objects(&self) -> Result<(Objects, Option<Scenario>), Failure> {
        let scenario = self.scenario.as_deref().map(Scenario::load).transpose();
        let scenario = scenario.map_err(Failure::cannot)?;
        let mut objects = scenario.as_ref().map(Objects::of).unwrap_or_default();
        for file in &self.files {
            objects.add_file(file).map_err(Failure::cannot)?;
        }
        Ok((objects, scenario))
    }

    /// The autoscalers with their targets, changed as was asked for.
    pub(super) fn subjects(&self, objects: &Objects) -> Result<Vec<Subject>, Failure> {
        let options = ModelOptions { start: self.start, ..self.model.options() };
        objects.subjects(&self.edits()?, &options).map_err(|error| match error {
            InputError::NoAutoscaler if self.files.is_empty() => Failure::Usage(
                "give an autoscaler with -f, or a --scenario that has one".to_owned(),
            ),
            error => Failure::cannot(error),
        })
    }

    /// What is changed in the autoscalers.
    pub(super) fn edits(&self) -> Result<Vec<Edit>, Failure> {
        self.edits.iter().map(|edit| Edit::parse(edit).map_err(Failure::usage)).collect()
    }

    /// The loads of an autoscaler.
    pub(super) fn loads(
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

    /// An autoscaler under a load.
    pub(super) fn plan(&self, subject: &Subject, load: &NamedLoad, objects: &Objects) -> Plan {
        let simulation = objects.simulation();
        let of_scenario = simulation.length_seconds.map(|seconds| Span((seconds * 1e6) as i64));
        let given = self.length.map(podscale_controller::settings::span);
        let warm_up =
            self.warm_up.map_or(subject.plan.warm_up, podscale_controller::settings::span);
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
