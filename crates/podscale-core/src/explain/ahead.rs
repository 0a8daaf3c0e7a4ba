//! What a queue, the demand of a window and that of the time to come made of a size, in plain words.

use super::span_text;
use crate::model::Milli;
use crate::predict::{Forecast, Gate, Pattern};
use crate::steps::Step;
use crate::time::Span;

/// A step of a queue, of the window, or ahead of the demand, in words.
pub(super) fn line(step: &Step<'_>) -> Option<String> {
    Some(match *step {
        Step::Queued { waiting, arrivals, within, from, to } => {
            queued_line((waiting, arrivals), within, from, to)
        }
        Step::Windowed { from, to, burst } => windowed_line(from, to, burst),
        Step::Forecast { forecast, from, to } => forecast_line(forecast, from, to),
        Step::Led { gained, horizon, from, to } => led_line(gained, horizon, from, to),
        Step::Spared { room, allowed: None, horizon, from, to } => {
            spared_line(room, horizon, from, to)
        }
        Step::Spared { room, allowed: Some(permille), from, to, .. } => {
            learned_line(room, permille, from, to)
        }
        Step::Guarded { pattern, peak, within, from, to } => {
            guarded_line(pattern, peak, within, from, to)
        }
        _ => return None,
    })
}

/// What serves what arrives and what waits.
fn queued_line((waiting, arrivals): (Milli, Milli), within: Span, from: i32, to: i32) -> String {
    let (waiting, arrivals) = (tenths_text(waiting), tenths_text(arrivals));
    format!(
        "{arrivals} arrive in a second, and {waiting} that wait are to be served within {}: {}",
        span_text(within),
        size_text(from, to)
    )
}

/// What the mean of a window made of the size.
fn windowed_line(from: i32, to: i32, burst: bool) -> String {
    if burst {
        format!("a burst is on, which needs {to}; the last demand alone asks for {from}")
    } else {
        format!("over the window {to} are needed; the last demand alone asks for {from}")
    }
}

/// A forecast, its error and its gate.
fn forecast_line(forecast: &Forecast, from: i32, to: i32) -> String {
    let Forecast { pattern, gate, horizon, replicas, margin, error, error_of_last } = *forecast;
    let why = match gate {
        Gate::Open => None,
        Gate::Learning => Some("too few forecasts could be judged so far"),
        Gate::NoPattern => Some("no pattern has been proven"),
        Gate::RecentlyWrong => Some("forecasts were wrong lately"),
    };
    let errors =
        format!("lately {} off, the last value {}", tenths_text(error), tenths_text(error_of_last));
    if let Some(why) = why {
        return match gate {
            Gate::Learning => format!("no forecast is used: {why}"),
            _ => format!("no forecast is used: {why} ({errors})"),
        };
    }
    let margin = match margin {
        Milli(0) => String::new(),
        margin => format!(" with {} for bursts", tenths_text(margin)),
    };
    let expected = format!(
        "by {} a size of {}{margin} is expected to be needed in {} ({errors})",
        name(pattern),
        tenths_text(replicas),
        span_text(horizon)
    );
    format!("{expected}: {}", size_text(from, to))
}

/// What follows from where the demand is going.
fn led_line(gained: Milli, horizon: Span, from: i32, to: i32) -> String {
    let gained = tenths_text(gained);
    let horizon = span_text(horizon);
    format!("at this rate {gained} more are needed in {horizon}: {}", size_text(from, to))
}

/// What there is room for.
fn spared_line(room: Milli, horizon: Span, from: i32, to: i32) -> String {
    let (room, horizon) = (tenths_text(room), span_text(horizon));
    format!("past demands gained up to {room} in {horizon}: {}", size_text(from, to))
}

/// The room that was learned.
fn learned_line(room: Milli, permille: u16, from: i32, to: i32) -> String {
    let (room, percent) = (tenths_text(room), f64::from(permille) / 10.0);
    format!(
        "with room for {room} more the demand is above the ready pods in about {percent} % of the time: {}",
        size_text(from, to)
    )
}

fn size_text(from: i32, to: i32) -> String {
    if to > from { format!("{to} instead of {from}") } else { format!("{from} are enough") }
}

/// Why pods are kept.
fn guarded_line(pattern: Pattern, peak: Milli, within: Span, from: i32, to: i32) -> String {
    format!(
        "by {} a size of {} is expected to be needed within {}: {to} are kept, not {from}",
        name(pattern),
        tenths_text(peak),
        span_text(within)
    )
}

const fn name(pattern: Pattern) -> &'static str {
    match pattern {
        Pattern::Day => "the time of the day",
        Pattern::Week => "the time of the week",
        Pattern::Trend => "the trend",
    }
}

/// An amount of replicas with at most one digit after the point.
fn tenths_text(Milli(milli): Milli) -> String {
    let text = format!("{:.1}", milli as f64 / 1000.0);
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}
