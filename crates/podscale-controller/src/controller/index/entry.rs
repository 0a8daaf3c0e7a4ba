//! What is known of one object.

use super::claims::TargetNumber;
use super::due::QueueState;
use crate::controller::dry_run::{Comparison, ObservedWrite};
use crate::controller::manage::Manage;
use crate::controller::overrides::Overrides;
use crate::controller::ownership::{self, Ownership};
use crate::controller::recalled::Recalled;
use crate::dialect::{Key, Managed};
use crate::settings::span;
use crate::source::Topic;
use podscale_client::resource_version::is_newer;
use podscale_core::{Settings, Time};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What is the same for all objects that do not say otherwise.
pub(super) struct Rules {
    pub(super) period: Duration,
    pub(super) settings: Settings,
    pub(super) manage: Manage,
    pub(super) dry_run: bool,
}

/// What is known of one object.
pub(super) struct Entry {
    pub(super) managed: Managed,
    /// Its target, unless its spec cannot be acted on.
    pub(super) target: Option<TargetNumber>,
    /// What was last reported of another autoscaler that has the same target.
    pub(super) reported_precedent: Option<Key>,
    /// What its annotations say otherwise than the controller's flags.
    pub(super) overrides: Option<Arc<Overrides>>,
    /// Whether what is wrong with them was reported.
    pub(super) annotations_reported: bool,
    /// When it is due, or since when it is being reconciled.
    pub(super) queue_state: QueueState,
    /// What earlier decisions left behind.
    pub(super) recalled: Recalled,
    /// What decisions on the object left behind whose place it has taken, until it is decided next.
    pub(super) inherited: Option<Box<Recalled>>,
    /// Whether another controller manages it as well.
    pub(super) ownership: Ownership,
    /// The version of its target in which that was taken out of its ownership.
    pub(super) released: Option<Box<str>>,
    /// Dry run: how another controller's choices compare with ours.
    pub(super) comparison: Option<Comparison>,
    /// When its status was last sent.
    pub(super) status_sent: Option<Time>,
    /// What its metrics asked about, and when each was answered last, in microseconds since 1970.
    pub(super) topics: BTreeMap<Topic, Option<i64>>,
    /// It was deleted while it was being reconciled.
    pub(super) gone: bool,
}

impl Entry {
    pub(super) fn new(managed: Managed, recalled: Recalled, rules: &Rules) -> Entry {
        let overrides = Overrides::read(managed.metadata(), &rules.settings).map(Arc::new);
        let ownership = Ownership::of(&managed.wire.status());
        Entry {
            target: TargetNumber::of(&managed),
            managed,
            reported_precedent: None,
            overrides,
            annotations_reported: false,
            queue_state: QueueState::new(),
            recalled,
            inherited: None,
            ownership,
            released: None,
            comparison: None,
            status_sent: None,
            topics: BTreeMap::new(),
            gone: false,
        }
    }

    /// How often it is reconciled.
    pub(super) fn period(&self, rules: &Rules) -> Duration {
        self.own_period().unwrap_or(rules.period)
    }

    /// How often it wants to be reconciled, by its annotations or else by its spec.
    pub(super) fn own_period(&self) -> Option<Duration> {
        let annotated = self.overrides.as_ref().and_then(|overrides| overrides.period);
        annotated.or_else(|| self.managed.wire.sync_period())
    }

    /// What decisions on the object leave behind, also if it has not been decided since it took another's place.
    pub(super) fn left_behind(&self) -> &Recalled {
        self.inherited.as_deref().unwrap_or(&self.recalled)
    }

    /// Takes in another version of the object; whether it must be decided at once.
    pub(super) fn update(&mut self, managed: Managed, rules: &Rules, now: Time) -> bool {
        if self.is_newer_than(&managed) {
            return false;
        }
        let overrides = Overrides::read(managed.metadata(), &rules.settings);
        let overridden = self.overrides.as_deref() != overrides.as_ref();
        if overridden {
            self.overrides = overrides.map(Arc::new);
            self.annotations_reported = false;
        }
        let observed = rules.dry_run.then(|| ObservedWrite::between(&self.managed, &managed));
        let observed = observed.flatten();
        let written = observed.is_some();
        if let Some(observed) = observed {
            self.comparison.get_or_insert_default().observed(observed);
        } else if !rules.dry_run && ownership::is_foreign_write(&self.managed, &managed) {
            let period = span(self.period(rules));
            self.ownership.foreign_write(now, period);
        }
        let respecified = self.replace(managed);
        overridden || written || respecified
    }

    fn is_newer_than(&self, managed: &Managed) -> bool {
        let known = self.managed.metadata();
        is_newer(&known.resource_version, &managed.metadata().resource_version)
    }

    /// Puts another version of the object in the place of this one, unless that is older; whether its
    /// spec is another one. A new generation of an equal spec counts: its status is to say that it was
    /// seen.
    pub(super) fn replace(&mut self, mut managed: Managed) -> bool {
        if self.is_newer_than(&managed) {
            return false;
        }
        let same = self.managed.model == managed.model;
        if same {
            managed.model = Arc::clone(&self.managed.model);
        }
        managed.key = self.managed.key.clone();
        self.managed = managed;
        !same
    }
}
