//! How what happens in a simulated workload becomes what an autoscaler reads: scrapes at their own
//! moments, rates over windows, delays, and samples that are lost, late or refused.

mod way;

use super::fleet::{Fleet, Scrape, SimPod};
use crate::environment::{Environment, seconds};
use crate::plan::{PodTemplate, Quantity, Resource};
use crate::random;
use crate::workload::{Flow, Kind};
use podscale_core::model::{MetricTarget, Milli, ShareOf, Source};
use podscale_core::snapshot::{PodReadings, Reading, Sample};
use podscale_core::{Metric, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use way::{Way, scrape_pods};

/// What the draws of scrapes are for.
const RESOURCE_MOMENT: u64 = 301;
const CUSTOM_MOMENT: u64 = 302;
const STRAY: u64 = 305;
/// No ring of scrapes is longer.
const MAX_SCRAPES: usize = 4_096;

/// Which pipelines somebody reads from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// CPU and memory of pods.
    pub resource: bool,
    /// Metrics of pods, objects and queues.
    pub custom: bool,
}

impl Needs {
    /// What these metrics need.
    #[must_use]
    pub fn of(metrics: &[Metric]) -> Needs {
        let is_resource = |metric: &Metric| {
            matches!(*metric.source, Source::Resource { .. } | Source::ContainerResource { .. })
        };
        Needs {
            resource: metrics.iter().any(is_resource),
            custom: !metrics.iter().all(is_resource),
        }
    }
}

/// One scrape of the workload as a whole.
#[derive(Clone, Copy, Debug)]
struct Whole {
    at: Time,
    visible: Time,
    arrived: f64,
    queue: f64,
    latency_seconds: f64,
    in_flight: f64,
}

/// All that an autoscaler can read of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Sensors {
    start: Time,
    seed: u64,
    jitter: f64,
    slot_seconds: f64,
    resource: Way,
    custom: Way,
    whole: VecDeque<Whole>,
    names: BTreeMap<String, Quantity>,
    kind: Kind,
}

impl Sensors {
    pub(crate) fn new(
        environment: &Environment,
        needs: Needs,
        names: &BTreeMap<String, Quantity>,
        flow: &Flow,
        (start, seed): (Time, u64),
    ) -> Sensors {
        let way = |pipeline, needed, moment| Way::new(pipeline, needed, start, seed, moment);
        Sensors {
            start,
            seed,
            jitter: flow.spec().jitter,
            slot_seconds: environment.slot_seconds,
            resource: way(&environment.resource_metrics, needs.resource, RESOURCE_MOMENT),
            custom: way(&environment.custom_metrics, needs.custom, CUSTOM_MOMENT),
            whole: VecDeque::new(),
            names: names.clone(),
            kind: flow.spec().kind,
        }
    }

    pub(crate) fn next_due(&self) -> Time {
        self.resource.due.min(self.custom.due)
    }

    /// Scrapes what is due.
    pub(crate) fn scrape(&mut self, now: Time, fleet: &mut Fleet, flow: &Flow) {
        if self.resource.due <= now {
            scrape_pods(&mut self.resource, now, self.seed, fleet, flow, |pod| &mut pod.resource);
        }
        if self.custom.due <= now {
            let visible = now.after(seconds(self.custom.pipeline.delay_seconds));
            self.whole.push_back(Whole {
                at: now,
                visible,
                arrived: flow.totals().arrived,
                queue: flow.totals().waiting,
                latency_seconds: flow.latency_seconds(),
                in_flight: flow.in_flight(),
            });
            let cut = now.before(self.custom.kept());
            while self.whole.len() > MAX_SCRAPES || self.whole.get(1).is_some_and(|w| w.at <= cut) {
                self.whole.pop_front();
            }
            scrape_pods(&mut self.custom, now, self.seed, fleet, flow, |pod| &mut pod.custom);
        }
    }

    /// What a metric says now, into the given place.
    pub(crate) fn read(
        &self,
        metric: &Metric,
        share_of: ShareOf,
        now: Time,
        (fleet, template): (&Fleet, &PodTemplate),
        reading: &mut Reading,
    ) {
        let resource = match &*metric.source {
            Source::Resource { name } => (&**name, None),
            Source::ContainerResource { name, container } => (&**name, Some(&**container)),
            Source::Pods(series) => return self.read_pods(&series.name, now, fleet, reading),
            Source::Object { series, .. } => {
                *reading = self.read_whole(&series.name, now).unwrap_or_else(|| {
                    Reading::Failed("no value of the object has been measured yet".into())
                });
                return;
            }
            Source::External(series) => {
                *reading = match self.read_whole(&series.name, now) {
                    Some(Reading::Total { value, taken }) => {
                        Reading::Series { values: vec![value], taken }
                    }
                    Some(other) => other,
                    None => Reading::Empty,
                };
                return;
            }
            Source::Prometheus(query) => {
                *reading = self.read_whole(&query.name, now).unwrap_or(Reading::Empty);
                return;
            }
            Source::Unknown { .. } => {
                *reading = Reading::Empty;
                return;
            }
        };
        self.read_resource(resource, now, fleet, template, reading);
        if let (Reading::PerPod(readings), MetricTarget::Utilization(_)) = (reading, metric.target)
        {
            let pods = fleet.pods();
            let (count, first) = (pods.len(), pods.first().map(|pod| pod.id));
            template.fill_requests(resource, share_of, (count, first), &mut readings.requests);
        }
    }

    /// What a metric of this name measures.
    pub(crate) fn quantity(&self, name: &str) -> Quantity {
        match self.names.get(name) {
            Some(quantity) => *quantity,
            None => Quantity::guess(name, self.kind),
        }
    }

    fn refused(&self, way: &Way, now: Time) -> Option<Reading> {
        let answers = way.pipeline.answers_at(now.since(self.start));
        (!answers).then(|| Reading::Failed("the metrics API does not answer (outage)".into()))
    }

    fn read_resource(
        &self,
        (name, container): (&str, Option<&str>),
        now: Time,
        fleet: &Fleet,
        template: &PodTemplate,
        reading: &mut Reading,
    ) {
        let Some(resource) = Resource::named(name) else {
            *reading = Reading::Empty;
            return;
        };
        if let Some(refused) = self.refused(&self.resource, now) {
            *reading = refused;
            return;
        }
        let mut readings = per_pod(reading);
        for pod in fleet.pods() {
            let pair = pair(&pod.resource, now, self.resource.window);
            readings.samples.push(pair.and_then(|(before, last)| {
                let used = match resource {
                    Resource::Cpu => self.cores(pod, &before, &last),
                    Resource::Memory => last.memory_bytes,
                };
                let shown = template.shown(resource, container, used)?;
                let value = match resource {
                    Resource::Cpu => cpu_milli(shown),
                    Resource::Memory => Milli((shown.round() * 1000.0) as i64),
                };
                Some(sample(value, before.at, last.at))
            }));
        }
        give(reading, readings);
    }

    /// Mean CPU between two scrapes. Single pods stray from the model as its jitter says; over a
    /// window of many slots that evens out.
    fn cores(&self, pod: &SimPod, before: &Scrape, last: &Scrape) -> f64 {
        let length = last.at.since(before.at).0 as f64 / 1e6;
        let mean = (last.cpu_seconds - before.cpu_seconds) / length;
        if self.jitter == 0.0 {
            return mean;
        }
        let slots = (length / self.slot_seconds).max(1.0);
        let hash = self.seed ^ pod.id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let stray = random::unit(hash, last.at.0.cast_unsigned(), STRAY) / slots.sqrt();
        mean * (1.0 + self.jitter * stray)
    }

    fn read_pods(&self, name: &str, now: Time, fleet: &Fleet, reading: &mut Reading) {
        if let Some(refused) = self.refused(&self.custom, now) {
            *reading = refused;
            return;
        }
        let quantity = self.quantity(name);
        let ready = fleet.ready().max(1) as f64;
        let whole = self.whole.iter().rev().find(|whole| whole.visible <= now);
        let mut readings = per_pod(reading);
        for pod in fleet.pods() {
            let pair = pair(&pod.custom, now, self.custom.window);
            readings.samples.push(pair.and_then(|(before, last)| {
                let length = last.at.since(before.at).0 as f64 / 1e6;
                let serves = last.served > before.served;
                let share = |amount: f64| if serves { amount / ready } else { 0.0 };
                let value = match quantity {
                    Quantity::RequestsPerSecond => (last.served - before.served) / length,
                    Quantity::QueueLength => share(whole?.queue),
                    Quantity::InFlight => share(whole?.in_flight),
                    Quantity::LatencySeconds => whole?.latency_seconds,
                    Quantity::Absent => return None,
                };
                Some(sample(milli(value), before.at, last.at))
            }));
        }
        give(reading, readings);
    }

    /// A value of the workload as a whole; nothing if it was not scraped yet, or is never measured.
    fn read_whole(&self, name: &str, now: Time) -> Option<Reading> {
        if let Some(refused) = self.refused(&self.custom, now) {
            return Some(refused);
        }
        let quantity = self.quantity(name);
        let place = self.whole.iter().rposition(|whole| whole.visible <= now)?;
        let last = self.whole[place];
        let value = match quantity {
            Quantity::Absent => return None,
            Quantity::RequestsPerSecond => {
                let edge = last.at.before(self.custom.window);
                let earlier = self.whole.iter().take(place);
                let found = earlier.clone().rev().find(|w| w.at <= edge);
                let before = found.or_else(|| earlier.clone().next())?;
                (last.arrived - before.arrived) / (last.at.since(before.at).0 as f64 / 1e6)
            }
            Quantity::QueueLength => last.queue,
            Quantity::LatencySeconds => last.latency_seconds,
            Quantity::InFlight => last.in_flight,
        };
        Some(Reading::Total { value: milli(value), taken: Some(last.at.whole_seconds()) })
    }
}

/// The last scrape that can be read, and the one a window before it; nothing if the last one failed.
fn pair(ring: &VecDeque<Scrape>, now: Time, window: Span) -> Option<(Scrape, Scrape)> {
    let place = ring.iter().rposition(|scrape| scrape.visible <= now)?;
    let last = ring[place];
    if last.lost {
        return None;
    }
    let edge = last.at.before(window);
    // While a pod is younger than the window, what there is of it counts.
    let earlier = ring.iter().take(place).filter(|scrape| !scrape.lost);
    let found = earlier.clone().rev().find(|scrape| scrape.at <= edge);
    let before = found.or_else(|| earlier.clone().next())?;
    Some((*before, last))
}

/// The place for a value per pod; kept from the last time if it was one.
fn per_pod(reading: &mut Reading) -> PodReadings {
    match std::mem::replace(reading, Reading::Empty) {
        Reading::PerPod(mut readings) => {
            readings.samples.clear();
            readings
        }
        _ => PodReadings::default(),
    }
}

/// Puts values per pod back, unless there is none.
fn give(reading: &mut Reading, readings: PodReadings) {
    if readings.samples.iter().any(Option::is_some) {
        *reading = Reading::PerPod(readings);
    }
}

fn sample(value: Milli, from: Time, to: Time) -> Sample {
    Sample { value, taken: to.whole_seconds(), window: Span(to.since(from).0).max(Span(1)) }
}

/// Cores as metrics APIs give them: nanocores, and thousandths rounded up from those.
fn cpu_milli(cores: f64) -> Milli {
    let nanocores = (cores * 1e9).round();
    Milli((nanocores / 1e6).ceil() as i64)
}

fn milli(value: f64) -> Milli {
    // The cast saturates.
    Milli((value * 1000.0).round() as i64)
}
