//! Of a pod's annotations only its deletion cost is kept: most pods have others, and large ones.

use std::fmt;

use podscale_core::deletion_cost::Cost;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The annotation by which Kubernetes' controllers choose which pods to remove.
pub const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation that holds the same value if it was us who set it.
pub const OWN_DELETION_COST: &str = "podscale.dev/deletion-cost";

/// What a pod's annotations say about its deletion cost. Nearly all say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeletionCost(Option<Box<Annotated>>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Annotated {
    cost: Option<Box<str>>,
    ours: Option<Box<str>>,
}

impl DeletionCost {
    /// Whether they say nothing.
    #[must_use]
    pub fn is_unset(&self) -> bool {
        self.0.is_none()
    }

    /// What it is, and who set it. What others wrote over ours is theirs; what is not a number counts as
    /// zero, as for Kubernetes.
    #[must_use]
    pub fn cost(&self) -> Cost {
        let Some(Annotated { cost: Some(cost), ours }) = self.0.as_deref() else {
            return Cost::Unset;
        };
        let value = cost.parse().unwrap_or(0);
        if ours.as_ref() == Some(cost) { Cost::Ours(value) } else { Cost::Others(value) }
    }
}

impl Serialize for DeletionCost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(Annotated { cost, ours }) = self.0.as_deref() {
            for (name, value) in [(DELETION_COST, cost), (OWN_DELETION_COST, ours)] {
                if let Some(value) = value {
                    map.serialize_entry(name, value)?;
                }
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for DeletionCost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeletionCost, D::Error> {
        deserializer.deserialize_any(AnnotationsVisitor)
    }
}

/// The name of an annotation.
enum Name {
    Cost,
    Ours,
    Other,
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of an annotation")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(match name {
            DELETION_COST => Name::Cost,
            OWN_DELETION_COST => Name::Ours,
            _ => Name::Other,
        })
    }
}

struct AnnotationsVisitor;

impl<'de> Visitor<'de> for AnnotationsVisitor {
    type Value = DeletionCost;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("annotations")
    }

    fn visit_unit<E>(self) -> Result<DeletionCost, E> {
        Ok(DeletionCost::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeletionCost, A::Error> {
        let mut found: Option<Box<Annotated>> = None;
        while let Some(name) = map.next_key()? {
            match name {
                Name::Cost => found.get_or_insert_default().cost = map.next_value()?,
                Name::Ours => found.get_or_insert_default().ours = map.next_value()?,
                Name::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(DeletionCost(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::Pod;
    use serde_json::{Value, json};

    #[test]
    fn it_is_known_who_set_it() {
        let pod = |annotations: Value| -> Pod {
            let pod = json!({"metadata": {"name": "a", "annotations": annotations}});
            serde_json::from_value(pod).expect("a pod")
        };
        for (annotations, cost) in [
            (json!(null), Cost::Unset),
            (json!({}), Cost::Unset),
            (json!({"a": "b", "c": ""}), Cost::Unset),
            (json!({DELETION_COST: "7"}), Cost::Others(7)),
            (json!({DELETION_COST: "-7", OWN_DELETION_COST: "-7", "a": "b"}), Cost::Ours(-7)),
            (json!({DELETION_COST: "8", OWN_DELETION_COST: "-7"}), Cost::Others(8)),
            (json!({OWN_DELETION_COST: "-7"}), Cost::Unset),
            (json!({DELETION_COST: "much"}), Cost::Others(0)),
            (json!({DELETION_COST: null}), Cost::Unset),
        ] {
            let pod = pod(annotations.clone());
            assert_eq!(pod.metadata.deletion_cost.cost(), cost, "{annotations}");
            let again = serde_json::to_value(&pod).expect("JSON");
            let again: Pod = serde_json::from_value(again).expect("a pod");
            assert_eq!(again.metadata.deletion_cost.cost(), cost, "{annotations}");
        }
        assert_eq!(
            serde_json::to_value(pod(json!({"a": "b"}))).expect("JSON")["metadata"],
            json!({"name": "a"})
        );
    }
}
