//! `podscale install`: prints what to apply to a cluster.

use super::{conclude, print};
use crate::install::{NAME, Options, ScaleResource, manifests};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Print the manifests that run the controller in a cluster.
///
/// Touches no cluster: `podscale install | kubectl apply -f -` does. Two controllers must never look
/// after the same autoscaler: start kube-controller-manager with
/// --controllers=*,-horizontal-pod-autoscaler-controller, or look on with --dry-run-mode.
///
/// Exit codes: 0 printed, 2 asked wrongly.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The namespace to run in; it is made as well.
    #[arg(long, short, value_name = "NAME", default_value = NAME, value_parser = label)]
    namespace: String,

    /// The image to run from.
    #[arg(long, value_name = "IMAGE", default_value_t = Options::default().image)]
    image: String,

    /// How many replicas to run; one of them leads.
    #[arg(long, value_name = "N", default_value_t = 2)]
    replicas: u32,

    /// Which autoscalers to manage, as `podscale run --manage` takes it.
    #[arg(long, value_name = "WHICH")]
    manage: Option<String>,

    /// Decide and report, but write nothing.
    #[arg(long)]
    dry_run_mode: bool,

    /// Another kind of target that may be scaled, such as argoproj.io/rollouts; may be repeated.
    #[arg(long = "scale", value_name = "GROUP/RESOURCE")]
    scales: Vec<ScaleResource>,

    /// Another flag for `podscale run`, such as --run-flag=--sync-period=5s; may be repeated.
    #[arg(long = "run-flag", value_name = "FLAG", allow_hyphen_values = true)]
    run_flags: Vec<String>,

    /// The form to print.
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// YAML documents.
    #[default]
    Yaml,
    /// One JSON List.
    Json,
}

/// The name of a namespace.
fn label(text: &str) -> Result<String, String> {
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = text.starts_with('-') || text.ends_with('-');
    if text.is_empty() || text.len() > 63 || edges || !text.chars().all(letter) {
        return Err("not a name of small letters, digits and dashes".to_owned());
    }
    Ok(text.to_owned())
}

impl Arguments {
    fn options(&self) -> Options {
        let manage = self.manage.iter().map(|which| format!("--manage={which}"));
        let dry_run = self.dry_run_mode.then(|| "--dry-run".to_owned());
        Options {
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            replicas: self.replicas,
            arguments: manage.chain(dry_run).chain(self.run_flags.iter().cloned()).collect(),
            scales: self.scales.clone(),
        }
    }
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let text = text(&manifests(&arguments.options()), arguments.output);
    conclude(text.map(|text| print(&text)))
}

fn text(manifests: &[Value], output: Output) -> Result<String, String> {
    match output {
        Output::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": manifests});
            Ok(format!("{list:#}\n"))
        }
        Output::Yaml => {
            let document = |manifest| serde_saphyr::to_string(manifest).map_err(|e| e.to_string());
            let documents: Result<Vec<String>, String> = manifests.iter().map(document).collect();
            Ok(documents?.iter().map(|text| format!("---\n{}\n", text.trim_end())).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn flags(arguments: &[&str]) -> Result<Arguments, String> {
        let all = ["install"].iter().chain(arguments);
        Flags::try_parse_from(all).map(|f| f.arguments).map_err(|error| error.to_string())
    }

    #[test]
    fn both_forms_say_the_same() {
        let arguments = flags(&["-n", "scaling", "--manage", "annotated", "--dry-run-mode"]);
        let objects = manifests(&arguments.expect("flags").options());
        let yaml = text(&objects, Output::Yaml).expect("YAML");
        let read: Vec<Value> = yaml
            .split("---\n")
            .filter(|document| !document.trim().is_empty())
            .map(|document| serde_saphyr::from_str(document).expect("YAML"))
            .collect();
        assert_eq!(read, objects);
        let json: Value =
            serde_json::from_str(&text(&objects, Output::Json).expect("JSON")).expect("JSON");
        assert_eq!(json["items"], Value::Array(objects));
        for part in ["namespace: scaling", "--manage=annotated", "--dry-run"] {
            assert!(yaml.contains(part), "no {part} in\n{yaml}");
        }
    }

    #[test]
    fn wrong_flags_are_refused() {
        for wrong in [["-n", "Big"], ["--scale", "rollouts"], ["--scale", "/x"], ["-o", "xml"]] {
            flags(&wrong).expect_err("refused");
        }
        let scales = flags(&["--scale", "argoproj.io/rollouts"]).expect("flags").scales;
        let rollouts = ScaleResource { group: "argoproj.io".into(), resource: "rollouts".into() };
        assert_eq!(scales, [rollouts]);
    }
}
