//! `podscale install`: prints what to apply to a cluster.

use super::{conclude, print, print_error, run as controller};
use crate::install::singlecloud::DEFAULT_CLUSTER;
use crate::install::{
    MetricOptions, NAME, Options, ScaleResource, SinglecloudOptions, TriggerOptions, manifests,
};
use clap::{Args, Parser, ValueEnum};
use podscale_controller::controller::manage::Which;
use podscale_controller::serve::rules::Location;
use podscale_controller::settings::{MetricsApi, ResourceMetrics, TriggerMode, name, namespace};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Print the manifests that run the controller in a cluster.
///
/// Changes nothing in the cluster; `podscale install | kubectl apply -f -` does. Two controllers must never
/// manage the same autoscaler: start kube-controller-manager with
/// --controllers=*,-horizontal-pod-autoscaler-controller, or compare with --dry-run.
///
/// Exit codes: 0 printed, 2 usage error.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The namespace to run in; the manifests create it.
    #[arg(long, short, value_name = "NAME", default_value = NAME, value_parser = namespace)]
    namespace: String,

    /// The image to run.
    #[arg(long, value_name = "IMAGE", default_value_t = Options::default().image, value_parser = image)]
    image: String,

    /// How many replicas to run; one of them leads.
    #[arg(long, value_name = "N", default_value_t = 2, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    replicas: u32,

    /// Which autoscalers to manage, as in `podscale run --manage`.
    #[arg(long, value_enum)]
    manage: Option<Which>,

    /// Run the controller with --dry-run: it decides and reports, but writes nothing.
    #[arg(long)]
    dry_run: bool,

    /// The collector to send traces, log lines and metrics to, as in `podscale run --otlp-endpoint`.
    #[arg(long, value_name = "URL")]
    otlp_endpoint: Option<String>,

    /// Another kind of target to allow scaling, such as argoproj.io/rollouts; repeatable.
    #[arg(long = "scale", value_name = "GROUP/RESOURCE")]
    scales: Vec<ScaleResource>,

    /// Grant what CHPAs of the original controller need: writing whole objects, because its definition has no
    /// status subresource, and removing the CHPAs' ownership of Deployments.
    #[arg(long)]
    original_chpas: bool,

    /// Define Podscale's own kinds of autoscalers (PodAutoscaler, CHPA), and grant the permissions to manage
    /// them; with --triggers, also KEDA's kinds.
    #[arg(long)]
    crds: bool,

    /// Allow patching pods, for PodAutoscalers with podDeletionCost: busy pods are removed last.
    #[arg(long)]
    pod_deletion_cost: bool,

    /// Manage KEDA's ScaledObjects and ScaledJobs, and query the event sources of PodAutoscalers, with the
    /// permissions to read the credentials that triggers refer to and to create Jobs. Their definitions are
    /// KEDA's, if they are in the cluster, or those of --crds.
    #[arg(long)]
    triggers: bool,

    /// Allow reading Secrets and ConfigMaps for triggers only in these namespaces and the controller's own.
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        value_parser = namespace,
        requires = "triggers"
    )]
    trigger_namespaces: Vec<String>,

    /// Who decides how many replicas an active target has, as in `podscale run --trigger-mode`; hpa needs
    /// --serve-metrics external.
    #[arg(long, value_enum, default_value_t, value_name = "MODE", requires = "triggers")]
    trigger_mode: TriggerMode,

    /// Where cpu and memory come from, as in `podscale run --resource-metrics`.
    #[arg(long, value_enum, default_value_t)]
    resource_metrics: ResourceMetrics,

    /// Serve these metrics APIs in the cluster, in place of metrics-server and prometheus-adapter.
    #[arg(long, value_enum, value_name = "API,...", value_delimiter = ',')]
    serve_metrics: Vec<MetricsApi>,

    /// The Prometheus to query, as in `podscale run --prometheus-url`.
    #[arg(long, value_name = "URL")]
    prometheus_url: Option<String>,

    /// The ConfigMap, in the namespace of the pods, with prometheus-adapter's rules.
    #[arg(long, value_name = "NAME", value_parser = name)]
    metric_rules: Option<String>,

    /// Have the API server ask Podscale before it stores PodAutoscalers, CHPAs and ScaledObjects: an admission
    /// webhook rejects invalid specs. While Podscale is down, objects are stored unchecked.
    #[arg(long)]
    webhook: bool,

    /// Serve singlecloud's API for autoscalers on port 6444 of the Service podscale-metrics.
    #[arg(long)]
    singlecloud: bool,

    /// The cluster's name in the paths of singlecloud's API.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_CLUSTER, requires = "singlecloud")]
    singlecloud_cluster: String,

    /// The ConfigMap of a prometheus-adapter in which to maintain the metric rules, as in
    /// `podscale run --singlecloud-adapter`.
    #[arg(long, value_name = "NAMESPACE/NAME[/KEY]", requires = "singlecloud")]
    singlecloud_adapter: Option<Location>,

    /// Another flag for `podscale run`, such as --run-flag=--sync-period=5s; repeatable.
    #[arg(long = "run-flag", value_name = "FLAG", allow_hyphen_values = true)]
    run_flags: Vec<String>,

    /// The output format.
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

/// The name of an image.
fn image(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("not an image such as registry.example/podscale:0.1.0".to_owned());
    }
    Ok(text.to_owned())
}

/// The command line of the pods.
#[derive(Parser)]
#[command(name = "podscale run", args_override_self = true)]
struct Inside {
    #[command(flatten)]
    arguments: controller::Arguments,
}

/// Flags that other parts of what is printed depend on.
const FIXED: [&str; 3] =
    ["--admin-address", "--leader-elect-resource-name", "--leader-elect-resource-namespace"];

/// Refuses flags with which the pods would not start or not work.
fn check(flags: &[String]) -> Result<(), String> {
    let refusal = |why: &str| format!("podscale run would not start with these flags: {why}");
    let fixed = |flag: &&String| FIXED.contains(&flag.split('=').next().unwrap_or_default());
    if let Some(flag) = flags.iter().find(fixed) {
        return Err(format!(
            "--run-flag={flag} cannot be chosen: the roles, the probes and the Service of what is \
             printed need it as it is"
        ));
    }
    let line = ["podscale run"].into_iter().chain(flags.iter().map(String::as_str));
    let inside = Inside::try_parse_from(line).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default();
        refusal(first.trim_start_matches("error: "))
    })?;
    inside.arguments.check().map_err(|error| refusal(&error.to_string()))
}

impl Arguments {
    fn options(&self) -> Options {
        let manage = self.manage.iter().map(|which| format!("--manage={}", which.name()));
        let dry_run = self.dry_run.then(|| "--dry-run".to_owned());
        let otlp = self.otlp_endpoint.iter().map(|url| format!("--otlp-endpoint={url}"));
        let own = manage.chain(dry_run).chain(otlp);
        Options {
            namespace: self.namespace.clone(),
            image: self.image.clone(),
            replicas: self.replicas,
            arguments: own.chain(self.run_flags.iter().cloned()).collect(),
            scales: self.scales.clone(),
            original_chpas: self.original_chpas,
            crds: self.crds,
            pod_deletion_cost: self.pod_deletion_cost,
            triggers: self.triggers.then(|| TriggerOptions {
                namespaces: self.trigger_namespaces.clone(),
                mode: self.trigger_mode,
            }),
            metrics: MetricOptions {
                resource: self.resource_metrics,
                serve: self.serve_metrics.clone(),
                prometheus_url: self.prometheus_url.clone(),
                rules: self.metric_rules.clone(),
                singlecloud: self.singlecloud.then(|| SinglecloudOptions {
                    cluster: self.singlecloud_cluster.clone(),
                    adapter: self.singlecloud_adapter.clone(),
                }),
                webhook: self.webhook,
            },
        }
    }
}

/// Runs the command.
#[must_use]
pub fn run(arguments: &Arguments) -> ExitCode {
    let options = arguments.options();
    if let Err(wrong) = check(&options.run_flags()) {
        print_error(wrong);
        return ExitCode::from(2);
    }
    let text = text(&manifests(&options), arguments.output);
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
        let place = ["-n", "scaling", "--otlp-endpoint", "http://collector:4318"];
        let arguments = flags(&[&place[..], &["--manage", "annotated", "--dry-run"]].concat());
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
        for part in
            ["namespace: scaling", "--manage=annotated", "--dry-run", "--otlp-endpoint=http://"]
        {
            assert!(yaml.contains(part), "no {part} in\n{yaml}");
        }
    }

    #[test]
    fn wrong_flags_are_refused() {
        for (wrong, words) in [
            (["-n", "Big"], "'--namespace <NAME>': not a name of small letters, digits and dashes"),
            (["--scale", "rollouts"], "'--scale <GROUP/RESOURCE>': not a group and a resource"),
            (["--scale", "/x"], "'--scale <GROUP/RESOURCE>': not a group and a resource"),
            (["-o", "xml"], "'--output <OUTPUT>'"),
            (["--manage", "some"], "possible values: native, annotated"),
            (["--replicas", "0"], "'--replicas <N>': 0 is not in 1"),
            (["--image", "a b"], "'--image <IMAGE>': not an image such as"),
        ] {
            let error = flags(&wrong).expect_err("refused");
            assert!(error.contains(words), "{error}");
        }
        for (flag, words) in [
            ("--sync-perod=5s", "these flags: unexpected argument '--sync-perod' found"),
            ("--tolerance=much", "invalid value 'much' for '--horizontal-pod-autoscaler-tolerance"),
            ("--tolerance=-1", "invalid value '-1' for '--horizontal-pod-autoscaler-tolerance"),
            ("--leader-elect-lease-duration=5s", "--leader-elect-lease-duration must be longer"),
            (
                "--otlp-endpoint=collector:4318",
                "--otlp-endpoint: collector:4318 does not begin with",
            ),
        ] {
            let error = check(&[flag.to_owned()]).expect_err("refused");
            assert!(error.starts_with("podscale run would not start"), "{error}");
            assert!(error.contains(words), "{error}");
        }
        for fixed in ["--admin-address=0.0.0.0:9091", "--leader-elect-resource-name=x"] {
            let error = check(&[fixed.to_owned()]).expect_err("refused");
            assert!(error.starts_with(&format!("--run-flag={fixed} cannot be chosen")), "{error}");
        }
        check(&["--sync-period=5s".to_owned(), "--dry-run".to_owned()]).expect("taken");
        let twice = ["--log-format=json", "--log-format=text"].map(str::to_owned);
        check(&twice).expect("the last one counts");
        let scales = flags(&["--scale", "argoproj.io/rollouts"]).expect("flags").scales;
        let rollouts = ScaleResource { group: "argoproj.io".into(), resource: "rollouts".into() };
        assert_eq!(scales, [rollouts]);
    }

    #[test]
    fn flags_about_metrics_that_could_have_no_effect_are_refused() {
        let flags = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let asked = "--serve-metrics --prometheus-url=http://p";
        let ruled = format!("{asked} --metric-rules-configmap=a/b");
        for (line, words) in [
            ("--serve=custom".to_owned(), "--serve has no effect without --serve-metrics"),
            ("--plain-address=127.0.0.1:1".to_owned(), "--plain-address has no effect without"),
            (
                format!("{ruled} --serve=custom --plain-address=127.0.0.1:1"),
                "--plain-address has no effect without resource in --serve",
            ),
            ("--metric-rules=x".to_owned(), "--metric-rules: nothing says where Prometheus is"),
            ("--metric-rules-configmap=a/b".to_owned(), "--metric-rules-configmap: nothing says"),
            ("--prometheus-url=ftp://x".to_owned(), "Prometheus: ftp://x: must begin with"),
            ("--dry-run --serve-metrics".to_owned(), "--dry-run writes nothing, but"),
        ] {
            let error = check(&flags(&line)).expect_err(&line);
            assert!(error.contains(words), "{line}: {error}");
        }
        let certificate = "--tls-cert-file=a --tls-private-key-file=b";
        for line in [
            "--serve-metrics --plain-address=127.0.0.1:1".to_owned(),
            format!("--dry-run --serve-metrics {certificate}"),
            format!("{ruled} --serve=custom,external"),
        ] {
            check(&flags(&line)).expect(&line);
        }
    }
}
