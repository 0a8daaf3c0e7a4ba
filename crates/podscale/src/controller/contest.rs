//! Two controllers that look after the same autoscaler overwrite each other's status and pull its
//! target to and fro. Whoever is asked to share steps back.

use crate::watch::world::Key;
use parking_lot::Mutex;
use podscale_api::hpa::v2::{Condition, HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use podscale_api::time::Timestamp;
use podscale_core::{Span, Time};
use std::collections::HashMap;

/// The condition that says so.
pub const CONDITION: &str = "podscale.dev/Contested";
/// The reason of the condition and of the event.
pub const REASON: &str = "AnotherController";
/// What API servers call our own writes.
const OWN_MANAGER: &str = "podscale";
/// How many exchanges of writes make a fight.
const EXCHANGES: u32 = 3;
/// In how many periods they must happen.
const WINDOW_PERIODS: i64 = 8;
/// For how many periods nobody else may write before it is tried again.
const QUIET_PERIODS: i64 = 20;

/// What to do with an autoscaler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// Look after it.
    Act,
    /// Say that somebody else does, and write nothing after that.
    StepBack,
    /// Write nothing.
    Away,
}

/// The exchanges over one autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    /// Whether the last write was ours.
    ours_last: bool,
    /// How many of our writes were overwritten since `since`.
    exchanges: u32,
    since: Option<Time>,
    /// When somebody else last wrote, if we have stepped back.
    away: Option<Time>,
    /// Whether that was said.
    said: bool,
}

impl Contest {
    /// Takes in that we wrote.
    pub fn own(&mut self) {
        self.ours_last = true;
    }

    /// Takes in that somebody else wrote.
    pub fn foreign(&mut self, now: Time, period: Span) {
        if self.away.is_some() {
            self.away = Some(now);
            return;
        }
        if !std::mem::take(&mut self.ours_last) {
            return;
        }
        let window = Span(period.0.saturating_mul(WINDOW_PERIODS));
        if self.since.is_none_or(|since| now.since(since) > window) {
            (self.since, self.exchanges) = (Some(now), 0);
        }
        self.exchanges += 1;
        if self.exchanges >= EXCHANGES {
            *self = Contest { away: Some(now), ..Contest::default() };
        }
    }

    /// What to do now.
    pub fn stance(&mut self, now: Time, period: Span) -> Stance {
        let Some(last) = self.away else { return Stance::Act };
        if now.since(last) > Span(period.0.saturating_mul(QUIET_PERIODS)) {
            *self = Contest::default();
            return Stance::Act;
        }
        if std::mem::replace(&mut self.said, true) { Stance::Away } else { Stance::StepBack }
    }
}

/// The last writes of each writer of an object's status: who and when.
fn status_writers(hpa: &HorizontalPodAutoscaler) -> impl Iterator<Item = (&str, &str)> {
    let writers = hpa.metadata.writers.iter();
    let of_status = writers.filter(|writer| &*writer.subresource == "status");
    of_status.map(|writer| (&*writer.manager, &*writer.time))
}

/// Whether somebody else wrote the status between two versions of an object. Times are whole seconds,
/// so whoever wrote twice in a second is seen once.
fn is_foreign(before: &HorizontalPodAutoscaler, after: &HorizontalPodAutoscaler) -> bool {
    let known = |write: &(&str, &str)| status_writers(before).any(|known| known == *write);
    let mut foreign = status_writers(after).filter(|(who, _)| *who != OWN_MANAGER);
    foreign.any(|write| !known(&write))
}

/// The contests of all objects; most have none.
#[derive(Default)]
pub struct Contests(Mutex<HashMap<Key, Contest>>);

impl Contests {
    /// Takes in an object that has changed from `before`.
    pub fn saw(
        &self,
        before: &HorizontalPodAutoscaler,
        after: &HorizontalPodAutoscaler,
        now: Time,
        period: Span,
    ) {
        let changed = before.metadata.uid == after.metadata.uid && before.status != after.status;
        if changed && is_foreign(before, after) {
            self.0.lock().entry(Key::of(after)).or_default().foreign(now, period);
        }
    }

    /// Takes in that we wrote.
    pub fn own(&self, key: &Key) {
        self.0.lock().entry(key.clone()).or_default().own();
    }

    /// Takes in that what was to be said could not be.
    pub fn unsaid(&self, key: &Key) {
        if let Some(contest) = self.0.lock().get_mut(key) {
            contest.said = false;
        }
    }

    /// What to do with an object now. If its status says that there was a contest before this
    /// controller started, the quiet time begins with the first look.
    #[must_use]
    pub fn stance(&self, key: &Key, said: bool, now: Time, period: Span) -> Stance {
        let mut contests = self.0.lock();
        match contests.get_mut(key) {
            Some(contest) => contest.stance(now, period),
            None if said => {
                let contest = Contest { away: Some(now), said, ..Contest::default() };
                contests.insert(key.clone(), contest);
                Stance::Away
            }
            None => Stance::Act,
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.0.lock().remove(key);
    }
}

/// What the condition and the event say.
#[must_use]
pub fn message(hpa: &HorizontalPodAutoscaler) -> String {
    let others = status_writers(hpa).filter(|(who, _)| *who != OWN_MANAGER);
    let who = others.max_by_key(|(_, time)| *time);
    let who = who.map_or_else(|| "another controller".to_owned(), |(who, _)| format!("{who:?}"));
    format!(
        "{who} looks after this autoscaler as well; Podscale writes nothing here until that ends. \
         Exclude it from one of them, for instance with the annotation podscale.dev/managed: \"false\""
    )
}

/// Whether a status says that there is a contest.
#[must_use]
pub fn is_said(status: Option<&HorizontalPodAutoscalerStatus>) -> bool {
    status.is_some_and(|status| status.conditions.iter().any(|c| c.r#type == CONDITION))
}

/// Says in a status that there is a contest, or takes that back.
pub fn say(status: &mut HorizontalPodAutoscalerStatus, message: Option<String>, now: Time) {
    status.conditions.retain(|condition| condition.r#type != CONDITION);
    if let Some(message) = message {
        status.conditions.push(Condition {
            r#type: CONDITION.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Some(Timestamp(now)),
            reason: REASON.to_owned(),
            message,
            observed_generation: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Span = Span::seconds(15);

    fn at(seconds: i64) -> Time {
        Time(0).after(Span::seconds(seconds))
    }

    /// `o` is our write, `f` another's, `?` asks; each takes so many seconds.
    fn check(what: &str, seconds: i64, happens: &str, expected: &str) {
        let mut contest = Contest::default();
        let mut stances = String::new();
        for (number, happens) in happens.chars().enumerate() {
            let now = at(seconds * i64::try_from(number).expect("few"));
            match happens {
                'o' => contest.own(),
                'f' => contest.foreign(now, PERIOD),
                _ => stances.push(match contest.stance(now, PERIOD) {
                    Stance::Act => 'A',
                    Stance::StepBack => 'B',
                    Stance::Away => '-',
                }),
            }
        }
        assert_eq!(stances, expected, "{what}");
    }

    #[test]
    fn steps_back_after_three_exchanges_and_tries_again_after_a_quiet_time() {
        check("nobody else", 15, "o?o?o?o?o?", "AAAAA");
        check("they alone", 15, "f?f?f?f?f?", "AAAAA");
        check("a fight", 7, "of?of?of???", "AAB--");
        check("too slow for a fight", 60, "of?of?of?of?", "AAAA");
        check("once by hand", 15, "o?f?o?o?o?", "AAAAA");
        check("quiet for long enough", 100, "?", "A");
        let mut contest = Contest::default();
        for second in 0..3 {
            contest.own();
            contest.foreign(at(second), PERIOD);
        }
        assert_eq!(contest.stance(at(3), PERIOD), Stance::StepBack);
        contest.foreign(at(100), PERIOD);
        assert_eq!(contest.stance(at(400), PERIOD), Stance::Away);
        assert_eq!(contest.stance(at(401), PERIOD), Stance::Act);
        assert_eq!(contest, Contest::default());
    }

    #[test]
    fn writes_of_others_are_told_by_the_managed_fields() {
        let hpa = |fields: &[(&str, &str, &str)]| -> HorizontalPodAutoscaler {
            let entry = |(manager, second, subresource): &(&str, &str, &str)| {
                let time = format!("2026-01-01T00:00:0{second}Z");
                serde_json::json!({"manager": manager, "time": time, "subresource": subresource})
            };
            let fields: Vec<serde_json::Value> = fields.iter().map(entry).collect();
            let hpa = serde_json::json!({"metadata": {"managedFields": fields}, "spec": {
                "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}}});
            serde_json::from_value::<podscale_api::hpa::v2::Lean>(hpa).expect("an autoscaler").0
        };
        let before = hpa(&[("podscale", "1", "status"), ("upstream", "1", "status")]);
        for (what, after, foreign) in [
            ("we wrote", hpa(&[("podscale", "2", "status"), ("upstream", "1", "status")]), false),
            ("they did", hpa(&[("podscale", "1", "status"), ("upstream", "2", "status")]), true),
            ("a third did", hpa(&[("podscale", "1", "status"), ("third", "1", "status")]), true),
            ("a spec", hpa(&[("podscale", "1", "status"), ("kubectl", "9", "")]), false),
            ("nothing is told", hpa(&[]), false),
        ] {
            assert_eq!(is_foreign(&before, &after), foreign, "{what}");
        }
        assert!(message(&before).starts_with("\"upstream\" looks after"));
        assert!(message(&hpa(&[])).starts_with("another controller looks after"));
    }

    #[test]
    fn what_a_status_says_of_earlier_contests_counts() {
        let (contests, key) =
            (Contests::default(), Key { namespace: "x".into(), name: "y".into() });
        assert_eq!(contests.stance(&key, false, at(0), PERIOD), Stance::Act);
        assert_eq!(contests.stance(&key, true, at(0), PERIOD), Stance::Away);
        assert_eq!(contests.stance(&key, true, at(300), PERIOD), Stance::Away);
        assert_eq!(contests.stance(&key, true, at(301), PERIOD), Stance::Act);
        assert_eq!(contests.stance(&key, true, at(302), PERIOD), Stance::Act, "not said yet");
    }

    #[test]
    fn a_status_says_it_until_it_is_taken_back() {
        let mut status = HorizontalPodAutoscalerStatus::default();
        say(&mut status, Some("why".to_owned()), at(1));
        assert!(is_said(Some(&status)));
        say(&mut status, None, at(2));
        assert!(!is_said(Some(&status)));
    }
}
