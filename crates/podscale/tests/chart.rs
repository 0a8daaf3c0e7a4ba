//! The Helm chart must render to what `podscale install` prints, and what the documentation says of both must work.

use podscale::install::{
    MetricOptions, Options, ScaleResource, SinglecloudOptions, TriggerOptions, manifests,
};
use podscale_controller::settings::{MetricsApi, ResourceMetrics, TriggerMode};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A helm that was built from source believes in an old Kubernetes.
const KUBERNETES: [&str; 2] = ["--kube-version", "1.37.0"];

/// `$HELM`, or the one on the path.
fn helm() -> Option<PathBuf> {
    let named = std::env::var_os("HELM").map(PathBuf::from);
    let helm = named.unwrap_or_else(|| PathBuf::from("helm"));
    let answer = Command::new(&helm).arg("version").output();
    answer.is_ok_and(|answer| answer.status.success()).then_some(helm)
}

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/podscale")
}

fn run(helm: &Path, arguments: &[&str]) -> String {
    let answer = Command::new(helm).args(arguments).output().expect("helm runs");
    let (out, error) = (answer.stdout, String::from_utf8_lossy(&answer.stderr).into_owned());
    let out = String::from_utf8(out).expect("UTF-8");
    assert!(answer.status.success(), "helm {arguments:?}: {error}{out}");
    out
}

/// Objects by kind, namespace and name.
fn by_name(objects: impl IntoIterator<Item = Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
    };
    objects.into_iter().map(|object| (name(&object), object)).collect()
}

#[test]
fn the_chart_renders_to_what_install_prints() {
    let Some(helm) = helm() else {
        let required = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!required, "helm is not installed, and $HELM names none");
        println!("\n!! LEFT OUT: helm is not installed; $HELM can name one\n");
        return;
    };
    let chart = chart();
    let chart = chart.to_str().expect("UTF-8");
    let rollouts = ScaleResource { group: "argoproj.io".into(), resource: "rollouts".into() };
    let endpoint = "--otlp-endpoint=http://collector:4318";
    let flags = ["--manage=annotated", "--dry-run", endpoint, "--sync-period=5s"];
    let many = Options {
        namespace: "scaling".into(),
        image: "registry.example/podscale:7".into(),
        replicas: 3,
        arguments: flags.map(str::to_owned).to_vec(),
        scales: vec![rollouts],
        original_chpas: true,
        metrics: MetricOptions {
            resource: ResourceMetrics::Kubelet,
            serve: vec![MetricsApi::Resource, MetricsApi::Custom, MetricsApi::External],
            prometheus_url: Some("http://prometheus.monitoring:9090".into()),
            rules: Some("metric-rules".into()),
            singlecloud: Some(SinglecloudOptions {
                cluster: "east".into(),
                adapter: Some("zcloud/monitor-prometheus-adapter".parse().expect("a location")),
            }),
            webhook: true,
        },
        crds: true,
        pod_deletion_cost: true,
        triggers: Some(TriggerOptions {
            namespaces: vec!["shop".into(), "web".into()],
            mode: TriggerMode::Hpa,
        }),
    };
    let sets = [
        "image.repository=registry.example/podscale",
        "image.tag=7",
        "replicas=3",
        "manage=annotated",
        "dryRun=true",
        "otlp.endpoint=http://collector:4318",
        "arguments[0]=--sync-period=5s",
        "originalChpas=true",
        "scales[0].group=argoproj.io",
        "scales[0].resource=rollouts",
        "metrics.resource=kubelet",
        "metrics.serve={resource,custom,external}",
        "metrics.prometheusUrl=http://prometheus.monitoring:9090",
        "metrics.rules=metric-rules",
        "singlecloud.enabled=true",
        "singlecloud.cluster=east",
        "singlecloud.adapter.namespace=zcloud",
        "singlecloud.adapter.name=monitor-prometheus-adapter",
        "crds=true",
        "podDeletionCost=true",
        "webhook.enabled=true",
        "triggers.enabled=true",
        "triggers.namespaces={shop,web}",
        "triggers.mode=hpa",
    ];
    let webhook = Options {
        metrics: MetricOptions { webhook: true, ..MetricOptions::default() },
        ..Options::default()
    };
    let singlecloud = Options {
        metrics: MetricOptions {
            singlecloud: Some(SinglecloudOptions::default()),
            ..MetricOptions::default()
        },
        ..Options::default()
    };
    let resource = Options {
        metrics: MetricOptions { serve: vec![MetricsApi::Resource], ..MetricOptions::default() },
        ..Options::default()
    };
    let by_prometheus = Options {
        metrics: MetricOptions {
            resource: ResourceMetrics::Prometheus,
            serve: vec![MetricsApi::Resource],
            prometheus_url: Some("http://prometheus:9090".into()),
            ..MetricOptions::default()
        },
        ..Options::default()
    };
    let from_prometheus = [
        "metrics.resource=prometheus",
        "metrics.serve={resource}",
        "metrics.prometheusUrl=http://prometheus:9090",
    ];
    let triggers = Options { triggers: Some(TriggerOptions::default()), ..Options::default() };
    let rows = [
        (Options::default(), &[][..]),
        (triggers, &["triggers.enabled=true"][..]),
        (by_prometheus, &from_prometheus[..]),
        (resource, &["metrics.serve={resource}"][..]),
        (singlecloud, &["singlecloud.enabled=true"][..]),
        (webhook, &["webhook.enabled=true"][..]),
        (many, &sets[..]),
    ];
    for (options, sets) in rows {
        let namespace = options.namespace.as_str();
        let mut arguments = vec!["template", "podscale", chart, "--namespace", namespace];
        arguments.extend(KUBERNETES);
        arguments.extend(sets.iter().flat_map(|set| ["--set", set]));
        let text = run(&helm, &arguments);
        let documents = text.split("\n---\n").map(|text| text.trim_start_matches("---\n"));
        let rendered = documents.filter(|text| text.lines().any(|l| l.starts_with("kind:")));
        let rendered = rendered.map(|text| serde_saphyr::from_str(text).expect("YAML"));
        // Helm makes the namespace itself.
        let expected = manifests(&options).into_iter().filter(|m| m["kind"] != "Namespace");
        let (rendered, expected) = (by_name(rendered), by_name(expected));
        let names = |objects: &BTreeMap<String, Value>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&rendered), names(&expected));
        for (name, object) in &expected {
            assert_eq!(rendered.get(name), Some(object), "{name}");
        }
    }
    let [flag, version] = KUBERNETES;
    let template = ["template", "podscale", chart, flag, version, "--set"];
    let volumes = "volumes[0].name=x,volumeMounts[0].name=x,volumeMounts[0].mountPath=/x";
    let mounted = run(&helm, &[&template[..], &[volumes]].concat());
    assert!(mounted.contains("mountPath: /x"), "{mounted}");
    let identity = "podLabels.cloud=used,serviceAccountAnnotations.cloud\\.example/role=worker";
    let identified = run(&helm, &[&template[..], &[identity]].concat());
    assert!(identified.contains("\n        cloud: used\n"), "{identified}");
    assert!(identified.contains("\n    cloud.example/role: worker\n"), "{identified}");
    let fixed = ["arguments[0]=--admin-address=0.0.0.0:1"];
    let refused = Command::new(&helm).args(template).args(fixed).output().expect("helm runs");
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(error.contains("--admin-address=0.0.0.0:1 cannot be chosen"), "{error}");
    let linted = run(&helm, &[&["lint", "--strict", chart][..], &KUBERNETES].concat());
    assert!(linted.contains("0 chart(s) failed"), "{linted}");
}

/// The arguments of every `podscale install` on a page, up to where its output goes.
fn documented(page: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(path).expect("a page").replace("\\\n", " ");
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ podscale install"));
    let words = |command: &str| {
        let words = command.split_whitespace().take_while(|word| !["|", ">"].contains(word));
        words.map(str::to_owned).collect()
    };
    commands.map(words).collect()
}

#[test]
fn what_is_documented_can_be_installed() {
    for (page, least) in [("install.md", 1), ("replace.md", 4), ("webhook.md", 1)] {
        let commands = documented(page);
        assert!(commands.len() >= least, "{page}: {commands:?}");
        for arguments in commands {
            let answer = Command::new(env!("CARGO_BIN_EXE_podscale"))
                .arg("install")
                .args(&arguments)
                .output();
            let answer = answer.expect("the program");
            let error = String::from_utf8_lossy(&answer.stderr).into_owned();
            assert!(answer.status.success(), "{page}: podscale install {arguments:?}: {error}");
            let text = String::from_utf8_lossy(&answer.stdout).into_owned();
            assert!(text.contains("kind: Deployment"), "{page}: {text}");
        }
    }
}
