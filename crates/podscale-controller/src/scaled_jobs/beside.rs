//! Whether another controller, KEDA's own for instance, works on an object as well: then Jobs would be created twice.

use crate::controller::ownership::{Management, Ownership, is_foreign};
use podscale_api::keda::scaled_job::ScaledJob;
use podscale_api::meta::ObjectMeta;
use podscale_api::translate::scaled_job::made::MANAGED_BY;
use podscale_api::translate::scaled_job::status::says_conflict;
use podscale_core::{Span, Time};

/// What KEDA's operator puts into that label of the Jobs that it creates.
pub(super) const KEDA: &str = "keda-operator";

/// What is known of others who work on an object.
#[derive(Default)]
pub(super) struct Beside {
    ownership: Option<Ownership>,
    /// The object as it was polled before.
    seen: ObjectMeta,
}

impl Beside {
    /// What is to be done with an object, given whether another controller has created Jobs for it since it was last
    /// polled. What that one did before this replica polled the object for the first time is no conflict: it may have
    /// been stopped since.
    pub(super) fn look(
        &mut self,
        object: &ScaledJob,
        has_foreign_jobs: bool,
        now: Time,
    ) -> Management {
        let metadata = &object.metadata;
        let period = Span::seconds(object.spec.polling_interval_seconds().into());
        // Jobs get the labels of their object, also this one.
        let says_nothing = metadata.labels.get(MANAGED_BY) == Some(KEDA);
        let ownership = match &mut self.ownership {
            None => self.ownership.insert(Ownership::stored(says_conflict(object))),
            Some(ownership) => {
                if is_foreign(&self.seen, metadata) {
                    ownership.foreign_write(now, period);
                }
                if has_foreign_jobs && !says_nothing {
                    ownership.begin_conflict(now);
                }
                ownership
            }
        };
        ownership.end_if_quiet(now, period);
        let writers = metadata.writers.clone();
        self.seen = ObjectMeta { writers, ..ObjectMeta::default() };
        ownership.management()
    }

    /// Takes in that the status was written here.
    pub(super) fn wrote(&mut self) {
        if let Some(ownership) = &mut self.ownership {
            ownership.wrote();
        }
    }

    /// Takes in that the conflict is in the status.
    pub(super) fn reported(&mut self) {
        if let Some(ownership) = &mut self.ownership {
            ownership.reported();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_api::keda::scaled_job::Lean;
    use serde_json::json;

    /// An object whose status these have written, each in a second of its own.
    fn object(writers: &[(&str, u32)], label: &str) -> ScaledJob {
        let entry = |(manager, second): &(&str, u32)| {
            json!({"manager": manager, "subresource": "status",
                "time": format!("2026-01-01T00:00:{second:02}Z"), "fieldsV1": {"f:status": {}}})
        };
        let fields: Vec<_> = writers.iter().map(entry).collect();
        let object = json!({"metadata": {"name": "mail", "labels": {MANAGED_BY: label},
            "managedFields": fields}, "spec": {"pollingInterval": 5}});
        serde_json::from_value::<Lean>(object).expect("a ScaledJob").0
    }

    fn at(seconds: i64) -> Time {
        Time(0).after(Span::seconds(seconds))
    }

    #[test]
    fn jobs_of_another_controller_are_a_conflict_from_the_second_poll_on() {
        let (mut beside, mail) = (Beside::default(), object(&[], ""));
        assert_eq!(beside.look(&mail, true, at(0)), Management::Active, "it may have ended");
        assert_eq!(beside.look(&mail, false, at(5)), Management::Active);
        assert_eq!(beside.look(&mail, true, at(10)), Management::SteppingBack);
        beside.reported();
        assert_eq!(beside.look(&mail, false, at(15)), Management::Ceded);
        assert_eq!(beside.look(&mail, false, at(110)), Management::Ceded);
        assert_eq!(beside.look(&mail, false, at(111)), Management::Active, "it has ended");
        let (mut beside, labelled) = (Beside::default(), object(&[], KEDA));
        beside.look(&labelled, false, at(0));
        assert_eq!(beside.look(&labelled, true, at(5)), Management::Active, "they may be ours");
    }

    #[test]
    fn a_status_that_is_overwritten_again_and_again_is_a_conflict() {
        let mut beside = Beside::default();
        let mut states = Vec::new();
        for poll in 0..4 {
            let writers = [("podscale", 10 * poll), ("keda", 10 * poll + 5)];
            states.push(beside.look(&object(&writers, ""), false, at(i64::from(poll) * 5)));
            beside.wrote();
        }
        use Management::{Active, SteppingBack};
        assert_eq!(states, [Active, Active, Active, SteppingBack]);
    }
}
