//! Podscale's own controller, and so Kubernetes' native HPA: decides by an object on what the simulated
//! metrics say.

use super::controlled::{Controlled, Seen};
use super::{Moments, Policy};
use crate::plan::Plan;
use crate::world::{Needs, World};
use podscale_core::model::{Extensions, Milli, PodSelection, ShareOf, Source, TriggerOf};
use podscale_core::pass::WriteOutcome;
use podscale_core::pod::{Pod, surge};
use podscale_core::snapshot::{Reading, Scale, Selection};
use podscale_core::steps::Steps;
use podscale_core::{
    Autoscaler, Outcome, ScaleWrite, Settings, Snapshot, Span, Time, decide, explain,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Hears of every pass.
pub trait PassObserver {
    /// A pass ended. `pods` tells the snapshot's pods apart, in the same order.
    fn passed(&mut self, snapshot: &Snapshot<'_>, outcome: &Outcome, pods: &[u64]);
}

/// Decides by an autoscaler object.
pub struct Reconciler<'o> {
    controlled: Controlled,
    /// How often, if the object says so itself.
    period: Option<Span>,
    /// Above which value triggers are active, by the names of their metrics; above zero where nothing is said.
    activations: BTreeMap<Arc<str>, Milli>,
    moments: Moments,
    selection: Selection,
    /// Which of the fleet's changes the selection shows.
    selected: Option<u64>,
    readings: Vec<Reading>,
    /// Whether decisions are to be told in words.
    explains: bool,
    /// What happened on the way to the last decision, and when that was.
    last: Option<(Steps, Time)>,
    observer: Option<&'o mut dyn PassObserver>,
    pod_ids: Vec<u64>,
}

impl<'o> Reconciler<'o> {
    /// By this object, with the settings of the controller.
    #[must_use]
    pub fn new(autoscaler: Autoscaler, settings: Settings) -> Reconciler<'o> {
        let readings = vec![Reading::Empty; autoscaler.metrics.len()];
        Reconciler {
            controlled: Controlled::new(autoscaler, settings),
            period: None,
            activations: BTreeMap::new(),
            moments: Moments::never(),
            selection: Selection::Pods(Vec::new()),
            selected: None,
            readings,
            explains: false,
            last: None,
            observer: None,
            pod_ids: Vec::new(),
        }
    }

    /// The same, as often as the object says instead of every sync period.
    #[must_use]
    pub fn every(mut self, period: Option<Span>) -> Reconciler<'o> {
        self.period = period;
        self
    }

    /// The same, with triggers that are active only above these values, by the names of their metrics.
    #[must_use]
    pub fn active_above(mut self, activations: BTreeMap<Arc<str>, Milli>) -> Reconciler<'o> {
        self.activations = activations;
        self
    }

    /// The same, and this observer hears of every pass.
    #[must_use]
    pub fn observed(mut self, observer: &'o mut dyn PassObserver) -> Reconciler<'o> {
        self.observer = Some(observer);
        self
    }

    /// Takes in what is there: pods, and metrics if they are read.
    fn observe(&mut self, world: &World<'_>, scale: Scale) {
        let mut pods: Vec<Pod> = match &mut self.selection {
            Selection::Pods(pods) => std::mem::take(pods),
            _ => Vec::new(),
        };
        let changes = Some(world.fleet.changes());
        if self.selected != changes {
            world.pods(&mut pods);
            self.selected = changes;
        }
        if self.observer.is_some() {
            self.pod_ids.clear();
            self.pod_ids.extend(world.pod_ids());
        }
        let autoscaler = self.controlled.autoscaler();
        let extensions = autoscaler.extensions.as_deref();
        let status = self.controlled.status();
        let reads = decide::reads_metrics(autoscaler, scale, || status);
        let metrics = autoscaler.metrics.iter().enumerate();
        for ((place, metric), reading) in metrics.zip(&mut self.readings) {
            if reads {
                let share_of = extensions.map_or(ShareOf::Requests, |e| e.rules(place).share_of);
                world.read(metric, share_of, reading);
                activate(&metric.source, &self.activations, reading);
            } else {
                *reading = Reading::Empty;
            }
        }
        let owned = |e: &Extensions| e.pod_selection == PodSelection::Owned;
        if extensions.is_some_and(owned) {
            let left_out = surge(&pods, scale.spec_replicas);
            if !left_out.is_empty() {
                retain(&mut pods, &left_out);
                self.selected = None;
                retain(&mut self.pod_ids, &left_out);
                self.readings.iter_mut().for_each(|reading| without(reading, &left_out));
            }
        }
        self.selection = Selection::Pods(pods);
    }
}

/// Says of triggers whether they are active, where that takes more than any value.
fn activate(source: &Source, activations: &BTreeMap<Arc<str>, Milli>, reading: &mut Reading) {
    if activations.is_empty() {
        return;
    }
    let set = |(name, reading): (&Arc<str>, &mut Reading)| {
        if let (Reading::Trigger { value, active, .. }, Some(above)) =
            (reading, activations.get(name))
        {
            *active = *value > *above;
        }
    };
    let Source::Trigger(trigger) = source else { return };
    match (&trigger.of, reading) {
        (TriggerOf::Formula(composite), Reading::Inputs(readings)) => {
            composite.inputs.iter().map(|(name, _)| name).zip(readings).for_each(set);
        }
        (TriggerOf::Source(_), reading) => set((&trigger.name, reading)),
        (TriggerOf::Formula(_), _) => {}
    }
}

/// Leaves out what is at these places, which are in order.
fn retain<T>(all: &mut Vec<T>, left_out: &[usize]) {
    let mut place = 0;
    all.retain(|_| {
        place += 1;
        left_out.binary_search(&(place - 1)).is_err()
    });
}

/// Leaves out the values of pods that do not count.
fn without(reading: &mut Reading, left_out: &[usize]) {
    let Reading::PerPod(readings) = reading else { return };
    retain(&mut readings.samples, left_out);
    retain(&mut readings.requests.of_pods, left_out);
    if readings.samples.iter().all(Option::is_none) {
        *reading = Reading::Empty;
    }
}

impl Policy for Reconciler<'_> {
    fn needs(&self) -> Needs {
        Needs::of(&self.controlled.autoscaler().metrics)
    }

    fn begin(&mut self, plan: &Plan) {
        self.moments = Moments::of_sync(plan, self.period);
        self.explains = plan.detail.changes || plan.detail.explain_at.is_some();
    }

    fn next_due(&self) -> Time {
        self.moments.next
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        self.moments.advance();
        let found = world.scale();
        self.observe(world, found);
        let seen = Seen {
            now: world.now,
            written_at: world.written_at(),
            scale: &Ok(found),
            pods: &self.selection,
            readings: &self.readings,
        };
        let (observer, pod_ids) = (&mut self.observer, &self.pod_ids);
        let (explains, last) = (self.explains, &mut self.last);
        self.controlled.pass(&seen, |snapshot, outcome| {
            if let Some(observer) = observer {
                observer.passed(snapshot, outcome, pod_ids);
            }
            let is_written = outcome.scale == WriteOutcome::Ended(ScaleWrite::Written);
            if explains {
                *last = Some((outcome.decision.steps.clone(), world.now));
            }
            outcome.decision.rescale.filter(|_| is_written).map(|rescale| rescale.to)
        })
    }

    fn explain(&self) -> Vec<String> {
        let Some((steps, at)) = &self.last else { return Vec::new() };
        explain::lines(steps, self.controlled.autoscaler(), *at)
    }
}
