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
