use super::*;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Service, ServiceAccount};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use podscale_controller::settings::{MetricsApi, ResourceMetrics, TriggerMode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Kubernetes' own types must take every field.
fn check<T: DeserializeOwned + Serialize>(manifest: &Value) {
    let typed: T = serde_json::from_value(manifest.clone()).expect("a manifest of its kind");
    assert_eq!(as_floats(serde_json::to_value(&typed).expect("JSON")), as_floats(manifest.clone()));
}

/// Bounds of schemas are floating point there, and whole numbers here.
fn as_floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(all) => all.into_iter().map(as_floats).collect(),
        Value::Object(all) => all.into_iter().map(|(key, value)| (key, as_floats(value))).collect(),
        other => other,
    }
}

fn singlecloud() -> SinglecloudOptions {
    let adapter = "zcloud/monitor-prometheus-adapter".parse().expect("a location");
    SinglecloudOptions { adapter: Some(adapter), ..SinglecloudOptions::default() }
}

fn everything() -> Options {
    let metrics = MetricOptions {
        resource: ResourceMetrics::Kubelet,
        serve: vec![MetricsApi::Resource, MetricsApi::Custom, MetricsApi::External],
        prometheus_url: Some("http://prometheus.monitoring:9090".to_owned()),
        rules: Some("metric-rules".to_owned()),
        singlecloud: Some(singlecloud()),
        webhook: true,
    };
    let scales = vec!["argoproj.io/rollouts".parse().expect("a resource")];
    Options {
        scales,
        metrics,
        original_chpas: true,
        crds: true,
        pod_deletion_cost: true,
        triggers: Some(in_shop()),
        ..Options::default()
    }
}

fn in_shop() -> TriggerOptions {
    TriggerOptions { namespaces: vec!["shop".to_owned()], ..TriggerOptions::default() }
}

#[test]
fn every_manifest_is_one_of_kubernetes() {
    for manifest in manifests(&everything()) {
        match manifest["kind"].as_str().expect("a kind") {
            "Namespace" => check::<Namespace>(&manifest),
            "ServiceAccount" => check::<ServiceAccount>(&manifest),
            "ClusterRole" => check::<ClusterRole>(&manifest),
            "ClusterRoleBinding" => check::<ClusterRoleBinding>(&manifest),
            "Role" => check::<Role>(&manifest),
            "RoleBinding" => check::<RoleBinding>(&manifest),
            "Deployment" => check::<Deployment>(&manifest),
            "Service" => check::<Service>(&manifest),
            "APIService" => check::<APIService>(&manifest),
            "ValidatingWebhookConfiguration" => {
                check::<ValidatingWebhookConfiguration>(&manifest);
            }
            "PodDisruptionBudget" => check::<PodDisruptionBudget>(&manifest),
            "CustomResourceDefinition" => check::<CustomResourceDefinition>(&manifest),
            other => panic!("what is a {other}?"),
        }
    }
}

#[test]
fn only_who_has_chpas_of_the_original_controller_allows_to_write_them_and_deployments() {
    let writes = |original_chpas| {
        let rules = cluster_rules(&Options { original_chpas, ..Options::default() });
        let whole = |rule: &&Value| ["chpas", "deployments"].contains(&text(&rule["resources"][0]));
        rules
            .iter()
            .filter(whole)
            .map(|rule| rule["verbs"].to_string())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let reads = r#"["list","watch"] ["list","watch"]"#;
    assert_eq!(writes(false), reads);
    assert_eq!(writes(true), format!(r#"{reads} ["update"] ["patch"]"#));
}

#[test]
fn only_who_asks_for_deletion_costs_allows_to_patch_pods() {
    let patches = |pod_deletion_cost| {
        let rules = cluster_rules(&Options { pod_deletion_cost, ..Options::default() });
        let patch = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]});
        rules.iter().filter(|rule| **rule == patch).count()
    };
    assert_eq!((patches(false), patches(true)), (0, 1));
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn nothing_is_allowed_that_would_let_it_read_secrets_or_write_anything_else() {
    for rule in cluster_rules(&everything()) {
        let list = |field: &str| rule[field].as_array().expect("a list").clone();
        let metrics =
            list("apiGroups").iter().all(|g| g.as_str().is_some_and(|g| g.contains("metrics")));
        for resource in list("resources") {
            let resource = resource.as_str().expect("a name");
            assert!(metrics || !resource.contains('*'), "{rule}");
            assert_ne!(resource, "secrets");
            for verb in list("verbs") {
                let writes = ["create", "update", "patch", "delete"]
                    .contains(&verb.as_str().expect("a verb"));
                let may = ["/scale", "/status", "/finalizers"].iter().any(|end| resource.ends_with(end))
                    // Clients of singlecloud's API write them.
                    || resource == "horizontalpodautoscalers"
                    || ["events", "tokenreviews", "subjectaccessreviews"].contains(&resource)
                    || (resource == "chpas" && rule["verbs"] == json!(["update"]))
                    // Their label and finalizer.
                    || ["scaledobjects", "scaledjobs"].contains(&resource)
                    // What ScaledJobs make.
                    || (resource == "jobs" && rule["apiGroups"] == json!(["batch"]))
                    || (resource == "deployments" && rule["verbs"] == json!(["patch"]))
                    || (resource == "pods" && rule["verbs"] == json!(["patch"]))
                    || (["apiservices", "validatingwebhookconfigurations"].contains(&resource)
                        && !rule["resourceNames"].is_null());
                assert!(!writes || may, "{rule}");
            }
        }
    }
}

#[test]
fn definitions_come_first_and_bring_their_rights_only_if_asked_for() {
    let kinds = |crds| {
        let options = Options { crds, ..Options::default() };
        let kinds: Vec<String> = manifests(&options)
            .iter()
            .map(|m| m["kind"].as_str().expect("a kind").into())
            .collect();
        let rules = cluster_rules(&options).into_iter();
        let own = rules.filter(|rule| rule["apiGroups"][0] == "podscale.dev");
        (kinds, own.map(|rule| format!("{} {}", rule["resources"][0], rule["verbs"])).collect())
    };
    let (without, no_rights): (Vec<String>, Vec<String>) = kinds(false);
    assert!(!without.contains(&"CustomResourceDefinition".to_owned()));
    assert_eq!(no_rights, ["\"podautoscalers\" [\"list\"]"], "to see whether there are any");
    let triggers = Options { crds: true, triggers: Some(in_shop()), ..Options::default() };
    let defined = manifests(&triggers)
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .filter_map(|object| object["spec"]["names"]["kind"].as_str().map(str::to_owned))
        .collect::<Vec<String>>();
    for kind in ["ScaledObject", "ScaledJob"] {
        assert!(defined.contains(&kind.to_owned()), "{defined:?}");
    }
    let (with, rights) = kinds(true);
    let defined = crds::all().len();
    assert!(with[..defined].iter().all(|kind| kind == "CustomResourceDefinition"));
    assert_eq!(with[defined..], without);
    let expected = [
        "\"podautoscalers\" [\"list\"]",
        "\"podautoscalers\" [\"watch\"]",
        "\"podautoscalers/status\" [\"update\"]",
    ];
    assert_eq!(rights, expected);
}

/// The chart cannot run the program, so it has the definitions as files.
#[test]
fn the_definitions_of_the_chart_are_current() {
    let chart = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/podscale");
    let of_triggers =
        crds::keda::definitions().into_iter().map(|definition| ("definitions/keda", definition));
    let all = crds::all().into_iter().map(|definition| ("definitions", definition));
    for (folder, definition) in all.chain(of_triggers) {
        let plural = definition["spec"]["names"]["plural"].as_str().expect("a name");
        let path = chart.join(format!("{folder}/{plural}.yaml"));
        let current = format!(
            "# Generated from the program; UPDATE_GENERATED=1 with its tests writes it.\n{}\n",
            serde_saphyr::to_string(&definition).expect("YAML").trim_end()
        );
        if std::env::var_os("UPDATE_GENERATED").is_some() {
            std::fs::create_dir_all(chart.join(folder)).expect("a folder");
            std::fs::write(&path, &current).expect("written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == current, "{}: UPDATE_GENERATED=1 writes it", path.display());
        let read: Value = serde_saphyr::from_str(&found).expect("YAML");
        assert_eq!(read, definition, "it reads as it was meant");
    }
}

#[test]
fn each_piece_brings_the_rights_it_needs_and_no_others() {
    let rights = |metrics: MetricOptions| {
        let options = Options { metrics, ..Options::default() };
        let before = cluster_rules(&Options::default()).len();
        let text = |rule: &Value| format!("{} {}", rule["resources"][0], rule["verbs"]);
        let rules = cluster_rules(&options).into_iter().skip(before);
        let own = own_rules(&options).into_iter().skip(own_rules(&Options::default()).len());
        let rules: Vec<String> = rules.chain(own).map(|rule| text(&rule)).collect();
        rules.join("; ").replace('"', "")
    };
    let of = |resource, serve: &[MetricsApi]| MetricOptions {
        resource,
        serve: serve.to_vec(),
        ..MetricOptions::default()
    };
    let serving = "tokenreviews [create]; subjectaccessreviews [create]; apiservices [get,patch]";
    let secret = "secrets [create]; secrets [get,update]";
    let nodes = "nodes [list,watch]; nodes/metrics [get]";
    for (metrics, expected) in [
        (MetricOptions::default(), String::new()),
        (of(ResourceMetrics::Kubelet, &[]), nodes.to_owned()),
        (of(ResourceMetrics::Prometheus, &[]), String::new()),
        (
            of(ResourceMetrics::Api, &[MetricsApi::Resource]),
            format!("{nodes}; {serving}; {secret}"),
        ),
        (
            of(ResourceMetrics::Prometheus, &[MetricsApi::Resource]),
            format!("nodes [list,watch]; {serving}; {secret}"),
        ),
        (of(ResourceMetrics::Api, &[MetricsApi::External]), format!("{serving}; {secret}")),
        (
            MetricOptions { rules: Some("x".to_owned()), ..MetricOptions::default() },
            "configmaps [watch]".to_owned(),
        ),
        (
            MetricOptions { webhook: true, ..MetricOptions::default() },
            format!("validatingwebhookconfigurations [get,patch]; {secret}"),
        ),
        (
            MetricOptions { singlecloud: Some(singlecloud()), ..MetricOptions::default() },
            format!(
                "tokenreviews [create]; subjectaccessreviews [create]; horizontalpodautoscalers \
                 [get,create,update,delete]; deployments [get]; {secret}"
            ),
        ),
    ] {
        assert_eq!(rights(metrics.clone()), expected, "{metrics:?}");
    }
}

#[test]
fn beside_an_adapter_only_its_rules_and_pods_may_be_touched() {
    let roles = |options: &Options| -> Vec<Value> {
        let of_adapter = |object: &Value| object["metadata"]["namespace"] == "zcloud";
        manifests(options).into_iter().filter(of_adapter).collect()
    };
    let found = roles(&everything());
    let kinds: Vec<&Value> = found.iter().map(|object| &object["kind"]).collect();
    assert_eq!(kinds, ["Role", "RoleBinding"]);
    let expected = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"],
            "resourceNames": ["monitor-prometheus-adapter"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
    ]);
    assert_eq!(found[0]["rules"], expected);
    let served = MetricOptions {
        singlecloud: Some(SinglecloudOptions::default()),
        ..MetricOptions::default()
    };
    assert!(roles(&Options { metrics: served, ..Options::default() }).is_empty());
}

#[test]
fn credentials_of_triggers_may_be_got_where_it_is_said_and_nowhere_else() {
    let about_secrets = |rules: Vec<Value>| -> Vec<String> {
        let has = |rule: &Value| rule["resources"].to_string().contains("secrets");
        rules.iter().filter(|rule| has(rule)).map(|rule| rule["verbs"].to_string()).collect()
    };
    let rights = |triggers: Option<TriggerOptions>| {
        let options = Options { triggers, ..Options::default() };
        let elsewhere: Vec<String> = manifests(&options)
            .iter()
            .filter(|object| object["metadata"]["name"] == "podscale-triggers")
            .map(|object| {
                format!("{} {}", text(&object["kind"]), text(&object["metadata"]["namespace"]))
            })
            .collect();
        let everywhere = about_secrets(cluster_rules(&options));
        (everywhere, about_secrets(own_rules(&options)), elsewhere, options.run_flags())
    };
    let none: [&str; 0] = [];
    let got = ["[\"get\"]"];
    let (everywhere, own, elsewhere, flags) = rights(None);
    assert!(everywhere.is_empty() && own.is_empty() && elsewhere.is_empty() && flags.is_empty());
    let (everywhere, own, elsewhere, flags) = rights(Some(TriggerOptions::default()));
    assert_eq!(everywhere, got);
    assert_eq!(own, none, "it is a part of everywhere");
    assert_eq!(elsewhere, none);
    assert_eq!(flags, ["--triggers"]);
    let (everywhere, own, elsewhere, flags) = rights(Some(in_shop()));
    assert_eq!(everywhere, none);
    assert_eq!(own, got);
    assert_eq!(elsewhere, ["Role shop", "RoleBinding shop"]);
    assert_eq!(flags, ["--triggers", "--trigger-namespaces=shop"]);
}

#[test]
fn hpas_are_written_only_where_they_stand_beside_objects() {
    let verbs = |mode: TriggerMode| {
        let triggers = Some(TriggerOptions { mode, ..TriggerOptions::default() });
        let rules = cluster_rules(&Options { triggers, ..Options::default() });
        let of_hpas = |rule: &&Value| rule["resources"] == json!(["horizontalpodautoscalers"]);
        let verbs = rules.iter().filter(of_hpas).map(|rule| rule["verbs"].to_string());
        verbs.collect::<Vec<_>>().join(" ")
    };
    let read = "[\"list\",\"watch\"]";
    assert_eq!(verbs(TriggerMode::Direct), read);
    let written = "[\"get\",\"create\",\"update\",\"delete\"]";
    assert_eq!(verbs(TriggerMode::Hpa), format!("{read} {written}"));
}

/// Those who extend the table of kinds need not touch this.
#[test]
fn the_api_server_asks_about_every_kind_that_is_checked_and_goes_on_without_an_answer() {
    let options = Options {
        metrics: MetricOptions { webhook: true, ..MetricOptions::default() },
        ..Options::default()
    };
    let all = manifests(&options);
    let of_kind = |kind: &str| all.iter().filter(|o| o["kind"] == kind).collect::<Vec<_>>();
    let configuration = of_kind("ValidatingWebhookConfiguration");
    let webhook = &configuration[0]["webhooks"][0];
    for (field, expected) in [
        ("failurePolicy", json!("Ignore")),
        ("matchPolicy", json!("Equivalent")),
        ("sideEffects", json!("None")),
        ("timeoutSeconds", json!(5)),
        ("admissionReviewVersions", json!(["v1"])),
    ] {
        assert_eq!(webhook[field], expected, "{field}");
    }
    let rules = webhook["rules"].as_array().expect("rules").iter();
    let asked: Vec<String> = rules
        .map(|rule| format!("{}/{}", text(&rule["apiGroups"][0]), text(&rule["resources"][0])))
        .collect();
    let kinds = podscale_api::admission::KINDS.iter();
    let known: Vec<String> = kinds.map(|kind| format!("{}/{}", kind.group, kind.plural)).collect();
    assert_eq!(asked, known);
    let service = &webhook["clientConfig"]["service"];
    let leads_to =
        of_kind("Service").into_iter().find(|o| o["metadata"]["name"] == service["name"]);
    assert_eq!(leads_to.expect("its Service")["spec"]["ports"][0]["port"], service["port"]);
    let bindings = of_kind("RoleBinding");
    assert_eq!(bindings.len(), 1, "nobody needs to be recognized: {bindings:?}");
}
