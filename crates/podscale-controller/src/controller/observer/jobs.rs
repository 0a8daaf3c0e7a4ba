//! What is reported of every poll of an object that creates Jobs.

use crate::controller::outcome::OutcomeKind;
use crate::dialect::Key;
use podscale_api::keda::scaled_job::{ScaledJob, ScaledJobStatus};
use podscale_api::translate::scaled_job::rules;
use podscale_api::translate::scaled_job::status::{Found, Polled};
use podscale_core::jobs::{JobCounts, JobPlan, JobRules, JobTrigger, lines, reason};
use podscale_core::{Event, Time, Withheld};

/// What became of a status.
#[derive(Clone, Copy, Debug)]
pub enum StatusStored<'a> {
    /// It was stored.
    Written,
    /// It was stored before, or was not to be stored.
    Left,
    /// It could not be stored, and why.
    Failed(&'a str),
}

/// One poll, after its writes have ended.
#[derive(Clone, Copy, Debug)]
pub struct JobsDecided<'a> {
    /// Which object it is.
    pub key: &'a Key,
    /// The object that was decided on.
    pub object: &'a ScaledJob,
    /// When.
    pub now: Time,
    /// What was found and decided, and how many Jobs were created.
    pub found: Found<'a>,
    /// Why nothing was written, where that was on purpose.
    pub withheld: Option<Withheld>,
    /// The status that follows.
    pub status: &'a ScaledJobStatus,
    /// What became of it.
    pub stored: StatusStored<'a>,
    /// The events that were sent.
    pub events: &'a [Event],
    /// Which other controller is in the way, if nothing is written for that.
    pub conflict: Option<&'a str>,
}

impl<'a> JobsDecided<'a> {
    /// What was decided, if triggers were asked.
    #[must_use]
    pub fn polled(&self) -> Option<Polled<'a>> {
        match self.found {
            Found::Polled(polled) => Some(polled),
            Found::Paused | Found::Refused(_) => None,
        }
    }

    /// What was decided.
    #[must_use]
    pub fn plan(&self) -> JobPlan {
        self.polled().map(|polled| polled.plan).unwrap_or_default()
    }

    /// How many Jobs were to be created.
    #[must_use]
    pub fn wanted(&self) -> i32 {
        self.plan().create
    }

    /// How many Jobs were created.
    #[must_use]
    pub fn created(&self) -> i32 {
        let created = self.polled().map_or(0, |polled| polled.created);
        i32::try_from(created).unwrap_or(i32::MAX)
    }

    /// The Jobs that there were, if they were counted.
    #[must_use]
    pub fn counts(&self) -> Option<JobCounts> {
        self.polled().map(|polled| polled.snapshot.counts)
    }

    /// The metrics of its triggers.
    #[must_use]
    pub fn triggers(&self) -> &'a [JobTrigger] {
        self.polled().map_or(&[], |polled| &polled.snapshot.triggers)
    }

    /// How many Jobs a load asks for.
    #[must_use]
    pub fn rules(&self) -> JobRules {
        rules(&self.object.spec)
    }

    /// The kind of its outcome.
    #[must_use]
    pub fn outcome_kind(&self) -> OutcomeKind {
        let polled = match self.found {
            Found::Paused => return OutcomeKind::Paused,
            Found::Refused(_) => return OutcomeKind::Failed,
            Found::Polled(polled) => polled,
        };
        let is_unread = |trigger: &JobTrigger| trigger.answer.is_err();
        match (polled.created, self.withheld) {
            (1.., _) => OutcomeKind::Up,
            (0, Some(_)) if polled.plan.create > 0 => OutcomeKind::Withheld,
            _ if polled.refusal.is_some() => OutcomeKind::Failed,
            _ if self.triggers().iter().any(is_unread) => OutcomeKind::Failed,
            _ if polled.snapshot.is_limited() => OutcomeKind::Limited,
            _ => OutcomeKind::Steady,
        }
    }

    /// Why, in one line.
    #[must_use]
    pub fn reason(&self) -> String {
        let polled = match self.found {
            Found::Paused => return "it is paused".to_owned(),
            Found::Refused(why) => return why.to_owned(),
            Found::Polled(polled) => polled,
        };
        let unread = self.triggers().iter().find_map(|trigger| trigger.answer.as_ref().err());
        match (self.outcome_kind(), polled.refusal, unread) {
            (OutcomeKind::Failed, Some(why), _) => why.to_owned(),
            (OutcomeKind::Failed, _, Some(why)) => why.to_string(),
            _ => reason(polled.snapshot, polled.plan),
        }
    }

    /// Why, step by step.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let polled = match self.found {
            Found::Paused => return vec!["it is paused, so nothing is done".to_owned()],
            Found::Refused(why) => return vec![format!("it cannot be used: {why}")],
            Found::Polled(polled) => polled,
        };
        let mut lines = lines(polled.snapshot, polled.plan);
        match (polled.refusal, self.withheld) {
            (Some(why), _) => lines.push(format!("but {} were: {why}", polled.created)),
            (None, Some(Withheld::DryRun)) if polled.plan.create > 0 => {
                lines.push("but this is a dry run".to_owned());
            }
            (None, Some(_)) if polled.plan.create > 0 => {
                lines.push("but another controller creates Jobs for it as well".to_owned());
            }
            _ => {}
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::jobs::{JobSnapshot, Load, decide};
    use podscale_core::model::Milli;

    /// What is said of a poll with this answer, so many unfinished Jobs, and so many created.
    fn told(
        answer: Result<i64, &str>,
        running: i32,
        created: usize,
        refusal: Option<&str>,
        withheld: Option<Withheld>,
    ) -> String {
        let mut object = ScaledJob::default();
        object.spec.max_replica_count = Some(5);
        let load =
            |amount| Load { amount: Milli(amount), per_job: Milli(1000), active: amount > 0 };
        let answer = answer.map(load).map_err(Into::into);
        let triggers = vec![JobTrigger { metric: "s0-queue".into(), answer }];
        let counts = JobCounts { running, pending: 0 };
        let snapshot = JobSnapshot { rules: rules(&object.spec), counts, triggers };
        let plan = decide(&snapshot);
        let found = Found::Polled(Polled { snapshot: &snapshot, plan, created, refusal });
        said(&object, found, withheld)
    }

    fn said(object: &ScaledJob, found: Found<'_>, withheld: Option<Withheld>) -> String {
        let kind = &crate::dialect::scaled_job::SCALED_JOB;
        let key = Key { namespace: "shop".into(), name: "mail".into(), kind };
        let (status, events) = (ScaledJobStatus::default(), []);
        let stored = StatusStored::Left;
        let decided = JobsDecided {
            key: &key,
            object,
            now: Time(0),
            found,
            withheld,
            status: &status,
            stored,
            events: &events,
            conflict: None,
        };
        let last = decided.lines().pop().unwrap_or_default();
        format!("{}: {}; {last}", decided.outcome_kind().word(), decided.reason())
    }

    #[test]
    fn each_outcome_has_its_kind_its_reason_and_its_end() {
        let many = "1 of 1 triggers active with 9 to do, for 5 of at most 5 Jobs";
        for (found, expected) in [
            (
                told(Ok(3000), 1, 2, None, None),
                "up: 1 of 1 triggers active with 3 to do, for 3 of at most 5 Jobs; 1 unfinished, 0 of \
                 them pending; strategy default: 2 are created; so 2 are created"
                    .to_owned(),
            ),
            (
                told(Ok(9000), 5, 0, None, None),
                format!(
                    "limited: {many}; 5 unfinished, 0 of them pending; strategy default: none is \
                     created; so none is created"
                ),
            ),
            (
                told(Ok(9000), 0, 0, None, Some(Withheld::DryRun)),
                format!(
                    "withheld: {many}; 0 unfinished, 0 of them pending; strategy default: 5 are \
                     created; but this is a dry run"
                ),
            ),
            (
                told(Ok(9000), 0, 0, Some("no quota"), None),
                "failed: no quota; but 0 were: no quota".to_owned(),
            ),
            (
                told(Err("no route"), 0, 0, None, None),
                "failed: no route; so none is created".to_owned(),
            ),
            (
                told(Ok(0), 0, 0, None, None),
                "steady: no trigger is active; 0 unfinished, 0 of them pending: none is created; so \
                 none is created"
                    .to_owned(),
            ),
            (
                said(&ScaledJob::default(), Found::Paused, None),
                "paused: it is paused; it is paused, so nothing is done".to_owned(),
            ),
            (
                said(&ScaledJob::default(), Found::Refused("no triggers"), None),
                "failed: no triggers; it cannot be used: no triggers".to_owned(),
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
