//! The simulator against the embedded cluster: the same scenarios lead to the same sizes, within one sync
//! period. All scenarios run side by side in one cluster, which is the slow part.
//!
//! The cluster runs in real time, if faster, so that a machine that is busy with something else can make it
//! late. What does not agree is run again, slower: what was late agrees then, what really differs does not.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

#[path = "simulate_truth/scenarios.rs"]
mod scenarios;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, Patch, PatchParams};
use parking_lot::Mutex;
use podscale::demo::{Config, Demo};
use podscale::scenario::Scenario;
use podscale::simulate::{ModelOptions, Objects, Subject};
use podscale_api::recording::{Recording, RecordingReader, Step};
use podscale_api::replay::Replayer;
use podscale_api::translate;
use podscale_cluster::load::Wish;
use podscale_controller::controller::observer::{Decided, Observer};
use podscale_core::snapshot::Reading;
use podscale_core::{History, Span, Time};
use podscale_sim::plan::Detail;
use podscale_sim::policy::{Controlled, Seen as SeenByPass};
use podscale_sim::{Plan, Run};
use scenarios::Case;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How many times as fast as real time the cluster runs, one attempt after the other.
const SPEEDS: [f64; 3] = [5.0, 2.5, 1.25];
const PERIOD: i64 = Span::seconds(15).0;
/// How long the scenarios are, and how long everything settles before.
const LENGTH: u32 = 270;
const SETTLE: Duration = Duration::from_secs(120);
/// How long the simulation runs before the loads begin; whole periods, so that moments stay.
const BEFORE: u32 = 120;
/// The size at the very beginning, as the Deployments have it.
const REPLICAS: i32 = 2;
/// Decisions that are further apart than this are those of a machine that is too busy to measure on.
const LONGEST_GAP: i64 = PERIOD * 3 / 2;
/// How long pods take to start is random in both: what the cluster did must be among what this many simulations do.
const SEEDS: u64 = 10;
/// How many decisions of an autoscaler there are at least, if none was left out.
const FEWEST: usize = LENGTH as usize / 15 - 2;
const TIMEOUT: Duration = Duration::from_secs(300);

/// One test at a time: none is to make the cluster of another late.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// One decision of the cluster.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    replicas: i32,
    sample: Option<Time>,
}

#[derive(Default)]
struct Watcher(Mutex<HashMap<String, Vec<Seen>>>);

impl Observer for Watcher {
    fn decided(&self, decided: &Decided<'_>) {
        let Some(replicas) = decided.decision().replicas() else { return };
        let sample = decided.snapshot.readings.iter().find_map(|reading| match reading {
            Reading::PerPod(readings) => readings.samples.iter().flatten().next().map(|s| s.taken),
            _ => None,
        });
        let seen = Seen { at: decided.snapshot.now, replicas, sample };
        self.0.lock().entry(decided.key().name.to_string()).or_default().push(seen);
    }
}

/// What the cluster did: when the loads began, and every decision.
struct Watched {
    start: Time,
    decisions: HashMap<String, Vec<Seen>>,
}

/// Runs the cases in one cluster.
async fn watch(cases: &[Case], scenario: &Scenario, speed: f64) -> Watched {
    let watcher = Arc::new(Watcher::default());
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::clone(&watcher) as _];
    let config = Config { speed, read_kubelets: false, ..Config::of(scenario.clone()) };
    let demo = timeout(TIMEOUT, Demo::start(config, observers)).await.expect("in time");
    let demo = demo.expect("starts");
    demo.clock().sleep(SETTLE).await;
    let start = Time(demo.clock().now().as_microsecond());
    for case in cases {
        let wish = Wish::Shape(case.shape(0));
        demo.load().wish("default", case.name, wish).expect("a workload");
    }
    let mut rollouts: Vec<(u32, &str)> =
        cases.iter().filter_map(|case| Some((case.rollout?, case.name))).collect();
    rollouts.sort_unstable();
    let mut passed = 0;
    for (at, name) in rollouts {
        demo.clock().sleep(Duration::from_secs((at - passed).into())).await;
        passed = at;
        let deployments: Api<Deployment> = Api::namespaced(demo.client().clone(), "default");
        let patch = Patch::Merge(scenarios::new_version());
        deployments.patch(name, &PatchParams::default(), &patch).await.expect("a Deployment");
    }
    demo.clock().sleep(Duration::from_secs((LENGTH - passed).into())).await;
    let decisions = watcher.0.lock().clone();
    timeout(TIMEOUT, demo.stop()).await.expect("ends");
    Watched { start, decisions }
}

/// Whether the controller kept its moments, so that what it did can be compared.
fn is_sound(watched: &Watched, case: &Case) -> bool {
    let seen = watched.decisions.get(case.name).map(Vec::as_slice).unwrap_or_default();
    let after: Vec<&Seen> = seen.iter().filter(|seen| seen.at >= watched.start).collect();
    after.len() >= FEWEST
        && after.windows(2).all(|pair| pair[1].at.since(pair[0].at).0 <= LONGEST_GAP)
}

/// Simulates a case with the moments that the cluster had, and start-up times of its own.
fn simulated(case: &Case, subject: &Subject, watched: &Watched, seed: u64) -> Run {
    let seen = &watched.decisions[case.name];
    let first = seen.iter().find(|seen| seen.at >= watched.start).expect("a decision");
    let seconds = |time: Time| time.since(watched.start).0.rem_euclid(PERIOD) as f64 / 1e6;
    let mut environment = subject.plan.environment.clone();
    environment.sync_moment_seconds = Some(seconds(first.at));
    environment.resource_metrics.moment_seconds = first.sample.map(seconds);
    case.adapt(&mut environment, BEFORE);
    let plan = Plan {
        environment,
        load: case.shape(BEFORE).resolve(|_| Err("no traces")).expect("a load"),
        length: Span::seconds((LENGTH + BEFORE).into()),
        replicas: REPLICAS,
        seed,
        detail: Detail { changes: true, ..Detail::default() },
        ..subject.plan.clone()
    };
    subject.run(&plan).expect("a run")
}

/// A course of sizes: from when on which.
type Course = Vec<(i64, i32)>;

fn of_cluster(watched: &Watched, case: &Case) -> Course {
    let mut course = Course::new();
    for seen in &watched.decisions[case.name] {
        let at = seen.at.since(watched.start).0.max(0);
        if course.last().is_none_or(|(_, size)| *size != seen.replicas) {
            course.push((at, seen.replicas));
        }
    }
    course
}

fn of_run(run: &Run, start: Time) -> Course {
    let start = start.after(Span::seconds(BEFORE.into()));
    let changes = run.changes.iter().map(|change| (change.at.since(start).0.max(0), change.to));
    std::iter::once((0, REPLICAS)).chain(changes).collect()
}

fn size_at(course: &Course, at: i64) -> i32 {
    let place = course.partition_point(|(from, _)| *from <= at).saturating_sub(1);
    course[place].1
}

/// The first time at which one course has a size that the other does not have within a period.
fn difference(one: &Course, other: &Course) -> Option<i64> {
    let step = Span::seconds(1).0;
    let end = i64::from(LENGTH) * step - 2 * PERIOD;
    let near = PERIOD + 2 * step;
    (0..end / step).map(|second| second * step).find(|at| {
        let size = size_at(one, *at);
        let mut around = (-near / step..=near / step).map(|offset| (at + offset * step).max(0));
        !around.any(|near| size_at(other, near) == size)
    })
}

/// What is wrong with a case, if anything is.
fn judged(case: &Case, subject: &Subject, watched: &Watched) -> Option<String> {
    let name = case.name;
    if !is_sound(watched, case) {
        return Some(format!(
            "{name}: the machine is too busy, decisions do not keep their moments"
        ));
    }
    let cluster = of_cluster(watched, case);
    if cluster.len() < 2 {
        return Some(format!("{name}: nothing happens: {cluster:?}"));
    }
    let differences: Option<Vec<(i64, Course)>> = (1..=SEEDS)
        .map(|seed| {
            let simulated = of_run(&simulated(case, subject, watched, seed), subject.plan.start);
            let at = difference(&cluster, &simulated).or(difference(&simulated, &cluster))?;
            Some((at, simulated))
        })
        .collect();
    // The one that agrees the longest.
    let (at, simulated) = differences?.into_iter().max_by_key(|(at, _)| *at)?;
    let seconds = |course: &Course| -> Vec<(i64, i32)> {
        course.iter().map(|(at, size)| (at / 1_000_000, *size)).collect()
    };
    let (cluster, simulated) = (seconds(&cluster), seconds(&simulated));
    Some(format!("{name} at {} s: cluster {cluster:?}, simulated {simulated:?}", at / 1_000_000))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and a machine that does nothing else"]
async fn the_simulator_does_as_the_cluster_does() {
    let _alone = ALONE.lock().await;
    let mut cases = scenarios::cases();
    assert!(cases.len() >= 10);
    for (attempt, speed) in SPEEDS.into_iter().enumerate() {
        let text = scenarios::text(&cases);
        let scenario = Scenario::read("truth", &text, None).expect("a scenario");
        let subjects = Objects::of(&scenario).subjects(&[], &ModelOptions::default());
        let subjects = subjects.expect("autoscalers");
        let watched = watch(&cases, &scenario, speed).await;
        let mut wrong = Vec::new();
        let mut left = Vec::new();
        for (case, subject) in cases.into_iter().zip(&subjects) {
            if let Some(message) = judged(&case, subject, &watched) {
                eprintln!("{speed} times as fast: {message}");
                wrong.push(message);
                left.push(case);
            }
        }
        cases = left;
        if cases.is_empty() {
            return;
        }
        assert!(attempt + 1 < SPEEDS.len(), "{}", wrong.join("\n"));
    }
}

/// Whether all writes of a step succeed, as they do in simulations.
fn is_written(step: &Step) -> bool {
    let failed = |errors: &podscale_api::recording::StepErrors| {
        errors.update_scale.is_some()
            || errors.update_status.is_some()
            || errors.update_scale_conflicts > 0
    };
    !step.errors.as_ref().is_some_and(failed)
        && step.scale_withheld.is_none()
        && step.status_withheld.is_none()
}

/// Decides the steps of a recording as simulations do; how many agree with what was recorded.
fn agreeing(recording: &Recording) -> usize {
    let hpa = &recording.autoscaler;
    let status = hpa.status.as_ref().map(translate::status::from_wire).unwrap_or_default();
    let history = recording.history.as_ref().map(History::from).unwrap_or_default();
    let controlled = Controlled::new(translate::autoscaler(hpa), recording.controller.into());
    let mut controlled = controlled.after(status, history);
    let mut replayer = Replayer::new(recording);
    let decided = recording.steps.iter().map(|step| {
        replayer.step(step, |replayed| {
            let snapshot = replayed.snapshot;
            controlled.edit(snapshot.autoscaler.clone());
            let seen = SeenByPass {
                now: snapshot.now,
                written_at: snapshot.now,
                scale: snapshot.scale,
                pods: snapshot.pods,
                readings: snapshot.readings,
            };
            let expected = step.expected().expect("a decision");
            controlled.pass(&seen, |_, outcome| {
                let replicas = outcome.decision.replicas().unwrap_or(expected.replicas);
                let rescaled = outcome.decision.rescaled_at.is_some();
                (replicas, rescaled) == (expected.replicas, expected.rescaled)
            })
        })
    });
    decided.filter(|agrees| *agrees).count()
}

/// What Kubernetes' own controller decided, the native rule decides in simulations, too.
#[test]
fn the_native_rule_decides_as_recorded() {
    let _alone = ALONE.blocking_lock();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = root.join("crates/podscale-api/testdata/named-1.37.jsonl");
    // The large file is not in the repository.
    let large = root.join("../shared/recordings/upstream-1.37.jsonl.gz");
    let (mut decisions, mut agree) = (0, 0);
    for file in std::iter::once(named).chain(large.exists().then_some(large)) {
        let file = File::open(file).expect("recordings");
        for recording in RecordingReader::new(file).expect("a file of recordings") {
            let recording = recording.expect("a recording");
            if recording.steps.iter().all(is_written) {
                decisions += recording.steps.len();
                agree += agreeing(&recording);
            }
        }
    }
    assert!(decisions > 100, "{decisions} decisions are too few");
    assert_eq!(agree, decisions);
}
