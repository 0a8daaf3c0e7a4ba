//! Scores for programs.

use super::grid::{Cell, Grid, Trial};
use podscale_api::time::format_rfc3339;
use podscale_sim::Scores;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One JSON object with everything.
pub(super) fn json(grid: &Grid) -> String {
    let trials: Vec<Value> = grid.trials.iter().map(trial_json).collect();
    let overall: Vec<Value> = grid
        .overall
        .iter()
        .map(|(policy, summary)| json!({"policy": policy, "summary": summary}))
        .collect();
    let all = json!({"seed": grid.first_seed, "trials": trials, "overall": overall});
    pretty(&all)
}

/// A value as JSON for people and programs.
pub(super) fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

fn trial_json(trial: &Trial) -> Value {
    let cell =
        |cell: &Cell| json!({"policy": cell.policy, "summary": cell.summary, "runs": cell.scores});
    json!({
        "autoscaler": trial.autoscaler,
        "load": trial.load,
        "start": format_rfc3339(trial.start),
        "lengthSeconds": trial.seconds,
        "objectiveSeconds": trial.objective_seconds,
        "notes": trial.notes,
        "policies": trial.cells.iter().map(cell).collect::<Vec<Value>>(),
    })
}

/// A column: its name, and how a run scores in it.
type Column = (&'static str, fn(&Scores) -> f64);

const COLUMNS: [Column; 16] = [
    ("violations", |s| s.violations),
    ("refused", |s| s.refused),
    ("worstMinute", |s| s.worst_minute),
    ("p50Seconds", |s| s.p50_seconds),
    ("p95Seconds", |s| s.p95_seconds),
    ("p99Seconds", |s| s.p99_seconds),
    ("podHours", |s| s.pod_hours),
    ("reversalsPerHour", |s| s.reversals_per_hour),
    ("changes", |s| s.changes as f64),
    ("podsStarted", |s| s.pods_started as f64),
    ("belowCapacity", |s| s.below_capacity),
    ("queueAgeMeanSeconds", |s| s.queue_age_mean_seconds),
    ("queueAgeMostSeconds", |s| s.queue_age_most_seconds),
    ("requests", |s| s.requests),
    ("hours", |s| s.hours),
    ("decisions", |s| s.decisions as f64),
];

/// One line for each run.
pub(super) fn csv(grid: &Grid) -> String {
    let mut out = String::from("autoscaler,load,policy,seed");
    for (name, _) in COLUMNS {
        let _ = write!(out, ",{name}");
    }
    out.push('\n');
    for trial in &grid.trials {
        for cell in &trial.cells {
            for (offset, scores) in cell.scores.iter().enumerate() {
                let seed = grid.first_seed.wrapping_add(offset as u64);
                let names = [&trial.autoscaler, &trial.load, &cell.policy].map(|name| quoted(name));
                let _ = write!(out, "{},{seed}", names.join(","));
                for (_, score) in COLUMNS {
                    // What is not scored stays empty.
                    let value = Some(score(scores)).filter(|value| !value.is_nan());
                    let _ = write!(
                        out,
                        ",{}",
                        value.map(|value| value.to_string()).unwrap_or_default()
                    );
                }
                out.push('\n');
            }
        }
    }
    out
}

/// A cell of text, in quotation marks if it must be.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_with_commas_is_quoted() {
        assert_eq!(quoted("a"), "a");
        assert_eq!(quoted("sine:mean=1,\"x\""), "\"sine:mean=1,\"\"x\"\"\"");
    }
}
