//! The results of instant queries.

use super::envelope::{Limit, Reads};
use jiff::Timestamp;
use podscale_api::Labels;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// One value of one series.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The labels of the series.
    pub labels: Labels,
    /// When it was computed.
    pub time: Timestamp,
    /// The value, which may be NaN or infinite.
    pub value: f64,
}

/// A value for each series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector {
    /// The values, in the order of the answer.
    pub samples: Vec<Sample>,
}

/// A result with its type.
pub(super) struct Outcome {
    pub(super) kind: Option<String>,
    pub(super) result: Contents,
}

/// What stands in a result of any type: the type may come after it.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) samples: Vec<Sample>,
    /// The number that a scalar is: its time and value stand where series would.
    pub(super) number: Option<Sample>,
    pub(super) histograms: usize,
    pub(super) unreadable: usize,
    time: Option<f64>,
}

impl Reads for Outcome {
    fn read<'de, D: Deserializer<'de>>(
        deserializer: D,
        limit: Limit<'_>,
    ) -> Result<Outcome, D::Error> {
        deserializer.deserialize_map(OutcomeVisitor(limit))
    }
}

struct OutcomeVisitor<'a>(Limit<'a>);

impl<'de> Visitor<'de> for OutcomeVisitor<'_> {
    type Value = Outcome;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result with its type")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outcome, A::Error> {
        let mut outcome = Outcome { kind: None, result: Contents::default() };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "resultType" => outcome.kind = map.next_value()?,
                "result" => outcome.result = map.next_value_seed(ResultSeed(self.0))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(outcome)
    }
}

struct ResultSeed<'a>(Limit<'a>);

impl<'de> DeserializeSeed<'de> for ResultSeed<'_> {
    type Value = Contents;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Contents, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ResultSeed<'_> {
    type Value = Contents;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of series, or a number")
    }

    fn visit_unit<E>(self) -> Result<Contents, E> {
        Ok(Contents::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Contents, A::Error> {
        let mut contents = Contents::default();
        while let Some(element) = list.next_element::<Element>()? {
            contents.take(element);
            self.0.check(contents.samples.len())?;
        }
        contents.samples.shrink_to_fit();
        Ok(contents)
    }
}

impl Contents {
    fn take(&mut self, element: Element) {
        match element {
            Element::Time(time) => self.time = Some(time),
            Element::Number(text) => {
                let labels = Labels::default();
                self.number = self.time.and_then(|time| sample(labels, time, &text));
            }
            Element::Series { labels, point: Some((time, text)), .. } => {
                match sample(labels, time, &text) {
                    Some(sample) => self.samples.push(sample),
                    None => self.unreadable += 1,
                }
            }
            Element::Series { histogram: true, .. } => self.histograms += 1,
            Element::Series { .. } | Element::Other => self.unreadable += 1,
        }
    }
}

fn sample(labels: Labels, time: f64, text: &str) -> Option<Sample> {
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and times have a range")]
    let time = Timestamp::from_millisecond((time * 1000.0).round() as i64).ok()?;
    Some(Sample { labels, time, value: text.parse().ok()? })
}

/// What stands in the list of a result.
enum Element {
    /// A series of a vector; that of a matrix has no single point.
    Series {
        labels: Labels,
        point: Option<(f64, String)>,
        histogram: bool,
    },
    /// The time of a scalar.
    Time(f64),
    /// The value of a scalar.
    Number(String),
    Other,
}

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Element, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a series")
    }

    fn visit_f64<E>(self, time: f64) -> Result<Element, E> {
        Ok(Element::Time(time))
    }

    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 seconds")]
    fn visit_u64<E>(self, time: u64) -> Result<Element, E> {
        Ok(Element::Time(time as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "times are far below 2^53 seconds")]
    fn visit_i64<E>(self, time: i64) -> Result<Element, E> {
        Ok(Element::Time(time as f64))
    }

    fn visit_str<E>(self, text: &str) -> Result<Element, E> {
        Ok(Element::Number(text.to_owned()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Element, E> {
        Ok(Element::Other)
    }

    fn visit_unit<E>(self) -> Result<Element, E> {
        Ok(Element::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Element, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Element::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Element, A::Error> {
        let (mut labels, mut point, mut histogram) = (Labels::default(), None, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metric" => labels = map.next_value::<Option<Labels>>()?.unwrap_or_default(),
                "value" => point = map.next_value::<Point>()?.0,
                "histogram" => {
                    histogram = true;
                    map.next_value::<IgnoredAny>()?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(Element::Series { labels, point, histogram })
    }
}

/// A time and a value; nothing if it is something else.
struct Point(Option<(f64, String)>);

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Point, D::Error> {
        deserializer.deserialize_seq(PointVisitor)
    }
}

struct PointVisitor;

impl<'de> Visitor<'de> for PointVisitor {
    type Value = Point;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time and a value")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Point, A::Error> {
        let time = list.next_element::<Element>()?;
        let value = list.next_element::<Element>()?;
        let mut more = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            more = true;
        }
        Ok(Point(match (time, value) {
            (Some(Element::Time(time)), Some(Element::Number(text))) if !more => Some((time, text)),
            _ => None,
        }))
    }
}
