//! Who manages an object. Two controllers that manage the same one overwrite each other's status and
//! pull its target to and fro; Podscale notices that and steps back.

use crate::dialect::{CONFLICT_CONDITION, CONFLICT_REASON, Managed};
use podscale_api::meta::{FieldsWriter, ObjectMeta};
use podscale_core::status::Condition;
use podscale_core::{Span, Status, Time};

/// What API servers call our own writes.
pub(crate) const OWN_MANAGER: &str = "podscale";
/// How many exchanges of writes make a conflict.
const EXCHANGES: u32 = 3;
/// In how many sync periods they must happen.
const WINDOW_PERIODS: i64 = 8;
/// For how many sync periods nobody else may write before it is tried again.
const QUIET_PERIODS: i64 = 20;

/// What to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Management {
    /// Manage it.
    Active,
    /// Report that another controller does, and write nothing after that.
    SteppingBack,
    /// Write nothing.
    Ceded,
}

/// The exchanges of writes over one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// It is ours.
    Ours {
        /// Whether the last write was ours.
        ours_last: bool,
        /// How many of our writes were overwritten since `since`.
        exchanges: u32,
        since: Option<Time>,
    },
    /// Another controller manages it.
    Conflict {
        /// When that one last wrote; counted from the next reconcile on if it is not known.
        foreign: Option<Time>,
        /// Whether it was reported.
        reported: bool,
    },
}

impl Default for Ownership {
    fn default() -> Ownership {
        Ownership::Ours { ours_last: false, exchanges: 0, since: None }
    }
}

impl Ownership {
    /// Of an object that is new here. If its status says that there was a conflict before this
    /// controller started, the quiet time begins with the first reconcile.
    pub(super) fn of(status: &Status) -> Ownership {
        let of_controllers = |c: &Condition| c.note.reason() == CONFLICT_REASON;
        Ownership::stored(conflicts(status).any(of_controllers))
    }

    /// Of an object that is new here, given whether its status says that there was a conflict.
    pub(crate) fn stored(was_conflict: bool) -> Ownership {
        if was_conflict {
            Ownership::Conflict { foreign: None, reported: true }
        } else {
            Ownership::default()
        }
    }

    /// Takes in that we wrote.
    pub(crate) fn wrote(&mut self) {
        if let Ownership::Ours { ours_last, .. } = self {
            *ours_last = true;
        }
    }

    /// Takes in that another controller wrote.
    pub(crate) fn foreign_write(&mut self, now: Time, period: Span) {
        match self {
            Ownership::Conflict { foreign, .. } => *foreign = Some(now),
            Ownership::Ours { ours_last, exchanges, since } => {
                if !std::mem::take(ours_last) {
                    return;
                }
                let window = Span(period.0.saturating_mul(WINDOW_PERIODS));
                if since.is_none_or(|since| now.since(since) > window) {
                    (*since, *exchanges) = (Some(now), 0);
                }
                *exchanges += 1;
                if *exchanges >= EXCHANGES {
                    *self = Ownership::Conflict { foreign: Some(now), reported: false };
                }
            }
        }
    }

    /// Takes in that another controller does what only one that manages the object would do.
    pub(crate) fn begin_conflict(&mut self, now: Time) {
        match self {
            Ownership::Conflict { foreign, .. } => *foreign = Some(now),
            Ownership::Ours { .. } => {
                *self = Ownership::Conflict { foreign: Some(now), reported: false };
            }
        }
    }

    /// Takes in that the conflict was reported.
    pub(crate) fn reported(&mut self) {
        if let Ownership::Conflict { reported, .. } = self {
            *reported = true;
        }
    }

    /// Ends a conflict in which the other controller has not written for long enough.
    pub(crate) fn end_if_quiet(&mut self, now: Time, period: Span) {
        if let Ownership::Conflict { foreign, .. } = self {
            let last = *foreign.get_or_insert(now);
            if now.since(last) > Span(period.0.saturating_mul(QUIET_PERIODS)) {
                *self = Ownership::default();
            }
        }
    }

    /// What to do now.
    pub(crate) fn management(&self) -> Management {
        match self {
            Ownership::Ours { .. } => Management::Active,
            Ownership::Conflict { reported: false, .. } => Management::SteppingBack,
            Ownership::Conflict { reported: true, .. } => Management::Ceded,
        }
    }
}

/// Whether a status says that there is a conflict, with a controller or an autoscaler.
pub(super) fn says_conflict(status: &Status) -> bool {
    conflicts(status).next().is_some()
}

fn conflicts(status: &Status) -> impl Iterator<Item = &Condition> {
    let is_conflict = |name: &str| name == CONFLICT_CONDITION;
    status.conditions.iter().filter(move |c| c.kind.as_ref().is_err_and(|name| is_conflict(name)))
}

/// The last writes of each writer of an object's status: who and when.
fn status_writers(metadata: &ObjectMeta) -> impl Iterator<Item = (&str, &str)> {
    let of_status = metadata.writers.iter().filter(|writer| FieldsWriter::wrote_status(writer));
    of_status.map(|writer| (&*writer.manager, &*writer.time))
}

/// Whether another controller wrote the status between two versions of an object. Times are whole
/// seconds, so whoever wrote twice in a second is seen once.
pub(super) fn is_foreign_write(before: &Managed, after: &Managed) -> bool {
    is_foreign(before.metadata(), after.metadata())
}

/// The same of their metadata.
pub(crate) fn is_foreign(before: &ObjectMeta, after: &ObjectMeta) -> bool {
    let known = |write: &(&str, &str)| status_writers(before).any(|known| known == *write);
    let mut foreign = status_writers(after).filter(|(who, _)| *who != OWN_MANAGER);
    foreign.any(|write| !known(&write))
}

/// What the condition and the event say.
pub(crate) fn conflict_message(metadata: &ObjectMeta) -> String {
    let others = status_writers(metadata).filter(|(who, _)| *who != OWN_MANAGER);
    let who = others.max_by_key(|(_, time)| *time);
    let who = who.map_or_else(|| "another controller".to_owned(), |(who, _)| format!("{who:?}"));
    format!(
        "{who} manages this autoscaler as well; Podscale writes nothing here until that ends. \
         Exclude it from one of them, for instance with the annotation podscale.dev/managed: \"false\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_api::hpa::v2::Lean;

    const PERIOD: Span = Span::seconds(15);

    fn at(seconds: i64) -> Time {
        Time(0).after(Span::seconds(seconds))
    }

    fn decide(ownership: &mut Ownership, now: Time) -> Management {
        ownership.end_if_quiet(now, PERIOD);
        let management = ownership.management();
        ownership.reported();
        management
    }

    /// `o` is our write, `f` another's, `?` a reconcile; each takes so many seconds.
    fn check(what: &str, seconds: i64, happens: &str, expected: &str) {
        let mut ownership = Ownership::default();
        let mut states = String::new();
        for (number, happens) in happens.chars().enumerate() {
            let now = at(seconds * i64::try_from(number).expect("few"));
            match happens {
                'o' => ownership.wrote(),
                'f' => ownership.foreign_write(now, PERIOD),
                _ => states.push(match decide(&mut ownership, now) {
                    Management::Active => 'A',
                    Management::SteppingBack => 'B',
                    Management::Ceded => '-',
                }),
            }
        }
        assert_eq!(states, expected, "{what}");
    }

    #[test]
    fn steps_back_after_three_exchanges_and_tries_again_after_a_quiet_time() {
        check("nobody else", 15, "o?o?o?o?o?", "AAAAA");
        check("they alone", 15, "f?f?f?f?f?", "AAAAA");
        check("a conflict", 7, "of?of?of???", "AAB--");
        check("too slow for a conflict", 60, "of?of?of?of?", "AAAA");
        check("once by hand", 15, "o?f?o?o?o?", "AAAAA");
        check("quiet for long enough", 100, "?", "A");
        let mut ownership = Ownership::default();
        for second in 0..3 {
            ownership.wrote();
            ownership.foreign_write(at(second), PERIOD);
        }
        assert_eq!(ownership.management(), Management::SteppingBack);
        assert_eq!(ownership.management(), Management::SteppingBack, "asking changes nothing");
        ownership.reported();
        ownership.foreign_write(at(100), PERIOD);
        assert_eq!(decide(&mut ownership, at(400)), Management::Ceded);
        assert_eq!(decide(&mut ownership, at(401)), Management::Active);
        assert_eq!(ownership, Ownership::default());
    }

    #[test]
    fn what_only_another_controller_does_is_a_conflict_at_once() {
        let mut ownership = Ownership::default();
        ownership.begin_conflict(at(0));
        assert_eq!(decide(&mut ownership, at(0)), Management::SteppingBack);
        ownership.begin_conflict(at(100));
        assert_eq!(decide(&mut ownership, at(400)), Management::Ceded, "it is reported once");
        assert_eq!(decide(&mut ownership, at(401)), Management::Active);
    }

    #[test]
    fn an_object_with_a_short_period_of_its_own_is_tried_again_sooner() {
        let mut ownership = Ownership::Conflict { foreign: Some(at(0)), reported: true };
        ownership.end_if_quiet(at(21), Span::seconds(1));
        assert_eq!(ownership.management(), Management::Active);
    }

    #[test]
    fn writes_of_others_are_recognized_by_the_managed_fields() {
        let metadata = |fields: &[(&str, &str, &str)]| -> ObjectMeta {
            let entry = |(manager, second, part): &(&str, &str, &str)| {
                let time = format!("2026-01-01T00:00:0{second}Z");
                let subresource = if *part == "status" { *part } else { "" };
                let fields = if *part == "all" { "f:status" } else { "f:spec" };
                serde_json::json!({"manager": manager, "time": time, "subresource": subresource,
                    "fieldsV1": {fields: {"f:x": {}}, "f:metadata": {}}})
            };
            let fields: Vec<serde_json::Value> = fields.iter().map(entry).collect();
            let hpa = serde_json::json!({"metadata": {"managedFields": fields}, "spec": {
                "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
            serde_json::from_value::<Lean>(hpa).expect("an autoscaler").0.metadata
        };
        let before = metadata(&[("podscale", "1", "status"), ("upstream", "1", "status")]);
        for (what, after, foreign) in [
            ("we wrote", [("podscale", "2", "status"), ("upstream", "1", "status")], false),
            ("they did", [("podscale", "1", "status"), ("upstream", "2", "status")], true),
            ("a third did", [("podscale", "1", "status"), ("third", "1", "status")], true),
            ("a spec", [("podscale", "1", "status"), ("kubectl", "9", "")], false),
            ("with the object", [("podscale", "1", "status"), ("original", "9", "all")], true),
            ("we did so", [("upstream", "1", "status"), ("podscale", "9", "all")], false),
        ] {
            assert_eq!(is_foreign(&before, &metadata(&after)), foreign, "{what}");
        }
        assert!(!is_foreign(&before, &metadata(&[])), "nothing is said");
        assert!(conflict_message(&before).starts_with("\"upstream\" manages"));
        assert!(conflict_message(&metadata(&[])).starts_with("another controller manages"));
    }

    #[test]
    fn what_a_status_says_of_earlier_conflicts_counts() {
        let mut status = Status::default();
        assert_eq!(Ownership::of(&status).management(), Management::Active);
        status.conditions.push(Condition {
            kind: Err(CONFLICT_CONDITION.into()),
            status: podscale_core::status::ConditionStatus::True,
            since: None,
            note: podscale_core::status::Note::text("AnotherController", "why"),
        });
        let mut ownership = Ownership::of(&status);
        assert_eq!(decide(&mut ownership, at(0)), Management::Ceded);
        assert_eq!(decide(&mut ownership, at(300)), Management::Ceded);
        assert_eq!(decide(&mut ownership, at(301)), Management::Active);
    }
}
