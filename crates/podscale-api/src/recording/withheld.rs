//! Writes that were left out on purpose.

use std::fmt;

use podscale_core::Withheld;
use serde::de::{Deserialize, Deserializer, Error, Visitor, value::StrDeserializer};

/// Reads why the scale was not written. Older Recordings only said that it was not.
pub(super) fn scale<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Withheld>, D::Error> {
    from.deserialize_any(WithheldVisitor { unsaid: Withheld::DryRun })
}

/// Reads why the status was not written. Older Recordings only said that it was not.
pub(super) fn status<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Withheld>, D::Error> {
    from.deserialize_any(WithheldVisitor { unsaid: Withheld::Deferred })
}

struct WithheldVisitor {
    unsaid: Withheld,
}

impl Visitor<'_> for WithheldVisitor {
    type Value = Option<Withheld>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reason why something was not written")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, withheld: bool) -> Result<Self::Value, E> {
        Ok(withheld.then_some(self.unsaid))
    }

    fn visit_str<E: Error>(self, reason: &str) -> Result<Self::Value, E> {
        Withheld::deserialize(StrDeserializer::new(reason)).map(Some)
    }
}
