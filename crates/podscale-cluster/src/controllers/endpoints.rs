//! Endpoints and endpoint slices of services: who can be reached behind them.

pub mod plan;

use super::Context;
use super::cache::Key;
use super::pod::{Pod, labels_of};
use super::queue::{Next, Queue, Shutdown};
use super::written::Written;
use crate::call::{CallError, call, gone_is_fine};
use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use plan::Write;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How many services are worked on at a time.
const WORKERS: usize = 4;
/// Changes of pods are gathered for so long, since many come together.
const GATHER: Duration = Duration::from_millis(500);

/// Keeps endpoints.
pub struct EndpointsController {
    context: Context,
    written: Written,
}

impl EndpointsController {
    /// Subscribes to changes; the returned future runs until shutdown.
    pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
        let queue = Queue::new("endpoints", context.clock);
        listen(&context, &queue);
        let this = Arc::new(EndpointsController { written: Written::default(), context });
        async move {
            let caches = &this.context.caches;
            caches.services.complete().await;
            caches.endpoints.complete().await;
            caches.slices.complete().await;
            caches.pods.complete().await;
            let worker = Arc::clone(&this);
            let work = move |key| {
                let this = Arc::clone(&worker);
                async move { this.reconcile(&key).await }
            };
            queue.run(WORKERS, shutdown, work).await;
        }
    }

    async fn reconcile(&self, key: &Key) -> Result<Next, CallError> {
        let caches = &self.context.caches;
        let now = self.context.clock.now();
        if !self.written.is_seen(key, caches.slices.observed(), &caches.pods, now) {
            return Ok(Next::After(GATHER));
        }
        let Some(service) = caches.services.get(key) else {
            self.written.forget(key);
            // Slices go with their owner; Endpoints have none.
            if caches.endpoints.get(key).is_some() {
                let (api, params) = (self.endpoints(key), DeleteParams::default());
                let delete = api.delete(&key.name, &params);
                gone_is_fine(call(|| format!("delete the endpoints of {key}"), delete).await)?;
            }
            return Ok(Next::Wait);
        };
        if !plan::is_served(&service) || service.metadata.deletion_timestamp.is_some() {
            return Ok(Next::Wait);
        }
        let mut pods = caches.pods.in_namespace(&key.namespace);
        pods.retain(|pod| selects(&service, labels_of(&pod.metadata)));
        self.write_endpoints(key, &plan::endpoints(&service, &pods)).await?;
        let mut existing = caches.slices.indexed(0, &key.to_string());
        existing.retain(|slice| plan::is_ours(slice));
        for write in plan::slices(&service, &pods, &existing) {
            self.write_slice(key, write).await?;
        }
        Ok(Next::Wait)
    }

    fn endpoints(&self, key: &Key) -> Api<Endpoints> {
        Api::namespaced(self.context.client.clone(), &key.namespace)
    }

    async fn write_endpoints(&self, key: &Key, wanted: &Endpoints) -> Result<(), CallError> {
        let (api, params) = (self.endpoints(key), PostParams::default());
        let Some(stored) = self.context.caches.endpoints.get(key) else {
            let create = api.create(&params, wanted);
            return match call(|| format!("create the endpoints of {key}"), create).await {
                Err(error) if error.is_namespace_ending() => Ok(()),
                other => other.map(drop),
            };
        };
        let subsets = |endpoints: &Endpoints| endpoints.subsets.clone().unwrap_or_default();
        let cut = |endpoints: &Endpoints| {
            let annotations = endpoints.metadata.annotations.as_ref();
            annotations.is_some_and(wanted_annotation)
        };
        if subsets(&stored) == subsets(wanted)
            && stored.metadata.labels == wanted.metadata.labels
            && cut(&stored) == cut(wanted)
        {
            return Ok(());
        }
        let mut changed = wanted.clone();
        changed.metadata.resource_version.clone_from(&stored.metadata.resource_version);
        let write = api.replace(&key.name, &params, &changed);
        gone_is_fine(call(|| format!("update the endpoints of {key}"), write).await)
    }

    async fn write_slice(&self, key: &Key, write: Write) -> Result<(), CallError> {
        let api = Api::<EndpointSlice>::namespaced(self.context.client.clone(), &key.namespace);
        let params = PostParams::default();
        let written = match write {
            Write::Create(slice) => {
                let create = api.create(&params, &slice);
                match call(|| format!("create a slice of {key}"), create).await {
                    Err(error) if error.is_namespace_ending() => return Ok(()),
                    other => other?,
                }
            }
            Write::Update(slice) => {
                let name = slice.metadata.name.as_deref().unwrap_or_default();
                call(|| format!("update slice {name}"), api.replace(name, &params, &slice)).await?
            }
            Write::Delete(name) => {
                let params = DeleteParams::default();
                let delete = api.delete(&name, &params);
                return gone_is_fine(call(|| format!("delete slice {name}"), delete).await);
            }
        };
        self.written.wrote(key, &written.metadata, self.context.clock.now());
        Ok(())
    }
}

fn wanted_annotation(annotations: &BTreeMap<String, String>) -> bool {
    annotations.contains_key("endpoints.kubernetes.io/over-capacity")
}

fn selects(service: &Service, labels: &BTreeMap<String, String>) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    selector.is_some_and(|selector| {
        !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
    })
}

/// The service of a slice, as an index value.
#[must_use]
pub fn service_of(slice: &EndpointSlice) -> Option<String> {
    let name = slice.metadata.labels.as_ref()?.get(plan::SERVICE_NAME)?;
    Some(Key::new(slice.metadata.namespace.as_deref()?, name).to_string())
}

/// What of a pod its endpoints show.
fn shown(pod: &Pod) -> impl PartialEq + use<'_> {
    (
        labels_of(&pod.metadata),
        pod.status.pod_ip.as_deref(),
        pod.node(),
        (pod.is_ready(), pod.is_ended(), pod.is_terminating()),
    )
}

/// Queues the services that a change concerns.
fn listen(context: &Context, queue: &Queue<Key>) {
    let caches = &context.caches;
    caches.services.queue_changes(queue);
    let own = queue.clone();
    caches.endpoints.listen(move |old, new| {
        if let (Some(endpoints), None) = (old, new) {
            own.add_after(Key::of(endpoints.as_ref()), GATHER);
        }
    });
    let own = queue.clone();
    caches.slices.listen(move |old, new| {
        let Some(slice) = old.or(new) else { return };
        let name = slice.metadata.labels.as_ref().and_then(|all| all.get(plan::SERVICE_NAME));
        if let Some(name) = name {
            let namespace = slice.metadata.namespace.as_deref().unwrap_or_default();
            own.add_after(Key::new(namespace, name), GATHER);
        }
    });
    let (queue, services) = (queue.clone(), caches.services.clone());
    caches.pods.listen(move |old, new| {
        if let (Some(old), Some(new)) = (old, new)
            && shown(old) == shown(new)
        {
            return;
        }
        let Some(pod) = new.or(old) else { return };
        for service in services.in_namespace(pod.namespace()) {
            let concerned = [old, new].into_iter().flatten();
            if concerned.into_iter().any(|pod| selects(&service, labels_of(&pod.metadata))) {
                queue.add_after(Key::of(service.as_ref()), GATHER);
            }
        }
    });
}
