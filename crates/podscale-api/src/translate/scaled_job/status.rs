//! The status of a ScaledJob that follows from a poll, and the events, with KEDA's conditions, reasons and words.

use crate::keda::scaled_job::{ScaledJob, ScaledJobStatus};
use crate::keda::{Condition, TriggerActivity, trigger};
use crate::time::Timestamp;
use crate::translate::polling::stopped;
use podscale_core::{Event, Time};
use std::sync::Arc;

const READY: &str = "Ready";
const ACTIVE: &str = "Active";
const FALLBACK: &str = "Fallback";
const PAUSED: &str = "Paused";

const READY_REASON: &str = "ScaledJobReady";
const CHECK_FAILED: &str = "ScaledJobCheckFailed";
const ACTIVE_MESSAGE: &str = "Scaling is performed because triggers are active";
const INACTIVE_MESSAGE: &str = "Scaling is not performed because triggers are not active";

/// What one poll led to.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// A person paused it.
    Paused,
    /// It cannot be used, and why.
    Refused(&'a str),
    /// Its triggers were asked.
    Polled(Polled<'a>),
}

/// A metric of a trigger: whether it is active, or why that is not known.
pub type Activity = (Arc<str>, Result<bool, Arc<str>>);

/// What became of a poll of triggers.
#[derive(Clone, Copy, Debug)]
pub struct Polled<'a> {
    /// Whether there is something to do.
    pub active: bool,
    /// The metrics of its triggers.
    pub triggers: &'a [Activity],
    /// How many Jobs were created.
    pub created: usize,
    /// Why others were not.
    pub refusals: &'a [String],
}

impl Polled<'_> {
    fn has_failed(&self) -> bool {
        self.triggers.iter().any(|(_, answer)| answer.is_err())
    }
}

/// The status that follows.
#[must_use]
pub fn to_wire(object: &ScaledJob, found: Found<'_>, now: Time) -> ScaledJobStatus {
    let mut status = object.status.clone().unwrap_or_default();
    status.triggers_types = Some(trigger::types(&object.spec.triggers));
    status.authentications_types = Some(trigger::authentications(&object.spec.triggers));
    for kind in [READY, ACTIVE, FALLBACK, PAUSED] {
        if get(&status, kind).is_none() {
            let first = if kind == PAUSED { "False" } else { "Unknown" };
            let (r#type, word) = (kind.to_owned(), first.to_owned());
            status.conditions.push(Condition { r#type, status: word, ..Condition::default() });
        }
    }
    match found {
        Found::Paused => {
            let message = "ScaledJob is paused, skipping reconcile loop";
            set(&mut status, READY, "True", READY_REASON, message);
            set(&mut status, PAUSED, "True", "ScaledJobPaused", "ScaledJob is paused");
            return status;
        }
        Found::Refused(why) => {
            set(&mut status, READY, "False", CHECK_FAILED, why);
            set(&mut status, ACTIVE, "Unknown", "UnknownState", "ScaledJob check failed");
        }
        Found::Polled(polled) => note_poll(&mut status, polled, now),
    }
    if holds(&status, PAUSED) {
        set(&mut status, PAUSED, "False", "ScaledJobUnpaused", "ScaledJob is unpaused");
    }
    status
}

fn note_poll(status: &mut ScaledJobStatus, polled: Polled<'_>, now: Time) {
    let (word, reason, message) = match (polled.has_failed(), polled.active) {
        (true, true) => (
            "Unknown",
            "PartialTriggerError",
            "Some triggers defined in ScaledJob are not working correctly",
        ),
        (true, false) => {
            ("False", "TriggerError", "Triggers defined in ScaledJob are not working correctly")
        }
        (false, _) => {
            ("True", READY_REASON, "ScaledJob is defined correctly and is ready for scaling")
        }
    };
    set(status, READY, word, reason, message);
    if !polled.refusals.is_empty() {
        set(status, READY, "False", "KEDAJobCreateFailed", &polled.refusals.join("\n"));
    }
    if polled.active {
        set(status, ACTIVE, "True", "ScalerActive", ACTIVE_MESSAGE);
        status.last_active_time = Some(Timestamp(now.whole_seconds()));
    } else {
        set(status, ACTIVE, "False", "ScalerNotActive", INACTIVE_MESSAGE);
    }
    status.triggers_activity.clear();
    for (metric, answer) in polled.triggers {
        let is_active = matches!(answer, Ok(true));
        status.triggers_activity.insert(metric.to_string(), TriggerActivity { is_active });
    }
}

/// The events that follow, given the new status.
#[must_use]
pub fn events(object: &ScaledJob, found: Found<'_>, new: &ScaledJobStatus) -> Vec<Event> {
    let none = ScaledJobStatus::default();
    let old = object.status.as_ref().unwrap_or(&none);
    let turned = |kind: &str| {
        let (was, is) = (holds(old, kind), holds(new, kind));
        (was != is).then_some(is)
    };
    let mut events = Vec::new();
    match turned(PAUSED) {
        Some(true) => {
            events.push(Event::normal("ScaledJobPaused", "ScaledJob is paused"));
            events.extend(is_polled(old).then(stopped));
        }
        Some(false) => events.push(Event::normal("ScaledJobUnpaused", "ScaledJob is unpaused")),
        None => {}
    }
    let (was, is) = (get(old, READY), get(new, READY));
    let was_ready = was.is_some_and(|was| was.reason == READY_REASON);
    match is {
        Some(is) if is.reason == CHECK_FAILED && was != Some(is) => {
            events.push(Event::warning(CHECK_FAILED, is.message.as_str()));
        }
        Some(is) if is.reason == READY_REASON && !was_ready => {
            events.push(Event::normal(READY_REASON, "ScaledJob is ready for scaling"));
        }
        _ => {}
    }
    let Found::Polled(polled) = found else { return events };
    match turned(ACTIVE) {
        Some(true) => events.push(Event::normal("ScaledJobActive", ACTIVE_MESSAGE)),
        Some(false) => events.push(Event::normal("ScaledJobInactive", INACTIVE_MESSAGE)),
        None => {}
    }
    let failures = polled.triggers.iter().filter_map(|(_, answer)| answer.as_ref().err());
    events.extend(failures.map(|error| Event::warning("KEDAScalerFailed", error.to_string())));
    if polled.created > 0 {
        let message = format!("Created {} jobs", polled.created);
        events.push(Event::normal("KEDAJobsCreated", message));
    }
    let name = &object.metadata.name;
    events.extend(polled.refusals.iter().map(|error| {
        Event::warning("KEDAJobCreateFailed", format!("Failed to create job {name}-: {error}"))
    }));
    events
}

/// Whether triggers were polled, however they fared.
fn is_polled(status: &ScaledJobStatus) -> bool {
    get(status, READY).is_some_and(|ready| !ready.reason.is_empty() && ready.reason != CHECK_FAILED)
}

fn get<'a>(status: &'a ScaledJobStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.r#type == kind)
}

fn holds(status: &ScaledJobStatus, kind: &str) -> bool {
    get(status, kind).is_some_and(|condition| condition.status == "True")
}

fn set(status: &mut ScaledJobStatus, kind: &str, word: &str, reason: &str, message: &str) {
    let known = status.conditions.iter_mut().find(|condition| condition.r#type == kind);
    if let Some(condition) = known {
        condition.status = word.to_owned();
        condition.reason = reason.to_owned();
        condition.message = message.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(words: &str) -> Vec<Activity> {
        let answer = |(place, word): (usize, &str)| {
            let answer = match word {
                "on" => Ok(true),
                "off" => Ok(false),
                error => Err(error.into()),
            };
            (format!("s{place}").into(), answer)
        };
        words.split_whitespace().enumerate().map(answer).collect()
    }

    /// Conditions that are known and events, in words.
    fn told(object: &mut ScaledJob, found: Found<'_>) -> (String, String) {
        let status = to_wire(object, found, Time(5_500_000));
        let events = events(object, found, &status);
        let known = status.conditions.iter().filter(|condition| !condition.reason.is_empty());
        let conditions: Vec<String> =
            known.map(|it| format!("{}={}", it.status, it.reason)).collect();
        let reasons: Vec<&str> = events.iter().map(|event| &*event.reason).collect();
        let told = (conditions.join(" "), reasons.join(" "));
        object.status = Some(status);
        told
    }

    #[test]
    fn a_life_in_conditions_and_events() {
        let mut object = ScaledJob::default();
        let refused = ["no quota".to_owned()];
        let polled = |active, words: &str, created, refusals: &[String]| {
            let triggers = answers(words).leak();
            let refusals = refusals.to_vec().leak();
            Found::Polled(Polled { active, triggers, created, refusals })
        };
        let steps = [
            (
                Found::Refused("no triggers"),
                "False=ScaledJobCheckFailed Unknown=UnknownState",
                "ScaledJobCheckFailed",
            ),
            (Found::Refused("no triggers"), "False=ScaledJobCheckFailed Unknown=UnknownState", ""),
            (
                polled(false, "off", 0, &[]),
                "True=ScaledJobReady False=ScalerNotActive",
                "ScaledJobReady",
            ),
            (
                polled(true, "on", 3, &[]),
                "True=ScaledJobReady True=ScalerActive",
                "ScaledJobActive KEDAJobsCreated",
            ),
            (
                polled(true, "on broken", 0, &[]),
                "Unknown=PartialTriggerError True=ScalerActive",
                "KEDAScalerFailed",
            ),
            (
                polled(false, "broken", 0, &[]),
                "False=TriggerError False=ScalerNotActive",
                "ScaledJobInactive KEDAScalerFailed",
            ),
            (
                polled(true, "on", 1, &refused),
                "False=KEDAJobCreateFailed True=ScalerActive",
                "ScaledJobActive KEDAJobsCreated KEDAJobCreateFailed",
            ),
            (
                Found::Paused,
                "True=ScaledJobReady True=ScalerActive True=ScaledJobPaused",
                "ScaledJobPaused KEDAScalersStopped ScaledJobReady",
            ),
            (
                polled(true, "on", 0, &[]),
                "True=ScaledJobReady True=ScalerActive False=ScaledJobUnpaused",
                "ScaledJobUnpaused",
            ),
        ];
        for (place, (found, conditions, events)) in steps.into_iter().enumerate() {
            let expected = (conditions.to_owned(), events.to_owned());
            assert_eq!(told(&mut object, found), expected, "step {place}");
        }
        let status = object.status.expect("a status");
        assert_eq!(status.last_active_time, Some(Timestamp(Time(5_000_000))));
        assert_eq!(status.triggers_activity.len(), 1);
        assert_eq!(status.conditions.len(), 4);
    }
}
