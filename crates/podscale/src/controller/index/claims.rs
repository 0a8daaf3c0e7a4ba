//! Which objects scale which targets, so that two that scale the same one are noticed, of whatever kinds
//! they are and whether they are managed here or not.
//!
//! A native object never gives way: another controller may be the one that manages it, and does not know
//! of ours. Of the other kinds, the oldest object scales the target.

use crate::dialect::{Key, Kind, Managed};
use podscale_api::time::Timestamp;
use podscale_client::watch::{Change, Presence};
use podscale_core::Autoscaler;
use podscale_core::model::TargetRef;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The targets of all objects.
#[derive(Default)]
pub(super) struct Claims {
    /// By a number of the target; two targets that share one are told apart by their names.
    by_target: HashMap<u64, Vec<Claim>>,
    by_key: HashMap<Key, u64>,
}

/// An object and its target.
struct Claim {
    key: Key,
    model: Arc<Autoscaler>,
    created: Option<Timestamp>,
}

impl Claims {
    /// Takes in a change of the objects of one kind, managed here or not.
    pub(super) fn apply(&mut self, kind: &'static Kind, change: &Change<Managed>) {
        match change {
            Change::All(all) => {
                let there: HashSet<&Key> = all.iter().map(|managed| &managed.key).collect();
                let left = |key: &&Key| key.kind == kind && !there.contains(key);
                let left: Vec<Key> = self.by_key.keys().filter(left).cloned().collect();
                left.iter().for_each(|key| self.remove(key));
                all.iter().for_each(|managed| self.put(managed));
            }
            Change::Applied(managed) => self.put(managed),
            Change::Deleted(managed) => self.remove(&managed.key),
        }
    }

    /// The object to which this one has to leave its target, if any.
    pub(super) fn prior(&self, key: &Key) -> Option<&Key> {
        if is_native(key) {
            return None;
        }
        let claims = self.by_target.get(self.by_key.get(key)?)?;
        let own = claims.iter().find(|claim| claim.key == *key)?;
        let same = |claim: &&Claim| same_target(&claim.model.target, &own.model.target);
        let others =
            claims.iter().filter(same).filter(|claim| claim.key.namespace == key.namespace);
        let first =
            others.min_by_key(|claim| (!is_native(&claim.key), claim.created, &claim.key))?;
        (first.key != *key).then_some(&first.key)
    }

    fn put(&mut self, managed: &Managed) {
        let (key, model) = (&managed.key, &managed.model);
        let target = number(&key.namespace, &model.target);
        // Most changes are of the status alone.
        if self.by_key.get(key) == Some(&target) {
            return;
        }
        self.remove(key);
        let (key, created) = (key.clone(), managed.metadata().creation_timestamp);
        self.by_key.insert(key.clone(), target);
        let claims = self.by_target.entry(target).or_insert_with(|| Vec::with_capacity(1));
        claims.push(Claim { key, model: Arc::clone(model), created });
    }

    fn remove(&mut self, key: &Key) {
        let Some(target) = self.by_key.remove(key) else { return };
        if let Some(claims) = self.by_target.get_mut(&target) {
            claims.retain(|claim| claim.key != *key);
            if claims.is_empty() {
                self.by_target.remove(&target);
            }
        }
    }
}

fn is_native(key: &Key) -> bool {
    key.kind.presence == Presence::Always
}

/// Versions of a group are forms of the same objects.
fn group(target: &TargetRef) -> &str {
    target.api_version.split_once('/').map_or("", |(group, _)| group)
}

fn same_target(one: &TargetRef, other: &TargetRef) -> bool {
    one.kind == other.kind && one.name == other.name && group(one) == group(other)
}

fn number(namespace: &str, target: &TargetRef) -> u64 {
    let mut hasher = DefaultHasher::new();
    (namespace, group(target), &target.kind, &target.name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::hpa::{HPA, managed};
    use serde_json::json;

    static OTHER: Kind = Kind {
        name: "Other",
        api_version: "test.podscale.dev/v1",
        plural: "others",
        resource: "others.test.podscale.dev",
        presence: Presence::Optional,
    };

    fn object(kind: &'static Kind, name: &str, created: u32, target: &str) -> Managed {
        let (version, target) = target.split_once(' ').expect("a version and a name");
        let object = json!({"metadata": {"name": name, "namespace": "shop",
            "creationTimestamp": format!("2026-01-01T00:00:{created:02}Z")},
            "spec": {"maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": version, "kind": "Deployment", "name": target}}});
        let mut object = managed(serde_json::from_value(object).expect("an autoscaler"));
        object.key.kind = kind;
        object
    }

    #[test]
    fn natives_come_first_then_the_oldest() {
        let mut claims = Claims::default();
        let (native, old, new) = (
            object(&HPA, "native", 9, "apps/v1 web"),
            object(&OTHER, "old", 1, "apps/v1 web"),
            object(&OTHER, "new", 2, "apps/v1beta1 web"),
        );
        let elsewhere = object(&OTHER, "elsewhere", 0, "apps/v1 db");
        let foreign = object(&OTHER, "foreign", 0, "example.com/v1 web");
        let others = vec![old.clone(), new.clone(), elsewhere.clone(), foreign.clone()];
        claims.apply(&OTHER, &Change::All(others));
        let prior = |claims: &Claims, object: &Managed| {
            claims.prior(&object.key).map_or_else(|| "-".to_owned(), |key| key.name.to_string())
        };
        assert_eq!(prior(&claims, &old), "-");
        assert_eq!(prior(&claims, &new), "old");
        assert_eq!(
            (prior(&claims, &elsewhere), prior(&claims, &foreign)),
            ("-".into(), "-".into())
        );
        claims.apply(&HPA, &Change::Applied(native.clone()));
        assert_eq!(
            (prior(&claims, &old), prior(&claims, &new)),
            ("native".into(), "native".into())
        );
        assert_eq!(prior(&claims, &native), "-", "a native one never gives way");
        claims.apply(&HPA, &Change::All(Vec::new()));
        claims.apply(&OTHER, &Change::Applied(object(&OTHER, "old", 1, "apps/v1 db")));
        assert_eq!((prior(&claims, &old), prior(&claims, &new)), ("elsewhere".into(), "-".into()));
        claims.apply(&OTHER, &Change::Deleted(elsewhere));
        claims.apply(&OTHER, &Change::All(Vec::new()));
        assert!(claims.by_target.is_empty() && claims.by_key.is_empty());
    }
}
