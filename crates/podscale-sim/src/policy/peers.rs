//! The peers by name, with their parameters: `knative:target=7,panic=2`.

use super::keda::ScaledObject;
use super::knative::KpaConfig;
use super::{Fixed, Keda, Knative, Oracle, Policy, Reconciler};
use crate::environment::seconds;
use crate::plan::Plan;
use crate::workload::Kind;
use podscale_core::model::{Milli, Series, Source, TargetKind, Targets};
use podscale_core::{Autoscaler, Metric, Settings};
use thiserror::Error;

/// How busy pods are to be if nothing is said, as a part of what they can serve.
const UTILIZATION: f64 = 0.7;

/// Which peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// Kubernetes' HPA on cpu utilization.
    HpaCpu,
    /// Kubernetes' HPA on requests per second.
    HpaRps,
    /// KEDA on requests per second or on the queue.
    Keda,
    /// Knative's KPA on concurrency.
    Knative,
    /// A fixed size.
    Fixed,
    /// Who knows the load to come.
    Oracle,
}

/// A peer with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Peer {
    kind: PeerKind,
    text: String,
    values: Vec<(&'static str, f64)>,
}

/// Why a peer cannot be had.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PeerError {
    /// There is none of this name.
    #[error("there is no policy {0:?}: hpa-cpu, hpa-rps, keda, knative, fixed, oracle")]
    Unknown(String),
    /// It has no such parameter.
    #[error("{policy} has no parameter {parameter:?}: {known}")]
    Parameter {
        /// Which policy.
        policy: &'static str,
        /// Which parameter.
        parameter: String,
        /// Those that it has.
        known: String,
    },
    /// The value of a parameter is no number that makes sense.
    #[error("{policy}: {text:?} is not a parameter with a number of at least 0, as in target=60")]
    Value {
        /// Which policy.
        policy: &'static str,
        /// What was given.
        text: String,
    },
}

impl PeerKind {
    /// All peers.
    pub const ALL: [PeerKind; 6] = [
        PeerKind::HpaCpu,
        PeerKind::HpaRps,
        PeerKind::Keda,
        PeerKind::Knative,
        PeerKind::Fixed,
        PeerKind::Oracle,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PeerKind::HpaCpu => "hpa-cpu",
            PeerKind::HpaRps => "hpa-rps",
            PeerKind::Keda => "keda",
            PeerKind::Knative => "knative",
            PeerKind::Fixed => "fixed",
            PeerKind::Oracle => "oracle",
        }
    }

    /// The names of its parameters.
    #[must_use]
    pub fn parameters(self) -> &'static [&'static str] {
        match self {
            PeerKind::HpaCpu | PeerKind::HpaRps => &["target", "window", "tolerance", "min", "max"],
            PeerKind::Keda => &[
                "target",
                "polling",
                "cooldown",
                "activation",
                "window",
                "tolerance",
                "min",
                "max",
            ],
            PeerKind::Knative => {
                &["target", "stable", "panic", "threshold", "up", "down", "min", "max"]
            }
            PeerKind::Fixed => &["replicas"],
            PeerKind::Oracle => &["utilization", "min", "max"],
        }
    }
}

impl Peer {
    /// Without parameters.
    #[must_use]
    pub fn new(kind: PeerKind) -> Peer {
        Peer { kind, text: kind.name().to_owned(), values: Vec::new() }
    }

    /// Reads a name and parameters such as `hpa-cpu:target=60`.
    ///
    /// # Errors
    /// There is no such peer or parameter, or a value makes no sense.
    pub fn parse(text: &str) -> Result<Peer, PeerError> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let kind = PeerKind::ALL.into_iter().find(|kind| kind.name() == name);
        let kind = kind.ok_or_else(|| PeerError::Unknown(name.to_owned()))?;
        let mut values = Vec::new();
        for given in parameters.split(',').filter(|given| !given.is_empty()) {
            let wrong = || PeerError::Value { policy: kind.name(), text: given.to_owned() };
            let (parameter, value) = given.split_once('=').ok_or_else(wrong)?;
            let value: f64 = value.parse().map_err(|_| wrong())?;
            if !(0.0..=1e9).contains(&value) {
                return Err(wrong());
            }
            let known = kind.parameters().iter().find(|known| **known == parameter);
            let parameter = known.ok_or_else(|| PeerError::Parameter {
                policy: kind.name(),
                parameter: parameter.to_owned(),
                known: kind.parameters().join(", "),
            })?;
            values.push((*parameter, value));
        }
        Ok(Peer { kind, text: text.to_owned(), values })
    }

    /// Which peer it is.
    #[must_use]
    pub fn kind(&self) -> PeerKind {
        self.kind
    }

    /// How it was named.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    fn value(&self, parameter: &str) -> Option<f64> {
        self.values.iter().find(|(name, _)| *name == parameter).map(|(_, value)| *value)
    }

    /// The policy, for the same target and bounds as this autoscaler has.
    #[must_use]
    pub fn policy(&self, autoscaler: &Autoscaler, plan: &Plan) -> Box<dyn Policy> {
        // The casts saturate.
        let min = self.value("min").map_or(autoscaler.min_replicas, |min| min as i32);
        let max = self.value("max").map_or(autoscaler.max_replicas, |max| max as i32);
        let rps_per_pod = plan.rps_per_pod();
        let in_flight = (rps_per_pod * plan.workload.latency_seconds).max(1.0);
        let at_least_one = min.max(1);
        let target = self.value("target");
        let rps = target.unwrap_or(rps_per_pod * UTILIZATION);
        match self.kind {
            PeerKind::HpaCpu => {
                let percent = target.unwrap_or(UTILIZATION * 100.0) as i32;
                Box::new(self.native(autoscaler, at_least_one, max, cpu(percent)))
            }
            PeerKind::HpaRps => {
                let metric = match plan.workload.kind {
                    Kind::Service => per_pod("requests_per_second", rps, Source::Pods),
                    Kind::Consumer => per_pod("requests_per_second", rps, Source::External),
                };
                Box::new(self.native(autoscaler, at_least_one, max, metric))
            }
            PeerKind::Keda => Box::new(self.keda(autoscaler, plan, (min, max), rps)),
            PeerKind::Knative => {
                let target = target.unwrap_or(in_flight * UTILIZATION);
                let mut config = KpaConfig::with_target(target, at_least_one, max);
                config.stable_seconds = self.value("stable").unwrap_or(config.stable_seconds);
                config.panic_window = self.value("panic").unwrap_or(config.panic_window);
                config.panic_threshold = self.value("threshold").unwrap_or(config.panic_threshold);
                config.max_up = self.value("up").unwrap_or(config.max_up);
                config.max_down = self.value("down").unwrap_or(config.max_down);
                Box::new(Knative::new(config))
            }
            PeerKind::Fixed => {
                Box::new(Fixed::new(self.value("replicas").map_or(max, |n| n as i32)))
            }
            PeerKind::Oracle => Box::new(Oracle::new(min, max, self.value("utilization"))),
        }
    }

    fn keda(&self, autoscaler: &Autoscaler, plan: &Plan, (min, max): (i32, i32), rps: f64) -> Keda {
        let (min, trigger) = match plan.workload.kind {
            Kind::Service => (min.max(1), per_pod("requests_per_second", rps, Source::External)),
            Kind::Consumer => {
                // What one pod gets through within the objective.
                let items = rps * plan.objective_seconds;
                let items = self.value("target").unwrap_or(items).max(1.0);
                (min, per_pod("queue_length", items, Source::External))
            }
        };
        let object = ScaledObject {
            min,
            max,
            polling_seconds: self.value("polling").unwrap_or(30.0).max(1.0),
            cooldown_seconds: self.value("cooldown").unwrap_or(300.0),
            activation: self.value("activation").unwrap_or(0.0),
        };
        let hpa = Autoscaler { behavior: None, extensions: None, ..autoscaler.clone() };
        Keda::new(object, hpa, trigger, self.settings())
    }

    /// Kubernetes' HPA with one metric and the default behavior.
    fn native(
        &self,
        autoscaler: &Autoscaler,
        min: i32,
        max: i32,
        metric: Metric,
    ) -> Reconciler<'static> {
        let hpa = Autoscaler {
            min_replicas: min,
            max_replicas: max.max(min),
            metrics: vec![metric],
            behavior: None,
            extensions: None,
            ..autoscaler.clone()
        };
        Reconciler::new(hpa, self.settings())
    }

    /// The settings of kube-controller-manager.
    fn settings(&self) -> Settings {
        let default = Settings::default();
        Settings {
            tolerance: self.value("tolerance").unwrap_or(default.tolerance),
            downscale_stabilization: self
                .value("window")
                .map_or(default.downscale_stabilization, seconds),
            ..default
        }
    }
}

fn cpu(percent: i32) -> Metric {
    let targets = Targets {
        kind: TargetKind::Utilization,
        average_utilization: Some(percent.max(1)),
        ..Targets::default()
    };
    Metric::new(Source::Resource { name: "cpu".into() }, &targets)
}

fn per_pod(name: &str, amount: f64, source: fn(Series) -> Source) -> Metric {
    let series = Series { name: name.into(), selector: None, query: None, selector_error: None };
    let targets = Targets {
        kind: TargetKind::AverageValue,
        // The cast saturates.
        average_value: Some(Milli(((amount * 1000.0).round() as i64).max(1))),
        ..Targets::default()
    };
    Metric::new(source(series), &targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_read_with_their_parameters() {
        let peer = Peer::parse("knative:target=7,panic=0.2").unwrap();
        assert_eq!((peer.kind(), peer.value("target")), (PeerKind::Knative, Some(7.0)));
        assert_eq!(peer.value("stable"), None);
        for (text, expected) in [
            (
                "nomad",
                "there is no policy \"nomad\": hpa-cpu, hpa-rps, keda, knative, fixed, oracle",
            ),
            ("fixed:size=3", "fixed has no parameter \"size\": replicas"),
            (
                "hpa-cpu:target",
                "hpa-cpu: \"target\" is not a parameter with a number of at least 0, as in target=60",
            ),
            (
                "hpa-cpu:target=-1",
                "hpa-cpu: \"target=-1\" is not a parameter with a number of at least 0, as in target=60",
            ),
        ] {
            assert_eq!(Peer::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
