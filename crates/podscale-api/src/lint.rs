//! What an API server accepts in an autoscaler and experience shows to be wrong. Each lint has a name, a reason
//! and a function; a new one is a function below and an entry in its file's list.

mod behavior;
mod extended;
mod metrics;
mod target;
mod version;
mod workload;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::hpa::v2::HorizontalPodAutoscaler;
use crate::written::Written;
pub use workload::Workload;

/// The annotation that names the lints which are not to be reported for an object, separated by commas.
pub const IGNORE_ANNOTATION: &str = "podscale.dev/ignore-lints";

/// A lint.
pub struct Lint {
    /// Its name, by which it is silenced.
    pub name: &'static str,
    /// Why what it reports is wrong.
    pub reason: &'static str,
    check: fn(&Autoscaler<'_>, &Manifests<'_>) -> Vec<Remark>,
}

/// An autoscaler that is checked.
#[derive(Clone, Copy, Debug)]
pub struct Autoscaler<'a> {
    /// As it is written.
    pub object: &'a Value,
    /// As `autoscaling/v2`, with nothing filled in; see [`Written::as_hpa`].
    pub hpa: &'a HorizontalPodAutoscaler,
}

impl Autoscaler<'_> {
    fn form(&self) -> Written {
        Written::of(self.object).unwrap_or(Written::Hpa)
    }
}

/// What stands beside it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manifests<'a> {
    /// All autoscalers, the checked one among them.
    pub autoscalers: &'a [Autoscaler<'a>],
    /// All workloads.
    pub workloads: &'a [Workload],
}

/// What one lint has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    field: String,
    problem: String,
}

/// Something that a lint found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The name of the lint.
    pub lint: &'static str,
    /// The field, as a path of `autoscaling/v2`.
    pub field: String,
    /// What is wrong with it.
    pub problem: String,
}

/// All lints, by name.
pub fn lints() -> Vec<&'static Lint> {
    let files = [target::LINTS, metrics::LINTS, behavior::LINTS, extended::LINTS, version::LINTS];
    let mut all: Vec<&Lint> = files.into_iter().flatten().collect();
    all.sort_unstable_by_key(|lint| lint.name);
    all
}

/// The lint of that name.
pub fn lint(name: &str) -> Option<&'static Lint> {
    lints().into_iter().find(|lint| lint.name == name)
}

/// What all lints find in an autoscaler, without those that are ignored or that it silences itself.
pub fn check(
    autoscaler: &Autoscaler<'_>,
    manifests: &Manifests<'_>,
    ignored: &[String],
) -> Vec<Finding> {
    let silenced = silenced(autoscaler.hpa);
    let counts = |name: &str| !ignored.iter().any(|one| one == name) && !silenced.contains(&name);
    let mut findings = Vec::new();
    for lint in lints().into_iter().filter(|lint| counts(lint.name)) {
        let remarks = (lint.check)(autoscaler, manifests);
        findings.extend(remarks.into_iter().map(|Remark { field, problem }| Finding {
            lint: lint.name,
            field,
            problem,
        }));
    }
    findings
}

/// The lints that an object silences.
pub fn silenced(hpa: &HorizontalPodAutoscaler) -> Vec<&str> {
    let names = hpa.metadata.annotations.get(IGNORE_ANNOTATION).unwrap_or_default();
    names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect()
}

fn remark(field: impl Into<String>, problem: impl Into<String>) -> Remark {
    Remark { field: field.into(), problem: problem.into() }
}
