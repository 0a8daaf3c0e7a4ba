//! What containers use, as the metrics API says it. An amount that is no quantity must not cost the
//! pods that share the answer theirs, so it is kept as text instead of ending the reading.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::quantity::{ParseQuantityError, Quantity};
use crate::resources::{ResourceList, ResourceName};

/// Amounts by resource, and the first of them that is no quantity, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    amounts: ResourceList,
    unreadable: Option<Box<Unreadable>>,
}

/// An amount that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unreadable {
    resource: ResourceName,
    text: Box<str>,
    error: ParseQuantityError,
}

impl Usage {
    /// The amount of a resource.
    pub fn get(&self, resource: &str) -> Option<&Quantity> {
        self.amounts.get(resource)
    }

    /// Why one of the amounts cannot be read, in the words of the API server's clients.
    pub fn error(&self) -> Option<ParseQuantityError> {
        self.unreadable.as_ref().map(|unreadable| unreadable.error)
    }
}

impl From<ResourceList> for Usage {
    fn from(amounts: ResourceList) -> Usage {
        Usage { amounts, unreadable: None }
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (resource, amount) in self.amounts.iter() {
            map.serialize_entry(resource, amount)?;
        }
        if let Some(unreadable) = &self.unreadable {
            map.serialize_entry(unreadable.resource.as_str(), &unreadable.text)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Usage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UsageVisitor)
    }
}

struct UsageVisitor;

impl<'de> Visitor<'de> for UsageVisitor {
    type Value = Usage;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from resource names to quantities")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Usage, A::Error> {
        let mut usage = Usage::default();
        while let Some((resource, Amount(amount))) = map.next_entry::<ResourceName, Amount>()? {
            match amount {
                Ok(amount) => usage.amounts.insert(resource, amount),
                Err((text, error)) => {
                    let unreadable = || Box::new(Unreadable { resource, text, error });
                    usage.unreadable.get_or_insert_with(unreadable);
                }
            }
        }
        usage.amounts.shrink_to_fit();
        Ok(usage)
    }
}

/// A quantity, or the text that is none.
struct Amount(Result<Quantity, (Box<str>, ParseQuantityError)>);

impl Amount {
    fn of(text: &str) -> Amount {
        Amount(Quantity::parse(text.trim()).map_err(|error| (text.into(), error)))
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl<'de> Visitor<'de> for AmountVisitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as 250m or 1Gi")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Amount, E> {
        Ok(Amount::of(text))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Amount, E> {
        number(value)
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Amount, E> {
        number(value)
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Amount, E> {
        number(value)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Amount, E> {
        Ok(Amount(Ok(Quantity::ZERO)))
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Amount, E> {
        Ok(Amount::of(if value { "true" } else { "false" }))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Amount, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Amount::of("[]"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Amount, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Amount::of("{}"))
    }
}

/// A plain number, as [`Quantity`] itself reads it.
fn number<'de, E, N>(value: N) -> Result<Amount, E>
where
    E: serde::de::Error,
    N: serde::de::IntoDeserializer<'de, E>,
{
    Quantity::deserialize(value.into_deserializer()).map(|amount| Amount(Ok(amount)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_amount_leaves_the_others() {
        let format = ParseQuantityError::Format;
        for (json, cpu, error, written) in [
            (r#"{"cpu":"5m"}"#, Some(5), None, r#"{"cpu":"5m"}"#),
            (
                r#"{"cpu":"5m","memory":"lots"}"#,
                Some(5),
                Some(format),
                r#"{"cpu":"5m","memory":"lots"}"#,
            ),
            (r#"{"cpu":"","memory":"1Ki"}"#, None, Some(format), r#"{"memory":"1Ki","cpu":""}"#),
            (r#"{"cpu":true}"#, None, Some(format), r#"{"cpu":"true"}"#),
            (r#"{"cpu":{"a":[1]}}"#, None, Some(format), r#"{"cpu":"{}"}"#),
            (r#"{"cpu":[1,{}]}"#, None, Some(format), r#"{"cpu":"[]"}"#),
            (r#"{"cpu":2}"#, Some(2000), None, r#"{"cpu":"2"}"#),
            (r#"{"cpu":1.5}"#, Some(1500), None, r#"{"cpu":"1500m"}"#),
            (r#"{"cpu":null}"#, Some(0), None, r#"{"cpu":"0"}"#),
        ] {
            let usage: Usage = serde_json::from_str(json).expect(json);
            assert_eq!(usage.get("cpu").map(Quantity::milli_value), cpu, "{json}");
            assert_eq!(usage.error(), error, "{json}");
            let text = serde_json::to_string(&usage).expect("writes");
            assert_eq!(text, written);
            let again: Usage = serde_json::from_str(&text).expect(&text);
            assert_eq!(again, usage);
        }
    }
}
