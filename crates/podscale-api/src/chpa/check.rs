//! What is wrong with a CHPA's spec. The first two checks and their texts are those of the original
//! controller; the others refuse what its definition's ranges refuse as well, for definitions that
//! have none, and what no controller could act on.

use super::{Chpa, ChpaSpec, ReadError, TARGET_KIND};
use crate::field_error::{BadValue, FieldError, FieldPath};
use crate::hpa::v2::metric_type;
use crate::hpa::v2beta1::MetricSpec;
use crate::quantity::Quantity;

impl Chpa {
    /// The spec with its defaults filled in, or the first thing that is wrong with it.
    ///
    /// # Errors
    /// The spec cannot be read, or makes no sense; the message says why.
    pub fn checked(&self) -> Result<ChpaSpec, String> {
        let mut spec = self.spec.clone().map_err(|error| error.to_string())?;
        spec.fill_in();
        check(&spec)?;
        Ok(spec)
    }

    /// Everything that is wrong with the spec, and where.
    #[must_use]
    pub fn faults(&self) -> Vec<ReadError> {
        let mut spec = match &self.spec {
            Ok(spec) => spec.clone(),
            Err(error) => return vec![error.clone()],
        };
        spec.fill_in();
        let fault = |field: String, problem: String| ReadError { field, problem };
        let kind = check_kind(&spec).err();
        let kind = kind.map(|problem| fault("spec.scaleTargetRef.kind".to_owned(), problem));
        let sources = spec.metrics.iter().enumerate().filter_map(|(place, metric)| {
            let problem = check_source(metric).err()?;
            Some(fault(format!("spec.metrics[{place}].type"), problem))
        });
        let others = field_errors(&spec).into_iter().map(|error| {
            let problem = error.body();
            fault(error.field, problem)
        });
        kind.into_iter().chain(sources).chain(others).collect()
    }
}

/// Checks a spec whose defaults are filled in.
///
/// # Errors
/// What is wrong.
pub fn check(spec: &ChpaSpec) -> Result<(), String> {
    check_kind(spec)?;
    spec.metrics.iter().try_for_each(check_source)?;
    match field_errors(spec).first() {
        Some(error) => Err(error.to_string()),
        None => Ok(()),
    }
}

fn check_kind(spec: &ChpaSpec) -> Result<(), String> {
    let kind = &spec.scale_target_ref.kind;
    if kind != TARGET_KIND {
        return Err(format!(
            "configurable chpa doesn't support {kind} kind, use Deployment instead"
        ));
    }
    Ok(())
}

/// Whether the field is set that `type` names.
fn check_source(metric: &MetricSpec) -> Result<(), String> {
    let kind = &*metric.r#type;
    let set = match kind {
        metric_type::OBJECT => metric.object.is_some(),
        metric_type::PODS => metric.pods.is_some(),
        metric_type::RESOURCE => metric.resource.is_some(),
        metric_type::EXTERNAL => metric.external.is_some(),
        _ => return Err(format!("incorrect metric.Type: '{kind}'")),
    };
    if set { Ok(()) } else { Err(format!("metric.{kind} is nil while metric.Type is '{kind}'")) }
}

/// What the original controller did not check. Its definition has narrower ranges than these.
#[must_use]
pub fn field_errors(spec: &ChpaSpec) -> Vec<FieldError> {
    let root = FieldPath::new("spec");
    let mut errors = Vec::new();
    if spec.scale_target_ref.name.is_empty() {
        errors.push(FieldError::required(&root.child("scaleTargetRef").child("name"), ""));
    }
    let mut at_least = |field: &str, value: f64, least: f64, shown: BadValue| {
        if value < least {
            let detail = format!("must be greater than or equal to {least}");
            errors.push(FieldError::invalid(&root.child(field), shown, detail));
        }
    };
    for (field, value) in [
        ("maxReplicas", spec.max_replicas),
        ("minReplicas", spec.min_replicas.unwrap_or(1)),
        ("downscaleForbiddenWindowSeconds", spec.downscale_forbidden_window_seconds),
        ("upscaleForbiddenWindowSeconds", spec.upscale_forbidden_window_seconds),
        ("scaleUpLimitMinimum", spec.scale_up_limit_minimum),
    ] {
        at_least(field, f64::from(value), 1.0, value.into());
    }
    for (field, value, least) in [
        ("scaleUpLimitFactor", spec.scale_up_limit_factor, 1.0),
        ("tolerance", spec.tolerance, 0.0),
    ] {
        at_least(field, value, least, BadValue::json(&value));
    }
    if spec.min_replicas.is_some_and(|min| min > spec.max_replicas) {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid(&root.child("maxReplicas"), spec.max_replicas, detail));
    }
    for (place, metric) in spec.metrics.iter().enumerate() {
        check_targets(&root.child("metrics").index(place), metric, &mut errors);
    }
    errors
}

/// A target of zero would ask for pods without end.
fn check_targets(field: &FieldPath, metric: &MetricSpec, errors: &mut Vec<FieldError>) {
    let mut positive = |source: &str, name: &str, value: Option<&Quantity>| {
        if let Some(value) = value.filter(|value| value.milli_value() <= 0) {
            let shown = BadValue::text(&value.to_string());
            let field = field.child(source).child(name);
            errors.push(FieldError::invalid(&field, shown, "must be positive"));
        }
    };
    match &*metric.r#type {
        metric_type::OBJECT => {
            if let Some(object) = &metric.object {
                match &object.average_value {
                    None => positive("object", "targetValue", Some(&object.target_value)),
                    average => positive("object", "averageValue", average.as_ref()),
                }
            }
        }
        metric_type::PODS => {
            let target = metric.pods.as_ref().map(|pods| &pods.target_average_value);
            positive("pods", "targetAverageValue", target);
        }
        metric_type::EXTERNAL => {
            if let Some(external) = &metric.external {
                positive("external", "targetValue", external.target_value.as_ref());
                let average = external.target_average_value.as_ref();
                positive("external", "targetAverageValue", average);
            }
        }
        _ => {
            let Some(resource) = &metric.resource else { return };
            positive("resource", "targetAverageValue", resource.target_average_value.as_ref());
            let percent = resource.target_average_utilization.filter(|percent| *percent <= 0);
            if let Some(percent) = percent {
                let field = field.child("resource").child("targetAverageUtilization");
                errors.push(FieldError::invalid(&field, percent, "must be greater than 0"));
            }
        }
    }
}
