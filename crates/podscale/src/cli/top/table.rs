//! The cells of the table, and the table as plain text.

use super::app::{App, trouble};
use crate::cli::ask::ago;
use podscale_api::hpa::v2::KIND;
use podscale_controller::dashboard::Row;

/// The names of the columns.
pub(super) const TITLES: [&str; 9] =
    ["NAMESPACE", "NAME", "TARGET", "REPLICAS", "MIN", "MAX", "METRICS", "LAST SCALE", "STATE"];

/// What is said where there is nothing to show.
const NONE: &str = "no autoscaler has been decided on there; only a replica that leads decides";

/// One autoscaler in the columns of [`TITLES`].
pub(super) fn cells(row: &Row, now: i64) -> [String; 9] {
    let view = &row.view;
    let replicas = if view.current == view.desired {
        view.current.to_string()
    } else {
        format!("{}→{}", view.current, view.desired)
    };
    let name = match &*view.kind {
        KIND => view.name.clone(),
        kind => format!("{kind}/{}", view.name),
    };
    let metric = |m: &podscale_controller::dashboard::MetricView| {
        format!("{} {}/{}", m.name, m.current, m.target)
    };
    let metrics: Vec<String> = view.metrics.iter().map(metric).collect();
    [
        view.namespace.clone(),
        name,
        view.target.clone(),
        replicas,
        view.min.to_string(),
        view.max.to_string(),
        metrics.join(", "),
        view.last_scale.map_or("never".to_owned(), |time| ago(now, time)),
        trouble(row).unwrap_or(row.outcome.word()).to_owned(),
    ]
}

/// The widest cell of each column, titles among them.
pub(super) fn widths(rows: &[[String; 9]]) -> [usize; 9] {
    let mut widths = TITLES.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// The table as lines; the wide one ends with the reason of the latest decision.
pub(super) fn text(app: &App, wide: bool) -> String {
    let rows = app.rows();
    let cells: Vec<[String; 9]> = rows.iter().map(|row| cells(row, app.now)).collect();
    let widths = widths(&cells);
    let line = |cells: &[String; 9], last: &str| {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(widths) {
            line += &format!("{cell:<width$}   ");
        }
        line += last;
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(&TITLES.map(str::to_owned), if wide { "REASON" } else { "" });
    for (cells, row) in cells.iter().zip(rows) {
        text += &line(cells, if wide { &row.reason } else { "" });
    }
    if app.is_empty() {
        text += NONE;
        text.push('\n');
    }
    text
}
