//! `cron`: so many replicas between two times that come again and again.

mod expression;

use super::Draft;
use crate::context::{Clock, Context};
use crate::metadata::{Fields, METADATA};
use crate::scaler::{About, Scaler, Settings};
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use expression::Expression;
use futures::future::BoxFuture;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::sync::Arc;
use tokio::time::Instant;

/// When the replicas are wanted, and how many.
#[derive(Clone, Debug)]
struct Window {
    start: Expression,
    end: Expression,
    zone: Box<str>,
    replicas: f64,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let start = fields.field(&["start"], METADATA).required().text();
    let end = fields.field(&["end"], METADATA).required().text();
    let zone = fields.field(&["timezone"], METADATA).required().text();
    let replicas = fields.field(&["desiredReplicas"], METADATA).required().integer_or(0);
    let name = format!("cron-{zone}-{}-{}", in_a_name(&start), in_a_name(&end));
    let window = window(&start, &end, zone, replicas).unwrap_or_else(|(problem, hint)| {
        fields.refuse(problem, hint);
        Window {
            start: Expression::never(),
            end: Expression::never(),
            zone: "".into(),
            replicas: 0.0,
        }
    });
    Draft {
        name,
        target: 1.0,
        target_field: None,
        activation: 0.0,
        server: None,
        settings: Box::new(window),
    }
}

/// The window, or the first thing that is wrong with it.
fn window(
    start: &str,
    end: &str,
    zone: String,
    replicas: i64,
) -> Result<Window, (String, &'static str)> {
    const FIELDS: &str = "write minute, hour, day of the month, month and day of the week";
    let read = |text: &str, which: &str| {
        let wrong = |problem| (format!("error parsing {which} schedule: {problem}"), FIELDS);
        Expression::parse(text).map_err(wrong)
    };
    let parsed = (read(start, "start")?, read(end, "end")?);
    if start == end {
        let problem = "start and end can not have exactly same time input".to_owned();
        return Err((problem, "let it end at another time than it starts at"));
    }
    if replicas == 0 {
        return Err((
            "no desiredReplicas specified".to_owned(),
            "set how many replicas there should be",
        ));
    }
    let (start, end) = parsed;
    Ok(Window { start, end, zone: zone.into(), replicas: replicas as f64 })
}

/// How KEDA writes an expression in the name of a metric.
fn in_a_name(expression: &str) -> String {
    let expression = expression.replace(' ', "").replace('*', "x");
    expression.replace('/', "Sl").replace('?', "Qm").replace(',', "Cm")
}

impl Settings for Window {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        // A zone takes more than a trigger, and few are used.
        let key = ServerKey::new("time zone", &self.zone, &[]);
        let zone = context.connections.share(&key, || Ok::<_, TriggerError>(load(&self.zone)))?;
        Ok(Box::new(Cron { about, window: *self, zone, clock: context.clock.clone() }))
    }
}

/// A time zone of the database that is compiled in.
fn load(name: &str) -> Option<TimeZone> {
    // KEDA reads it as Go does: the zone of the machine, which is UTC in a container.
    let name = if name == "Local" { "UTC" } else { name };
    podscale_api::schedule::time_zone(name).ok()
}

/// Looks at the clock.
struct Cron {
    about: About,
    window: Window,
    /// None if nobody knows it.
    zone: Arc<Option<TimeZone>>,
    clock: Clock,
}

impl Scaler for Cron {
    fn poll(&self, _: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        let value = match &*self.zone {
            Some(zone) => {
                let active = self.window.contains(zone, (self.clock)());
                let value = if active { self.window.replicas } else { 0.0 };
                Ok(self.about.value_and_activity(value, active))
            }
            None => {
                let name = &self.window.zone;
                Err(TriggerError::Settings(
                    format!("unable to load timezone: unknown time zone {name}").into(),
                ))
            }
        };
        Box::pin(std::future::ready(value))
    }
}

impl Window {
    /// Whether a moment is in it: its end comes before it starts again, or at the same moment.
    fn contains(&self, zone: &TimeZone, now: Timestamp) -> bool {
        match (self.start.next(zone, now), self.end.next(zone, now)) {
            (Some(start), Some(end)) => end <= start,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
