//! What the pods of a simulated workload are like, and what the names of metrics mean there.

use crate::workload::Kind;
use podscale_core::model::{Milli, ShareOf, Source, Trigger, TriggerOf};
use podscale_core::snapshot::{MissingRequest, Requests};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One container of a pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container {
    /// Its name.
    pub name: Arc<str>,
    /// What it requests of cpu, in thousandths of a core.
    pub cpu_request_millis: Option<f64>,
    /// What it requests of memory.
    pub memory_request_bytes: Option<f64>,
    /// Its CPU limit in thousandths of a core.
    pub cpu_limit_millis: Option<f64>,
    /// Its memory limit.
    pub memory_limit_bytes: Option<f64>,
}

/// The pods of a workload: one container does the work, the others idle.
#[derive(Clone, Debug, PartialEq)]
pub struct PodTemplate {
    /// The containers; never empty.
    pub containers: Vec<Container>,
    /// The place of the one that does the work.
    pub busy: usize,
}

impl Default for PodTemplate {
    /// One container that requests half a core and 256 MiB.
    fn default() -> PodTemplate {
        let container = Container {
            name: "app".into(),
            cpu_request_millis: Some(500.0),
            memory_request_bytes: Some(256.0 * 1024.0 * 1024.0),
            ..Container::default()
        };
        PodTemplate { containers: vec![container], busy: 0 }
    }
}

/// CPU and memory of a container that does nothing, as in the embedded cluster.
const IDLE_CORES: f64 = 0.001;
const IDLE_BYTES: f64 = 16.0 * 1024.0 * 1024.0;

/// A resource that pods use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Cpu,
    Memory,
}

impl Resource {
    pub(crate) fn named(name: &str) -> Option<Resource> {
        match name {
            "cpu" => Some(Resource::Cpu),
            "memory" => Some(Resource::Memory),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
        }
    }
}

/// What a metric shows of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    /// What the busy container uses, and the others together.
    All { idle: f64 },
    /// What the busy container uses.
    Busy,
    /// What a container uses that does nothing.
    Idle(f64),
}

impl Shown {
    /// Of a pod whose busy container uses so much.
    pub(crate) fn of(self, busy: f64) -> f64 {
        match self {
            Shown::All { idle } => busy + idle,
            Shown::Busy => busy,
            Shown::Idle(idle) => idle,
        }
    }
}

impl PodTemplate {
    /// The container that does the work.
    #[must_use]
    pub fn busy_container(&self) -> Option<&Container> {
        self.containers.get(self.busy).or(self.containers.first())
    }

    /// What one pod requests of a resource, or is limited to, in all or in one container.
    pub(crate) fn request(
        &self,
        (resource, container): (Resource, Option<&str>),
        share_of: ShareOf,
        pod: u64,
    ) -> Result<Milli, MissingRequest> {
        let wanted =
            self.containers.iter().filter(|c| container.is_none_or(|name| *c.name == *name));
        let milli = |bytes: f64| bytes * 1000.0;
        let mut sum = 0_i64;
        let mut any = false;
        for found in wanted {
            any = true;
            let amount = match (resource, share_of) {
                (Resource::Cpu, ShareOf::Requests) => found.cpu_request_millis,
                (Resource::Cpu, ShareOf::Limits) => found.cpu_limit_millis,
                (Resource::Memory, ShareOf::Requests) => found.memory_request_bytes.map(milli),
                (Resource::Memory, ShareOf::Limits) => found.memory_limit_bytes.map(milli),
            };
            let amount = amount.ok_or_else(|| {
                let (resource, container) = (resource.name().into(), Arc::clone(&found.name));
                let pod = pod_name(pod).into();
                match share_of {
                    ShareOf::Requests => MissingRequest::Container { resource, container, pod },
                    ShareOf::Limits => MissingRequest::Limit { resource, container, pod },
                }
            })?;
            // The cast saturates.
            sum = sum.saturating_add((amount + 0.5) as i64);
        }
        match (any, container) {
            (false, Some(name)) => Err(MissingRequest::NoContainer {
                container: name.into(),
                pod: pod_name(pod).into(),
            }),
            _ => Ok(Milli(sum)),
        }
    }

    /// What a metric shows of pods: of all containers, or of one; nothing if there is no such container.
    pub(crate) fn shown(&self, resource: Resource, container: Option<&str>) -> Option<Shown> {
        let idle = match resource {
            Resource::Cpu => IDLE_CORES,
            Resource::Memory => IDLE_BYTES,
        };
        match container {
            None => {
                Some(Shown::All { idle: idle * self.containers.len().saturating_sub(1) as f64 })
            }
            Some(name) => {
                let place = self.containers.iter().position(|c| *c.name == *name)?;
                Some(if place == self.busy { Shown::Busy } else { Shown::Idle(idle) })
            }
        }
    }

    /// What so many pods, of which this is the first, request of a resource or are limited to, into the
    /// given place.
    pub(crate) fn fill_requests(
        &self,
        (resource, container): (&str, Option<&str>),
        share_of: ShareOf,
        (pods, first): (usize, Option<u64>),
        requests: &mut Requests,
    ) {
        let (Some(resource), Some(first)) = (Resource::named(resource), first) else {
            *requests = Requests::default();
            return;
        };
        let (amount, missing) = match self.request((resource, container), share_of, first) {
            Ok(amount) => (amount, None),
            Err(missing) => (Milli(0), Some(missing)),
        };
        if requests.of_pods.first() != Some(&amount) {
            requests.of_pods.clear();
        }
        requests.of_pods.resize(pods, amount);
        requests.missing = missing;
    }
}

/// The name of a simulated pod.
#[must_use]
pub fn pod_name(id: u64) -> String {
    format!("simulated-{id}")
}

/// Types of event sources that measure what waits, as the names of their metrics have them.
const QUEUES: [&str; 8] =
    ["activemq", "kafka", "mysql", "jetstream", "postgresql", "rabbitmq", "redis", "temporal"];

/// What a metric of pods, of an object or from outside measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Quantity {
    /// Requests per second: served by a pod, or offered to the workload.
    RequestsPerSecond,
    /// How much work waits: a pod's part, or all of it.
    QueueLength,
    /// How long a request takes, in seconds.
    LatencySeconds,
    /// Requests that are in service or wait in a pod.
    InFlight,
    /// Nothing: the metric never has a value.
    Absent,
}

impl Quantity {
    /// The name by which it is known what a source measures; none if that is cpu or memory, or not known.
    #[must_use]
    pub fn name_in(source: &Source) -> Option<&Arc<str>> {
        match source {
            Source::Pods(series) | Source::Object { series, .. } | Source::External(series) => {
                Some(&series.name)
            }
            Source::Prometheus(query) => Some(&query.name),
            Source::Trigger(Trigger { name, of: TriggerOf::Source(_) }) => Some(name),
            Source::Resource { .. }
            | Source::ContainerResource { .. }
            | Source::Trigger(_)
            | Source::Unknown { .. } => None,
        }
    }

    /// All such names in a source: those of its inputs if a formula makes its value.
    pub fn names_in(source: &Source) -> impl Iterator<Item = &Arc<str>> {
        let inputs: &[_] = match source {
            Source::Trigger(Trigger { of: TriggerOf::Formula(composite), .. }) => &composite.inputs,
            _ => &[],
        };
        Quantity::name_in(source).into_iter().chain(inputs.iter().map(|(name, _)| name))
    }

    /// What a metric of this name most likely measures. Names are only a convention: scenarios can
    /// say what they mean. Those of triggers have the type of their event source in them.
    #[must_use]
    pub fn guess(name: &str, kind: Kind) -> Quantity {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if has(&["queue", "lag", "backlog", "depth", "pending", "messages", "visible"])
            || is_of_trigger(&name) && has(&QUEUES)
        {
            Quantity::QueueLength
        } else if has(&["latency", "duration", "response_time"]) {
            Quantity::LatencySeconds
        } else if has(&["concurren", "inflight", "in_flight", "in-flight", "connections"]) {
            Quantity::InFlight
        } else if has(&["request", "rps", "qps", "rate", "hits"]) || kind == Kind::Service {
            Quantity::RequestsPerSecond
        } else {
            Quantity::QueueLength
        }
    }

    /// It in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Quantity::RequestsPerSecond => "requests per second",
            Quantity::QueueLength => "the length of the queue",
            Quantity::LatencySeconds => "seconds that a request takes",
            Quantity::InFlight => "requests in flight",
            Quantity::Absent => "nothing that has a value",
        }
    }
}

/// Whether a name is one that KEDA gives to the metrics of triggers, such as `s0-kafka-orders`.
fn is_of_trigger(name: &str) -> bool {
    let place =
        name.strip_prefix('s').and_then(|rest| rest.split_once('-')).map(|(place, _)| place);
    place.is_some_and(|place| !place.is_empty() && place.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metrics_are_understood_as_people_mean_them() {
        for (name, kind, expected) in [
            ("http_requests_per_second", Kind::Service, Quantity::RequestsPerSecond),
            ("queue_length", Kind::Service, Quantity::QueueLength),
            ("kafka_consumergroup_lag", Kind::Consumer, Quantity::QueueLength),
            ("sqs-orders", Kind::Consumer, Quantity::QueueLength),
            ("request_duration_seconds", Kind::Service, Quantity::LatencySeconds),
            ("concurrency", Kind::Service, Quantity::InFlight),
            ("packets", Kind::Service, Quantity::RequestsPerSecond),
            ("s0-prometheus", Kind::Service, Quantity::RequestsPerSecond),
            ("s12-redis-jobs", Kind::Service, Quantity::QueueLength),
            ("redis_commands", Kind::Service, Quantity::RequestsPerSecond),
        ] {
            assert_eq!(Quantity::guess(name, kind), expected, "{name}");
        }
    }

    #[test]
    fn requests_and_usage_are_of_all_containers_or_of_one() {
        let container = |name: &str, millis: Option<f64>| Container {
            name: name.into(),
            cpu_request_millis: millis,
            ..Container::default()
        };
        let pods = PodTemplate {
            containers: vec![container("sidecar", Some(50.0)), container("app", Some(200.0))],
            busy: 1,
        };
        let request = |of, share_of| pods.request(of, share_of, 0);
        assert_eq!(request((Resource::Cpu, None), ShareOf::Requests), Ok(Milli(250)));
        assert_eq!(request((Resource::Cpu, Some("app")), ShareOf::Requests), Ok(Milli(200)));
        assert!(request((Resource::Cpu, Some("none")), ShareOf::Requests).is_err());
        assert!(request((Resource::Memory, None), ShareOf::Requests).is_err());
        let missing = request((Resource::Cpu, None), ShareOf::Limits);
        assert!(matches!(missing, Err(MissingRequest::Limit { .. })), "{missing:?}");
        let shown = |container| Some(pods.shown(Resource::Cpu, container)?.of(0.3));
        assert_eq!(shown(None), Some(0.301));
        assert_eq!(shown(Some("app")), Some(0.3));
        assert_eq!(shown(Some("sidecar")), Some(0.001));
        assert_eq!(shown(Some("none")), None);
    }
}
