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
use std::collections::VecDeque;

/// What the draws of a pod's delays are for.
const START_UP: u64 = 101;
const READINESS: u64 = 102;
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

/// One scrape of one pod.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scrape {
    pub(crate) at: Time,
    pub(crate) visible: Time,
    /// It failed: until the next one nothing is known of the pod.
    pub(crate) lost: bool,
    pub(crate) cpu_seconds: f64,
    pub(crate) served: f64,
    pub(crate) memory_bytes: f64,
}

/// One pod.
#[derive(Clone, Debug)]
pub(crate) struct SimPod {
    pub(crate) id: u64,
    /// Of which version of the workload it is.
    version: u32,
    pub(crate) stage: Stage,
    /// When its node took it.
    pub(crate) taken: Option<Time>,
    /// When its containers began to run.
    pub(crate) running: Option<Time>,
    ready_since: Option<Time>,
    due: Time,
    /// The workload's counters when the stage began, and what was counted before.
    mark: Counters,
    cpu_seconds: f64,
    served: f64,
    pub(crate) resource: VecDeque<Scrape>,
    pub(crate) custom: VecDeque<Scrape>,
}

impl SimPod {
    fn new(id: u64, version: u32) -> SimPod {
        SimPod {
            id,
            version,
            stage: Stage::Unscheduled,
            taken: None,
            running: None,
            ready_since: None,
            due: NEVER,
            mark: Counters::default(),
            cpu_seconds: 0.0,
            served: 0.0,
            resource: VecDeque::new(),
            custom: VecDeque::new(),
        }
    }

    /// CPU time and requests served since its start.
    pub(crate) fn used(&self, counters: &Counters) -> (f64, f64) {
        match self.stage {
            Stage::Unscheduled | Stage::Creating => (0.0, 0.0),
            Stage::Ready => (
                self.cpu_seconds + counters.busy_cpu_seconds - self.mark.busy_cpu_seconds,
                self.served + counters.served - self.mark.served,
            ),
            Stage::Running | Stage::Stopping => {
                let idle = counters.idle_cpu_seconds - self.mark.idle_cpu_seconds;
                (self.cpu_seconds + idle, self.served)
            }
        }
    }

    /// Whether its containers run, so that it can be scraped.
    pub(crate) fn is_running(&self) -> bool {
        match self.stage {
            Stage::Running | Stage::Ready => true,
            Stage::Stopping => self.running.is_some(),
            Stage::Unscheduled | Stage::Creating => false,
        }
    }

    fn enter(&mut self, stage: Stage, due: Time, counters: &Counters) {
        (self.cpu_seconds, self.served) = self.used(counters);
        self.mark = *counters;
        self.stage = stage;
        self.due = due;
    }

    /// The pod as the rules see it.
    pub(crate) fn view(&self) -> Pod {
        let taken = self.taken.map(Time::whole_seconds);
        let (status, since) = match (self.stage, self.ready_since) {
            (Stage::Ready, Some(since)) => (ReadyStatus::True, Some(since)),
            _ => (ReadyStatus::False, taken),
        };
        let running = self.running.is_some();
        Pod {
            started: taken,
            ready: since.map(|since| Ready { status, since }),
            phase: if running { Phase::Running } else { Phase::Pending },
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
    ready: usize,
    next_due: Time,
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
            ready: 0,
            next_due: NEVER,
        };
        let long_ago = start.before(Span::seconds(3600)).whole_seconds();
        for _ in 0..replicas.max(0) {
            let mut pod = fleet.create();
            pod.stage = Stage::Ready;
            pod.taken = Some(long_ago);
            pod.running = Some(long_ago);
            pod.ready_since = Some(long_ago);
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

    pub(crate) fn pods_mut(&mut self) -> &mut [SimPod] {
        &mut self.pods
    }

    /// How many pods serve.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// How many pods there are, whatever they do.
    pub(crate) fn existing(&self) -> usize {
        self.pods.len()
    }

    /// How many pods were ever created.
    pub(crate) fn created(&self) -> u64 {
        self.next_id
    }

    pub(crate) fn scale(&self) -> Scale {
        let alive = self.pods.iter().filter(|pod| pod.stage != Stage::Stopping).count();
        let status_replicas = i32::try_from(alive).unwrap_or(i32::MAX);
        Scale { spec_replicas: self.spec_replicas, status_replicas }
    }

    /// When something happens next by itself.
    pub(crate) fn next_due(&self) -> Time {
        self.next_due
    }

    /// Sets the size: creates what is missing, deletes what is too much.
    pub(crate) fn resize(&mut self, replicas: i32, now: Time, counters: &Counters) {
        self.spec_replicas = replicas.max(0);
        let wanted = usize::try_from(self.spec_replicas).unwrap_or_default();
        let alive = self.pods.iter().filter(|pod| pod.stage != Stage::Stopping).count();
        // A rollout goes on from the new size by itself.
        let most = wanted + self.rollouts.surge(wanted);
        if !self.rollouts.is_rolling() {
            self.grow(wanted.saturating_sub(alive));
        }
        if alive > most {
            self.delete(alive - most, |_| true, now, counters);
        }
        self.roll(now, counters);
        self.schedule(now, counters);
        self.refresh();
    }

    fn grow(&mut self, count: usize) {
        for _ in 0..count {
            let pod = self.create();
            self.pods.push(pod);
        }
    }

    /// Deletes those first that are furthest from serving, and of those that serve the youngest.
    fn delete(
        &mut self,
        count: usize,
        may: impl Fn(&SimPod) -> bool,
        now: Time,
        counters: &Counters,
    ) {
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
            (rank, std::cmp::Reverse(pod.ready_since), std::cmp::Reverse(pod.id))
        });
        for place in order.into_iter().take(count) {
            let pod = &mut self.pods[place];
            let due = match pod.stage {
                // What never ran has nothing to end.
                Stage::Unscheduled | Stage::Creating => now,
                _ => now.after(self.termination.draw(self.seed, pod.id, TERMINATION)),
            };
            pod.enter(Stage::Stopping, due, counters);
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
                    pod.enter(Stage::Running, due, counters);
                    pod.running = Some(now);
                }
                Stage::Running => {
                    pod.enter(Stage::Ready, NEVER, counters);
                    pod.ready_since = Some(now.whole_seconds());
                }
                Stage::Unscheduled | Stage::Ready | Stage::Stopping => {}
            }
        }
        self.pods.retain(|pod| pod.stage != Stage::Stopping || pod.due > now);
        self.rollouts.begin(now);
        self.roll(now, counters);
        self.schedule(now, counters);
        self.refresh();
    }

    /// Gives pods that wait for a node one, as far as there is room.
    fn schedule(&mut self, now: Time, counters: &Counters) {
        let waiting = self.pods.iter().filter(|pod| pod.stage == Stage::Unscheduled).count();
        let placed = self.pods.len() - waiting;
        let room = self.nodes.room(placed, waiting, now);
        let waiting = self.pods.iter_mut().filter(|pod| pod.stage == Stage::Unscheduled);
        for pod in waiting.take(room) {
            let due = now.after(self.start_up.draw(self.seed, pod.id, START_UP));
            pod.enter(Stage::Creating, due, counters);
            pod.taken = Some(now);
        }
    }

    fn refresh(&mut self) {
        self.ready = self.pods.iter().filter(|pod| pod.stage == Stage::Ready).count();
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
        fleet.resize(3, at(10), &zero);
        assert_eq!((fleet.ready(), fleet.next_due()), (2, at(14)));
        assert_eq!(fleet.pods()[2].view().phase, Phase::Pending);
        fleet.step(at(14), &zero);
        assert_eq!((fleet.pods()[2].view().phase, fleet.next_due()), (Phase::Running, at(17)));
        fleet.step(at(17), &zero);
        assert_eq!((fleet.ready(), fleet.next_due()), (3, NEVER));
        fleet.resize(1, at(20), &zero);
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
        fleet.resize(2, at(0), &zero);
        fleet.step(at(4), &zero);
        fleet.resize(3, at(5), &zero);
        fleet.resize(2, at(6), &zero);
        assert_eq!(fleet.pods().iter().map(|pod| pod.id).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(fleet.pods()[2].stage, Stage::Stopping);
        fleet.step(at(6), &zero);
        assert_eq!(fleet.existing(), 2, "what never ran is gone at once");
    }
}
