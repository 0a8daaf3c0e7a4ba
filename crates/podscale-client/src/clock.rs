//! The one clock of the program: the wall clock, or one that runs faster from a given start.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use std::time::Duration;
use tokio::time::Instant;

/// Tells the time and waits, at the chosen speed. Cheap to clone; all clones agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
    epoch: Timestamp,
    speed: f64,
}

impl Clock {
    /// The slowest and the fastest speed that make sense.
    pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

    /// The wall clock.
    #[must_use]
    pub fn wall() -> Clock {
        Clock::fast(Timestamp::now(), 1.0)
    }

    /// A clock that shows `epoch` now and runs `speed` times as fast as the wall clock; a speed out of
    /// range is taken as the nearest that is in range.
    #[must_use]
    pub fn fast(epoch: Timestamp, speed: f64) -> Clock {
        let speed = if speed.is_finite() { speed } else { 1.0 };
        let speed = speed.clamp(*Clock::SPEEDS.start(), *Clock::SPEEDS.end());
        Clock { started: Instant::now(), epoch, speed }
    }

    /// What time it is.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = self.started.elapsed().mul_f64(self.speed);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// How many times as fast as the wall clock it runs.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.speed
    }

    /// How long the wall clock takes for so much of this clock's time.
    #[must_use]
    pub fn to_wall(&self, duration: Duration) -> Duration {
        duration.div_f64(self.speed)
    }

    /// Waits until so much of this clock's time has passed.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(self.to_wall(duration)).await;
    }
}

/// A time as objects hold it: whole seconds.
#[must_use]
pub fn stamp(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}
