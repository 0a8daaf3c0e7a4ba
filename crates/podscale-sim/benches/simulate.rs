//! Decisions a second for one autoscaler of ten pods, and a year of them: with every second and every
//! request, and with one step for each decision and no requests.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use podscale_core::model::{Source, TargetKind, TargetRef, Targets};
use podscale_core::{Autoscaler, Metric, Settings, Span, Time};
use podscale_sim::environment::{Arrivals, Environment};
use podscale_sim::load::Sine;
use podscale_sim::plan::{Detail, PodTemplate};
use podscale_sim::policy::Reconciler;
use podscale_sim::{Load, Plan, Shape, simulate};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

const DAY: i64 = 86_400;

fn autoscaler() -> Autoscaler {
    let targets = Targets {
        kind: TargetKind::Utilization,
        average_utilization: Some(70),
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
        max_replicas: 40,
        metrics: vec![Metric::new(Source::Resource { name: "cpu".into() }, &targets)],
        behavior: None,
        extensions: None,
    }
}

/// About ten pods.
fn plan(load: Load, seconds: i64, environment: Environment, without_requests: bool) -> Plan {
    let workload = r#"{"rpsPerPod":50,"cpuMsPerRequest":10,"jitter":0.05}"#;
    Plan {
        workload: serde_json::from_str(workload).unwrap_or_else(|error| panic!("{error}")),
        template: PodTemplate::default(),
        environment,
        metrics: BTreeMap::new(),
        load,
        start: Time(946_684_800_000_000),
        length: Span::seconds(seconds),
        warm_up: Span(0),
        replicas: 10,
        objective_seconds: 0.5,
        seed: 1,
        detail: Detail { without_requests, ..Detail::default() },
    }
}

/// One wave a day around ten pods.
fn days() -> Load {
    let sine = Sine {
        mean_rps: 350.0,
        amplitude_rps: 250.0,
        period_seconds: DAY as f64,
        phase_seconds: 0.0,
    };
    Shape::Sine(sine).resolve(|_| Err("no traces")).unwrap_or_else(|error| panic!("{error}"))
}

fn run(plan: &Plan) {
    let mut policy = Reconciler::new(autoscaler(), Settings::default());
    black_box(simulate(black_box(plan), &mut policy).is_ok());
}

fn bench(criterion: &mut Criterion) {
    let coarse = Environment {
        slot_seconds: 15.0,
        arrivals: Arrivals::Even,
        sync_moment_seconds: Some(10.0),
        ..Environment::default()
    };
    let mut group = criterion.benchmark_group("simulate");
    let decisions = 100_000;
    group.throughput(Throughput::Elements(decisions));
    group.bench_function("decisions of ten pods", |bencher| {
        let seconds = 15 * decisions as i64;
        let plan = plan(Load::constant(350.0), seconds, coarse.clone(), true);
        bencher.iter(|| run(&plan));
    });
    group.throughput(Throughput::Elements(365 * DAY as u64 / 15));
    group.sample_size(10).measurement_time(Duration::from_secs(20));
    group.bench_function("a year with every request", |bencher| {
        let plan = plan(days(), 365 * DAY, Environment::default(), false);
        bencher.iter(|| run(&plan));
    });
    group.bench_function("a year without requests", |bencher| {
        let plan = plan(days(), 365 * DAY, coarse.clone(), true);
        bencher.iter(|| run(&plan));
    });
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
