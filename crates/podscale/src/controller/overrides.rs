//! What an autoscaler says otherwise than the controller's flags, in its annotations.

use crate::settings::{amount, duration, span, sync_period};
use crate::watch::Change;
use crate::watch::world::Key;
use parking_lot::RwLock;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_core::Settings;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SYNC_PERIOD: &str = "podscale.dev/sync-period";
const TOLERANCE: &str = "podscale.dev/tolerance";
const DOWNSCALE_STABILIZATION: &str = "podscale.dev/downscale-stabilization";
const CPU_INITIALIZATION_PERIOD: &str = "podscale.dev/cpu-initialization-period";
const INITIAL_READINESS_DELAY: &str = "podscale.dev/initial-readiness-delay";

/// The settings of one autoscaler.
#[derive(Debug)]
pub struct Own {
    /// How often it is looked at, if it says so.
    pub period: Option<Duration>,
    /// How it is decided.
    pub settings: Settings,
    complaints: Vec<String>,
    told: AtomicBool,
}

impl Own {
    /// The settings that an object's annotations make of the controller's, if they say anything.
    #[must_use]
    pub fn of(hpa: &HorizontalPodAutoscaler, settings: &Settings) -> Option<Own> {
        let said = |name: &str| hpa.metadata.annotations.get(name);
        let (mut settings, mut complaints) = (*settings, Vec::new());
        let mut complain = |name: &str, text: &str, wrong: &str, instead: &str| {
            complaints.push(format!(
                "annotation {name}: {text:?} is ignored: {wrong}; write it as in \"{instead}\""
            ));
        };
        let mut own_period = None;
        if let Some(text) = said(SYNC_PERIOD) {
            match sync_period(text) {
                Ok(period) => own_period = Some(period),
                Err(error) => complain(SYNC_PERIOD, text, &error, "1s"),
            }
        }
        if let Some(text) = said(TOLERANCE) {
            match amount(text) {
                Ok(tolerance) => settings.tolerance = tolerance,
                Err(error) => complain(TOLERANCE, text, &error, "0.1"),
            }
        }
        for (name, setting, instead) in [
            (DOWNSCALE_STABILIZATION, &mut settings.downscale_stabilization, "5m"),
            (CPU_INITIALIZATION_PERIOD, &mut settings.cpu_initialization_period, "5m"),
            (INITIAL_READINESS_DELAY, &mut settings.initial_readiness_delay, "30s"),
        ] {
            match said(name).map(|text| (text, duration(text))) {
                Some((_, Ok(duration))) => *setting = span(duration),
                Some((text, Err(error))) => complain(name, text, &error, instead),
                None => {}
            }
        }
        let names = [
            SYNC_PERIOD,
            TOLERANCE,
            DOWNSCALE_STABILIZATION,
            CPU_INITIALIZATION_PERIOD,
            INITIAL_READINESS_DELAY,
        ];
        let says = names.iter().any(|name| said(name).is_some());
        let told = AtomicBool::new(complaints.is_empty());
        says.then_some(Own { period: own_period, settings, complaints, told })
    }

    /// What is wrong with the annotations, the first time that it is asked for.
    pub fn complaints(&self) -> &[String] {
        if self.told.swap(true, Ordering::Relaxed) { &[] } else { &self.complaints }
    }

    fn is_like(&self, other: &Own) -> bool {
        let parts = |own: &Own| (own.period, own.settings);
        parts(self) == parts(other) && self.complaints == other.complaints
    }
}

/// The settings of all autoscalers that have their own.
#[derive(Default)]
pub struct Owns(RwLock<HashMap<Key, Arc<Own>>>);

impl Owns {
    /// The settings of an autoscaler.
    #[must_use]
    pub fn of(&self, key: &Key) -> Option<Arc<Own>> {
        self.0.read().get(key).cloned()
    }

    /// Takes in a change of autoscalers; those whose settings are new, with their own period.
    pub fn take(
        &self,
        change: &Change<HorizontalPodAutoscaler>,
        settings: &Settings,
    ) -> Vec<(Key, Option<Duration>)> {
        match change {
            Change::All(all) => {
                let mut changed = Vec::new();
                let there: HashMap<Key, &HorizontalPodAutoscaler> =
                    all.iter().map(|hpa| (Key::of(hpa), hpa)).collect();
                self.0.write().retain(|key, _| there.contains_key(key));
                for (key, hpa) in there {
                    changed.extend(self.put(key, Own::of(hpa, settings)));
                }
                changed
            }
            Change::Applied(hpa) => {
                self.put(Key::of(hpa), Own::of(hpa, settings)).into_iter().collect()
            }
            Change::Deleted(hpa) => {
                self.0.write().remove(&Key::of(hpa));
                Vec::new()
            }
        }
    }

    fn put(&self, key: Key, own: Option<Own>) -> Option<(Key, Option<Duration>)> {
        let before = self.of(&key);
        match (before, own) {
            (None, None) => None,
            (Some(before), Some(own)) if before.is_like(&own) => None,
            (_, Some(own)) => {
                let period = own.period;
                self.0.write().insert(key.clone(), Arc::new(own));
                Some((key, period))
            }
            (Some(_), None) => {
                self.0.write().remove(&key);
                Some((key, None))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Span;

    fn hpa(annotations: &[(&str, &str)]) -> HorizontalPodAutoscaler {
        let annotations: serde_json::Map<String, serde_json::Value> =
            annotations.iter().map(|(name, text)| ((*name).to_owned(), (*text).into())).collect();
        let hpa = serde_json::json!({"metadata": {"name": "web", "namespace": "shop",
            "annotations": annotations}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
        serde_json::from_value(hpa).expect("an autoscaler")
    }

    #[test]
    fn annotations_override_flags_and_bad_ones_are_told_once() {
        let defaults = Settings::default();
        assert!(Own::of(&hpa(&[("other", "x")]), &defaults).is_none());
        let own = Own::of(
            &hpa(&[
                (SYNC_PERIOD, "1s"),
                (TOLERANCE, "0.05"),
                (DOWNSCALE_STABILIZATION, "0s"),
                (CPU_INITIALIZATION_PERIOD, "1m30s"),
                (INITIAL_READINESS_DELAY, "soon"),
            ]),
            &defaults,
        );
        let own = own.expect("it says something");
        assert_eq!(own.period, Some(Duration::from_secs(1)));
        let expected = Settings {
            tolerance: 0.05,
            downscale_stabilization: Span(0),
            cpu_initialization_period: Span::seconds(90),
            initial_readiness_delay: defaults.initial_readiness_delay,
        };
        assert_eq!(own.settings, expected);
        let complaint = "annotation podscale.dev/initial-readiness-delay: \"soon\" is ignored: \
            time: invalid duration \"soon\"; write it as in \"30s\"";
        assert_eq!(own.complaints(), [complaint]);
        assert!(own.complaints().is_empty(), "said once");
        for bad in ["0s", "-1s", "5ms", "x"] {
            let own = Own::of(&hpa(&[(SYNC_PERIOD, bad)]), &defaults).expect("it says something");
            assert_eq!((own.period, own.complaints().len()), (None, 1), "{bad}");
        }
    }

    #[test]
    fn only_new_settings_are_told() {
        let (owns, defaults) = (Owns::default(), Settings::default());
        let steps = |change: Change<HorizontalPodAutoscaler>| {
            let changed = owns.take(&change, &defaults);
            changed.iter().map(|(_, period)| period.map(|p| p.as_secs())).collect::<Vec<_>>()
        };
        let (fast, plain) = (hpa(&[(SYNC_PERIOD, "1s")]), hpa(&[]));
        assert_eq!(steps(Change::All(vec![fast.clone()])), [Some(1)]);
        assert_eq!(steps(Change::Applied(fast.clone())), []);
        assert_eq!(steps(Change::Applied(hpa(&[(SYNC_PERIOD, "2s")]))), [Some(2)]);
        assert_eq!(steps(Change::Applied(plain.clone())), [None]);
        assert_eq!(steps(Change::Applied(plain)), []);
        assert_eq!(steps(Change::Applied(fast.clone())), [Some(1)]);
        assert_eq!(steps(Change::Deleted(fast.clone())), []);
        assert!(owns.of(&Key::of(&fast)).is_none());
    }
}
