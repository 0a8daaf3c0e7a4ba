//! What waits for Jobs, the oldest first: items that came at the same moment are kept together. Times are seconds from the
//! start of a run.

use std::collections::VecDeque;

/// When there are more entries, each two neighbours become one.
const MAX_ENTRIES: usize = 65_536;

/// Items that came together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Batch {
    pub(super) came: f64,
    pub(super) items: u64,
}

/// A queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    batches: VecDeque<Batch>,
    waiting: u64,
}

impl Queue {
    /// How many items wait.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Adds items that come now; gives how many do not fit any more.
    pub(super) fn add(&mut self, came: f64, items: u64, limit: u64) -> u64 {
        let fitting = items.min(limit.saturating_sub(self.waiting));
        if fitting > 0 {
            if self.batches.len() >= MAX_ENTRIES {
                self.thin_out();
            }
            self.batches.push_back(Batch { came, items: fitting });
            self.waiting += fitting;
        }
        items - fitting
    }

    /// What is next.
    pub(super) fn first(&self) -> Option<Batch> {
        self.batches.front().copied()
    }

    /// Takes so many of the first batch.
    pub(super) fn take(&mut self, items: u64) {
        let Some(first) = self.batches.front_mut() else { return };
        let taken = items.min(first.items);
        first.items -= taken;
        self.waiting -= taken;
        if first.items == 0 {
            self.batches.pop_front();
        }
    }

    /// How long the oldest has waited.
    pub(super) fn oldest_seconds(&self, now: f64) -> f64 {
        self.batches.front().map_or(0.0, |first| (now - first.came).max(0.0))
    }

    /// How many have waited longer than this.
    pub(super) fn waiting_longer_than(&self, seconds: f64, now: f64) -> u64 {
        let late = self.batches.iter().take_while(|batch| now - batch.came > seconds);
        late.map(|batch| batch.items).sum()
    }

    /// Neighbours come together at the earlier time, so that no wait gets shorter by it.
    fn thin_out(&mut self) {
        let mut thinner = VecDeque::with_capacity(self.batches.len() / 2 + 1);
        let mut batches = self.batches.drain(..);
        while let Some(first) = batches.next() {
            let more = batches.next().map_or(0, |second| second.items);
            thinner.push_back(Batch { items: first.items + more, ..first });
        }
        drop(batches);
        self.batches = thinner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_what_does_not_fit_is_lost() {
        let mut queue = Queue::default();
        assert_eq!(queue.add(1.0, 3, 5), 0);
        assert_eq!(queue.add(2.0, 4, 5), 2);
        assert_eq!((queue.waiting(), queue.oldest_seconds(11.0)), (5, 10.0));
        assert_eq!(queue.waiting_longer_than(9.5, 11.0), 3);
        queue.take(2);
        assert_eq!(queue.first(), Some(Batch { came: 1.0, items: 1 }));
        queue.take(9);
        assert_eq!(queue.first(), Some(Batch { came: 2.0, items: 2 }), "no more than of one batch");
        queue.take(2);
        assert_eq!((queue.waiting(), queue.oldest_seconds(11.0)), (0, 0.0));
    }

    #[test]
    fn memory_stays_bounded_and_nothing_is_lost() {
        let mut queue = Queue::default();
        for second in 0..200_000 {
            assert_eq!(queue.add(f64::from(second), 1, u64::MAX), 0);
        }
        assert!(queue.batches.len() <= MAX_ENTRIES);
        assert_eq!(queue.waiting(), 200_000);
        assert_eq!(queue.batches.iter().map(|batch| batch.items).sum::<u64>(), 200_000);
        assert_eq!(queue.oldest_seconds(200_000.0), 200_000.0, "the oldest is kept");
    }
}
