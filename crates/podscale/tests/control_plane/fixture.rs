//! The fixture of a scenario: a namespace of its own, and operations in it.

use super::harness::Environment;
use super::metrics::Metrics;
use super::process::TIMEOUT;
use anyhow::{Context, Result, bail};
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use std::fmt::Debug;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

/// The namespace of one scenario in the shared environment.
#[derive(Clone)]
pub struct Fixture {
    pub environment: Arc<Environment>,
    workspace: Workspace,
}

/// A namespace of any cluster.
#[derive(Clone)]
pub struct Workspace {
    client: Client,
    pub namespace: String,
}

/// A condition's status and reason, as `True ReadyForNewScale`.
pub type Verdict = String;

impl Fixture {
    /// Makes a namespace.
    pub async fn open(environment: Arc<Environment>, name: &str) -> Result<Fixture> {
        let workspace = Workspace::open(environment.plane.client.clone(), name).await?;
        Ok(Fixture { environment, workspace })
    }

    pub fn metrics(&self) -> &Metrics {
        &self.environment.metrics
    }

    /// Says what the external metric `load` is: with [`load`], how many replicas are wanted.
    pub fn set_load(&self, name: &str, replicas: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
        let thousandths = (replicas * 1000.0).round() as i64;
        self.metrics().set_external(&self.namespace, name, &[(&[], thousandths)]);
    }

    /// Waits until the autoscaler has been decided with this load, and with what followed from it:
    /// its status shows it.
    pub async fn until_seen(&self, name: &str, load: f64) -> Result<()> {
        self.set_load(name, load);
        self.until(&format!("whether {name} was decided with {load}"), &true, async || {
            let status = self.status(name).await?;
            let shown = &status["currentMetrics"][0]["external"]["current"]["averageValue"];
            let replicas = status["currentReplicas"].as_f64().unwrap_or(1.0).max(1.0);
            let shown = shown.as_str().and_then(thousandths).unwrap_or_default();
            Ok((shown - load * 1000.0 / replicas).abs() < 2.0)
        })
        .await
    }
}

impl Deref for Fixture {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Workspace {
    /// Makes a namespace.
    pub async fn open(client: Client, name: &str) -> Result<Workspace> {
        let workspace = Workspace { client, namespace: name.to_owned() };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        workspace.create(object).await?;
        Ok(workspace)
    }

    /// Leaves nothing behind that a controller would reconcile; the namespace goes by itself.
    pub async fn close(&self) {
        let hpas = self.api("autoscaling/v2", "HorizontalPodAutoscaler");
        let (delete, all) = (DeleteParams::default(), ListParams::default());
        // It may be gone already: some scenarios are about that.
        let _ = hpas.delete_collection(&delete, &all).await;
        let namespaces = api(&self.client, None, "v1", "Namespace");
        let _ = namespaces.delete(&self.namespace, &delete).await;
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Objects of a kind in this namespace.
    pub fn api(&self, version: &str, kind: &str) -> Api<DynamicObject> {
        api(&self.client, Some(&self.namespace), version, kind)
    }

    fn hpas(&self) -> Api<DynamicObject> {
        self.api("autoscaling/v2", "HorizontalPodAutoscaler")
    }

    /// Creates an object, in this namespace unless its kind has none.
    pub async fn create(&self, object: Value) -> Result<DynamicObject> {
        let (version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let (version, kind) = (version.context("no version")?, kind.context("no kind")?);
        let namespace = (!CLUSTER_WIDE.contains(&kind)).then_some(&*self.namespace);
        let namespace = object["metadata"]["namespace"].as_str().or(namespace);
        let api = api(&self.client, namespace, version, kind);
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        Ok(api.create(&PostParams::default(), &object).await?)
    }

    /// A Deployment whose pods have a container `app` that requests 100m and 64Mi.
    pub async fn deployment(&self, name: &str, replicas: i32) -> Result<()> {
        self.create(deployment(name, replicas, &["app"])).await?;
        self.until_pods(name, replicas).await
    }

    /// An autoscaler of the Deployment with its name.
    pub async fn autoscaler(
        &self,
        name: &str,
        bounds: (i32, i32),
        metrics: Value,
        behavior: Value,
    ) -> Result<()> {
        self.create(autoscaler(name, bounds, metrics, behavior)).await?;
        Ok(())
    }

    /// The size that a Deployment is given.
    pub async fn replicas(&self, name: &str) -> Result<i64> {
        let object = self.api("apps/v1", "Deployment").get(name).await?;
        object.data["spec"]["replicas"].as_i64().context("no replicas")
    }

    /// Waits until a Deployment has been given a size.
    pub async fn until_replicas(&self, name: &str, replicas: i64) -> Result<()> {
        let what = format!("replicas of {name}");
        self.until(&what, &replicas, async || self.replicas(name).await).await
    }

    /// Waits until a Deployment has so many ready pods and no others.
    pub async fn until_pods(&self, name: &str, count: i32) -> Result<()> {
        let expected = (i64::from(count), i64::from(count));
        self.until(&format!("pods of {name}"), &expected, async || {
            let object = self.api("apps/v1", "Deployment").get(name).await?;
            let status = &object.data["status"];
            let number = |field: &str| status[field].as_i64().unwrap_or_default();
            Ok((number("replicas"), number("readyReplicas")))
        })
        .await
    }

    /// Status and reason of an autoscaler's condition.
    pub async fn verdict(&self, name: &str, condition: &str) -> Result<Verdict> {
        let condition = self.condition(name, condition).await?;
        let field = |name: &str| condition[name].as_str().unwrap_or("none").to_owned();
        Ok(format!("{} {}", field("status"), field("reason")))
    }

    /// A condition of an autoscaler; null while it has none.
    pub async fn condition(&self, name: &str, condition: &str) -> Result<Value> {
        let object = self.hpas().get(name).await?;
        let all = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        Ok(all.into_iter().find(|c| c["type"] == condition).unwrap_or_default())
    }

    /// Waits until a condition has a status and reason.
    pub async fn until_verdict(&self, name: &str, condition: &str, expected: &str) -> Result<()> {
        let what = format!("{condition} of {name}");
        self.until(&what, &expected.to_owned(), async || self.verdict(name, condition).await).await
    }

    /// Waits until a condition has a status, a reason and a message that contains a text.
    pub async fn until_message(
        &self,
        name: &str,
        condition: &str,
        expected: &str,
        text: &str,
    ) -> Result<()> {
        self.until_verdict(name, condition, expected).await?;
        let what = format!("whether the message of {condition} of {name} says {text:?}");
        self.until(&what, &true, async || {
            let condition = self.condition(name, condition).await?;
            Ok(condition["message"].as_str().is_some_and(|message| message.contains(text)))
        })
        .await
    }

    /// The status of an autoscaler.
    pub async fn status(&self, name: &str) -> Result<Value> {
        Ok(self.hpas().get(name).await?.data["status"].clone())
    }

    /// Waits until an event of an autoscaler says this: `Normal SuccessfulRescale New size…`.
    pub async fn until_event(&self, name: &str, expected: &str) -> Result<()> {
        let what = format!("whether an event of {name} says {expected:?}");
        self.until(&what, &true, async || {
            Ok(self.events(name).await?.iter().any(|event| event.starts_with(expected)))
        })
        .await
    }

    /// The events of an autoscaler, each as its type, reason and message.
    pub async fn events(&self, name: &str) -> Result<Vec<String>> {
        let fields =
            format!("involvedObject.name={name},involvedObject.kind=HorizontalPodAutoscaler");
        let list = self.api("v1", "Event").list(&ListParams::default().fields(&fields)).await?;
        let field = |event: &DynamicObject, name: &str| {
            event.data[name].as_str().unwrap_or_default().to_owned()
        };
        let words = |event: &DynamicObject| {
            ["type", "reason", "message"].map(|name| field(event, name)).join(" ")
        };
        Ok(list.iter().map(words).collect())
    }

    /// Changes an object by a merge patch.
    pub async fn patch(&self, version: &str, kind: &str, name: &str, patch: Value) -> Result<()> {
        let api = self.api(version, kind);
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// Changes the status of an object by a merge patch.
    pub async fn patch_status(
        &self,
        version: &str,
        kind: &str,
        name: &str,
        patch: Value,
    ) -> Result<()> {
        let api = self.api(version, kind);
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    /// Deletes an object, and waits until it is gone.
    pub async fn delete(&self, version: &str, kind: &str, name: &str) -> Result<()> {
        let api = self.api(version, kind);
        api.delete(name, &DeleteParams::default()).await?;
        self.until(&format!("whether {name} is gone"), &true, async || {
            Ok(api.get_opt(name).await?.is_none())
        })
        .await
    }

    /// Waits until a question has the expected answer.
    pub async fn until<T: PartialEq + Debug>(
        &self,
        what: &str,
        expected: &T,
        mut ask: impl AsyncFnMut() -> Result<T>,
    ) -> Result<()> {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            let answer = ask().await;
            if answer.as_ref().is_ok_and(|answer| answer == expected) {
                return Ok(());
            }
            if tokio::time::Instant::now() > deadline {
                bail!("{what}: {answer:?} instead of {expected:?}");
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// The state of all autoscalers, for those who look at a failure.
    pub async fn describe(&self) -> String {
        let list = match self.hpas().list(&ListParams::default()).await {
            Ok(list) => list,
            Err(error) => return format!("autoscalers cannot be listed: {error}"),
        };
        let mut text = String::new();
        for hpa in list.iter().take(5) {
            let name = hpa.metadata.name.clone().unwrap_or_default();
            let events = self.events(&name).await.unwrap_or_default();
            text.push_str(&format!("{name}: {}\n{events:#?}\n", hpa.data["status"]));
        }
        text
    }
}

/// An amount as the API writes small ones: `1500m` or `2`.
fn thousandths(text: &str) -> Option<f64> {
    match text.strip_suffix('m') {
        Some(number) => number.parse().ok(),
        None => text.parse::<f64>().ok().map(|whole| whole * 1000.0),
    }
}

const CLUSTER_WIDE: [&str; 4] =
    ["Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"];

/// Objects of a kind, whose plural is the usual one.
pub fn api(
    client: &Client,
    namespace: Option<&str>,
    version: &str,
    kind: &str,
) -> Api<DynamicObject> {
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: short.to_owned(),
        api_version: version.to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
    };
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// A Deployment whose containers request 100m and 64Mi each.
pub fn deployment(name: &str, replicas: i32, containers: &[&str]) -> Value {
    let container = |name: &&str| {
        json!({"name": name, "image": "none",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}})
    };
    let containers: Vec<Value> = containers.iter().map(container).collect();
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}}}})
}

/// An autoscaler of the Deployment with its name.
pub fn autoscaler(name: &str, (min, max): (i32, i32), metrics: Value, behavior: Value) -> Value {
    json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name}, "spec": {"minReplicas": min, "maxReplicas": max,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": metrics, "behavior": behavior}})
}

/// A metric of which one is meant for each replica; it has the name of the autoscaler.
pub fn load(name: &str) -> Value {
    json!([{"type": "External", "external": {"metric": {"name": name},
        "target": {"type": "AverageValue", "averageValue": "1"}}}])
}
