//! A handful of autoscalers under a load that rises, spikes and falls, decided by the real rules.

use podscale_controller::dashboard::{Hub, Picture};
use podscale_controller::dialect::hpa::HPA;
use podscale_core::model::{
    Behavior, Milli, Policy, PolicyAmount, PolicySelect, ScalingRules, Series, Source, TargetKind,
    TargetRef, Targets,
};
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{
    PodReadings, Reading, Requests, Sample, Scale, ScaleError, Selection,
};
use podscale_core::{
    Autoscaler, History, Metric, Pass, ScaleWrite, Settings, Snapshot, Span, Status, Time,
};
use std::f64::consts::TAU;
use std::sync::Arc;

const PERIOD: Span = Span::seconds(15);
/// What each pod requests, in millicores.
const REQUEST: i64 = 500;

/// What a metric measures, and its goal.
#[derive(Clone, Copy)]
enum Gauge {
    /// Percent of the request; the load is in percent of one pod's request.
    Cpu(i32),
    /// Bytes for each pod; each has a base and a share of the load.
    Memory(i64),
    /// A value of each pod: its share of the load, times a factor.
    PerPod(&'static str, i64, f64),
    /// Messages in a queue: the load itself.
    Queue(&'static str, i64),
    /// A queue whose source does not answer.
    Broken(&'static str, i64),
}

struct Workload {
    autoscaler: Arc<Autoscaler>,
    gauges: &'static [Gauge],
    /// The load at a number of minutes.
    load: fn(f64) -> f64,
    status: Status,
    history: History,
    replicas: i32,
    existing: i32,
}

/// The whole sample.
pub struct World {
    hub: Hub,
    now: Time,
    began: Time,
    workloads: Vec<Workload>,
}

impl World {
    pub fn new(hub: Hub, began: Time) -> World {
        let mut workloads = vec![
            workload("shop/checkout", (2, 14, 5), &[Gauge::Cpu(60)], |t| {
                260.0 + 170.0 * (t / 26.0 * TAU).sin() + bump(t, 27.0, 2.4, 560.0)
            }),
            workload(
                "shop/search",
                (3, 20, 8),
                &[Gauge::Cpu(70), Gauge::PerPod("requests_per_second", 40, 0.42)],
                |t| 520.0 + 310.0 * (t / 31.0 * TAU).sin() + 24.0 * (t * 2.1).sin(),
            ),
            workload("media/thumbnails", (0, 24, 1), &[Gauge::Queue("queue_length", 30)], |t| {
                bump(t, 9.0, 3.0, 420.0) + bump(t, 31.0, 3.2, 610.0)
            }),
            workload("shop/catalog-cache", (2, 10, 3), &[Gauge::Memory(256 << 20)], |t| {
                (700.0 + 330.0 * (t / 38.0 * TAU).sin()) * f64::from(1 << 20)
            }),
            workload(
                "data/ingest",
                (2, 8, 3),
                &[Gauge::Cpu(50), Gauge::Broken("lag", 1000)],
                |t| 130.0 + 12.0 * (t / 5.0 * TAU).sin(),
            ),
            workload("web/landing", (3, 6, 3), &[Gauge::Cpu(65)], |t| {
                190.0 + 8.0 * (t * 1.7).sin()
            }),
        ];
        let pace = |pods, seconds, window| ScalingRules {
            stabilization_window: Some(Span::seconds(window)),
            select: PolicySelect::Max,
            policies: vec![Policy {
                amount: PolicyAmount::Pods(pods),
                period: Span::seconds(seconds),
            }],
            tolerance: None,
        };
        Arc::make_mut(&mut workloads[1].autoscaler).behavior =
            Some(Behavior { scale_up: pace(2, 60, 0), scale_down: pace(1, 60, 120) });
        Arc::make_mut(&mut workloads[2].autoscaler).behavior =
            Some(Behavior { scale_up: pace(6, 15, 0), scale_down: pace(4, 60, 60) });
        World { hub, now: began, began, workloads }
    }

    /// Lets so many minutes pass.
    pub fn pass_minutes(&mut self, minutes: i64) {
        for _ in 0..minutes * 4 {
            self.step();
        }
    }

    /// Every autoscaler decides once.
    pub fn step(&mut self) {
        let minutes = self.now.since(self.began).0 as f64 / 60e6;
        for workload in &mut self.workloads {
            workload.pass(self.now, minutes, &self.hub);
        }
        self.now = self.now.after(PERIOD);
    }
}

impl Workload {
    fn pass(&mut self, now: Time, minutes: f64, hub: &Hub) {
        let load = (self.load)(minutes).max(0.0);
        // Pods come up one pass after they were asked for.
        let scale: Result<Scale, ScaleError> =
            Ok(Scale { spec_replicas: self.replicas, status_replicas: self.existing });
        let pods = usize::try_from(self.existing).unwrap_or(0);
        let readings: Vec<Reading> =
            self.gauges.iter().map(|gauge| gauge.read(load, pods, now)).collect();
        let since = now.before(Span::seconds(3600));
        let pod = Pod {
            started: Some(since),
            ready: Some(Ready { status: ReadyStatus::True, since }),
            phase: Phase::Running,
            deleting: false,
        };
        let snapshot = Snapshot {
            now,
            settings: &Settings::default(),
            autoscaler: &self.autoscaler,
            status: &self.status,
            history: &self.history,
            scale: &scale,
            pods: &Selection::Pods(vec![pod; pods]),
            readings: &readings,
        };
        let mut pass = Pass::begin(&snapshot);
        pass.scale_ended(ScaleWrite::Written, now);
        let decision = pass.finish().decision;
        let picture = Picture::new(&HPA, &self.autoscaler, &snapshot, &decision);
        let status = decision.status(&snapshot);
        self.history.commit(&decision.learned);
        self.status = status;
        self.existing = self.replicas;
        self.replicas = decision.replicas().unwrap_or(self.replicas);
        hub.publish(picture);
    }
}

impl Gauge {
    fn metric(self) -> Metric {
        let series = |name: &str| Series {
            name: name.into(),
            selector: None,
            query: None,
            selector_error: None,
        };
        let average = |amount| Targets {
            kind: TargetKind::AverageValue,
            average_value: Some(Milli(amount * 1000)),
            ..Targets::default()
        };
        match self {
            Gauge::Cpu(aim) => Metric::new(
                Source::Resource { name: "cpu".into() },
                &Targets { average_utilization: Some(aim), ..Targets::default() },
            ),
            Gauge::Memory(aim) => {
                Metric::new(Source::Resource { name: "memory".into() }, &average(aim))
            }
            Gauge::PerPod(name, aim, _) => Metric::new(Source::Pods(series(name)), &average(aim)),
            Gauge::Queue(name, aim) | Gauge::Broken(name, aim) => {
                Metric::new(Source::External(series(name)), &average(aim))
            }
        }
    }

    fn read(self, load: f64, pods: usize, now: Time) -> Reading {
        let each = load / (pods.max(1) as f64);
        let milli = match self {
            Gauge::Cpu(_) => (each / 100.0 * REQUEST as f64) as i64,
            Gauge::Memory(_) => (each * 1000.0) as i64,
            Gauge::PerPod(_, _, factor) => (each * factor * 1000.0) as i64,
            Gauge::Queue(..) => {
                let values = vec![Milli((load * 1000.0) as i64)];
                return Reading::Series { values, taken: None };
            }
            Gauge::Broken(..) => return Reading::Failed("connection refused".into()),
        };
        let sample = Sample { value: Milli(milli), taken: now, window: PERIOD };
        Reading::PerPod(PodReadings {
            samples: vec![Some(sample); pods],
            requests: Requests { of_pods: vec![Milli(REQUEST); pods], missing: None },
            ..PodReadings::default()
        })
    }
}

/// A load that comes and goes once, around a time.
fn bump(at: f64, middle: f64, width: f64, height: f64) -> f64 {
    height * (-((at - middle) / width).powi(2)).exp()
}

fn workload(
    key: &str,
    (min, max, replicas): (i32, i32, i32),
    gauges: &'static [Gauge],
    load: fn(f64) -> f64,
) -> Workload {
    let (namespace, name) = key.split_once('/').unwrap_or(("default", key));
    Workload {
        autoscaler: Arc::new(Autoscaler {
            namespace: namespace.into(),
            name: name.into(),
            generation: 1,
            target: TargetRef {
                api_version: "apps/v1".into(),
                kind: "Deployment".into(),
                name: name.into(),
            },
            min_replicas: min,
            max_replicas: max,
            metrics: gauges.iter().map(|gauge| gauge.metric()).collect(),
            behavior: None,
            extensions: None,
        }),
        gauges,
        load,
        status: Status::default(),
        history: History::default(),
        replicas,
        existing: replicas,
    }
}
