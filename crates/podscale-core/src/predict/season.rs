//! What the demand usually is at each time of a day or of a week.

use crate::compact::{CompactError, Reader, write_signed, write_varint};
use crate::time::{Span, Time};

/// A time of the season that was not seen yet.
const UNSEEN: u32 = u32::MAX;
/// How many slots are held back before they are learned, so that what is compared with the future of the
/// season is its past, and not what was measured a moment ago.
const HELD_BACK: usize = 2;
/// So many samples of a slot count; more would say nothing new.
const MOST_SAMPLES: u32 = 1 << 20;

/// The usual demand over a period, in thousandths of a replica for each slot of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Season {
    slot: Span,
    /// How much a new round counts: one part in so many.
    inertia: i64,
    usual: Box<[u32]>,
    /// The slot that is being measured, counted from the beginning of time.
    open: Option<Slot>,
    /// Slots that were measured and are not learned yet, the oldest first.
    measured: [Option<Slot>; HELD_BACK],
}

/// What was measured in one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    number: i64,
    sum: u64,
    samples: u32,
}

impl Season {
    /// A period of so many slots.
    pub(super) fn new(slots: usize, slot: Span, inertia: i64) -> Season {
        let usual = vec![UNSEEN; slots].into_boxed_slice();
        Season { slot, inertia, usual, open: None, measured: [None; HELD_BACK] }
    }

    fn number(&self, at: Time) -> i64 {
        at.0.div_euclid(self.slot.0)
    }

    fn place(&self, number: i64) -> usize {
        number.rem_euclid(self.usual.len() as i64) as usize
    }

    /// Takes in a demand. Time goes forwards; whoever calls makes sure of it.
    pub(super) fn observe(&mut self, at: Time, demand: u32) {
        let number = self.number(at);
        match &mut self.open {
            Some(open) if open.number == number => {
                if open.samples < MOST_SAMPLES {
                    open.sum += u64::from(demand);
                    open.samples += 1;
                }
                return;
            }
            _ => {}
        }
        let ended = self.open.replace(Slot { number, sum: u64::from(demand), samples: 1 });
        if ended.is_some() {
            self.learn(self.measured[0]);
            self.measured = [self.measured[1], ended];
        }
    }

    fn learn(&mut self, slot: Option<Slot>) {
        let Some(Slot { number, sum, samples }) = slot else { return };
        let mean = (sum / u64::from(samples.max(1))).min(u64::from(UNSEEN - 1)) as u32;
        let place = self.place(number);
        let usual = &mut self.usual[place];
        *usual = if *usual == UNSEEN {
            mean
        } else {
            let (old, new) = (i64::from(*usual), i64::from(mean));
            (old + (new - old) / self.inertia) as u32
        };
    }

    /// The usual demand at a time, in thousandths of a replica: between the middles of two slots in a
    /// straight line.
    fn at(&self, at: Time) -> Option<f64> {
        let middle = Time(at.0.saturating_sub(self.slot.0 / 2));
        let number = self.number(middle);
        let part = middle.0.rem_euclid(self.slot.0) as f64 / self.slot.0 as f64;
        let usual = |number: i64| {
            let usual = self.usual[self.place(number)];
            (usual != UNSEEN).then_some(f64::from(usual))
        };
        let (before, after) = (usual(number)?, usual(number.saturating_add(1))?);
        Some(before + (after - before) * part)
    }

    /// By how much the usual demand differs between a time and one after it, in thousandths of a replica.
    pub(super) fn difference(&self, from: Time, horizon: Span) -> Option<f64> {
        Some(self.at(from.after(horizon))? - self.at(from)?)
    }

    /// The largest such difference within a time, where all of it is known.
    pub(super) fn largest_difference(&self, from: Time, within: Span) -> Option<f64> {
        let slots = (within.0 / self.slot.0).clamp(0, self.usual.len() as i64);
        let mut largest = self.difference(from, within)?;
        for slot in 1..=slots {
            largest = largest.max(self.difference(from, Span(self.slot.0 * slot))?);
        }
        Some(largest)
    }

    /// How much memory its slots take.
    pub(super) fn size_bytes(&self) -> usize {
        size_of_val(&*self.usual)
    }

    /// Appends it to what is kept.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut before = 0i64;
        for usual in self.usual.iter() {
            // One more, so that what was not seen is a small number as well.
            let number = i64::from(usual.wrapping_add(1));
            write_signed(out, number - before);
            before = number;
        }
        for slot in [self.open].iter().chain(&self.measured) {
            out.push(u8::from(slot.is_some()));
            if let Some(Slot { number, sum, samples }) = slot {
                write_signed(out, *number);
                write_varint(out, *sum);
                write_varint(out, u64::from(*samples));
            }
        }
    }

    /// Takes over what was kept.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), CompactError> {
        let mut before = 0i64;
        for usual in self.usual.iter_mut() {
            let start = reader.at();
            before = before.saturating_add(reader.signed()?);
            let number = u32::try_from(before).map_err(|_| CompactError::Range(start))?;
            *usual = number.wrapping_sub(1);
        }
        self.open = read_slot(reader)?;
        for slot in &mut self.measured {
            *slot = read_slot(reader)?;
        }
        Ok(())
    }
}

fn read_slot(reader: &mut Reader<'_>) -> Result<Option<Slot>, CompactError> {
    if !reader.flag()? {
        return Ok(None);
    }
    let number = reader.signed()?;
    let start = reader.at();
    let (sum, samples) = (reader.varint()?, reader.small::<u32>()?);
    // What no run of samples can add up to was not written here.
    let possible = samples <= MOST_SAMPLES && sum <= u64::from(samples) * u64::from(u32::MAX);
    if possible { Ok(Some(Slot { number, sum, samples })) } else { Err(CompactError::Range(start)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(minutes: i64) -> Time {
        Time(0).after(Span::seconds(minutes * 60))
    }

    /// An hour of slots of five minutes.
    fn hour() -> Season {
        Season::new(12, Span::seconds(300), 3)
    }

    #[test]
    fn a_season_is_known_after_one_round_and_follows_slowly() {
        let mut season = hour();
        for minute in 0..60 {
            let demand = if minute < 30 { 1000 } else { 4000 };
            assert_eq!(season.difference(minutes(minute), Span::seconds(60)), None);
            season.observe(minutes(minute), demand);
        }
        for minute in 60..90 {
            season.observe(minutes(minute), 1000);
        }
        assert_eq!(season.difference(minutes(80), Span::seconds(60)), Some(0.0));
        // From the middle of the last low slot to the middle of the first high one.
        let from = Time(0).after(Span::seconds(27 * 60 + 30));
        assert_eq!(season.difference(from, Span::seconds(300)), Some(3000.0));
        assert_eq!(season.difference(from, Span::seconds(150)), Some(1500.0));
        assert_eq!(season.largest_difference(minutes(10), Span::seconds(1800)), Some(3000.0));
        for minute in 90..200 {
            season.observe(minutes(minute), 1000);
        }
        let rise = season.difference(from, Span::seconds(300)).unwrap_or_default();
        assert!(rise < 3000.0 && rise > 0.0, "{rise}");
    }

    #[test]
    fn what_was_kept_goes_on_as_if_nothing_had_happened() {
        let mut season = hour();
        for minute in 0..95 {
            season.observe(minutes(minute), (minute as u32 * 997) % 5000);
            let mut out = Vec::new();
            season.write(&mut out);
            let (mut read, mut reader) = (hour(), Reader::new(&out));
            assert_eq!(read.read(&mut reader), Ok(()));
            assert_eq!((&read, reader.left()), (&season, 0));
        }
    }
}
