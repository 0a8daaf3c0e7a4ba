//! A report in one file: scores, charts of load, capacity, sizes and what went wrong, and the reasons of
//! every change of size.

use super::grid::{Cell, Grid, Trial};
use super::table::{number, percent, seconds, span};
use podscale_api::time::format_rfc3339;
use podscale_sim::Time;
use podscale_sim::score::{Change, Point, Summary};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../assets/simulate/report.html");
/// The palette and the frame of the dashboard, then what only a report has.
const STYLES: [&str; 2] =
    [podscale_controller::dashboard::STYLE, include_str!("../../../assets/simulate/report.css")];
const SCRIPT: &str = include_str!("../../../assets/simulate/report.js");
/// The most changes of one run that are shown with their reasons.
const MAX_CHANGES: usize = 2_000;

/// The report.
pub(super) fn render(grid: &Grid, title: &str) -> String {
    let trials: Vec<Value> = grid.trials.iter().map(trial).collect();
    let overall: Vec<Value> =
        grid.overall.iter().map(|(name, summary)| row(name, summary)).collect();
    page(title, &json!({"title": title, "trials": trials, "overall": overall}))
}

/// A page that shows this.
fn page(title: &str, data: &Value) -> String {
    // Nothing in the data can end the element that holds it.
    let data = data.to_string().replace('<', "\\u003c");
    PAGE.replace("{{title}}", &escaped(title))
        .replace("{{style}}", &STYLES.concat())
        .replace("{{script}}", SCRIPT)
        .replace("{{data}}", &data)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn trial(trial: &Trial) -> Value {
    let heading = format!("{} under {}", trial.autoscaler, trial.load);
    let runs = trial.cells.first().map_or(0, |cell| cell.scores.len());
    let about = format!(
        "{} from {}, objective {}, {runs} run{} each",
        span(trial.seconds),
        format_rfc3339(trial.start),
        seconds(trial.objective_seconds),
        if runs == 1 { "" } else { "s" },
    );
    json!({
        "heading": heading,
        "about": about,
        "notes": trial.notes,
        "seconds": trial.seconds,
        "scores": trial.cells.iter().map(|cell| row(&cell.policy, &cell.summary)).collect::<Vec<_>>(),
        "policies": trial.cells.iter().map(|cell| policy(cell, trial.start)).collect::<Vec<_>>(),
    })
}

fn row(name: &str, summary: &Summary) -> Value {
    let confidence = summary
        .violations
        .confidence
        .map_or(String::new(), |confidence| format!(" ±{}", percent(confidence)));
    json!([
        name,
        format!("{}{confidence}", percent(summary.violations.mean)),
        percent(summary.worst_minute.worst),
        seconds(summary.p95_seconds.mean),
        seconds(summary.p99_seconds.mean),
        number(summary.pod_hours.mean),
        summary.against_oracle.map_or("-".to_owned(), |e| format!("{:.2}x", e.mean)),
        number(summary.reversals_per_hour.mean),
        number(summary.pods_started.mean),
        percent(summary.below_capacity.mean),
        seconds(summary.queue_age_most_seconds.worst),
    ])
}

fn policy(cell: &Cell, start: Time) -> Value {
    let point = |point: &Point| {
        json!([
            point.seconds,
            short(point.offered_rps),
            short(point.capacity_rps),
            short(point.replicas),
            short(point.ready),
            short(point.waiting),
            short(point.violations * 100.0),
        ])
    };
    let change = |change: &Change| {
        let at = change.at.since(start).0 as f64 / 1e6;
        json!([at, change.from, change.to, change.why])
    };
    json!({
        "name": cell.policy,
        "points": cell.first.points.iter().map(point).collect::<Vec<_>>(),
        "changes": cell.first.changes.iter().take(MAX_CHANGES).map(change).collect::<Vec<_>>(),
    })
}

/// As many digits as a chart can show.
fn short(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_whole_and_holds_its_data() {
        let page = page("a < b", &json!({"trials": ["</script>"]}));
        assert!(page.starts_with("<!doctype html>"), "{}", &page[..40]);
        assert!(page.contains("<title>a &lt; b</title>"));
        assert!(page.contains("\\u003c/script>"), "data cannot end its element");
        for left in ["{{title}}", "{{style}}", "{{script}}", "{{data}}"] {
            assert!(!page.contains(left), "{left} is left");
        }
        let outside = ["http://", "https://", "src="];
        let svg = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!outside.iter().any(|word| svg.contains(word)), "nothing is loaded from elsewhere");
    }
}
