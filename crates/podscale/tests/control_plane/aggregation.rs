//! Groups that a test's own server serves behind the API server's aggregation.

use anyhow::{Context, Result};
use axum::Router;
use base64::Engine;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Where the Service lives that leads to the server.
const NAMESPACE: &str = "kube-system";
const SERVICE: &str = "test-metrics";

/// The name that the server's certificate must have.
pub fn host() -> String {
    format!("{SERVICE}.{NAMESPACE}.svc")
}

/// Registers groups and their versions with the API server, and waits until it has found them.
pub async fn register(
    client: &Client,
    port: u16,
    authority: &str,
    groups: &[(&str, &str)],
) -> Result<()> {
    // There is no proxy for cluster addresses; a name leads to this machine.
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"}});
    let services =
        Api::<k8s_openapi::api::core::v1::Service>::namespaced(client.clone(), NAMESPACE);
    let params = PatchParams::apply("test").force();
    services.patch(SERVICE, &params, &Patch::Apply(&service)).await?;
    let bundle = base64::engine::general_purpose::STANDARD.encode(authority);
    for (group, version) in groups {
        let name = format!("{version}.{group}");
        let priority = if *version == "v1beta2" { 200 } else { 100 };
        let object = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": name},
            "spec": {"group": group, "version": version, "caBundle": bundle,
                "groupPriorityMinimum": 100, "versionPriority": priority,
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port}}});
        registrations(client).patch(&name, &params, &Patch::Apply(&object)).await?;
    }
    until_available(client, groups).await
}

/// Takes a version of a group, such as `v1beta2.custom.metrics.k8s.io`, from the API server.
pub async fn unregister(client: &Client, name: &str) -> Result<()> {
    registrations(client).delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// Waits until the API server has found the server to be there.
pub async fn until_available(client: &Client, groups: &[(&str, &str)]) -> Result<()> {
    let wait = async {
        for (group, version) in groups {
            let name = format!("{version}.{group}");
            while !is_available(client, &name).await {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    };
    let waited = tokio::time::timeout(super::process::TIMEOUT, wait).await;
    waited.context("the aggregated APIs do not become available")
}

/// The APIServices.
pub fn registrations(client: &Client) -> Api<DynamicObject> {
    let kind = ApiResource {
        group: "apiregistration.k8s.io".into(),
        version: "v1".into(),
        api_version: "apiregistration.k8s.io/v1".into(),
        kind: "APIService".into(),
        plural: "apiservices".into(),
    };
    Api::all_with(client.clone(), &kind)
}

async fn is_available(client: &Client, name: &str) -> bool {
    let Ok(object) = registrations(client).get(name).await else { return false };
    let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|c| c["type"] == "Available" && c["status"] == "True")
}

/// Serves over TLS until it is dropped.
pub async fn accept(listener: TcpListener, acceptor: TlsAcceptor, router: Router) {
    // Connections end with the listener.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, router) = (acceptor.clone(), router.clone());
        connections.spawn(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let service = TowerToHyperService::new(router);
            // A client that goes away is no matter.
            let _ = builder.serve_connection(TokioIo::new(stream), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
