//! What is compared at rest: sizes, statuses and events, without what is there by chance.

use super::chance::{BUDGET, COMBINED, normalise};
use super::driver::Driver;
use anyhow::Result;
use kube::api::{DynamicObject, ListParams};
use std::collections::{BTreeMap, BTreeSet};

/// Proxy the values of something that does not come to rest.
const ALTERNATES: &str = " <-> ";

/// What is seen of a namespace: by subject (`a3 condition AbleToScale`) what it is like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    namespace: String,
    facts: BTreeMap<String, String>,
    events: BTreeMap<String, Events>,
    /// By autoscaler and what has a time: that time.
    times: BTreeMap<String, String>,
}

/// The events of one type about one autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Events {
    /// By text, how often.
    counts: BTreeMap<String, i64>,
    /// The reasons whose events are combined by now.
    combined: BTreeSet<String>,
}

impl Events {
    fn is_budget_spent(&self) -> bool {
        self.counts.values().sum::<i64>() >= BUDGET
    }
}

/// A difference between the clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    pub subject: String,
    pub upstream: String,
    pub podscale: String,
}

impl State {
    /// Reads the state of a namespace; sizes of targets only if they are asked for.
    pub async fn read(driver: &Driver<'_>, with_sizes: bool) -> Result<State> {
        let mut state = State { namespace: driver.namespace.clone(), ..State::default() };
        if with_sizes {
            for (target, size) in driver.sizes().await? {
                state.facts.insert(format!("{target} size"), size.to_string());
            }
        }
        let all = ListParams::default();
        let hpas = driver.api("autoscaling/v2", "HorizontalPodAutoscaler").list(&all).await?;
        let mut uids = BTreeMap::new();
        for hpa in hpas {
            let name = hpa.metadata.name.clone().unwrap_or_default();
            uids.insert(hpa.metadata.uid.clone().unwrap_or_default(), name.clone());
            state.take_status(&name, &hpa);
        }
        for event in driver.api("v1", "Event").list(&all).await? {
            let about = event.data["involvedObject"]["uid"].as_str().unwrap_or_default();
            // Those of an object that is gone are history.
            if let Some(name) = uids.get(about) {
                state.take_event(name, &event);
            }
        }
        Ok(state)
    }

    fn take_status(&mut self, name: &str, hpa: &DynamicObject) {
        let status = &hpa.data["status"];
        let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
        let mut order = Vec::new();
        for condition in &conditions {
            let field = |field: &str| condition[field].as_str().unwrap_or_default();
            let text = format!("{} {}: {}", field("status"), field("reason"), field("message"));
            let subject = format!("{name} condition {}", field("type"));
            order.push(field("type").to_owned());
            self.times.insert(subject.clone(), field("lastTransitionTime").to_owned());
            self.facts.insert(subject, normalise(&text, &self.namespace));
        }
        let scaled = status["lastScaleTime"].as_str().unwrap_or("never");
        self.times.insert(format!("{name} last scale time"), scaled.to_owned());
        let mut fact = |what: &str, text: String| {
            self.facts.insert(format!("{name} {what}"), normalise(&text, &self.namespace));
        };
        fact("order of conditions", order.join(", "));
        fact("has a last scale time", (scaled != "never").to_string());
        fact("metrics", status["currentMetrics"].to_string());
        fact("current replicas", status["currentReplicas"].to_string());
        fact("desired replicas", status["desiredReplicas"].to_string());
        fact("observed generation", status["observedGeneration"].to_string());
        let known = [
            "conditions",
            "lastScaleTime",
            "currentMetrics",
            "currentReplicas",
            "desiredReplicas",
            "observedGeneration",
        ];
        let fields = status.as_object().into_iter().flatten();
        let others: Vec<&String> =
            fields.map(|(key, _)| key).filter(|key| !known.contains(&key.as_str())).collect();
        fact("other fields of the status", format!("{others:?}"));
    }

    fn take_event(&mut self, name: &str, event: &DynamicObject) {
        let field = |field: &str| event.data[field].as_str().unwrap_or_default();
        let (kind, reason, message) = (field("type"), field("reason"), field("message"));
        let combined = message.starts_with(COMBINED);
        let about = &event.data["involvedObject"];
        let source = &event.data["source"];
        let text = format!(
            "{reason}: {} (from {source}, reported by {:?} {:?}, about {} {})",
            if combined { COMBINED } else { message },
            field("reportingComponent"),
            field("reportingInstance"),
            about["apiVersion"],
            about["kind"],
        );
        let events = self.events.entry(format!("{name} event {kind}")).or_default();
        *events.counts.entry(normalise(&text, &self.namespace)).or_default() +=
            event.data["count"].as_i64().unwrap_or(1);
        if combined {
            events.combined.insert(reason.to_owned());
        }
    }

    /// Notes which times have changed since this earlier state.
    pub fn note_moved_times(&mut self, before: &State) {
        for (subject, time) in &self.times {
            let moved = before.times.get(subject).is_some_and(|earlier| earlier != time);
            self.facts.insert(format!("{subject} moved"), moved.to_string());
        }
    }

    /// Whether nothing but times and counts differs.
    pub fn is_at_rest_since(&self, earlier: &State) -> bool {
        let texts = |state: &State| -> Vec<(String, Vec<String>)> {
            let events = state.events.iter();
            events.map(|(key, of)| (key.clone(), of.counts.keys().cloned().collect())).collect()
        };
        self.facts == earlier.facts && texts(self) == texts(earlier)
    }

    /// What this state and later ones, of a time in which it does not come to rest, have to say together.
    pub fn merge(&mut self, later: &State) {
        for (subject, text) in &later.facts {
            let known = self.facts.entry(subject.clone()).or_insert_with(|| text.clone());
            let mut texts: BTreeSet<String> =
                known.split(ALTERNATES).map(ToOwned::to_owned).collect();
            if texts.insert(text.clone()) {
                *known = texts.into_iter().collect::<Vec<_>>().join(ALTERNATES);
            }
        }
        self.events.clone_from(&later.events);
        self.times.clone_from(&later.times);
    }

    /// How many autoscalers there are.
    pub fn autoscalers(&self) -> usize {
        self.facts.keys().filter(|subject| subject.ends_with(" order of conditions")).count()
    }

    /// The targets whose size does not come to rest.
    pub fn restless_targets(&self) -> impl Iterator<Item = String> {
        let restless = self.facts.iter().filter(|(_, text)| text.contains(ALTERNATES));
        restless.filter_map(|(subject, _)| subject.strip_suffix(" size")).map(ToOwned::to_owned)
    }

    /// How Podscale's state differs from this one.
    pub fn differences(&self, podscale: &State) -> Vec<Difference> {
        let mut differences = Vec::new();
        let subjects: BTreeSet<&String> = self.facts.keys().chain(podscale.facts.keys()).collect();
        for subject in subjects {
            let of = |state: &State| state.facts.get(subject).cloned().unwrap_or("absent".into());
            let (upstream, podscale) = (of(self), of(podscale));
            if upstream != podscale {
                differences.push(Difference { subject: subject.clone(), upstream, podscale });
            }
        }
        let none = Events::default();
        let subjects: BTreeSet<&String> =
            self.events.keys().chain(podscale.events.keys()).collect();
        for subject in subjects {
            let upstream = self.events.get(subject).unwrap_or(&none);
            let podscale = podscale.events.get(subject).unwrap_or(&none);
            differences.extend(differing_events(subject, upstream, podscale));
        }
        differences
    }
}

/// Events that one side has and the other one lacks, although it had the budget to record them; or that
/// were recorded once there and repeatedly here.
fn differing_events(subject: &str, upstream: &Events, podscale: &Events) -> Vec<Difference> {
    let texts: BTreeSet<&String> = upstream.counts.keys().chain(podscale.counts.keys()).collect();
    let spent = upstream.is_budget_spent() || podscale.is_budget_spent();
    let mut differences = Vec::new();
    for text in texts {
        let reason = text.split(':').next().unwrap_or_default();
        let both_combine = upstream.combined.contains(reason) && podscale.combined.contains(reason);
        if both_combine && !text.contains(COMBINED) {
            continue;
        }
        let often = |events: &Events| match events.counts.get(text) {
            None => "absent",
            Some(1) => "once",
            Some(_) => "repeatedly",
        };
        let (there, here) = (often(upstream), often(podscale));
        let excused = match (there, here) {
            ("absent", _) => upstream.is_budget_spent(),
            (_, "absent") => podscale.is_budget_spent(),
            _ => spent || both_combine,
        };
        if there != here && !excused {
            differences.push(Difference {
                subject: format!("{subject} {text}"),
                upstream: there.to_owned(),
                podscale: here.to_owned(),
            });
        }
    }
    differences
}
