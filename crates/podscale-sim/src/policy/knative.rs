//! Knative's KPA, as it works: every pod is asked for its concurrency each second; every two seconds
//! the size follows the mean over the stable window, or, in a panic, over a tenth of it.
//!
//! - The desired size of a window is its mean concurrency divided by the target, but not more than
//!   `max scale up rate` times and not less than the ready pods divided by `max scale down rate`.
//! - If the panic window asks for at least `panic threshold` times the ready pods, panic begins or goes
//!   on; it ends when that was not so for a stable window. In a panic the larger of both windows counts,
//!   and the size never falls.
//!
//! Left out: the activator (a service at zero refuses requests in this simulation, so that the minimum
//! is at least one for services), metrics by requests per second, and the scale-down delay, which is
//! zero by default.

use super::{Moments, Policy};
use crate::environment::seconds;
use crate::plan::Plan;
use crate::world::{Needs, World};
use podscale_core::{Span, Time};
use std::collections::VecDeque;

/// How often pods are asked.
const SCRAPE: Span = Span::seconds(1);
/// How many times as often pods are asked as the size is decided.
const SCRAPES_PER_DECISION: u64 = 2;

/// The settings of config-autoscaler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KpaConfig {
    /// The fewest replicas.
    pub min: i32,
    /// The most replicas.
    pub max: i32,
    /// Requests in flight that one pod should have: container-concurrency-target times its percentage.
    pub target: f64,
    /// `stable-window`.
    pub stable_seconds: f64,
    /// `panic-window-percentage`, as a part of one.
    pub panic_window: f64,
    /// `panic-threshold-percentage`, as a part of one.
    pub panic_threshold: f64,
    /// `max-scale-up-rate`.
    pub max_up: f64,
    /// `max-scale-down-rate`.
    pub max_down: f64,
}

impl KpaConfig {
    /// Knative's defaults for a target of so many requests in flight.
    #[must_use]
    pub fn with_target(target: f64, min: i32, max: i32) -> KpaConfig {
        KpaConfig {
            min,
            max,
            target,
            stable_seconds: 60.0,
            panic_window: 0.1,
            panic_threshold: 2.0,
            max_up: 1000.0,
            max_down: 2.0,
        }
    }
}

/// Knative's autoscaler.
#[derive(Clone, Debug)]
pub struct Knative {
    config: KpaConfig,
    moments: Moments,
    count: u64,
    /// Concurrency over all pods, each second, as long as the stable window.
    seen: VecDeque<f64>,
    panic_since: Option<Time>,
    panic_size: i32,
    last: (f64, f64, i32),
}

impl Knative {
    /// With these settings.
    #[must_use]
    pub fn new(config: KpaConfig) -> Knative {
        Knative {
            config,
            moments: Moments::never(),
            count: 0,
            seen: VecDeque::new(),
            panic_since: None,
            panic_size: 0,
            last: (0.0, 0.0, 0),
        }
    }

    fn mean(&self, window_seconds: f64) -> f64 {
        // The cast saturates.
        let wanted = (window_seconds.round() as usize).max(1);
        let count = wanted.min(self.seen.len());
        let sum: f64 = self.seen.iter().rev().take(count).sum();
        if count > 0 { sum / count as f64 } else { 0.0 }
    }

    fn size(&mut self, now: Time, ready: usize) -> i32 {
        let KpaConfig { stable_seconds, panic_window, panic_threshold, .. } = self.config;
        let ready = (ready as f64).max(1.0);
        let stable_mean = self.mean(stable_seconds);
        let panic_mean = self.mean(stable_seconds * panic_window);
        let most = (self.config.max_up * ready).ceil();
        let least = (ready / self.config.max_down.max(1.0)).floor();
        let wanted = |mean: f64| (mean / self.config.target.max(1e-9)).ceil();
        let bounded = |size: f64| size.max(least).min(most);
        let (stable, panic) = (bounded(wanted(stable_mean)), bounded(wanted(panic_mean)));
        if wanted(panic_mean) / ready >= panic_threshold {
            self.panic_since = Some(now);
        } else if self.panic_since.is_some_and(|since| since.after(seconds(stable_seconds)) < now) {
            self.panic_since = None;
            self.panic_size = 0;
        }
        // The casts saturate.
        let mut size = stable as i32;
        if self.panic_since.is_some() {
            self.panic_size = self.panic_size.max(size).max(panic as i32);
            size = self.panic_size;
        }
        let size = size.clamp(self.config.min, self.config.max.max(self.config.min));
        self.last = (stable_mean, panic_mean, size);
        size
    }
}

impl Policy for Knative {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn begin(&mut self, plan: &Plan) {
        self.moments = Moments { period: SCRAPE, next: plan.start.after(SCRAPE) };
    }

    fn next_due(&self) -> Time {
        self.moments.next
    }

    fn decide(&mut self, world: &World<'_>) -> Option<i32> {
        self.moments.advance();
        self.count += 1;
        self.seen.push_back(world.in_flight());
        // The cast saturates.
        let kept = (self.config.stable_seconds.ceil() as usize).clamp(1, 86_400);
        while self.seen.len() > kept {
            self.seen.pop_front();
        }
        if !self.count.is_multiple_of(SCRAPES_PER_DECISION) {
            return None;
        }
        let size = self.size(world.now, world.ready());
        (world.scale().spec_replicas != size).then_some(size)
    }

    fn explain(&self) -> Vec<String> {
        let (stable, panic, size) = self.last;
        let target = self.config.target;
        let mode = if self.panic_since.is_some() { "panicking" } else { "stable" };
        vec![
            format!(
                "{stable:.1} requests in flight over the stable window, {panic:.1} over the panic window, target {target:.1} per pod"
            ),
            format!("{mode}: the size is {size}"),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(0).after(Span::seconds(seconds))
    }

    #[test]
    fn a_burst_panics_and_the_size_does_not_fall_meanwhile() {
        let mut kpa = Knative::new(KpaConfig::with_target(10.0, 1, 100));
        kpa.seen.extend(vec![20.0; 60]);
        assert_eq!(kpa.size(at(60), 2), 2);
        // Six seconds of ten times as much: the panic window sees it, the stable one hardly.
        kpa.seen.drain(..6);
        kpa.seen.extend(vec![200.0; 6]);
        assert_eq!(kpa.size(at(66), 2), 20);
        kpa.seen.drain(..6);
        kpa.seen.extend(vec![20.0; 6]);
        assert_eq!(kpa.size(at(72), 20), 20, "in a panic nothing falls");
        kpa.seen = vec![20.0; 60].into();
        assert_eq!(kpa.size(at(127), 20), 10, "after a stable window, by half at most");
    }
}
