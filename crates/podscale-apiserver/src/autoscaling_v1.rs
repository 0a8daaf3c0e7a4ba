//! Autoscalers of version 1, which are stored as version 2.

use podscale_api::hpa::convert::{self, Version};
use serde_json::Value;

use crate::value::{default as default_value, section};

/// A stored autoscaler as version 1.
pub(crate) fn from_v2(object: Value) -> Value {
    let read = convert::read(&object).and_then(|hpa| convert::write(&hpa, Version::V1));
    // Stored objects have been through the decoder of version 2, so they convert.
    read.unwrap_or(object)
}

/// An autoscaler of version 1 as it is stored.
pub(crate) fn to_v2(object: &Value) -> Result<Value, String> {
    convert::read(object)
        .and_then(|hpa| convert::write(&hpa, Version::V2))
        .map_err(|error| error.to_string())
}

/// Fills in an autoscaler of version 1.
pub(crate) fn default(object: &mut Value) {
    default_value(section(object, "spec"), "minReplicas", 1);
}
