//! One way on which samples of pods travel: when they are taken, lost, late, and how long they are kept.

use super::MAX_SCRAPES;
use crate::environment::{Pipeline, seconds};
use crate::random;
use crate::workload::Flow;
use crate::world::fleet::{Fleet, NEVER, Scrape, SimPod, Stage};
use podscale_core::{Span, Time};
use std::collections::VecDeque;

/// What the draws of scrapes are for.
const MISSING: u64 = 303;
const LATE: u64 = 304;
/// How old a container must be before its first scrape is compared with its start, as metrics-server
/// and kubelets do.
const MIN_CONTAINER_AGE: Span = Span::seconds(10);

/// One way for samples, with its own moments.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) pipeline: Pipeline,
    resolution: Span,
    pub(super) window: Span,
    pub(super) due: Time,
    count: u64,
}

impl Way {
    pub(super) fn new(
        pipeline: &Pipeline,
        needed: bool,
        start: Time,
        seed: u64,
        moment: u64,
    ) -> Way {
        let resolution = seconds(pipeline.resolution_seconds);
        let first = seconds(pipeline.moment_seconds.unwrap_or_else(|| {
            let part = (random::unit(seed, 0, moment) + 1.0) / 2.0;
            pipeline.resolution_seconds * part
        }));
        Way {
            resolution,
            window: seconds(pipeline.window_seconds),
            due: if needed { start.after(first) } else { NEVER },
            count: 0,
            pipeline: pipeline.clone(),
        }
    }

    /// When a scrape of this pod can be read, and whether it is lost.
    fn visible(&self, at: Time, seed: u64, pod: u64) -> (Time, bool) {
        let Pipeline { delay_seconds, missing, late, late_by_seconds, .. } = self.pipeline;
        let hash = seed ^ pod.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let chance = |purpose| (random::unit(hash, self.count, purpose) + 1.0) / 2.0;
        if missing > 0.0 && chance(MISSING) < missing {
            return (at.after(seconds(delay_seconds)), true);
        }
        let later = if late > 0.0 && chance(LATE) < late { late_by_seconds } else { 0.0 };
        (at.after(seconds(delay_seconds + later)), false)
    }

    /// How long scrapes are of use.
    pub(super) fn kept(&self) -> Span {
        let Pipeline { delay_seconds, late_by_seconds, .. } = self.pipeline;
        let window = self.window.max(self.resolution).0;
        let wait = seconds(delay_seconds + late_by_seconds).0;
        Span(window.saturating_add(wait).saturating_add(self.resolution.0.saturating_mul(2)))
    }
}

/// Scrapes all pods that run on one way.
pub(super) fn scrape_pods(
    way: &mut Way,
    now: Time,
    seed: u64,
    fleet: &mut Fleet,
    flow: &Flow,
    ring_of: impl Fn(&mut SimPod) -> &mut VecDeque<Scrape>,
) {
    let counters = flow.counters();
    let (busy, idle) = flow.memory_bytes();
    let cut = now.before(way.kept());
    let resolution = way.resolution;
    for pod in fleet.pods_mut().iter_mut().filter(|pod| pod.is_running()) {
        let (visible, lost) = way.visible(now, seed, pod.id);
        let (cpu_seconds, served) = pod.used(&counters);
        let memory_bytes = if pod.stage == Stage::Ready { busy } else { idle };
        let started = pod.running.unwrap_or(now);
        let ring = ring_of(pod);
        let age = now.since(started);
        if ring.is_empty() && age >= MIN_CONTAINER_AGE && age < resolution {
            let memory_bytes = idle;
            let (cpu_seconds, served, lost) = (0.0, 0.0, false);
            ring.push_back(Scrape {
                at: started,
                visible,
                lost,
                cpu_seconds,
                served,
                memory_bytes,
            });
        }
        ring.push_back(Scrape { at: now, visible, lost, cpu_seconds, served, memory_bytes });
        while ring.len() > MAX_SCRAPES || ring.get(1).is_some_and(|scrape| scrape.at <= cut) {
            ring.pop_front();
        }
    }
    way.count += 1;
    way.due = now.after(resolution);
}
