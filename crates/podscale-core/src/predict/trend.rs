//! Where the demand has been going lately.

use crate::compact::{CompactError, Reader, write_float, write_time};
use crate::time::{Span, Time};

/// How quickly the faster of the two means follows.
const FAST: Span = Span::seconds(60);
/// How quickly the slower one does.
const SLOW: Span = Span::seconds(300);
/// After so long without a demand nothing is known of where it is going.
const LONGEST_GAP: Span = Span::seconds(900);

/// Two means of the demand, one of which lags behind the other: on a slope they differ by what it gains
/// in the time between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Trend {
    last: Option<Time>,
    fast: f64,
    slow: f64,
}

// Neither mean is ever NaN: each is made of finite numbers and lies among them.
impl Eq for Trend {}

impl Trend {
    /// Takes in a demand, in thousandths of a replica.
    pub(super) fn observe(&mut self, at: Time, demand: u32) {
        let demand = f64::from(demand);
        match self.last {
            Some(last) if at.since(last) <= LONGEST_GAP => {
                let passed = at.since(last).0.max(0) as f64;
                self.fast += (demand - self.fast) * passed / (FAST.0 as f64 + passed);
                self.slow += (demand - self.slow) * passed / (SLOW.0 as f64 + passed);
            }
            _ => (self.fast, self.slow) = (demand, demand),
        }
        self.last = Some(at);
    }

    /// By how much it changes within a time if it goes on so, in thousandths of a replica.
    pub(super) fn difference(&self, from: Time, horizon: Span) -> Option<f64> {
        let last = self.last?;
        let fresh = from.since(last) <= LONGEST_GAP;
        let slope = (self.fast - self.slow) / (SLOW.0 - FAST.0) as f64;
        fresh.then_some(slope * horizon.0 as f64)
    }

    /// Appends it to what is kept.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        write_time(out, self.last);
        write_float(out, self.fast);
        write_float(out, self.slow);
    }

    /// What was kept.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Trend, CompactError> {
        Ok(Trend { last: reader.time()?, fast: reader.float()?, slow: reader.float()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_goes_on() {
        let mut trend = Trend::default();
        assert_eq!(trend.difference(Time(0), FAST), None);
        let at = |seconds| Time(0).after(Span::seconds(seconds));
        for step in 0..400u32 {
            trend.observe(at(i64::from(step) * 15), step * 100);
        }
        // 100 in 15 seconds are 400 in a minute.
        let minute = trend.difference(at(400 * 15), FAST).unwrap_or_default();
        assert!((minute - 400.0).abs() < 40.0, "{minute}");
        assert_eq!(trend.difference(at(10_000), FAST), None, "nothing was seen for long");
        trend.observe(at(20_000), 7);
        assert_eq!(trend.difference(at(20_000), FAST), Some(0.0));
    }
}
