//! Records events about objects, as Kubernetes' controllers do: the same event again only raises its
//! count, many similar ones are combined, and one source may not flood one object.

use super::calls::{call, stamp};
use super::queue::{Shutdown, ended};
use crate::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use std::collections::{HashMap, HashSet};
use tokio::sync::mpsc;

/// Events that wait to be written; when there are more, the newest are dropped.
const BACKLOG: usize = 4096;
/// Kinds of events that are remembered to find repetitions.
const REMEMBERED: usize = 4096;
/// Similar events, differing in their message alone, before they are combined.
const SIMILAR: usize = 10;
/// How long similar events are looked back for.
const SIMILAR_WINDOW: SignedDuration = SignedDuration::from_mins(10);
/// Events that one source may record about one object at once.
const BURST: f64 = 25.0;
/// How many events per second one source may record about one object in the long run.
const REFILL: f64 = 1.0 / 300.0;

/// Whether an event is worth a person's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// All is well.
    Normal,
    /// Something went wrong.
    Warning,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Normal => "Normal",
            Kind::Warning => "Warning",
        }
    }
}

/// One thing that happened, to be recorded.
#[derive(Clone, Debug)]
pub struct Happening {
    component: &'static str,
    about: ObjectReference,
    kind: Kind,
    reason: &'static str,
    message: String,
}

/// Hands happenings to the task that writes them; never waits.
#[derive(Clone, Debug)]
pub struct Recorder {
    component: &'static str,
    sender: mpsc::Sender<Happening>,
}

impl Recorder {
    /// The same recorder for another component.
    #[must_use]
    pub fn named(&self, component: &'static str) -> Recorder {
        Recorder { component, sender: self.sender.clone() }
    }

    /// Records that something happened to an object.
    pub fn record(
        &self,
        about: ObjectReference,
        kind: Kind,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let component = self.component;
        let happening = Happening { component, about, kind, reason, message: message.into() };
        if self.sender.try_send(happening).is_err() {
            tracing::debug!(reason, "event dropped: too many wait to be written");
        }
    }
}

/// A recorder and what its writing task needs.
#[must_use]
pub fn channel(component: &'static str) -> (Recorder, mpsc::Receiver<Happening>) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    (Recorder { component, sender }, receiver)
}

/// The reference by which an event names an object.
#[must_use]
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        api_version: Some(K::api_version(&()).into_owned()),
        kind: Some(K::kind(&()).into_owned()),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// Writes what is recorded until the shutdown.
pub async fn write(
    client: Client,
    clock: Clock,
    mut happenings: mpsc::Receiver<Happening>,
    mut shutdown: Shutdown,
) {
    let mut correlator = Correlator::default();
    loop {
        let happening = tokio::select! {
            biased;
            () = ended(&mut shutdown) => return,
            happening = happenings.recv() => happening,
        };
        let Some(happening) = happening else { return };
        let now = clock.now();
        let result = match correlator.correlate(&happening, now) {
            Verdict::Drop => continue,
            Verdict::Create(name, message) => {
                let event = event(&happening, name, message, now);
                let api = Api::<Event>::namespaced(client.clone(), namespace(&happening));
                let params = PostParams::default();
                let create = api.create(&params, &event);
                call(|| "create an event".into(), create).await.map(drop)
            }
            Verdict::Repeat(name, message, count) => {
                let patch = serde_json::json!({"count": count, "message": message,
                    "lastTimestamp": stamp(now)});
                let api = Api::<Event>::namespaced(client.clone(), namespace(&happening));
                let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
                let patch = api.patch(&name, &params, &patch);
                let result = call(|| "count an event".into(), patch).await;
                if result.as_ref().is_err_and(super::calls::Error::is_not_found) {
                    correlator.forget(&name);
                }
                result.map(drop)
            }
        };
        if let Err(error) = result {
            tracing::debug!(%error, "event not recorded");
        }
    }
}

fn namespace(happening: &Happening) -> &str {
    let namespace = happening.about.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    namespace.unwrap_or("default")
}

fn event(happening: &Happening, name: String, message: String, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace(happening).to_owned()),
            ..ObjectMeta::default()
        },
        involved_object: happening.about.clone(),
        type_: Some(happening.kind.name().into()),
        reason: Some(happening.reason.into()),
        message: Some(message),
        source: Some(EventSource { component: Some(happening.component.into()), host: None }),
        reporting_component: Some(happening.component.into()),
        reporting_instance: Some(String::new()),
        first_timestamp: Some(stamp(now)),
        last_timestamp: Some(stamp(now)),
        count: Some(1),
        ..Event::default()
    }
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Drop,
    Create(String, String),
    Repeat(String, String, i32),
}

/// Who says what kind of thing about whom.
type Subject = (&'static str, String, Kind, &'static str);

/// Decides what becomes of a happening from those before.
#[derive(Debug, Default)]
struct Correlator {
    budgets: HashMap<(&'static str, String), (f64, Timestamp)>,
    similar: HashMap<Subject, (HashSet<String>, Timestamp)>,
    written: HashMap<(Subject, Option<String>), (String, i32)>,
}

impl Correlator {
    fn correlate(&mut self, happening: &Happening, now: Timestamp) -> Verdict {
        let object = happening.about.uid.clone().unwrap_or_default();
        let subject = (happening.component, object, happening.kind, happening.reason);
        let combined = self.is_similar_to_many(&subject, &happening.message, now);
        if !self.may_spend(&subject, now) {
            return Verdict::Drop;
        }
        let (message, key) = if combined {
            let message = format!("(combined from similar events): {}", happening.message);
            (message, (subject, None))
        } else {
            (happening.message.clone(), (subject, Some(happening.message.clone())))
        };
        if let Some((name, count)) = self.written.get_mut(&key) {
            *count = count.saturating_add(1);
            return Verdict::Repeat(name.clone(), message, *count);
        }
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        let about = happening.about.name.as_deref().unwrap_or_default();
        let number =
            now.as_nanosecond().wrapping_add(i128::try_from(self.written.len()).unwrap_or(0));
        let name = format!("{about}.{number:x}");
        self.written.insert(key, (name.clone(), 1));
        Verdict::Create(name, message)
    }

    fn is_similar_to_many(&mut self, subject: &Subject, message: &str, now: Timestamp) -> bool {
        if self.similar.len() >= REMEMBERED {
            self.similar.clear();
        }
        let (messages, last) =
            self.similar.entry(subject.clone()).or_insert_with(|| (HashSet::new(), now));
        if now.duration_since(*last) > SIMILAR_WINDOW {
            messages.clear();
        }
        *last = now;
        if messages.len() < SIMILAR {
            messages.insert(message.to_owned());
        }
        messages.len() >= SIMILAR
    }

    fn may_spend(&mut self, subject: &Subject, now: Timestamp) -> bool {
        if self.budgets.len() >= REMEMBERED {
            self.budgets.clear();
        }
        let source = (subject.0, subject.1.clone());
        let (budget, last) = self.budgets.entry(source).or_insert((BURST, now));
        let passed = now.duration_since(*last).as_secs_f64().max(0.0);
        *budget = (*budget + passed * REFILL).min(BURST);
        *last = now;
        if *budget < 1.0 {
            return false;
        }
        *budget -= 1.0;
        true
    }

    fn forget(&mut self, name: &str) {
        self.written.retain(|_, (written, _)| written != name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn happening(uid: &str, message: String) -> Happening {
        let about = ObjectReference {
            name: Some("web".into()),
            uid: Some(uid.into()),
            ..ObjectReference::default()
        };
        Happening { component: "c", about, kind: Kind::Normal, reason: "Created", message }
    }

    #[test]
    fn repetitions_are_counted_similar_ones_combined_and_floods_stopped() {
        let mut correlator = Correlator::default();
        let now = Timestamp::UNIX_EPOCH;
        let mut tell = |uid, message: &str, at: i64| {
            let now = now.saturating_add(SignedDuration::from_secs(at)).unwrap();
            match correlator.correlate(&happening(uid, message.into()), now) {
                Verdict::Drop => "dropped".to_owned(),
                Verdict::Create(_, message) => format!("new: {message}"),
                Verdict::Repeat(_, message, count) => format!("{count}: {message}"),
            }
        };
        assert_eq!(tell("1", "hello", 0), "new: hello");
        assert_eq!(tell("1", "hello", 1), "2: hello");
        for number in 0..8 {
            assert_eq!(tell("1", &number.to_string(), 2), format!("new: {number}"));
        }
        assert_eq!(tell("1", "x", 2), "new: (combined from similar events): x");
        assert_eq!(tell("1", "y", 2), "2: (combined from similar events): y");
        assert_eq!(tell("2", "y", 2), "new: y");
        for _ in 0..13 {
            assert_ne!(tell("1", "y", 2), "dropped");
        }
        assert_eq!(tell("1", "y", 2), "dropped");
        assert_eq!(tell("2", "y", 2), "2: y");
        assert_eq!(tell("1", "z", 2 + 301 + 600), "new: z");
    }
}
