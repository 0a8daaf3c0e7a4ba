//! Forecasts the demand of one target for the time at which a pod that is added now will be ready.
//!
//! A [`Forecaster`] learns from every demand that it is given, one after the other, in bounded memory: the usual
//! demand of each five minutes of a day and of each quarter of an hour of a week, where the demand has been going
//! lately, and how far it goes beyond what is expected. A forecast is the last demand plus the difference that one of
//! these patterns foretells: at the few minutes that pods need to start, the last value is better than any smooth
//! curve. Each pattern has a running backtest ([`Gate`]): what it foretold is compared with what came, and it is
//! silent unless that was right in the long run and lately.
//!
//! Nothing here is random or reads a clock, and nothing but additions, products, quotients and square roots is
//! computed, so that every machine comes to the same bits.

use crate::compact::{CompactError, Reader, write_signed, write_time, write_varint};
use crate::model::Milli;
use crate::time::{Span, Time};
use bursts::Bursts;
use fit::Fit;
use season::Season;
use serde::Serialize;
use trend::Trend;

mod bursts;
mod fit;
mod season;
#[cfg(test)]
mod tests;
mod trend;

/// A horizon is never shorter than this.
pub const SHORTEST_HORIZON: Span = Span::seconds(15);
/// A horizon is never longer than this.
pub const LONGEST_HORIZON: Span = Span::seconds(1800);
/// An outcome that comes later than this after its time, or than the horizon, says nothing.
const LATEST_OUTCOME: Span = Span::seconds(60);
/// More thousandths of a replica than these are taken for these.
const MOST: i64 = 2_000_000_000;
/// No pattern foretells a larger difference.
const FARTHEST: i64 = 100 * MOST;

/// What the metrics ask for at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Demand {
    /// How many replicas, before anything is rounded.
    pub replicas: Milli,
    /// When.
    pub at: Time,
    /// How long a pod that is added now needs to become ready.
    pub horizon: Span,
}

impl Demand {
    /// The replicas within what is learned from, in thousandths.
    fn amount(&self) -> u32 {
        self.replicas.0.clamp(0, MOST) as u32
    }

    /// The same and so many thousandths more.
    fn plus(&self, by: f64) -> i64 {
        i64::from(self.amount()).saturating_add(by as i64).clamp(0, MOST)
    }

    fn horizon(&self) -> Span {
        self.horizon.clamp(SHORTEST_HORIZON, LONGEST_HORIZON)
    }
}

/// What may be found in a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Pattern {
    /// It is as it was at this time of the day.
    Day,
    /// It is as it was at this time of the week.
    Week,
    /// It goes on as it has lately.
    Trend,
}

impl Pattern {
    /// All of them, in the order in which their backtests are kept.
    const ALL: [Pattern; 3] = [Pattern::Day, Pattern::Week, Pattern::Trend];

    /// For how long its forecasts must have been judged before one is used.
    const fn judged(self) -> Span {
        match self {
            Pattern::Day => Span::seconds(12 * 3600),
            Pattern::Week => Span::seconds(84 * 3600),
            Pattern::Trend => Span::seconds(2 * 3600),
        }
    }
}

/// Whether forecasts of a pattern are used, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// Too few forecasts have been compared with what came.
    Learning,
    /// What came does not follow what was foretold.
    NoPattern,
    /// It does in the long run, but not lately, or the error is large.
    RecentlyWrong,
    /// They are used.
    Open,
}

/// What is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// By which pattern; of several that may be used, one.
    pub pattern: Pattern,
    /// Whether it may be used.
    pub gate: Gate,
    /// For how long after the demand.
    pub horizon: Span,
    /// The replicas that are expected to be needed then, with the margin.
    pub replicas: Milli,
    /// The part of them that is there for bursts.
    pub margin: Milli,
    /// The recent error of such forecasts, in replicas: the root of the mean square.
    pub error: Milli,
    /// The same of the last value, taken for a forecast.
    pub error_of_last: Milli,
}

/// A forecast whose time has not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pending {
    made: Time,
    due: Time,
    /// The demand when it was made.
    from: u32,
    /// What each pattern foretold, in thousandths of a replica.
    foretold: [Option<i64>; Pattern::ALL.len()],
    /// What was expected in all.
    expected: i64,
}

/// What was learned of the demand of one target; less than 5 KiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forecaster {
    day: Season,
    week: Season,
    trend: Trend,
    fits: [Fit; Pattern::ALL.len()],
    /// Beyond what was expected.
    bursts: Bursts,
    /// Beyond the demand at the time.
    gains: Bursts,
    last: Option<Time>,
    pending: Option<Pending>,
}

impl Default for Forecaster {
    fn default() -> Forecaster {
        Forecaster {
            day: Season::new(288, Span::seconds(300), 3),
            week: Season::new(672, Span::seconds(900), 2),
            trend: Trend::default(),
            fits: Default::default(),
            bursts: Bursts::default(),
            gains: Bursts::default(),
            last: None,
            pending: None,
        }
    }
}

impl Forecaster {
    /// Which form [`Forecaster::to_bytes`] has, which the bytes themselves do not say.
    pub const VERSION: u8 = 4;

    /// Learns from a demand. One that is not newer than the last one is not learned again.
    pub fn observe(&mut self, demand: Demand) {
        if self.last.is_some_and(|last| demand.at <= last) {
            return;
        }
        let (at, amount) = (demand.at, demand.amount());
        self.judge(at, amount);
        self.day.observe(at, amount);
        self.week.observe(at, amount);
        self.trend.observe(at, amount);
        self.last = Some(at);
        if self.pending.is_none() {
            let horizon = demand.horizon();
            let whole = |by: f64| (by.round() as i64).clamp(-FARTHEST, FARTHEST);
            let foretold =
                Pattern::ALL.map(|pattern| self.foretold(pattern, at, horizon).map(whole));
            let expected = self.expected(&demand).map_or(i64::from(amount), |(_, milli)| milli);
            let due = at.after(horizon);
            self.pending = Some(Pending { made: at, due, from: amount, foretold, expected });
        }
    }

    /// Compares what was foretold with what came, once its time has.
    fn judge(&mut self, at: Time, amount: u32) {
        let Some(pending) = self.pending.filter(|pending| at >= pending.due) else { return };
        self.pending = None;
        let horizon = pending.due.since(pending.made);
        if at.since(pending.due) > horizon.max(LATEST_OUTCOME) {
            return;
        }
        let came = replicas(i64::from(amount) - i64::from(pending.from));
        for (fit, foretold) in self.fits.iter_mut().zip(pending.foretold) {
            if let Some(foretold) = foretold {
                fit.add(replicas(foretold), came, at.since(pending.made));
            }
        }
        let amount = replicas(i64::from(amount));
        self.bursts.add(replicas(pending.expected), amount);
        self.gains.add(replicas(i64::from(pending.from)), amount);
    }

    /// By how much a pattern says that the demand changes, in thousandths of a replica.
    fn foretold(&self, pattern: Pattern, from: Time, horizon: Span) -> Option<f64> {
        match pattern {
            Pattern::Day => self.day.difference(from, horizon),
            Pattern::Week => self.week.difference(from, horizon),
            Pattern::Trend => self.trend.difference(from, horizon),
        }
    }

    /// The pattern that is used now, and its demand: the season that gained most, or the trend if that foretells more.
    fn expected(&self, demand: &Demand) -> Option<(usize, i64)> {
        let now = replicas(i64::from(demand.amount()));
        let (mut season, mut trend): (Option<(usize, i64)>, _) = (None, None);
        for (place, pattern) in Pattern::ALL.into_iter().enumerate() {
            let fit = &self.fits[place];
            let Some(by) = self.foretold(pattern, demand.at, demand.horizon()) else { continue };
            if fit.gate(pattern.judged(), now) != Gate::Open {
                continue;
            }
            let found = Some((place, demand.plus(by * fit.share())));
            match pattern {
                Pattern::Trend => trend = found,
                Pattern::Day | Pattern::Week => {
                    let gains = |(before, _): (usize, i64)| fit.gain() > self.fits[before].gain();
                    season = if season.is_none_or(gains) { found } else { season };
                }
            }
        }
        let more = |(_, milli): &(usize, i64)| season.is_none_or(|(_, most)| *milli > most);
        trend.filter(more).or(season)
    }

    /// What is expected when a pod that is added now is ready. The margin is such that so many percent of
    /// past demands did not go beyond it. A forecast whose gate is not open is the demand as it is.
    #[must_use]
    pub fn forecast(&self, demand: &Demand, confidence_percent: u8) -> Forecast {
        let horizon = demand.horizon();
        let now = replicas(i64::from(demand.amount()));
        let (place, gate, expected, margin) = match self.expected(demand) {
            Some((place, expected)) => {
                let excess = self.bursts.excess(confidence_percent);
                (place, Gate::Open, expected, (expected as f64 * excess) as i64)
            }
            None => {
                let gates = Pattern::ALL.into_iter().zip(&self.fits);
                let gates = gates.map(|(pattern, fit)| fit.gate(pattern.judged(), now)).enumerate();
                // The one that is nearest to be used says why it is not; at the same gate the first.
                let nearest = gates.rev().max_by_key(|(_, gate)| *gate);
                // One that is open, but knows nothing of this time, is still learning.
                let (place, gate) = nearest.unwrap_or((0, Gate::Learning));
                let gate = if gate == Gate::Open { Gate::Learning } else { gate };
                (place, gate, i64::from(demand.amount()), 0)
            }
        };
        let (error, error_of_last) = self.fits[place].errors();
        Forecast {
            pattern: Pattern::ALL[place],
            gate,
            horizon,
            replicas: Milli(expected.saturating_add(margin)),
            margin: Milli(margin),
            error: milli(error),
            error_of_last: milli(error_of_last),
        }
    }

    /// The most that is expected within a time, by a season that may be used; `None` if there is none, or
    /// if it has not seen all of that time.
    #[must_use]
    pub fn peak(&self, demand: &Demand, within: Span) -> Option<(Pattern, Milli)> {
        let now = replicas(i64::from(demand.amount()));
        let seasons = [(Pattern::Day, &self.day), (Pattern::Week, &self.week)];
        let peaks = seasons.into_iter().zip(&self.fits).filter_map(|((pattern, season), fit)| {
            let open = fit.gate(pattern.judged(), now) == Gate::Open;
            let by = season.largest_difference(demand.at, within).filter(|_| open)?;
            Some((fit.gain(), pattern, Milli(demand.plus(by * fit.share()))))
        });
        let best = peaks.reduce(|best, other| if other.0 > best.0 { other } else { best });
        best.map(|(_, pattern, peak)| (pattern, peak))
    }

    /// What the demand gains until the horizon if it goes on as it has lately, in replicas; never less than
    /// nothing. No backtest has to agree.
    #[must_use]
    pub fn lead(&self, demand: &Demand) -> Milli {
        let gained = self.trend.difference(demand.at, demand.horizon()).unwrap_or_default();
        Milli(gained.max(0.0) as i64)
    }

    /// What so many percent of the past demands did not gain more than until the horizon, in replicas, if this
    /// one gains as they did.
    #[must_use]
    pub fn headroom(&self, demand: &Demand, confidence_percent: u8) -> Milli {
        let gained = f64::from(demand.amount()) * self.gains.excess(confidence_percent);
        Milli(gained as i64)
    }

    /// How much memory it takes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        size_of::<Forecaster>() + self.day.size_bytes() + self.week.size_bytes()
    }

    /// What was learned, as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// What [`Forecaster::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes were not written by it, or are cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<Forecaster, CompactError> {
        let mut reader = Reader::new(bytes);
        let forecaster = Forecaster::read(&mut reader)?;
        if reader.left() > 0 { Err(CompactError::Trailing(reader.at())) } else { Ok(forecaster) }
    }

    /// Appends it to what is kept.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.day.write(out);
        self.week.write(out);
        self.trend.write(out);
        self.fits.iter().for_each(|fit| fit.write(out));
        self.bursts.write(out);
        self.gains.write(out);
        write_time(out, self.last);
        write_time(out, self.pending.map(|pending| pending.made));
        if let Some(Pending { due, from, foretold, expected, .. }) = self.pending {
            write_signed(out, due.0);
            write_varint(out, u64::from(from));
            for foretold in foretold {
                out.push(u8::from(foretold.is_some()));
                write_signed(out, foretold.unwrap_or_default());
            }
            write_signed(out, expected);
        }
    }

    /// What was kept.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Forecaster, CompactError> {
        let mut forecaster = Forecaster::default();
        forecaster.day.read(reader)?;
        forecaster.week.read(reader)?;
        forecaster.trend = Trend::read(reader)?;
        for fit in &mut forecaster.fits {
            *fit = Fit::read(reader)?;
        }
        forecaster.bursts = Bursts::read(reader)?;
        forecaster.gains = Bursts::read(reader)?;
        forecaster.last = reader.time()?;
        if let Some(made) = reader.time()? {
            let (due, from) = (Time(reader.signed()?), reader.small()?);
            let mut foretold = [None; Pattern::ALL.len()];
            for foretold in &mut foretold {
                let (known, by) = (reader.flag()?, read_amount(reader)?);
                *foretold = known.then_some(by);
            }
            let expected = read_amount(reader)?;
            forecaster.pending = Some(Pending { made, due, from, foretold, expected });
        }
        Ok(forecaster)
    }
}

/// An amount that a pattern can foretell.
fn read_amount(reader: &mut Reader<'_>) -> Result<i64, CompactError> {
    let start = reader.at();
    let amount = reader.signed()?;
    let possible = (-FARTHEST..=FARTHEST).contains(&amount);
    if possible { Ok(amount) } else { Err(CompactError::Range(start)) }
}

/// Thousandths as a number.
fn replicas(milli: i64) -> f64 {
    milli as f64 / 1000.0
}

fn milli(replicas: f64) -> Milli {
    Milli((replicas * 1000.0).round() as i64)
}
