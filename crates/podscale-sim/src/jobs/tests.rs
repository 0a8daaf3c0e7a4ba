use super::*;
use crate::environment::{Delay, NodePool, Outage};
use crate::load::{Shape, Spike};
use crate::plan::{Detail, PodTemplate};
use podscale_core::jobs::{Calculation, JobStrategy};
use proptest::prelude::*;
use std::collections::BTreeMap;

const START: Time = Time(1_700_000_000_000_000);

/// One Job does an item in two seconds.
fn plan(load: crate::Load, minutes: i64) -> Plan {
    let workload = r#"{"kind":"consumer","rpsPerPod":0.5,"cpuMsPerRequest":10}"#;
    Plan {
        workload: serde_json::from_str(workload).unwrap(),
        template: PodTemplate::default(),
        environment: Environment {
            start_up: Delay::Fixed { seconds: 10.0 },
            ..Environment::default()
        },
        metrics: BTreeMap::new(),
        load,
        start: START,
        length: Span::seconds(minutes * 60),
        warm_up: Span(0),
        replicas: 0,
        objective_seconds: 60.0,
        seed: 1,
        detail: Detail { points: 60, changes: true, ..Detail::default() },
    }
}

/// Ten items a Job, at most twenty Jobs.
fn policy(strategy: JobStrategy) -> JobPolicy {
    JobPolicy {
        rules: JobRules { min: 0, max_beside_min: 20, strategy, calculation: Calculation::Max },
        triggers: vec![Measured {
            metric: "s0-queue".into(),
            quantity: Quantity::QueueLength,
            per_job: Milli(10_000),
            activation: Milli(0),
        }],
        polling: Span::seconds(10),
        pending_until_ready: false,
        work: JobWork {
            items: Some(10),
            run_seconds: None,
            idle_seconds: 0.0,
            counts_taken: true,
            pods: 1,
        },
        inherited: Inherited::default(),
    }
}

fn spike() -> crate::Load {
    let spike = Spike {
        base_rps: 0.0,
        peak_rps: 4.0,
        at_seconds: 300.0,
        rise_seconds: 0.0,
        hold_seconds: 300.0,
        fall_seconds: 0.0,
        every_seconds: None,
    };
    Shape::Spike(spike).resolve(|_| Err("no traces")).unwrap()
}

fn run(plan: &Plan, policy: &JobPolicy) -> Run {
    simulate_jobs(plan, policy, None).unwrap()
}

#[test]
fn jobs_come_with_the_work_and_go_with_it() {
    let plan = plan(spike(), 30);
    let found = run(&plan, &policy(JobStrategy::Default));
    // What is not scored is no number, and equals nothing.
    let again = run(&plan, &policy(JobStrategy::Default));
    assert_eq!(format!("{found:?}"), format!("{again:?}"), "the same seed");
    let other = Plan { seed: 2, ..plan.clone() };
    assert_ne!(found.scores, run(&other, &policy(JobStrategy::Default)).scores);
    let scores = found.scores;
    // 1200 items of two seconds are 40 minutes of work, and each Job has 10 s to start.
    assert!((1100.0..1300.0).contains(&scores.requests), "{scores:?}");
    let least = scores.requests * 2.0 / 3600.0;
    assert!(scores.pod_hours > least && scores.pod_hours < least * 2.0, "{scores:?}");
    assert!(scores.pods_started as f64 >= scores.requests / 10.0, "{scores:?}");
    assert!(scores.reversals_per_hour.is_nan(), "a Job that ends is none");
    assert_eq!(scores.decisions, 180);
    let at = |minute: usize| found.points[minute * 2];
    assert_eq!((at(4).replicas, at(29).replicas), (0.0, 0.0), "nobody is there without work");
    assert!(at(8).replicas > 5.0, "{:?}", at(8));
    assert!(found.changes.iter().all(|change| change.to <= 20 && !change.why.is_empty()));
}

/// Keeps how many Jobs there were, and how many were created.
#[derive(Default)]
struct Creations(Vec<(Time, i32, i32)>);

impl PollObserver for Creations {
    fn polled(&mut self, now: Time, snapshot: &JobSnapshot, plan: JobPlan) {
        self.0.push((now, snapshot.counts.running, plan.create));
    }
}

#[test]
fn a_run_goes_on_from_what_was_there() {
    let mut policy = policy(JobStrategy::Default);
    let jobs = jobs::JobCounts { running: 4, pending: 1 };
    policy.inherited = Inherited { items: 100, jobs };
    let mut plan = plan(crate::Load::none(), 10);
    plan.environment.sync_moment_seconds = Some(0.0);
    let mut creations = Creations::default();
    let run = simulate_jobs(&plan, &policy, Some(&mut creations)).unwrap();
    // A hundred items by ten each ask for ten Jobs, of which there are four.
    assert_eq!(creations.0[0], (START, 4, 6));
    assert_eq!(run.changes[0].to, 10);
    assert_eq!(run.points.last().map(|point| point.waiting), Some(0.0), "all are done");
    let started: i32 = creations.0.iter().map(|(_, _, create)| create).sum();
    assert_eq!(run.scores.pods_started, u64::from(started.unsigned_abs()));
}

#[test]
fn strategies_decide_by_what_runs_and_what_is_pending() {
    let plan = plan(spike(), 30);
    let scores = |strategy, counts_taken| {
        let mut policy = policy(strategy);
        policy.work.counts_taken = counts_taken;
        run(&plan, &policy).scores
    };
    // Where what a Job has taken leaves the queue, a rule that takes off what runs falls behind.
    let (default, accurate) =
        (scores(JobStrategy::Default, false), scores(JobStrategy::Accurate, false));
    assert!(default.p95_seconds > accurate.p95_seconds, "{default:?} {accurate:?}");
    let eager = scores(JobStrategy::Eager, true);
    assert!(
        eager.queue_age_most_seconds <= scores(JobStrategy::Default, true).queue_age_most_seconds
    );
    let custom = JobStrategy::Custom { deduction: 30, running_share: 1.0 };
    let held_back = scores(custom, true);
    assert!(held_back.violations > default.violations, "{held_back:?}");
}

#[test]
fn a_minimum_is_always_there_and_a_maximum_never_exceeded() {
    let plan = plan(crate::Load::constant(50.0), 10);
    let mut policy = policy(JobStrategy::Default);
    policy.rules.min = 3;
    policy.rules.max_beside_min = 4;
    policy.work = JobWork { items: None, run_seconds: Some(60.0), ..policy.work };
    let found = run(&plan, &policy);
    let most = found.points.iter().map(|point| point.replicas).fold(0.0, f64::max);
    assert_eq!(most, 7.0);
    assert!(found.scores.violations > 0.85, "seven Jobs do 3.5 items a second: {:?}", found.scores);
    assert!(found.points[59].waiting > 20_000.0);
    let idle = Plan { load: crate::Load::none(), ..plan };
    let staying = JobWork { idle_seconds: f64::INFINITY, ..policy.work };
    let found = run(&idle, &JobPolicy { work: staying, ..policy });
    // Each works for a minute, and the next poll sees that it has ended.
    let mean = found.points.iter().map(|point| point.replicas).sum::<f64>() / 60.0;
    assert!((2.0..=3.0).contains(&mean), "{mean}");
    assert_eq!(found.scores.violations, 0.0);
}

#[test]
fn a_source_that_does_not_answer_creates_no_jobs_and_is_explained() {
    let mut plan = plan(crate::Load::constant(1.0), 20);
    let outages = vec![Outage { at_seconds: 0.0, for_seconds: 600.0 }];
    plan.environment.custom_metrics.outages = outages;
    plan.detail.explain_at = Some(START.after(Span::seconds(305)));
    let found = run(&plan, &policy(JobStrategy::Default));
    let moment = found.moment.expect("it was asked for");
    assert_eq!(
        moment.lines[1],
        "s0-queue could not be read: the event source does not answer (outage)"
    );
    assert_eq!(moment.lines.last().unwrap(), "so none is created");
    assert!(moment.at <= START.after(Span::seconds(305)));
    assert!(found.changes[0].at >= START.after(Span::seconds(600)));
    assert!(found.scores.queue_age_most_seconds > 590.0, "{:?}", found.scores);
    plan.environment.custom_metrics.outages = Vec::new();
    plan.environment.custom_metrics.missing = 1.0;
    assert_eq!(run(&plan, &policy(JobStrategy::Default)).scores.pods_started, 0);
}

#[test]
fn jobs_wait_for_nodes_and_count_as_pending() {
    let mut plan = plan(spike(), 30);
    let alone = run(&plan, &policy(JobStrategy::Accurate)).scores;
    plan.environment.nodes = Some(NodePool {
        pods_per_node: 5,
        min_nodes: 0,
        max_nodes: 2,
        start_up: Delay::Fixed { seconds: 90.0 },
        empty_seconds: 300.0,
    });
    let found = run(&plan, &policy(JobStrategy::Accurate));
    assert!(found.scores.queue_age_most_seconds > alone.queue_age_most_seconds + 60.0);
    assert!(found.points.iter().all(|point| point.ready <= 10.0), "two nodes take ten");
    assert!(found.changes.iter().any(|change| change.why[0].contains("of them pending")));
}

#[test]
fn what_is_left_waiting_too_long_is_late_and_requests_can_be_left_out() {
    let mut plan = plan(crate::Load::constant(1.0), 10);
    let nobody = JobPolicy {
        rules: JobRules { max_beside_min: 0, ..policy(JobStrategy::Default).rules },
        ..policy(JobStrategy::Default)
    };
    let scores = run(&plan, &nobody).scores;
    assert!((0.85..0.95).contains(&scores.violations), "all but the last minute: {scores:?}");
    plan.detail.without_requests = true;
    let scores = run(&plan, &policy(JobStrategy::Default)).scores;
    assert!(scores.p95_seconds.is_nan() && scores.violations == 0.0, "{scores:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever a Job does, no item is lost or done twice.
    #[test]
    fn every_item_is_waiting_lost_or_taken(
        rps in 0.0..40.0_f64,
        rate in 0.01..60.0_f64,
        items in proptest::option::of(1..50_u64),
        run_seconds in proptest::option::of(0.1..90.0_f64),
        idle_seconds in 0.0..30.0_f64,
        limit in 10.0..2000.0_f64,
        seed in 0..1000_u64,
    ) {
        struct Tally(i64);
        impl PollObserver for Tally {
            fn polled(&mut self, _: Time, snapshot: &JobSnapshot, plan: JobPlan) {
                assert!(snapshot.counts.pending <= snapshot.counts.running);
                assert!(snapshot.counts.running + plan.create <= 20, "{snapshot:?} {plan:?}");
                self.0 += i64::from(plan.create);
            }
        }
        let mut plan = Plan { seed, ..plan(crate::Load::constant(rps), 15) };
        plan.workload.rps_per_pod = rate;
        plan.workload.queue_limit = limit;
        let mut policy = policy(JobStrategy::Default);
        policy.work = JobWork { items, run_seconds, idle_seconds, ..policy.work };
        let mut tally = Tally(0);
        let mut engine = Engine::new(&plan, &policy, rate, Some(&mut tally));
        let end = plan.start.after(plan.length);
        let (mut taken, mut before) = (0.0, 0_u64);
        while engine.now < end {
            if engine.next_poll <= engine.now {
                engine.poll();
            }
            let until = engine.now.after(Span::seconds(1)).min(engine.next_poll).min(end);
            engine.pass_time(until);
            before = engine.queue.waiting();
        }
        let created = engine.crew.created();
        let scores = engine.recorder.finish(0.0, created).scores;
        taken += scores.requests * (1.0 - scores.refused) - before as f64;
        prop_assert!(taken >= -1e-6, "{taken}");
        prop_assert_eq!(tally.0.unsigned_abs(), created);
        if let Some(items) = items {
            prop_assert!(taken <= (items * created) as f64 + 1e-6, "{taken} by {created} Jobs");
        }
        prop_assert!(scores.pod_hours >= 0.0 && scores.pod_hours <= 20.0 * 0.25 + 1e-9);
    }
}
