//! Checks autoscalers that are no HorizontalPodAutoscalers: what those would say who take them in, and what the
//! controller would report of an object that they let in.

use super::report::Severity;
use podscale_api::chpa::Chpa;
use podscale_api::crds::chpa;
use podscale_api::hpa::manifest;
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
/// What singlecloud's API passes over.
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
        Written::Singlecloud => check_singlecloud(object),
    }
}

type Resource = LazyLock<Option<CustomResource>>;
// Rules of definitions are compiled, which is done once.
static POD_AUTOSCALERS: Resource = LazyLock::new(|| CustomResource::new(&crd::definition()));
static CHPAS: Resource = LazyLock::new(|| CustomResource::new(&chpa::definition()));

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
