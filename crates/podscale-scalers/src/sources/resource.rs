//! `cpu` and `memory`: what the target's own pods use, which the metrics pipeline knows; nothing is polled.

use crate::context::Context;
use crate::metadata::{Fields, METADATA, MetadataErrors};
use crate::scaler::{About, Parsed, Scaler, Settings, TargetField};
use crate::trigger::{Metric, ResourceTarget, TriggerError, TriggerSpec, TriggerValue};
use futures::future::BoxFuture;
use podscale_api::Quantity;
use tokio::time::Instant;

/// A resource that there are triggers for.
#[derive(Clone, Copy)]
pub(super) struct Resource {
    name: &'static str,
    context: &'static str,
}

/// The resource of a type of trigger, if it is one of a resource.
pub(super) fn of(kind: &str) -> Option<Resource> {
    match kind {
        #[cfg(feature = "cpu")]
        "cpu" => Some(Resource { name: "cpu", context: "error parsing cpu metadata: " }),
        #[cfg(feature = "memory")]
        "memory" => Some(Resource { name: "memory", context: "error parsing memory metadata: " }),
        _ => None,
    }
}

/// Understands a trigger of a resource.
///
/// # Errors
/// Something is missing or wrong.
pub(super) fn parse(spec: &TriggerSpec, resource: Resource) -> Result<Parsed, MetadataErrors> {
    let Resource { name, context } = resource;
    let mut fields = Fields::new(spec);
    if fields.field(&["type"], METADATA).is_given() {
        fields.refuse(
            format!(
                "scaler {name} info: The 'type' setting is DEPRECATED and is removed in v2.18 - Use \
                 'metricType' instead."
            ),
            "move it to metricType of the trigger",
        );
    }
    let value = fields.field(&["value"], METADATA).required().text();
    let container = fields.field(&["containerName"], METADATA).text();
    let target = if fields.is_right() { target(&mut fields, &value) } else { None };
    let warnings = fields.finish(context, context)?;
    let Some(target) = target else {
        return Err(MetadataErrors::one(format!("{context}no target"), None));
    };
    let container = (!container.is_empty()).then_some(container);
    let metric = Metric::Resource { resource: name, container, target };
    let settings = Box::new(Pipeline);
    let target_field = Some(TargetField { name: "value", is_whole: false });
    Ok(Parsed { metric, target_field, activation: 0.0, server: None, warnings, settings })
}

fn target(fields: &mut Fields<'_>, value: &str) -> Option<ResourceTarget> {
    match fields.spec().metric_type.as_str() {
        "AverageValue" => match Quantity::parse(value) {
            Ok(quantity) => return Some(ResourceTarget::AverageValue(quantity)),
            Err(error) => fields.refuse(
                format!("value {value:?} is not a quantity: {error}"),
                "write an amount such as 500m or 1Gi",
            ),
        },
        "Utilization" => match value.parse::<i32>() {
            Ok(percent) => return Some(ResourceTarget::Utilization(percent)),
            Err(error) => {
                let problem = match error.kind() {
                    std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                        "value out of range"
                    }
                    _ => "invalid syntax",
                };
                fields.refuse(
                    format!("strconv.ParseInt: parsing {value:?}: {problem}"),
                    "write percent of the request, such as 60",
                );
            }
        },
        other => fields.refuse(
            format!(
                "unknown metric type: {other}, allowed values are 'Utilization' or 'AverageValue'"
            ),
            "set metricType of the trigger",
        ),
    }
    None
}

/// Nothing to ask: the pipeline knows.
#[derive(Debug)]
struct Pipeline;

impl Settings for Pipeline {
    fn connect(self: Box<Self>, _: About, _: &Context) -> Result<Box<dyn Scaler>, TriggerError> {
        Ok(self)
    }
}

impl Scaler for Pipeline {
    fn poll(&self, _: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

#[cfg(test)]
mod tests {
    use crate::trigger::{Metric, ResourceTarget, TriggerSpec};

    fn outcome(kind: &str, metric_type: &str, metadata: &[(&str, &str)]) -> String {
        let spec = TriggerSpec {
            kind: kind.to_owned(),
            metric_type: metric_type.to_owned(),
            metadata: metadata.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            ..TriggerSpec::default()
        };
        match crate::parse(&spec).map(|parsed| parsed.metric) {
            Ok(Metric::Resource { resource, container, target }) => {
                let container = container.unwrap_or_default();
                match target {
                    ResourceTarget::Utilization(percent) => {
                        format!("{resource} {container} {percent}%")
                    }
                    ResourceTarget::AverageValue(value) => {
                        format!("{resource} {container} {value}")
                    }
                }
            }
            Ok(other) => format!("{other:?}"),
            Err(errors) => errors.to_string(),
        }
    }

    #[test]
    fn targets_are_percent_or_amounts() {
        for (kind, metric_type, metadata, expected) in [
            ("cpu", "Utilization", &[("value", "60")][..], "cpu  60%"),
            ("memory", "AverageValue", &[("value", "1Gi")], "memory  1Gi"),
            (
                "cpu",
                "AverageValue",
                &[("value", "500m"), ("containerName", "main")],
                "cpu main 500m",
            ),
            (
                "cpu",
                "",
                &[("value", "60")],
                "error parsing cpu metadata: unknown metric type: , allowed values are 'Utilization' or \
                 'AverageValue'",
            ),
            (
                "memory",
                "Utilization",
                &[("value", "a")],
                "error parsing memory metadata: strconv.ParseInt: parsing \"a\": invalid syntax",
            ),
            (
                "cpu",
                "Utilization",
                &[],
                "error parsing cpu metadata: missing required parameter \"value\" in [triggerMetadata]",
            ),
            (
                "cpu",
                "Utilization",
                &[("value", "60"), ("type", "Utilization")],
                "error parsing cpu metadata: scaler cpu info: The 'type' setting is DEPRECATED and is \
                 removed in v2.18 - Use 'metricType' instead.",
            ),
        ] {
            assert_eq!(outcome(kind, metric_type, metadata), expected, "{kind} {metadata:?}");
        }
        let wrong = outcome("cpu", "AverageValue", &[("value", "much")]);
        assert!(wrong.starts_with("error parsing cpu metadata: value \"much\" is not a quantity"));
    }
}
