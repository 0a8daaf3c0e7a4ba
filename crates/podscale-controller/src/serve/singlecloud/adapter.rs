//! The rules of metrics in the ConfigMap of a prometheus-adapter that still runs.
//!
//! A change is made on the version that was read, and made again on a newer one if there is one by then. The
//! adapter reads its rules when it starts, so its pods are deleted after a change and start anew.

use crate::serve::rules::Location;
use kube::Client;
use podscale_api::singlecloud::Alias;
use podscale_client::call::{self, About, CallError, query, segment};
use podscale_metrics::rules::alias::{self, AliasError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// How often a change is made on a newer version of the ConfigMap.
const MAX_ATTEMPTS: u32 = 8;
/// The pause after a first conflict; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The most pods that an adapter has.
const MOST_PODS: &str = "500";

/// Why the rules of an adapter cannot be changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdapterError {
    /// Its ConfigMap cannot be read or written.
    #[error("configmap {location}: {cause}")]
    ConfigMap {
        /// Which one.
        location: String,
        /// Why not.
        cause: CallError,
    },
    /// Its ConfigMap has no rules.
    #[error("configmap {location}: {problem}")]
    NoRules {
        /// Which one.
        location: String,
        /// What is missing.
        problem: String,
    },
    /// The rules do not allow it.
    #[error(transparent)]
    Rules(#[from] AliasError),
    /// Its pods cannot be restarted.
    #[error("restart deployment {location}: {cause}")]
    Restart {
        /// Which one.
        location: String,
        /// Why not.
        cause: CallError,
    },
}

/// A prometheus-adapter: its ConfigMap, and the Deployment of the same name.
#[derive(Clone)]
pub(super) struct Adapter {
    /// The API server.
    pub(super) client: Client,
    /// The ConfigMap, and the key of the rules.
    pub(super) location: Location,
}

#[derive(Deserialize)]
struct Pods {
    #[serde(default)]
    items: Vec<Pod>,
}

#[derive(Deserialize)]
struct Pod {
    metadata: PodMeta,
}

#[derive(Deserialize)]
struct PodMeta {
    name: String,
}

impl Adapter {
    /// Takes the rules of some aliases out and puts those of others in; all of it or nothing.
    pub(super) async fn apply(&self, old: &[Alias], new: &[Alias]) -> Result<(), AdapterError> {
        if !self.write(old, new).await? {
            return Ok(());
        }
        let Err(error) = self.restart().await else { return Ok(()) };
        if let Err(left) = self.write(new, old).await {
            tracing::error!(config_map = %self.location, error = %left, "rules for metrics are left behind");
        }
        Err(error)
    }

    /// Takes a change back, as far as that is possible. The pods that have read it start again.
    pub(super) async fn roll_back(&self, old: &[Alias], new: &[Alias]) {
        if let Err(error) = self.apply(new, old).await {
            tracing::error!(config_map = %self.location, %error, "rules for metrics are left behind");
        }
    }

    /// Whether anything had to be written.
    async fn write(&self, old: &[Alias], new: &[Alias]) -> Result<bool, AdapterError> {
        if old.is_empty() && new.is_empty() {
            return Ok(false);
        }
        let (namespace, name) = (&self.location.namespace, &self.location.name);
        let path =
            format!("/api/v1/namespaces/{}/configmaps/{}", segment(namespace), segment(name));
        let about = About { resource: "configmaps", name };
        let location = self.location.to_string();
        let failed = |cause| AdapterError::ConfigMap { location: location.clone(), cause };
        let mut attempt = 0;
        loop {
            let read = call::get(&self.client, &path, about).await;
            let mut config_map: Value = read.map_err(failed)?;
            let none = |problem| AdapterError::NoRules { location: location.clone(), problem };
            let changed = alias::change(self.location.text(&config_map).map_err(none)?, old, new)?;
            for missing in &changed.missing {
                tracing::warn!(config_map = %self.location, %missing, "a rule was gone already");
            }
            let Some(text) = changed.text else { return Ok(false) };
            let key = self.location.key_in(&config_map).to_owned();
            config_map["data"][key] = text.into();
            let put = call::send::<Value>(&self.client, "PUT", &path, &config_map, about).await;
            match put {
                Ok(_) => return Ok(true),
                Err(error) if error.is_conflict() && attempt < MAX_ATTEMPTS => {
                    sleep(FIRST_PAUSE.saturating_mul(2u32.saturating_pow(attempt))).await;
                    attempt += 1;
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Deletes the adapter's pods, and does not wait for the new ones.
    async fn restart(&self) -> Result<(), AdapterError> {
        let location = self.location.to_string();
        self.delete_pods().await.map_err(|cause| AdapterError::Restart { location, cause })
    }

    async fn delete_pods(&self) -> Result<(), CallError> {
        let (namespace, name) = (&self.location.namespace, &self.location.name);
        let found = super::native::workload(&self.client, "deployments", namespace, name).await?;
        let deployment = found.ok_or_else(|| {
            CallError::Unreadable(format!("there is no Deployment {namespace}/{name}"))
        })?;
        let selector = deployment.spec.selector.to_selector();
        let selector = selector.map_err(|error| CallError::Unreadable(error.to_string()))?;
        let selector = selector.to_string();
        if selector.is_empty() {
            // Whatever it is, these are not its pods alone.
            let text = format!("the Deployment {namespace}/{name} selects every pod");
            return Err(CallError::Unreadable(text));
        }
        let root = format!("/api/v1/namespaces/{}/pods", segment(namespace));
        let which = query(&[("labelSelector", &selector), ("limit", MOST_PODS)]);
        let about = About { resource: "pods", name: "" };
        let pods: Pods = call::get(&self.client, &format!("{root}{which}"), about).await?;
        for Pod { metadata: PodMeta { name } } in &pods.items {
            let path = format!("{root}/{}", segment(name));
            let about = About { resource: "pods", name };
            let options = json!({"apiVersion": "v1", "kind": "DeleteOptions"});
            match call::send::<Value>(&self.client, "DELETE", &path, &options, about).await {
                Err(error) if !error.is_not_found() => return Err(error),
                _ => {}
            }
        }
        tracing::info!(deployment = %self.location, pods = pods.items.len(), "the adapter restarts");
        Ok(())
    }
}
