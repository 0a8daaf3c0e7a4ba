//! How the wire forms of Kubernetes treat absent, empty and null fields.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

/// Reads `null` as the default value, as Go does for lists, maps and plain values.
pub(crate) fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads a list, `null` as an empty one, and keeps no room for more: objects stay for long, and most
/// of their lists have one element.
pub(crate) fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    optional_list(deserializer).map(Option::unwrap_or_default)
}

/// Reads a list as [`list`] does, but distinguishes `null` from an empty one.
pub(crate) fn optional_list<'de, D, T>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let mut list = Option::<Vec<T>>::deserialize(deserializer)?;
    if let Some(list) = &mut list {
        list.shrink_to_fit();
    }
    Ok(list)
}

/// Whether a number is left out because it is zero.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Writes an empty list as `null`, as Go does with one that was never set.
pub(crate) fn null_if_empty<S: Serializer, T: Serialize>(
    list: &[T],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if list.is_empty() { serializer.serialize_none() } else { list.serialize(serializer) }
}

/// Whether a list that may be absent has nothing to write.
pub(crate) fn is_none_or_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}
