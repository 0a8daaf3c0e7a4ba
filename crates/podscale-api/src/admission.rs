//! What is said of autoscalers while they are being written: what the controller would report of a spec that the
//! schema of its definition lets in, and those lints that are certain by the object alone.
//!
//! A kind that is to be checked as well is an entry of [`KINDS`]: whoever serves, installs or embeds the checks goes by
//! that table. [`review`] answers the questions that an API server asks of an admission webhook.

pub mod review;

#[cfg(test)]
mod tests;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::chpa::{self, Chpa};
use crate::field_error::{Cause, Problem, causes, listed};
use crate::keda::{self, ScaledJob, ScaledObject, check as keda_check, scaled_job, scaled_object};
use crate::lint::{self, Autoscaler, Finding, IGNORE_ANNOTATION, Manifests};
use crate::pod_autoscaler::default::default_spec;
use crate::pod_autoscaler::{self, PodAutoscaler, validate};
use crate::quote::quote;
use crate::written::Written;

/// What the admission webhook is called, which those see whom it refuses something.
pub const WEBHOOK: &str = "validate.podscale.dev";
/// At most so many mistakes are named at once.
const MAX_CAUSES: usize = 50;
/// At most so many warnings are given at once, each of at most so many characters: API servers cut off more.
const MAX_WARNINGS: usize = 10;
const MAX_WARNING_CHARACTERS: usize = 256;

/// The lints whose findings are certain by the object alone. The others look at what stands beside it, or advise.
const CERTAIN: [&str; 12] = [
    "disabled-with-rules",
    "duplicate-metric",
    "field-without-effect",
    "min-equals-max",
    "no-metrics",
    "outside-bounds",
    "removed-target-version",
    "target-type-mismatch",
    "tolerance-too-wide",
    "unknown-lint",
    "unknown-target-kind",
    "unread-field",
];

/// A kind of objects that are checked while they are being written.
#[derive(Debug)]
pub struct Kind {
    /// Its group.
    pub group: &'static str,
    /// The version in which objects are checked.
    pub version: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
    check: fn(&Value) -> Vec<Cause>,
    warn: fn(&Value) -> Vec<String>,
}

/// All kinds that are checked.
pub static KINDS: [&Kind; 3] = [&POD_AUTOSCALERS, &CHPAS, &SCALED_OBJECTS];

/// Podscale's own autoscalers.
pub static POD_AUTOSCALERS: Kind = Kind {
    group: pod_autoscaler::GROUP,
    version: pod_autoscaler::VERSION,
    kind: pod_autoscaler::KIND,
    plural: pod_autoscaler::PLURAL,
    check: check_pod_autoscaler,
    warn: certain_findings,
};

/// The autoscalers of postmates.
pub static CHPAS: Kind = Kind {
    group: chpa::GROUP,
    version: chpa::VERSION,
    kind: chpa::KIND,
    plural: chpa::PLURAL,
    check: check_chpa,
    warn: certain_findings,
};

/// KEDA's autoscalers. What its webhook asks the cluster about (other autoscalers of the same target, requests of its
/// containers), the controller reports.
pub static SCALED_OBJECTS: Kind = Kind {
    group: keda::GROUP,
    version: keda::VERSION,
    kind: scaled_object::KIND,
    plural: scaled_object::PLURAL,
    check: check_scaled_object,
    warn: scaled_object_warnings,
};

/// What creates Jobs by KEDA's triggers. These are checked in files only: it is the controller that reports of others.
pub static SCALED_JOBS: Kind = Kind {
    group: keda::GROUP,
    version: keda::VERSION,
    kind: scaled_job::KIND,
    plural: scaled_job::PLURAL,
    check: check_scaled_job,
    warn: certain_findings,
};

/// The kind of that group and name, if its objects are checked.
#[must_use]
pub fn find(group: &str, kind: &str) -> Option<&'static Kind> {
    KINDS.into_iter().find(|known| known.group == group && known.kind == kind)
}

/// What is said of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is refused; it is not if there is nothing.
    pub causes: Vec<Cause>,
    /// What its writer is told anyway.
    pub warnings: Vec<String>,
}

/// The message and the `details` of the answer that refuses an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// In the words with which API servers refuse what is invalid.
    pub message: String,
    /// Which object, and each mistake with its field.
    pub details: Value,
}

impl Kind {
    /// What the controller would report of an object's spec, each with its field.
    #[must_use]
    pub fn check(&self, object: &Value) -> Vec<Cause> {
        (self.check)(object)
    }

    /// Judges an object that is being written in the place of `old`. One that is being deleted must be able to go, and
    /// one whose spec stays as it is was judged when that was written.
    #[must_use]
    pub fn judge(&self, object: &Value, old: Option<&Value>) -> Verdict {
        let leaves = object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
        if leaves || old.is_some_and(|old| old.get("spec") == object.get("spec")) {
            return Verdict::default();
        }
        let mut causes = self.check(object);
        causes.truncate(MAX_CAUSES);
        let mut warnings = (self.warn)(object);
        warnings.truncate(MAX_WARNINGS);
        Verdict { causes, warnings }
    }

    /// How an object of that name is refused for these mistakes.
    #[must_use]
    pub fn refusal(&self, name: &str, causes: &[Cause]) -> Refusal {
        let Kind { group, kind, .. } = self;
        let texts = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message));
        let message = format!("{kind}.{group} {} is invalid: {}", quote(name), listed(texts));
        let details = json!({"name": name, "group": group, "kind": kind, "causes": causes});
        Refusal { message, details }
    }
}

/// A finding in one line, with the way to silence it.
fn warning(finding: &Finding) -> String {
    let Finding { lint, field, problem } = finding;
    let silence = format!(" [{lint}; annotation {IGNORE_ANNOTATION}: {lint} silences it]");
    let room = MAX_WARNING_CHARACTERS.saturating_sub(silence.chars().count());
    let text = format!("{field}: {problem}");
    // API servers drop warnings with control characters, which values may contain.
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let text: String = if text.chars().count() > room {
        plain.take(room.saturating_sub(1)).chain(['…']).collect()
    } else {
        plain.collect()
    };
    format!("{text}{silence}")
}

fn check_pod_autoscaler(object: &Value) -> Vec<Cause> {
    let mut pa: PodAutoscaler = match serde_path_to_error::deserialize(object) {
        Ok(pa) => pa,
        Err(error) => {
            let field = match error.path().to_string() {
                path if path == "." => "spec".to_owned(),
                path => path,
            };
            return vec![cause(Problem::TypeInvalid, field, error.inner().to_string())];
        }
    };
    default_spec(&mut pa.spec);
    causes(&validate::check(&pa))
}

fn check_chpa(object: &Value) -> Vec<Cause> {
    let chpa: Chpa = match serde_path_to_error::deserialize(object) {
        Ok(chpa) => chpa,
        // Whatever its spec says, that can be read.
        Err(error) => {
            let message = error.inner().to_string();
            return vec![cause(Problem::TypeInvalid, "metadata".to_owned(), message)];
        }
    };
    let faults = chpa.faults().into_iter();
    faults.map(|fault| cause(Problem::Invalid, fault.field, fault.problem)).collect()
}

fn check_scaled_object(object: &Value) -> Vec<Cause> {
    check_keda::<ScaledObject>(object, keda_check::scaled_object)
}

fn check_scaled_job(object: &Value) -> Vec<Cause> {
    check_keda::<ScaledJob>(object, keda_check::scaled_job)
}

fn check_keda<T: DeserializeOwned>(
    object: &Value,
    check: fn(&T) -> Result<(), keda_check::CheckError>,
) -> Vec<Cause> {
    let object: T = match serde_path_to_error::deserialize(object) {
        Ok(object) => object,
        Err(error) => {
            let field = match error.path().to_string() {
                path if path == "." => "spec".to_owned(),
                path => path,
            };
            return vec![cause(Problem::TypeInvalid, field, error.inner().to_string())];
        }
    };
    let said = |error: keda_check::CheckError| {
        cause(Problem::Invalid, error.field().to_owned(), error.problem)
    };
    check(&object).err().map(said).into_iter().collect()
}

/// What KEDA's webhook warns of.
fn scaled_object_warnings(object: &Value) -> Vec<String> {
    let read = ScaledObject::deserialize(object);
    let warnings = read.map(|object| keda_check::warnings(&object.spec)).unwrap_or_default();
    warnings.into_iter().map(str::to_owned).collect()
}

fn cause(problem: Problem, field: String, message: String) -> Cause {
    Cause { reason: problem.reason(), message, field }
}

/// What those lints find that are certain by the object alone.
fn certain_findings(object: &Value) -> Vec<String> {
    let findings = lint_autoscaler(object);
    findings.iter().filter(|f| CERTAIN.contains(&f.lint)).map(warning).collect()
}

/// What the lints find that look at one object; fields are named as it has them.
fn lint_autoscaler(object: &Value) -> Vec<Finding> {
    let Some(form) = Written::of(object) else { return Vec::new() };
    let Some(hpa) = form.as_hpa(object) else { return Vec::new() };
    let autoscaler = Autoscaler { object, hpa: &hpa };
    let mut findings = lint::check(&autoscaler, &Manifests::default(), &[]);
    for finding in &mut findings {
        finding.field = form.path(object, &finding.field);
    }
    findings
}
