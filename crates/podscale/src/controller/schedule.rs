//! When which autoscaler is due: each at its own moment of every period, and at once when it
//! changed. An object that is being decided is never started a second time; it is noted and comes
//! again right after.

use crate::clock::Clock;
use crate::watch::world::Key;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use tokio::sync::Notify;

/// The moments at which autoscalers are due.
pub struct Schedule {
    clock: Clock,
    period_micros: i64,
    state: Mutex<State>,
    sooner: Notify,
}

#[derive(Default)]
struct State {
    /// Ordered by due time; times are microseconds since 1970.
    waiting: BTreeSet<(i64, Key)>,
    entries: HashMap<Key, Entry>,
    /// The periods of those that have their own, in microseconds.
    periods: HashMap<Key, i64>,
}

enum Entry {
    /// Due at this time.
    Waiting(i64),
    /// Being decided since this time; whether it must come again right after.
    Running { since: i64, again: bool },
    /// Being decided, but gone.
    Leaving,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// Decide this one, which was due so many microseconds ago.
    Decide(Key, i64),
    /// Nothing is due for so long.
    Wait(Duration),
    /// Nothing is known at all.
    Idle,
}

impl Schedule {
    /// Everything is due once in each period.
    #[must_use]
    pub fn new(clock: Clock, period: Duration) -> Schedule {
        let period_micros = micros(period);
        Schedule { clock, period_micros, state: Mutex::default(), sooner: Notify::new() }
    }

    /// Gives an autoscaler a period of its own, or that of all.
    pub fn pace(&self, key: &Key, period: Option<Duration>) {
        let mut state = self.state.lock();
        match period {
            Some(period) => drop(state.periods.insert(key.clone(), micros(period))),
            None => drop(state.periods.remove(key)),
        }
    }

    /// Makes an autoscaler due at once.
    pub fn hurry(&self, key: Key) {
        self.state.lock().hurry(key, self.clock.now().as_microsecond());
        self.sooner.notify_one();
    }

    /// Makes an autoscaler due at its next moment, so that all those that a start finds do not
    /// come at once.
    pub fn add(&self, key: Key) {
        let now = self.clock.now().as_microsecond();
        let (phase, period) = (phase(&key, self.period_micros), self.period_micros);
        let due = moment(phase, period, now);
        self.state.lock().add(key, due);
        self.sooner.notify_one();
    }

    /// Forgets an autoscaler.
    pub fn forget(&self, key: &Key) {
        self.state.lock().forget(key);
    }

    /// Waits for the next that is due, takes it, and tells by how much it is late.
    pub async fn next(&self) -> (Key, Duration) {
        loop {
            let sooner = self.sooner.notified();
            let next = self.state.lock().take(self.clock.now().as_microsecond());
            match next {
                Next::Decide(key, late) => {
                    return (key, Duration::from_micros(late.unsigned_abs()));
                }
                Next::Wait(wait) => {
                    tokio::select! {
                        biased;
                        () = sooner => {}
                        () = self.clock.sleep(wait) => {}
                    }
                }
                Next::Idle => sooner.await,
            }
        }
    }

    /// Puts an autoscaler back after it was decided.
    pub fn done(&self, key: &Key) {
        let now = self.clock.now().as_microsecond();
        let mut state = self.state.lock();
        let period = state.periods.get(key).copied().unwrap_or(self.period_micros);
        let phase = phase(key, period);
        if state.done(key, now, |since| next_due(phase, period, since)) {
            self.sooner.notify_one();
        }
    }

    /// How many are due and wait for their turn.
    #[must_use]
    pub fn due(&self) -> usize {
        let now = self.clock.now().as_microsecond();
        self.state.lock().waiting.iter().take_while(|(due, _)| *due <= now).count()
    }

    /// How many are known.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    /// Whether none is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn micros(period: Duration) -> i64 {
    i64::try_from(period.as_micros()).unwrap_or(i64::MAX).max(1)
}

/// How many moments a period has. Those that share one are decided in a row, on values that were read
/// at that moment, and their writes travel together: that costs a fraction of deciding them one by one,
/// and with few moments nobody has to make do with older values.
pub const MOMENTS: u32 = 4;

/// Where in the period an object has its moment: spread evenly, the same after every restart.
fn phase(key: &Key, period_micros: i64) -> i64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let moment = i64::try_from(hasher.finish() % u64::from(MOMENTS)).unwrap_or(0);
    (period_micros / i64::from(MOMENTS)).saturating_mul(moment)
}

/// The first moment of this phase that is not before a time.
fn moment(phase: i64, period: i64, earliest: i64) -> i64 {
    let wait = phase.wrapping_sub(earliest).rem_euclid(period);
    earliest.saturating_add(wait)
}

/// When an object is due again that was taken at this time: at its next moment, but not before half a
/// period has passed, so that one that was decided out of turn is not decided twice in a row. Where
/// that is more than a period away, it comes half-way as well.
fn next_due(phase: i64, period: i64, taken: i64) -> i64 {
    let next = moment(phase, period, taken.saturating_add(period / 2));
    let wait = next.saturating_sub(taken);
    if wait > period { taken.saturating_add(wait / 2) } else { next }
}

impl State {
    fn add(&mut self, key: Key, due: i64) {
        if !self.entries.contains_key(&key) {
            self.entries.insert(key.clone(), Entry::Waiting(due));
            self.waiting.insert((due, key));
        }
    }

    fn hurry(&mut self, key: Key, now: i64) {
        match self.entries.get_mut(&key) {
            Some(Entry::Waiting(due)) => {
                self.waiting.remove(&(*due, key.clone()));
                *due = now;
                self.waiting.insert((now, key));
            }
            Some(Entry::Running { again, .. }) => *again = true,
            Some(leaving) => *leaving = Entry::Running { since: now, again: true },
            None => {
                self.entries.insert(key.clone(), Entry::Waiting(now));
                self.waiting.insert((now, key));
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        self.periods.remove(key);
        match self.entries.get_mut(key) {
            Some(Entry::Waiting(due)) => {
                self.waiting.remove(&(*due, key.clone()));
                self.entries.remove(key);
            }
            Some(running) => *running = Entry::Leaving,
            None => {}
        }
    }

    fn take(&mut self, now: i64) -> Next {
        let Some((due, key)) = self.waiting.pop_first() else { return Next::Idle };
        if due > now {
            let wait = Duration::from_micros(due.abs_diff(now));
            self.waiting.insert((due, key));
            return Next::Wait(wait);
        }
        self.entries.insert(key.clone(), Entry::Running { since: now, again: false });
        Next::Decide(key, now.saturating_sub(due))
    }

    /// Puts it back; `due` tells its next moment from when it was taken. Whether it is waiting now.
    fn done(&mut self, key: &Key, now: i64, due: impl FnOnce(i64) -> i64) -> bool {
        let due = match self.entries.get(key) {
            Some(Entry::Running { again: true, .. }) => now,
            Some(Entry::Running { since, again: false }) => due(*since),
            Some(Entry::Leaving) => {
                self.entries.remove(key);
                return false;
            }
            Some(Entry::Waiting(_)) | None => return false,
        };
        self.entries.insert(key.clone(), Entry::Waiting(due));
        self.waiting.insert((due, key.clone()));
        // Whoever waits may wait for something later than this.
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { namespace: "x".into(), name: name.into() }
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
        let mut state = State::default();
        state.hurry(key("b"), 5);
        state.hurry(key("a"), 7);
        state.hurry(key("b"), 6);
        assert_eq!(state.take(10), Next::Decide(key("b"), 4));
        assert_eq!(state.take(10), Next::Decide(key("a"), 3));
        assert_eq!(state.take(10), Next::Idle);
        state.hurry(key("b"), 11);
        assert_eq!(state.take(12), Next::Idle, "b is being decided");
        assert!(state.done(&key("b"), 13, |_| 100));
        assert_eq!(state.take(14), Next::Decide(key("b"), 1));
        assert!(state.done(&key("b"), 15, |since| since + 86));
        assert_eq!(state.take(20), Next::Wait(Duration::from_micros(80)));
        state.forget(&key("a"));
        assert!(!state.done(&key("a"), 21, |_| 100));
        state.forget(&key("b"));
        assert_eq!(state.take(1000), Next::Idle);
        assert!(state.entries.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_may_have_a_period_of_its_own() {
        let schedule = Schedule::new(Clock::wall(), Duration::from_secs(15));
        schedule.pace(&key("fast"), Some(Duration::from_secs(1)));
        for name in ["fast", "plain"] {
            schedule.hurry(key(name));
        }
        let mut turns = HashMap::new();
        let watching = async {
            loop {
                let (key, _) = schedule.next().await;
                *turns.entry(key.name.to_string()).or_insert(0) += 1;
                schedule.done(&key);
            }
        };
        let watched = tokio::time::timeout(Duration::from_secs(60), watching).await;
        assert!(watched.is_err(), "it goes on for ever");
        assert!((59..=62).contains(&turns["fast"]), "{turns:?}");
        assert!((4..=6).contains(&turns["plain"]), "{turns:?}");
        schedule.pace(&key("fast"), None);
        assert!(schedule.state.lock().periods.is_empty());
    }
}
