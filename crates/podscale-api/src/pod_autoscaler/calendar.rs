//! The schedules of a spec, as the core's calendar.

use super::spec::Schedule;
use crate::schedule::{self, ScheduleEnd, ScheduleError, ScheduleSpec};
use crate::time::GoDuration;
use podscale_core::Span;
use podscale_core::model::Schedules;

/// What is wrong with which field of which schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The schedule's place in the spec.
    pub place: usize,
    /// The field.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The calendar of these schedules; `None` if there are none.
///
/// # Errors
/// An expression, a time zone, a duration or a bound of one cannot be used.
pub fn schedules(specs: &[Schedule]) -> Result<Option<Schedules>, Refusal> {
    if specs.is_empty() {
        return Ok(None);
    }
    let read: Result<Vec<ScheduleSpec<'_>>, Refusal> =
        specs.iter().enumerate().map(|(place, spec)| read(place, spec)).collect();
    schedule::schedules(&read?).map(Some).map_err(|(place, error)| refusal(place, &error))
}

/// Everything that is wrong with one schedule, but for its bounds.
#[must_use]
pub fn refusals(spec: &Schedule) -> Vec<Refusal> {
    let Schedule { start, end, duration, ramp, time_zone, .. } = spec.clone();
    let sound = || Schedule {
        start: "* * * * *".to_owned(),
        duration: Some("1h".to_owned()),
        min_replicas: Some(1),
        ..Schedule::default()
    };
    // Each by itself, since reading ends at the first that is wrong.
    let parts = [
        Schedule { start, ..sound() },
        Schedule { end, duration, ..sound() },
        Schedule { ramp, ..sound() },
        Schedule { time_zone, ..sound() },
    ];
    parts.iter().filter_map(|part| schedules(std::slice::from_ref(part)).err()).collect()
}

fn read(place: usize, spec: &Schedule) -> Result<ScheduleSpec<'_>, Refusal> {
    let span = |field, text: &str| match GoDuration::parse(text) {
        Ok(duration) => Ok(duration.to_span()),
        Err(error) => Err(Refusal { place, field, problem: error.to_string() }),
    };
    let either =
        || Refusal { place, field: "end", problem: "must set either end or duration".to_owned() };
    Ok(ScheduleSpec {
        name: &spec.name,
        start: &spec.start,
        end: match (&spec.end, &spec.duration) {
            (Some(end), None) => ScheduleEnd::Cron(end),
            (None, Some(duration)) => ScheduleEnd::After(span("duration", duration)?),
            _ => return Err(either()),
        },
        time_zone: spec.time_zone.as_deref(),
        min_replicas: spec.min_replicas,
        max_replicas: spec.max_replicas,
        ramp: spec.ramp.as_deref().map_or(Ok(Span(0)), |ramp| span("ramp", ramp))?,
    })
}

/// An error begins with the name of its field.
fn refusal(place: usize, error: &ScheduleError) -> Refusal {
    let field = match error {
        ScheduleError::Start(_) => "start",
        ScheduleError::End(_) => "end",
        ScheduleError::Duration => "duration",
        ScheduleError::Ramp => "ramp",
        ScheduleError::TimeZone(_) => "timeZone",
        ScheduleError::NoBounds => "minReplicas",
        ScheduleError::Bounds => "maxReplicas",
        ScheduleError::TooMany => "",
    };
    let text = error.to_string();
    let problem = text.strip_prefix(field).and_then(|rest| rest.strip_prefix(": "));
    Refusal { place, field, problem: problem.unwrap_or(&text).to_owned() }
}
