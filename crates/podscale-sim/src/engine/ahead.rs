//! What comes in the next slots, before it is known what becomes of it. Slots are worked out in columns, many at a
//! time: none depends on another, so that a processor works on several of them at once.

use super::ARRIVALS;
use crate::environment::{Arrivals, seconds};
use crate::plan::Plan;
use crate::random;
use crate::workload::Coming;
use podscale_core::{Span, Time};

/// How many slots are looked at ahead of what becomes of them.
const SLOTS: usize = 16;

/// The load from slot to slot. Times are counted from the start, and no run is so long that they could overflow.
pub(super) struct Ahead {
    now: Span,
    slot: Span,
    slot_seconds: f64,
    /// Where the slot ends that time is in.
    boundary: Span,
    /// The rate of the load, and until when it certainly stays.
    rate: (f64, Span),
    begins: [Span; SLOTS],
    ends: [Span; SLOTS],
    middles: [Span; SLOTS],
    seconds: [f64; SLOTS],
    rates: [f64; SLOTS],
    arrivals: [f64; SLOTS],
}

impl Ahead {
    pub(super) fn new(plan: &Plan) -> Ahead {
        let slot = seconds(plan.environment.slot_seconds);
        Ahead {
            now: Span(0),
            slot,
            slot_seconds: slot.0 as f64 / 1e6,
            boundary: Span(0),
            rate: (0.0, Span(i64::MIN)),
            begins: [Span(0); SLOTS],
            ends: [Span(0); SLOTS],
            middles: [Span(0); SLOTS],
            seconds: [0.0; SLOTS],
            rates: [0.0; SLOTS],
            arrivals: [0.0; SLOTS],
        }
    }

    /// What comes in the next slots until the given time; nothing if all was told that comes until then.
    pub(super) fn look(&mut self, plan: &Plan, until: Time) -> Option<Coming<'_>> {
        let until = until.since(plan.start);
        if self.now >= until {
            return None;
        }
        let count = self.cut(until);
        self.ask(plan, count);
        let expected = &mut self.arrivals[..count];
        for ((expected, rate), seconds) in expected.iter_mut().zip(&self.rates).zip(&self.seconds) {
            *expected = rate * seconds;
        }
        if plan.environment.arrivals == Arrivals::Random {
            let begins = self.begins[..count].iter().map(|since| plan.start.after(*since));
            let slots = begins.map(|begin| begin.0.cast_unsigned());
            random::poissons(expected, plan.seed, slots, ARRIVALS);
        }
        Some(Coming {
            ends: &self.ends[..count],
            seconds: &self.seconds[..count],
            rates: &self.rates[..count],
            arrivals: &self.arrivals[..count],
        })
    }

    /// Cuts the time to come into slots; gives how many they are.
    fn cut(&mut self, until: Span) -> usize {
        let (mut now, mut boundary) = (self.now.0, self.boundary.0);
        let mut count = 0;
        while count < SLOTS && now < until.0 {
            if boundary <= now {
                boundary += self.slot.0;
            }
            let end = boundary.min(until.0);
            let length = end - now;
            self.begins[count] = Span(now);
            self.ends[count] = Span(end);
            self.middles[count] = Span(now + length / 2);
            self.seconds[count] = match length == self.slot.0 {
                true => self.slot_seconds,
                false => length as f64 / 1e6,
            };
            now = end;
            count += 1;
        }
        (self.now, self.boundary) = (Span(now), Span(boundary));
        count
    }

    /// Asks for the rates of the load in the middle of slots.
    fn ask(&mut self, plan: &Plan, count: usize) {
        let (middles, rates) = (&self.middles[..count], &mut self.rates[..count]);
        if let Some(wave) = plan.load.as_wave() {
            return wave.rates(middles, rates);
        }
        for (middle, rate) in middles.iter().zip(rates) {
            if *middle >= self.rate.1 {
                self.rate = plan.load.rate_and_steady(*middle);
            }
            *rate = self.rate.0;
        }
    }
}
