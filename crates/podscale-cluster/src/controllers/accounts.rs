//! Gives every namespace its default service account.

use super::Context;
use super::cache::Key;
use super::queue::{Next, Queue, Shutdown};
use crate::call::{CallError, call};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::PostParams;

/// The account of pods that name none.
const DEFAULT: &str = "default";

/// Subscribes to changes; the returned future runs until shutdown.
pub fn start(context: Context, shutdown: Shutdown) -> impl Future<Output = ()> + Send + use<> {
    let queue = Queue::new("serviceaccounts", context.clock);
    let own = queue.clone();
    context.caches.namespaces.listen(move |old, new| {
        if let Some(namespace) = new.filter(|_| old.is_none()) {
            own.add(Key::of(namespace.as_ref()));
        }
    });
    let own = queue.clone();
    context.caches.accounts.listen(move |old, new| {
        if let (Some(account), None) = (old, new) {
            own.add(Key::new("", account.metadata.namespace.as_deref().unwrap_or_default()));
        }
    });
    async move {
        context.caches.namespaces.complete().await;
        context.caches.accounts.complete().await;
        let work = move |key: Key| {
            let context = context.clone();
            async move { reconcile(&context, &key).await }
        };
        queue.run(2, shutdown, work).await;
    }
}

async fn reconcile(context: &Context, key: &Key) -> Result<Next, CallError> {
    let caches = &context.caches;
    let active = caches.namespaces.get(key).is_some_and(|namespace| is_active(&namespace));
    if !active || caches.accounts.get(&Key::new(&key.name, DEFAULT)).is_some() {
        return Ok(Next::Wait);
    }
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some(DEFAULT.into()),
            namespace: Some(key.name.clone()),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    let api = Api::<ServiceAccount>::namespaced(context.client.clone(), &key.name);
    let params = PostParams::default();
    let create = api.create(&params, &account);
    match call(|| format!("create the account of {key}"), create).await {
        Err(error) if !error.is_already_exists() && !error.is_namespace_ending() => Err(error),
        _ => Ok(Next::Wait),
    }
}

fn is_active(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_none()
}
