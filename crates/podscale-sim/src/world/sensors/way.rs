//! One way on which samples of pods travel: when they are taken, lost, late, and how long they are kept.
//! All pods are scraped at the same moments, so that one round of scrapes is kept once for all of them;
//! what a pod did between two rounds follows from when it started and became ready.

use crate::environment::{Pipeline, seconds};
use crate::random;
use crate::workload::{Counters, Flow};
use crate::world::fleet::{NEVER, SimPod, Stage};
use podscale_core::{Span, Time};
use std::collections::VecDeque;

/// What the draws of scrapes are for.
const MISSING: u64 = 303;
const LATE: u64 = 304;
/// How old a container must be before its first scrape is compared with its start, as metrics-server
/// and kubelets do.
const MIN_CONTAINER_AGE: Span = Span::seconds(10);
/// No more rounds are kept.
pub(super) const MAX_ROUNDS: usize = 4_096;

/// One scrape of all pods.
#[derive(Clone, Copy, Debug)]
struct Round {
    at: Time,
    number: u64,
    counters: Counters,
    /// The memory of a pod that serves, and of one that idles.
    memory_bytes: (f64, f64),
}

/// One way for samples, with its own moments.
#[derive(Clone, Debug)]
pub(super) struct Way {
    pub(super) pipeline: Pipeline,
    pub(super) window: Span,
    pub(super) delay: Span,
    pub(super) due: Time,
    /// How long rounds are of use.
    pub(super) kept: Span,
    resolution: Span,
    late_by: Span,
    count: u64,
    rounds: VecDeque<Round>,
}

impl Way {
    pub(super) fn new(
        pipeline: &Pipeline,
        needed: bool,
        start: Time,
        seed: u64,
        moment: u64,
    ) -> Way {
        let first = seconds(pipeline.moment_seconds.unwrap_or_else(|| {
            let part = (random::unit(seed, 0, moment) + 1.0) / 2.0;
            pipeline.resolution_seconds * part
        }));
        let (resolution, window) =
            (seconds(pipeline.resolution_seconds), seconds(pipeline.window_seconds));
        let (delay, late_by) = (seconds(pipeline.delay_seconds), seconds(pipeline.late_by_seconds));
        let kept = [window.max(resolution), delay, late_by, resolution, resolution];
        Way {
            window,
            delay,
            due: if needed { start.after(first) } else { NEVER },
            kept: Span(kept.iter().fold(0, |sum: i64, span| sum.saturating_add(span.0))),
            resolution,
            late_by,
            count: 0,
            rounds: VecDeque::new(),
            pipeline: pipeline.clone(),
        }
    }

    /// Scrapes all pods.
    pub(super) fn scrape(&mut self, now: Time, flow: &Flow) {
        let (counters, memory_bytes) = (flow.counters(), flow.memory_bytes());
        self.rounds.push_back(Round { at: now, number: self.count, counters, memory_bytes });
        let cut = now.before(self.kept);
        while self.rounds.len() > MAX_ROUNDS || self.rounds.get(1).is_some_and(|r| r.at <= cut) {
            self.rounds.pop_front();
        }
        self.count += 1;
        self.due = now.after(self.resolution);
    }

    /// What can be read now; nothing before the first round has arrived.
    pub(super) fn read(&self, now: Time, seed: u64) -> Option<Readable<'_>> {
        let last = self.rounds.iter().rposition(|round| round.at.after(self.delay) <= now)?;
        let edge = self.rounds[last].at.before(self.window);
        let before = (0..last).rev().find(|place| self.rounds[*place].at <= edge);
        let is_reliable = self.pipeline.missing <= 0.0 && self.pipeline.late <= 0.0;
        let before = before.filter(|_| is_reliable);
        let common = before.map(|before| Common::new(&self.rounds[before], &self.rounds[last]));
        Some(Readable { way: self, now, seed, last, common })
    }
}

/// What can be read of pods at one moment.
pub(super) struct Readable<'a> {
    way: &'a Way,
    now: Time,
    seed: u64,
    /// The last round that has arrived.
    last: usize,
    /// What pods did that served in the whole of a window before it, if they can all be read alike.
    common: Option<Common>,
}

/// What every pod did that served in the whole of a window: ready pods share the load evenly.
#[derive(Clone, Copy, Debug)]
struct Common {
    /// Who was ready by then did so.
    ready_by: Time,
    measured: Measured,
}

impl Common {
    fn new(from: &Round, to: &Round) -> Common {
        let measured = Measured {
            from: from.at,
            to: to.at,
            cpu_seconds: to.counters.busy_cpu_seconds - from.counters.busy_cpu_seconds,
            served: to.counters.served - from.counters.served,
            memory_bytes: to.memory_bytes.0,
        };
        Common { ready_by: from.at, measured }
    }
}

/// What a pod did between two scrapes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) cpu_seconds: f64,
    pub(super) served: f64,
    /// At the end.
    pub(super) memory_bytes: f64,
}

impl Measured {
    pub(super) fn seconds(&self) -> f64 {
        self.to.since(self.from).0.max(1) as f64 / 1e6
    }
}

impl Readable<'_> {
    /// What pods did that serve since this time, if they can all be read alike.
    pub(super) fn common(&self) -> Option<(Time, &Measured)> {
        self.common.as_ref().map(|common| (common.ready_by, &common.measured))
    }

    /// What can be read of a pod; nothing if it was not scraped often enough, or the last scrape failed.
    // It is called for every pod at every decision, and gives more than registers take.
    #[inline(always)]
    pub(super) fn of(&self, pod: &SimPod) -> Option<Measured> {
        match &self.common {
            Some(common) if pod.serves_since(common.ready_by) => Some(common.measured),
            _ => self.search(pod),
        }
    }

    /// The long way, kept apart so that the short one is quick.
    #[inline(never)]
    fn search(&self, pod: &SimPod) -> Option<Measured> {
        let running = pod.running.filter(|_| pod.stage != Stage::Stopping)?;
        let rounds = &self.way.rounds;
        let first = rounds.partition_point(|round| round.at < running);
        let arrived = |place: &usize| self.arrival(*place, pod.id) <= self.now;
        let last = (first..=self.last).rev().find(arrived)?;
        if self.is_lost(last, pod.id) {
            return None;
        }
        let edge = rounds[last].at.before(self.way.window);
        let is_known = |place: &usize| !self.is_lost(*place, pod.id);
        let before = (first..last).rev().find(|place| rounds[*place].at <= edge && is_known(place));
        if let Some(before) = before {
            return Some(self.between(pod, before, last));
        }
        // While a pod is younger than the window, what there is of it counts.
        let age = rounds[first].at.since(running);
        if age >= MIN_CONTAINER_AGE && age < self.way.resolution {
            let (cpu_seconds, served) = pod.used(&rounds[last].counters, rounds[last].at);
            let end = self.between(pod, last, last);
            return Some(Measured { from: running, cpu_seconds, served, ..end });
        }
        let before = (first..last).find(is_known)?;
        Some(self.between(pod, before, last))
    }

    fn between(&self, pod: &SimPod, before: usize, last: usize) -> Measured {
        let (from, to) = (&self.way.rounds[before], &self.way.rounds[last]);
        let (cpu_before, served_before) = pod.used(&from.counters, from.at);
        let (cpu, served) = pod.used(&to.counters, to.at);
        let (busy, idle) = to.memory_bytes;
        Measured {
            from: from.at,
            to: to.at,
            cpu_seconds: cpu - cpu_before,
            served: served - served_before,
            memory_bytes: if pod.is_ready_by(to.at) { busy } else { idle },
        }
    }

    /// When the sample of a pod of this round can be read.
    fn arrival(&self, place: usize, pod: u64) -> Time {
        let is_late = self.draws(place, pod, LATE, self.way.pipeline.late);
        let late_by = if is_late { self.way.late_by } else { Span(0) };
        self.way.rounds[place].at.after(self.way.delay).after(late_by)
    }

    fn is_lost(&self, place: usize, pod: u64) -> bool {
        self.draws(place, pod, MISSING, self.way.pipeline.missing)
    }

    fn draws(&self, place: usize, pod: u64, purpose: u64, part: f64) -> bool {
        if part <= 0.0 {
            return false;
        }
        let hash = self.seed ^ pod.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let unit = random::unit(hash, self.way.rounds[place].number, purpose);
        (unit + 1.0) / 2.0 < part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::world::fleet::Fleet;

    fn at(seconds: i64) -> Time {
        Time(0).after(Span::seconds(seconds))
    }

    /// A pod that serves 30 requests a second at 10 ms of cpu each, scraped every 15 s.
    fn scraped(pipeline: &Pipeline, rounds: i64, mut check: impl FnMut(&Readable<'_>, &SimPod)) {
        let fleet = Fleet::new(&Environment::default(), 1, 1, at(0));
        let spec = serde_json::from_str(r#"{"rpsPerPod":50,"cpuMsPerRequest":10}"#).unwrap();
        let mut flow = Flow::new(spec, None, None).unwrap();
        let mut way = Way::new(pipeline, true, at(0), 1, 9);
        for round in 1..=rounds {
            flow.slot(30.0 * 15.0, 15.0, 1);
            way.scrape(at(round * 15), &flow);
            if let Some(readable) = way.read(at(round * 15), 1) {
                check(&readable, &fleet.pods()[0]);
            }
        }
    }

    #[test]
    fn rates_are_means_between_scrapes() {
        let pipeline = Pipeline { delay_seconds: 0.0, ..Pipeline::default() };
        let mut windows = Vec::new();
        scraped(&pipeline, 5, |readable, pod| {
            windows.extend(readable.of(pod).map(|m| (m.seconds(), m.cpu_seconds, m.served)));
        });
        assert_eq!(windows, vec![(15.0, 4.5, 450.0); 4]);
    }

    #[test]
    fn a_lost_scrape_leaves_no_sample_until_the_next() {
        let pipeline = Pipeline { delay_seconds: 0.0, missing: 0.4, ..Pipeline::default() };
        let (mut lost, mut longest) = (0, 0.0_f64);
        scraped(&pipeline, 200, |readable, pod| match readable.of(pod) {
            None => lost += 1,
            Some(measured) => {
                assert!(!readable.is_lost(readable.last, pod.id));
                assert!((measured.cpu_seconds / measured.seconds() - 0.3).abs() < 1e-9);
                longest = longest.max(measured.seconds());
            }
        });
        assert!((60..100).contains(&lost), "{lost}");
        assert!(longest > 15.0, "a rate over a lost scrape is one over a longer time");
    }

    #[test]
    fn a_late_sample_is_read_later_and_the_older_one_stands() {
        let pipeline = Pipeline {
            delay_seconds: 0.0,
            late: 1.0,
            late_by_seconds: 20.0,
            ..Pipeline::default()
        };
        let mut ages = Vec::new();
        scraped(&pipeline, 6, |readable, pod| {
            ages.extend(readable.of(pod).map(|m| readable.now.since(m.to).0 / 1_000_000));
        });
        assert_eq!(ages, [30, 30, 30]);
    }
}
