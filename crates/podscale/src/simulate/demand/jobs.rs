//! Recovers what came into a queue from Recordings of a ScaledJob: what its trigger said and which Jobs there were at every
//! poll tells what Jobs took, and with it what came. What cannot be known is said.

mod fit;
mod lives;

use super::{
    DemandError, LEAST_STEPS, LONG_GAP, Recovered, fit as sizes, load_of, note_gaps, start_time,
};
use crate::simulate::jobs::{TriedJobs, counts_taken, externals, items_by_target};
use crate::simulate::{Subject, Tried};
use fit::Fitted;
use lives::Lives;
use podscale_api::keda::ScaledJob;
use podscale_api::recording::{JobsRecording, JobsStep, RecordedLoad};
use podscale_controller::dialect::read::{UnderstoodJobs, read_jobs};
use podscale_core::jobs::JobCounts;
use podscale_core::{Settings, Span, Time};
use podscale_sim::Plan;
use podscale_sim::environment::{Arrivals, Delay, Environment};
use podscale_sim::jobs::{Inherited, KnownPoll};
use podscale_sim::plan::{Detail, PodTemplate, Quantity};
use podscale_sim::workload::Kind;
use std::collections::BTreeMap;

/// More Jobs than these at a time are not followed.
const MOST_JOBS: i32 = 100_000;

/// Types of triggers that say nothing of how much there is to do.
const TELL_NOTHING: [&str; 5] = ["cron", "external", "external-push", "cpu", "memory"];

/// What was recorded of one ScaledJob, in order of time.
#[derive(Debug, Default)]
pub struct Polls {
    segments: Vec<Segment>,
}

/// What one Recording says.
#[derive(Debug)]
struct Segment {
    from: Time,
    polls: Vec<Seen>,
    /// The object at its end.
    object: ScaledJob,
    /// Steps in which it was paused or refused, and those in which another controller created the Jobs.
    idle: usize,
    withheld: usize,
}

/// What one poll found.
#[derive(Clone, Debug)]
struct Seen {
    at: Time,
    counts: JobCounts,
    created: i32,
    /// What metrics said, by their names.
    answers: Vec<(String, f64)>,
    /// Whether nothing is missing between the poll before it and this one.
    follows: bool,
}

/// One poll at which the length of the queue was known.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Poll {
    at: Time,
    /// The length of the queue, as its trigger counts it.
    queue: f64,
    unfinished: i32,
    pending: i32,
    created: i32,
    follows: bool,
}

impl Poll {
    /// Jobs that worked.
    fn working(&self) -> i32 {
        self.unfinished.saturating_sub(self.pending).max(0)
    }

    /// Items that no Job had taken, where those that Jobs had taken still counted or did not.
    fn waiting(&self, counts_taken: bool) -> f64 {
        let in_hand = if counts_taken { f64::from(self.working()) } else { 0.0 };
        (self.queue - in_hand).max(0.0)
    }
}

impl Polls {
    /// Takes in a Recording of the same object; one without steps says nothing.
    pub fn add(&mut self, recording: &JobsRecording) {
        let Some(first) = recording.steps.first() else { return };
        let segment = Segment::of(recording, first.time.0);
        let place = self.segments.partition_point(|other| other.from <= segment.from);
        self.segments.insert(place, segment);
    }

    /// Whether there is anything.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}

impl Segment {
    fn of(recording: &JobsRecording, from: Time) -> Segment {
        let mut object = recording.autoscaler.clone();
        object.status = None;
        let mut segment = Segment { from, polls: Vec::new(), object, idle: 0, withheld: 0 };
        // Live controllers begin a new Recording after a while; what is missing between two shows in their times.
        let mut follows = true;
        for step in &recording.steps {
            if let Some(spec) = &step.spec {
                segment.object.spec = spec.clone();
            }
            follows = segment.take(step, follows);
        }
        segment
    }

    /// Takes in a step; gives whether nothing is missing after it.
    fn take(&mut self, step: &JobsStep, follows: bool) -> bool {
        let refused = step.errors.as_ref().is_some_and(|errors| errors.check.is_some());
        if step.paused || refused {
            self.idle += 1;
            return false;
        }
        if step.withheld.is_some() {
            self.withheld += 1;
            return false;
        }
        let Some(decision) = &step.decision else { return false };
        let answer = |load: &RecordedLoad| {
            let value = load.value.as_ref().filter(|_| load.error.is_none())?;
            Some((load.metric.clone(), value.milli_value() as f64 / 1000.0))
        };
        let running = step.jobs.unfinished.clamp(0, MOST_JOBS);
        self.polls.push(Seen {
            at: step.time.0,
            counts: JobCounts { running, pending: step.jobs.pending.clamp(0, running) },
            created: decision.created.clamp(0, MOST_JOBS),
            answers: step.answers.iter().filter_map(answer).collect(),
            follows,
        });
        true
    }
}

/// Recovers the load behind the Recordings of one ScaledJob.
///
/// # Errors
/// They are too short, or nothing tells what Jobs did.
pub(super) fn recover(recorded: &Polls) -> Result<Recovered, DemandError> {
    let Some(last) = recorded.segments.last() else { return Err(DemandError::None) };
    let metadata = &last.object.metadata;
    let name = format!("ScaledJob {}/{}", metadata.namespace, metadata.name);
    if last.object.spec.triggers.iter().all(|trigger| TELL_NOTHING.contains(&&*trigger.r#type)) {
        return Err(DemandError::NoQueue(name));
    }
    let fail = |source| DemandError::Object { name: name.clone(), source };
    let object = serde_json::to_value(&last.object).map_err(|error| fail(error.into()))?;
    let object = read_jobs(&object).map_err(fail)?;
    let all = recorded.segments.iter().flat_map(|segment| segment.polls.iter().cloned());
    let mut seen: Vec<Seen> = all.collect();
    seen.dedup_by_key(|poll| poll.at);
    let sum = |of: fn(&Segment) -> usize| recorded.segments.iter().map(of).sum::<usize>();
    let (idle, withheld) = (sum(|segment| segment.idle), sum(|segment| segment.withheld));
    if seen.len() < LEAST_STEPS && withheld > 0 {
        return Err(DemandError::Withheld(name));
    }
    if seen.len() < LEAST_STEPS {
        return Err(DemandError::Short { name, steps: seen.len(), least: LEAST_STEPS });
    }
    let mut unknown = Vec::new();
    if idle + withheld > 0 {
        unknown.push(format!(
            "in {idle} steps it was paused or could not be used, and in {withheld} its Jobs were not its own: the \
             simulation knows nothing of that"
        ));
    }
    let (polls, metric) = of_queue(&object, &seen).ok_or(DemandError::NoQueue(name.clone()))?;
    if externals(&object).count() > 1 {
        unknown.push(format!(
            "the load is recovered from {metric}; other triggers are taken to be of the same queue"
        ));
    }
    let polls = contiguous(polls);
    let counts_taken = counts_taken(&object);
    let lives = Lives::of(&polls, counts_taken);
    let fitted = Fitted::of(&polls, &lives, items_by_target(&object), counts_taken, &mut unknown)
        .ok_or(DemandError::NoJobs(name))?;
    note_gaps(&gaps(&polls), &mut unknown);
    Ok(recovered(object, &seen, &polls, (&lives, &fitted), unknown))
}

/// The plan that plays what was recovered.
fn recovered(
    object: UnderstoodJobs,
    seen: &[Seen],
    polls: &[Poll],
    (lives, fitted): (&Lives, &Fitted),
    mut unknown: Vec<String>,
) -> Recovered {
    let counts_taken = fitted.work.counts_taken;
    let (first, last) = (polls[0], polls[polls.len() - 1]);
    let start = first.at;
    // The cast saturates.
    let items = first.waiting(counts_taken).round() as u64;
    let jobs = JobCounts { running: first.unfinished, pending: first.pending };
    let inherited = Inherited { items, jobs };
    let environment = Environment {
        sync_moment_seconds: Some(0.0),
        start_up: start_up(lives, &mut unknown),
        readiness: Delay::Fixed { seconds: 0.0 },
        arrivals: Arrivals::Even,
        ..Environment::default()
    };
    unknown.push(
        "how many pods a Job has is not recorded: pod-hours are hours of Jobs, and a Job stays what it was".to_owned(),
    );
    let tried = TriedJobs::new(object, &BTreeMap::new(), fitted.work, inherited);
    let seen: Vec<&Seen> = seen.iter().filter(|poll| poll.at >= start).collect();
    let since = |at: Time| at.since(start);
    let sizes =
        seen.iter().map(|poll| (since(poll.at), poll.counts.running.saturating_add(poll.created)));
    let plan = Plan {
        load: load_of(&fitted.demand, start),
        workload: sizes::spec(Kind::Consumer, 1.0 / fitted.item_seconds),
        template: PodTemplate::default(),
        environment,
        metrics: BTreeMap::new(),
        start: start_time(start),
        // So that the last poll is made as well.
        length: Span(since(last.at).0.saturating_add(Span::seconds(1).0)),
        warm_up: Span(0),
        replicas: first.unfinished,
        objective_seconds: 60.0,
        seed: 1,
        detail: Detail::default(),
    };
    Recovered {
        sizes: sizes.collect(),
        known: known(polls, fitted),
        hours: hours(&seen),
        subject: Subject {
            object: Tried::Jobs(Box::new(tried)),
            settings: Settings::default(),
            plan,
            notes: Vec::new(),
        },
        unknown,
    }
}

/// What was known at polls, with how fast Jobs took items then: by how much what waited became less, and what came.
fn known(polls: &[Poll], fitted: &Fitted) -> Vec<KnownPoll> {
    let counts_taken = fitted.work.counts_taken;
    let mut demand = fitted.demand.iter().peekable();
    let (mut rate, mut owed) = (0.0, 0.0);
    let mut found = Vec::with_capacity(polls.len());
    for (place, poll) in polls.iter().enumerate() {
        if let Some((_, came)) = demand.next_if(|(at, _)| *at <= poll.at) {
            rate = *came;
        }
        let taken_per_second = polls.get(place + 1).map_or(0.0, |next| {
            let seconds = (next.at.since(poll.at).0 as f64 / 1e6).max(0.001);
            let gone = poll.waiting(counts_taken) - next.waiting(counts_taken);
            let taken = gone + rate * seconds + owed;
            owed = taken.min(0.0);
            taken.max(0.0) / seconds
        });
        found.push(KnownPoll {
            at: poll.at.since(polls[0].at),
            unfinished: poll.unfinished,
            working: poll.working(),
            created: poll.created,
            taken_per_second,
        });
    }
    found
}

/// The polls at which the first trigger that is a queue's length had a value, if those are most of them; and its metric.
fn of_queue(object: &UnderstoodJobs, seen: &[Seen]) -> Option<(Vec<Poll>, String)> {
    let is_length = |name: &&str| Quantity::guess(name, Kind::Consumer) == Quantity::QueueLength;
    let mut names = externals(object).map(|(name, _, _)| &**name).filter(is_length);
    names.find_map(|name| {
        let mut polls = Vec::new();
        let mut follows = false;
        for poll in seen {
            follows &= poll.follows;
            let value = poll.answers.iter().find(|(metric, _)| metric == name);
            match value {
                Some((_, queue)) => {
                    polls.push(Poll {
                        at: poll.at,
                        queue: queue.max(0.0),
                        unfinished: poll.counts.running,
                        pending: poll.counts.pending,
                        created: poll.created,
                        follows,
                    });
                    follows = true;
                }
                // Jobs that were created for something else are not known to belong to what follows.
                None => follows &= poll.created == 0,
            }
        }
        (polls.len() * 2 >= seen.len() && polls.len() >= LEAST_STEPS)
            .then(|| (polls, name.to_owned()))
    })
}

/// The same polls, of which those after a long gap follow nothing.
fn contiguous(mut polls: Vec<Poll>) -> Vec<Poll> {
    let seconds = |polls: &[Poll]| polls[1].at.since(polls[0].at).0 as f64 / 1e6;
    let period = sizes::median(polls.windows(2).map(seconds).collect()).unwrap_or(0.0);
    for place in 1..polls.len() {
        let gap = seconds(&polls[place - 1..=place]);
        polls[place].follows &= gap > 0.0 && gap <= LONG_GAP * period;
    }
    polls
}

/// How long each gap was, in seconds.
fn gaps(polls: &[Poll]) -> Vec<f64> {
    let broken = polls.windows(2).filter(|pair| !pair[1].follows);
    broken.map(|pair| pair[1].at.since(pair[0].at).0 as f64 / 1e6).collect()
}

/// How long Jobs took until they worked.
fn start_up(lives: &Lives, unknown: &mut Vec<String>) -> Delay {
    let mut delays = lives.start_ups.clone();
    delays.sort_by(f64::total_cmp);
    let Some(median) = sizes::median(delays.clone()) else {
        unknown.push(
            "no Job was seen to start, so that how long Jobs need to start is assumed".to_owned(),
        );
        return Environment::default().start_up;
    };
    unknown.push(format!(
        "how long Jobs need to start is known to within a polling interval: {median:.1} s is taken for half of them"
    ));
    let median_seconds = median.max(0.1);
    let p95 = delays[(delays.len() - 1) * 95 / 100];
    Delay::Lognormal { median_seconds, p95_seconds: p95.max(median_seconds) }
}

/// Hours of unfinished Jobs; those that ended between two polls did so in the middle.
fn hours(seen: &[&Seen]) -> f64 {
    let pair = |pair: &[&Seen]| {
        let seconds = pair[1].at.since(pair[0].at).0 as f64 / 1e6;
        let begin = pair[0].counts.running.saturating_add(pair[0].created);
        (f64::from(begin) + f64::from(pair[1].counts.running)) / 2.0 * seconds / 3600.0
    };
    seen.windows(2).map(pair).sum()
}

#[cfg(test)]
mod tests;
