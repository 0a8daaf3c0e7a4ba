//! A small world in which passes over one autoscaler run, for tests and benchmarks.
#![allow(dead_code, missing_docs, unreachable_pub)]

use podscale_core::history::{Recommendation, ScaleEvent};
use podscale_core::model::{
    Behavior, Extensions, MetricRules, Milli, Policy, PolicyAmount, PolicySelect, PrometheusQuery,
    ScalingRules, Series, Source, TargetKind, TargetRef, Targets,
};
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{
    PodReadings, Reading, Requests, Sample, Scale, ScaleError, Selection, UnmatchedSamples,
};
use podscale_core::{
    Autoscaler, History, Metric, Outcome, Pass, ScaleWrite, Settings, Snapshot, Span, Status,
    StatusWrite, Time, Write,
};

pub const NOW: Time = Time(1_000_000_000_000_000);

#[derive(Clone, Debug)]
pub struct Fixture {
    pub now: Time,
    pub settings: Settings,
    pub autoscaler: Autoscaler,
    pub status: Status,
    pub history: History,
    pub scale: Result<Scale, ScaleError>,
    pub pods: Selection,
    pub readings: Vec<Reading>,
}

impl Fixture {
    /// So many replicas, all of them ready pods, limits 1 to 100, no metrics yet.
    pub fn of(replicas: i32) -> Fixture {
        Fixture {
            now: NOW,
            settings: Settings::default(),
            autoscaler: Autoscaler {
                namespace: "default".into(),
                name: "web".into(),
                generation: 1,
                target: TargetRef {
                    api_version: "apps/v1".into(),
                    kind: "Deployment".into(),
                    name: "web".into(),
                },
                min_replicas: 1,
                max_replicas: 100,
                metrics: Vec::new(),
                behavior: None,
                extensions: None,
            },
            status: Status::default(),
            history: History::default(),
            scale: Ok(Scale { spec_replicas: replicas, status_replicas: replicas }),
            pods: Selection::Pods(vec![ready_pod(); replicas.max(0) as usize]),
            readings: Vec::new(),
        }
    }

    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            now: self.now,
            settings: &self.settings,
            autoscaler: &self.autoscaler,
            status: &self.status,
            history: &self.history,
            scale: &self.scale,
            pods: &self.pods,
            readings: &self.readings,
        }
    }

    pub fn pods_mut(&mut self) -> &mut Vec<Pod> {
        match &mut self.pods {
            Selection::Pods(pods) => pods,
            _ => unreachable!("a fixture has pods"),
        }
    }

    /// Every pod requests 100m of cpu and uses so many percent of it.
    pub fn cpu(mut self, percent: i64, target: i32) -> Fixture {
        let targets = Targets { average_utilization: Some(target), ..Targets::default() };
        let metric = Metric::new(Source::Resource { name: "cpu".into() }, &targets);
        let pods = self.pods_mut().len();
        let sample = Sample { value: Milli(percent), taken: self.now, window: Span::seconds(15) };
        self.autoscaler.metrics.push(metric);
        self.readings.push(Reading::PerPod(PodReadings {
            samples: vec![Some(sample); pods],
            unmatched: UnmatchedSamples::default(),
            requests: Requests { of_pods: vec![Milli(100); pods], missing: None },
        }));
        self
    }

    /// A queue outside the cluster with so many messages, to be shared among pods.
    pub fn queue(mut self, length: i64, per_pod: i64) -> Fixture {
        let series =
            Series { name: "queue".into(), selector: None, query: None, selector_error: None };
        let targets = Targets {
            kind: TargetKind::AverageValue,
            average_value: Some(Milli(per_pod * 1000)),
            ..Targets::default()
        };
        self.autoscaler.metrics.push(Metric::new(Source::External(series), &targets));
        self.readings.push(Reading::Series { values: vec![Milli(length * 1000)], taken: None });
        self
    }

    /// A metric whose source does not answer.
    pub fn broken(mut self) -> Fixture {
        self = self.queue(0, 1);
        self.readings.pop();
        self.readings.push(Reading::Failed("connection refused".into()));
        self
    }

    /// The last metric has no sample for the first so many pods.
    pub fn without_samples(mut self, count: usize) -> Fixture {
        if let Some(Reading::PerPod(readings)) = self.readings.last_mut() {
            readings.samples.iter_mut().take(count).for_each(|s| *s = None);
        }
        self
    }

    /// The last so many pods have not become ready yet.
    pub fn unready(mut self, count: usize) -> Fixture {
        let now = self.now;
        for pod in self.pods_mut().iter_mut().rev().take(count) {
            pod.started = Some(now.before(Span::seconds(20)));
            pod.ready = Some(Ready { status: ReadyStatus::False, since: now });
        }
        self
    }

    pub fn limits(mut self, min: i32, max: i32) -> Fixture {
        (self.autoscaler.min_replicas, self.autoscaler.max_replicas) = (min, max);
        self
    }

    pub fn recommended(mut self, replicas: i32, seconds_ago: i64) -> Fixture {
        let at = self.now.before(Span::seconds(seconds_ago));
        self.history.recommendations.push(Recommendation { replicas, at });
        self
    }

    pub fn added(mut self, change: i32, seconds_ago: i64) -> Fixture {
        let at = self.now.before(Span::seconds(seconds_ago));
        self.history.ups.push(ScaleEvent { change, at, outdated: false });
        self
    }

    /// At most so many pods per so many seconds, in both directions, without a window.
    pub fn at_most(mut self, amount: PolicyAmount, seconds: i64) -> Fixture {
        let rules = ScalingRules {
            stabilization_window: Some(Span(0)),
            select: PolicySelect::Max,
            policies: vec![Policy { amount, period: Span::seconds(seconds) }],
            tolerance: None,
        };
        self.autoscaler.behavior = Some(Behavior { scale_up: rules.clone(), scale_down: rules });
        self
    }

    /// Has been there for long: the size that was found first is forgotten.
    pub fn settled(self) -> Fixture {
        self.recommended(0, 100_000)
    }

    /// Changes what is asked for beyond a native autoscaler.
    pub fn extend(mut self, change: impl FnOnce(&mut Extensions)) -> Fixture {
        change(self.autoscaler.extensions.get_or_insert_default());
        self
    }

    /// Changes the rules of the metric at this place.
    pub fn rule(self, place: usize, change: impl FnOnce(&mut MetricRules)) -> Fixture {
        self.extend(|extensions| {
            while extensions.metrics.len() <= place {
                extensions.metrics.push(MetricRules::default());
            }
            change(&mut extensions.metrics[place]);
        })
    }

    /// What Prometheus says, compared as a whole.
    pub fn prometheus(mut self, value: i64, target: i64, seconds_ago: i64) -> Fixture {
        let query = PrometheusQuery { name: "rps".into(), server: None, query: "sum(x)".into() };
        let targets = Targets { value: Some(Milli(target * 1000)), ..Targets::default() };
        self.autoscaler.metrics.push(Metric::new(Source::Prometheus(query), &targets));
        let taken = Some(self.now.before(Span::seconds(seconds_ago)));
        self.readings.push(Reading::Total { value: Milli(value * 1000), taken });
        self
    }

    /// What is measured now, each value of the last metric in percent of its pod's request.
    pub fn cpu_of_pods(self, percents: &[i64], target: i32) -> Fixture {
        let mut fixture = self.cpu(0, target);
        if let Some(Reading::PerPod(readings)) = fixture.readings.last_mut() {
            for (sample, percent) in readings.samples.iter_mut().flatten().zip(percents) {
                sample.value = Milli(*percent);
            }
        }
        fixture
    }

    /// Runs five minutes of passes with the load as it is, so that status and history are those of
    /// an autoscaler that has been there for a while. The size is put back after each.
    pub fn run_in(&mut self) {
        let scale = self.scale.clone();
        for _ in 0..20 {
            self.pass();
            self.scale = scale.clone();
            self.now = self.now.after(Span::seconds(15));
        }
    }

    /// One pass in which every write succeeds.
    pub fn pass(&mut self) -> Outcome {
        self.pass_with(ScaleWrite::Written, StatusWrite::Written)
    }

    /// One pass in which the writes end as given, if there are any. What it leads to is taken over.
    pub fn pass_with(&mut self, scale_write: ScaleWrite, status_write: StatusWrite) -> Outcome {
        self.pass_at(scale_write, status_write, self.now)
    }

    /// As [`Fixture::pass_with`]; the write of the scale ends at the given time.
    pub fn pass_at(
        &mut self,
        scale_write: ScaleWrite,
        status_write: StatusWrite,
        ended: Time,
    ) -> Outcome {
        let snapshot = self.snapshot();
        let (outcome, status) = run_at(&snapshot, scale_write, status_write, ended);
        if outcome.is_status_written() {
            self.status = status;
        }
        self.history.commit(&outcome.decision.learned);
        if let (Some(replicas), Ok(scale)) = (outcome.decision.replicas(), &mut self.scale) {
            scale.spec_replicas = replicas;
        }
        outcome
    }
}

/// Drives a pass to its end. Also returns the status that followed from it, written or not.
pub fn run(
    snapshot: &Snapshot<'_>,
    scale_write: ScaleWrite,
    status_write: StatusWrite,
) -> (Outcome, Status) {
    run_at(snapshot, scale_write, status_write, snapshot.now)
}

fn run_at(
    snapshot: &Snapshot<'_>,
    scale_write: ScaleWrite,
    status_write: StatusWrite,
    ended: Time,
) -> (Outcome, Status) {
    let mut pass = Pass::begin(snapshot);
    loop {
        match pass.next_write() {
            Write::Scale(_) => pass.scale_ended(scale_write.clone(), ended),
            Write::Status(_) => pass.status_ended(status_write.clone()),
            Write::Nothing => {
                let status = pass.status();
                return (pass.finish(), status);
            }
        }
    }
}

pub fn ready_pod() -> Pod {
    let started = NOW.before(Span::seconds(3600));
    Pod {
        started: Some(started),
        ready: Some(Ready { status: ReadyStatus::True, since: started }),
        phase: Phase::Running,
        deleting: false,
    }
}
