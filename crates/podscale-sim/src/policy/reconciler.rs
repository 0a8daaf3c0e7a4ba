//! Podscale's own controller, and so Kubernetes' native HPA: drives the pass of `podscale-core` that
//! production drives, on what the simulated metrics say. There is no second implementation of any
//! rule.

use super::{Moments, Policy};
use crate::plan::Plan;
use crate::world::{Needs, World};
use podscale_core::pod::Pod;
use podscale_core::snapshot::{Reading, Scale, ScaleError, Selection};
use podscale_core::{
    Autoscaler, History, Outcome, Pass, ScaleWrite, Settings, Snapshot, Status, StatusChange,
    StatusWrite, Time, Withheld, Write, decide, explain,
};

/// Hears of every pass.
pub trait PassObserver {
    /// A pass ended. `pods` tells the snapshot's pods apart, in the same order.
    fn passed(&mut self, snapshot: &Snapshot<'_>, outcome: &Outcome, pods: &[u64]);
}

/// Decides by an autoscaler object.
pub struct Reconciler<'o> {
    autoscaler: Autoscaler,
    settings: Settings,
    status: Status,
    history: History,
    moments: Moments,
    selection: Selection,
    readings: Vec<Reading>,
    last: Option<(Outcome, Time)>,
    observer: Option<&'o mut dyn PassObserver>,
    pod_ids: Vec<u64>,
}

impl<'o> Reconciler<'o> {
    /// By this object, with the settings of the controller.
    #[must_use]
    pub fn new(autoscaler: Autoscaler, settings: Settings) -> Reconciler<'o> {
        let readings = vec![Reading::Empty; autoscaler.metrics.len()];
        Reconciler {
            autoscaler,
            settings,
            status: Status::default(),
            history: History::default(),
            moments: Moments::never(),
            selection: Selection::Pods(Vec::new()),
            readings,
            last: None,
            observer: None,
            pod_ids: Vec::new(),
        }
    }

    /// The same, and this observer hears of every pass.
    #[must_use]
    pub fn observed(mut self, observer: &'o mut dyn PassObserver) -> Reconciler<'o> {
        self.observer = Some(observer);
        self
    }

    /// The object that it decides by.
    #[must_use]
    pub fn autoscaler(&self) -> &Autoscaler {
        &self.autoscaler
    }

    /// Takes in what is there: pods, and metrics if they are read.
    fn observe(&mut self, world: &World<'_>, scale: Scale) {
        let mut pods: Vec<Pod> = match &mut self.selection {
            Selection::Pods(pods) => std::mem::take(pods),
            _ => Vec::new(),
        };
        world.pods(&mut pods);
        self.selection = Selection::Pods(pods);
        let status = &self.status;
        if decide::reads_metrics(&self.autoscaler, scale, || status) {
            for (metric, reading) in self.autoscaler.metrics.iter().zip(&mut self.readings) {
                world.read(metric, reading);
            }
        }
    }
}

impl Policy for Reconciler<'_> {
    fn needs(&self) -> Needs {
        Needs::of(&self.autoscaler.metrics)
    }

    fn begin(&mut self, plan: &Plan) {
        self.moments = Moments::of_sync(plan);
    }

    fn next_due(&self) -> Time {
        self.moments.next
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        self.moments.advance();
        let found = world.scale();
        self.observe(world, found);
        let scale: Result<Scale, ScaleError> = Ok(found);
        let snapshot = Snapshot {
            now: world.now,
            settings: &self.settings,
            autoscaler: &self.autoscaler,
            status: &self.status,
            history: &self.history,
            scale: &scale,
            pods: &self.selection,
            readings: &self.readings,
        };
        let (outcome, status) = drive(&snapshot, world.written_at());
        if let Some(observer) = &mut self.observer {
            self.pod_ids.clear();
            self.pod_ids.extend(world.pod_ids());
            observer.passed(&snapshot, &outcome, &self.pod_ids);
        }
        if let Some(status) = status {
            self.status = status;
        }
        self.history.commit(&outcome.decision.learned);
        let changed = outcome.decision.rescale.map(|rescale| rescale.to);
        self.last = Some((outcome, world.now));
        changed
    }

    fn explain(&self) -> Vec<String> {
        let Some((outcome, at)) = &self.last else { return Vec::new() };
        explain::lines(&outcome.decision.steps, &self.autoscaler, *at)
    }
}

/// Drives a pass whose writes succeed; gives the status if it was written. What only refreshes measured
/// values is left for later, as a controller with many objects does: no rule reads them.
fn drive(snapshot: &Snapshot<'_>, written_at: Time) -> (Outcome, Option<Status>) {
    let mut pass = Pass::begin(snapshot);
    let mut stored = None;
    loop {
        match pass.next_write() {
            Write::Scale(_) => pass.scale_ended(ScaleWrite::Written, written_at),
            Write::Status(StatusChange::Values) => {
                pass.status_ended(StatusWrite::Withheld(Withheld::Deferred));
            }
            Write::Status(_) => {
                stored = Some(pass.status());
                pass.status_ended(StatusWrite::Written);
            }
            Write::Nothing => return (pass.finish(), stored),
        }
    }
}
