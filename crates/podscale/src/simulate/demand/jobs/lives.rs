//! When Jobs began to work and when they ended, as far as their numbers at polls tell it: whoever was created first starts
//! first and ends first, in the middle of the time between two polls.

use super::Poll;
use std::collections::VecDeque;

/// The time between two polls that follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    /// The place of the poll at its beginning.
    pub(super) from: usize,
    pub(super) seconds: f64,
    /// The length of the queue at its beginning and at its end.
    pub(super) queue: (f64, f64),
    /// For how long Jobs worked, all together.
    pub(super) worked_seconds: f64,
    /// How many Jobs ended.
    pub(super) ended: u32,
    /// Whether items waited at its end, so that no Job had run out of them.
    pub(super) is_busy: bool,
}

/// What is known of all Jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Lives {
    pub(super) intervals: Vec<Interval>,
    /// How long Jobs took until they worked, in seconds.
    pub(super) start_ups: Vec<f64>,
    /// How long Jobs worked while there was always more to do.
    pub(super) busy: Vec<f64>,
    /// How long Jobs worked that found the queue empty.
    pub(super) quiet: Vec<f64>,
    /// How long all Jobs worked of which that is known.
    pub(super) all: Vec<f64>,
}

/// A Job that works: since when, and since which interval; not known if it was there at the beginning.
type Working = Option<(f64, usize)>;

/// The Jobs that there are.
#[derive(Default)]
struct Line {
    /// When those that are pending were created.
    pending: VecDeque<Option<f64>>,
    working: VecDeque<Working>,
}

impl Line {
    /// Those of a poll, of which nothing else is known.
    fn of(poll: &Poll) -> Line {
        let many = |count: i32| usize::try_from(count).unwrap_or(0);
        Line {
            pending: std::iter::repeat_n(None, many(poll.pending)).collect(),
            working: std::iter::repeat_n(None, many(poll.working())).collect(),
        }
    }
}

impl Lives {
    /// What polls tell, where items that Jobs had taken still counted or did not.
    pub(super) fn of(polls: &[Poll], counts_taken: bool) -> Lives {
        let mut lives = Lives::default();
        let Some(first) = polls.first() else { return lives };
        let mut line = Line::of(first);
        for (from, pair) in polls.windows(2).enumerate() {
            if !pair[1].follows {
                line = Line::of(&pair[1]);
                continue;
            }
            lives.pass(&mut line, from, (&pair[0], &pair[1]), polls[0].at, counts_taken);
        }
        lives
    }

    /// Follows the Jobs from one poll to the next.
    fn pass(
        &mut self,
        line: &mut Line,
        from: usize,
        (before, after): (&Poll, &Poll),
        start: podscale_core::Time,
        counts_taken: bool,
    ) {
        let at = before.at.since(start).0 as f64 / 1e6;
        let seconds = after.at.since(before.at).0 as f64 / 1e6;
        let is_busy = after.waiting(counts_taken) > 0.0;
        let place = self.intervals.len();
        let started = before.pending.saturating_add(before.created).saturating_sub(after.pending);
        let ended =
            before.unfinished.saturating_add(before.created).saturating_sub(after.unfinished);
        let worked = f64::from(before.working()) * seconds;
        let mut interval = Interval {
            from,
            seconds,
            queue: (before.queue, after.queue),
            worked_seconds: worked,
            ended: u32::try_from(ended).unwrap_or(0),
            is_busy,
        };
        // Somebody else has created Jobs: who is who is not known any more.
        let (Ok(started), Ok(ended)) = (usize::try_from(started), usize::try_from(ended)) else {
            let mean = (f64::from(before.working()) + f64::from(after.working())) / 2.0;
            interval.worked_seconds = mean * seconds;
            self.intervals.push(interval);
            *line = Line::of(after);
            return;
        };
        let created = usize::try_from(before.created).unwrap_or(0);
        line.pending.extend(std::iter::repeat_n(Some(at), created));
        // Those that start and end within the time do so after a third and two thirds of it.
        let short = ended.saturating_sub(line.working.len());
        for number in 0..started {
            let after = if number < short { seconds / 3.0 } else { seconds / 2.0 };
            let created = line.pending.pop_front().flatten();
            self.start_ups.extend(created.map(|created| at + after - created));
            line.working.push_back(Some((at + after, place)));
            interval.worked_seconds += seconds - after;
        }
        let mut ends = Vec::new();
        for _ in 0..ended {
            let Some(job) = line.working.pop_front() else { break };
            let is_short = job.is_some_and(|(_, began)| began == place);
            let after = if is_short { seconds * 2.0 / 3.0 } else { seconds / 2.0 };
            interval.worked_seconds -= seconds - after;
            ends.extend(job.map(|(since, began)| (at + after - since, began)));
        }
        self.intervals.push(interval);
        self.note(&ends);
    }

    /// Takes in Jobs that have ended: how long each worked, and since which interval.
    fn note(&mut self, ends: &[(f64, usize)]) {
        for (length, began) in ends {
            let mut lived = self.intervals[*began..].iter();
            if lived.clone().all(|interval| interval.is_busy) {
                self.busy.push(*length);
            } else if lived.all(|interval| !interval.is_busy) {
                self.quiet.push(*length);
            }
            self.all.push(*length);
        }
    }
}
