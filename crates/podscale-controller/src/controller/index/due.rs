//! When which object is due: each at its own moment of every period, right after it changed, and
//! soon when samples arrived. An object that is being reconciled is never started a second time; it
//! comes again right after.

use crate::dialect::Key;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

/// How many moments a period has. Objects that share one are reconciled in a row, on values that were
/// read at that moment, and their writes travel together: that costs a fraction of reconciling them
/// one by one, and with few moments nobody has to make do with older values.
pub(in crate::controller) const MOMENTS: u32 = 4;
/// How long after its last reconcile began new samples may enqueue an object again.
const MIN_INTERVAL_MICROS: i64 = 1_000_000;
/// How far the moments of samples are from regular. Samples that come so much too soon are decided at once,
/// and earlier ones wait so much longer: otherwise an object whose samples come once in an interval would be
/// reconciled just before each of them, and never on new ones.
const JITTER_MICROS: i64 = MIN_INTERVAL_MICROS / 10;

/// How long after a change an object is reconciled. What is written together (an autoscaler and its
/// target, for instance) comes over several watches, so what belongs together arrives first, and
/// changes in a row are one reconcile.
const CHANGE_DELAY_MICROS: i64 = 100_000;

/// Whether an object waits or is being reconciled. Times are microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueState {
    /// It waits.
    Waiting {
        /// When it is due; not in the queue yet if there is none.
        due: Option<i64>,
        /// When its last reconcile began, if any did.
        began: Option<i64>,
    },
    /// It is being reconciled.
    Running {
        /// Since when.
        since: i64,
        /// When it must come again, if that is not at its next moment.
        again: Option<i64>,
    },
}

impl QueueState {
    pub(super) fn new() -> QueueState {
        QueueState::Waiting { due: None, began: None }
    }

    pub(super) fn running(since: i64) -> QueueState {
        QueueState::Running { since, again: None }
    }

    /// Being reconciled for an object of the same name that is gone, and due right after.
    pub(super) fn running_again(now: i64) -> QueueState {
        QueueState::Running { since: now, again: Some(now) }
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self, QueueState::Running { .. })
    }
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Reconcile this one, which was due so many microseconds ago.
    Now(Key, i64),
    /// Nothing is due for so long.
    In(Duration),
    /// Nothing waits at all.
    Never,
}

/// The objects that wait, by the time at which they are due: whoever is due first comes first, so that
/// a burst of one cannot keep the others waiting.
#[derive(Default)]
pub(super) struct Queue(BTreeSet<(i64, Key)>);

impl Queue {
    /// Makes an object due at a time, or earlier if it is already.
    pub(super) fn enqueue(&mut self, key: &Key, state: &mut QueueState, at: i64) {
        match state {
            QueueState::Waiting { due, .. } => {
                if due.is_some_and(|due| due <= at) {
                    return;
                }
                if let Some(due) = due.replace(at) {
                    self.0.remove(&(due, key.clone()));
                }
                self.0.insert((at, key.clone()));
            }
            QueueState::Running { again, .. } => {
                *again = Some(again.map_or(at, |again| again.min(at)));
            }
        }
    }

    /// Makes an object due now, or after the minimum interval if it has not passed since its last reconcile.
    pub(super) fn enqueue_spaced(&mut self, key: &Key, state: &mut QueueState, now: i64) {
        let began = match state {
            QueueState::Waiting { began, .. } => *began,
            QueueState::Running { since, .. } => Some(*since),
        };
        let interval = began.map(|began| began.saturating_add(MIN_INTERVAL_MICROS));
        let wait = interval.filter(|interval| now < interval.saturating_sub(JITTER_MICROS));
        self.enqueue(key, state, wait.map_or(now, |wait| wait.saturating_add(JITTER_MICROS)));
    }

    /// Takes out an object that is gone.
    pub(super) fn remove(&mut self, key: &Key, state: &QueueState) {
        if let QueueState::Waiting { due: Some(due), .. } = state {
            self.0.remove(&(*due, key.clone()));
        }
    }

    /// Takes the first that is due.
    pub(super) fn take(&mut self, now: i64) -> Due {
        let Some((due, key)) = self.0.pop_first() else { return Due::Never };
        if due > now {
            self.0.insert((due, key));
            return Due::In(Duration::from_micros(due.abs_diff(now)));
        }
        Due::Now(key, now.saturating_sub(due))
    }

    /// Puts an object back that was reconciled.
    pub(super) fn finish(&mut self, key: &Key, state: &mut QueueState, now: i64, period: i64) {
        let QueueState::Running { since, again } = *state else { return };
        let next = next_due(phase(key, period), period, since);
        let due = again.map_or(next, |again| again.max(now).min(next.max(now)));
        *state = QueueState::Waiting { due: None, began: Some(since) };
        self.enqueue(key, state, due);
    }

    /// How many are due.
    pub(super) fn count_due(&self, now: i64) -> usize {
        self.0.iter().take_while(|(due, _)| *due <= now).count()
    }
}

/// A period in microseconds.
pub(super) fn micros(period: Duration) -> i64 {
    i64::try_from(period.as_micros()).unwrap_or(i64::MAX).max(1)
}

/// When an object is due that changed now.
pub(super) fn after_change(now: i64) -> i64 {
    now.saturating_add(CHANGE_DELAY_MICROS)
}

/// The next moment of an object.
pub(super) fn next_moment(key: &Key, period: i64, now: i64) -> i64 {
    moment(phase(key, period), period, now)
}

/// Where in the period an object has its moment: spread evenly, the same after every restart.
fn phase(key: &Key, period: i64) -> i64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let moment = i64::try_from(hasher.finish() % u64::from(MOMENTS)).unwrap_or(0);
    (period / i64::from(MOMENTS)).saturating_mul(moment)
}

/// The first moment of this phase that is not before a time.
fn moment(phase: i64, period: i64, earliest: i64) -> i64 {
    let wait = phase.wrapping_sub(earliest).rem_euclid(period);
    earliest.saturating_add(wait)
}

/// When an object is due again whose reconcile began at this time: at its next moment, but not before
/// half a period has passed, so that one that came out of turn does not come twice in a row. Where
/// that is more than a period away, it comes half-way as well.
fn next_due(phase: i64, period: i64, began: i64) -> i64 {
    let next = moment(phase, period, began.saturating_add(period / 2));
    let wait = next.saturating_sub(began);
    if wait > period { began.saturating_add(wait / 2) } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::hpa::HPA;

    fn key(name: &str) -> Key {
        Key { namespace: "x".into(), name: name.into(), kind: &HPA }
    }

    #[test]
    fn moments_are_spread_over_the_period_and_stay() {
        let period = 15_000_000;
        let mut quarters = [0; 4];
        for number in 0..1000 {
            let phase = phase(&key(&number.to_string()), period);
            quarters[usize::try_from(phase * 4 / period).expect("a quarter")] += 1;
            for now in [0, 1, 7_499_999, 123_456_789] {
                let next = moment(phase, period, now);
                assert_eq!(next % period, phase);
                assert!((0..period).contains(&(next - now)), "{next} after {now}");
                let first = next_due(phase, period, now);
                let second = next_due(phase, period, first);
                for gap in [first - now, second - first] {
                    assert!((period / 2..=period).contains(&gap), "{gap} after {now}");
                }
                assert_eq!(second % period, phase, "soon it has its moment");
                assert_eq!(next_due(phase, period, second), second + period);
            }
        }
        assert!(quarters.iter().all(|count| (200..300).contains(count)), "{quarters:?}");
    }

    #[test]
    fn one_at_a_time_in_order_and_again_if_it_changed_meanwhile() {
        let (mut queue, period) = (Queue::default(), 1000);
        let (mut a, mut b) = (QueueState::new(), QueueState::new());
        queue.enqueue(&key("b"), &mut b, 5);
        queue.enqueue(&key("a"), &mut a, 7);
        queue.enqueue(&key("b"), &mut b, 6);
        assert_eq!(queue.take(10), Due::Now(key("b"), 5), "the earlier time counts");
        assert_eq!(queue.take(10), Due::Now(key("a"), 3));
        assert_eq!(queue.take(10), Due::Never);
        (a, b) = (QueueState::running(10), QueueState::running(10));
        queue.enqueue(&key("b"), &mut b, 11);
        assert_eq!(queue.take(12), Due::Never, "b is being reconciled");
        queue.finish(&key("b"), &mut b, 13, period);
        assert_eq!(queue.take(14), Due::Now(key("b"), 1));
        b = QueueState::running(14);
        queue.finish(&key("b"), &mut b, 15, period);
        assert!(matches!(queue.take(20), Due::In(_)), "at its next moment");
        queue.finish(&key("a"), &mut a, 21, period);
        queue.remove(&key("a"), &a);
        queue.remove(&key("b"), &b);
        assert_eq!(queue.take(100_000), Due::Never);
    }

    #[test]
    fn samples_enqueue_an_object_at_most_once_in_its_minimum_interval() {
        let (mut queue, mut state, period) = (Queue::default(), QueueState::new(), 15_000_000);
        let interval = MIN_INTERVAL_MICROS;
        queue.enqueue_spaced(&key("a"), &mut state, 5 * interval);
        assert_eq!(queue.take(5 * interval), Due::Now(key("a"), 0), "at once the first time");
        state = QueueState::running(5 * interval);
        for _ in 0..100 {
            queue.enqueue_spaced(&key("a"), &mut state, 5 * interval + 10);
        }
        queue.finish(&key("a"), &mut state, 5 * interval + 20, period);
        let wait = Duration::from_micros((interval + JITTER_MICROS).unsigned_abs() - 30);
        assert_eq!(queue.take(5 * interval + 30), Due::In(wait));
        queue.enqueue_spaced(&key("a"), &mut state, 5 * interval + 40);
        queue.enqueue(&key("b"), &mut QueueState::new(), 5 * interval + 50);
        assert_eq!(queue.take(5 * interval + 60), Due::Now(key("b"), 10), "others go on meanwhile");
        assert!(
            matches!(queue.take(6 * interval), Due::In(_)),
            "the next samples are about to come"
        );
        queue.enqueue_spaced(&key("a"), &mut state, 6 * interval - 10);
        assert_eq!(queue.take(6 * interval), Due::Now(key("a"), 10), "here they are");
        state = QueueState::running(6 * interval);
        queue.finish(&key("a"), &mut state, 9 * interval, period);
        queue.enqueue_spaced(&key("a"), &mut state, 9 * interval);
        assert_eq!(queue.take(9 * interval), Due::Now(key("a"), 0), "the interval has passed");
    }
}
