//! From the vector that Prometheus answers to the values of metrics.

use crate::prometheus::{Sample, Vector};
use jiff::Timestamp;
use podscale_api::quantity::Format;
use podscale_api::{Labels, Quantity};
use std::collections::HashMap;

/// The value of a metric of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectValue {
    /// The object.
    pub name: Box<str>,
    /// The value.
    pub value: Quantity,
    /// When it was computed.
    pub time: Timestamp,
}

/// The value of one series of an external metric.
#[derive(Clone, Debug, PartialEq)]
pub struct ExternalValue {
    /// The labels of the series.
    pub labels: Labels,
    /// The value.
    pub value: Quantity,
    /// When it was computed.
    pub time: Timestamp,
}

/// A number as the APIs carry it: in thousandths, the rest cut off; NaN is 0, and what is too large is the
/// largest that can be carried.
#[must_use]
pub fn quantity(number: f64) -> Quantity {
    Quantity::from_milli(milli(number), Format::DecimalSi)
}

/// Thousandths, cut off towards zero; NaN is 0.
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "saturates, and NaN becomes 0")]
pub fn milli(number: f64) -> i64 {
    (number * 1000.0) as i64
}

/// The values of these objects, in their order, found by the label that holds their names. Objects without
/// a sample are left out; of several samples of one object the last one counts.
#[must_use]
pub fn of_objects(vector: &Vector, label: &str, names: &[&str]) -> Vec<ObjectValue> {
    let mut by_name: HashMap<&str, &Sample> = HashMap::with_capacity(vector.samples.len());
    for sample in &vector.samples {
        by_name.insert(sample.labels.get(label).unwrap_or_default(), sample);
    }
    let value = |name: &&str| {
        let sample = by_name.get(name)?;
        let (value, time) = (quantity(sample.value), sample.time);
        Some(ObjectValue { name: (*name).into(), value, time })
    };
    names.iter().filter_map(value).collect()
}

/// All values, with the labels of their series.
#[must_use]
pub fn of_series(vector: &Vector) -> Vec<ExternalValue> {
    let value = |sample: &Sample| ExternalValue {
        labels: sample.labels.clone(),
        value: quantity(sample.value),
        time: sample.time,
    };
    vector.samples.iter().map(value).collect()
}
