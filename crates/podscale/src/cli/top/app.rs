//! What the table shows: which rows, in which order, from where on. Knows no terminal.

use crate::cli::ask::{AskError, AutoscalerList};
use clap::ValueEnum;
use podscale_controller::dashboard::{MetricState, OutcomeKind, Row};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Ordering;

/// Which rows come first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Sort {
    /// By name.
    #[default]
    Name,
    /// The largest targets first.
    Replicas,
    /// Metrics furthest above their targets first.
    Metric,
    /// The most recently scaled first.
    LastScale,
    /// Autoscalers in trouble first.
    Trouble,
}

/// What to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// Go on.
    Stay,
    /// Leave the screen.
    Leave,
}

pub(super) struct App {
    pub(super) admin: String,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// Whether letters go into the filter.
    pub(super) typing: bool,
    /// The first row that is shown.
    pub(super) first: usize,
    pub(super) now: i64,
    /// Why the rows are old.
    pub(super) error: Option<String>,
    rows: Vec<Row>,
}

impl App {
    pub(super) fn new(admin: String, sort: Sort, filter: String) -> App {
        let rows = Vec::new();
        App { admin, sort, filter, typing: false, first: 0, now: 0, error: None, rows }
    }

    /// Takes in an answer; without one the old rows stay.
    pub(super) fn take(&mut self, answer: Result<AutoscalerList, AskError>) {
        match answer {
            Ok(list) => {
                (self.now, self.rows, self.error) = (list.now, list.autoscalers, None);
            }
            Err(error) => {
                let text = error.to_string();
                self.error = text.lines().next().map(str::to_owned);
            }
        }
    }

    /// How many autoscalers there are, shown or not.
    pub(super) fn count(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no autoscalers at all, whatever the filter says.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that pass the filter, in the chosen order.
    pub(super) fn rows(&self) -> Vec<&Row> {
        let wanted = |row: &&Row| {
            let view = &row.view;
            self.filter.is_empty()
                || view.key.contains(&self.filter)
                || view.target.contains(&self.filter)
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(wanted).collect();
        let by_name = |a: &Row, b: &Row| {
            let (a, b) = (&a.view, &b.view);
            (&a.namespace, &a.name, &a.key).cmp(&(&b.namespace, &b.name, &b.key))
        };
        rows.sort_by(|a, b| self.compare(a, b).then_with(|| by_name(a, b)));
        rows
    }

    fn compare(&self, a: &Row, b: &Row) -> Ordering {
        match self.sort {
            Sort::Name => Ordering::Equal,
            Sort::Replicas => b.view.current.cmp(&a.view.current),
            Sort::Metric => ratio(b).total_cmp(&ratio(a)),
            Sort::LastScale => b.view.last_scale.cmp(&a.view.last_scale),
            Sort::Trouble => trouble(b).is_some().cmp(&trouble(a).is_some()),
        }
    }

    /// All wanted rows for programs.
    pub(super) fn json(&self) -> String {
        let value = serde_json::json!({"now": self.now, "autoscalers": self.rows()});
        format!("{value:#}\n")
    }

    /// Does what a key asks for; `page` is how many rows are in sight.
    pub(super) fn key(&mut self, key: KeyEvent, page: usize) -> After {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return After::Leave;
        }
        if self.typing {
            match key.code {
                KeyCode::Enter => self.typing = false,
                KeyCode::Esc => {
                    self.typing = false;
                    self.filter.clear();
                }
                KeyCode::Backspace => {
                    self.filter.pop();
                }
                KeyCode::Char(letter) => self.filter.push(letter),
                _ => {}
            }
            self.first = 0;
            return After::Stay;
        }
        let last = self.rows().len().saturating_sub(page.max(1));
        match key.code {
            KeyCode::Char('q') => return After::Leave,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('n') => self.sort = Sort::Name,
            KeyCode::Char('r') => self.sort = Sort::Replicas,
            KeyCode::Char('m') => self.sort = Sort::Metric,
            KeyCode::Char('l') => self.sort = Sort::LastScale,
            KeyCode::Char('t') => self.sort = Sort::Trouble,
            KeyCode::Down => self.first += 1,
            KeyCode::Up => self.first = self.first.saturating_sub(1),
            KeyCode::PageDown => self.first += page,
            KeyCode::PageUp => self.first = self.first.saturating_sub(page),
            KeyCode::Home => self.first = 0,
            KeyCode::End => self.first = last,
            _ => {}
        }
        self.first = self.first.min(last);
        After::Stay
    }
}

/// The metric that is furthest above its target.
fn ratio(row: &Row) -> f64 {
    let ratios = row.view.metrics.iter().filter_map(|metric| metric.ratio);
    ratios.fold(f64::NEG_INFINITY, f64::max)
}

/// What stands in an autoscaler's way, in one word.
pub(super) fn trouble(row: &Row) -> Option<&str> {
    let bad = |kind: &str| {
        let conditions = &row.view.conditions;
        conditions.iter().find(|c| c.kind == kind && c.status == "False").map(|c| &*c.reason)
    };
    let unread = || {
        let unread = |metric: &podscale_controller::dashboard::MetricView| {
            metric.state == MetricState::Unread
        };
        (row.outcome == OutcomeKind::Failed && row.view.metrics.iter().any(unread))
            .then_some("MetricUnread")
    };
    let failed = || (row.outcome == OutcomeKind::Failed).then_some("Failed");
    // A target that somebody set to zero is not active, but that is not trouble.
    let inactive = bad("ScalingActive").filter(|reason| *reason != "ScalingDisabled");
    let conflict = row.view.conflict.as_ref().map(|_| "Conflict");
    let unready = || bad("Ready");
    conflict.or(bad("AbleToScale")).or(inactive).or_else(unread).or_else(unready).or_else(failed)
}
