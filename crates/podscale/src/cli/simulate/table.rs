//! Scores for people: a table for each trial with sparklines, and one over all.

use super::grid::{Grid, Trial};
use podscale_api::time::GoDuration;
use podscale_core::Span;
use podscale_sim::Plan;
use podscale_sim::score::{Estimate, Moment, Summary};
use std::fmt::Write as _;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// A column: its head, and what a summary has there.
type Column = (&'static str, fn(&Summary) -> String);

/// The columns, and what is in them. The second is only shown over several loads.
static COLUMNS: [Column; 11] = [
    ("VIOLATED", |s| with_confidence(&s.violations, percent)),
    ("WORST RUN", |s| percent(s.violations.worst)),
    ("WORST MINUTE", |s| percent(s.worst_minute.worst)),
    ("P95", |s| seconds(s.p95_seconds.mean)),
    ("P99", |s| seconds(s.p99_seconds.mean)),
    ("POD-HOURS", |s| with_confidence(&s.pod_hours, number)),
    ("VS ORACLE", |s| s.against_oracle.map_or("-".to_owned(), |e| format!("{:.2}x", e.mean))),
    ("REVERSALS/H", |s| number(s.reversals_per_hour.mean)),
    ("STARTED", |s| number(s.pods_started.mean)),
    ("TOO SMALL", |s| percent(s.below_capacity.mean)),
    ("OLDEST", |s| seconds(s.queue_age_most_seconds.worst)),
];
const WORST_RUN: &str = "WORST RUN";

/// Everything.
pub(super) fn render(grid: &Grid) -> String {
    let mut out = String::new();
    for trial in &grid.trials {
        let runs = trial.cells.first().map_or(0, |cell| cell.scores.len());
        let plural = if runs == 1 { "" } else { "s" };
        // Writing into memory does not fail.
        let _ = writeln!(
            out,
            "{} under {}, {}, {runs} seed{plural} from {}, objective {}",
            trial.autoscaler,
            trial.load,
            span(trial.seconds),
            grid.first_seed,
            seconds(trial.objective_seconds),
        );
        let rows = trial.cells.iter().map(|cell| (&*cell.policy, &cell.summary));
        out.push_str(&scores(rows, false));
        out.push_str(&sparklines(trial));
        for note in &trial.notes {
            let _ = writeln!(out, "note: {note}");
        }
        out.push('\n');
    }
    if !grid.overall.is_empty() {
        let _ = writeln!(out, "over all {} trials", grid.trials.len());
        out.push_str(&scores(grid.overall.iter().map(|(name, summary)| (&**name, summary)), true));
        out.push('\n');
    }
    out.push_str(
        "VIOLATED: refused, or slower than the objective. TOO SMALL: time in which ready pods could serve \
         less than came.\nOLDEST: the longest that work waited. ±: 95% confidence of the mean over seeds.\n",
    );
    out
}

/// A table of scores, under one load or over several.
pub(super) fn scores<'a>(
    rows: impl Iterator<Item = (&'a str, &'a Summary)>,
    several: bool,
) -> String {
    columns(&cells(rows, several))
}

/// The cells of a table of scores, its header first.
pub(super) fn cells<'a>(
    rows: impl Iterator<Item = (&'a str, &'a Summary)>,
    several: bool,
) -> Vec<Vec<String>> {
    let shown = || COLUMNS.iter().filter(move |(name, _)| several || *name != WORST_RUN);
    let header = std::iter::once("POLICY").chain(shown().map(|(name, _)| *name));
    let mut table = vec![header.map(str::to_owned).collect::<Vec<String>>()];
    for (name, summary) in rows {
        let row = std::iter::once(name.to_owned()).chain(shown().map(|(_, text)| text(summary)));
        table.push(row.collect());
    }
    table
}

/// Columns side by side, all but the first to the right.
pub(super) fn columns(table: &[Vec<String>]) -> String {
    let count = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = table.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in table {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn sparklines(trial: &Trial) -> String {
    let Some(first) = trial.cells.first() else { return String::new() };
    let width = trial.cells.iter().map(|cell| cell.policy.chars().count()).max().unwrap_or(0);
    let width = width.max("load".len());
    let offered: Vec<f64> = first.first.points.iter().map(|point| point.offered_rps).collect();
    let mut out = String::new();
    let top = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "{:<width$}  {}  up to {} a second",
        "load",
        sparkline(&offered, top(&offered)),
        number(top(&offered))
    );
    let sizes: Vec<Vec<f64>> = trial
        .cells
        .iter()
        .map(|cell| cell.first.points.iter().map(|point| point.replicas).collect())
        .collect();
    // All sizes on one scale, so that they can be compared.
    let highest = sizes.iter().map(|sizes| top(sizes)).fold(0.0, f64::max);
    for (cell, sizes) in trial.cells.iter().zip(&sizes) {
        let _ = writeln!(
            out,
            "{:<width$}  {}  up to {:.0} pods",
            cell.policy,
            sparkline(sizes, highest),
            top(sizes)
        );
    }
    out
}

/// Bars from zero to the given height.
pub(super) fn sparkline(values: &[f64], height: f64) -> String {
    let bar = |value: &f64| {
        let part = if height > 0.0 { value / height } else { 0.0 };
        // The cast saturates.
        BARS[((part * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    values.iter().map(bar).collect()
}

/// A decision in words.
pub(super) fn moment(autoscaler: &str, load: &str, plan: &Plan, moment: &Moment) -> String {
    let after = moment.at.since(plan.start).0 as f64 / 1e6;
    let mut out = format!("{autoscaler} under {load}, {} after the start:\n", span(after));
    for line in &moment.lines {
        let _ = writeln!(out, "- {line}");
    }
    out
}

fn with_confidence(estimate: &Estimate, text: fn(f64) -> String) -> String {
    match estimate.confidence {
        Some(confidence) if confidence > 0.0 => {
            format!("{} ±{}", text(estimate.mean), text(confidence))
        }
        _ => text(estimate.mean),
    }
}

/// A part of one in percent, with as many digits as say something.
pub(super) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    match percent {
        0.0 => "0%".to_owned(),
        p if p < 0.01 => "<0.01%".to_owned(),
        p if p < 1.0 => format!("{p:.2}%"),
        p if p < 10.0 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

/// A number with three digits or so.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        v if v.is_nan() => "-".to_owned(),
        0.0 => "0".to_owned(),
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Seconds in the unit that suits them.
pub(super) fn seconds(value: f64) -> String {
    match value {
        v if v.is_nan() => "-".to_owned(),
        v if v < 1.0 => format!("{:.0}ms", v * 1000.0),
        v if v < 120.0 => format!("{v:.1}s"),
        v => span(v),
    }
}

/// A length of time as people write it.
pub(super) fn span(seconds: f64) -> String {
    GoDuration::from_span(Span::seconds(seconds.round() as i64)).to_short_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_they_say_something() {
        assert_eq!(
            [0.0, 0.00002, 0.0051, 0.034, 0.5].map(percent),
            ["0%", "<0.01%", "0.51%", "3.4%", "50%"]
        );
        assert_eq!([0.0, 1.234, 12.34, 1234.5].map(number), ["0", "1.23", "12.3", "1234"]);
        assert_eq!([0.05, 1.5, 90.0, 600.0].map(seconds), ["50ms", "1.5s", "90.0s", "10m"]);
    }

    #[test]
    fn columns_and_bars_line_up() {
        let table = [vec!["a".to_owned(), "1".to_owned()], vec!["bcd".to_owned(), "20".to_owned()]];
        assert_eq!(columns(&table), "a     1\nbcd  20\n");
        assert_eq!(sparkline(&[0.0, 5.0, 10.0], 10.0), "▁▅█");
        assert_eq!(sparkline(&[0.0], 0.0), "▁");
    }
}
