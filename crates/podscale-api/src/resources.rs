//! Amounts of resources by name: what containers request, are limited to, and use.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::quantity::Quantity;

/// A resource's name; the everyday ones take no memory of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Cow<'static, str>);

/// Amounts by resource, sorted by name, each name once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(Vec<(ResourceName, Quantity)>);

impl ResourceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        ResourceName(match name {
            "cpu" => Cow::Borrowed("cpu"),
            "memory" => Cow::Borrowed("memory"),
            "ephemeral-storage" => Cow::Borrowed("ephemeral-storage"),
            other => Cow::Owned(other.into()),
        })
    }
}

impl ResourceList {
    /// The amount of a resource.
    pub fn get(&self, name: &str) -> Option<&Quantity> {
        self.0.iter().find(|(known, _)| known.as_str() == name).map(|(_, amount)| amount)
    }

    /// Sets the amount of a resource.
    pub fn insert(&mut self, name: impl Into<ResourceName>, amount: Quantity) {
        let name = name.into();
        match self.0.binary_search_by(|(known, _)| known.cmp(&name)) {
            Ok(at) => self.0[at].1 = amount,
            Err(at) => self.0.insert(at, (name, amount)),
        }
    }

    /// All resources with their amounts, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Quantity)> {
        self.0.iter().map(|(name, amount)| (name.as_str(), amount))
    }

    /// Gives up room for more.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<ResourceName>> FromIterator<(N, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (N, Quantity)>>(items: I) -> Self {
        let mut list = ResourceList::default();
        for (name, amount) in items {
            list.insert(name, amount);
        }
        list
    }
}

impl Serialize for ResourceList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for ResourceList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ListVisitor)
    }
}

impl<'de> Deserialize<'de> for ResourceName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = ResourceList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from resource names to quantities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ResourceList, A::Error> {
        let mut list = ResourceList::default();
        while let Some((name, amount)) = map.next_entry::<ResourceName, Quantity>()? {
            list.insert(name, amount);
        }
        list.shrink_to_fit();
        Ok(list)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = ResourceName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a resource")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<ResourceName, E> {
        Ok(name.into())
    }
}
