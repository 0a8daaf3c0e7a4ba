//! Fuzz target for `decide`: any bytes are taken as a fixture, and no fixture may cause a panic, lead
//! out of the bounds, or be decided differently the second time.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]

#[path = "support/fixture.rs"]
mod fixture;
#[path = "support/fuzzed.rs"]
mod fuzzed;
#[path = "support/minutes.rs"]
mod minutes;

use fixture::Fixture;
use podscale_core::decision::RescaleReason;
use podscale_core::deletion_cost::{Cost, MAX_COST_CHANGES, cost_changes};
use podscale_core::history::{Recommendation, ScaleEvent};
use podscale_core::model::{
    Behavior, Bounds, Milli, Mode, ObjectRef, Policy, PolicyAmount, PolicySelect, ScalingRules,
    Series, Source, TargetKind, Targets,
};
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus};
use podscale_core::snapshot::{
    PodReadings, Reading, Requests, Sample, Scale, ScaleError, Selection, UnmatchedSamples,
};
use podscale_core::{
    History, Metric, Rescale, ScaleWrite, Span, StatusWrite, Time, Withheld, decide, explain,
};

#[test]
fn fuzz_decide() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut fixture = Bytes(bytes).fixture();
        for _ in 0..3 {
            let decision = decide(&fixture.snapshot());
            let again = decide(&fixture.snapshot());
            assert_eq!(format!("{decision:?}"), format!("{again:?}"));
            if let Some(rescale) = &decision.rescale {
                check(&fixture, rescale);
            }
            let costs = [Cost::Unset, Cost::Ours(-1), Cost::Others(3), Cost::Ours(2)];
            if let Ok(changes) = cost_changes(&fixture.snapshot(), 0, 1, &costs.repeat(2)) {
                assert!(changes.len() <= MAX_COST_CHANGES);
            }
            let scale_write = match bytes.first() {
                Some(0..64) => ScaleWrite::Failed("no".into()),
                Some(64..96) => ScaleWrite::Withheld(Withheld::DryRun),
                _ => ScaleWrite::Written,
            };
            let status_write = match bytes.last() {
                Some(0..32) => StatusWrite::Failed("no".into()),
                Some(32..64) => StatusWrite::Withheld(Withheld::Deferred),
                _ => StatusWrite::Written,
            };
            let outcome = fixture.pass_with(scale_write, status_write);
            let _ = explain::lines(&outcome.decision.steps, &fixture.autoscaler, fixture.now);
            fixture.now = fixture.now.after(Span::seconds(15));
            let history = History::from_bytes(&fixture.history.to_bytes());
            assert_eq!(history.as_ref(), Ok(&fixture.history));
        }
    });
}

/// A new size is within the bounds in force, unless it is that of an idle target, and no order of a person
/// stands against it.
fn check(fixture: &Fixture, rescale: &Rescale) {
    let extensions = fixture.autoscaler.extensions.as_deref();
    let (base, now) = (fixture.autoscaler.bounds(), fixture.now);
    let scheduled = extensions.and_then(|e| e.schedules.as_ref()?.at(now, base));
    let Bounds { min, max } = scheduled.map_or(base, |scheduled| scheduled.bounds);
    let idle = match rescale.reason {
        RescaleReason::Idle => rescale.to <= max.max(min),
        RescaleReason::Zero => rescale.to == 1,
        _ => false,
    };
    assert!(idle || (min.min(max)..=max.max(min)).contains(&rescale.to), "{rescale:?}");
    if let Some(control) = extensions.map(|extensions| &extensions.control) {
        assert_ne!(control.mode_at(now), Mode::Paused);
        let up = rescale.to > rescale.from;
        let paused = if up { control.pause_up_at(now) } else { control.pause_down_at(now) };
        assert_eq!(paused, None, "{rescale:?}");
    }
}

/// Takes values off the front of some bytes; past their end everything is zero.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// One byte says how wild the number is.
    fn number(&mut self) -> i64 {
        match self.byte() {
            wild @ 240.. => i64::MAX >> (wild - 240),
            wild @ 230..240 => i64::MIN >> (wild - 230),
            kind => i64::from(self.byte()) * i64::from(kind % 16 + 1) - i64::from(kind / 200) * 50,
        }
    }

    fn count(&mut self) -> i32 {
        self.number() as i32
    }

    fn time(&mut self) -> Time {
        fixture::NOW.before(Span(self.number().saturating_mul(1_000_000)))
    }

    fn pod(&mut self) -> Pod {
        let byte = self.byte();
        let phases =
            [Phase::Running, Phase::Running, Phase::Pending, Phase::Failed, Phase::Unknown];
        let statuses =
            [ReadyStatus::True, ReadyStatus::True, ReadyStatus::False, ReadyStatus::Unknown];
        let status = statuses[usize::from(byte >> 4) % statuses.len()];
        Pod {
            started: (byte & 1 == 0).then(|| self.time()),
            ready: (byte & 2 == 0).then(|| Ready { status, since: self.time() }),
            phase: phases[usize::from(byte) % phases.len()],
            deleting: byte > 240,
        }
    }

    fn metric(&mut self, pods: usize) -> (Metric, Reading) {
        let series = Series { name: "m".into(), selector: None, query: None, selector_error: None };
        let kind = self.byte();
        let source = match kind % 6 {
            0 | 1 => Source::Resource { name: "cpu".into() },
            2 => Source::ContainerResource { name: "memory".into(), container: "c".into() },
            3 => Source::Pods(series),
            4 => Source::External(series),
            _ => Source::Object {
                series,
                object: ObjectRef { api_version: "v1".into(), kind: "K".into(), name: "n".into() },
            },
        };
        let targets = Targets {
            kind: [TargetKind::Value, TargetKind::AverageValue][usize::from(kind >> 7)],
            value: (kind & 64 == 0).then(|| Milli(self.number())),
            average_value: (kind & 32 == 0).then(|| Milli(self.number())),
            average_utilization: (kind & 16 == 0).then(|| self.count()),
        };
        let reading = match (&source, self.byte()) {
            (_, 250..) => Reading::Failed("no answer".into()),
            (_, 240..250) => Reading::Empty,
            (Source::External(_), n) => {
                let values = (0..n % 4).map(|_| Milli(self.number())).collect();
                Reading::Series { values, taken: None }
            }
            (Source::Object { .. }, _) => {
                Reading::Total { value: Milli(self.number()), taken: None }
            }
            (_, unmatched) => Reading::PerPod(PodReadings {
                samples: (0..pods).map(|_| self.sample()).collect(),
                unmatched: UnmatchedSamples {
                    count: usize::from(unmatched / 100),
                    total: Milli(self.number()),
                },
                requests: Requests {
                    of_pods: (0..pods).map(|_| Milli(self.number())).collect(),
                    missing: None,
                },
            }),
        };
        (Metric::new(source, &targets), reading)
    }

    fn sample(&mut self) -> Option<Sample> {
        (self.byte() < 220).then(|| Sample {
            value: Milli(self.number()),
            taken: self.time(),
            window: Span(self.number()),
        })
    }

    fn rules(&mut self) -> ScalingRules {
        let byte = self.byte();
        let selects = [PolicySelect::Max, PolicySelect::Min, PolicySelect::Disabled];
        ScalingRules {
            stabilization_window: (byte & 1 == 0).then(|| Span(self.number())),
            select: selects[usize::from(byte >> 2) % selects.len()],
            policies: (0..byte >> 6).map(|_| self.policy()).collect(),
            tolerance: (byte & 2 == 0).then(|| f64::from(self.count()) / 100.0),
        }
    }

    fn policy(&mut self) -> Policy {
        let amount = match self.byte() % 3 {
            0 => PolicyAmount::Pods(self.count()),
            1 => PolicyAmount::Percent(self.count()),
            _ => PolicyAmount::Unknown,
        };
        Policy { amount, period: Span(self.number()) }
    }

    fn event(&mut self) -> ScaleEvent {
        ScaleEvent { change: self.count(), at: self.time(), outdated: self.byte() > 200 }
    }

    fn fixture(mut self) -> Fixture {
        let (min, max) = (self.count(), self.count());
        let mut fixture = Fixture::of(0).limits(min, max);
        fixture.scale = match self.byte() {
            250.. => Err(ScaleError::Unreadable("gone".into())),
            _ => Ok(Scale { spec_replicas: self.count(), status_replicas: self.count() }),
        };
        let pods = usize::from(self.byte() % 8);
        fixture.pods = Selection::Pods((0..pods).map(|_| self.pod()).collect());
        for _ in 0..self.byte() % 4 {
            let (metric, reading) = self.metric(pods);
            fixture.autoscaler.metrics.push(metric);
            fixture.readings.push(reading);
        }
        if self.byte() & 1 == 0 {
            let (scale_up, scale_down) = (self.rules(), self.rules());
            fixture.autoscaler.behavior = Some(Behavior { scale_up, scale_down });
        }
        fixture.history = History {
            recommendations: (0..self.byte() % 8)
                .map(|_| Recommendation { replicas: self.count(), at: self.time() })
                .collect(),
            ups: (0..self.byte() % 4).map(|_| self.event()).collect(),
            downs: (0..self.byte() % 4).map(|_| self.event()).collect(),
            memory: None,
            forecaster: None,
        };
        // Most of what is decided is decided on native autoscalers.
        if self.byte() & 1 == 1 {
            fixture.autoscaler.extensions = Some(Box::new(self.extensions()));
            fixture.history.memory = Some(Box::new(self.memory()));
        }
        fixture
    }
}
