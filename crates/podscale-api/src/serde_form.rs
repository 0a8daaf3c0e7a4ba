//! How the wire forms of Kubernetes treat absent, empty and null fields.

use serde::de::{Deserialize, Deserializer};

/// Reads `null` as the default value, as Go does for lists, maps and plain values.
pub(crate) fn null_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Whether a number is left out because it is zero.
pub(crate) fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}

/// Whether a list that may be absent has nothing to write.
pub(crate) fn is_none_or_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}
