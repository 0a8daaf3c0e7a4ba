//! Scores as a page: tables, and a chart of what each policy costs and spares over all loads.

mod goal;

use super::grid::{Grid, Trial};
use super::table::{cells, seconds, span};
use podscale_sim::score::Summary;
use std::fmt::Write as _;

/// The size of the chart, in characters.
const WIDTH: usize = 64;
const HEIGHT: usize = 16;
/// The smallest part of violated requests that is told apart.
const LEAST: f64 = 1e-4;
/// How policies are marked in the chart.
const MARKS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Everything, the summary first.
pub(super) fn render(grid: &Grid) -> String {
    let mut out = String::new();
    let overall: Vec<(&str, &Summary)> = match (grid.overall.as_slice(), grid.trials.as_slice()) {
        ([], [only]) => only.cells.iter().map(|cell| (&*cell.policy, &cell.summary)).collect(),
        (overall, _) => overall.iter().map(|(name, summary)| (&**name, summary)).collect(),
    };
    if !grid.overall.is_empty() {
        // Writing into memory does not fail.
        let _ = writeln!(out, "## Over all {} loads\n", grid.trials.len());
        out.push_str(&table(&cells(overall.iter().copied(), true)));
        out.push('\n');
    }
    if let Some(chart) = chart(&overall) {
        let _ = writeln!(out, "```text\n{chart}```\n");
    }
    if let Some(cells) = goal::cells(grid) {
        let _ = writeln!(out, "## Against the best peer\n\n{}", table(&cells));
    }
    if let Some(cells) = goal::cells_of_peers(grid) {
        let _ = writeln!(out, "## Against each peer\n\n{}", table(&cells));
    }
    for trial in &grid.trials {
        out.push_str(&section(trial));
    }
    out
}

fn section(trial: &Trial) -> String {
    let mut out = format!("## {} under {}\n\n", trial.autoscaler, trial.load);
    let runs = trial.cells.first().map_or(0, |cell| cell.scores.len());
    let (length, objective) = (span(trial.seconds), seconds(trial.objective_seconds));
    let _ = writeln!(out, "{length}, objective {objective}, {runs} seeds.\n");
    let rows = trial.cells.iter().map(|cell| (&*cell.policy, &cell.summary));
    out.push_str(&table(&cells(rows, false)));
    for note in &trial.notes {
        let _ = writeln!(out, "\nNote: {note}.");
    }
    out.push('\n');
    out
}

fn table(rows: &[Vec<String>]) -> String {
    let mut out = String::new();
    for (place, row) in rows.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
        if place == 0 {
            let _ = writeln!(out, "|---|{}", "---:|".repeat(row.len().saturating_sub(1)));
        }
    }
    out
}

/// Policies by pod-hours, as a multiple of the oracle's, and by violated requests; nothing without an
/// oracle.
fn chart(policies: &[(&str, &Summary)]) -> Option<String> {
    let points: Vec<(f64, f64)> = policies
        .iter()
        .map(|(_, s)| Some((s.against_oracle?.mean, s.violations.mean.max(LEAST).log10())))
        .collect::<Option<_>>()?;
    if points.is_empty() {
        return None;
    }
    let bounds = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)))
    };
    let (left, right) = bounds(&mut points.iter().map(|point| point.0));
    let (bottom, top) = bounds(&mut points.iter().map(|point| point.1));
    let place = |value: f64, (low, high): (f64, f64), size: usize| {
        let part = if high > low { (value - low) / (high - low) } else { 0.5 };
        // In range: a part of the size.
        (part * (size - 1) as f64).round() as usize
    };
    let mut rows = vec![vec![' '; WIDTH]; HEIGHT];
    for ((x, y), mark) in points.iter().zip(MARKS.chars()) {
        let row = HEIGHT - 1 - place(*y, (bottom, top), HEIGHT);
        rows[row][place(*x, (left, right), WIDTH)] = mark;
    }
    let mut out = String::from("violated requests (logarithmic) by pod-hours against the oracle\n");
    for (place, row) in rows.iter().enumerate() {
        let label = match place {
            0 => format!("{:.3}%", 10_f64.powf(top) * 100.0),
            p if p == HEIGHT - 1 => format!("{:.3}%", 10_f64.powf(bottom) * 100.0),
            _ => String::new(),
        };
        let row: String = row.iter().collect();
        let _ = writeln!(out, "{label:>8} |{}", row.trim_end());
    }
    let _ = writeln!(out, "{:>8} +{}", "", "-".repeat(WIDTH));
    let (left, right) = (format!("{left:.2}x"), format!("{right:.2}x"));
    let _ = writeln!(out, "{:>8}  {left}{right:>width$}", "", width = WIDTH - left.len());
    for ((name, _), mark) in policies.iter().zip(MARKS.chars()) {
        let _ = writeln!(out, "{mark} {name}");
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_sim::score::Estimate;

    #[test]
    fn policies_are_where_their_scores_are() {
        let summary = |violations, hours| Summary {
            violations: Estimate { mean: violations, ..Estimate::default() },
            against_oracle: Some(Estimate { mean: hours, ..Estimate::default() }),
            ..Summary::default()
        };
        let (cheap, safe) = (summary(0.1, 1.0), summary(0.001, 2.0));
        let chart = chart(&[("cheap", &cheap), ("safe", &safe)]).expect("an oracle");
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines[1], " 10.000% |A", "{chart}");
        assert!(lines[HEIGHT].starts_with("  0.100% |") && lines[HEIGHT].ends_with('B'), "{chart}");
        assert!(chart.ends_with("A cheap\nB safe\n"), "{chart}");
        let alone = Summary::default();
        assert_eq!(super::chart(&[("alone", &alone)]), None);
    }
}
