//! How a pod lives on its node, as a pure function of time: created, running, ready; crashing,
//! hanging, done with its work; ending.

use super::pod::{Facts, Fault, WirePod};
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long the parts of a pod's life take unless the pod says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// From the placement to running containers (images, sandbox).
    pub start: Duration,
    /// From running to ready.
    pub ready: Duration,
    /// From the wish to end to the end; the grace period if that is shorter.
    pub stop: Duration,
    /// From the start of a container that crashes to its crash.
    pub crash: Duration,
    /// From the start of a Job's containers to the end of their work.
    pub work: Duration,
    /// How far starts are spread, as a part of one.
    pub spread: f64,
}

impl Default for Delays {
    fn default() -> Delays {
        Delays {
            start: Duration::from_secs(2),
            ready: Duration::from_secs(3),
            stop: Duration::from_secs(2),
            crash: Duration::from_secs(5),
            work: Duration::from_secs(10),
            spread: 0.3,
        }
    }
}

/// The first and the longest wait before a crashed container is started again.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));

/// Where in its life a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Its containers are being created.
    Creating,
    /// Its containers run.
    Running {
        /// Whether it takes requests.
        ready: bool,
    },
    /// Its containers crashed and wait to be started again.
    BackOff,
    /// Its containers crashed and stay so.
    Failed,
    /// Its containers did their work and stay ended.
    Succeeded,
    /// It is ending.
    Stopping,
}

/// A pod's life so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Life {
    /// Where it is.
    pub stage: Stage,
    /// Since when.
    pub since: Timestamp,
    /// When its node took it.
    pub taken: Timestamp,
    /// When its containers last started.
    pub started: Option<Timestamp>,
    /// When its containers last ended, well or badly.
    pub ended: Option<Timestamp>,
    /// When it last became ready or stopped being so.
    pub ready_changed: Timestamp,
    /// How often its containers were started again.
    pub restarts: u32,
}

/// What to do with a pod now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Nothing, until then or until something else changes.
    Wait(Option<Timestamp>),
    /// It has moved on.
    Become(Life),
    /// It has ended: remove it.
    Remove,
}

impl Life {
    /// The life of a pod that its node sees for the first time; goes on where its status left off.
    #[must_use]
    pub fn begin(pod: &WirePod, now: Timestamp) -> Life {
        let status = &pod.status;
        let taken = status.start_time.as_ref().map_or(now, |time| time.0);
        let first = status.container_statuses.first();
        let restarts = first.map_or(0, |first| first.restart_count);
        let started = first
            .and_then(|first| first.state.running.as_ref())
            .and_then(|running| running.started_at.as_ref())
            .map(|time| time.0);
        let condition = status.conditions.iter().find(|condition| condition.kind == "Ready");
        let ready = condition.is_some_and(|condition| condition.status == "True");
        let changed = condition.and_then(|condition| condition.last_transition_time.as_ref());
        let ready_changed = changed.map_or(now, |time| time.0);
        let stage = match (status.phase.as_deref(), started) {
            (Some("Failed"), _) => Stage::Failed,
            (Some("Succeeded"), _) => Stage::Succeeded,
            (Some("Running"), Some(_)) => Stage::Running { ready },
            (Some("Running"), None) => Stage::BackOff,
            _ => Stage::Creating,
        };
        Life { stage, since: now, taken, started, ended: None, ready_changed, restarts }
    }

    /// Whether its containers run.
    #[must_use]
    pub fn running(&self) -> bool {
        match self.stage {
            Stage::Running { .. } => true,
            Stage::Stopping => {
                self.started.is_some_and(|started| self.ended.is_none_or(|at| at < started))
            }
            Stage::Creating | Stage::BackOff | Stage::Failed | Stage::Succeeded => false,
        }
    }

    /// Whether it takes requests.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.stage == Stage::Running { ready: true }
    }

    /// What comes next for this pod.
    /// `fault` is how it misbehaves now.
    #[must_use]
    pub fn next(
        &self,
        facts: &Facts,
        fault: Option<Fault>,
        delays: &Delays,
        now: Timestamp,
    ) -> Next {
        if facts.deleted.is_some() && self.stage != Stage::Stopping {
            return Next::Become(self.into_stage(Stage::Stopping, now));
        }
        match self.stage {
            Stage::Stopping => {
                let wait =
                    if self.running() { delays.stop.min(facts.grace) } else { Duration::ZERO };
                match until(self.since, wait, now) {
                    None => Next::Remove,
                    due => Next::Wait(due),
                }
            }
            Stage::Creating => {
                let start = facts.start_delay.unwrap_or_else(|| delays.spread_start(&facts.uid));
                match until(self.since, start, now) {
                    None => Next::Become(self.start(now)),
                    due => Next::Wait(due),
                }
            }
            Stage::Running { ready } => self.next_running(ready, facts, fault, delays, now),
            Stage::BackOff => match until(self.since, back_off(self.restarts), now) {
                None => {
                    let restarts = self.restarts.saturating_add(1);
                    Next::Become(Life { restarts, ..self.start(now) })
                }
                due => Next::Wait(due),
            },
            Stage::Failed | Stage::Succeeded => Next::Wait(None),
        }
    }

    fn next_running(
        &self,
        ready: bool,
        facts: &Facts,
        fault: Option<Fault>,
        delays: &Delays,
        now: Timestamp,
    ) -> Next {
        let started = self.started.unwrap_or(self.since);
        let ready_due = until(started, facts.readiness_delay.unwrap_or(delays.ready), now);
        let crash_due = match fault {
            Some(Fault::Crash) => match until(started, delays.crash, now) {
                None => return Next::Become(self.crash(facts, now)),
                due => due,
            },
            Some(Fault::Unready | Fault::NoMetrics) | None => None,
        };
        // Containers that crash do not come to the end of their work.
        let work = facts.has_work.then(|| facts.run_time.unwrap_or(delays.work));
        let done_due = match work.filter(|_| fault != Some(Fault::Crash)) {
            Some(work) => match until(started, work, now) {
                None => {
                    let done = self.into_stage(Stage::Succeeded, now);
                    return Next::Become(Life { ended: Some(now), ..done });
                }
                due => due,
            },
            None => None,
        };
        let end_due = crash_due.or(done_due);
        let may_be_ready = fault != Some(Fault::Unready);
        match (ready, may_be_ready) {
            (true, false) => Next::Become(self.into_stage(Stage::Running { ready: false }, now)),
            (false, true) if ready_due.is_none() => {
                Next::Become(self.into_stage(Stage::Running { ready: true }, now))
            }
            (false, true) => Next::Wait(ready_due.into_iter().chain(end_due).min()),
            (true, true) | (false, false) => Next::Wait(end_due),
        }
    }

    /// Its containers end with an error now.
    #[must_use]
    pub fn crash(&self, facts: &Facts, now: Timestamp) -> Life {
        let stage = if facts.restarts { Stage::BackOff } else { Stage::Failed };
        Life { ended: Some(now), ..self.into_stage(stage, now) }
    }

    fn start(&self, now: Timestamp) -> Life {
        let running = self.into_stage(Stage::Running { ready: false }, now);
        Life { started: Some(now), ..running }
    }

    fn into_stage(self, stage: Stage, now: Timestamp) -> Life {
        let was_ready = self.ready();
        let moved = Life { stage, since: now, ..self };
        let ready_changed = if moved.ready() == was_ready { self.ready_changed } else { now };
        Life { ready_changed, ..moved }
    }
}

impl Delays {
    /// The start delay of one pod: pods of one burst do not all start at the same moment.
    fn spread_start(&self, uid: &str) -> Duration {
        let stray = podscale_sim::random::unit(podscale_sim::random::hash(uid.as_bytes(), 0), 0, 0);
        self.start.mul_f64((1.0 + self.spread.clamp(0.0, 1.0) * stray).max(0.0))
    }
}

fn back_off(restarts: u32) -> Duration {
    let (first, longest) = BACK_OFF;
    first.saturating_mul(2u32.saturating_pow(restarts.min(16))).min(longest)
}

/// When a wait that began at `since` is over; nothing if it is.
fn until(since: Timestamp, wait: Duration, now: Timestamp) -> Option<Timestamp> {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    let due = since.saturating_add(wait).unwrap_or(Timestamp::MAX);
    (due > now).then_some(due)
}
