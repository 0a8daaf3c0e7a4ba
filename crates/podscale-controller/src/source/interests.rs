//! Who wants to hear of which pods' samples: one topic for each selector of each namespace, found from
//! a pod by its labels, so that a scrape costs a few lookups for each pod whoever else asks.

use super::subscriptions::{News, Topic, Unseen};
use crate::pods::{Pods, demanded, label_number};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use podscale_api::labels::Labels;
use podscale_api::pod::Pod;
use podscale_api::selector::Selector;
use std::collections::HashMap;
use std::sync::Arc;

/// How long somebody who did not ask again still hears of it.
const KEPT: SignedDuration = SignedDuration::from_mins(30);
/// How often those who did not ask again are looked for.
const SWEEP_INTERVAL: SignedDuration = SignedDuration::from_mins(5);
/// How many selectors there may be; whoever has a further one waits for its sync period.
const MAX_INTERESTS: usize = 1 << 17;

/// How many pods are looked at before others may ask.
const PODS_AT_ONCE: usize = 256;

/// What is asked about.
#[derive(Default)]
pub(super) struct Interests(Mutex<State>);

#[derive(Default)]
struct State {
    namespaces: HashMap<Box<str>, OfNamespace>,
    count: usize,
    swept: Option<Timestamp>,
}

#[derive(Default)]
struct OfNamespace {
    by_selector: HashMap<Box<str>, Arc<Interest>>,
    /// By one of the labels that the selector demands.
    by_label: HashMap<u64, Vec<Arc<Interest>>>,
    /// Those whose selectors demand no label.
    others: Vec<Arc<Interest>>,
}

struct Interest {
    selector: Selector,
    topic: Topic,
    asked: Mutex<Timestamp>,
}

impl Interests {
    /// The topic of a selector's pods, which somebody asks about now.
    pub(super) fn topic(&self, namespace: &str, selector: &str, now: Timestamp) -> Option<Topic> {
        let mut state = self.0.lock();
        state.sweep(now);
        if let Some(known) = state.namespaces.get(namespace)
            && let Some(interest) = known.by_selector.get(selector)
        {
            *interest.asked.lock() = now;
            return Some(interest.topic.clone());
        }
        if state.count >= MAX_INTERESTS {
            return None;
        }
        let parsed = Selector::parse(selector).ok().filter(|parsed| !parsed.is_empty())?;
        let topic = Topic(format!("pods {namespace} {selector}").into());
        let interest = Interest { selector: parsed, topic: topic.clone(), asked: Mutex::new(now) };
        state.count += 1;
        let known = state.namespaces.entry(namespace.into()).or_default();
        known.insert(selector, Arc::new(interest));
        Some(topic)
    }

    /// The topics that these pods belong to, each with the newest of their values that somebody may not have seen.
    pub(super) fn concerned<'a>(
        &self,
        changed: impl IntoIterator<Item = (&'a str, &'a str, Unseen)>,
        pods: &Pods,
    ) -> News {
        let mut changed = changed.into_iter();
        let mut news = News::new();
        loop {
            // Pods are looked up first, so that whoever asks waits for a few of them only.
            let some: Vec<(Arc<Pod>, Unseen)> = changed
                .by_ref()
                .filter_map(|(namespace, name, unseen)| Some((pods.get(namespace, name)?, unseen)))
                .take(PODS_AT_ONCE)
                .collect();
            if some.is_empty() {
                return news;
            }
            let state = self.0.lock();
            for (pod, unseen) in some {
                if let Some(known) = state.namespaces.get(&pod.metadata.namespace) {
                    known.collect(&pod.metadata.labels, unseen, &mut news);
                }
            }
        }
    }
}

impl State {
    fn sweep(&mut self, now: Timestamp) {
        let swept = *self.swept.get_or_insert(now);
        if now.duration_since(swept) < SWEEP_INTERVAL {
            return;
        }
        self.swept = Some(now);
        let wanted = |interest: &Interest| now.duration_since(*interest.asked.lock()) < KEPT;
        self.namespaces.retain(|_, known| {
            known.by_selector.retain(|_, interest| wanted(interest));
            known.others.retain(|interest| wanted(interest));
            known.by_label.retain(|_, list| {
                list.retain(|interest| wanted(interest));
                !list.is_empty()
            });
            !known.by_selector.is_empty()
        });
        self.count = self.namespaces.values().map(|known| known.by_selector.len()).sum();
    }
}

impl OfNamespace {
    fn insert(&mut self, selector: &str, interest: Arc<Interest>) {
        let listed = |label: &u64| self.by_label.get(label).map_or(0, Vec::len);
        match demanded(&interest.selector).min_by_key(listed) {
            Some(label) => self.by_label.entry(label).or_default().push(Arc::clone(&interest)),
            None => self.others.push(Arc::clone(&interest)),
        }
        self.by_selector.insert(selector.into(), interest);
    }

    fn collect(&self, labels: &Labels, unseen: Unseen, news: &mut News) {
        let numbers = labels.iter().map(|(key, value)| label_number(key, value));
        let lists = numbers.filter_map(|label| self.by_label.get(&label));
        for interest in lists.flatten().chain(&self.others) {
            if interest.selector.matches(|key| labels.get(key)) {
                let known = news.entry(interest.topic.clone()).or_insert(unseen);
                *known = unseen.max(*known);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_client::watch::Change;

    fn at(minute: i64) -> Timestamp {
        Timestamp::from_second(minute * 60).expect("a time")
    }

    fn pods(all: &[(&str, &str, &[(&str, &str)])]) -> Pods {
        let pods = Pods::default();
        let pod = |(namespace, name, labels): &(&str, &str, &[(&str, &str)])| {
            let mut pod = Pod::default();
            (pod.metadata.namespace, pod.metadata.name) = ((*namespace).into(), (*name).into());
            pod.metadata.labels = labels.iter().copied().collect();
            pod
        };
        pods.apply(Change::All(all.iter().map(pod).collect()));
        pods
    }

    fn concerned(interests: &Interests, pods: &Pods, changed: &[(&str, &str)]) -> Vec<String> {
        let changed = changed.iter().map(|(namespace, name)| (*namespace, *name, Unseen::ByAll));
        let news = interests.concerned(changed, pods);
        let mut topics: Vec<String> = news.keys().map(|topic| topic.0.to_string()).collect();
        topics.sort();
        topics
    }

    #[test]
    fn a_scrape_concerns_whoever_selects_its_pods() {
        let pods = pods(&[
            ("shop", "web-1", &[("app", "web"), ("tier", "x")]),
            ("shop", "api-1", &[("app", "api"), ("tier", "x")]),
            ("test", "web-1", &[("app", "web")]),
        ]);
        let interests = Interests::default();
        for (namespace, selector) in [
            ("shop", "app=web"),
            ("shop", "app=api,tier=x"),
            ("shop", "app notin (api)"),
            ("test", "app=web"),
            ("test", "app=none"),
        ] {
            let topic = interests.topic(namespace, selector, at(0)).expect("a topic");
            assert_eq!(*topic.0, *format!("pods {namespace} {selector}"));
            assert_eq!(interests.topic(namespace, selector, at(0)), Some(topic));
        }
        assert_eq!(interests.topic("shop", "", at(0)), None, "no selector selects nothing");
        let web = ["pods shop app notin (api)", "pods shop app=web"];
        assert_eq!(concerned(&interests, &pods, &[("shop", "web-1")]), web);
        assert_eq!(
            concerned(&interests, &pods, &[("shop", "api-1")]),
            ["pods shop app=api,tier=x"]
        );
        assert_eq!(concerned(&interests, &pods, &[("test", "web-1")]), ["pods test app=web"]);
        let unknown = [("shop", "gone"), ("other", "web-1")];
        assert!(concerned(&interests, &pods, &unknown).is_empty());
    }

    #[test]
    fn a_topic_has_the_newest_of_its_values() {
        let names: Vec<String> = (0..2 * PODS_AT_ONCE).map(|n| format!("web-{n}")).collect();
        let labels: &[(&str, &str)] = &[("app", "web")];
        let all: Vec<_> = names.iter().map(|name| ("shop", &**name, labels)).collect();
        let (pods, interests) = (pods(&all), Interests::default());
        let topic = interests.topic("shop", "app=web", at(0)).expect("a topic");
        let seen = |n: usize| Unseen::Before(at(i64::try_from(n * 7 % 600).expect("a minute")));
        let changed = names.iter().enumerate().map(|(n, name)| ("shop", &**name, seen(n)));
        let newest = (0..names.len()).map(seen).max().expect("pods");
        assert_eq!(interests.concerned(changed, &pods), News::from([(topic, newest)]));
    }

    #[test]
    fn whoever_does_not_ask_again_hears_nothing_one_day() {
        let pods = pods(&[("shop", "web-1", &[("app", "web"), ("tier", "x")])]);
        let interests = Interests::default();
        interests.topic("shop", "app=web", at(0));
        for minute in 0..40 {
            interests.topic("shop", "tier=x", at(minute));
        }
        assert_eq!(concerned(&interests, &pods, &[("shop", "web-1")]), ["pods shop tier=x"]);
        assert_eq!(interests.0.lock().count, 1);
        interests.topic("other", "a=b", at(100));
        assert!(concerned(&interests, &pods, &[("shop", "web-1")]).is_empty());
    }
}
