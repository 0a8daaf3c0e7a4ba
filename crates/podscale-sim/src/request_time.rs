//! How long requests take, as a distribution: what one value per second cannot say.
//!
//! A pod that serves `c = rate × time` requests at once is taken as `c` servers with random arrivals.
//! A request waits with probability `busy^(√(2(c+1))−1)` (Sakasegawa's approximation), then for an
//! exponential time with mean `time / (c (1 − busy))`; if work has piled up, the time in which that is
//! served comes on top. Slots without a pile differ only in how busy they were, so that they are
//! counted by that and worked out once, at the end.

use crate::workload::{Kind, Slot, WorkloadSpec};

/// How many degrees of being busy are told apart.
const DEGREES: usize = 1024;
/// How busy pods count at most, as in the workload's own latency.
const MAX_BUSY: f64 = 0.95;
/// Times are told apart by steps of so many percent.
const STEP: f64 = 1.05;
/// The shortest and the longest time that are told apart, in seconds.
const SHORTEST: f64 = 1e-4;
const TIMES: usize = 360;

/// How long requests took, and how many took too long.
#[derive(Clone, Debug)]
pub struct RequestTimes {
    latency_seconds: f64,
    servers: f64,
    exponent: f64,
    objective_seconds: f64,
    most_seconds: f64,
    /// Which part of the requests is too slow, by how busy pods are.
    slow: Vec<f64>,
    /// How many requests came at which degree of being busy, without a pile.
    by_degree: Vec<f64>,
    /// How many requests took how long, of those that came onto a pile.
    by_time: Vec<f64>,
}

impl RequestTimes {
    /// For pods of this kind, of which one serves so many requests a second.
    #[must_use]
    pub fn new(spec: &WorkloadSpec, rps_per_pod: f64, objective_seconds: f64) -> RequestTimes {
        let servers = (rps_per_pod * spec.latency_seconds).clamp(1.0, 1e6);
        let most_seconds = match spec.kind {
            Kind::Service => spec.timeout_seconds.max(spec.latency_seconds),
            Kind::Consumer => crate::workload::MAX_LATENCY_SECONDS,
        };
        let mut times = RequestTimes {
            latency_seconds: spec.latency_seconds,
            servers,
            exponent: (2.0 * (servers + 1.0)).sqrt() - 1.0,
            objective_seconds,
            most_seconds,
            slow: Vec::new(),
            by_degree: vec![0.0; DEGREES],
            by_time: vec![0.0; TIMES],
        };
        times.slow = (0..DEGREES)
            .map(|degree| times.longer_than(objective_seconds, busy_of(degree), 0.0))
            .collect();
        times
    }

    /// How long a request may take.
    #[must_use]
    pub fn objective_seconds(&self) -> f64 {
        self.objective_seconds
    }

    /// Which part of the requests takes longer than this, where pods are so busy and so much time
    /// goes by until what is piled up is served.
    fn longer_than(&self, seconds: f64, busy: f64, pile_seconds: f64) -> f64 {
        let left = seconds - self.latency_seconds - pile_seconds;
        if left < 0.0 {
            return 1.0;
        }
        let busy = busy.clamp(0.0, MAX_BUSY);
        busy.powf(self.exponent) * (-left * self.rate(busy)).exp()
    }

    /// How busy pods may be so that at most this part of the requests is too slow.
    #[must_use]
    pub fn busy_for(&self, share: f64) -> f64 {
        let fitting = self.slow.iter().rposition(|slow| *slow <= share);
        fitting.map_or(0.5, busy_of).clamp(0.05, MAX_BUSY)
    }

    /// Takes in the requests of a slot; gives how many of those that were served were too slow.
    /// `pile_seconds` is how long what is served now has waited. What is not scored only counts as slow
    /// or not.
    pub fn add(&mut self, slot: &Slot, pile_seconds: f64, scored: bool) -> f64 {
        if slot.served <= 0.0 {
            return 0.0;
        }
        if pile_seconds <= 0.0 {
            return self.add_without_pile(slot.served, slot.capacity_rps * slot.seconds, scored);
        }
        let busy = busy(slot.served, slot.capacity_rps * slot.seconds);
        if scored {
            self.spread(slot.served, busy, pile_seconds);
        }
        slot.served * self.longer_than(self.objective_seconds, busy, pile_seconds)
    }

    /// The same for a slot in which so many requests were served of so many that could be, without a pile.
    #[inline]
    pub(crate) fn add_without_pile(&mut self, served: f64, possible: f64, scored: bool) -> f64 {
        // In range: busy is at most 0.95. To 32 bits it is one step.
        let degree = (busy(served, possible) / MAX_BUSY * (DEGREES - 1) as f64) as u32 as usize;
        let degree = degree.min(DEGREES - 1);
        if scored {
            self.by_degree[degree] += served;
        }
        served * self.slow[degree]
    }

    /// Takes in requests of which it is known how long they waited; gives how many of them were too slow.
    pub fn waited(&mut self, seconds: f64, requests: f64, scored: bool) -> f64 {
        if scored {
            self.by_time[place_of(seconds)] += requests;
        }
        if seconds > self.objective_seconds { requests } else { 0.0 }
    }

    /// Spreads requests over times by their distribution.
    fn spread(&mut self, requests: f64, busy: f64, pile_seconds: f64) {
        const PARTS: usize = 8;
        let busy = busy.clamp(0.0, MAX_BUSY);
        let waits = busy.powf(self.exponent);
        let rate = self.rate(busy);
        for part in 0..PARTS {
            let exceeded = (part as f64 + 0.5) / PARTS as f64;
            let wait = if exceeded < waits { (waits / exceeded).ln() / rate } else { 0.0 };
            let time = (self.latency_seconds + pile_seconds + wait).min(self.most_seconds);
            self.by_time[place_of(time)] += requests / PARTS as f64;
        }
    }

    /// The times that these parts of the requests do not exceed, in seconds.
    #[must_use]
    pub fn percentiles<const N: usize>(&self, parts: [f64; N]) -> [f64; N] {
        let mut whole = RequestTimes { by_degree: Vec::new(), ..self.clone() };
        for (degree, requests) in self.by_degree.iter().enumerate().filter(|(_, n)| **n > 0.0) {
            whole.spread_finely(*requests, busy_of(degree));
        }
        let total: f64 = whole.by_time.iter().sum();
        parts.map(|part| {
            if total <= 0.0 {
                return 0.0;
            }
            let mut sum = 0.0;
            let place = whole.by_time.iter().position(|requests| {
                sum += requests;
                sum >= total * part * (1.0 - 1e-12)
            });
            time_of(place.unwrap_or(TIMES - 1)).min(self.most_seconds)
        })
    }

    /// Spreads requests over times, each time with exactly its part.
    fn spread_finely(&mut self, requests: f64, busy: f64) {
        /// A part that is too small to be shown in any percentile.
        const NEGLIGIBLE: f64 = 1e-9;
        let (waits, rate) = (busy.powf(self.exponent), self.rate(busy));
        let (mut longer, mut time) = (1.0_f64, SHORTEST);
        for place in 0..TIMES {
            let left = time - self.latency_seconds;
            let next = if left < 0.0 { 1.0 } else { waits * (-left * rate).exp() };
            self.by_time[place] += requests * (longer - next).max(0.0);
            longer = longer.min(next);
            if longer < NEGLIGIBLE {
                return;
            }
            time *= STEP;
        }
        self.by_time[TIMES - 1] += requests * longer;
    }

    /// How fast waiting ends on pods that are so busy, a second.
    fn rate(&self, busy: f64) -> f64 {
        self.servers * (1.0 - busy) / self.latency_seconds.max(1e-9)
    }
}

/// How busy pods are that serve so many requests of so many that they could.
fn busy(served: f64, possible: f64) -> f64 {
    (served / possible.max(f64::MIN_POSITIVE)).min(MAX_BUSY)
}

fn busy_of(degree: usize) -> f64 {
    (degree as f64 + 0.5) / (DEGREES - 1) as f64 * MAX_BUSY
}

/// The place of the shortest time that is told apart and not shorter than this one.
fn place_of(seconds: f64) -> usize {
    let steps = (seconds.max(SHORTEST) / SHORTEST).ln() / STEP.ln();
    // The cast saturates.
    ((steps - 1e-9).ceil() as usize).min(TIMES - 1)
}

fn time_of(place: usize) -> f64 {
    SHORTEST * STEP.powi(i32::try_from(place).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> WorkloadSpec {
        serde_json::from_str(
            r#"{"rpsPerPod":50,"cpuMsPerRequest":5,"latencySeconds":0.05,"timeoutSeconds":5}"#,
        )
        .unwrap()
    }

    fn slot(busy: f64) -> Slot {
        Slot { seconds: 1.0, served: busy * 50.0, capacity_rps: 50.0, ..Slot::default() }
    }

    #[test]
    fn busier_pods_are_slower_and_idle_ones_are_not() {
        let mut slow = Vec::new();
        for busy in [0.1, 0.5, 0.8, 0.95] {
            let mut times = RequestTimes::new(&spec(), 50.0, 0.25);
            slow.push(times.add(&slot(busy), 0.0, true) / (busy * 50.0));
            let [median, p99] = times.percentiles([0.5, 0.99]);
            let most = if busy < 0.9 { 0.1 } else { 0.4 };
            assert!((0.04..most).contains(&median), "{busy}: {median}");
            assert!(p99 >= median && p99 <= 5.0, "{busy}: {p99}");
        }
        assert!(slow.is_sorted(), "{slow:?}");
        assert!(slow[0] < 1e-4 && slow[3] > 0.2, "{slow:?}");
    }

    #[test]
    fn a_pile_makes_all_slow() {
        let mut times = RequestTimes::new(&spec(), 50.0, 0.25);
        assert_eq!(times.add(&slot(0.9), 9.0, false), 45.0, "not scored, so that it is forgotten");
        assert_eq!(times.add(&slot(0.9), 2.0, true), 45.0);
        let [p50, p99] = times.percentiles([0.5, 0.99]);
        assert!(p50 > 2.0 && p99 <= 5.0, "{p50} {p99}");
        assert!(p99 < 5.0, "{p99}");
        assert_eq!(times.add(&Slot::default(), 9.0, true), 0.0);
    }

    #[test]
    fn how_busy_pods_may_be_follows_from_the_objective() {
        let busy = |objective| RequestTimes::new(&spec(), 50.0, objective).busy_for(0.01);
        assert!(busy(0.1) < busy(0.25) && busy(0.25) < busy(1.0));
        assert!((0.05..=0.95).contains(&busy(0.001)));
    }
}
