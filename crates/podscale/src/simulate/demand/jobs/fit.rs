//! From the lives of Jobs and the length of the queue to what one Job does, and to what came.

use super::Poll;
use super::lives::{Interval, Lives};
use podscale_core::Time;
use podscale_sim::jobs::JobWork;

/// So many Jobs tell how long one works.
const LEAST_JOBS: usize = 3;
/// A queue that falls for so many polls, by this part of its length, is emptied by Jobs faster than it fills.
const LEAST_FALLS: usize = 2;
const FALLEN: f64 = 0.5;
/// No more polls than these are looked at together.
const MOST_FALLS: usize = 256;
/// So many Jobs' work tells how fast they are.
const SEVERAL_JOBS: f64 = 4.0;
/// If what was seen is between these parts of what the target says, the target is taken.
const AS_THE_TARGET: std::ops::Range<f64> = 0.6..1.3;
/// Rates are larger by this part, so that the last of several items is not lost to rounding.
const ROUNDING: f64 = 1e-9;

/// What one Job does, and what came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fitted {
    pub(super) work: JobWork,
    /// How long a Job takes for an item.
    pub(super) item_seconds: f64,
    /// From when on how many items came, per second.
    pub(super) demand: Vec<(Time, f64)>,
}

impl Fitted {
    /// What these lives tell, where the target says that so many items are for one Job; nothing if no Job ended.
    pub(super) fn of(
        polls: &[Poll],
        lives: &Lives,
        target: u64,
        counts_taken: bool,
        unknown: &mut Vec<String>,
    ) -> Option<Fitted> {
        let length = mean(&lives.busy).or_else(|| mean(&lives.all)).unwrap_or(0.0);
        let fall = steepest_fall(&lives.intervals, length * SEVERAL_JOBS);
        let (items, item_seconds) = match mean(&lives.busy) {
            Some(seconds) => of_busy(seconds, fall, target, unknown),
            None => {
                let each = of_quiet(lives, fall)?;
                unknown.push(format!(
                    "no {LEAST_JOBS} Jobs ended while there was always more to do: one is taken to do {}, as the \
                     target of its trigger suggests, in {each:.2} s each, which may be too much",
                    count(target as f64)
                ));
                (target, each)
            }
        };
        let idle_seconds = idle(lives, item_seconds);
        unknown.push(format!(
            "how long a Job waits for the next item is not known: {idle_seconds:.1} s is taken, which is how much longer they \
             stayed than the items took that they found"
        ));
        unknown.push(
            "what came and was done between two polls while no item waited is not known".to_owned(),
        );
        let demand = demand(polls, &lives.intervals, 1.0 / item_seconds);
        let work =
            JobWork { items: Some(items), run_seconds: None, idle_seconds, counts_taken, pods: 1 };
        Some(Fitted { work, item_seconds, demand })
    }
}

/// What a Job does that works for so long while there is always more to do: how many items, and how long it takes for each.
fn of_busy(seconds: f64, fall: Option<f64>, target: u64, unknown: &mut Vec<String>) -> (u64, f64) {
    let seconds = seconds.max(0.001);
    // The conversion keeps what is compared.
    let target_items = target.max(1) as f64;
    let seen = fall.map(|per_second| per_second * seconds);
    let (taken, why) = match seen {
        Some(seen) if !AS_THE_TARGET.contains(&(seen / target_items)) => (
            seen.round().max(1.0),
            format!(
                "since the queue fell by so much for each at its steepest, and not {} as the target of its trigger suggests; it \
                 may be more",
                count(target_items)
            ),
        ),
        Some(seen) => (
            target_items,
            format!(
                "as the target of its trigger suggests; at its steepest the queue fell by {seen:.1} for each"
            ),
        ),
        None => (
            target_items,
            "as the target of its trigger suggests; the queue never fell for long enough to tell"
                .to_owned(),
        ),
    };
    unknown.push(format!(
        "what one Job does is not known: Jobs worked for {seconds:.0} s while there was always more to do, which is taken for {}, \
         {why}",
        count(taken)
    ));
    // The cast saturates.
    (taken as u64, seconds / taken)
}

/// So many items in words.
fn count(items: f64) -> String {
    if items == 1.0 { "1 item".to_owned() } else { format!("{items:.0} items") }
}

/// How long an item takes where Jobs always ran out of them: by the steepest fall, or else by what they did find.
fn of_quiet(lives: &Lives, fall: Option<f64>) -> Option<f64> {
    let ended = lives.all.len();
    if ended == 0 {
        return None;
    }
    let seconds: f64 = lives.all.iter().sum();
    let fallen = lives.intervals.iter().map(|i| (i.queue.0 - i.queue.1).max(0.0)).sum::<f64>();
    let by_items = seconds / fallen.max(ended as f64);
    Some(fall.map_or(by_items, |per_second| 1.0 / per_second).max(0.001))
}

/// How many items a second each Job took at most while the queue fell for a while, by much of its length, and something was
/// left in it. Jobs must have worked for so long all together, so that no single one of them decides it.
fn steepest_fall(intervals: &[Interval], least_seconds: f64) -> Option<f64> {
    let falls = |interval: &Interval| interval.is_busy && interval.queue.1 < interval.queue.0;
    let goes_on =
        |one: &Interval, next: &Interval| falls(one) == falls(next) && one.from + 1 == next.from;
    let runs = intervals.chunk_by(goes_on).filter(|run| run.first().is_some_and(falls));
    let mut steepest: Option<f64> = None;
    for run in runs.filter(|run| run.len() >= LEAST_FALLS) {
        let (from, to) = (run[0].queue.0, run[run.len() - 1].queue.1);
        if from - to < from * FALLEN {
            continue;
        }
        for last in LEAST_FALLS - 1..run.len() {
            let mut worked = 0.0;
            for first in (0..=last).rev().take(MOST_FALLS) {
                worked += run[first].worked_seconds;
                if last - first + 1 >= LEAST_FALLS && worked >= least_seconds && worked > 0.0 {
                    let each = (run[first].queue.0 - run[last].queue.1) / worked;
                    steepest = Some(steepest.map_or(each, |known| known.max(each)));
                    break;
                }
            }
        }
    }
    steepest
}

/// How long Jobs stay without anything to do: by how much those that found the queue empty worked longer than the items
/// took that they found.
fn idle(lives: &Lives, item_seconds: f64) -> f64 {
    let Some(stayed) = mean(&lives.quiet) else { return 0.0 };
    let quiet = || lives.intervals.iter().filter(|interval| !interval.is_busy);
    let found: f64 = quiet().map(|interval| took(interval, 1.0 / item_seconds)).sum();
    let ended: u32 = quiet().map(|interval| interval.ended).sum();
    let items = (found / f64::from(ended.max(1))).max(1.0);
    (stayed - items * item_seconds).clamp(0.0, stayed)
}

/// How many items Jobs took that take so many a second each.
fn took(interval: &Interval, per_second: f64) -> f64 {
    let most = interval.worked_seconds.max(0.0) * per_second;
    let (before, after) = interval.queue;
    // Who runs out of items took what there was, at least as much as is gone.
    if interval.is_busy { most } else { most.min(before).max(before - after) }
}

/// From when on how many came: by how much the queue grew, and what Jobs took meanwhile. What would be less than nothing is
/// taken from what came next, so that all that came is right.
fn demand(polls: &[Poll], intervals: &[Interval], per_second: f64) -> Vec<(Time, f64)> {
    let mut owed = 0.0;
    let came = intervals.iter().map(|interval| {
        let (before, after) = interval.queue;
        let came = after - before + took(interval, per_second) + owed;
        owed = came.min(0.0);
        (polls[interval.from].at, came.max(0.0) / interval.seconds * (1.0 + ROUNDING))
    });
    came.collect()
}

/// The mean of enough values.
fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len();
    (count >= LEAST_JOBS).then(|| values.iter().sum::<f64>() / count as f64)
}
