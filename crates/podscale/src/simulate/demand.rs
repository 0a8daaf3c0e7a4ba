//! Recovers from Recordings of a live cluster what load there was, so that other settings can be tried
//! on it. Every step is decided again, which gives pods and readings in the form that rules see; from
//! usage, sizes and queues follows the demand. What cannot be known is said.

mod error;
mod fit;
mod jobs;
mod observed;

pub use error::DemandError;
pub use jobs::Polls;

use super::{START, Subject, Tried};
use fit::Fitted;
use observed::Observed;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_api::meta::ObjectMeta;
use podscale_api::recording::{AnyRecording, Origin, Recording, RecordingReader};
use podscale_api::replay::Replayer;
use podscale_api::translate::scaled_object::was_left_to_hpa;
use podscale_controller::dialect;
use podscale_core::{Settings, Span, Time};
use podscale_sim::environment::{Arrivals, Delay, Environment, Pipeline};
use podscale_sim::jobs::KnownPoll;
use podscale_sim::load::TraceShape;
use podscale_sim::plan::{Detail, PodTemplate};
use podscale_sim::policy::Scripted;
use podscale_sim::trace::Point;
use podscale_sim::{Load, Plan, PlanError, Run, Shape, Trace, known_jobs, simulate};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The most files of a folder that are read.
const MAX_FILES: usize = 10_000;
/// So many periods without a step are a gap.
const LONG_GAP: f64 = 4.0;

/// Triggers are asked when something is decided: so old is what they say at most.
const ASKED_SECONDS: f64 = 1.0;

/// The fewest steps that say anything.
const LEAST_STEPS: usize = 8;

/// What was recovered for one autoscaler.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The object as it was last recorded, with a plan that plays the recovered load.
    pub subject: Subject,
    /// The sizes that were recorded: when, counted from the beginning, and which; of a ScaledJob, how many unfinished Jobs
    /// there were after each poll.
    pub sizes: Vec<(Span, i32)>,
    /// What was known at the polls of a ScaledJob.
    pub known: Vec<KnownPoll>,
    /// Replicas, or unfinished Jobs, times the hours that they were there.
    pub hours: f64,
    /// What cannot be known, in sentences.
    pub unknown: Vec<String>,
}

impl Recovered {
    /// Plays the recovered load to what was recorded: its sizes, or its Jobs and what they took.
    ///
    /// # Errors
    /// The plan makes no sense.
    pub fn replayed(&self, plan: &Plan) -> Result<Run, PlanError> {
        match &self.subject.object {
            Tried::Scale(_) => simulate(plan, &mut Scripted::new(self.sizes.clone())),
            Tried::Jobs(jobs) => known_jobs(plan, jobs.policy.inherited, &self.known),
        }
    }
}

/// What was recorded of one object.
#[derive(Debug)]
pub enum Gathered {
    /// Of one that gives its target a size.
    Scale(Recorded),
    /// Of a ScaledJob.
    Jobs(Polls),
}

impl Gathered {
    /// Recovers the load behind it.
    ///
    /// # Errors
    /// It is too short, or nothing tells the demand.
    pub fn recover(&self) -> Result<Recovered, DemandError> {
        match self {
            Gathered::Scale(recorded) => recover(recorded),
            Gathered::Jobs(polls) => jobs::recover(polls),
        }
    }
}

/// What was recorded of one autoscaler, in order of time: of every step no more than is needed, since
/// Recordings of a week are large.
#[derive(Debug, Default)]
pub struct Recorded {
    segments: Vec<Segment>,
}

/// What one Recording says.
#[derive(Debug)]
struct Segment {
    observed: Vec<Observed>,
    /// When pods were taken by their nodes, and how much later they became ready.
    starts: BTreeSet<(i64, i64)>,
    /// The object at its end.
    hpa: HorizontalPodAutoscaler,
    pods: Option<PodTemplate>,
    settings: Settings,
}

impl Recorded {
    /// Takes in a Recording of the same autoscaler; one without steps says nothing.
    pub fn add(&mut self, recording: &Recording) {
        let segment = Segment::of(recording);
        if segment.observed.is_empty() {
            return;
        }
        let at = segment.observed.first().map(|step| step.at);
        let place =
            self.segments.partition_point(|other| other.observed.first().map(|step| step.at) <= at);
        self.segments.insert(place, segment);
    }
}

impl Segment {
    fn of(recording: &Recording) -> Segment {
        let mut replayer = Replayer::new(recording);
        let mut hpa = recording.autoscaler.clone();
        hpa.status = None;
        let (mut observed, mut starts) = (Vec::new(), BTreeSet::new());
        for step in &recording.steps {
            if let Some(spec) = &step.spec {
                hpa.spec = spec.clone();
            }
            let recorded = step.expected().map(|decision| decision.replicas);
            observed.extend(replayer.step(step, |replayed| {
                starts.extend(observed::starts(&replayed));
                Observed::of(&replayed, recorded)
            }));
        }
        let pod = recording.steps.last().and_then(|step| step.pods.first());
        let pods = pod.and_then(|pod| super::objects::pods_of(&pod.spec, None));
        Segment { observed, starts, hpa, pods, settings: recording.controller.into() }
    }
}

/// Reads all Recordings of files and folders, those of one object put together; those of ScaledJobs come last.
///
/// # Errors
/// Something cannot be read, or there is nothing.
pub fn read(paths: &[PathBuf]) -> Result<Vec<Gathered>, DemandError> {
    let mut by_name: BTreeMap<(String, String, String), Recorded> = BTreeMap::new();
    let mut of_jobs: BTreeMap<(String, String), Polls> = BTreeMap::new();
    for path in paths {
        for file in files(path)? {
            let read = |source| DemandError::Read { path: file.clone(), source };
            let wrong = |source| DemandError::Recording { path: file.clone(), source };
            let mut reader = File::open(&file).and_then(RecordingReader::new).map_err(read)?;
            while let Some(line) = reader.next_line().map_err(wrong)? {
                let recording = match line.parse_any().map_err(wrong)? {
                    AnyRecording::Scale(recording) => recording,
                    AnyRecording::Jobs(recording) => {
                        let ObjectMeta { namespace, name, .. } = &recording.autoscaler.metadata;
                        let key = (namespace.clone(), name.clone());
                        of_jobs.entry(key).or_default().add(&recording);
                        continue;
                    }
                };
                let metadata = &recording.autoscaler.metadata;
                let kind = Origin::of(&recording.autoscaler).map(|origin| origin.kind);
                let kind = kind.unwrap_or_default();
                let key = (metadata.namespace.clone(), metadata.name.clone(), kind);
                by_name.entry(key).or_default().add(&recording);
            }
        }
    }
    by_name.retain(|_, recorded| !recorded.segments.is_empty());
    of_jobs.retain(|_, polls| !polls.is_empty());
    if by_name.is_empty() && of_jobs.is_empty() {
        return Err(DemandError::None);
    }
    let sizes = by_name.into_values().map(Gathered::Scale);
    Ok(sizes.chain(of_jobs.into_values().map(Gathered::Jobs)).collect())
}

/// A file, or the Recordings of a folder in order of their names.
fn files(path: &Path) -> Result<Vec<PathBuf>, DemandError> {
    let fail = |source| DemandError::Read { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(fail)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_recording = |path: &PathBuf| {
        let name = path.to_string_lossy();
        name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
    };
    let entries = std::fs::read_dir(path).map_err(fail)?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(is_recording)
        .take(MAX_FILES)
        .collect();
    found.sort();
    Ok(found)
}

/// Recovers the load behind the Recordings of one autoscaler.
///
/// # Errors
/// They are too short, or no metric tells the demand.
pub fn recover(recorded: &Recorded) -> Result<Recovered, DemandError> {
    let Some(last) = recorded.segments.last() else { return Err(DemandError::None) };
    let metadata = &last.hpa.metadata;
    let name = format!("{}/{}", metadata.namespace, metadata.name);
    let object = dialect::read::read_recorded(&last.hpa)
        .map_err(|source| DemandError::Object { name: name.clone(), source })?;
    let autoscaler = &object.managed.model;
    let steps = recorded.segments.iter().flat_map(|segment| segment.observed.iter().cloned());
    let mut observed: Vec<Observed> = steps.collect();
    observed.dedup_by_key(|step| step.at);
    if observed.len() < LEAST_STEPS {
        return Err(DemandError::Short { name, steps: observed.len(), least: LEAST_STEPS });
    }
    let template = last.pods.clone().unwrap_or_default();
    let mut unknown = Vec::new();
    if was_left_to_hpa(&last.hpa) {
        unknown.push(
            "an HPA beside the ScaledObject decided while there was something to do: what it decided is taken to \
             be what the ScaledObject would have"
                .to_owned(),
        );
    }
    let fitted = Fitted::of(&observed, autoscaler, &template, &mut unknown)
        .ok_or(DemandError::Unknown(name))?;
    let start = observed[0].at;
    let sizes: Vec<(Span, i32)> =
        observed.iter().map(|step| (step.at.since(start), step.replicas)).collect();
    let length = observed[observed.len() - 1].at.since(start);
    let starts = recorded.segments.iter().flat_map(|segment| segment.starts.iter().copied());
    let environment = environment(&observed, &starts.collect(), &mut unknown);
    let plan = Plan {
        load: load_of(&fitted.demand, start),
        workload: fitted.workload,
        template,
        environment,
        metrics: fitted.metrics,
        start: start_time(start),
        length: Span(length.0.max(Span::seconds(1).0)),
        warm_up: Span(0),
        replicas: observed[0].replicas,
        objective_seconds: fitted.objective_seconds,
        seed: 1,
        detail: Detail::default(),
    };
    let subject =
        Subject { object: Tried::Scale(object), settings: last.settings, plan, notes: Vec::new() };
    let hours = replica_hours(&sizes, length.0 as f64 / 1e6);
    Ok(Recovered { subject, sizes, known: Vec::new(), hours, unknown })
}

/// The moments of a live cluster are kept, so that differences can be found there again.
fn start_time(first: Time) -> Time {
    if first.0 > 0 { first } else { START }
}

/// Replicas times hours of sizes that each hold until the next.
fn replica_hours(sizes: &[(Span, i32)], until: f64) -> f64 {
    let at = |place: usize| sizes.get(place).map_or(until, |(at, _)| at.0 as f64 / 1e6);
    let hours = sizes.iter().enumerate().map(|(place, (from, size))| {
        f64::from(*size) * (at(place + 1) - from.0 as f64 / 1e6).max(0.0) / 3600.0
    });
    hours.sum()
}

/// The load that came from each time on.
fn load_of(demand: &[(Time, f64)], start: Time) -> Load {
    let mut points: Vec<Point> = Vec::with_capacity(demand.len());
    for (at, value) in demand {
        let at = Span(at.since(start).0.max(0));
        match points.last_mut() {
            Some(last) if last.at >= at => last.value = *value,
            _ => points.push(Point { at, value: *value }),
        }
    }
    let Some(trace) = Trace::new(points) else { return Load::none() };
    let trace = Arc::new(trace);
    let shape = Shape::Trace(TraceShape {
        file: "recovered".to_owned(),
        peak_rps: None,
        compress: 1.0,
        skip_seconds: 0.0,
        repeat: false,
        interpolate: false,
    });
    shape.resolve(|_| Ok::<_, String>(Arc::clone(&trace))).unwrap_or_else(|_| Load::none())
}

/// How long things took in the live cluster, as far as that can be seen.
fn environment(
    observed: &[Observed],
    starts: &BTreeSet<(i64, i64)>,
    unknown: &mut Vec<String>,
) -> Environment {
    let gaps = observed.windows(2).map(|pair| pair[1].at.since(pair[0].at).0 as f64 / 1e6);
    let gaps: Vec<f64> = gaps.collect();
    let period = fit::median(gaps.clone()).unwrap_or(15.0).clamp(0.1, 3600.0);
    let long: Vec<f64> = gaps.into_iter().filter(|gap| *gap > LONG_GAP * period).collect();
    note_gaps(&long, unknown);
    let windows = observed.iter().filter_map(|step| step.window_seconds);
    let window = fit::median(windows.collect()).unwrap_or(period).clamp(0.1, 3600.0);
    let ages = observed.iter().filter_map(|step| step.age_seconds);
    let age = fit::median(ages.collect()).unwrap_or(0.0);
    let mut delays: Vec<f64> = starts.iter().map(|(_, delay)| *delay as f64 / 1e6).collect();
    delays.sort_by(f64::total_cmp);
    let start_up = match fit::median(delays.clone()) {
        Some(median) => {
            let p95 = delays[(delays.len() - 1) * 95 / 100];
            let median_seconds = median.max(0.1);
            Delay::Lognormal { median_seconds, p95_seconds: p95.max(median_seconds) }
        }
        None => {
            unknown.push(
                "no pod became ready while this was recorded, so that how long pods need to start \
                 is assumed"
                    .to_owned(),
            );
            Environment::default().start_up
        }
    };
    let pipeline = Pipeline {
        resolution_seconds: window,
        window_seconds: window,
        delay_seconds: (age - window / 2.0).clamp(0.0, 600.0),
        ..Pipeline::default()
    };
    Environment {
        sync_period_seconds: period,
        sync_moment_seconds: Some(0.0),
        start_up,
        readiness: Delay::Fixed { seconds: 0.0 },
        resource_metrics: pipeline.clone(),
        custom_metrics: pipeline,
        direct_metrics: triggers(observed, period),
        arrivals: Arrivals::Even,
        ..Environment::default()
    }
}

/// Says that there are gaps of so many seconds, if there are any.
fn note_gaps(gaps: &[f64], unknown: &mut Vec<String>) {
    if !gaps.is_empty() {
        unknown.push(format!(
            "nothing was recorded in {} gaps of {:.0} s together: the load before each is taken to have \
             gone on",
            gaps.len(),
            gaps.iter().sum::<f64>()
        ));
    }
}

/// How what triggers say reaches whoever asks them, if there are any.
fn triggers(observed: &[Observed], period: f64) -> Option<Pipeline> {
    let asked = observed.iter().filter_map(|step| step.asked_seconds);
    fit::median(asked.collect()).map(|age| Pipeline {
        resolution_seconds: ASKED_SECONDS.min(period),
        window_seconds: ASKED_SECONDS.min(period),
        moment_seconds: Some(0.0),
        delay_seconds: age.clamp(0.0, 600.0),
        ..Pipeline::default()
    })
}

#[cfg(test)]
mod tests;
