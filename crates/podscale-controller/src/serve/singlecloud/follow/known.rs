//! What is known of autoscalers and workloads, and what follows from it. Pure.

use podscale_api::singlecloud::{Alias, TARGET_KINDS};
use podscale_client::watch::Change;
use std::collections::BTreeMap;

/// A namespace and a name.
pub(super) type Key = (String, String);

/// An autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tracked {
    /// Which object it is.
    pub(super) uid: String,
    /// The kind of its workload, if it is to go with that.
    pub(super) kind: Option<&'static str>,
    /// The name of its workload.
    pub(super) target: String,
    /// Which object the workload was when the autoscaler was made, if that is known.
    pub(super) target_uid: Option<String>,
    /// Whether the workload was seen to go.
    pub(super) target_gone: bool,
    /// The metrics that it names by labels.
    pub(super) aliases: Vec<Alias>,
}

/// An autoscaler whose workload seems to be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) kind: &'static str,
    pub(super) target: String,
    /// Which object the workload was; none if it was seen to go.
    pub(super) target_uid: Option<String>,
}

/// What is known.
#[derive(Debug, Default)]
pub(super) struct Known {
    autoscalers: BTreeMap<Key, Tracked>,
    /// Which object a workload is, by its kind; none while the kind is not listed yet.
    workloads: BTreeMap<&'static str, BTreeMap<Key, String>>,
    /// Whether rules are kept elsewhere, and must be removed there.
    keeps_rules: bool,
    released: Vec<Alias>,
}

impl Known {
    /// Nothing is known yet.
    pub(super) fn new(keeps_rules: bool) -> Known {
        Known { keeps_rules, ..Known::default() }
    }

    /// Takes in what became of autoscalers.
    pub(super) fn autoscalers(&mut self, change: Change<(Key, Tracked)>) {
        match change {
            Change::All(all) => {
                let mut before = std::mem::take(&mut self.autoscalers);
                for (key, tracked) in all {
                    let old = before.remove(&key);
                    self.put(key, tracked, old);
                }
                for gone in before.into_values() {
                    self.release(&gone.aliases, &[]);
                }
            }
            Change::Applied((key, tracked)) => {
                let old = self.autoscalers.remove(&key);
                self.put(key, tracked, old);
            }
            Change::Deleted((key, last)) => {
                let known = self.autoscalers.remove(&key).unwrap_or(last);
                self.release(&known.aliases, &[]);
            }
        }
    }

    fn put(&mut self, key: Key, mut tracked: Tracked, old: Option<Tracked>) {
        if let Some(old) = old {
            let same = old.uid == tracked.uid && old.target == tracked.target;
            tracked.target_gone = same && old.target_gone && old.kind == tracked.kind;
            self.release(&old.aliases, &tracked.aliases);
        }
        self.autoscalers.insert(key, tracked);
    }

    fn release(&mut self, old: &[Alias], kept: &[Alias]) {
        if self.keeps_rules {
            let gone = old.iter().filter(|alias| !kept.contains(alias));
            self.released.extend(gone.cloned());
        }
    }

    /// Takes in what became of the workloads of a kind.
    pub(super) fn workloads(&mut self, kind: &'static str, change: Change<(Key, String)>) {
        let known = self.workloads.entry(kind).or_default();
        match change {
            Change::All(all) => {
                let mut before = std::mem::replace(known, all.into_iter().collect());
                before.retain(|key, _| !known.contains_key(key));
                before.keys().for_each(|key| self.gone(kind, key));
            }
            Change::Applied((key, uid)) => {
                known.insert(key, uid);
            }
            Change::Deleted((key, _)) => {
                known.remove(&key);
                self.gone(kind, &key);
            }
        }
    }

    /// Those that do not say which object their workload was go with the one that was seen to go.
    fn gone(&mut self, kind: &'static str, (namespace, target): &Key) {
        let here = self.autoscalers.iter_mut().filter(|((place, _), _)| place == namespace);
        for (_, tracked) in here {
            if tracked.kind == Some(kind)
                && tracked.target == *target
                && tracked.target_uid.is_none()
            {
                tracked.target_gone = true;
            }
        }
    }

    /// Every metric that an autoscaler names by labels, in a steady order.
    pub(super) fn aliases(&self) -> Vec<Alias> {
        self.autoscalers.values().flat_map(|tracked| tracked.aliases.iter().cloned()).collect()
    }

    /// Rules that nobody needs any more.
    pub(super) fn released(&self) -> Vec<Alias> {
        self.released.clone()
    }

    /// These are removed.
    pub(super) fn settled(&mut self, removed: &[Alias]) {
        self.released.retain(|alias| !removed.contains(alias));
    }

    /// Autoscalers whose workloads seem to be gone.
    pub(super) fn orphans(&self) -> Vec<Orphan> {
        let orphan = |((namespace, name), tracked): (&Key, &Tracked)| {
            let kind = tracked.kind?;
            let workloads = self.workloads.get(kind)?;
            let key = (namespace.clone(), tracked.target.clone());
            let lost =
                tracked.target_uid.as_ref().is_some_and(|uid| workloads.get(&key) != Some(uid));
            (lost || tracked.target_gone).then(|| Orphan {
                namespace: namespace.clone(),
                name: name.clone(),
                uid: tracked.uid.clone(),
                kind,
                target: tracked.target.clone(),
                target_uid: tracked.target_uid.clone().filter(|_| !tracked.target_gone),
            })
        };
        debug_assert!(self.workloads.keys().all(|kind| TARGET_KINDS.contains(kind)));
        self.autoscalers.iter().filter_map(orphan).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_api::Labels;

    fn key(name: &str) -> Key {
        ("shop".to_owned(), name.to_owned())
    }

    fn alias(metric: &str) -> Alias {
        let [metric, namespace, autoscaler] = [metric, "shop", "a"].map(str::to_owned);
        Alias { metric, labels: Labels::default(), namespace, autoscaler }
    }

    fn tracked(target_uid: Option<&str>, metrics: &[&str]) -> Tracked {
        Tracked {
            uid: "1".to_owned(),
            kind: Some("deployment"),
            target: "web".to_owned(),
            target_uid: target_uid.map(str::to_owned),
            target_gone: false,
            aliases: metrics.iter().map(|metric| alias(metric)).collect(),
        }
    }

    fn orphans(known: &Known) -> Vec<String> {
        known.orphans().into_iter().map(|orphan| orphan.name).collect()
    }

    #[test]
    fn an_autoscaler_goes_with_the_workload_it_was_made_for() {
        let mut known = Known::new(false);
        let web = |uid: &str| (key("web"), uid.to_owned());
        known.autoscalers(Change::All(vec![
            (key("a"), tracked(Some("w1"), &[])),
            (key("b"), tracked(None, &[])),
            (key("c"), Tracked { kind: None, ..tracked(Some("w1"), &[]) }),
        ]));
        assert!(orphans(&known).is_empty(), "workloads are not listed yet");
        known.workloads("deployment", Change::All(vec![web("w1")]));
        assert!(orphans(&known).is_empty());
        known.workloads("deployment", Change::Applied(web("w2")));
        assert_eq!(orphans(&known), ["a"], "it is another one now");
        known.workloads("deployment", Change::Applied(web("w1")));
        known.workloads("deployment", Change::Deleted(web("w1")));
        assert_eq!(orphans(&known), ["a", "b"]);
        known.autoscalers(Change::Applied((key("b"), tracked(None, &["qps"]))));
        assert_eq!(orphans(&known), ["a", "b"], "a new status does not make it forget");
        known.autoscalers(Change::Deleted((key("a"), tracked(Some("w1"), &[]))));
        let again = Tracked { uid: "2".to_owned(), ..tracked(None, &[]) };
        known.autoscalers(Change::Applied((key("b"), again)));
        assert!(orphans(&known).is_empty(), "those are gone");
        known.workloads("deployment", Change::All(vec![web("w3")]));
        known.workloads("deployment", Change::All(Vec::new()));
        assert_eq!(orphans(&known), ["b"], "nobody saw it go, but it is not there any more");
        let again = Tracked { uid: "3".to_owned(), ..tracked(None, &[]) };
        known.autoscalers(Change::Applied((key("b"), again)));
        known.workloads("statefulset", Change::Deleted(web("w9")));
        assert!(orphans(&known).is_empty(), "another kind");
    }

    #[test]
    fn rules_are_released_with_those_who_need_them() {
        let mut known = Known::new(true);
        known.autoscalers(Change::All(vec![(key("a"), tracked(None, &["x", "y"]))]));
        assert_eq!(known.aliases(), [alias("x"), alias("y")]);
        known.autoscalers(Change::Applied((key("a"), tracked(None, &["y", "z"]))));
        assert_eq!(known.released(), [alias("x")]);
        known.autoscalers(Change::All(Vec::new()));
        assert_eq!(known.released(), [alias("x"), alias("y"), alias("z")]);
        known.settled(&[alias("x"), alias("z")]);
        assert_eq!(known.released(), [alias("y")]);
        let mut served = Known::new(false);
        served.autoscalers(Change::Deleted((key("a"), tracked(None, &["x"]))));
        assert!(served.released().is_empty(), "what is served here goes by itself");
    }
}
