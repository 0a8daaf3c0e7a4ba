//! Targets of metrics, from the core's model.

use super::v2::{self, target_type};
use crate::quantity::{Format, Quantity};
use podscale_core::model::{MetricTarget, Milli};

/// What a metric is compared with, in the form that an HPA has for it.
pub(crate) fn of_model(target: MetricTarget) -> v2::MetricTarget {
    let quantity = |Milli(milli): Milli| Some(Quantity::from_milli(milli, Format::DecimalSi));
    let of =
        |kind: &str| v2::MetricTarget { r#type: kind.to_owned(), ..v2::MetricTarget::default() };
    match target {
        MetricTarget::Value(value) => {
            v2::MetricTarget { value: quantity(value), ..of(target_type::VALUE) }
        }
        MetricTarget::AverageValue(value) => {
            v2::MetricTarget { average_value: quantity(value), ..of(target_type::AVERAGE_VALUE) }
        }
        MetricTarget::Utilization(percent) => {
            let average_utilization = Some(percent);
            v2::MetricTarget { average_utilization, ..of(target_type::UTILIZATION) }
        }
        MetricTarget::Unset => v2::MetricTarget::default(),
    }
}
