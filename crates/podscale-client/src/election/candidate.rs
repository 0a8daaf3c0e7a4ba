//! Who leads, as a function of what was seen of the lease and when. Never waits, never asks.

use jiff::Timestamp;
use std::time::Duration;

/// How long leases hold, and how often they are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeaseTimings {
    /// How long a lease holds without being renewed.
    pub lease: Duration,
    /// How long a leader tries to renew before it stops leading.
    pub renew: Duration,
    /// How long is waited between two tries.
    pub retry: Duration,
}

/// Waiting times are lengthened by up to so many times themselves, so that candidates do not all ask at
/// once.
const JITTER: f64 = 1.2;

/// Why timings make no sense together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseTimingsError {
    /// A leader could go on after its lease has ended.
    #[error("--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline")]
    Lease,
    /// A leader would have no second try.
    #[error(
        "--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period"
    )]
    Renew,
    /// Leases count whole seconds.
    #[error("--leader-elect-lease-duration must be at least one second")]
    Short,
}

impl LeaseTimings {
    /// Whether they make sense together.
    ///
    /// # Errors
    /// Says which does not fit which.
    pub fn check(&self) -> Result<(), LeaseTimingsError> {
        if self.lease <= self.renew {
            return Err(LeaseTimingsError::Lease);
        }
        if self.renew <= self.retry.mul_f64(JITTER) {
            return Err(LeaseTimingsError::Renew);
        }
        if self.lease < Duration::from_secs(1) {
            return Err(LeaseTimingsError::Short);
        }
        Ok(())
    }
}

/// The content of a lease.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    /// Who has it; empty if nobody.
    pub(super) holder: String,
    /// How long it holds without being renewed.
    pub(super) seconds: i32,
    /// When its holder got it.
    pub(super) acquired: Option<Timestamp>,
    /// When it was last renewed.
    pub(super) renewed: Option<Timestamp>,
    /// How often it went from one holder to another.
    pub(super) transitions: i32,
}

/// A lease as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    /// Its content.
    pub(super) record: Record,
    /// Its version; a write is refused if it is another one by then.
    pub(super) version: String,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Read the lease.
    Read,
    /// Write this; create it if there is no version.
    Write(Record, Option<String>),
    /// Stop leading: the lease is lost, or nobody knows.
    Resign,
    /// Nothing for so long, unless the lease changes.
    Wait(Duration),
}

#[derive(Clone, Debug, PartialEq)]
enum Observed {
    /// It must be read.
    Unknown,
    /// There is none.
    Absent,
    /// It was so at this moment, and has not changed since.
    Present(Stored, Duration),
}

/// One who leads or would like to. Moments are counted from any fixed one, by a clock that never
/// jumps.
pub(super) struct Candidate {
    identity: String,
    timings: LeaseTimings,
    /// How long a follower waits between two reads of the lease.
    read_interval: Duration,
    observed: Observed,
    /// When the last renewal that succeeded was begun.
    leading: Option<Duration>,
    next_try: Duration,
}

impl Candidate {
    /// One that knows nothing yet; `fraction` of one spreads candidates.
    #[must_use]
    pub(super) fn new(identity: String, timings: LeaseTimings, fraction: f64) -> Candidate {
        let stretch = 1.0 + JITTER * fraction.clamp(0.0, 1.0);
        let (observed, next_try) = (Observed::Unknown, Duration::ZERO);
        let read_interval = timings.retry.mul_f64(stretch);
        Candidate { identity, timings, read_interval, observed, leading: None, next_try }
    }

    /// Whether it leads.
    #[must_use]
    pub(super) fn is_leading(&self) -> bool {
        self.leading.is_some()
    }

    /// Who leads, as far as is known.
    #[must_use]
    pub(super) fn holder(&self) -> &str {
        match &self.observed {
            Observed::Present(stored, _) => &stored.record.holder,
            Observed::Unknown | Observed::Absent => "",
        }
    }

    /// How often the lease has got another holder.
    #[must_use]
    pub(super) fn transitions(&self) -> i32 {
        match &self.observed {
            Observed::Present(stored, _) => stored.record.transitions,
            Observed::Unknown | Observed::Absent => 0,
        }
    }

    /// How long it may lead on if no renewal succeeds from now on.
    #[must_use]
    pub(super) fn remaining(&self, now: Duration) -> Option<Duration> {
        let since = self.leading?;
        Some(since.saturating_add(self.timings.renew).saturating_sub(now))
    }

    /// Takes in the lease as it is stored, or that there is none.
    pub(super) fn see(&mut self, lease: Option<Stored>, now: Duration) {
        if !self.is_leading() {
            self.next_try = now.saturating_add(self.read_interval);
        }
        let Some(stored) = lease else {
            self.observed = Observed::Absent;
            return;
        };
        let version = |text: &str| text.parse::<u64>().ok();
        match &self.observed {
            Observed::Present(known, _) if known.record == stored.record => {
                if let Observed::Present(known, _) = &mut self.observed {
                    known.version = stored.version;
                }
            }
            // Late news of a watch.
            Observed::Present(known, _) if version(&stored.version) < version(&known.version) => {}
            _ => self.observed = Observed::Present(stored, now),
        }
    }

    /// Takes in that a write begun at `began` was stored.
    pub(super) fn wrote(&mut self, stored: Stored, began: Duration, now: Duration) {
        self.leading = (stored.record.holder == self.identity).then_some(began);
        self.observed = Observed::Present(stored, now);
        self.next_try = began.saturating_add(self.timings.retry);
    }

    /// Takes in that a call failed; `stale` if because the lease is not what it was believed to be.
    pub(super) fn failed(&mut self, stale: bool, now: Duration) {
        if stale {
            self.observed = Observed::Unknown;
        }
        let pause = match (self.is_leading(), stale) {
            (true, true) => self.timings.retry / 4,
            (true, false) => self.timings.retry,
            (false, _) => self.read_interval,
        };
        self.next_try = now.saturating_add(pause);
    }

    /// Takes in that it does not lead any more.
    pub(super) fn resigned(&mut self, now: Duration) {
        self.leading = None;
        self.next_try = now.saturating_add(self.read_interval);
    }

    /// What to do next; `wall` is what the lease will say.
    #[must_use]
    pub(super) fn next(&self, now: Duration, wall: Timestamp) -> Step {
        match self.remaining(now) {
            Some(remaining) => self.next_of_leader(remaining, now, wall),
            None => self.next_of_follower(now, wall),
        }
    }

    fn next_of_leader(&self, remaining: Duration, now: Duration, wall: Timestamp) -> Step {
        let taken =
            matches!(&self.observed, Observed::Present(s, _) if s.record.holder != self.identity);
        if remaining.is_zero() || taken {
            return Step::Resign;
        }
        if now < self.next_try {
            return Step::Wait(remaining.min(self.next_try.saturating_sub(now)));
        }
        self.try_for_it(wall)
    }

    fn next_of_follower(&self, now: Duration, wall: Timestamp) -> Step {
        if let Observed::Present(Stored { record, .. }, seen) = &self.observed
            && !record.holder.is_empty()
            && record.holder != self.identity
        {
            let holds = Duration::from_secs(u64::try_from(record.seconds).unwrap_or(0));
            let end = seen.saturating_add(holds);
            if now <= end {
                let next_read = end.saturating_add(Duration::from_millis(1)).min(self.next_try);
                return if now < self.next_try {
                    Step::Wait(next_read.saturating_sub(now))
                } else {
                    Step::Read
                };
            }
        } else if now < self.next_try && !self.is_free() {
            return Step::Wait(self.next_try.saturating_sub(now));
        }
        self.try_for_it(wall)
    }

    /// Whether nobody has the lease, so that its end need not be waited for.
    fn is_free(&self) -> bool {
        match &self.observed {
            Observed::Present(stored, _) => stored.record.holder.is_empty(),
            Observed::Absent => true,
            Observed::Unknown => false,
        }
    }

    fn try_for_it(&self, wall: Timestamp) -> Step {
        let seconds = i32::try_from(self.timings.lease.as_secs()).unwrap_or(i32::MAX);
        let (holder, now) = (self.identity.clone(), Some(wall));
        let fresh = Record { holder, seconds, acquired: now, renewed: now, transitions: 0 };
        match &self.observed {
            Observed::Unknown => Step::Read,
            Observed::Absent => Step::Write(fresh, None),
            Observed::Present(Stored { record, version }, _) => {
                let record = if record.holder == self.identity {
                    Record { acquired: record.acquired, transitions: record.transitions, ..fresh }
                } else {
                    Record { transitions: record.transitions.saturating_add(1), ..fresh }
                };
                Step::Write(record, Some(version.clone()))
            }
        }
    }

    /// What to write to release the lease, if it is held.
    #[must_use]
    pub(super) fn release(&self, wall: Timestamp) -> Option<(Record, String)> {
        let Observed::Present(Stored { record, version }, _) = &self.observed else { return None };
        if record.holder != self.identity {
            return None;
        }
        let transitions = record.transitions;
        let (holder, now) = (String::new(), Some(wall));
        let record = Record { holder, seconds: 1, acquired: now, renewed: now, transitions };
        Some((record, version.clone()))
    }
}

#[cfg(test)]
mod tests;
