//! Decides what becomes of an event from those before it, as client-go's correlator does.

use super::{PendingEvent, Severity};
use jiff::{SignedDuration, Timestamp};
use std::collections::{HashMap, HashSet};
use std::hash::Hash;

/// How many keys are surely remembered before the least recently used are forgotten.
const REMEMBERED_KEYS: usize = 4096;
/// Similar events, differing in their message alone, before they are combined.
const SIMILAR_EVENTS: usize = 10;
/// How long similar events are looked back for.
const SIMILAR_WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// Events that one source may record about one object at once.
const BURST_EVENTS: f64 = 25.0;
/// How many events per second one source may record about one object in the long run.
const EVENTS_PER_SECOND: f64 = 1.0 / 300.0;
/// The longest name of an object.
const NAME_LIMIT_BYTES: usize = 253;

/// Where an event belongs: the stored event that it is, or is one more of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) message: String,
    pub(super) count: i32,
    pub(super) first: Timestamp,
    /// Whether it stands for several that differ in their message alone.
    pub(super) combined: bool,
}

/// The component, the object and the severity of an event.
type Source = (&'static str, Box<str>, Severity);
/// And for which reason.
type Subject = (Source, &'static str);

/// What is remembered of earlier events.
#[derive(Default)]
pub(super) struct Correlator {
    budgets: Recent<Source, (f64, Timestamp)>,
    similar: Recent<Subject, (HashSet<String>, Timestamp)>,
    written: Recent<(Subject, Option<String>), (String, i32, Timestamp)>,
    named: u32,
}

impl Correlator {
    /// The place of an event; none if its source has recorded too many about its object already.
    pub(super) fn correlate(&mut self, pending: &PendingEvent, now: Timestamp) -> Option<Place> {
        let source = (pending.component, object(pending), pending.severity);
        let subject = (source.clone(), pending.reason);
        let combined = self.is_one_of_many(&subject, &pending.message, now);
        let (message, own) = if combined {
            (format!("(combined from similar events): {}", pending.message), None)
        } else {
            (pending.message.clone(), Some(pending.message.clone()))
        };
        let named = &mut self.named;
        let entry = self.written.entry((subject, own), || {
            *named = named.wrapping_add(1);
            (name(pending, now, *named), 0, now)
        });
        // What is not written for lack of a budget is counted all the same.
        entry.1 = entry.1.saturating_add(1);
        let (name, count, first) = entry.clone();
        self.may_spend(source, now).then_some(Place { name, message, count, first, combined })
    }

    fn is_one_of_many(&mut self, subject: &Subject, message: &str, now: Timestamp) -> bool {
        let (messages, last) = self.similar.entry(subject.clone(), || (HashSet::new(), now));
        if now.duration_since(*last) > SIMILAR_WINDOW {
            messages.clear();
        }
        *last = now;
        if !messages.contains(message) {
            messages.insert(message.to_owned());
        }
        if messages.len() < SIMILAR_EVENTS {
            return false;
        }
        // The set stays just below the limit, so that the next unknown message is combined as well.
        messages.remove(message);
        true
    }

    fn may_spend(&mut self, source: Source, now: Timestamp) -> bool {
        let (budget, last) = self.budgets.entry(source, || (BURST_EVENTS, now));
        let passed = now.duration_since(*last).as_secs_f64().max(0.0);
        *budget = (*budget + passed * EVENTS_PER_SECOND).min(BURST_EVENTS);
        *last = now;
        if *budget < 1.0 {
            return false;
        }
        *budget -= 1.0;
        true
    }
}

fn object(pending: &PendingEvent) -> Box<str> {
    let about = &pending.about;
    let parts = [&about.kind, &about.namespace, &about.name, &about.uid, &about.field_path];
    let parts: Vec<&str> = parts.map(|part| part.as_deref().unwrap_or_default()).to_vec();
    parts.join("/").into()
}

/// The object's name and the time; the number keeps two of the same moment apart.
fn name(pending: &PendingEvent, now: Timestamp, number: u32) -> String {
    let about = pending.about.name.as_deref().unwrap_or_default();
    let moment = now.as_nanosecond().wrapping_add(i128::from(number));
    let name = format!("{about}.{moment:x}");
    if name.len() <= NAME_LIMIT_BYTES { name } else { format!("event.{moment:x}") }
}

/// A map of bounded size that forgets what was not asked for in a long time.
struct Recent<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Recent<K, V> {
        Recent { young: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Eq + Hash, V> Recent<K, V> {
    fn entry(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        if self.young.len() >= REMEMBERED_KEYS && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        let known = old.remove(&key);
        self.young.entry(key).or_insert_with(|| known.unwrap_or_else(make))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ObjectReference;

    fn pending(uid: &str, severity: Severity, message: &str) -> PendingEvent {
        let about = ObjectReference {
            name: Some("web".into()),
            uid: Some(uid.into()),
            ..ObjectReference::default()
        };
        let (reason, message) = ("Created", message.to_owned());
        PendingEvent { component: "c", about, severity, reason, message }
    }

    #[test]
    fn repetitions_are_counted_similar_ones_combined_and_floods_stopped() {
        let mut correlator = Correlator::default();
        let mut correlate_at = |uid, kind, message: &str, at: i64| {
            let now = Timestamp::from_second(at).unwrap();
            match correlator.correlate(&pending(uid, kind, message), now) {
                None => "dropped".to_owned(),
                Some(Place { message, count, .. }) => format!("{count}: {message}"),
            }
        };
        let normal = Severity::Normal;
        assert_eq!(correlate_at("1", normal, "hello", 0), "1: hello");
        assert_eq!(correlate_at("1", normal, "hello", 1), "2: hello");
        for number in 0..8 {
            assert_eq!(correlate_at("1", normal, &number.to_string(), 2), format!("1: {number}"));
        }
        assert_eq!(correlate_at("1", normal, "x", 2), "1: (combined from similar events): x");
        assert_eq!(correlate_at("1", normal, "y", 2), "2: (combined from similar events): y");
        assert_eq!(correlate_at("1", normal, "hello", 2), "3: hello");
        assert_eq!(correlate_at("2", normal, "y", 2), "1: y");
        for _ in 0..12 {
            assert_ne!(correlate_at("1", normal, "y", 2), "dropped");
        }
        assert_eq!(correlate_at("1", normal, "y", 2), "dropped");
        assert_eq!(correlate_at("1", Severity::Warning, "y", 2), "1: y", "a budget of its own");
        assert_eq!(correlate_at("2", normal, "y", 2), "2: y");
        let later = 2 + 300;
        assert_eq!(correlate_at("1", normal, "y", later), "16: (combined from similar events): y");
        assert_eq!(correlate_at("1", normal, "z", later + 601), "1: z");
    }

    #[test]
    fn names_are_different_and_not_too_long() {
        let mut correlator = Correlator::default();
        let now = Timestamp::UNIX_EPOCH;
        let mut long = pending("1", Severity::Normal, "a");
        long.about.name = Some("n".repeat(253));
        let names = [
            correlator.correlate(&pending("1", Severity::Normal, "a"), now),
            correlator.correlate(&pending("1", Severity::Normal, "b"), now),
            correlator.correlate(&long, now),
        ];
        assert_eq!(names.map(|place| place.expect("a place").name), ["web.1", "web.2", "event.3"]);
    }

    #[test]
    fn memory_is_bounded_and_keeps_what_is_used() {
        let mut recent = Recent::default();
        for number in 0..REMEMBERED_KEYS * 5 {
            recent.entry(number, || 0);
            *recent.entry(usize::MAX, || 0) += 1;
        }
        assert!(recent.young.len() + recent.old.len() <= 2 * REMEMBERED_KEYS);
        assert_eq!(*recent.entry(usize::MAX, || 0), REMEMBERED_KEYS * 5);
    }
}
