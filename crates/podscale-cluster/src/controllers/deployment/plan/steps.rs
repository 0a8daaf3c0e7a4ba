//! The steps of a rollout: a change of size, a rolling update, a recreation.

use super::Rollout;
use crate::controllers::deployment::limits::is_rolling;
use crate::controllers::deployment::revision;
use crate::controllers::deployment::scale::proportional;
use crate::controllers::deployment::status::{actual_of, available_of, is_complete, replicas_of};
use k8s_openapi::api::apps::v1::ReplicaSet;

impl Rollout<'_> {
    /// Spreads a change of size over the replica sets without hastening the rollout.
    pub(super) fn scale(&mut self) {
        let mut active: Vec<usize> =
            (0..self.drafts.len()).filter(|index| self.replicas(*index) > 0).collect();
        let single = match active[..] {
            [] => self.newest.or_else(|| self.drafts.len().checked_sub(1)),
            [one] => Some(one),
            _ => None,
        };
        if let Some(single) = single {
            self.resize(single, self.wanted);
            return;
        }
        if self.newest.is_some_and(|newest| self.is_saturated(newest)) {
            active.retain(|index| Some(*index) != self.newest);
            for index in active {
                self.resize(index, 0);
            }
            return;
        }
        if active.is_empty() || !is_rolling(self.spec) {
            return;
        }
        // The newest set counts as the youngest, whatever its time of creation.
        active.sort_by_key(|index| Some(*index) == self.newest);
        let most = self.wanted.saturating_add(self.limits.max_surge);
        let sets: Vec<&ReplicaSet> = active.iter().map(|index| &self.drafts[*index].set).collect();
        let reported = self.status.replicas.unwrap_or(0);
        let allowed = if self.wanted > 0 { most } else { 0 };
        let sizes = proportional(&sets, self.wanted, most, allowed, reported);
        for (index, size) in active.into_iter().zip(sizes) {
            let noted = revision::desired(&self.drafts[index].set.metadata);
            let noted_most = revision::most(&self.drafts[index].set.metadata);
            if self.replicas(index) != size
                || noted != Some(self.wanted)
                || noted_most != Some(most)
            {
                self.force(index, size);
            }
        }
    }

    fn is_saturated(&self, index: usize) -> bool {
        let set = &self.drafts[index].set;
        replicas_of(set) == self.wanted
            && revision::desired(&set.metadata) == Some(self.wanted)
            && available_of(set) == self.wanted
    }

    /// One step of a rolling update: up if there is room, else down if enough pods are available.
    pub(super) fn roll(&mut self) {
        let newest = self.newest.unwrap_or_else(|| self.create_set());
        if self.grow_newest(newest) || self.shrink_old(newest) {
            return;
        }
        if is_complete(self.input.deployment, &self.status) {
            self.clean_up();
        }
    }

    fn grow_newest(&mut self, newest: usize) -> bool {
        let size = self.replicas(newest);
        if size >= self.wanted {
            return self.resize(newest, self.wanted);
        }
        let surge = self.wanted.saturating_add(self.limits.max_surge).saturating_sub(self.total());
        if surge <= 0 {
            return false;
        }
        self.resize(newest, size.saturating_add(surge.min(self.wanted - size)))
    }

    fn shrink_old(&mut self, newest: usize) -> bool {
        let least = self.wanted.saturating_sub(self.limits.max_unavailable);
        let pending = self.replicas(newest).saturating_sub(self.available(newest));
        let mut budget = self.total().saturating_sub(least).saturating_sub(pending);
        let mut shrunk = false;
        // Pods that do not work cost nothing, and would block the rollout.
        for index in self.old() {
            let broken = self.replicas(index).saturating_sub(self.available(index));
            let take = broken.min(budget);
            if take > 0 {
                budget -= take;
                shrunk |= self.resize(index, self.replicas(index) - take);
            }
        }
        let available = (0..self.drafts.len())
            .fold(0_i32, |sum, index| self.available(index).saturating_add(sum));
        budget = budget.min(available.saturating_sub(least));
        for index in self.old() {
            let take = self.replicas(index).min(budget);
            if take > 0 {
                budget -= take;
                shrunk |= self.resize(index, self.replicas(index) - take);
            }
        }
        shrunk
    }

    /// One step of a recreation: all old pods go before the first new one comes.
    pub(super) fn recreate(&mut self) {
        let mut shrunk = false;
        for index in self.old() {
            shrunk |= self.resize(index, 0);
        }
        if shrunk || self.old_pods_run() {
            return;
        }
        let newest = self.newest.unwrap_or_else(|| self.create_set());
        self.resize(newest, self.wanted);
        if is_complete(self.input.deployment, &self.status) {
            self.clean_up();
        }
    }

    fn old_pods_run(&self) -> bool {
        self.old().any(|index| {
            let set = &self.drafts[index].set;
            let uid = set.metadata.uid.as_deref().unwrap_or_default();
            actual_of(set) > 0 || self.input.running.get(uid).is_some_and(|count| *count > 0)
        })
    }
}
