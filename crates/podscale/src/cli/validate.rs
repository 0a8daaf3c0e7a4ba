//! `podscale validate`: says what is wrong with files before anybody uses them.

mod adapter;
mod apart;
mod autoscaler;
mod cluster;
mod custom;
mod kind;
mod report;
mod sarif;
mod words;

use super::manifests::{self, Manifest};
use super::{print, print_error};
use autoscaler::Candidate;
use clap::Args;
use podscale_api::document::{self, Content, Document, Place};
use podscale_api::lint::{self, Workload};
use podscale_api::singlecloud;
use report::{Finding, OutputFormat, Report, Severity};
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;

/// Check autoscalers and metric rules, offline.
///
/// Checks HorizontalPodAutoscalers of every version, PodAutoscalers, CHPAs, ScaledObjects and singlecloud's
/// autoscalers: reports every error that an API server would report, with file, line, column and field, and
/// lints for what it accepts but experience shows to be wrong. Workloads in the same files are checked for what
/// autoscalers need from them. Also checks the configuration of prometheus-adapter (rules, externalRules,
/// resourceRules), as a file and in ConfigMaps that hold one. Other objects are ignored.
///
/// The annotation podscale.dev/ignore-lints silences a lint for one object, --ignore for all. --cluster also
/// checks against the cluster of the kubeconfig: whether targets exist, metrics are available and pods have
/// requests. Queries of PodAutoscalers are sent to the Prometheus that --prometheus-url names.
///
/// Exit codes: 0 if nothing is wrong (warnings are allowed, unless --deny-warnings), 1 if something is, 2 if a
/// file cannot be read, the cluster cannot be queried, or for a usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    manifests: manifests::Arguments,

    /// The output format: for people, for programs, or for code review tools.
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: OutputFormat,

    /// Lints not to report, separated by commas; repeatable.
    #[arg(long, value_name = "LINT", value_delimiter = ',', value_parser = known_lint)]
    ignore: Vec<String>,

    /// Also exit with 1 for warnings.
    #[arg(long)]
    deny_warnings: bool,

    #[command(flatten)]
    cluster: cluster::Arguments,
}

fn known_lint(name: &str) -> Result<String, String> {
    match lint::lint(name) {
        Some(lint) => Ok(lint.name.to_owned()),
        None => {
            let names: Vec<&str> = lint::lints().iter().map(|lint| lint.name).collect();
            Err(format!("there is no such lint; there are {}", names.join(", ")))
        }
    }
}

/// What is said about a part of a document.
struct Remark {
    place: Place,
    severity: Severity,
    field: String,
    problem: String,
}

/// Everything that was read, and what was found in it so far.
#[derive(Default)]
struct Check {
    report: Report,
    candidates: Vec<Candidate>,
    workloads: Vec<Workload>,
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let (manifests, unreadable) = manifests::read(&arguments.manifests);
    unreadable.iter().for_each(print_error);
    let mut check = Check::default();
    for manifest in &manifests {
        check.read(manifest);
    }
    let asked = cluster::ask(&arguments.cluster, &check.candidates);
    let report = check.finish(&arguments.ignore, asked.as_ref().ok().and_then(Option::as_ref));
    print(&report.render(arguments.output));
    match &asked {
        Ok(answers) => answers.iter().flat_map(|answers| &answers.notes).for_each(print_error),
        Err(error) => print_error(error),
    }
    if !unreadable.is_empty() || asked.is_err() {
        ExitCode::from(2)
    } else if report.errors > 0 || (arguments.deny_warnings && report.warnings > 0) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// What an API server, singlecloud's API or the controller would refuse in an object; nothing if it is no
/// autoscaler.
pub(super) fn refusals(object: &Value) -> Vec<String> {
    let candidate = Candidate::new(&"".into(), object, &Arc::default(), "");
    let findings = candidate.map(|mut candidate| candidate.check()).unwrap_or_default();
    let errors = findings.into_iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(|finding| format!("{}: {}", finding.field, finding.problem)).collect()
}

impl Check {
    /// Reads a file, and checks what can be checked by itself.
    fn read(&mut self, manifest: &Manifest) {
        let file: Arc<str> = manifest.name.as_str().into();
        for document in document::split(&manifest.text) {
            if document.has_content() {
                self.report.documents += 1;
                self.read_document(&file, &document);
            }
        }
    }

    fn read_document(&mut self, file: &Arc<str>, document: &Document<'_>) {
        let content = match document.read() {
            Ok(content) => content,
            Err(error) => {
                let remark = Remark {
                    place: error.place,
                    severity: Severity::Error,
                    field: String::new(),
                    problem: error.problem,
                };
                return self.report.add(Finding::of(file, "unreadable", remark));
            }
        };
        if let Some(remarks) = adapter::check(&content.value, document) {
            for remark in remarks {
                self.report.add(Finding::of(file, "adapter-rule", remark));
            }
            return;
        }
        let Content { value, places } = content;
        let places = Arc::new(places);
        let checked = self.read_object(file, &value, &places, "");
        if !checked {
            self.report.unchecked += 1;
        }
    }

    /// Takes in an object or the objects of a list; says whether any of them is checked.
    fn read_object(
        &mut self,
        file: &Arc<str>,
        object: &Value,
        places: &Arc<document::Places>,
        path: &str,
    ) -> bool {
        let kind = object["kind"].as_str().unwrap_or_default();
        if let Some((name, items)) = items(object) {
            let mut checked = false;
            for (index, item) in items.iter().enumerate() {
                let below = format!("{path}{name}[{index}].");
                checked |= self.read_object(file, item, places, &below);
            }
            return checked;
        }
        if let Some(mut candidate) = Candidate::new(file, object, places, path) {
            candidate.check().into_iter().for_each(|finding| self.report.add(finding));
            self.candidates.push(candidate);
            return true;
        }
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (field, problem) = match (kind::misspelt(version, kind), kind) {
            (Some((field, problem)), _) => (format!("{path}{field}"), problem),
            (None, "") => {
                let problem = format!("not a document that can be checked: {}", KINDS.join(", "));
                (path.trim_end_matches('.').to_owned(), problem)
            }
            _ => {
                self.workloads.extend(Workload::read(object));
                return false;
            }
        };
        let place = places.find(&field);
        let remark = Remark { place, severity: Severity::Error, field, problem };
        self.report.add(Finding::of(file, "refused", remark));
        true
    }

    /// Checks autoscalers against everything else that was read, and against the cluster if it was asked.
    fn finish(mut self, ignored: &[String], answers: Option<&cluster::Answers>) -> Report {
        let mut workloads = self.workloads;
        if let Some(answers) = answers {
            // What is in the files counts more than what is in the cluster.
            workloads.extend(answers.workloads.iter().cloned());
        }
        let findings = autoscaler::lint(&self.candidates, &workloads, ignored);
        findings.into_iter().for_each(|finding| self.report.add(finding));
        if let Some(answers) = answers {
            answers.findings.iter().cloned().for_each(|finding| self.report.add(finding));
        }
        self.report.sort();
        self.report
    }
}

/// The objects in a list of Kubernetes' or a collection of singlecloud's, and the field that holds them.
fn items(object: &Value) -> Option<(&'static str, &Vec<Value>)> {
    let is_list = object["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    let name = if is_list { "items" } else { "data" };
    let known = is_list || object["resourceType"] == singlecloud::TYPE;
    object[name].as_array().filter(|_| known).map(|items| (name, items))
}

/// What can be checked, in words.
const KINDS: [&str; 8] = [
    "a HorizontalPodAutoscaler",
    "a PodAutoscaler",
    "a CHPA",
    "a ScaledObject",
    "a ScaledJob",
    "an autoscaler of singlecloud's",
    "a configuration of prometheus-adapter",
    "a ConfigMap with one under config.yaml",
];

#[cfg(test)]
mod tests;
