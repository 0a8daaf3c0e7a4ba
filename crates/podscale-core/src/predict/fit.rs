//! The running backtest of one pattern: how well the differences that it foretold fit those that came.

use super::Gate;
use crate::compact::{CompactError, Reader, write_float, write_signed};
use crate::time::Span;

/// What is older than this counts less than half.
const REMEMBERED: Span = Span::seconds(7 * 86_400);
/// What counts as recent.
const RECENT: Span = Span::seconds(6 * 3600);
/// So many outcomes are needed at least.
const FEWEST: f64 = 30.0;
/// How much of what was foretold must have come, with almost all certainty.
const LEAST_SHARE: f64 = 0.25;
/// How much larger than that of the last value the mean square error may recently have been: what is learned
/// of a season from a noisy demand is a little noisy as well.
const RECENTLY_WORSE: f64 = 1.05;
/// Which part of the demand the recent error may be.
const LARGEST_ERROR: f64 = 0.5;
/// An error of so few replicas does no harm, however good the last value was: after a quiet time that one has next to
/// no error, and the first minutes of a rise that comes a little later than usual are no reason to stop.
const HARMLESS_ERROR: f64 = 0.1;

/// Sums over what was foretold and what came, in replicas; the older, the less they count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Fit {
    weight: f64,
    /// Σ foretold².
    foretold: f64,
    /// Σ foretold × came.
    both: f64,
    /// Σ came².
    came: f64,
    /// The recent mean square error of the forecasts.
    recent: f64,
    /// The same of the last value, taken for a forecast.
    recent_last: f64,
    /// For how long there have been forecasts to be judged.
    judged: Span,
}

// No sum is ever NaN: each is made of finite numbers and bounded.
impl Eq for Fit {}

impl Fit {
    /// Takes in what was foretold and what came, after so long a time, in replicas.
    pub(super) fn add(&mut self, foretold: f64, came: f64, after: Span) {
        if !(foretold.is_finite() && came.is_finite() && after.0 > 0) {
            return;
        }
        let error = came - self.share() * foretold;
        let keep = REMEMBERED.0 as f64 / (REMEMBERED.0 as f64 + after.0 as f64);
        self.weight = self.weight * keep + 1.0;
        self.foretold = self.foretold * keep + foretold * foretold;
        self.both = self.both * keep + foretold * came;
        self.came = self.came * keep + came * came;
        let new = after.0 as f64 / (RECENT.0 as f64 + after.0 as f64);
        self.recent += (error * error - self.recent) * new;
        self.recent_last += (came * came - self.recent_last) * new;
        self.judged = Span(self.judged.0.saturating_add(after.0));
    }

    /// Which share of what is foretold usually comes, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        if self.foretold > 0.0 { (self.both / self.foretold).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// By how much the mean square error is smaller than that of the last value.
    pub(super) fn gain(&self) -> f64 {
        if self.weight > 0.0 { self.share() * self.both / self.weight } else { 0.0 }
    }

    /// The root of the recent mean square error of the forecasts, and that of the last value.
    pub(super) fn errors(&self) -> (f64, f64) {
        (self.recent.max(0.0).sqrt(), self.recent_last.max(0.0).sqrt())
    }

    /// Whether forecasts may be used at this demand, after they were judged for so long.
    pub(super) fn gate(&self, needed: Span, demand: f64) -> Gate {
        if self.judged < needed || self.weight < FEWEST {
            return Gate::Learning;
        }
        if self.foretold <= 0.0 {
            return Gate::NoPattern;
        }
        let share = self.both / self.foretold;
        let unexplained = (self.came - share * self.both).max(0.0);
        let deviation = (unexplained / (self.weight - 1.0) / self.foretold).sqrt();
        // What cannot be compared keeps it closed.
        let proven = share - 2.0 * deviation >= LEAST_SHARE;
        if !proven {
            return Gate::NoPattern;
        }
        let error = self.errors().0;
        let wrong = self.recent > self.recent_last * RECENTLY_WORSE && error > HARMLESS_ERROR;
        let large = error > LARGEST_ERROR * demand.max(1.0);
        if wrong || large { Gate::RecentlyWrong } else { Gate::Open }
    }

    /// Appends it to what is kept.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Fit { weight, foretold, both, came, recent, recent_last, judged } = self;
        for number in [weight, foretold, both, came, recent, recent_last] {
            write_float(out, *number);
        }
        write_signed(out, judged.0);
    }

    /// What was kept.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Fit, CompactError> {
        Ok(Fit {
            weight: reader.float()?,
            foretold: reader.float()?,
            both: reader.float()?,
            came: reader.float()?,
            recent: reader.float()?,
            recent_last: reader.float()?,
            judged: Span(reader.signed()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AFTER: Span = Span::seconds(60);
    const HOUR: Span = Span::seconds(3600);

    /// Ups and downs without any order to speak of, from -1 to 1.
    fn noise(number: u32) -> f64 {
        let mixed = number.wrapping_mul(2_654_435_761) >> 8;
        f64::from(mixed % 2001) / 1000.0 - 1.0
    }

    fn judged(outcomes: u32, outcome: impl Fn(u32) -> (f64, f64)) -> Fit {
        let mut fit = Fit::default();
        for number in 0..outcomes {
            let (foretold, came) = outcome(number);
            fit.add(foretold, came, AFTER);
        }
        fit
    }

    #[test]
    fn a_pattern_that_comes_true_opens_the_gate() {
        let season = |n: u32| if n.is_multiple_of(2) { 1.0 } else { -1.0 };
        assert_eq!(judged(20, |n| (season(n), season(n))).gate(HOUR, 10.0), Gate::Learning);
        let true_in_noise = judged(600, |n| (season(n), season(n) + noise(n)));
        assert_eq!(true_in_noise.gate(HOUR, 10.0), Gate::Open);
        assert!((true_in_noise.share() - 1.0).abs() < 0.2, "{}", true_in_noise.share());
        assert_eq!(judged(600, |n| (season(n), noise(n))).gate(HOUR, 10.0), Gate::NoPattern);
        assert_eq!(judged(600, |n| (season(n), -season(n))).gate(HOUR, 10.0), Gate::NoPattern);
        assert_eq!(judged(600, |n| (0.0, noise(n))).gate(HOUR, 10.0), Gate::NoPattern);
    }

    #[test]
    fn an_error_that_is_large_or_grows_closes_it() {
        let season = |n: u32| if n.is_multiple_of(2) { 1.0 } else { -1.0 };
        let mut fit = judged(6000, |n| (season(n), season(n)));
        assert_eq!(fit.gate(HOUR, 10.0), Gate::Open);
        for number in 0..180 {
            fit.add(season(number), -season(number), AFTER);
        }
        assert_eq!(fit.gate(HOUR, 10.0), Gate::RecentlyWrong, "three hours are enough");
        let wild = judged(6000, |n| (season(n), season(n) * 2.0 + noise(n) * 3.0));
        assert_eq!(wild.gate(HOUR, 100.0), Gate::Open);
        assert_eq!(wild.gate(HOUR, 1.0), Gate::RecentlyWrong);
    }

    #[test]
    fn what_is_no_number_is_not_learned() {
        let mut fit = judged(100, |n| (noise(n), noise(n)));
        let before = fit.clone();
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            fit.add(odd, 1.0, AFTER);
            fit.add(1.0, odd, AFTER);
        }
        fit.add(1.0, 1.0, Span(0));
        assert_eq!(fit, before);
    }
}
