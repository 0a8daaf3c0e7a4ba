//! The form that all of Prometheus' answers have: a status, data, warnings.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// How many warnings and remarks are kept; they are for people.
const MOST_NOTES: usize = 20;

/// How much is read at most, and whether it would have been more.
#[derive(Clone, Copy)]
pub(super) struct Limit<'a> {
    pub(super) most: usize,
    pub(super) exceeded: &'a Cell<bool>,
}

impl Limit<'_> {
    /// Ends the reading if there are too many.
    pub(super) fn check<E: serde::de::Error>(&self, count: usize) -> Result<(), E> {
        if count > self.most {
            self.exceeded.set(true);
            return Err(E::custom("too many series"));
        }
        Ok(())
    }
}

/// Data that can be read within a limit.
pub(super) trait Reads: Sized {
    /// Reads it.
    fn read<'de, D: Deserializer<'de>>(deserializer: D, limit: Limit<'_>)
    -> Result<Self, D::Error>;
}

/// Data with what Prometheus says about it.
pub(super) struct Envelope<T> {
    pub(super) data: T,
    pub(super) warnings: Vec<Arc<str>>,
    pub(super) infos: Vec<Arc<str>>,
}

/// Everything that may stand in an answer.
pub(super) struct RawEnvelope<T> {
    pub(super) status: Option<Arc<str>>,
    pub(super) data: Option<T>,
    pub(super) error_type: Option<Arc<str>>,
    pub(super) error: Option<Arc<str>>,
    pub(super) warnings: Vec<Arc<str>>,
    pub(super) infos: Vec<Arc<str>>,
    /// Some stores that speak Prometheus' API mark answers that lack a part.
    pub(super) partial: bool,
}

/// Reads an answer with this kind of data.
pub(super) fn seed<T: Reads>(limit: Limit<'_>) -> EnvelopeSeed<'_, T> {
    EnvelopeSeed(limit, PhantomData)
}

pub(super) struct EnvelopeSeed<'a, T>(Limit<'a>, PhantomData<T>);

impl<'de, T: Reads> DeserializeSeed<'de> for EnvelopeSeed<'_, T> {
    type Value = RawEnvelope<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Reads> Visitor<'de> for EnvelopeSeed<'_, T> {
    type Value = RawEnvelope<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a status")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEnvelope<T>, A::Error> {
        let mut raw = RawEnvelope {
            status: None,
            data: None,
            error_type: None,
            error: None,
            warnings: Vec::new(),
            infos: Vec::new(),
            partial: false,
        };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "status" => raw.status = map.next_value()?,
                "data" => raw.data = map.next_value_seed(DataSeed(self.0, PhantomData))?,
                "errorType" => raw.error_type = map.next_value()?,
                "error" => raw.error = map.next_value()?,
                "warnings" => raw.warnings = notes(map.next_value()?),
                "infos" => raw.infos = notes(map.next_value()?),
                "isPartial" => raw.partial = map.next_value::<Option<bool>>()?.unwrap_or(false),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(raw)
    }
}

fn notes(list: Option<Vec<Arc<str>>>) -> Vec<Arc<str>> {
    let mut list = list.unwrap_or_default();
    list.truncate(MOST_NOTES);
    list
}

struct DataSeed<'a, T>(Limit<'a>, PhantomData<T>);

impl<'de, T: Reads> DeserializeSeed<'de> for DataSeed<'_, T> {
    type Value = Option<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, T: Reads> Visitor<'de> for DataSeed<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("data")
    }

    fn visit_none<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<T>, D::Error> {
        T::read(deserializer, self.0).map(Some)
    }
}
