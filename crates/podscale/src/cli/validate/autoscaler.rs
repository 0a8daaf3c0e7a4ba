//! Checks autoscalers: what an API server would say, and the lints.

use super::Remark;
use super::custom::{self, Fault};
use super::report::{Finding, Severity};
use podscale_api::document::{Place, Places};
use podscale_api::hpa::convert::Version;
use podscale_api::hpa::manifest;
use podscale_api::hpa::v2::{self, HorizontalPodAutoscaler};
use podscale_api::lint::{self, Autoscaler, Manifests, Workload};
use podscale_api::written::Written;
use podscale_apiserver::types::decode::{Decoded, decode_at};
use podscale_apiserver::types::{self, name_of};
use serde_json::Value;
use std::sync::Arc;

/// An autoscaler in a file.
pub(super) struct Candidate {
    file: Arc<str>,
    object: Value,
    places: Arc<Places>,
    /// What its fields are behind in the document, if it is in a list.
    path: String,
    form: Written,
    hpa: Option<HorizontalPodAutoscaler>,
}

impl Candidate {
    /// An object that is an autoscaler of a known form; nothing if it is none.
    pub(super) fn new(
        file: &Arc<str>,
        object: &Value,
        places: &Arc<Places>,
        path: &str,
    ) -> Option<Candidate> {
        let form = Written::of(object)?;
        let (file, places) = (Arc::clone(file), Arc::clone(places));
        let (object, path) = (object.clone(), path.to_owned());
        Some(Candidate { file, object, places, path, form, hpa: None })
    }

    /// How it is written.
    pub(super) fn form(&self) -> Written {
        self.form
    }

    /// The autoscaler, once it could be read.
    pub(super) fn hpa(&self) -> Option<&HorizontalPodAutoscaler> {
        self.hpa.as_ref()
    }

    /// Something to say about a field, which is named as in `autoscaling/v2`.
    pub(super) fn finding(
        &self,
        rule: &'static str,
        severity: Severity,
        field: &str,
        problem: String,
    ) -> Finding {
        let written = self.form.path(&self.object, field);
        let place = self.place(&written);
        let shown = if self.form.is_named_as_v2() { field } else { written.as_str() };
        let remark = Remark { place, severity, field: format!("{}{shown}", self.path), problem };
        Finding::of(&self.file, rule, remark)
    }

    /// Something to say about a field, which is named as the object has it.
    fn finding_at(&self, fault: Fault) -> Finding {
        let Fault { rule, severity, field, problem } = fault;
        let place = self.place(&field);
        let field = format!("{}{field}", self.path);
        Finding::of(&self.file, rule, Remark { place, severity, field, problem })
    }

    fn place(&self, written: &str) -> Place {
        let path = format!("{}{written}", self.path);
        self.places.find(path.trim_end_matches('.'))
    }

    /// What an API server would refuse. It reads strictly, as kubectl asks it to.
    pub(super) fn check(&mut self) -> Vec<Finding> {
        if self.form == Written::Hpa {
            return self.check_hpa();
        }
        // What has the right types can be looked at, whatever else is wrong with it.
        self.hpa = self.form.as_hpa(&self.object);
        let faults = custom::check(self.form, &self.object).into_iter();
        faults.map(|fault| self.finding_at(fault)).collect()
    }

    fn check_hpa(&mut self) -> Vec<Finding> {
        let Decoded { value, unknown } = match self.decode() {
            Ok(decoded) => decoded,
            Err(finding) => return vec![finding],
        };
        let mut findings: Vec<Finding> = unknown
            .iter()
            .map(|field| {
                let place = self.place(field);
                let problem = format!("unknown field \"{field}\"");
                let field = format!("{}{field}", self.path);
                let remark = Remark { place, severity: Severity::Error, field, problem };
                Finding::of(&self.file, "refused", remark)
            })
            .collect();
        let mut refuse = |field: &str, problem: String| {
            findings.push(self.finding("refused", Severity::Error, field, problem));
        };
        match manifest::check(&value) {
            Ok(errors) => errors.iter().for_each(|error| refuse(&error.field, error.body())),
            Err(error) => refuse("", error.to_string()),
        }
        // What has the right types can be looked at, whatever else is wrong with it.
        self.hpa = self.form.as_hpa(&value);
        if let Some(hpa) = &mut self.hpa
            && self.object.get("status").is_none()
        {
            hpa.status = None;
        }
        findings
    }

    fn decode(&self) -> Result<Decoded, Finding> {
        let version = Version::of_object(&self.object).unwrap_or(Version::V2).api_version();
        let version = version.rsplit('/').next().unwrap_or_default();
        let types = types::kubernetes();
        let name = name_of("autoscaling", version, v2::KIND);
        let refuse = |path: &str, problem: String| {
            let field = format!("{}{path}", self.path);
            let place = self.place(path);
            let remark = Remark { place, severity: Severity::Error, field, problem };
            Finding::of(&self.file, "refused", remark)
        };
        let ty = types.find(&name).ok_or_else(|| refuse("", format!("unknown type {name}")))?;
        decode_at(types, &ty, self.object.clone())
            .map_err(|mismatch| refuse(&mismatch.path, mismatch.message))
    }
}

/// What the lints find in all autoscalers.
pub(super) fn lint(
    candidates: &[Candidate],
    workloads: &[Workload],
    ignored: &[String],
) -> Vec<Finding> {
    let read: Vec<(&Candidate, Autoscaler<'_>)> = candidates
        .iter()
        .filter_map(|candidate| {
            let hpa = candidate.hpa()?;
            Some((candidate, Autoscaler { object: &candidate.object, hpa }))
        })
        .collect();
    let autoscalers: Vec<Autoscaler<'_>> = read.iter().map(|(_, autoscaler)| *autoscaler).collect();
    let manifests = Manifests { autoscalers: &autoscalers, workloads };
    let mut findings = Vec::new();
    for (candidate, autoscaler) in &read {
        let found = lint::check(autoscaler, &manifests, ignored);
        findings.extend(found.into_iter().map(|found| {
            candidate.finding(found.lint, Severity::Warning, &found.field, found.problem)
        }));
    }
    findings
}
