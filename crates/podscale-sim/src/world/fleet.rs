//! The pods of a simulated workload: created and deleted as the size says, placed, started, ready,
//! ending. Times are those that nodes report; each delay is drawn once per pod.

mod rollout;

use super::nodes::Nodes;
use crate::environment::{Delay, Environment};
use crate::workload::Counters;
use podscale_core::pod::{Phase, Pod, Ready, ReadyStatus};
use podscale_core::snapshot::Scale;
use podscale_core::{Span, Time};
use rollout::Rollouts;

/// What the draws of a pod's delays are for.
pub(crate) const START_UP: u64 = 101;
pub(crate) const READINESS: u64 = 102;
const TERMINATION: u64 = 103;

/// In the place of a time: never.
pub(crate) const NEVER: Time = Time(i64::MAX);

/// Where in its life a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No node has room for it.
    Unscheduled,
    /// Its node starts it.
    Creating,
    /// Its containers run.
    Running,
    /// It serves.
    Ready,
    /// It ends.
    Stopping,
}

/// One pod.
#[derive(Clone, Debug)]
pub(crate) struct SimPod {
    pub(crate) id: u64,
    /// Of which version of the workload it is.
    version: u32,
    pub(crate) stage: Stage,
    /// When its node took it, in whole seconds.
    taken: Option<Time>,
    /// When its containers began to run.
    pub(crate) running: Option<Time>,
    /// What a pod that idles had used by then.
    idle_before: f64,
    /// When it became ready, and the workload's counters then.
    ready: Option<(Time, Counters)>,
    due: Time,
}

impl SimPod {
    fn new(id: u64, version: u32) -> SimPod {
        SimPod {
            id,
            version,
            stage: Stage::Unscheduled,
            taken: None,
            running: None,
            idle_before: 0.0,
            ready: None,
            due: NEVER,
        }
    }

    /// CPU time and requests served from its start until this time, when the counters were these.
    pub(crate) fn used(&self, counters: &Counters, at: Time) -> (f64, f64) {
        match &self.ready {
            Some((since, then)) if *since <= at => (
                then.idle_cpu_seconds - self.idle_before + counters.busy_cpu_seconds
                    - then.busy_cpu_seconds,
                counters.served - then.served,
            ),
            _ => (counters.idle_cpu_seconds - self.idle_before, 0.0),
        }
    }

    /// Whether it serves, and has since this time.
    pub(crate) fn serves_since(&self, at: Time) -> bool {
        self.stage == Stage::Ready && self.is_ready_by(at)
    }

    /// Whether it served at this time.
    pub(crate) fn is_ready_by(&self, at: Time) -> bool {
        self.ready.as_ref().is_some_and(|(since, _)| *since <= at)
    }

    fn enter(&mut self, stage: Stage, due: Time) {
        self.stage = stage;
        self.due = due;
    }

    /// The pod as the rules see it.
    pub(crate) fn view(&self) -> Pod {
        let (status, since) = match (self.stage, &self.ready) {
            (Stage::Ready, Some((since, _))) => (ReadyStatus::True, Some(since.whole_seconds())),
            _ => (ReadyStatus::False, self.taken),
        };
        Pod {
            started: self.taken,
            ready: since.map(|since| Ready { status, since }),
            phase: if self.running.is_some() { Phase::Running } else { Phase::Pending },
            deleting: self.stage == Stage::Stopping,
        }
    }
}

/// The pods of a workload.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pods: Vec<SimPod>,
    nodes: Nodes,
    rollouts: Rollouts,
    start_up: Delay,
    readiness: Delay,
    termination: Delay,
    seed: u64,
    next_id: u64,
    spec_replicas: i32,
    alive: usize,
    ready: usize,
    /// Since when all pods serve, if they do.
    all_ready: Option<Time>,
    next_due: Time,
    /// How often pods were changed.
    changes: u64,
}

impl Fleet {
    /// Begins with so many pods that have been ready for long.
    pub(crate) fn new(environment: &Environment, seed: u64, replicas: i32, start: Time) -> Fleet {
        let mut fleet = Fleet {
            pods: Vec::new(),
            nodes: Nodes::new(environment.nodes, seed),
            rollouts: Rollouts::new(&environment.rollouts, start),
            start_up: environment.start_up,
            readiness: environment.readiness,
            termination: environment.termination,
            seed,
            next_id: 0,
            spec_replicas: replicas.max(0),
            alive: 0,
            ready: 0,
            all_ready: None,
            next_due: NEVER,
            changes: 0,
        };
        let long_ago = start.before(Span::seconds(3600)).whole_seconds();
        for _ in 0..replicas.max(0) {
            let mut pod = fleet.create();
            pod.stage = Stage::Ready;
            pod.taken = Some(long_ago);
            pod.running = Some(long_ago);
            pod.ready = Some((long_ago, Counters::default()));
            fleet.pods.push(pod);
        }
        fleet.nodes.begin(fleet.pods.len());
        fleet.refresh();
        fleet
    }

    fn create(&mut self) -> SimPod {
        let id = self.next_id;
        self.next_id += 1;
        SimPod::new(id, self.rollouts.version())
    }

    pub(crate) fn pods(&self) -> &[SimPod] {
        &self.pods
    }

    /// How many pods serve.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// Whether all pods serve, and have since this time.
    pub(crate) fn all_serve_since(&self, at: Time) -> bool {
        self.all_ready.is_some_and(|since| since <= at)
    }

    /// How many pods there are, whatever they do.
    pub(crate) fn existing(&self) -> usize {
        self.pods.len()
    }

    /// How many pods were ever created.
    pub(crate) fn created(&self) -> u64 {
        self.next_id
    }

    /// How often pods were changed: where that is the same, they are.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn scale(&self) -> Scale {
        let status_replicas = i32::try_from(self.alive).unwrap_or(i32::MAX);
        Scale { spec_replicas: self.spec_replicas, status_replicas }
    }

    /// When something happens next by itself.
    pub(crate) fn next_due(&self) -> Time {
        self.next_due
    }

    /// Sets the size: creates what is missing, deletes what is too much.
    pub(crate) fn resize(&mut self, replicas: i32, now: Time) {
        self.spec_replicas = replicas.max(0);
        let wanted = usize::try_from(self.spec_replicas).unwrap_or_default();
        let alive = self.alive;
        // A rollout goes on from the new size by itself.
        let most = wanted + self.rollouts.surge(wanted);
        if !self.rollouts.is_rolling() {
            self.grow(wanted.saturating_sub(alive));
        }
        if alive > most {
            self.delete(alive - most, |_| true, now);
        }
        self.roll(now);
        self.schedule(now);
        self.refresh();
    }

    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let pod = self.create();
            self.pods.push(pod);
        }
    }

    /// Deletes those first that are furthest from serving, and of those that serve the youngest.
    fn delete(&mut self, count: usize, may: impl Fn(&SimPod) -> bool, now: Time) {
        let mut order: Vec<usize> = (0..self.pods.len())
            .filter(|place| self.pods[*place].stage != Stage::Stopping && may(&self.pods[*place]))
            .collect();
        order.sort_by_key(|place| {
            let pod = &self.pods[*place];
            let rank = match pod.stage {
                Stage::Unscheduled => 0,
                Stage::Creating => 1,
                Stage::Running => 2,
                Stage::Ready | Stage::Stopping => 3,
            };
            let since = pod.ready.as_ref().map(|(since, _)| *since);
            (rank, std::cmp::Reverse(since), std::cmp::Reverse(pod.id))
        });
        for place in order.into_iter().take(count) {
            let pod = &mut self.pods[place];
            let due = match pod.stage {
                // What never ran has nothing to end.
                Stage::Unscheduled | Stage::Creating => now,
                _ => now.after(self.termination.draw(self.seed, pod.id, TERMINATION)),
            };
            pod.enter(Stage::Stopping, due);
        }
    }

    /// Lets everything happen that is due.
    pub(crate) fn step(&mut self, now: Time, counters: &Counters) {
        for pod in &mut self.pods {
            if pod.due > now {
                continue;
            }
            match pod.stage {
                Stage::Creating => {
                    let due = now.after(self.readiness.draw(self.seed, pod.id, READINESS));
                    pod.enter(Stage::Running, due);
                    (pod.running, pod.idle_before) = (Some(now), counters.idle_cpu_seconds);
                }
                Stage::Running => {
                    pod.enter(Stage::Ready, NEVER);
                    pod.ready = Some((now, *counters));
                }
                Stage::Unscheduled | Stage::Ready | Stage::Stopping => {}
            }
        }
        self.pods.retain(|pod| pod.stage != Stage::Stopping || pod.due > now);
        self.rollouts.begin(now);
        self.roll(now);
        self.schedule(now);
        self.refresh();
    }

    /// Gives pods that wait for a node one, as far as there is room.
    fn schedule(&mut self, now: Time) {
        let waiting = self.pods.iter().filter(|pod| pod.stage == Stage::Unscheduled).count();
        let placed = self.pods.len() - waiting;
        let room = self.nodes.room(placed, waiting, now);
        let waiting = self.pods.iter_mut().filter(|pod| pod.stage == Stage::Unscheduled);
        for pod in waiting.take(room) {
            let due = now.after(self.start_up.draw(self.seed, pod.id, START_UP));
            pod.enter(Stage::Creating, due);
            pod.taken = Some(now.whole_seconds());
        }
    }

    fn refresh(&mut self) {
        self.changes += 1;
        self.alive = self.pods.iter().filter(|pod| pod.stage != Stage::Stopping).count();
        self.ready = self.pods.iter().filter(|pod| pod.stage == Stage::Ready).count();
        self.all_ready = self
            .pods
            .iter()
            .map(
                |pod| {
                    if pod.serves_since(NEVER) { pod.ready.map(|(since, _)| since) } else { None }
                },
            )
            .try_fold(Time(i64::MIN), |latest, since| Some(latest.max(since?)));
        let pods = self.pods.iter().map(|pod| pod.due).min().unwrap_or(NEVER);
        self.next_due = pods.min(self.nodes.next_due()).min(self.rollouts.next_due());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn environment() -> Environment {
        Environment {
            start_up: Delay::Fixed { seconds: 4.0 },
            readiness: Delay::Fixed { seconds: 3.0 },
            termination: Delay::Fixed { seconds: 5.0 },
            ..Environment::default()
        }
    }

    pub(super) fn at(seconds: i64) -> Time {
        Time(0).after(Span::seconds(seconds))
    }

    #[test]
    fn pods_start_become_ready_and_end() {
        let zero = Counters::default();
        let mut fleet = Fleet::new(&environment(), 1, 2, at(0));
        assert_eq!((fleet.ready(), fleet.next_due()), (2, NEVER));
        fleet.resize(3, at(10));
        assert_eq!((fleet.ready(), fleet.next_due()), (2, at(14)));
        assert_eq!(fleet.pods()[2].view().phase, Phase::Pending);
        fleet.step(at(14), &zero);
        assert_eq!((fleet.pods()[2].view().phase, fleet.next_due()), (Phase::Running, at(17)));
        fleet.step(at(17), &zero);
        assert_eq!((fleet.ready(), fleet.next_due()), (3, NEVER));
        fleet.resize(1, at(20));
        assert_eq!((fleet.ready(), fleet.existing()), (1, 3));
        assert_eq!(fleet.scale(), Scale { spec_replicas: 1, status_replicas: 1 });
        assert_eq!(fleet.pods()[0].stage, Stage::Ready, "the oldest stays");
        fleet.step(at(25), &zero);
        assert_eq!((fleet.existing(), fleet.created()), (1, 3));
    }

    #[test]
    fn what_is_furthest_from_serving_goes_first() {
        let zero = Counters::default();
        let mut fleet = Fleet::new(&environment(), 1, 1, at(0));
        fleet.resize(2, at(0));
        fleet.step(at(4), &zero);
        fleet.resize(3, at(5));
        fleet.resize(2, at(6));
        assert_eq!(fleet.pods().iter().map(|pod| pod.id).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(fleet.pods()[2].stage, Stage::Stopping);
        fleet.step(at(6), &zero);
        assert_eq!(fleet.existing(), 2, "what never ran is gone at once");
    }
}
