//! Many ScaledObjects and their targets, all asleep.

use anyhow::Result;
use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// How many are in a namespace.
const EACH: usize = 100;
/// How many are made at the same time.
const AT_ONCE: usize = 16;

/// Makes them; each has one trigger, which asks the server for its own number.
pub async fn create(client: &Client, count: usize, seconds: u32, server: SocketAddr) -> Result<()> {
    for space in 0..count.div_ceil(EACH) {
        let name = format!("bench-{space}");
        apply(
            client,
            None,
            "namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name}}),
        )
        .await?;
    }
    let all = stream::iter(0..count).map(|number| async move {
        let namespace = format!("bench-{}", number / EACH);
        let namespace = Some(namespace.as_str());
        apply(client, namespace, "deployments", target(number)).await?;
        apply(client, namespace, "scaledobjects", object(number, seconds, server)).await
    });
    all.buffer_unordered(AT_ONCE).try_collect().await
}

fn target(number: usize) -> Value {
    let labels = json!({"app": format!("web-{number}")});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": format!("web-{number}")},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "none"}]}}}})
}

fn object(number: usize, seconds: u32, server: SocketAddr) -> Value {
    json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
        "metadata": {"name": format!("so-{number}")},
        "spec": {"scaleTargetRef": {"name": format!("web-{number}")}, "pollingInterval": seconds,
            "triggers": [{"type": "metrics-api", "metadata": {"targetValue": "10",
                "url": format!("http://{server}/{number}"), "valueLocation": "value"}}]}})
}

async fn apply(
    client: &Client,
    namespace: Option<&str>,
    plural: &str,
    object: Value,
) -> Result<()> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let version = text("apiVersion");
    let (group, short) = version.split_once('/').unwrap_or(("", &version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: short.to_owned(),
        api_version: version.clone(),
        kind: text("kind"),
        plural: plural.to_owned(),
    };
    let api = match namespace {
        Some(namespace) => {
            Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource)
        }
        None => Api::all_with(client.clone(), &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    api.patch(name, &PatchParams::apply("bench").force(), &Patch::Apply(&object)).await?;
    Ok(())
}
