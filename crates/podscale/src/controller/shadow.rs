//! The dry run beside another controller: what that one wrote against what would have been written.
//!
//! The two look at different moments, so their inputs are never quite the same. The rule: whenever the
//! other one writes a status, the object is decided at once from the status before it and the size that
//! it says it found, for this moment and for [`SLACK`] to either side, since stored times are whole
//! seconds. Its choice agrees if it equals one of these decisions or the one before. While it writes
//! nothing, its stored choice disagrees once [`PATIENCE`] decisions in a row would have been another.
//! Choices are compared, and recommendations remembered, only where both saw the same values of the
//! metrics, which a status shows; if they do not [`UNLIKE`] times in a row, that is a disagreement too.
//! An object is compared once it was watched for as long as its longest window, since the other one
//! remembers what was before.

use crate::watch::world::Key;
use parking_lot::Mutex;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus, MetricStatus};
use podscale_api::translate;
use podscale_core::model::{Behavior, ScalingRules};
use podscale_core::{Autoscaler, Decision, History, Settings, Snapshot, Span, Time, decide};
use std::collections::HashMap;
use std::fmt;

/// After how many decisions in a row a choice that was not made counts as refused.
const PATIENCE: u32 = 3;

/// After how many writes in a row with other values of the metrics that is told.
const UNLIKE: u32 = 5;
/// How far the moments of two controllers may be apart.
pub const SLACK: Span = Span::seconds(1);

/// What another controller wrote into a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    /// The status that it overwrote.
    pub before: Option<HorizontalPodAutoscalerStatus>,
    /// The size that it found.
    pub found: i32,
    /// The size that it chose.
    pub desired: i32,
    /// When it changed the size, if it did with this write.
    pub rescaled: Option<Time>,
    /// What it saw of the metrics.
    pub metrics: Option<Vec<MetricStatus>>,
}

impl Theirs {
    /// What was written, if the status has changed.
    #[must_use]
    pub fn of(before: &HorizontalPodAutoscaler, after: &HorizontalPodAutoscaler) -> Option<Theirs> {
        let (old, new) = (before.status.as_ref(), after.status.as_ref()?);
        if before.metadata.uid != after.metadata.uid || old == Some(new) {
            return None;
        }
        let last = new.last_scale_time.map(|time| time.0);
        let moved = last != old.and_then(|old| old.last_scale_time).map(|time| time.0);
        let (found, desired) = (new.current_replicas, new.desired_replicas);
        let rescaled = last.filter(|_| moved);
        let metrics = new.current_metrics.clone();
        Some(Theirs { before: old.cloned(), found, desired, rescaled, metrics })
    }

    /// Adds the change of size to a history as if it had been our own.
    pub fn teach(&self, behavior: Option<&Behavior>, history: &mut History) {
        if let Some(at) = self.rescaled
            && self.found != self.desired
        {
            history.scaled(behavior, self.found, self.desired, at);
        }
    }
}

/// Whether a decision was made on the values of the metrics that another controller saw last.
#[must_use]
pub fn is_alike(
    decision: &Decision,
    snapshot: &Snapshot<'_>,
    hpa: &HorizontalPodAutoscaler,
    theirs: Option<&Theirs>,
) -> bool {
    let seen = match theirs {
        Some(theirs) => theirs.metrics.as_ref(),
        None => hpa.status.as_ref().and_then(|status| status.current_metrics.as_ref()),
    };
    let ours = translate::status::to_wire(decision, snapshot, hpa).current_metrics;
    ours.as_ref() == seen
}

/// A choice that was another than ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disagreement {
    /// It chose a size that we would not have.
    Chose {
        /// Its size.
        theirs: i32,
        /// Ours.
        ours: i32,
    },
    /// It kept a size that we would have changed.
    Kept {
        /// Its size.
        theirs: i32,
        /// Ours.
        ours: i32,
    },
    /// It keeps seeing other values of the metrics.
    Sees,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Disagreement::Chose { theirs, ours } => {
                write!(
                    f,
                    "the other controller chose {theirs} replicas, Podscale would have chosen {ours}"
                )
            }
            Disagreement::Kept { theirs, ours } => write!(
                f,
                "the other controller stays at {theirs} replicas, Podscale would have gone to {ours}"
            ),
            Disagreement::Sees => {
                write!(f, "the other controller sees other values of the metrics than Podscale")
            }
        }
    }
}

/// How far back decisions on an autoscaler look.
#[must_use]
pub fn memory(autoscaler: &Autoscaler, settings: &Settings) -> Span {
    let longest = |rules: &ScalingRules| {
        let window = rules.stabilization_window.unwrap_or(settings.downscale_stabilization);
        window.max(rules.longest_period())
    };
    match &autoscaler.behavior {
        Some(Behavior { scale_up, scale_down }) => longest(scale_up).max(longest(scale_down)),
        None => settings.downscale_stabilization,
    }
}

/// One object's choices, theirs against ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// When it was first looked at.
    since: Option<Time>,
    /// Ours before.
    last: Option<i32>,
    /// How many of ours in a row were another than the stored one.
    apart: u32,
    /// How many of their writes in a row were made on other values.
    unlike: u32,
}

impl Comparison {
    /// Takes in what they wrote and what we decide on the same size, `nearly` at other moments;
    /// neither counts if we could not decide.
    pub fn written(
        &mut self,
        theirs: &Theirs,
        ours: Option<i32>,
        nearly: &[Option<i32>],
    ) -> Option<Disagreement> {
        let before = std::mem::replace(&mut self.last, ours);
        (self.apart, self.unlike) = (0, 0);
        let (theirs, ours) = (theirs.desired, ours?);
        let agrees = theirs == ours || Some(theirs) == before || nearly.contains(&Some(theirs));
        (!agrees).then_some(Disagreement::Chose { theirs, ours })
    }

    /// Takes in that they wrote after having seen other values than we do.
    pub fn unlike(&mut self) -> Option<Disagreement> {
        self.unlike = self.unlike.saturating_add(1);
        (self.unlike == UNLIKE).then_some(Disagreement::Sees)
    }

    /// Takes in what we decide while they write nothing.
    pub fn unwritten(&mut self, stored: i32, ours: Option<i32>) -> Option<Disagreement> {
        self.last = ours;
        match ours {
            Some(ours) if ours != stored => {
                self.apart = self.apart.saturating_add(1);
                let said = self.apart == PATIENCE;
                said.then_some(Disagreement::Kept { theirs: stored, ours })
            }
            _ => {
                self.apart = 0;
                None
            }
        }
    }
}

/// The comparisons of all objects.
#[derive(Default)]
pub struct Shadows(Mutex<HashMap<Key, Shadow>>);

#[derive(Default)]
struct Shadow {
    comparison: Comparison,
    theirs: Option<Theirs>,
}

impl Shadows {
    /// Notes what was written, to be compared at the next look. Of two writes before it, the rescale
    /// of the first is kept.
    pub fn note(&self, key: &Key, theirs: Theirs) {
        let mut shadows = self.0.lock();
        let shadow = shadows.entry(key.clone()).or_default();
        let unread = shadow.theirs.as_ref().is_some_and(|unread| unread.rescaled.is_some());
        if !unread || theirs.rescaled.is_some() {
            shadow.theirs = Some(theirs);
        }
    }

    /// What was written since the last look.
    #[must_use]
    pub fn take(&self, key: &Key) -> Option<Theirs> {
        self.0.lock().get_mut(key).and_then(|shadow| shadow.theirs.take())
    }

    /// Compares a decision with what was written, or with what is stored.
    pub fn compare(
        &self,
        key: &Key,
        theirs: Option<&Theirs>,
        snapshot: &Snapshot<'_>,
        ours: Option<i32>,
        alike: bool,
    ) -> Option<Disagreement> {
        let mut shadows = self.0.lock();
        let comparison = &mut shadows.entry(key.clone()).or_default().comparison;
        let disagreement = match theirs {
            Some(_) if !alike => comparison.unlike(),
            None if !alike => None,
            Some(theirs) => {
                let moments = [snapshot.now.before(SLACK), snapshot.now.after(SLACK)];
                let nearly = moments.map(|now| decide(&Snapshot { now, ..*snapshot }).desired);
                comparison.written(theirs, ours, &nearly)
            }
            // Without conditions nobody has decided yet.
            None if snapshot.status.conditions.is_empty() => None,
            None => comparison.unwritten(snapshot.status.desired_replicas, ours),
        };
        let watched = snapshot.now.since(*comparison.since.get_or_insert(snapshot.now));
        disagreement.filter(|_| watched > memory(snapshot.autoscaler, snapshot.settings))
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_agrees_with_the_decision_on_it_or_the_one_before() {
        let theirs =
            |desired| Theirs { before: None, found: 2, desired, rescaled: None, metrics: None };
        let chose = |theirs, ours| Some(Disagreement::Chose { theirs, ours });
        let kept = |theirs, ours| Some(Disagreement::Kept { theirs, ours });
        let mut comparison = Comparison::default();
        for (what, written, ours, expected) in [
            ("the same", Ok(4), Some(4), None),
            ("as before, the metric has just moved", Ok(4), Some(5), None),
            ("neither", Ok(7), Some(6), chose(7, 6)),
            ("not decided", Ok(9), None, None),
            ("the same again", Err(6), Some(6), None),
            ("apart once", Err(6), Some(8), None),
            ("twice", Err(6), Some(8), None),
            ("three times", Err(6), Some(9), kept(6, 9)),
            ("said once", Err(6), Some(9), None),
            ("together", Err(6), Some(6), None),
            ("apart", Err(6), Some(9), None),
            ("they follow", Ok(9), Some(9), None),
        ] {
            let found = match written {
                Ok(desired) => comparison.written(&theirs(desired), ours, &[]),
                Err(stored) => comparison.unwritten(stored, ours),
            };
            assert_eq!(found, expected, "{what}");
        }
        let nearly = [Some(11), Some(12)];
        assert_eq!(comparison.written(&theirs(12), Some(20), &nearly), None, "a second earlier");
        assert_eq!(comparison.written(&theirs(13), Some(21), &nearly), chose(13, 21));
        let told = [(); 6].map(|()| comparison.unlike().is_some());
        assert_eq!(told, [false, false, false, false, true, false], "said once");
    }

    #[test]
    fn a_write_is_seen_by_its_status() {
        let hpa = |status: serde_json::Value| -> HorizontalPodAutoscaler {
            let hpa = serde_json::json!({"metadata": {"uid": "1"}, "spec": {"maxReplicas": 3,
                "scaleTargetRef": {"kind": "Deployment", "name": "web"}}, "status": status});
            serde_json::from_value(hpa).expect("an autoscaler")
        };
        let before = hpa(serde_json::json!({"currentReplicas": 2, "desiredReplicas": 2}));
        let after = hpa(serde_json::json!({"currentReplicas": 2, "desiredReplicas": 4,
            "lastScaleTime": "1970-01-01T00:00:07Z"}));
        assert_eq!(Theirs::of(&before, &before), None);
        let rescaled = Some(Time(7_000_000));
        let theirs =
            Theirs { before: before.status.clone(), found: 2, desired: 4, rescaled, metrics: None };
        assert_eq!(Theirs::of(&before, &after), Some(theirs.clone()));
        let later = hpa(serde_json::json!({"currentReplicas": 4, "desiredReplicas": 4,
            "lastScaleTime": "1970-01-01T00:00:07Z"}));
        let (old, rescaled) = (after.status.clone(), None);
        let still = Theirs { before: old, found: 4, desired: 4, rescaled, metrics: None };
        assert_eq!(Theirs::of(&after, &later), Some(still.clone()));
        let (shadows, key) = (Shadows::default(), Key { namespace: "x".into(), name: "y".into() });
        shadows.note(&key, theirs.clone());
        shadows.note(&key, still);
        assert_eq!(shadows.take(&key), Some(theirs), "the rescale is not lost");
        assert_eq!(shadows.take(&key), None);
    }
}
