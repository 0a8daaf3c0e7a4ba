//! Rows of Jobs and CronJobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::workload::{CONTAINERS, IMAGES, SELECTOR, containers_of, selector_words};
use super::{Column, Row, age, age_cell, integer, list, name_cell, text};

pub(super) fn job_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Status", "What the Job does, or how it ended."),
        Column::text("Completions", "Pods that succeeded of those wanted."),
        Column::text("Duration", "How long the Job has run, or ran."),
        Column::age(),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

pub(super) fn job_row(job: &Value, now: Timestamp) -> Row {
    let (names, images) = containers_of(list(job, "/spec/template/spec/containers"));
    Row::from(vec![
        name_cell(job),
        status(job).into(),
        completions(job).into(),
        duration(job, now).into(),
        age_cell(job, now),
        names,
        images,
        selector_words(job.pointer("/spec/selector")).into(),
    ])
}

fn status(job: &Value) -> &'static str {
    let holds = |kind: &str| {
        let mut conditions = list(job, "/status/conditions").iter();
        let found = conditions.find(|condition| text(condition, "/type") == kind);
        found.is_some_and(|condition| text(condition, "/status") == "True")
    };
    let deleted = !text(job, "/metadata/deletionTimestamp").is_empty();
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if deleted => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Value) -> String {
    let succeeded = integer(job, "/status/succeeded");
    match (job.pointer("/spec/completions"), integer(job, "/spec/parallelism")) {
        (Some(Value::Number(wanted)), _) => format!("{succeeded}/{wanted}"),
        (_, parallelism @ 2..) => format!("{succeeded}/1 of {parallelism}"),
        _ => format!("{succeeded}/1"),
    }
}

fn duration(job: &Value, now: Timestamp) -> String {
    let time = |pointer: &str| text(job, pointer).parse::<Timestamp>().ok();
    let Some(start) = time("/status/startTime") else { return String::new() };
    let end = time("/status/completionTime").unwrap_or(now);
    age::human_duration(end.duration_since(start).as_secs())
}

pub(super) fn cron_job_columns() -> Vec<Column> {
    vec![
        Column::name(),
        Column::text("Schedule", "When Jobs are made, in the form of cron."),
        Column::text("Timezone", "Time zone of the schedule."),
        Column::new("Suspend", "boolean", "", 0, "Whether no Jobs are made for now."),
        Column::integer("Active", "How many of its Jobs run."),
        Column::text("Last Schedule", "Time since the last Job was due."),
        Column::age(),
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ]
}

pub(super) fn cron_job_row(object: &Value, now: Timestamp) -> Row {
    let containers = list(object, "/spec/jobTemplate/spec/template/spec/containers");
    let (names, images) = containers_of(containers);
    let last = match text(object, "/status/lastScheduleTime") {
        "" => "<none>".to_owned(),
        time => age::since(time, now),
    };
    let suspend = match object.pointer("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    Row::from(vec![
        name_cell(object),
        text(object, "/spec/schedule").into(),
        super::or_else(text(object, "/spec/timeZone"), "<none>").into(),
        suspend.into(),
        json!(list(object, "/status/active").len()),
        last.into(),
        age_cell(object, now),
        names,
        images,
        selector_words(object.pointer("/spec/jobTemplate/spec/selector")).into(),
    ])
}
