//! KEDA's kinds on a real control plane: every example is accepted and what KEDA's own definitions refuse is refused;
//! a queue scales its consumer from zero to many and back, alone and with the cluster's own HPA controller; nothing shows what triggers prove themselves with.

#[path = "keda/definitions.rs"]
mod definitions;
#[path = "keda/modes.rs"]
mod modes;
#[path = "keda/queue.rs"]
mod queue;
#[path = "keda/rights.rs"]
mod rights;

use super::fixture::{Fixture, Workspace};
use super::harness::Harness;
use super::plane::ControlPlane;
use super::program::{Program, QUICK};
use super::rbac::{allow, end};
use super::serve::kubectl;
use anyhow::{Context, Result, ensure};
use libtest_mimic::Trial;
use podscale::install::{Options, TriggerOptions, cluster_rules};
use podscale_api::crds;
use queue::Queue;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const VERSION: &str = "keda.sh/v1alpha1";
const KIND: &str = "ScaledObject";
/// What the consumer proves itself with; no output may have it, nor the base64 of it.
const PLANTED: [&str; 2] = ["hunter2-of-the-queue", "aHVudGVyMi1vZi10aGUtcXVldWU="];

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![
        harness.alone("keda::definitions_take_every_example", definitions::take_every_example),
        harness.alone("keda::from_zero_to_many_and_back", from_zero_to_many_and_back),
        harness.alone("keda::exactly_those_rights", rights::exactly_those_installed),
        modes::trial(harness),
    ]
}

/// Defines KEDA's kinds, and waits until they are served.
async fn define(plane: &ControlPlane) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for definition in crds::keda::definitions() {
        let (ok, said) = apply(plane, "default", &definition.to_string())?;
        ensure!(ok, "{said}");
        let name = definition["metadata"]["name"].as_str().context("a name")?;
        names.push(format!("customresourcedefinition/{name}"));
    }
    let wait = ["wait", "--for=condition=Established", "--timeout=60s"];
    let all: Vec<&str> = wait.into_iter().chain(names.iter().map(String::as_str)).collect();
    let (ok, said) = kubectl(plane, &all)?;
    ensure!(ok, "{said}");
    Ok(names)
}

/// Takes KEDA's kinds away again, with all that is of them.
fn undefine(fixture: &Fixture, names: &[String]) -> Result<()> {
    let delete = ["delete", "--timeout=60s"];
    let all: Vec<&str> = delete.into_iter().chain(names.iter().map(String::as_str)).collect();
    let (ok, said) = kubectl(&fixture.environment.plane, &all)?;
    ensure!(ok, "{said}");
    Ok(())
}

/// Applies a file with kubectl; whether that went well, and what it said.
fn apply(plane: &ControlPlane, namespace: &str, text: &str) -> Result<(bool, String)> {
    let file = plane.folder().join("keda.yaml");
    std::fs::write(&file, text)?;
    let file = file.to_str().context("UTF-8")?;
    kubectl(plane, &["apply", "--namespace", namespace, "--filename", file])
}

fn shown(fixture: &Fixture, arguments: &[&str]) -> Result<String> {
    let all = [arguments, &["--namespace", &fixture.namespace]].concat();
    let (ok, text) = kubectl(&fixture.environment.plane, &all)?;
    ensure!(ok, "kubectl {arguments:?}: {text}");
    Ok(text)
}

/// A consumer of the queue, with what it proves itself with.
fn consumer(queue: &Queue, secret: &str) -> Value {
    let url = queue.url();
    let object = json!({"apiVersion": VERSION, "kind": KIND, "metadata": {"name": "consumer"},
        "spec": {"scaleTargetRef": {"name": "consumer"}, "pollingInterval": 1, "cooldownPeriod": 1,
            "maxReplicaCount": 6, "advanced": {"horizontalPodAutoscalerConfig": {"behavior":
                {"scaleDown": {"stabilizationWindowSeconds": 0}}}},
            "triggers": [{"type": "metrics-api", "authenticationRef": {"name": "keys"}, "metadata":
                {"url": url, "valueLocation": "queue", "targetValue": "10", "authMode": "bearer"}}]}});
    let keys = json!({"apiVersion": VERSION, "kind": "TriggerAuthentication",
        "metadata": {"name": "keys"}, "spec": {"secretTargetRef":
            [{"parameter": "token", "name": "queue", "key": "token"}]}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "queue"},
        "stringData": {"token": secret}});
    json!({"apiVersion": "v1", "kind": "List", "items": [secret, keys, object]})
}

async fn from_zero_to_many_and_back(fixture: Fixture) -> Result<()> {
    let names = define(&fixture.environment.plane).await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "limited"}});
    fixture.create(account).await?;
    let triggers = Some(TriggerOptions::default());
    allow(&fixture, cluster_rules(&Options { triggers, ..Options::default() })).await?;
    let plane = &fixture.environment.plane;
    let kubeconfig = plane.kubeconfig_of(&fixture.namespace, "limited").await?;
    let recordings = plane.folder().join("keda-recordings");
    let record = format!("--record={}", recordings.display());
    let more = ["--triggers", "--leader-elect=false", "--log-level=trace", &record];
    let flags: Vec<&str> = QUICK.into_iter().chain(more).collect();
    let program = Program::start(&fixture.namespace, plane.folder(), &kubeconfig, &flags)?;
    let queue = Queue::start(PLANTED[0]).await?;
    fixture.create(super::fixture::deployment("consumer", 0, &["app"])).await?;
    let (ok, said) = apply(plane, &fixture.namespace, &consumer(&queue, PLANTED[0]).to_string())?;
    ensure!(ok, "{said}");
    until(&fixture, "Active", "False ScalerNotActive").await?;
    until(&fixture, "Ready", "True ScaledObjectReady").await?;
    ensure!(fixture.replicas("consumer").await? == 0, "it was woken for nothing");
    up_and_down(&fixture, &queue).await?;
    refused_credentials(&fixture, &queue).await?;
    paused(&fixture, &queue).await?;
    nothing_shows(&fixture, &program, &recordings).await?;
    fixture.delete(VERSION, KIND, "consumer").await?;
    end(&fixture, program).await?;
    undefine(&fixture, &names)
}

/// Waits until a condition has a status and reason.
async fn until(fixture: &Workspace, condition: &str, expected: &str) -> Result<()> {
    fixture
        .until(&format!("{condition} of the consumer"), &expected.to_owned(), async || {
            let object = fixture.api(VERSION, KIND).get("consumer").await?;
            let all = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found = all.into_iter().find(|c| c["type"] == condition).unwrap_or_default();
            let field = |name: &str| found[name].as_str().unwrap_or("none").to_owned();
            Ok(format!("{} {}", field("status"), field("reason")))
        })
        .await
}

async fn up_and_down(fixture: &Fixture, queue: &Queue) -> Result<()> {
    queue.set(37);
    fixture.until_replicas("consumer", 4).await?;
    until(fixture, "Active", "True ScalerActive").await?;
    let get = async || -> Result<String> {
        let text = shown(fixture, &["get", "so", "--no-headers"])?;
        let words: Vec<&str> = text.split_whitespace().collect();
        // All but the age; there is no minimum.
        Ok(words[..words.len().saturating_sub(1)].join(" "))
    };
    let row = "consumer apps/v1.Deployment consumer 6 True True False False metrics-api keys";
    fixture.until("the row of kubectl get so", &row.to_owned(), get).await?;
    fixture.until_pods("consumer", 4).await?;
    queue.set(12);
    fixture.until_replicas("consumer", 2).await?;
    queue.set(0);
    fixture.until_replicas("consumer", 0).await?;
    until(fixture, "Active", "False ScalerNotActive").await?;
    let described = async || -> Result<bool> {
        let text = shown(fixture, &["describe", "so", "consumer"])?;
        let target = format!("apps/v1.Deployment {}/consumer", fixture.namespace);
        let events = [
            "ScaledObject is ready for scaling".to_owned(),
            format!("Scaled {target} from 0 to 1, triggered by s0-metric-api-queue"),
            format!("Deactivated {target} from"),
        ];
        Ok(events.iter().all(|event| text.contains(event)))
    };
    fixture.until("whether kubectl describe has the events", &true, described).await?;
    let object = fixture.api(VERSION, KIND).get("consumer").await?;
    let status = &object.data["status"];
    for (field, expected) in [
        ("scaleTargetKind", json!("apps/v1.Deployment")),
        ("originalReplicaCount", json!(0)),
        ("externalMetricNames", json!(["s0-metric-api-queue"])),
        ("triggersTypes", json!("metrics-api")),
        ("authenticationsTypes", json!("keys")),
        ("triggersActivity", json!({"s0-metric-api-queue": {"isActive": false}})),
    ] {
        ensure!(status[field] == expected, "{field}: {status}");
    }
    let finalizers = object.metadata.finalizers.unwrap_or_default();
    ensure!(finalizers == ["finalizer.keda.sh"], "{finalizers:?}");
    Ok(())
}

/// A server that repeats what it refuses, and a Secret that is right again.
async fn refused_credentials(fixture: &Fixture, queue: &Queue) -> Result<()> {
    queue.set(37);
    fixture.until_replicas("consumer", 4).await?;
    queue.accept("another-word");
    until(fixture, "Ready", "False TriggerError").await?;
    ensure!(fixture.replicas("consumer").await? == 4, "it is held");
    queue.set(22);
    let (plane, again) = (&fixture.environment.plane, consumer(queue, "another-word"));
    let (ok, said) = apply(plane, &fixture.namespace, &again.to_string())?;
    ensure!(ok, "{said}");
    fixture.until_replicas("consumer", 3).await?;
    until(fixture, "Ready", "True ScaledObjectReady").await
}

/// Nobody is asked while it is paused.
async fn paused(fixture: &Fixture, queue: &Queue) -> Result<()> {
    let annotate = |replicas: Value| json!({"metadata": {"annotations": {"autoscaling.keda.sh/paused-replicas": replicas}}});
    fixture.patch(VERSION, KIND, "consumer", annotate("1".into())).await?;
    fixture.until_replicas("consumer", 1).await?;
    until(fixture, "Paused", "True ScaledObjectPaused").await?;
    let asked = queue.asked();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    ensure!(queue.asked() == asked, "it is polled while it is paused");
    fixture.patch(VERSION, KIND, "consumer", annotate(Value::Null)).await?;
    fixture.until_replicas("consumer", 3).await?;
    until(fixture, "Paused", "False ScaledObjectUnpaused").await
}

/// Looks for what is planted wherever something can be read.
async fn nothing_shows(fixture: &Fixture, program: &Program, recordings: &Path) -> Result<()> {
    let object = format!("{}/consumer", fixture.namespace);
    let mut outputs = vec![("log".to_owned(), program.log())];
    // What explain asks for is all that the dashboard has of one object.
    for path in ["/metrics", "/api/autoscalers"] {
        let text = program.get(path).await?;
        ensure!(text.contains(" 200 OK"), "{path}: {text}");
        outputs.push((path.to_owned(), text));
    }
    for form in ["text", "json"] {
        let admin = format!("http://{}", program.admin());
        let explained = Command::new(env!("CARGO_BIN_EXE_podscale"))
            .args(["explain", &object, "--output", form, "--admin", &admin])
            .output()?;
        let text = [explained.stdout, explained.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        ensure!(explained.status.success() && text.contains("s0-metric-api-queue"), "{text}");
        outputs.push((format!("explain {form}"), text));
    }
    for kind in ["so", "ta", "events", "events.events.k8s.io"] {
        outputs.push((kind.to_owned(), shown(fixture, &["get", kind, "--output", "json"])?));
    }
    outputs.push(("describe".to_owned(), shown(fixture, &["describe", "so"])?));
    for file in std::fs::read_dir(recordings).into_iter().flatten() {
        let path = file?.path();
        let text = Command::new("zcat").args(["--force"]).arg(&path).output()?.stdout;
        outputs.push((path.display().to_string(), String::from_utf8_lossy(&text).into_owned()));
    }
    for (name, text) in outputs {
        ensure!(!text.is_empty(), "{name} is empty");
        for planted in PLANTED.into_iter().chain(["another-word"]) {
            ensure!(!text.contains(planted), "{name} shows {planted}");
        }
    }
    Ok(())
}
