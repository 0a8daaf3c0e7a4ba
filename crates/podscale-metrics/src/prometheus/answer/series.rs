//! Lists of series, of which only the names and those of their labels are kept.

use super::envelope::{Limit, Reads};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::Arc;

/// A series without the values of its labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesShape {
    /// Its name; empty if it has none.
    pub name: Arc<str>,
    /// The names of its labels, sorted.
    pub labels: Arc<[Arc<str>]>,
}

/// All shapes of an answer: of the many series with the same labels one is left.
#[derive(Default)]
pub(super) struct Shapes {
    found: BTreeSet<SeriesShape>,
    words: HashSet<Arc<str>>,
}

impl Shapes {
    pub(super) fn into_sorted(self) -> Vec<SeriesShape> {
        self.found.into_iter().collect()
    }

    fn word(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.words.get(word) {
            return Arc::clone(known);
        }
        let new: Arc<str> = word.into();
        self.words.insert(Arc::clone(&new));
        new
    }
}

impl Reads for Shapes {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        limit: Limit<'_>,
    ) -> Result<Shapes, D::Error> {
        deserializer.deserialize_seq(ShapesVisitor(limit))
    }
}

struct ShapesVisitor<'a>(Limit<'a>);

impl<'de> Visitor<'de> for ShapesVisitor<'_> {
    type Value = Shapes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of series")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shapes, A::Error> {
        let mut shapes = Shapes::default();
        while list.next_element_seed(SeriesSeed(&mut shapes))?.is_some() {
            self.0.check(shapes.found.len())?;
        }
        Ok(shapes)
    }
}

struct SeriesSeed<'a>(&'a mut Shapes);

impl<'de> DeserializeSeed<'de> for SeriesSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for SeriesSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the labels of a series")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut name = String::new();
        let mut labels = Vec::new();
        while let Some(label) = map.next_key::<String>()? {
            if label == "__name__" {
                name = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
                labels.push(self.0.word(&label));
            }
        }
        labels.sort_unstable();
        let name = self.0.word(&name);
        self.0.found.insert(SeriesShape { name, labels: labels.into() });
        Ok(())
    }
}
