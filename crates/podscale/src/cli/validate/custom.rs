//! Checks autoscalers that are no HorizontalPodAutoscalers: what those would say who take them in, and what the
//! controller would report of an object that they let in.

use super::report::Severity;
use crate::triggers::offline;
use podscale_api::chpa::Chpa;
use podscale_api::crds::{chpa, keda};
use podscale_api::hpa::manifest;
use podscale_api::keda::check;
use podscale_api::keda::scaled_object::{KIND, ScaledObject};
use podscale_api::pod_autoscaler::default::default_spec;
use podscale_api::pod_autoscaler::{PodAutoscaler, crd, validate};
use podscale_api::singlecloud::{self, Invalid, Read};
use podscale_api::written::Written;
use podscale_apiserver::offline::{Checked, CustomResource};
use serde::Deserialize;
use serde_json::Value;
use std::sync::LazyLock;

/// What an API server or singlecloud's API refuses.
const REFUSED: &str = "refused";
/// What an API server lets in, and the controller reports in a condition.
const INVALID: &str = "invalid-spec";
/// What singlecloud's API passes over, and what has no effect in a trigger.
const IGNORED: &str = "ignored-field";

/// Something that is wrong with an object.
pub(super) struct Fault {
    pub(super) rule: &'static str,
    pub(super) severity: Severity,
    /// As the object has it.
    pub(super) field: String,
    pub(super) problem: String,
}

impl Fault {
    fn new(rule: &'static str, field: impl Into<String>, problem: impl Into<String>) -> Fault {
        let (field, problem) = (field.into(), problem.into());
        Fault { rule, severity: Severity::Error, field, problem }
    }
}

/// Everything that is wrong with an object of one of these forms.
pub(super) fn check(form: Written, object: &Value) -> Vec<Fault> {
    match form {
        // These are checked as what they are, an API server's own.
        Written::Hpa => Vec::new(),
        Written::PodAutoscaler => check_custom(&POD_AUTOSCALERS, object, pod_autoscaler),
        Written::Chpa => check_custom(&CHPAS, object, configurable),
        Written::ScaledObject => check_custom(&SCALED_OBJECTS, object, scaled_object),
        Written::Singlecloud => check_singlecloud(object),
    }
}

type Resource = LazyLock<Option<CustomResource>>;
// Rules of definitions are compiled, which is done once.
static POD_AUTOSCALERS: Resource = LazyLock::new(|| CustomResource::new(&crd::definition()));
static CHPAS: Resource = LazyLock::new(|| CustomResource::new(&chpa::definition()));
static SCALED_OBJECTS: Resource = LazyLock::new(|| {
    let mut definitions = keda::definitions().into_iter();
    let is_it = |definition: &Value| definition["spec"]["names"]["kind"] == KIND;
    definitions.find(is_it).and_then(|definition| CustomResource::new(&definition))
});

/// What an API server says that has the definition; of what it lets in, what the controller says.
fn check_custom(
    resource: &Resource,
    object: &Value,
    controller: fn(&Value) -> Vec<Fault>,
) -> Vec<Fault> {
    let Some(resource) = &**resource else { return Vec::new() };
    let Checked { object, unknown, errors } = match resource.check(object) {
        Ok(checked) => checked,
        Err(mismatch) => return vec![Fault::new(REFUSED, mismatch.path, mismatch.message)],
    };
    let mut faults: Vec<Fault> = unknown
        .iter()
        .map(|field| Fault::new(REFUSED, field, format!("unknown field \"{field}\"")))
        .collect();
    if errors.is_empty() {
        faults.extend(controller(&object));
    }
    let refused = errors.iter().map(|error| Fault::new(REFUSED, &error.field, error.body()));
    faults.extend(refused);
    faults
}

fn pod_autoscaler(object: &Value) -> Vec<Fault> {
    let mut pa = match PodAutoscaler::deserialize(object) {
        Ok(pa) => pa,
        Err(error) => return vec![Fault::new(INVALID, "spec", error.to_string())],
    };
    default_spec(&mut pa.spec);
    let errors = validate::check(&pa);
    errors.iter().map(|error| Fault::new(INVALID, &error.field, error.body())).collect()
}

fn configurable(object: &Value) -> Vec<Fault> {
    let chpa = match Chpa::deserialize(object) {
        Ok(chpa) => chpa,
        Err(error) => return vec![Fault::new(INVALID, "metadata", error.to_string())],
    };
    let faults = chpa.faults().into_iter();
    faults.map(|fault| Fault::new(INVALID, fault.field, fault.problem)).collect()
}

/// What KEDA's operator and Podscale say of it: its fields together, and the metadata of its triggers.
fn scaled_object(object: &Value) -> Vec<Fault> {
    let object = match ScaledObject::deserialize(object) {
        Ok(object) => object,
        Err(error) => return vec![Fault::new(INVALID, "spec", error.to_string())],
    };
    let mut faults = Vec::new();
    if let Err(error) = check::scaled_object(&object) {
        faults.push(Fault::new(INVALID, "spec", error.problem));
    }
    faults.extend(offline::faults(&object).into_iter().map(|fault| {
        let field = match fault.field {
            Some(name) => format!("spec.triggers[{}].metadata.{name}", fault.index),
            None => format!("spec.triggers[{}]", fault.index),
        };
        if fault.is_error {
            return Fault::new(INVALID, field, fault.problem);
        }
        Fault { severity: Severity::Warning, ..Fault::new(IGNORED, field, fault.problem) }
    }));
    faults
}

/// What singlecloud's API says, and the API server to the autoscaler that it makes.
fn check_singlecloud(object: &Value) -> Vec<Fault> {
    let refused = |Invalid { field, message }| vec![Fault::new(REFUSED, field, message)];
    let Read { autoscaler, unknown } = match singlecloud::read(object) {
        Ok(read) => read,
        Err(invalid) => return refused(invalid),
    };
    let mut faults: Vec<Fault> = unknown
        .into_iter()
        .map(|field| Fault {
            severity: Severity::Warning,
            ..Fault::new(IGNORED, field.as_str(), format!("unknown field \"{field}\""))
        })
        .collect();
    let namespace = singlecloud::namespace_of(object).unwrap_or("default");
    let native = match singlecloud::to_hpa(&autoscaler, namespace) {
        Ok(hpa) => serde_json::to_value(hpa).unwrap_or_default(),
        Err(invalid) => {
            faults.extend(refused(invalid));
            return faults;
        }
    };
    match manifest::check(&native) {
        Ok(errors) => faults.extend(errors.iter().map(|error| {
            let field = Written::Singlecloud.path(object, &error.field);
            Fault::new(REFUSED, field, error.body())
        })),
        Err(error) => faults.push(Fault::new(REFUSED, "", error.to_string())),
    }
    faults
}
