//! The table on the screen.

use super::Latest;
use super::app::{After, App, Sort, trouble};
use super::table::{TITLES, cells, widths};
use podscale_controller::dashboard::{OutcomeKind, Row as Shown};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};
use std::io;
use std::time::Duration;

/// How long at most until something new is on the screen.
const POLL: Duration = Duration::from_millis(200);

/// Shows the table until somebody wants to leave; the terminal is as before then.
pub(super) fn show(app: &mut App, latest: &Latest) -> io::Result<()> {
    let mut terminal = ratatui::try_init()?;
    let shown = run(&mut terminal, app, latest);
    let restored = ratatui::try_restore();
    shown.and(restored)
}

fn run(terminal: &mut ratatui::DefaultTerminal, app: &mut App, latest: &Latest) -> io::Result<()> {
    loop {
        if let Some(answer) = latest.lock().take() {
            app.take(answer);
        }
        terminal.draw(|frame| draw(frame, app))?;
        if !event::poll(POLL)? {
            continue;
        }
        if let Event::Key(key) = event::read()?
            && key.kind != KeyEventKind::Release
        {
            let page = usize::from(terminal.size()?.height).saturating_sub(FRAME_LINES);
            if app.key(key, page) == After::Leave {
                return Ok(());
            }
        }
    }
}

/// The lines around the rows: a head, the titles, a foot.
const FRAME_LINES: usize = 3;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    let lines = [Constraint::Length(1), Constraint::Min(2), Constraint::Length(1)];
    let [head, body, foot] = Layout::vertical(lines).areas(frame.area());
    let rows = app.rows();
    let about = format!("podscale top  {}  {} of {}", app.admin, rows.len(), app.count());
    frame.render_widget(Line::styled(about, Style::new().add_modifier(Modifier::BOLD)), head);
    let shown = rows.into_iter().skip(app.first).take(usize::from(body.height));
    let (cells, styles): (Vec<[String; 9]>, Vec<Style>) =
        shown.map(|row| (cells(row, app.now), style(row))).unzip();
    let widths = widths(&cells).map(|width| Constraint::Length(u16::try_from(width).unwrap_or(80)));
    let titles = Row::new(TITLES).style(Style::new().add_modifier(Modifier::REVERSED));
    let rows = cells.into_iter().zip(styles).map(|(cells, style)| Row::new(cells).style(style));
    frame.render_widget(Table::new(rows, widths).header(titles).column_spacing(2), body);
    frame.render_widget(footer(app), foot);
}

fn footer(app: &App) -> Line<'static> {
    if let Some(error) = &app.error {
        return Line::styled(error.clone(), Style::new().fg(Color::Red));
    }
    if app.typing {
        return Line::from(format!("filter: {}▏  Enter keeps it, Esc clears it", app.filter));
    }
    let sort = match app.sort {
        Sort::Name => "name",
        Sort::Replicas => "replicas",
        Sort::Metric => "metric",
        Sort::LastScale => "last scale",
        Sort::Trouble => "trouble",
    };
    let filter = match app.filter.as_str() {
        "" => String::new(),
        filter => format!("  filter: {filter}"),
    };
    Line::from(format!(
        "by {sort}{filter}  sort: n)ame r)eplicas m)etric l)ast scale t)rouble  /: filter  q: quit"
    ))
}

fn style(row: &Shown) -> Style {
    match row.outcome {
        _ if trouble(row).is_some() => Style::new().fg(Color::Red),
        OutcomeKind::Up | OutcomeKind::Down => Style::new().fg(Color::Green),
        OutcomeKind::Held | OutcomeKind::Limited | OutcomeKind::Withheld => {
            Style::new().fg(Color::Yellow)
        }
        OutcomeKind::Paused => Style::new().fg(Color::DarkGray),
        OutcomeKind::Steady | OutcomeKind::Failed => Style::new(),
    }
}
