//! Who owns whom, and what follows from it: a pure model of all objects' owner references.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use std::collections::{BTreeMap, BTreeSet};

/// The finalizer that holds an object until its dependents are gone.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer that holds an object until its dependents are let go.
pub const ORPHAN: &str = "orphan";

/// An object as the graph knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// `plural.group`.
    pub kind: String,
    /// Its namespace; empty if it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    owners: Vec<OwnerReference>,
    deleting: bool,
    foreground: bool,
    orphan: bool,
}

impl Item {
    /// An object of a kind, from its metadata.
    #[must_use]
    pub fn new(kind: &str, meta: &ObjectMeta) -> Item {
        let has =
            |finalizer: &str| meta.finalizers.iter().flatten().any(|known| known == finalizer);
        Item {
            kind: kind.to_owned(),
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
            owners: meta.owner_references.clone().unwrap_or_default(),
            deleting: meta.deletion_timestamp.is_some(),
            foreground: has(FOREGROUND),
            orphan: has(ORPHAN),
        }
    }

    fn waits_for_dependents(&self) -> bool {
        self.deleting && self.foreground
    }
}

/// What is to be done about an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing.
    Nothing,
    /// Find out whether these owners, unknown to the graph, exist; then ask again.
    Verify(Vec<OwnerReference>),
    /// Drop the references to these owners.
    Unlink(Vec<String>),
    /// Delete it and let its dependents follow.
    Delete,
    /// Delete it after its dependents.
    DeleteInForeground,
    /// Let these dependents go, then take off the finalizer that waits for it.
    Orphan(Vec<String>),
    /// Take off the finalizer: no dependent holds it any more.
    Finish,
    /// Look at these dependents, which hold it.
    Await(Vec<String>),
}

/// All objects by uid, with their dependents.
#[derive(Debug, Default)]
pub struct Graph {
    items: BTreeMap<String, Item>,
    dependents: BTreeMap<String, BTreeSet<String>>,
    /// Owners that are known not to exist.
    absent: BTreeSet<String>,
}

impl Graph {
    /// Takes in an object as it is now, or its end; returns the uids of those to enqueue.
    pub fn observe(&mut self, uid: &str, new: Option<Item>) -> Vec<String> {
        let old = match &new {
            Some(item) => self.items.insert(uid.to_owned(), item.clone()),
            None => self.items.remove(uid),
        };
        if old == new {
            return Vec::new();
        }
        for owner in old.iter().flat_map(|old| &old.owners) {
            if let Some(dependents) = self.dependents.get_mut(&owner.uid) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(&owner.uid);
                }
            }
        }
        for owner in new.iter().flat_map(|new| &new.owners) {
            self.dependents.entry(owner.uid.clone()).or_default().insert(uid.to_owned());
        }
        let mut concerned = Vec::new();
        // Owners that wait for their dependents may be able to go on.
        let owners = old.iter().flat_map(|old| &old.owners);
        let waiting = owners
            .filter(|owner| self.items.get(&owner.uid).is_some_and(Item::waits_for_dependents));
        concerned.extend(waiting.map(|owner| owner.uid.clone()));
        match &new {
            Some(item) => {
                self.absent.remove(uid);
                if item.deleting || !item.owners.is_empty() {
                    concerned.push(uid.to_owned());
                }
            }
            None => {
                self.absent.insert(uid.to_owned());
                if self.absent.len() > 10_000 {
                    self.absent.pop_first();
                }
                concerned.extend(self.dependents.get(uid).into_iter().flatten().cloned());
            }
        }
        concerned
    }

    /// Notes that an owner does not exist.
    pub fn is_absent(&mut self, uid: &str) {
        if !self.items.contains_key(uid) {
            self.absent.insert(uid.to_owned());
        }
    }

    /// The object of a uid.
    #[must_use]
    pub fn item(&self, uid: &str) -> Option<&Item> {
        self.items.get(uid)
    }

    /// The uids of all objects of a kind.
    #[must_use]
    pub fn of_kind(&self, kind: &str) -> Vec<String> {
        let own = self.items.iter().filter(|(_, item)| item.kind == kind);
        own.map(|(uid, _)| uid.clone()).collect()
    }

    /// How many objects there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// What is to be done about an object.
    #[must_use]
    pub fn decide(&self, uid: &str) -> Action {
        let Some(item) = self.items.get(uid) else { return Action::Nothing };
        let dependents = || self.dependents.get(uid).into_iter().flatten();
        if item.deleting && item.orphan {
            return Action::Orphan(dependents().cloned().collect());
        }
        if item.waits_for_dependents() {
            let blocking: Vec<String> =
                dependents().filter(|dependent| self.blocks(dependent, uid)).cloned().collect();
            return if blocking.is_empty() { Action::Finish } else { Action::Await(blocking) };
        }
        if item.deleting || item.owners.is_empty() {
            return Action::Nothing;
        }
        let (mut solid, mut gone, mut unknown, mut waiting) = (0_usize, vec![], vec![], false);
        for owner in &item.owners {
            match self.items.get(&owner.uid) {
                // A reference across namespaces points nowhere.
                Some(known) if !known.namespace.is_empty() && known.namespace != item.namespace => {
                    gone.push(owner.uid.clone());
                }
                Some(known) if known.waits_for_dependents() && blocks(owner) => {
                    waiting = true;
                    gone.push(owner.uid.clone());
                }
                Some(_) => solid += 1,
                None if self.absent.contains(&owner.uid) => gone.push(owner.uid.clone()),
                None => unknown.push(owner.clone()),
            }
        }
        if !unknown.is_empty() {
            return Action::Verify(unknown);
        }
        match (solid, gone.is_empty()) {
            (_, true) => Action::Nothing,
            (0, false) if waiting && dependents().next().is_some() => Action::DeleteInForeground,
            (0, false) => Action::Delete,
            (_, false) => Action::Unlink(gone),
        }
    }

    fn blocks(&self, dependent: &str, owner: &str) -> bool {
        let owners = self.items.get(dependent).into_iter().flat_map(|item| &item.owners);
        owners.into_iter().any(|reference| reference.uid == owner && blocks(reference))
    }
}

fn blocks(owner: &OwnerReference) -> bool {
    owner.block_owner_deletion == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// An object from words: `a<b,!c deleting foreground orphan`: owned by b and, holding it, by c.
    fn object(words: &str) -> (String, Item) {
        let mut words = words.split(' ');
        let head = words.next().unwrap();
        let (uid, owners) = head.split_once('<').unwrap_or((head, ""));
        let owners: Vec<_> = owners.split(',').filter(|owner| !owner.is_empty()).collect();
        let owners: Vec<_> = owners
            .iter()
            .map(|owner| {
                let name = owner.trim_start_matches('!');
                json!({"apiVersion": "v1", "kind": "X", "name": name, "uid": name,
                    "blockOwnerDeletion": owner.starts_with('!')})
            })
            .collect();
        let mut meta = json!({"namespace": "a", "name": uid, "ownerReferences": owners,
            "finalizers": []});
        for word in words {
            match word {
                "deleting" => meta["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
                "foreground" => meta["finalizers"] = json!([FOREGROUND]),
                "orphan" => meta["finalizers"] = json!([ORPHAN]),
                namespace => meta["namespace"] = json!(namespace),
            }
        }
        let meta: ObjectMeta = serde_json::from_value(meta).unwrap();
        (uid.to_owned(), Item::new("xs.", &meta))
    }

    fn graph(objects: &[&str]) -> Graph {
        let mut graph = Graph::default();
        for words in objects {
            let (uid, item) = object(words);
            graph.observe(&uid, Some(item));
        }
        graph.is_absent("gone");
        graph
    }

    #[test]
    fn decides_by_owners_and_dependents() {
        let list = |uids: &[&str]| uids.iter().map(|uid| (*uid).to_owned()).collect::<Vec<_>>();
        let cases: &[(&str, &[&str], Action)] = &[
            ("no owner", &["x"], Action::Nothing),
            ("a living owner", &["o", "x<o"], Action::Nothing),
            ("a dead owner", &["x<gone"], Action::Delete),
            ("one dead, one living", &["o", "x<o,gone"], Action::Unlink(list(&["gone"]))),
            ("owner in another namespace", &["o b", "x<o"], Action::Delete),
            ("already on its way", &["x<gone deleting"], Action::Nothing),
            ("owner waits for it", &["o deleting foreground", "x<!o"], Action::Delete),
            ("owner waits, not for it", &["o deleting foreground", "x<o"], Action::Nothing),
            (
                "owner waits, it has dependents",
                &["o deleting foreground", "x<!o", "y<x"],
                Action::DeleteInForeground,
            ),
            (
                "owner waits, another lives",
                &["o deleting foreground", "p", "x<!o,p"],
                Action::Unlink(list(&["o"])),
            ),
            (
                "waits for dependents",
                &["x deleting foreground", "y<!x", "z<x"],
                Action::Await(list(&["y"])),
            ),
            ("waits for nobody", &["x deleting foreground", "z<x"], Action::Finish),
            ("lets go", &["x deleting orphan", "y<!x", "z<x"], Action::Orphan(list(&["y", "z"]))),
            ("nobody to let go", &["x deleting orphan"], Action::Orphan(vec![])),
        ];
        for (name, objects, expected) in cases {
            assert_eq!(graph(objects).decide("x"), *expected, "{name}");
        }
        let unknown = graph(&["x<new"]).decide("x");
        assert!(
            matches!(&unknown, Action::Verify(owners) if owners[0].uid == "new"),
            "{unknown:?}"
        );
    }

    #[test]
    fn tells_whom_a_change_concerns() {
        let mut graph = graph(&["o", "x<!o", "y<o"]);
        assert_eq!(graph.observe("o", None), ["x", "y"]);
        assert_eq!(graph.decide("x"), Action::Delete);
        assert_eq!(graph.observe("x", None), [""; 0]);
        let (uid, item) = object("o deleting foreground");
        assert_eq!(graph.observe(&uid, Some(item)), ["o"]);
        let (uid, item) = object("z<!o");
        assert_eq!(graph.observe(&uid, Some(item.clone())), ["z"]);
        assert_eq!(graph.observe(&uid, Some(item)), [""; 0], "nothing changed");
        assert_eq!(graph.observe("z", None), ["o"]);
        assert_eq!(graph.decide("o"), Action::Finish);
        assert_eq!(graph.len(), 2);
    }
}
