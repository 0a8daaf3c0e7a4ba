//! The last two samples of one container or node, and what a further one does to them. Every odd
//! sample has its outcome here.

use super::Used;
use crate::scrape::Reading;
use jiff::Timestamp;
use std::time::Duration;

/// How old a new container must be before its first sample is compared with zero at its start.
const MIN_CONTAINER_AGE_MS: i64 = 10_000;
/// By how much a node's clock and ours may disagree about the time between two samples. Kubelets give
/// out samples that are up to 20 s old, so less proves nothing; more is a clock that was set.
const CLOCK_JUMP_MS: i64 = 30_000;
/// How far ahead of ours a node's clock may be before its samples are not believed.
const MAX_AHEAD_MS: i64 = 3_600_000;
/// A counter above this, 30 million years of one core, is none.
const MAX_CPU_SECONDS: f64 = 1e15;
/// No container uses more cores at once.
const MAX_CORES: f64 = 65_536.0;
/// No container uses more memory: an exbibyte.
const MAX_MEMORY_BYTES: f64 = (1u64 << 60) as f64;
/// In the place of a time: there is none.
const NONE: i64 = i64::MIN;

/// CPU time at a time of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    time_ms: i64,
    cpu_seconds: f64,
}

const NO_POINT: Point = Point { time_ms: NONE, cpu_seconds: 0.0 };

/// The last sample, and the point before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    last: Point,
    before: Point,
    memory_bytes: f64,
    start_seconds: f64,
    /// When the last sample arrived, by our clock.
    received_ms: i64,
}

impl Default for Pair {
    fn default() -> Pair {
        let (last, before) = (NO_POINT, NO_POINT);
        Pair { last, before, memory_bytes: 0.0, start_seconds: 0.0, received_ms: NONE }
    }
}

/// A reading that can be believed.
#[derive(Clone, Copy)]
struct Sample {
    point: Point,
    memory_bytes: f64,
    start_seconds: f64,
    window_ms: Option<i64>,
}

impl Sample {
    fn of(reading: &Reading, scraped_ms: i64) -> Option<Sample> {
        let (cpu_seconds, memory_bytes) = (reading.cpu_seconds?, reading.memory_bytes?);
        let time_ms = reading.time_ms.unwrap_or(scraped_ms);
        // Comparisons with what is no number are false.
        let sound = (0.0..=MAX_CPU_SECONDS).contains(&cpu_seconds)
            && (0.0..=MAX_MEMORY_BYTES).contains(&memory_bytes)
            && time_ms > 0
            && time_ms <= scraped_ms.saturating_add(MAX_AHEAD_MS);
        let started = (0.0..1e12).contains(&reading.start_seconds);
        sound.then_some(Sample {
            point: Point { time_ms, cpu_seconds },
            memory_bytes,
            start_seconds: if started { reading.start_seconds } else { 0.0 },
            window_ms: reading.window_ms,
        })
    }

    /// The point that a first sample is compared with: the begin of its own window, or zero at the
    /// container's start, if that was neither too recently nor before the last scrape.
    fn origin(&self, resolution_ms: i64) -> Point {
        let start_ms = match self.window_ms {
            Some(window_ms) => self.point.time_ms.saturating_sub(window_ms),
            None => {
                // The cast saturates.
                let start_ms = (self.start_seconds * 1000.0) as i64;
                let age_ms = self.point.time_ms.saturating_sub(start_ms);
                if start_ms <= 0 || !(MIN_CONTAINER_AGE_MS..resolution_ms).contains(&age_ms) {
                    return NO_POINT;
                }
                start_ms
            }
        };
        Point { time_ms: start_ms, cpu_seconds: 0.0 }
    }
}

impl Pair {
    /// Takes in a further reading; whether it is new. One that cannot be believed, or is known
    /// already, changes nothing.
    pub(super) fn take(&mut self, reading: &Reading, scraped_ms: i64, resolution_ms: i64) -> bool {
        let Some(sample) = Sample::of(reading, scraped_ms) else { return false };
        let begins = match self.follows(&sample, scraped_ms) {
            Follows::Not => return false,
            Follows::On => false,
            Follows::Anew => true,
        };
        self.before = if begins { sample.origin(resolution_ms) } else { self.last };
        self.last = sample.point;
        self.memory_bytes = sample.memory_bytes;
        // A start that is not told once is still the same.
        if begins || sample.start_seconds > 0.0 {
            self.start_seconds = sample.start_seconds;
        }
        self.received_ms = scraped_ms;
        true
    }

    /// How a sample stands to the last one.
    fn follows(&self, sample: &Sample, scraped_ms: i64) -> Follows {
        let Pair { last, start_seconds, received_ms, .. } = *self;
        if last.time_ms == NONE {
            return Follows::Anew;
        }
        let known = start_seconds > 0.0 && sample.start_seconds > 0.0;
        if known && start_seconds != sample.start_seconds {
            return Follows::Anew;
        }
        let gap_ms = sample.point.time_ms.saturating_sub(last.time_ms);
        if (-CLOCK_JUMP_MS..=0).contains(&gap_ms) {
            return Follows::Not;
        }
        if sample.window_ms.is_some() {
            return Follows::Anew;
        }
        let passed_ms = scraped_ms.saturating_sub(received_ms);
        let jumped = gap_ms.saturating_sub(passed_ms).saturating_abs() > CLOCK_JUMP_MS;
        let used = sample.point.cpu_seconds - last.cpu_seconds;
        let possible = (0.0..=MAX_CORES * gap_ms as f64 / 1000.0).contains(&used);
        if gap_ms < 0 || jumped || !possible { Follows::Anew } else { Follows::On }
    }

    /// Mean use between the points; nothing if there is only one, if it is too old, or if nothing is
    /// in memory.
    pub(super) fn used(&self, now_ms: i64, max_age_ms: i64) -> Option<Used> {
        let window_ms = u64::try_from(self.last.time_ms.checked_sub(self.before.time_ms)?).ok()?;
        let complete = self.before.time_ms != NONE && window_ms > 0 && self.memory_bytes > 0.0;
        if !complete || self.age_ms(now_ms) > max_age_ms {
            return None;
        }
        let cpu_seconds = self.last.cpu_seconds - self.before.cpu_seconds;
        Some(Used {
            time: Timestamp::from_millisecond(self.last.time_ms).ok()?,
            window: Duration::from_millis(window_ms),
            // Casts saturate.
            cpu_nanos: (cpu_seconds / window_ms as f64 * 1e12).round() as u64,
            memory_bytes: self.memory_bytes.round() as u64,
        })
    }

    /// How long ago the last sample arrived.
    pub(super) fn age_ms(&self, now_ms: i64) -> i64 {
        now_ms.saturating_sub(self.received_ms)
    }

    /// Which of two of the same name is the newer: the one that was started last, then the one that
    /// was measured last.
    pub(super) fn newness(&self) -> (f64, i64) {
        (self.start_seconds, self.last.time_ms)
    }
}

/// How a sample stands to the one before.
enum Follows {
    /// It says nothing new.
    Not,
    /// It makes a pair with the last one.
    On,
    /// The last one cannot be compared with it.
    Anew,
}
