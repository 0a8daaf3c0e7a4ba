//! The status of a ScaledJob that follows from a poll, and the events, with KEDA's conditions, reasons and words.

use crate::keda::scaled_job::{ScaledJob, ScaledJobStatus};
use crate::keda::{Condition, TriggerActivity, trigger};
use crate::time::Timestamp;
use crate::translate::polling::stopped;
use crate::translate::{CONFLICT_CONDITION, CONFLICT_REASON};
use podscale_core::jobs::{JobPlan, JobSnapshot, JobTrigger};
use podscale_core::{Event, Time};

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

/// What became of a poll of triggers.
#[derive(Clone, Copy, Debug)]
pub struct Polled<'a> {
    /// What was known.
    pub snapshot: &'a JobSnapshot,
    /// What was decided.
    pub plan: JobPlan,
    /// How many Jobs were created.
    pub created: usize,
    /// Why others were not.
    pub refusal: Option<&'a str>,
}

impl Polled<'_> {
    fn has_failed(&self) -> bool {
        self.snapshot.triggers.iter().any(|trigger| trigger.answer.is_err())
    }
}

/// The status that follows.
#[must_use]
pub fn to_wire(object: &ScaledJob, found: Found<'_>, now: Time) -> ScaledJobStatus {
    let mut status = without_conflict(object);
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

/// The status as it is stored, and that another controller creates Jobs for the object as well.
#[must_use]
pub fn with_conflict(object: &ScaledJob, message: &str) -> ScaledJobStatus {
    let mut status = without_conflict(object);
    status.conditions.push(Condition {
        r#type: CONFLICT_CONDITION.to_owned(),
        status: "True".to_owned(),
        reason: CONFLICT_REASON.to_owned(),
        message: message.to_owned(),
    });
    status
}

/// Whether the stored status says that there is a conflict.
#[must_use]
pub fn says_conflict(object: &ScaledJob) -> bool {
    object.status.as_ref().is_some_and(|status| get(status, CONFLICT_CONDITION).is_some())
}

fn without_conflict(object: &ScaledJob) -> ScaledJobStatus {
    let mut status = object.status.clone().unwrap_or_default();
    status.conditions.retain(|condition| condition.r#type != CONFLICT_CONDITION);
    status
}

fn note_poll(status: &mut ScaledJobStatus, polled: Polled<'_>, now: Time) {
    let (word, reason, message) = match (polled.has_failed(), polled.plan.active) {
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
    if let Some(refusal) = polled.refusal {
        set(status, READY, "False", "KEDAJobCreateFailed", refusal);
    }
    if polled.plan.active {
        set(status, ACTIVE, "True", "ScalerActive", ACTIVE_MESSAGE);
        status.last_active_time = Some(Timestamp(now.whole_seconds()));
    } else {
        set(status, ACTIVE, "False", "ScalerNotActive", INACTIVE_MESSAGE);
    }
    status.triggers_activity.clear();
    for JobTrigger { metric, answer } in &polled.snapshot.triggers {
        let is_active = answer.as_ref().is_ok_and(|load| load.active);
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
    let failures =
        polled.snapshot.triggers.iter().filter_map(|trigger| trigger.answer.as_ref().err());
    events.extend(failures.map(|error| Event::warning("KEDAScalerFailed", error.to_string())));
    if polled.created > 0 {
        let message = format!("Created {} jobs", polled.created);
        events.push(Event::normal("KEDAJobsCreated", message));
    }
    let name = &object.metadata.name;
    events.extend(polled.refusal.map(|error| {
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
    use crate::keda::scaled_job::ScaledJobSpec;
    use crate::translate::scaled_job::rules;
    use podscale_core::jobs::{JobCounts, Load};
    use podscale_core::model::Milli;

    fn answers(words: &str) -> Vec<JobTrigger> {
        let load = |active| Load { amount: Milli(1000), per_job: Milli(1000), active };
        let answer = |(place, word): (usize, &str)| {
            let answer = match word {
                "on" => Ok(load(true)),
                "off" => Ok(load(false)),
                error => Err(error.into()),
            };
            JobTrigger { metric: format!("s{place}").into(), answer }
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
    fn a_conflict_is_said_until_it_ends() {
        let mut object = ScaledJob::default();
        assert!(!says_conflict(&object));
        object.status = Some(with_conflict(&object, "\"keda\" creates Jobs as well"));
        object.status = Some(with_conflict(&object, "\"keda\" creates Jobs as well"));
        assert!(says_conflict(&object));
        let conditions = &object.status.as_ref().expect("a status").conditions;
        assert_eq!((conditions.len(), &*conditions[0].reason), (1, "AnotherController"));
        object.status = Some(to_wire(&object, Found::Paused, Time(0)));
        assert!(!says_conflict(&object));
    }

    #[test]
    fn a_life_in_conditions_and_events() {
        let mut object = ScaledJob::default();
        let polled = |active, words: &str, created, refusal: Option<&'static str>| {
            let (rules, counts) = (rules(&ScaledJobSpec::default()), JobCounts::default());
            let snapshot = JobSnapshot { rules, counts, triggers: answers(words) };
            let (snapshot, plan) = (Box::leak(Box::new(snapshot)), JobPlan { active, create: 0 });
            Found::Polled(Polled { snapshot, plan, created, refusal })
        };
        let steps = [
            (
                Found::Refused("no triggers"),
                "False=ScaledJobCheckFailed Unknown=UnknownState",
                "ScaledJobCheckFailed",
            ),
            (Found::Refused("no triggers"), "False=ScaledJobCheckFailed Unknown=UnknownState", ""),
            (
                polled(false, "off", 0, None),
                "True=ScaledJobReady False=ScalerNotActive",
                "ScaledJobReady",
            ),
            (
                polled(true, "on", 3, None),
                "True=ScaledJobReady True=ScalerActive",
                "ScaledJobActive KEDAJobsCreated",
            ),
            (
                polled(true, "on broken", 0, None),
                "Unknown=PartialTriggerError True=ScalerActive",
                "KEDAScalerFailed",
            ),
            (
                polled(false, "broken", 0, None),
                "False=TriggerError False=ScalerNotActive",
                "ScaledJobInactive KEDAScalerFailed",
            ),
            (
                polled(true, "on", 1, Some("no quota")),
                "False=KEDAJobCreateFailed True=ScalerActive",
                "ScaledJobActive KEDAJobsCreated KEDAJobCreateFailed",
            ),
            (
                Found::Paused,
                "True=ScaledJobReady True=ScalerActive True=ScaledJobPaused",
                "ScaledJobPaused KEDAScalersStopped ScaledJobReady",
            ),
            (
                polled(true, "on", 0, None),
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
