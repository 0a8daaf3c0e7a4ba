//! What goes beyond a native autoscaler, made of bytes.

use super::minutes::Minutes;
use super::{Bytes, fixture};
use podscale_core::history::{Asked, Burst, LastAnswer, Memory, Room};
use podscale_core::model::{
    Activation, Aggregate, Ahead, Binary, Bounds, Combine, Control, Extensions, Fact, Fallback,
    ForbiddenWindows, Formula, Headroom, Hold, Lead, MetricRules, Milli, Mode, NoMetrics,
    OnMissing, Pace, Part, Pause, PodRules, PodSelection, Predict, Queue, Readiness, ScaleToZero,
    Schedules, ShareOf, SizeFrom, Stabilization, Tolerance, Unary, Watermarks, Window, Wording,
    ZeroedByOthers,
};
use podscale_core::predict::Demand;
use podscale_core::{Span, Time};

impl Bytes<'_> {
    fn one_of<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[usize::from(self.byte()) % N]
    }

    /// Something in about half of all cases.
    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() & 1 == 1).then(|| make(self))
    }

    fn span(&mut self) -> Span {
        Span(self.number().saturating_mul(1_000_000))
    }

    fn float(&mut self) -> f64 {
        match self.byte() {
            255 => f64::NAN,
            254 => f64::INFINITY,
            kind => f64::from(kind) / 50.0 * f64::from(self.byte()) / 100.0,
        }
    }

    fn until(&mut self) -> Option<Time> {
        self.maybe(|bytes| fixture::NOW.after(Span::seconds(i64::from(bytes.byte()) - 128)))
    }

    fn metric_rules(&mut self) -> MetricRules {
        let replicas = self.count();
        MetricRules {
            name: None,
            max_age: self.maybe(Self::span),
            on_missing: self.one_of([
                OnMissing::Hold,
                OnMissing::Ignore,
                OnMissing::LastValue,
                OnMissing::Replicas(replicas),
                OnMissing::Abort,
            ]),
            share_of: self.one_of([ShareOf::Requests, ShareOf::Limits]),
            aggregate: match self.byte() {
                0..100 => Aggregate::Average,
                100..150 => Aggregate::Max,
                percent => Aggregate::Percentile(percent),
            },
            activation: self.maybe(|bytes| Milli(bytes.number())),
            watermarks: self.maybe(|bytes| Watermarks {
                low: Milli(bytes.number()),
                high: Milli(bytes.number()),
            }),
            stand_in: None,
        }
    }

    /// A formula of so many levels at most.
    fn part(&mut self, depth: u8) -> Part {
        let metric = u32::from(self.byte() % 5);
        match (self.byte() % 7, depth) {
            (0, _) => Part::CurrentReplicas,
            (1, _) => Part::Has { metric },
            (2, _) | (_, 0) => {
                let fact = self.one_of([Fact::Replicas, Fact::Value, Fact::Ratio]);
                Part::Metric { metric, fact }
            }
            (3, _) => Part::Number(self.float()),
            (4, _) => {
                let unary =
                    self.one_of([Unary::Negate, Unary::Not, Unary::Ceil, Unary::Round, Unary::Abs]);
                Part::Unary(unary, self.part(depth - 1).into())
            }
            (5, _) => {
                let all = [
                    Binary::Add,
                    Binary::Subtract,
                    Binary::Multiply,
                    Binary::Divide,
                    Binary::Remainder,
                    Binary::Max,
                    Binary::Less,
                    Binary::And,
                ];
                let binary = self.one_of(all);
                let (left, right) = (self.part(depth - 1), self.part(depth - 1));
                Part::Binary(binary, left.into(), right.into())
            }
            _ => {
                let [a, b, c] = [(); 3].map(|()| self.part(depth - 1));
                Part::If(a.into(), b.into(), c.into())
            }
        }
    }

    fn combine(&mut self) -> Combine {
        match self.byte() % 5 {
            0 | 1 => Combine::Max,
            2 => Combine::Min,
            3 => Combine::Average,
            _ => {
                let part = self.part(4);
                Formula::new("f", part).map_or(Combine::Average, Combine::Formula)
            }
        }
    }

    fn control(&mut self) -> Control {
        Control {
            mode: self.one_of([Mode::Active, Mode::Active, Mode::DryRun, Mode::Paused]),
            mode_until: self.until(),
            pause_up: self.maybe(|bytes| Pause { until: bytes.until() }),
            pause_down: self.maybe(|bytes| Pause { until: bytes.until() }),
            hold: self.maybe(|bytes| Hold { replicas: bytes.count(), until: bytes.until() }),
            hold_beyond_bounds: false,
        }
    }

    pub(super) fn extensions(&mut self) -> Extensions {
        let metrics = (0..self.byte() % 4).map(|_| self.metric_rules()).collect();
        let pace = Pace::FactorAndMinimum { factor: self.float(), minimum: self.count() };
        Extensions {
            invalid: (self.byte() > 250).then(|| "no".into()),
            metrics,
            combine: self.combine(),
            no_metrics: self.one_of([NoMetrics::Fail, NoMetrics::AskForZero]),
            pod_selection: self.one_of([PodSelection::Owned, PodSelection::Selector]),
            pods: PodRules {
                readiness: self.one_of([Readiness::Started, Readiness::Serving]),
                cpu_initialization_period: self.maybe(Self::span),
                initial_readiness_delay: self.maybe(Self::span),
                warm_up: self.span(),
            },
            size_from: self.one_of([SizeFrom::Spec, SizeFrom::Status]),
            tolerance: self.maybe(|bytes| Tolerance {
                up: bytes.maybe(Self::float),
                down: bytes.maybe(Self::float),
            }),
            stabilization: self.one_of([Stabilization::Recent, Stabilization::Off]),
            forbidden_windows: ForbiddenWindows {
                up: self.maybe(Self::span),
                down: self.maybe(Self::span),
            },
            pace: self.one_of([Pace::Policies, pace]),
            queue: self.maybe(|bytes| Queue {
                length: u32::from(bytes.byte() % 4),
                arrivals: u32::from(bytes.byte() % 4),
                per_pod: Milli(i64::from(bytes.count())),
                within: bytes.span(),
            }),
            window: self.maybe(|bytes| Window {
                stable: bytes.span(),
                panic: bytes.span(),
                panic_percent: u32::from(bytes.byte()),
            }),
            ahead: Ahead {
                start_up: self.maybe(Self::span),
                predict: self.maybe(|bytes| Predict {
                    confidence_percent: bytes.byte(),
                    scale_in_guard: bytes.span(),
                }),
                lead: self.maybe(|bytes| Lead { most_percent: u32::from(bytes.byte()) }),
                headroom: self.maybe(|bytes| Headroom {
                    confidence_percent: bytes.byte(),
                    most_percent: u32::from(bytes.byte()),
                    overload_permille: bytes.maybe(|bytes| u16::from(bytes.byte())),
                }),
            },
            schedules: self.maybe(|bytes| {
                let (min, max) = (bytes.count(), bytes.count());
                Schedules::new(Minutes(Bounds { min: min.min(max), max: max.max(min) }))
            }),
            control: self.control(),
            scale_to_zero: self.maybe(|bytes| ScaleToZero {
                idle_replicas: bytes.count(),
                cooldown: bytes.span(),
            }),
            activation: Activation::default(),
            zeroed_by_others: self.one_of([
                ZeroedByOthers::LeftAlone,
                ZeroedByOthers::Woken,
                ZeroedByOthers::SetToOne,
            ]),
            fallback: self.maybe(|bytes| Fallback { after: bytes.span(), replicas: bytes.count() }),
            wording: self.one_of([Wording::Kubernetes, Wording::ConfigurableHpa]),
            deletion_cost_by: self.maybe(|bytes| u32::from(bytes.byte() % 4)),
        }
    }

    pub(super) fn memory(&mut self) -> Memory {
        let answer = |bytes: &mut Self| LastAnswer {
            metric: u32::from(bytes.byte()),
            replicas: bytes.count(),
            at: bytes.time(),
        };
        Memory {
            last_active: self.maybe(Self::time),
            metrics_gone_since: self.maybe(Self::time),
            last_answers: (0..self.byte() % 4).map(|_| answer(self)).collect(),
            failures: Vec::new(),
            demand: self.maybe(|bytes| Demand {
                replicas: Milli(i64::from(bytes.count()).saturating_mul(1000)),
                at: bytes.time(),
                horizon: bytes.span(),
            }),
            asked: (0..self.byte() % 4)
                .map(|_| Asked { replicas: Milli(i64::from(self.count())), at: self.time() })
                .collect(),
            burst: self.maybe(|bytes| Burst { last: bytes.time(), replicas: bytes.count() }),
            room: self.maybe(|bytes| Room { part: i64::from(bytes.count()), at: bytes.time() }),
        }
    }
}
