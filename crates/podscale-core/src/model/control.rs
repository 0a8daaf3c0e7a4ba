//! What a person ordered an autoscaler to do, possibly for a time.

use crate::time::Time;
use serde::Serialize;

/// What a person ordered. The strongest order is to leave the target alone: a pause of everything goes
/// before a pause of one direction, which goes before a hold, which goes before the metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Whether sizes are decided and set; active, once the order has run out.
    pub mode: Mode,
    /// Until when the mode is in force; `None` is for ever.
    pub mode_until: Option<Time>,
    /// The size does not go up.
    pub pause_up: Option<Pause>,
    /// The size does not go down.
    pub pause_down: Option<Pause>,
    /// The size is this one.
    pub hold: Option<Hold>,
    /// Whether bounds do not apply to the hold.
    pub hold_beyond_bounds: bool,
}

/// Whether sizes are decided and set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// They are.
    #[default]
    Active,
    /// They are decided and shown in the status, not set.
    DryRun,
    /// They are not decided; the target is left alone.
    Paused,
}

/// A pause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// Until when; `None` is for ever.
    pub until: Option<Time>,
}

/// A size that is to be held, within the bounds in force unless the order says otherwise; it is set at
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The size.
    pub replicas: i32,
    /// Until when; `None` is for ever.
    pub until: Option<Time>,
}

fn in_force(until: Option<Time>, now: Time) -> bool {
    until.is_none_or(|until| now < until)
}

impl Control {
    /// The mode in force.
    #[must_use]
    pub fn mode_at(&self, now: Time) -> Mode {
        if in_force(self.mode_until, now) { self.mode } else { Mode::Active }
    }

    /// Whether an order without an end decides the size, so that no metric has a say.
    #[must_use]
    pub fn overrules_metrics(&self) -> bool {
        let is_paused = self.mode == Mode::Paused && self.mode_until.is_none();
        is_paused || self.hold.is_some_and(|hold| hold.until.is_none())
    }

    /// The pause towards more replicas, if it is in force.
    #[must_use]
    pub fn pause_up_at(&self, now: Time) -> Option<Pause> {
        self.pause_up.filter(|pause| in_force(pause.until, now))
    }

    /// The pause towards fewer replicas, if it is in force.
    #[must_use]
    pub fn pause_down_at(&self, now: Time) -> Option<Pause> {
        self.pause_down.filter(|pause| in_force(pause.until, now))
    }

    /// The hold, if it is in force.
    #[must_use]
    pub fn hold_at(&self, now: Time) -> Option<Hold> {
        self.hold.filter(|hold| in_force(hold.until, now))
    }
}
