//! New versions of a workload: its pods are replaced step by step, within the bounds of a Deployment's
//! rolling update. A change of size meanwhile goes to the new version; Deployments spread it over both.

use super::{Fleet, NEVER, SimPod, Stage};
use crate::environment::{self, seconds};
use podscale_core::Time;
use std::collections::VecDeque;

/// Rollouts that are under way and to come.
#[derive(Clone, Debug)]
pub(super) struct Rollouts {
    to_come: VecDeque<(Time, environment::Rollout)>,
    under_way: Option<environment::Rollout>,
    version: u32,
}

/// How many pods there are of the new version and of the others, and how many of each are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    new: usize,
    new_ready: usize,
    old: usize,
    old_ready: usize,
}

impl Rollouts {
    pub(super) fn new(rollouts: &[environment::Rollout], start: Time) -> Rollouts {
        let mut to_come: Vec<(Time, environment::Rollout)> =
            rollouts.iter().map(|r| (start.after(seconds(r.at_seconds)), *r)).collect();
        to_come.sort_by_key(|(at, _)| *at);
        Rollouts { to_come: to_come.into(), under_way: None, version: 0 }
    }

    pub(super) fn version(&self) -> u32 {
        self.version
    }

    pub(super) fn is_rolling(&self) -> bool {
        self.under_way.is_some()
    }

    pub(super) fn next_due(&self) -> Time {
        self.to_come.front().map_or(NEVER, |(at, _)| *at)
    }

    /// Begins what is due.
    pub(super) fn begin(&mut self, now: Time) {
        while let Some((_, rollout)) = self.to_come.pop_front_if(|(at, _)| *at <= now) {
            self.under_way = Some(rollout);
            self.version = self.version.saturating_add(1);
        }
    }

    /// How many pods more than wanted there may be now.
    pub(super) fn surge(&self, wanted: usize) -> usize {
        // In range: a part of a number of pods.
        self.under_way.map_or(0, |rollout| (rollout.max_surge * wanted as f64).ceil() as usize)
    }

    /// How many pods must stay ready.
    fn least(&self, wanted: usize) -> usize {
        let part = self.under_way.map_or(0.0, |rollout| rollout.max_unavailable);
        let unavailable = (part * wanted as f64).floor() as usize;
        // If nothing could move, one pod may be unavailable.
        let stuck = unavailable == 0 && self.surge(wanted) == 0;
        wanted.saturating_sub(if stuck { 1 } else { unavailable })
    }
}

impl Fleet {
    /// Goes as far with a rollout as can be gone now.
    pub(super) fn roll(&mut self, now: Time) {
        if !self.rollouts.is_rolling() {
            return;
        }
        let wanted = usize::try_from(self.spec_replicas).unwrap_or_default();
        let most = wanted + self.rollouts.surge(wanted);
        let least = self.rollouts.least(wanted);
        let version = self.rollouts.version();
        loop {
            let Counts { new, new_ready, old, old_ready } = self.counts();
            if old == 0 && new == wanted {
                self.rollouts.under_way = None;
                return;
            }
            let more = most.saturating_sub(new + old).min(wanted.saturating_sub(new));
            self.grow(more);
            let surplus = new.saturating_sub(wanted);
            self.delete(surplus, |pod| pod.version == version, now);
            // Pods that are not ready cost nothing; of the others as many go as are not needed.
            let budget = (new + more + old).saturating_sub(least + (new + more - new_ready));
            let idle = (old - old_ready).min(budget);
            let spare = (budget - idle).min((new_ready + old_ready).saturating_sub(least));
            let ready = spare.min(old_ready);
            self.delete(idle + ready, |pod| pod.version != version, now);
            if more + surplus + idle + ready == 0 {
                return;
            }
        }
    }

    fn counts(&self) -> Counts {
        let version = self.rollouts.version();
        let mut counts = Counts::default();
        let alive = |pod: &&SimPod| pod.stage != Stage::Stopping;
        for pod in self.pods.iter().filter(alive) {
            let ready = usize::from(pod.stage == Stage::Ready);
            if pod.version == version {
                counts.new += 1;
                counts.new_ready += ready;
            } else {
                counts.old += 1;
                counts.old_ready += ready;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, environment};
    use super::*;
    use crate::environment::Environment;
    use crate::workload::Counters;

    #[test]
    fn pods_are_replaced_step_by_step() {
        let rollout =
            environment::Rollout { at_seconds: 10.0, max_surge: 0.25, max_unavailable: 0.25 };
        let environment = Environment { rollouts: vec![rollout], ..environment() };
        let zero = Counters::default();
        let mut fleet = Fleet::new(&environment, 1, 4, at(0));
        assert_eq!(fleet.next_due(), at(10));
        let mut courses = Vec::new();
        while fleet.next_due() < NEVER {
            let now = fleet.next_due();
            fleet.step(now, &zero);
            assert!(fleet.ready() >= 3, "at least three serve at {now:?}");
            assert!(fleet.scale().status_replicas <= 5);
            let Counts { new, old, .. } = fleet.counts();
            courses.push((now.since(at(0)).0 / 1_000_000, new, old));
        }
        courses.dedup_by_key(|(_, new, old)| (*new, *old));
        assert_eq!(courses, [(10, 2, 3), (17, 4, 1), (24, 4, 0)]);
        assert!(!fleet.rollouts.is_rolling());
        assert_eq!(fleet.created(), 8);
    }

    #[test]
    fn a_size_that_changes_meanwhile_is_reached() {
        let rollout =
            environment::Rollout { at_seconds: 0.0, max_surge: 0.25, max_unavailable: 0.0 };
        let environment = Environment { rollouts: vec![rollout], ..environment() };
        let zero = Counters::default();
        for size in [0, 1, 2, 9] {
            let mut fleet = Fleet::new(&environment, 1, 4, at(0));
            fleet.step(at(0), &zero);
            fleet.resize(size, at(1));
            while fleet.next_due() < NEVER {
                fleet.step(fleet.next_due(), &zero);
            }
            let Counts { new, old, .. } = fleet.counts();
            assert_eq!((new, old), (usize::try_from(size).unwrap(), 0));
        }
    }
}
