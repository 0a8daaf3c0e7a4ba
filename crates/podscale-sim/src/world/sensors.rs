//! How what happens in a simulated workload becomes what an autoscaler reads: scrapes at their own
//! moments, rates over windows, delays, and samples that are lost, late or refused.

mod needs;
mod way;

use super::fleet::{Fleet, SimPod};
use crate::environment::Environment;
use crate::plan::{PodTemplate, Quantity, Resource};
use crate::random;
use crate::workload::{Flow, Kind};
pub use needs::Needs;
use podscale_core::model::{MetricTarget, Milli, ShareOf, Source, TriggerOf};
use podscale_core::snapshot::{PodReadings, Reading, Sample};
use podscale_core::{Metric, Span, Time};
use std::collections::{BTreeMap, VecDeque};
use way::{MAX_ROUNDS, Measured, Way};

/// What the draws of scrapes are for.
const RESOURCE_MOMENT: u64 = 301;
const CUSTOM_MOMENT: u64 = 302;
const STRAY: u64 = 305;

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
        needs: &Needs,
        names: &BTreeMap<String, Quantity>,
        flow: &Flow,
        (start, seed): (Time, u64),
    ) -> Sensors {
        let way = |pipeline, needed, moment| Way::new(pipeline, needed, start, seed, moment);
        // What names mean is worked out once, not at every reading.
        let kind = flow.spec().kind;
        let guessed =
            needs.names.iter().map(|name| (name.to_string(), Quantity::guess(name, kind)));
        let mut meant: BTreeMap<String, Quantity> = guessed.collect();
        meant.extend(names.iter().map(|(name, quantity)| (name.clone(), *quantity)));
        Sensors {
            start,
            seed,
            jitter: flow.spec().jitter,
            slot_seconds: environment.slot_seconds,
            resource: way(&environment.resource_metrics, needs.resource, RESOURCE_MOMENT),
            custom: way(&environment.custom_metrics, needs.custom, CUSTOM_MOMENT),
            whole: VecDeque::new(),
            names: meant,
            kind,
        }
    }

    pub(crate) fn next_due(&self) -> Time {
        self.resource.due.min(self.custom.due)
    }

    /// Scrapes what is due.
    pub(crate) fn scrape(&mut self, now: Time, flow: &Flow) {
        if self.resource.due <= now {
            self.resource.scrape(now, flow);
        }
        if self.custom.due <= now {
            let visible = now.after(self.custom.delay);
            self.whole.push_back(Whole {
                at: now,
                visible,
                arrived: flow.totals().arrived,
                queue: flow.totals().waiting,
                latency_seconds: flow.latency_seconds(),
                in_flight: flow.in_flight(),
            });
            let cut = now.before(self.custom.kept);
            while self.whole.len() > MAX_ROUNDS || self.whole.get(1).is_some_and(|w| w.at <= cut) {
                self.whole.pop_front();
            }
            self.custom.scrape(now, flow);
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
            Source::Trigger(trigger) => {
                *reading = match &trigger.of {
                    TriggerOf::Source(_) => self.read_trigger(&trigger.name, now),
                    TriggerOf::Formula(composite) => {
                        let inputs = composite.inputs.iter();
                        Reading::Inputs(
                            inputs.map(|(name, _)| self.read_trigger(name, now)).collect(),
                        )
                    }
                };
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
        let resource = Resource::named(name);
        let shown =
            resource.and_then(|resource| Some((resource, template.shown(resource, container)?)));
        let Some((resource, shown)) = shown else {
            *reading = Reading::Empty;
            return;
        };
        if let Some(refused) = self.refused(&self.resource, now) {
            *reading = refused;
            return;
        }
        per_pod(reading, |samples| {
            let Some(readable) = self.resource.read(now, self.seed) else { return };
            let value = |window: &Window, pod: u64, mean: f64| match resource {
                Resource::Cpu => cpu_milli(shown.of(window.strayed(pod, mean))),
                Resource::Memory => Milli(whole(shown.of(mean)).saturating_mul(1000)),
            };
            let mean = |window: &Window, measured: &Measured| match resource {
                Resource::Cpu => measured.cpu_seconds / window.seconds,
                Resource::Memory => measured.memory_bytes,
            };
            let mut window = Window::new(self);
            let mut sample = |pod: &SimPod| {
                let measured = readable.of(pod)?;
                window.turn_to(&measured);
                Some(window.sample(value(&window, pod.id, mean(&window, &measured))))
            };
            let pods = fleet.pods().iter();
            match readable.common() {
                // What nearly all pods have in common is worked out once.
                Some((ready_by, measured)) => {
                    let mut window = Window::new(self);
                    window.turn_to(measured);
                    let mean = mean(&window, measured);
                    if fleet.all_serve_since(ready_by) && matches!(resource, Resource::Cpu) {
                        // Mostly it is all of them, and then nothing is asked for each.
                        samples.extend(pods.map(|pod| {
                            let cores = shown.of(window.strayed(pod.id, mean));
                            Some(window.sample(cpu_milli(cores)))
                        }));
                    } else {
                        samples.extend(pods.map(|pod| match pod.serves_since(ready_by) {
                            true => Some(window.sample(value(&window, pod.id, mean))),
                            false => sample(pod),
                        }));
                    }
                }
                None => samples.extend(pods.map(sample)),
            }
        });
    }

    fn read_pods(&self, name: &str, now: Time, fleet: &Fleet, reading: &mut Reading) {
        if let Some(refused) = self.refused(&self.custom, now) {
            *reading = refused;
            return;
        }
        let quantity = self.quantity(name);
        let ready = fleet.ready().max(1) as f64;
        let whole = self.whole.iter().rev().find(|whole| whole.visible <= now);
        per_pod(reading, |samples| {
            let Some(readable) = self.custom.read(now, self.seed) else { return };
            let mut window = Window::new(self);
            samples.extend(fleet.pods().iter().map(|pod| {
                let measured = readable.of(pod)?;
                window.turn_to(&measured);
                let serves = measured.served > 0.0;
                let share = |amount: f64| if serves { amount / ready } else { 0.0 };
                let value = match quantity {
                    Quantity::RequestsPerSecond => measured.served / window.seconds,
                    Quantity::QueueLength => share(whole?.queue),
                    Quantity::InFlight => share(whole?.in_flight),
                    Quantity::LatencySeconds => whole?.latency_seconds,
                    Quantity::Absent => return None,
                };
                Some(window.sample(milli(value)))
            }));
        });
    }

    /// What an event source says, which is active while there is anything.
    fn read_trigger(&self, name: &str, now: Time) -> Reading {
        match self.read_whole(name, now) {
            Some(Reading::Total { value, taken }) => {
                Reading::Trigger { value, active: value > Milli(0), taken }
            }
            Some(other) => other,
            None => Reading::Failed("no value has been measured yet".into()),
        }
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

/// What the samples of one window have in common, and how far single pods stray in it from the model, as its jitter
/// says; over a window of many slots that evens out. Nearly all pods have the same window.
struct Window {
    jitter: f64,
    slot_seconds: f64,
    seed: u64,
    /// When it began and ended, and what follows from that.
    from: Time,
    to: Time,
    seconds: f64,
    length: Span,
    taken: Time,
    salt: u64,
    part: f64,
}

impl Window {
    fn new(sensors: &Sensors) -> Window {
        let Sensors { jitter, slot_seconds, seed, .. } = *sensors;
        let (never, length) = (Time(i64::MIN), Span(0));
        let (from, to, taken, seconds, salt, part) = (never, never, never, 1.0, 0, 0.0);
        Window { jitter, slot_seconds, seed, from, to, seconds, length, taken, salt, part }
    }

    /// Turns to the window in which something was measured.
    fn turn_to(&mut self, measured: &Measured) {
        if (self.from, self.to) == (measured.from, measured.to) {
            return;
        }
        (self.from, self.to) = (measured.from, measured.to);
        self.seconds = measured.seconds();
        self.length = measured.to.since(measured.from).max(Span(1));
        self.taken = measured.to.whole_seconds();
        self.salt = random::salt(measured.to.0.cast_unsigned(), STRAY);
        self.part = self.jitter / (self.seconds / self.slot_seconds).max(1.0).sqrt();
    }

    /// The mean CPU of a pod in it, where the model says this.
    fn strayed(&self, pod: u64, mean: f64) -> f64 {
        if self.jitter == 0.0 {
            return mean;
        }
        let hash = self.seed ^ pod.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mean * (1.0 + self.part * random::salted(hash, self.salt))
    }

    fn sample(&self, value: Milli) -> Sample {
        Sample { value, taken: self.taken, window: self.length }
    }
}

/// Fills in a value per pod, where it is: what was there last time is used again. Without any value there is no reading.
fn per_pod(reading: &mut Reading, fill: impl FnOnce(&mut Vec<Option<Sample>>)) {
    if !matches!(reading, Reading::PerPod(_)) {
        *reading = Reading::PerPod(PodReadings::default());
    }
    if let Reading::PerPod(PodReadings { samples, .. }) = reading {
        samples.clear();
        fill(samples);
        if !samples.iter().any(Option::is_some) {
            *reading = Reading::Empty;
        }
    }
}

/// Cores as metrics APIs give them: nanocores, and thousandths rounded up from those.
fn cpu_milli(cores: f64) -> Milli {
    Milli(whole(cores * 1e9).saturating_add(999_999) / 1_000_000)
}

fn milli(value: f64) -> Milli {
    Milli(whole(value * 1000.0))
}

/// The nearest whole number to one that is not negative; the cast saturates.
fn whole(number: f64) -> i64 {
    (number + 0.5) as i64
}
