//! Decides which of a stateful set's pods to create or delete next: a pure function of the set, its
//! pods and its two revisions.

use super::identity::{ordinal, revision_of};
use crate::controllers::deployment::limits::scaled;
use crate::controllers::pod::{Phase, Pod};
use crate::controllers::replicas::plan::next_available;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetStatus};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The most pods that are created or deleted in one pass.
const BURST: usize = 500;

/// What to decide about.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The set.
    pub set: &'a StatefulSet,
    /// Its pods, those being deleted included.
    pub pods: &'a [Arc<Pod>],
    /// The revision that the set comes from.
    pub current: &'a str,
    /// The revision that the set goes to.
    pub update: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// What to do, in this order.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Pods to create or delete.
    pub actions: Vec<Action>,
    /// The status to report.
    pub status: StatefulSetStatus,
    /// When to look again even if nothing changes.
    pub after: Option<Duration>,
}

/// A pod to create or delete.
#[derive(Clone, Debug)]
pub enum Action {
    /// A pod that is missing.
    Create {
        /// Its number.
        ordinal: i32,
        /// Whether it is made from the revision that the set comes from.
        from_current: bool,
    },
    /// A pod that must go.
    Delete(Arc<Pod>),
}

/// Decides.
#[must_use]
pub fn plan(input: &Input<'_>) -> Plan {
    let mut turn = Turn::new(input);
    let settled = turn.fill() && turn.empty();
    if settled {
        turn.renew();
    }
    turn.finish()
}

struct Turn<'a> {
    input: &'a Input<'a>,
    start: i32,
    wanted: i32,
    ordered: bool,
    min_ready: i32,
    /// The pods with a number that is wanted.
    kept: BTreeMap<i32, &'a Arc<Pod>>,
    /// The pods with a number that is not, the highest first.
    condemned: Vec<&'a Arc<Pod>>,
    actions: Vec<Action>,
    status: StatefulSetStatus,
}

impl<'a> Turn<'a> {
    fn new(input: &'a Input<'a>) -> Turn<'a> {
        let spec = &input.set.spec;
        let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or(0);
        let wanted = spec.replicas.unwrap_or(1).max(0);
        let end = start.saturating_add(wanted);
        let numbered = input.pods.iter().filter_map(|pod| Some((ordinal(input.set, pod)?, pod)));
        let (kept, condemned): (Vec<_>, Vec<_>) =
            numbered.partition(|(number, _)| (start..end).contains(number));
        let mut condemned: Vec<_> = condemned;
        condemned.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        let mut turn = Turn {
            input,
            start,
            wanted,
            ordered: spec.pod_management_policy.as_deref() != Some("Parallel"),
            min_ready: spec.min_ready_seconds.unwrap_or(0),
            kept: kept.into_iter().collect(),
            condemned: condemned.into_iter().map(|(_, pod)| pod).collect(),
            actions: Vec::new(),
            status: StatefulSetStatus::default(),
        };
        turn.status = turn.counted();
        turn
    }

    fn counted(&self) -> StatefulSetStatus {
        let old = self.input.set.status.as_ref();
        let pods: Vec<&Pod> =
            self.kept.values().chain(&self.condemned).map(|pod| pod.as_ref()).collect();
        let count = |test: &dyn Fn(&Pod) -> bool| {
            i32::try_from(pods.iter().filter(|pod| test(pod)).count()).unwrap_or(i32::MAX)
        };
        let at = |revision: &str| {
            count(&|pod| revision_of(pod) == Some(revision) && !pod.is_terminating())
        };
        let (now, min_ready) = (self.input.now, self.min_ready);
        StatefulSetStatus {
            replicas: count(&|_| true),
            ready_replicas: Some(count(&runs)),
            available_replicas: Some(count(&|pod| runs(pod) && pod.is_available(min_ready, now))),
            current_replicas: Some(at(self.input.current)),
            updated_replicas: Some(at(self.input.update)),
            current_revision: Some(self.input.current.to_owned()),
            update_revision: Some(self.input.update.to_owned()),
            observed_generation: self.input.set.metadata.generation,
            collision_count: old.and_then(|old| old.collision_count),
            conditions: old.and_then(|old| old.conditions.clone()),
        }
    }

    fn is_rolling(&self) -> bool {
        let strategy = self.input.set.spec.update_strategy.as_ref();
        let kind = strategy.and_then(|strategy| strategy.type_.as_deref());
        kind.is_none_or(|kind| kind == "RollingUpdate")
    }

    fn partition(&self) -> i32 {
        let strategy = self.input.set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        rolling.and_then(|rolling| rolling.partition).unwrap_or(0).max(0)
    }

    fn max_unavailable(&self) -> i32 {
        let strategy = self.input.set.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let value = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        value.map_or(1, |value| scaled(value, self.wanted, true)).max(1)
    }

    /// Creates what is missing and replaces what has ended; in an ordered set one after the other,
    /// each only when all before it work. Says whether the set may go on to its next concern.
    fn fill(&mut self) -> bool {
        for number in self.start..self.start.saturating_add(self.wanted) {
            if self.actions.len() >= BURST {
                return false;
            }
            let pod = self.kept.get(&number).copied();
            match pod {
                None => self.create(number),
                Some(pod) if pod.is_ended() && !pod.is_terminating() => self.delete(pod),
                Some(pod) if self.works(pod) => continue,
                Some(_) => {}
            }
            if self.ordered {
                return false;
            }
        }
        true
    }

    fn works(&self, pod: &Pod) -> bool {
        is_healthy(pod) && pod.is_available(self.min_ready, self.input.now)
    }

    fn create(&mut self, number: i32) {
        let from_current =
            self.is_rolling() && number < self.start.saturating_add(self.partition());
        self.status.replicas = self.status.replicas.saturating_add(1);
        let same = self.input.current == self.input.update;
        if from_current || same {
            raise(&mut self.status.current_replicas, 1);
        }
        if !from_current || same {
            raise(&mut self.status.updated_replicas, 1);
        }
        self.actions.push(Action::Create { ordinal: number, from_current });
    }

    fn delete(&mut self, pod: &Arc<Pod>) {
        if revision_of(pod) == Some(self.input.current) {
            raise(&mut self.status.current_replicas, -1);
        }
        if revision_of(pod) == Some(self.input.update) {
            raise(&mut self.status.updated_replicas, -1);
        }
        self.actions.push(Action::Delete(Arc::clone(pod)));
    }

    /// Deletes pods with numbers that are not wanted, in an ordered set the highest first, each only
    /// when the one above it is gone and those below it work.
    fn empty(&mut self) -> bool {
        let unhealthy = self.condemned.iter().rev().find(|pod| !is_healthy(pod)).copied();
        for pod in self.condemned.clone() {
            if self.actions.len() >= BURST {
                return false;
            }
            if pod.is_terminating() {
                if self.ordered {
                    return false;
                }
                continue;
            }
            let blocked = unhealthy.is_some_and(|unhealthy| unhealthy.uid() != pod.uid());
            if self.ordered && !is_healthy(pod) && blocked {
                return false;
            }
            self.delete(pod);
            if self.ordered {
                return false;
            }
        }
        true
    }

    /// Deletes pods of an old revision, the highest first, so that they come back as new ones; at no
    /// time more than may be unavailable.
    fn renew(&mut self) {
        if !self.is_rolling() || self.input.set.metadata.deletion_timestamp.is_some() {
            return;
        }
        let lowest = self.start.saturating_add(self.partition());
        let mut budget = self.max_unavailable();
        let candidates: Vec<&Arc<Pod>> =
            self.kept.range(lowest..).rev().map(|(_, pod)| *pod).collect();
        for pod in candidates {
            if budget <= 0 {
                return;
            }
            if revision_of(pod) != Some(self.input.update) && !pod.is_terminating() {
                self.delete(pod);
                budget -= 1;
            } else if !self.works(pod) {
                budget -= 1;
            }
        }
    }

    fn finish(mut self) -> Plan {
        let all = Some(self.wanted);
        if self.is_rolling()
            && self.status.replicas == self.wanted
            && self.status.updated_replicas == all
            && self.status.ready_replicas == all
        {
            self.status.current_replicas = self.status.updated_replicas;
            self.status.current_revision.clone_from(&self.status.update_revision);
        }
        let after = next_available(self.input.pods, self.min_ready, self.input.now);
        Plan { actions: self.actions, status: self.status, after }
    }
}

fn raise(count: &mut Option<i32>, by: i32) {
    *count = Some(count.unwrap_or(0).saturating_add(by).max(0));
}

fn runs(pod: &Pod) -> bool {
    pod.status.phase == Phase::Running && pod.is_ready()
}

fn is_healthy(pod: &Pod) -> bool {
    runs(pod) && !pod.is_terminating()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
