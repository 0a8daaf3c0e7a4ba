use super::*;
use crate::environment::{Delay, Environment, NodePool, Outage, Rollout};
use crate::load::{Load, Shape, Spike};
use crate::plan::{Detail, PodTemplate};
use crate::policy::{Fixed, Oracle, Peer, Reconciler};
use crate::score::Scores;
use crate::workload::WorkloadSpec;
use podscale_core::model::{Control, Extensions, Mode, Source, TargetKind, TargetRef, Targets};
use podscale_core::{Autoscaler, Metric, Settings};
use proptest::prelude::*;
use std::collections::BTreeMap;

const START: Time = Time(1_700_000_000_000_000);

fn spec(json: &str) -> WorkloadSpec {
    serde_json::from_str(json).unwrap()
}

/// A service of which one pod serves 50 requests a second at 10 ms of cpu each.
fn plan(load: Load, minutes: i64) -> Plan {
    Plan {
        workload: spec(r#"{"rpsPerPod":50,"cpuMsPerRequest":10,"jitter":0.05}"#),
        template: PodTemplate::default(),
        environment: Environment::default(),
        metrics: BTreeMap::new(),
        load,
        start: START,
        length: Span::seconds(minutes * 60),
        warm_up: Span(0),
        replicas: 2,
        objective_seconds: 0.5,
        seed: 1,
        detail: Detail { points: 100, changes: true, ..Detail::default() },
    }
}

fn on_cpu(percent: i32) -> Autoscaler {
    let targets = Targets {
        kind: TargetKind::Utilization,
        average_utilization: Some(percent),
        ..Targets::default()
    };
    Autoscaler {
        namespace: "default".into(),
        name: "web".into(),
        generation: 1,
        target: TargetRef {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            name: "web".into(),
        },
        min_replicas: 1,
        max_replicas: 20,
        metrics: vec![Metric::new(Source::Resource { name: "cpu".into() }, &targets)],
        behavior: None,
        extensions: None,
    }
}

fn spike() -> Load {
    let spike = Spike {
        base_rps: 40.0,
        peak_rps: 400.0,
        at_seconds: 600.0,
        rise_seconds: 60.0,
        hold_seconds: 600.0,
        fall_seconds: 60.0,
        every_seconds: None,
    };
    Shape::Spike(spike).resolve(|_| Err("no traces")).unwrap()
}

fn sizes(run: &Run) -> Vec<i32> {
    run.changes.iter().map(|change| change.to).collect()
}

#[test]
fn the_native_rule_follows_a_spike_and_the_same_seed_gives_the_same() {
    let plan = plan(spike(), 40);
    let run = |seed| {
        let plan = Plan { seed, ..plan.clone() };
        simulate(&plan, &mut Reconciler::new(on_cpu(70), Settings::default())).unwrap()
    };
    let first = run(1);
    assert_eq!(first, run(1));
    assert_ne!(first.scores, run(2).scores);
    let highest = sizes(&first).into_iter().max().unwrap();
    // 400 requests of 10 ms are 4 cores; 0.35 of a core each makes 11.4 pods, and what has piled up
    // while pods started makes more.
    assert!((12..=20).contains(&highest), "{:?}", sizes(&first));
    assert!(*sizes(&first).last().unwrap() <= 3, "{:?}", sizes(&first));
    assert!(first.changes.iter().all(|change| !change.why.is_empty()));
    let scores = first.scores;
    assert!(scores.violations > 0.01 && scores.violations < 0.5, "{scores:?}");
    assert!(scores.worst_minute > scores.violations, "{scores:?}");
    assert!(scores.p50_seconds <= scores.p95_seconds && scores.p95_seconds <= scores.p99_seconds);
    assert!(scores.pod_hours > 2.0 && scores.pod_hours < 9.0, "{scores:?}");
    assert_eq!(first.points.len(), 100);
}

#[test]
fn the_oracle_is_safe_and_cheaper_than_the_size_of_the_peak() {
    let plan = plan(spike(), 40);
    let oracle = simulate(&plan, &mut Oracle::new(1, 20, None)).unwrap().scores;
    let fixed = simulate(&plan, &mut Fixed::new(20)).unwrap().scores;
    assert!(oracle.violations < 0.02, "{oracle:?}");
    assert!(fixed.violations < 0.01, "{fixed:?}");
    assert!(oracle.pod_hours < fixed.pod_hours * 0.7, "{} {}", oracle.pod_hours, fixed.pod_hours);
    assert_eq!(oracle.below_capacity, 0.0);
}

#[test]
fn every_peer_bears_a_spike() {
    let plan = plan(spike(), 40);
    for text in ["hpa-cpu", "hpa-rps", "keda", "knative"] {
        let peer = Peer::parse(text).unwrap();
        let run = simulate(&plan, peer.policy(&on_cpu(70), &plan).as_mut()).unwrap();
        let highest = sizes(&run).into_iter().max().unwrap();
        assert!((11..=20).contains(&highest), "{text}: {:?}", sizes(&run));
        assert!(run.scores.violations < 0.3, "{text}: {:?}", run.scores);
        assert!(run.changes.iter().all(|change| !change.why.is_empty()), "{text}");
    }
}

#[test]
fn keda_wakes_a_consumer_and_puts_it_to_sleep() {
    let mut plan = plan(Load::none(), 60);
    plan.workload = spec(r#"{"kind":"consumer","rpsPerPod":5,"cpuMsPerRequest":80}"#);
    plan.objective_seconds = 60.0;
    let burst = Spike {
        base_rps: 0.0,
        peak_rps: 20.0,
        at_seconds: 900.0,
        rise_seconds: 0.0,
        hold_seconds: 300.0,
        fall_seconds: 0.0,
        every_seconds: None,
    };
    plan.load = Shape::Spike(burst).resolve(|_| Err("no traces")).unwrap();
    let mut autoscaler = on_cpu(70);
    autoscaler.min_replicas = 0;
    let keda = Peer::parse("keda").unwrap();
    let run = simulate(&plan, keda.policy(&autoscaler, &plan).as_mut()).unwrap();
    let sizes = sizes(&run);
    assert_eq!((sizes[sizes.len() - 1], sizes.contains(&1)), (0, true), "{sizes:?}");
    assert!(run.scores.queue_age_most_seconds > 10.0, "{:?}", run.scores);
    assert!(run.scores.violations < 0.9, "{:?}", run.scores);
}

#[test]
fn what_goes_wrong_with_metrics_reaches_the_rules() {
    let mut plan = plan(Load::constant(200.0), 30);
    plan.environment.resource_metrics.outages =
        vec![Outage { at_seconds: 0.0, for_seconds: 900.0 }];
    plan.detail.explain_at = Some(START.after(Span::seconds(300)));
    let run = simulate(&plan, &mut Reconciler::new(on_cpu(70), Settings::default())).unwrap();
    let lines = run.moment.unwrap().lines.join("\n");
    assert!(lines.contains("outage"), "{lines}");
    let first = run.changes[0].at.since(START);
    assert!(first >= Span::seconds(900), "nothing changes before metrics are back: {first:?}");

    let mut lossy = plan.clone();
    lossy.environment.resource_metrics.outages.clear();
    lossy.environment.resource_metrics.missing = 1.0;
    let run = simulate(&lossy, &mut Reconciler::new(on_cpu(70), Settings::default())).unwrap();
    assert!(run.changes.is_empty(), "without any sample nothing moves: {:?}", run.changes);
}

#[test]
fn pods_that_start_slowly_or_wait_for_nodes_cost_requests() {
    let run = |environment: Environment| {
        let plan = Plan { environment, ..plan(spike(), 40) };
        simulate(&plan, &mut Reconciler::new(on_cpu(70), Settings::default())).unwrap().scores
    };
    let quick =
        run(Environment { start_up: Delay::Fixed { seconds: 1.0 }, ..Environment::default() });
    let slow =
        run(Environment { start_up: Delay::Fixed { seconds: 120.0 }, ..Environment::default() });
    let nodes = NodePool {
        pods_per_node: 4,
        min_nodes: 1,
        max_nodes: 5,
        start_up: Delay::Fixed { seconds: 120.0 },
        empty_seconds: 600.0,
    };
    let placed = run(Environment {
        start_up: Delay::Fixed { seconds: 1.0 },
        nodes: Some(nodes),
        ..Environment::default()
    });
    assert!(slow.violations > quick.violations * 1.5, "{slow:?} {quick:?}");
    assert!(placed.violations > quick.violations * 1.5, "{placed:?} {quick:?}");
}

#[test]
fn a_rollout_replaces_pods_while_they_serve() {
    let mut plan = plan(Load::constant(200.0), 20);
    plan.replicas = 8;
    let calm = simulate(&plan, &mut Fixed::new(8)).unwrap().scores;
    let rollout = Rollout { at_seconds: 300.0, max_surge: 0.25, max_unavailable: 0.25 };
    plan.environment.rollouts = vec![rollout];
    let rolled = simulate(&plan, &mut Fixed::new(8)).unwrap().scores;
    assert_eq!((calm.pods_started, rolled.pods_started), (0, 8));
    assert_eq!(rolled.changes, 0, "the size stays");
    assert!(rolled.refused < 0.01, "{rolled:?}");
}

#[test]
fn what_is_only_tried_changes_nothing() {
    let plan = plan(spike(), 30);
    let control = Control { mode: Mode::DryRun, ..Control::default() };
    let extensions = Extensions { control, ..Extensions::default() };
    let dry = Autoscaler { extensions: Some(Box::new(extensions)), ..on_cpu(70) };
    let run = simulate(&plan, &mut Reconciler::new(dry, Settings::default())).unwrap();
    assert_eq!(run.changes, [], "a dry run writes nothing");
    let every = Some(Span::seconds(60));
    let rare = &mut Reconciler::new(on_cpu(70), Settings::default()).every(every);
    let rare = simulate(&plan, rare).unwrap().scores.decisions;
    assert_eq!(rare, 30, "once a minute");
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let refused = |change: fn(&mut Plan)| {
        let mut plan = plan(Load::none(), 1);
        change(&mut plan);
        simulate(&plan, &mut Fixed::new(1)).unwrap_err().to_string()
    };
    assert_eq!(
        refused(|plan| plan.workload.rps_per_pod = -1.0),
        "model.rpsPerPod: -1 is not between 0 and 1000000000"
    );
    assert_eq!(
        refused(|plan| plan.environment.slot_seconds = 0.0),
        "environment.slotSeconds: 0 is not between 0.01 and 3600"
    );
    assert_eq!(
        refused(|plan| plan.length = Span(0)),
        "a run of 0 s is not between 1 and 320000000 s"
    );
    assert_eq!(refused(|plan| plan.warm_up = plan.length), "the warm-up is as long as the run");
    assert_eq!(
        refused(|plan| plan.objective_seconds = f64::NAN),
        "the latency objective must be more than 0 s"
    );
}

fn any_delay() -> impl Strategy<Value = Delay> {
    prop_oneof![
        (0.0..100.0_f64).prop_map(|seconds| Delay::Fixed { seconds }),
        (0.1..30.0_f64, 1.0..5.0_f64).prop_map(|(median, times)| Delay::Lognormal {
            median_seconds: median,
            p95_seconds: median * times,
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever the load and the surroundings do, sizes stay within bounds, every request is accounted
    /// for, and scores are numbers.
    #[test]
    fn bounds_hold_and_nothing_is_lost(
        rates in prop::collection::vec(0.0..2000.0_f64, 1..6),
        (start_up, termination) in (any_delay(), any_delay()),
        (missing, late) in (0.0..1.0_f64, 0.0..1.0_f64),
        (min, more) in (0..4_i32, 0..12_i32),
        (seed, slot_seconds) in (any::<u64>(), 0.3..20.0_f64),
        policy in 0..5_usize,
    ) {
        let steps = rates.iter().enumerate().map(|(place, rps)| crate::load::Step {
            at_seconds: place as f64 * 97.0,
            rps: *rps,
        });
        let steps = crate::load::Steps { steps: steps.collect(), repeat_seconds: None };
        let load = Shape::Steps(steps).resolve(|_| Err("no traces")).unwrap();
        let mut plan = Plan { seed, ..plan(load, 10) };
        plan.environment.start_up = start_up;
        plan.environment.termination = termination;
        plan.environment.slot_seconds = slot_seconds;
        plan.environment.resource_metrics.missing = missing;
        plan.environment.resource_metrics.late = late;
        let autoscaler = Autoscaler {
            min_replicas: min,
            max_replicas: (min + more).max(1),
            ..on_cpu(50)
        };
        let run = match policy {
            0 => simulate(&plan, &mut Reconciler::new(autoscaler.clone(), Settings::default())),
            _ => {
                let peer = ["hpa-rps", "keda", "knative", "oracle"][policy - 1];
                let peer = Peer::parse(peer).unwrap();
                simulate(&plan, peer.policy(&autoscaler, &plan).as_mut())
            }
        };
        let run = run.unwrap();
        for change in &run.changes {
            // A service never goes to zero by itself, whatever its minimum is.
            let bounds = min..=autoscaler.max_replicas.max(1);
            prop_assert!(bounds.contains(&change.to), "{change:?}");
        }
        let Scores { violations, refused, worst_minute, below_capacity, pod_hours, .. } = run.scores;
        for part in [violations, refused, worst_minute, below_capacity] {
            prop_assert!((0.0..=1.0).contains(&part), "{:?}", run.scores);
        }
        prop_assert!(pod_hours.is_finite() && pod_hours >= 0.0);
        prop_assert!(violations >= refused - 1e-9);
    }
}
