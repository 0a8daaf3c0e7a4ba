//! Checks autoscalers: what an API server would say, and the lints.

use super::custom::{self, Fault};
use super::report::{Finding, Severity};
use super::{Remark, apart};
use podscale_api::document::{Place, Places};
use podscale_api::hpa::convert::Version;
use podscale_api::hpa::manifest;
use podscale_api::hpa::v2::{self, HorizontalPodAutoscaler};
use podscale_api::lint::{self, Autoscaler, Manifests, Workload};
use podscale_api::written::Written;
use podscale_apiserver::types::decode::{Decoded, Mismatch, decode_at};
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

    /// The queries to Prometheus: the place of each metric, the server that it names, and the query.
    pub(super) fn queries(&self) -> Vec<(usize, Option<&str>, &str)> {
        let metrics = self.object.pointer("/spec/metrics").and_then(Value::as_array);
        let metrics = metrics.filter(|_| self.form == Written::PodAutoscaler);
        let queries = metrics.into_iter().flatten().enumerate().filter_map(|(index, metric)| {
            let server =
                metric["prometheus"]["server"].as_str().filter(|server| !server.is_empty());
            Some((index, server, metric["prometheus"]["query"].as_str()?))
        });
        queries.collect()
    }

    /// A remark about a field that is no finding.
    pub(super) fn note(&self, field: &str, text: &str) -> String {
        let Place { line, column } = self.place(field);
        format!("{}:{line}:{column}: {}{field}: {text}", self.file, self.path)
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
        let (decoded, mismatches) = apart::checked(&self.object, |object| self.decode(object));
        let wrong: Vec<&str> = mismatches.iter().map(|mismatch| mismatch.path.as_str()).collect();
        let mut findings: Vec<Finding> = mismatches
            .iter()
            .map(|mismatch| self.refused_at(&mismatch.path, mismatch.message.clone()))
            .collect();
        let Some(Decoded { value, unknown }) = decoded else { return findings };
        findings.extend(
            unknown
                .iter()
                .map(|field| self.refused_at(field, format!("unknown field \"{field}\""))),
        );
        let mut refuse = |field: &str, problem: String| {
            let written = self.form.path(&self.object, field);
            if !wrong.iter().any(|wrong| apart::is_about(&written, wrong)) {
                findings.push(self.finding("refused", Severity::Error, field, problem));
            }
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

    /// A refusal of a field, which is named as the object has it.
    fn refused_at(&self, field: &str, problem: String) -> Finding {
        self.finding_at(Fault::new("refused", field, problem))
    }

    fn decode(&self, object: &Value) -> Result<Decoded, Mismatch> {
        let version = Version::of_object(&self.object).unwrap_or(Version::V2).api_version();
        let version = version.rsplit('/').next().unwrap_or_default();
        let types = types::kubernetes();
        let name = name_of("autoscaling", version, v2::KIND);
        let unknown = || Mismatch { path: String::new(), message: format!("unknown type {name}") };
        let ty = types.find(&name).ok_or_else(unknown)?;
        decode_at(types, &ty, object.clone())
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
