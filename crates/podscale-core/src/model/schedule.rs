//! Bounds that depend on the time. Time zones and calendars are not known here: whoever does know them
//! brings a pure function of the time.

use crate::time::Time;
use serde::Serialize;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

/// The fewest and the most replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bounds {
    /// The fewest.
    pub min: i32,
    /// The most.
    pub max: i32,
}

impl Bounds {
    /// The nearest size within the bounds; if they contradict each other, the minimum.
    #[must_use]
    pub fn clamp(self, replicas: i32) -> i32 {
        replicas.min(self.max).max(self.min)
    }
}

/// The bounds at one time, and why they are not those of the spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scheduled {
    /// The bounds.
    pub bounds: Bounds,
    /// The name of the schedule that set one of them last.
    pub schedule: Arc<str>,
    /// Since when it has been in force, as far as that matters for its ramp.
    pub since: Time,
    /// Whether it may have been in force for longer: it has begun again and again before it ended.
    pub or_longer: bool,
    /// How far its bounds have been reached, in percent; 100 where there is no ramp, or after it.
    pub ramp_percent: u8,
}

/// A pure function from a time to the bounds at that time.
pub trait Calendar: Send + Sync {
    /// The bounds at `now` where `base` are those of the spec; `None` if no schedule is in force.
    fn at(&self, now: Time, base: Bounds) -> Option<Scheduled>;

    /// The schedules as text: two calendars with the same text are the same function.
    fn text(&self) -> &str;
}

/// The schedules of one autoscaler.
#[derive(Clone)]
pub struct Schedules(Arc<dyn Calendar>);

impl Schedules {
    /// The schedules that a calendar knows.
    #[must_use]
    pub fn new(calendar: impl Calendar + 'static) -> Schedules {
        Schedules(Arc::new(calendar))
    }

    /// The bounds at `now` where `base` are those of the spec; `None` if no schedule is in force.
    #[must_use]
    pub fn at(&self, now: Time, base: Bounds) -> Option<Scheduled> {
        self.0.at(now, base)
    }
}

impl Debug for Schedules {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schedules").field(&self.0.text()).finish()
    }
}

impl PartialEq for Schedules {
    fn eq(&self, other: &Schedules) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.text() == other.0.text()
    }
}
