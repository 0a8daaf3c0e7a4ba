//! PodAutoscalers on a real control plane: their definition comes while the controller runs, good ones
//! scale, bad ones are refused in words that help, and kubectl shows what happens.

use super::adopted::adopt;
use super::fixture::{Fixture, autoscaler, load};
use super::harness::Harness;
use super::metrics::Usage;
use super::program::{Program, QUICK};
use super::rbac::{allow, end};
use super::serve::kubectl;
use anyhow::{Context, Result, ensure};
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use libtest_mimic::Trial;
use podscale::install::{Options, cluster_rules};
use podscale_api::crds;
use podscale_api::pod::DELETION_COST;
use serde_json::{Value, json};

pub const VERSION: &str = "podscale.dev/v1alpha1";
pub const KIND: &str = "PodAutoscaler";

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.alone("pod_autoscaler::from_definition_to_columns", from_definition_to_columns)]
}

/// A PodAutoscaler with the spec of an HPA and these fields.
fn pod_autoscaler(name: &str, change: Value) -> Value {
    let behavior = json!({"scaleDown": {"stabilizationWindowSeconds": 0}});
    let mut object = autoscaler(name, (1, 8), load(name), behavior);
    (object["apiVersion"], object["kind"]) = (VERSION.into(), KIND.into());
    for (field, value) in change.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn rules(crds: bool) -> Vec<Value> {
    cluster_rules(&Options { crds, ..Options::default() })
}

/// The busy pod is the one that is left, and is said to cost more than the others.
async fn busy_pods_last(fixture: &Fixture) -> Result<()> {
    fixture.deployment("busy", 4).await?;
    fixture.metrics().set_usage(&fixture.namespace, "busy", "sessions", Usage::First(40_000));
    fixture.set_load("busy", 4.0);
    let sessions = json!({"type": "Pods", "name": "sessions", "pods": {"metric": {"name": "sessions"},
        "target": {"type": "AverageValue", "averageValue": "100"}}});
    let metrics = json!([load("busy")[0], sessions]);
    let cost = json!({"metrics": metrics, "podDeletionCost": {"metric": "sessions"}});
    let (ok, text) = apply(fixture, &pod_autoscaler("busy", cost))?;
    ensure!(ok, "{text}");
    let pods = async || -> Result<Vec<(String, String)>> {
        let list = fixture.api("v1", "Pod").list(&ListParams::default().labels("app=busy")).await?;
        let cost = |pod: &DynamicObject| {
            let annotations = pod.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(DELETION_COST)).cloned().unwrap_or_default()
        };
        let stays = list.items.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let named = |pod| (DynamicObject::name_any(pod), cost(pod));
        let mut found: Vec<(String, String)> = stays.map(named).collect();
        found.sort();
        Ok(found)
    };
    // Without the right it is reported, and nobody is kept from shrinking.
    fixture.set_load("busy", 3.0);
    fixture.until_replicas("busy", 3).await?;
    let reported = async || -> Result<bool> {
        let text = shown(fixture, &["describe", "pa", "busy"])?;
        let words = ["FailedSetDeletionCost", "the deletion costs of pods could not be set"];
        Ok(words.iter().all(|word| text.contains(word)))
    };
    fixture.until("whether it is reported", &true, reported).await?;
    let options = Options { crds: true, pod_deletion_cost: true, ..Options::default() };
    allow(fixture, cluster_rules(&options)).await?;
    fixture.until_pods("busy", 3).await?;
    let busy = pods().await?.first().context("no pod")?.0.clone();
    fixture.set_load("busy", 1.0);
    fixture.until("the pods that are left", &vec![(busy, "1".to_owned())], pods).await?;
    fixture.delete(VERSION, KIND, "busy").await
}

/// Applies an object with kubectl; whether that went well, and what it said.
pub fn apply(fixture: &Fixture, object: &Value) -> Result<(bool, String)> {
    let plane = &fixture.environment.plane;
    let file = plane.folder().join("applied.json");
    std::fs::write(&file, object.to_string())?;
    let file = file.to_str().context("UTF-8")?;
    kubectl(plane, &["apply", "--namespace", &fixture.namespace, "--filename", file])
}

pub fn shown(fixture: &Fixture, arguments: &[&str]) -> Result<String> {
    let all = [arguments, &["--namespace", &fixture.namespace]].concat();
    let (ok, text) = kubectl(&fixture.environment.plane, &all)?;
    ensure!(ok, "kubectl {arguments:?}: {text}");
    Ok(text)
}

async fn from_definition_to_columns(fixture: Fixture) -> Result<()> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "limited"}});
    fixture.create(account).await?;
    allow(&fixture, rules(false)).await?;
    let plane = &fixture.environment.plane;
    let kubeconfig = plane.kubeconfig_of(&fixture.namespace, "limited").await?;
    let flags: Vec<&str> = QUICK.into_iter().chain(["--leader-elect=false"]).collect();
    let program = Program::start(&fixture.namespace, plane.folder(), &kubeconfig, &flags)?;
    // Without the definition, and without the right to read what it would define.
    fixture
        .until("whether the definition is missed", &true, async || {
            Ok(program.log().contains("resource is not served; waiting for it"))
        })
        .await?;
    ensure!(!program.log().contains("cannot list the resource"), "{}", program.log_tail());
    fixture.deployment("native", 1).await?;
    fixture.set_load("native", 2.0);
    fixture.autoscaler("native", (1, 8), load("native"), Value::Null).await?;
    fixture.until_replicas("native", 2).await?;
    for definition in crds::all() {
        let (ok, text) = apply(&fixture, &definition)?;
        ensure!(ok, "{text}");
    }
    allow(&fixture, rules(true)).await?;
    up_and_down(&fixture).await?;
    refused(&fixture)?;
    rollout(&fixture).await?;
    taken(&fixture).await?;
    busy_pods_last(&fixture).await?;
    adopted(&fixture).await?;
    // The definition goes, and with it its objects; the others are still decided.
    let name = "podautoscalers.podscale.dev";
    let (ok, text) = kubectl(plane, &["delete", "customresourcedefinition", name])?;
    ensure!(ok, "{text}");
    fixture.set_load("native", 3.0);
    fixture.until_replicas("native", 3).await?;
    end(&fixture, program).await
}

async fn up_and_down(fixture: &Fixture) -> Result<()> {
    fixture.deployment("web", 1).await?;
    fixture.set_load("web", 4.0);
    let created = async || Ok(apply(fixture, &pod_autoscaler("web", json!({})))?.0);
    fixture.until("whether the kind is served", &true, created).await?;
    fixture.until_replicas("web", 4).await?;
    fixture.until_pods("web", 4).await?;
    fixture.set_load("web", 2.0);
    fixture.until_replicas("web", 2).await?;
    let get = async || -> Result<bool> {
        let text = shown(fixture, &["get", "pa"])?;
        let words = [
            "NAME",
            "REFERENCE",
            "TARGETS",
            "MIN",
            "MAX",
            "REPLICAS",
            "MODE",
            "REASON",
            "AGE",
            "Deployment/web",
            "web: 1/1 (avg)",
            "Active",
        ];
        Ok(words.iter().all(|word| text.contains(word)))
    };
    fixture.until("whether kubectl get pa tells the story", &true, get).await?;
    let wide = async || -> Result<bool> {
        let text = shown(fixture, &["get", "pa", "web", "--output", "wide"])?;
        let words =
            ["DESIRED", "SCHEDULE", "LAST-SCALE", "FROM", "TO", "WHY", "All metrics below target"];
        Ok(words.iter().all(|word| text.contains(word)))
    };
    fixture.until("whether -o wide tells more", &true, wide).await?;
    let describe = async || -> Result<bool> {
        let text = shown(fixture, &["describe", "pa", "web"])?;
        let words = [
            "AbleToScale",
            "ScalingActive",
            "ScalingLimited",
            "Valid",
            "Observed Generation",
            "SuccessfulRescale",
            "New size: 4; reason: external metric web(nil) above target",
            "New size: 2; reason: All metrics below target",
        ];
        Ok(words.iter().all(|word| text.contains(word)))
    };
    fixture.until("whether kubectl describe has conditions and events", &true, describe).await?;
    let explained = shown(fixture, &["explain", "pa.spec.schedules.start"])?;
    ensure!(explained.contains("a cron expression of five fields"), "{explained}");
    Ok(())
}

/// What a metric does without a value is a word or an object, which takes a field without a type.
fn missing(on_missing: Value) -> Value {
    let target = json!({"type": "Value", "value": "5"});
    json!({"metrics": [{"type": "Prometheus", "onMissing": on_missing,
        "prometheus": {"query": "up", "target": target}}]})
}

fn refused(fixture: &Fixture) -> Result<()> {
    for on_missing in [json!("Hold"), json!("LastValue"), json!({"replicas": 3}), json!(3)] {
        let object = pod_autoscaler("tried", missing(on_missing.clone()));
        let file = fixture.environment.plane.folder().join("tried.json");
        std::fs::write(&file, object.to_string())?;
        let file = file.to_str().context("UTF-8")?;
        for how in [&["--server-side"][..], &[]] {
            let apply = ["apply", "--dry-run=server", "--output=json", "--filename", file];
            let stored: Value =
                serde_json::from_str(&shown(fixture, &[&apply[..], how].concat())?)?;
            let kept = &stored["spec"]["metrics"][0]["onMissing"];
            ensure!(*kept == on_missing, "{on_missing} became {kept}");
        }
    }
    let prometheus =
        |source: Value| json!({"metrics": [{"type": "Prometheus", "prometheus": source}]});
    for (change, says) in [
        (
            json!({"minReplicas": 9}),
            "spec.minReplicas: Invalid value: must not be greater than maxReplicas",
        ),
        (json!({"maxReplicas": null}), "spec.maxReplicas: Required value"),
        (missing(json!("Panic")), "spec.metrics[0].onMissing"),
        (missing(json!(-3)), "spec.metrics[0].onMissing"),
        (missing(json!(true)), "spec.metrics[0].onMissing"),
        (missing(json!([])), "spec.metrics[0].onMissing"),
        (missing(json!({"replica": 3})), "spec.metrics[0].onMissing.replicas: Required value"),
        (missing(json!({"replicas": -1})), "spec.metrics[0].onMissing.replicas: Invalid value: -1"),
        (json!({"combine": "Expression"}), "spec.expression: Invalid value"),
        (json!({"expression": "web + 1"}), "must be set exactly if combine is Expression"),
        (json!({"metrics": [{"type": "Pods"}]}), "must be set exactly if type is Pods"),
        (
            prometheus(json!({"query": "up", "target": {"type": "Value"}})),
            "must set either value or averageValue",
        ),
        (
            prometheus(
                json!({"query": "up", "server": "ftp://x", "target": {"type": "Value", "value": 1}}),
            ),
            "spec.metrics[0].prometheus.server",
        ),
        (
            json!({"schedules": [{"name": "a", "start": "0 8 * * *", "minReplicas": 2}]}),
            "must set either end or duration",
        ),
        (json!({"syncPeriod": "10ms"}), "must be at least 1s"),
        (
            json!({"mode": "Off"}),
            "spec.mode: Unsupported value: \"Off\": supported values: \"Active\", \"DryRun\", \"Paused\"",
        ),
        (
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}}),
            "must specify an API group, such as apps/v1",
        ),
        (
            json!({"scaleToZero": {}, "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}),
            "needs a metric of type Object, External, Prometheus or Trigger",
        ),
    ] {
        let (ok, text) = apply(fixture, &pod_autoscaler("bad", change.clone()))?;
        ensure!(!ok && text.contains(says), "{change}: {text}");
    }
    Ok(())
}

/// A rollout has pods on top for a while, which must not change the size.
async fn rollout(fixture: &Fixture) -> Result<()> {
    let sizes =
        shown(fixture, &["get", "pa", "web", "--output", "jsonpath={.status.decisions[*].to}"])?;
    let template = json!({"metadata": {"annotations": {"again": "yes"}}});
    let patch = json!({"spec": {"template": template}});
    fixture.patch("apps/v1", "Deployment", "web", patch).await?;
    fixture
        .until("whether the rollout is complete", &true, async || {
            let object = fixture.api("apps/v1", "Deployment").get("web").await?;
            let status = &object.data["status"];
            let seen = status["observedGeneration"].as_i64() == object.metadata.generation;
            Ok(seen
                && status["updatedReplicas"] == 2
                && status["replicas"] == 2
                && status["readyReplicas"] == 2)
        })
        .await?;
    let after =
        shown(fixture, &["get", "pa", "web", "--output", "jsonpath={.status.decisions[*].to}"])?;
    ensure!(sizes == after, "the rollout changed the size: {sizes} became {after}");
    Ok(())
}

/// An HPA that may add one pod in ten minutes has done so; what takes its place, and the HPA that comes back,
/// add no other.
async fn adopted(fixture: &Fixture) -> Result<()> {
    fixture.deployment("paced", 1).await?;
    fixture.set_load("paced", 5.0);
    let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 600});
    let behavior = json!({"scaleUp": {"policies": [policy]}});
    fixture.autoscaler("paced", (1, 8), load("paced"), behavior).await?;
    fixture.until_replicas("paced", 2).await?;
    fixture.until_event("paced", "Normal SuccessfulRescale New size: 2").await?;
    let place = format!("{}/paced", fixture.namespace);
    let adopt = |flags: &[&str]| adopt(fixture, &[&[&*place], flags].concat());
    let limited = async |resource: &str| -> Result<()> {
        let path = "jsonpath={.status.conditions[?(@.type==\"ScalingLimited\")].reason}";
        fixture
            .until(&format!("why {resource} is limited"), &"ScaleUpLimit".to_owned(), async || {
                shown(fixture, &["get", resource, "paced", "--output", path])
            })
            .await?;
        ensure!(fixture.replicas("paced").await? == 2, "the size jumped under {resource}");
        Ok(())
    };
    let dry = adopt(&["--dry-run"])?;
    let both = ["kind: HorizontalPodAutoscaler", "kind: PodAutoscaler"];
    ensure!(both.iter().all(|kind| dry.contains(kind)), "{dry}");
    let done = adopt(&[])?;
    ensure!(done.contains("with the last change of its size"), "{done}");
    // Its conditions are the HPA's until it is decided.
    let decided =
        ["get", "podautoscaler", "paced", "--output", "jsonpath={.status.observedGeneration}"];
    fixture
        .until("whether it is decided", &true, async || Ok(!shown(fixture, &decided)?.is_empty()))
        .await?;
    limited("podautoscaler").await?;
    adopt(&["--undo"])?;
    limited("horizontalpodautoscaler").await?;
    fixture.delete("autoscaling/v2", "HorizontalPodAutoscaler", "paced").await
}

/// Of two autoscalers of one target, one gives way and says so.
async fn taken(fixture: &Fixture) -> Result<()> {
    let (ok, text) = apply(fixture, &{
        let mut other = pod_autoscaler("other", json!({"minReplicas": 7}));
        other["spec"]["scaleTargetRef"]["name"] = json!("native");
        other
    })?;
    ensure!(ok, "{text}");
    fixture
        .until("whether the second one is reported", &true, async || {
            let text = shown(fixture, &["describe", "pa", "other"])?;
            let says = "HorizontalPodAutoscaler \"native\" scales Deployment \"native\" as well";
            Ok(text.contains(says) && text.contains("TargetTaken"))
        })
        .await?;
    let columns = shown(fixture, &["get", "pa", "other"])?;
    let words = ["Deployment/native", "Conflict", "TargetTaken"];
    ensure!(words.iter().all(|word| columns.contains(word)), "{columns}");
    ensure!(fixture.replicas("native").await? == 2, "the native one decides");
    fixture.delete(VERSION, KIND, "other").await
}
