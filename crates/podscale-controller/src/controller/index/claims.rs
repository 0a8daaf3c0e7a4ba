//! Which autoscalers have the same target. All count, also those that are not managed here: whoever
//! acts on them would pull the target to and fro with us.
//!
//! Kubernetes' own autoscalers go first, as their controller knows of no others; among the rest, the
//! oldest.

use super::entry::Entry;
use super::{Index, State};
use crate::controller::act::Release;
use crate::controller::manage::Manage;
use crate::controller::ownership::Management;
use crate::dialect::{Key, Kind, Managed};
use podscale_api::translate::scaled_object::own_hpa::is_made_here;
use podscale_client::watch::Change;
use podscale_core::Time;
use podscale_core::model::TargetRef;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// A target, as a number: two of them have the same once in 10^10 clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct TargetNumber(u64);

impl TargetNumber {
    /// The target of an object; one whose spec cannot be acted on is in nobody's way.
    pub(super) fn of(managed: &Managed) -> Option<TargetNumber> {
        if managed.model.invalid().is_some() {
            return None;
        }
        let TargetRef { api_version, kind, name } = &managed.model.target;
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        // A kind may also be written in lower case.
        let kind = kind.to_ascii_lowercase();
        let mut hasher = DefaultHasher::new();
        (&*managed.key.namespace, group, kind, &**name).hash(&mut hasher);
        Some(TargetNumber(hasher.finish()))
    }
}

/// Which autoscalers each target has, and those that are not managed here. Nearly all targets have one or two.
#[derive(Default)]
pub(super) struct Claims {
    by_target: HashMap<TargetNumber, SmallVec<[Key; 1]>>,
    unmanaged: HashMap<Key, Claim>,
}

struct Claim {
    target: TargetNumber,
    created: Option<i64>,
    owner: Option<Arc<str>>,
    /// Whether it is an HPA that was made here for its owner.
    is_made_here: bool,
}

impl Claims {
    /// Takes in the objects of a change that are not managed here.
    pub(super) fn take_in(
        &mut self,
        kind: &'static Kind,
        change: &Change<Managed>,
        manage: &Manage,
    ) {
        match change {
            Change::All(all) => {
                let of_kind = |key: &&Key| key.kind == kind;
                let known: Vec<Key> = self.unmanaged.keys().filter(of_kind).cloned().collect();
                known.iter().for_each(|key| self.forget(key));
                all.iter().for_each(|managed| self.take_in_one(managed, manage));
            }
            Change::Applied(managed) => self.take_in_one(managed, manage),
            Change::Deleted(managed) => self.forget(&managed.key),
        }
    }

    fn take_in_one(&mut self, managed: &Managed, manage: &Manage) {
        self.forget(&managed.key);
        if let Some(target) = TargetNumber::of(managed)
            && !manage.manages(managed)
        {
            let (created, owner) = (created(managed), owner(managed));
            let is_made_here = managed.key.kind.is_native() && is_made_here(managed.metadata());
            self.add(Some(target), &managed.key);
            let claim = Claim { target, created, owner, is_made_here };
            self.unmanaged.insert(managed.key.clone(), claim);
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(claim) = self.unmanaged.remove(key) {
            self.remove(Some(claim.target), key);
        }
    }

    /// An autoscaler has this target. One that was managed and is not any more is there twice for a moment.
    pub(super) fn add(&mut self, target: Option<TargetNumber>, key: &Key) {
        if let Some(target) = target {
            self.by_target.entry(target).or_default().push(key.clone());
        }
    }

    /// An autoscaler does not have this target any more.
    pub(super) fn remove(&mut self, target: Option<TargetNumber>, key: &Key) {
        if let Some(target) = target
            && let Some(keys) = self.by_target.get_mut(&target)
        {
            if let Some(place) = keys.iter().position(|known| known == key) {
                keys.swap_remove(place);
            }
            if keys.is_empty() {
                self.by_target.remove(&target);
            }
        }
    }

    /// An autoscaler has another target than before, or the same.
    pub(super) fn move_to(
        &mut self,
        from: &mut Option<TargetNumber>,
        to: Option<TargetNumber>,
        key: &Key,
    ) {
        if *from != to {
            self.remove(*from, key);
            self.add(to, key);
            *from = to;
        }
    }

    /// The autoscalers of a target.
    fn of(&self, target: TargetNumber) -> &[Key] {
        self.by_target.get(&target).map_or(&[], SmallVec::as_slice)
    }
}

fn created(managed: &Managed) -> Option<i64> {
    managed.metadata().creation_timestamp.map(|at| at.0.0)
}

/// The object that made an autoscaler, such as KEDA's ScaledObject, with its kind.
fn owner(managed: &Managed) -> Option<Arc<str>> {
    let owners = managed.metadata().owner_references.iter();
    let owner = owners.max_by_key(|owner| owner.controller == Some(true))?;
    Some(format!("{} {:?}", owner.kind, owner.name).into())
}

impl State {
    /// The autoscaler that goes before this one, and what has made it.
    pub(super) fn precedent_and_owner(&self, key: &Key) -> (Option<Key>, Option<Arc<str>>) {
        let Some(first) = self.precedent(key) else { return (None, None) };
        let managed = self.entries.get(&first).map(|entry| owner(&entry.managed));
        let unmanaged = || self.claims.unmanaged.get(&first).map(|claim| claim.owner.clone());
        let owner = managed.or_else(unmanaged).flatten();
        (Some(first), owner)
    }

    /// The autoscaler that has the same target as this one and goes before it, if there is one. Those
    /// of Kubernetes itself give way to nobody here.
    pub(super) fn precedent(&self, key: &Key) -> Option<Key> {
        let own = self.entries.get(key).filter(|entry| !entry.gone)?;
        let claimants = self.claims.of(own.target?);
        if claimants.len() < 2 || key.kind.is_native() {
            return None;
        }
        let rank = |key: &Key, created| (!key.kind.is_native(), created, key.clone());
        let own_rank = rank(key, created(&own.managed));
        let ranked = |claimant: &Key| {
            let unmanaged = || self.claims.unmanaged.get(claimant).map(|claim| claim.created);
            let entry = self.entries.get(claimant).filter(|entry| !entry.gone);
            let created = entry.map(|entry| created(&entry.managed)).or_else(unmanaged)?;
            Some(rank(claimant, created))
        };
        let others = claimants.iter().filter_map(ranked);
        // Where HPAs stand beside objects, one that was made for it is not in its way.
        let wanted = own.managed.wire.hpa_name();
        let is_beside = |other: &Key| {
            let Some(wanted) = wanted.as_deref() else { return false };
            let made = self.claims.unmanaged.get(other).filter(|claim| claim.is_made_here);
            let of_it = made.and_then(|claim| claim.owner.as_deref());
            let is_wanted = *wanted == *other.name && other.kind.is_native();
            is_wanted || of_it == Some(&*format!("{} {:?}", key.kind.name, &*key.name))
        };
        let others = others.filter(|(_, _, other)| !is_beside(other));
        let first = others.filter(|other| *other < own_rank).min()?;
        Some(first.2)
    }
}

impl Entry {
    /// What to do with an object, given which autoscaler goes before it, if there is one.
    pub(super) fn management(&mut self, precedent: Option<&Key>) -> Management {
        match precedent {
            None => {
                self.reported_precedent = None;
                self.ownership.management()
            }
            Some(other) if self.reported_precedent.as_ref() == Some(other) => Management::Ceded,
            Some(_) => Management::SteppingBack,
        }
    }
}

/// What the condition and the event say.
pub(in crate::controller) fn same_target_message(
    other: &Key,
    behind: Option<&str>,
    target: &TargetRef,
) -> String {
    let behind = behind.map(|owner| format!(" of {owner}")).unwrap_or_default();
    format!(
        "{} {:?}{behind} scales {} {:?} as well; Podscale writes nothing here until that ends. Delete \
         one of the two, or give it another target",
        other.kind.name, other.name, target.kind, target.name
    )
}

impl Index {
    /// Takes in whether an object's target belongs to it. One that was taken out of its ownership and
    /// belongs to it again has another controller that puts it there.
    pub(in crate::controller) fn released(
        &self,
        key: &Key,
        uid: &str,
        release: Release,
        now: Time,
    ) {
        let Some(mut entry) = self.entry(key, uid) else { return };
        match release {
            Release::NotOwned => {}
            Release::Released(version) => entry.released = Some(version),
            Release::OwnedAgain => {
                // Once that one is gone, it is to be released again.
                entry.released = None;
                entry.ownership.begin_conflict(now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
