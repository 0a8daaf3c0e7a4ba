//! Checks autoscalers that are no HorizontalPodAutoscalers: what those would say who take them in, and what the
//! controller would report of an object that they let in.

use super::apart;
use super::report::Severity;
use super::words::{self, Said};
use podscale_api::admission::{self, Kind};
use podscale_api::crds::{chpa, keda};
use podscale_api::hpa::convert::ConvertError;
use podscale_api::hpa::manifest;
use podscale_api::keda::scaled_object::{self, ScaledObject};
use podscale_api::keda::{ScaledJob, scaled_job};
use podscale_api::pod_autoscaler::{PodAutoscaler, crd};
use podscale_api::singlecloud::{self, Invalid, Read};
use podscale_api::written::Written;
use podscale_apiserver::offline::{Checked, CustomResource};
use podscale_controller::triggers::{Triggered, offline};
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
    pub(super) fn new(
        rule: &'static str,
        field: impl Into<String>,
        problem: impl Into<String>,
    ) -> Fault {
        let (field, problem) = (field.into(), problem.into());
        Fault { rule, severity: Severity::Error, field, problem }
    }
}

/// Everything that is wrong with an object of one of these forms.
pub(super) fn check(form: Written, object: &Value) -> Vec<Fault> {
    match form {
        // These are checked as what they are, an API server's own.
        Written::Hpa => Vec::new(),
        Written::PodAutoscaler => {
            let faults = check_custom(&POD_AUTOSCALERS, object, &admission::POD_AUTOSCALERS);
            let read = PodAutoscaler::deserialize(object).unwrap_or_default();
            with_triggers(faults, &Triggered::from(&read))
        }
        Written::Chpa => check_custom(&CHPAS, object, &admission::CHPAS),
        Written::ScaledObject => {
            let faults = check_custom(&SCALED_OBJECTS, object, &admission::SCALED_OBJECTS);
            let read = ScaledObject::deserialize(object).unwrap_or_default();
            with_triggers(faults, &Triggered::from(&read))
        }
        Written::ScaledJob => {
            let faults = check_custom(&SCALED_JOBS, object, &admission::SCALED_JOBS);
            let read = ScaledJob::deserialize(object).unwrap_or_default();
            with_triggers(faults, &Triggered::from(&read))
        }
        Written::Singlecloud => check_singlecloud(object),
    }
}

type Resource = LazyLock<Option<CustomResource>>;
// Rules of definitions are compiled, which is done once.
static POD_AUTOSCALERS: Resource = LazyLock::new(|| CustomResource::new(&crd::definition()));
static CHPAS: Resource = LazyLock::new(|| CustomResource::new(&chpa::definition()));
static SCALED_OBJECTS: Resource = LazyLock::new(|| of_keda(scaled_object::KIND));
static SCALED_JOBS: Resource = LazyLock::new(|| of_keda(scaled_job::KIND));

fn of_keda(kind: &str) -> Option<CustomResource> {
    let mut definitions = keda::definitions().into_iter();
    let is_it = |definition: &Value| definition["spec"]["names"]["kind"] == kind;
    definitions.find(is_it).and_then(|definition| CustomResource::new(&definition))
}

/// What only the controller can judge.
const JUDGED_LATER: [&str; 4] =
    ["spec.expression", "spec.schedules", "spec.podDeletionCost", "spec.metrics"];

/// What an API server says that has the definition, and what the controller says of what it lets in.
fn check_custom(resource: &Resource, object: &Value, kind: &Kind) -> Vec<Fault> {
    let Some(resource) = &**resource else { return Vec::new() };
    let (checked, mismatches) = apart::checked(object, |object| resource.check(object));
    let mut faults: Vec<Fault> = mismatches
        .into_iter()
        .map(|mismatch| Fault::new(REFUSED, mismatch.path, mismatch.message))
        .collect();
    let Some(Checked { object, unknown, errors }) = checked else { return faults };
    let is_about = |faults: &[Fault], field: &str| {
        faults.iter().any(|fault| !fault.field.is_empty() && apart::is_about(&fault.field, field))
    };
    let errors: Vec<Said> = errors
        .iter()
        .filter(|error| !is_about(&faults, &error.field))
        .map(|error| Said { field: error.field.clone(), problem: error.body() })
        .collect();
    let let_in = faults.is_empty() && errors.is_empty();
    faults.extend(
        unknown
            .iter()
            .map(|field| Fault::new(REFUSED, field, format!("unknown field \"{field}\""))),
    );
    let refused = words::plain(errors).into_iter();
    faults.extend(refused.map(|said| Fault::new(REFUSED, said.field, said.problem)));
    // Of an object that is refused, what the controller would say of the rest of it.
    let later = kind.check(&object).into_iter().filter(|cause| {
        let judged = JUDGED_LATER.iter().any(|field| cause.field.starts_with(field));
        let_in || (judged && !is_about(&faults, &cause.field))
    });
    let later: Vec<Fault> =
        later.map(|cause| Fault::new(INVALID, cause.field, cause.message)).collect();
    faults.extend(later);
    faults
}

/// These with what the sources of triggers say of their metadata, where nothing else is wrong with them.
fn with_triggers(mut known: Vec<Fault>, object: &Triggered) -> Vec<Fault> {
    let faults = offline::faults(object).into_iter().map(|fault| {
        if fault.is_error {
            return Fault::new(INVALID, fault.path, fault.problem);
        }
        Fault { severity: Severity::Warning, ..Fault::new(IGNORED, fault.path, fault.problem) }
    });
    let is_new = |fault: &Fault| {
        let about = |other: &Fault| {
            let lists = ["spec.triggers[", "spec.metrics["];
            lists.iter().any(|list| other.field.starts_with(list))
                && apart::is_about(&other.field, &fault.field)
        };
        !known.iter().any(about)
    };
    let new: Vec<Fault> = faults.filter(is_new).collect();
    known.extend(new);
    known
}

/// What singlecloud's API says, and the API server to the autoscaler that it makes.
fn check_singlecloud(object: &Value) -> Vec<Fault> {
    let (Read { autoscaler, unknown }, mut wrong) = singlecloud::read_all(object);
    let namespace = singlecloud::namespace_of(object).unwrap_or("default");
    let (mut native, more) = singlecloud::to_hpa_all(&autoscaler, namespace);
    if !more.is_empty() {
        // The others are not at their places.
        native.spec.metrics.clear();
    }
    for invalid in more {
        if !wrong.iter().any(|known| apart::is_about(&known.field, &invalid.field)) {
            wrong.push(invalid);
        }
    }
    let mut faults: Vec<Fault> = unknown
        .into_iter()
        .map(|field| Fault {
            severity: Severity::Warning,
            ..Fault::new(IGNORED, field.as_str(), format!("unknown field \"{field}\""))
        })
        .collect();
    let errors = match serde_json::to_value(native).map_err(ConvertError::from) {
        Ok(native) => manifest::check(&native),
        Err(error) => Err(error),
    };
    let refused = match errors {
        Ok(errors) => errors
            .iter()
            .map(|error| (Written::Singlecloud.path(object, &error.field), error.body()))
            .filter(|(field, _)| !wrong.iter().any(|known| apart::is_about(&known.field, field)))
            .map(|(field, problem)| Fault::new(REFUSED, field, problem))
            .collect(),
        Err(error) => vec![Fault::new(REFUSED, "", error.to_string())],
    };
    faults.extend(
        wrong.into_iter().map(|Invalid { field, message }| Fault::new(REFUSED, field, message)),
    );
    faults.extend(refused);
    faults
}
