//! Autoscalers of the versions that are not stored: all are stored as version 2.

use podscale_api::hpa::convert::{self, Version};
use serde_json::Value;

use crate::value::{default as default_value, section};

/// The versions that only servers of before had, the preferred first.
pub(crate) const REMOVED: [Version; 2] = [Version::V2beta1, Version::V2beta2];

/// A stored autoscaler in another version.
pub(crate) fn from_v2(object: Value, version: Version) -> Value {
    let read = convert::as_written(&object).and_then(|hpa| convert::write(&hpa, version));
    // Stored objects have been through the decoder of version 2, so they convert.
    read.unwrap_or(object)
}

/// An autoscaler of another version as it is stored.
pub(crate) fn to_v2(object: &Value) -> Result<Value, String> {
    convert::read(object)
        .and_then(|hpa| convert::write(&hpa, Version::V2))
        .map_err(|error| error.to_string())
}

/// Fills in what every version fills in by itself; the rest comes with the conversion.
pub(crate) fn default(object: &mut Value) {
    default_value(section(object, "spec"), "minReplicas", 1);
}

/// What clients of a version are told about its end.
pub(crate) fn deprecation(version: Version) -> Option<String> {
    let (deprecated, removed) = version.retired()?;
    let (given, instead) = (version.api_version(), Version::V2.api_version());
    let kind = podscale_api::hpa::v2::KIND;
    Some(format!(
        "{given} {kind} is deprecated in v{deprecated}+, unavailable in v{removed}+; use {instead} {kind}"
    ))
}
