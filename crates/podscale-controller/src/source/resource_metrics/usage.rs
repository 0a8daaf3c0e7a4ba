//! What pods use, read in bulk: one list for a namespace, or one for the whole cluster as soon as
//! objects of several namespaces ask.

use super::super::cache::Cache;
use super::super::decode::Described;
use super::super::namespaces::Namespaces;
use crate::pods::{demanded, label_number};
use parking_lot::Mutex;
use podscale_api::metrics::PodMetrics;
use podscale_api::selector::Selector;
use podscale_client::clock::Clock;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer is kept at most.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// What was read by one call.
pub(super) type Read = Result<Arc<Usage>, Failure>;

/// Why pods' usage could not be read.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    /// What the source said.
    pub(super) text: Arc<str>,
    /// Whether it may not be read at all.
    pub(super) forbidden: bool,
}

/// What pods use, by namespace.
#[derive(Default)]
pub(super) struct Usage(HashMap<Box<str>, OfNamespace>);

/// What the pods of one namespace use. It is used for seconds, so it must be made quickly.
#[derive(Default)]
struct OfNamespace {
    pods: Vec<Arc<PodMetrics>>,
    /// Each label of each pod as a number, with the pod's place; sorted.
    labels: Vec<(u64, u32)>,
}

impl OfNamespace {
    fn add(&mut self, of_pod: PodMetrics) {
        let place = u32::try_from(self.pods.len()).unwrap_or(u32::MAX);
        let labels = of_pod.metadata.labels.iter();
        self.labels.extend(labels.map(|(key, value)| (label_number(key, value), place)));
        self.pods.push(Arc::new(of_pod));
    }

    fn with_label(&self, label: u64) -> &[(u64, u32)] {
        let first = self.labels.partition_point(|(known, _)| *known < label);
        let rest = self.labels.get(first..).unwrap_or_default();
        rest.get(..rest.partition_point(|(known, _)| *known == label)).unwrap_or_default()
    }

    fn select(&self, selector: &Selector) -> Arc<[Arc<PodMetrics>]> {
        let picked = |pod: &&Arc<PodMetrics>| selector.matches(|key| pod.metadata.labels.get(key));
        let lists = demanded(selector).map(|label| self.with_label(label));
        match lists.min_by_key(|list| list.len()) {
            Some(shortest) => {
                let listed =
                    shortest.iter().filter_map(|(_, place)| self.pods.get(*place as usize));
                listed.filter(picked).cloned().collect()
            }
            None => self.pods.iter().filter(picked).cloned().collect(),
        }
    }
}

/// The answer to a call, sorted while it is read: in a large cluster, twice the list is a lot.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct List {
    api_version: String,
    kind: String,
    items: Items,
}

impl Described for List {
    fn type_meta(&self) -> (&str, &str) {
        (&self.api_version, &self.kind)
    }
}

#[derive(Default)]
struct Items(Usage);

impl List {
    /// What pods use, in the namespace that was asked for if it was one: then they need not say it.
    #[must_use]
    pub(super) fn usage(self, asked: Option<&str>) -> Usage {
        let Items(Usage(mut namespaces)) = self.items;
        if let Some(asked) = asked {
            let mut all = OfNamespace::default();
            for pod in namespaces.drain().flat_map(|(_, here)| here.pods) {
                let mut of_pod = Arc::unwrap_or_clone(pod);
                of_pod.metadata.namespace = asked.into();
                all.add(of_pod);
            }
            namespaces.insert(asked.into(), all);
        }
        for here in namespaces.values_mut() {
            here.labels.sort_unstable();
        }
        Usage(namespaces)
    }
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Items, D::Error> {
        deserializer.deserialize_option(ItemsVisitor)
    }
}

struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Items;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of what pods use")
    }

    fn visit_none<E>(self) -> Result<Items, E> {
        Ok(Items::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Items, D::Error> {
        deserializer.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
        let Items(mut usage) = Items::default();
        while let Some(of_pod) = list.next_element()? {
            usage.add(of_pod);
        }
        Ok(Items(usage))
    }
}

impl Usage {
    fn add(&mut self, of_pod: PodMetrics) {
        match self.0.get_mut(&of_pod.metadata.namespace) {
            Some(known) => known.add(of_pod),
            None => {
                let namespace = of_pod.metadata.namespace.clone();
                self.0.entry(namespace).or_default().add(of_pod);
            }
        }
    }

    /// What the pods of a namespace use that a selector picks.
    #[must_use]
    pub(super) fn of_pods(&self, namespace: &str, selector: &str) -> Arc<[Arc<PodMetrics>]> {
        let Ok(selector) = Selector::parse(selector) else { return Arc::default() };
        self.0.get(namespace).map(|here| here.select(&selector)).unwrap_or_default()
    }
}

/// The answers, and the choice of what to ask.
pub(super) struct Usages {
    clock: Clock,
    by_namespace: Cache<Box<str>, Read>,
    of_all: Cache<(), Read>,
    namespaces: Mutex<Namespaces>,
}

impl Usages {
    /// Nothing is known yet.
    #[must_use]
    pub(super) fn new(clock: Clock) -> Usages {
        Usages {
            clock,
            by_namespace: Cache::new(clock, LONGEST_KEPT),
            of_all: Cache::new(clock, LONGEST_KEPT),
            namespaces: Mutex::new(Namespaces::new(clock.now())),
        }
    }

    /// What the pods of a namespace use; `fetch` reads one namespace, or all if given none.
    pub(super) async fn get<F: Future<Output = Read>>(
        &self,
        namespace: &str,
        max_age: Duration,
        fetch: impl Fn(Option<Box<str>>) -> F,
    ) -> Read {
        if self.namespaces.lock().asks_for_all(namespace, self.clock.now()) {
            let read = self.of_all.get((), max_age, || fetch(None)).await;
            match read {
                Err(failure) if failure.forbidden => {
                    self.namespaces.lock().refuse(self.clock.now());
                }
                read => return read,
            }
        }
        let namespace: Box<str> = namespace.into();
        self.by_namespace.get(namespace.clone(), max_age, || fetch(Some(namespace))).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &serde_json::Value) -> List {
        serde_json::from_value(serde_json::json!({"kind": "PodMetricsList", "items": items}))
            .unwrap()
    }

    #[test]
    fn a_list_may_be_empty_or_missing_but_not_something_else() {
        let none = serde_json::from_str::<List>("{}").unwrap();
        for (what, list) in [("no items", none), ("null", list(&serde_json::Value::Null))] {
            assert!(list.usage(None).of_pods("shop", "app=web").is_empty(), "{what}");
        }
        for items in ["7", "[7]", r#"{"a":1}"#] {
            let text = format!(r#"{{"items":{items}}}"#);
            assert!(serde_json::from_str::<List>(&text).is_err(), "{items}");
        }
    }

    #[test]
    fn pods_are_found_by_label() {
        let pod = |name: &str, labels: &[(&str, &str)]| {
            let mut of_pod = PodMetrics::default();
            of_pod.metadata.name = name.into();
            of_pod.metadata.labels = labels.iter().copied().collect();
            of_pod
        };
        let pods = [
            pod("a", &[("app", "web"), ("tier", "x")]),
            pod("b", &[("app", "db"), ("tier", "x")]),
            pod("c", &[("app", "web")]),
            pod("d", &[]),
        ];
        let usage = list(&serde_json::json!(pods)).usage(Some("shop"));
        for (namespace, selector, expected) in [
            ("shop", "app=web", "ac"),
            ("shop", "app=web,tier=x", "a"),
            ("shop", "tier in (x)", "ab"),
            ("shop", "app!=web", "bd"),
            ("shop", "app=none", ""),
            ("shop", "a b", ""),
            ("else", "app=web", ""),
        ] {
            let found = usage.of_pods(namespace, selector);
            let names: String = found.iter().map(|pod| &*pod.metadata.name).collect();
            assert_eq!(names, expected, "{namespace} {selector}");
        }
    }

    #[tokio::test]
    async fn many_namespaces_are_read_at_once_unless_that_is_forbidden() {
        for forbidden in [false, true] {
            let usages = Usages::new(Clock::wall());
            let asked = Mutex::new(Vec::new());
            for namespace in ["a", "b", "c", "d", "e", "f", "a"] {
                let fetch = async |of: Option<Box<str>>| {
                    asked.lock().push(of.as_deref().unwrap_or("all").to_owned());
                    if of.is_none() && forbidden {
                        return Err(Failure { text: "no".into(), forbidden: true });
                    }
                    Ok(Arc::new(List::default().usage(of.as_deref())))
                };
                let read = usages.get(namespace, Duration::from_secs(60), fetch).await;
                assert!(read.is_ok(), "{namespace}");
            }
            let expected = if forbidden { "a b c d all e f" } else { "a b c d all" };
            assert_eq!(asked.lock().join(" "), expected);
        }
    }
}
