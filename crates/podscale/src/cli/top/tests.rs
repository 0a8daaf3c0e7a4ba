use super::app::{After, App, Sort};
use super::{screen, table};
use crate::cli::ask::AutoscalerList;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};

fn row(namespace: &str, name: &str, current: i32, ratio: f64, able: &str) -> Value {
    let metric = json!({
        "name": "cpu", "unit": "percent", "value": ratio * 50.0, "goal": 50.0,
        "current": format!("{:.0}%", ratio * 50.0), "target": "50%", "ratio": ratio, "state": "above",
    });
    let condition = json!({
        "type": "AbleToScale", "status": able, "reason": "FailedGetScale", "message": "", "since": null,
    });
    json!({
        "key": format!("{namespace}/{name}"),
        "namespace": namespace, "name": name, "kind": "HorizontalPodAutoscaler",
        "target": format!("Deployment/{name}"), "min": 1, "max": 10, "current": current,
        "desired": current + 1, "metrics": [metric], "conditions": [condition],
        "lastScale": 1_000_000 - i64::from(current) * 60_000, "outcome": "up", "reason": "because",
        "trend": [1, 2],
    })
}

fn app(sort: Sort, filter: &str) -> App {
    let rows = [
        row("shop", "web", 4, 1.2, "True"),
        row("shop", "api", 7, 1.6, "True"),
        row("ops", "jobs", 1, 0.5, "False"),
    ];
    let list: AutoscalerList =
        serde_json::from_value(json!({"now": 1_000_000, "autoscalers": rows})).expect("rows");
    let mut app = App::new("http://here".into(), sort, filter.into());
    app.take(Ok(list));
    app
}

fn names(app: &App) -> String {
    let names: Vec<&str> = app.rows().iter().map(|row| row.view.name.as_str()).collect();
    names.join(" ")
}

#[test]
fn rows_are_sorted_and_filtered() {
    for (sort, filter, expected) in [
        (Sort::Name, "", "jobs api web"),
        (Sort::Replicas, "", "api web jobs"),
        (Sort::Metric, "", "api web jobs"),
        (Sort::LastScale, "", "jobs web api"),
        (Sort::Trouble, "", "jobs api web"),
        (Sort::Name, "shop/", "api web"),
        (Sort::Name, "Deployment/w", "web"),
        (Sort::Name, "nothing", ""),
    ] {
        assert_eq!(names(&app(sort, filter)), expected, "{sort:?} {filter}");
    }
}

#[test]
fn keys_sort_filter_scroll_and_leave() {
    let mut app = app(Sort::Name, "");
    let mut press = |code: KeyCode| app.key(KeyEvent::new(code, KeyModifiers::NONE), 1);
    assert_eq!(press(KeyCode::Char('r')), After::Stay);
    for letter in "/wq".chars() {
        assert_eq!(press(KeyCode::Char(letter)), After::Stay, "q is a letter of the filter");
    }
    press(KeyCode::Backspace);
    press(KeyCode::Enter);
    assert_eq!((names(&app).as_str(), app.sort), ("web", Sort::Replicas));
    let mut press = |code: KeyCode| app.key(KeyEvent::new(code, KeyModifiers::NONE), 1);
    press(KeyCode::Esc);
    press(KeyCode::PageDown);
    press(KeyCode::Down);
    press(KeyCode::Down);
    assert_eq!(press(KeyCode::Char('q')), After::Leave);
    assert_eq!((names(&app).as_str(), app.first), ("api web jobs", 2), "never past the last");
    assert_eq!(app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), 1), After::Leave);
}

#[test]
fn the_table_is_the_same_on_paper_and_on_the_screen() {
    let app = app(Sort::Name, "shop");
    let text = table::text(&app, false);
    let expected = "\
NAMESPACE   NAME   TARGET           REPLICAS   MIN   MAX   METRICS       LAST SCALE   STATE
shop        api    Deployment/api   7→8        1     10    cpu 80%/50%   7m           up
shop        web    Deployment/web   4→5        1     10    cpu 60%/50%   4m           up
";
    assert_eq!(text, expected);
    assert!(table::text(&app, true).contains("because"));
    let mut terminal = Terminal::new(TestBackend::new(100, 6)).expect("a terminal");
    terminal.draw(|frame| screen::draw(frame, &app)).expect("drawn");
    let drawn = terminal.backend().to_string();
    for part in ["http://here  2 of 3", "LAST SCALE", "7→8", "cpu 60%/50%", "filter: shop"] {
        assert!(drawn.contains(part), "no {part} in\n{drawn}");
    }
}

#[test]
fn a_dry_run_and_another_kind_are_shown_as_such() {
    let mut withheld = row("shop", "web", 4, 1.2, "True");
    withheld["outcome"] = json!("withheld");
    let mut other = row("shop", "web", 4, 1.2, "True");
    other["key"] = json!("shop/web/scaledobjects.keda.sh");
    other["kind"] = json!("ScaledObject");
    let mut taken = row("shop", "waits", 4, 1.2, "True");
    taken["conflict"] = json!("PodAutoscaler \"web\" scales Deployment \"web\" as well");
    let list: AutoscalerList =
        serde_json::from_value(json!({"now": 1_000_000, "autoscalers": [other, taken, withheld]}))
            .expect("rows");
    let mut app = App::new("http://here".into(), Sort::Trouble, String::new());
    app.take(Ok(list));
    let text = table::text(&app, false);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("shop        waits ") && lines[1].ends_with("Conflict"), "{text}");
    assert!(lines[2].starts_with("shop        web ") && lines[2].ends_with("withheld"), "{text}");
    assert!(lines[3].starts_with("shop        ScaledObject/web "), "{text}");
}

#[test]
fn a_scaled_job_that_is_not_ready_says_why() {
    let mut mail = row("shop", "mail", 2, 2.5, "True");
    (mail["kind"], mail["target"], mail["outcome"]) =
        (json!("ScaledJob"), json!("Jobs"), json!("failed"));
    mail["conditions"] = json!([{"type": "Ready", "status": "False", "since": null,
        "reason": "ScaledJobCheckFailed", "message": "no triggers"}]);
    let list = json!({"now": 1_000_000, "autoscalers": [mail]});
    let mut app = App::new("http://here".into(), Sort::Name, String::new());
    app.take(Ok(serde_json::from_value(list).expect("rows")));
    let text = table::text(&app, false);
    let line: Vec<&str> = text.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    assert_eq!(line[..6], ["shop", "ScaledJob/mail", "Jobs", "2→3", "1", "10"], "{text}");
    assert_eq!(line.last(), Some(&"ScaledJobCheckFailed"), "{text}");
}
