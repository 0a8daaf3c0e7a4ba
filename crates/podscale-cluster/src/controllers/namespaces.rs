//! Empties namespaces that are being deleted, then lets them go.

use super::Context;
use super::cache::Key;
use super::kinds::{Kind, Kinds};
use super::queue::{Next, Queue, Shutdown};
use crate::call::{CallError, call, gone_is_fine};
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::{DynamicObject, PartialObjectMeta};
use podscale_client::clock::stamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The finalizer that this controller takes off.
const FINALIZER: &str = "kubernetes";
/// How often a namespace that is not empty yet is reconciled.
const PERIOD: Duration = Duration::from_secs(2);
/// How many namespaces are worked on at a time.
const WORKERS: usize = 4;

/// What is left in a namespace.
#[derive(Debug, Default, PartialEq)]
struct Left {
    /// How many objects of which kind.
    objects: BTreeMap<String, usize>,
    /// How many objects are held by which finalizer.
    finalizers: BTreeMap<String, usize>,
}

/// Subscribes to changes; the returned future runs until shutdown.
pub fn start(
    context: Context,
    kinds: Kinds,
    shutdown: Shutdown,
) -> impl Future<Output = ()> + Send + use<> {
    let queue = Queue::new("namespaces", context.clock);
    let own = queue.clone();
    context.caches.namespaces.listen(move |_, new| {
        if let Some(namespace) = new.filter(|new| new.metadata.deletion_timestamp.is_some()) {
            own.add(Key::of(namespace.as_ref()));
        }
    });
    async move {
        context.caches.namespaces.complete().await;
        let work = move |key: Key| {
            let (context, kinds) = (context.clone(), kinds.known());
            async move { reconcile(&context, &kinds, &key.name).await }
        };
        queue.run(WORKERS, shutdown, work).await;
    }
}

async fn reconcile(
    context: &Context,
    kinds: &Arc<Vec<Kind>>,
    name: &str,
) -> Result<Next, CallError> {
    let namespace = context.caches.namespaces.get(&Key::new("", name));
    let Some(namespace) = namespace.filter(|known| known.metadata.deletion_timestamp.is_some())
    else {
        return Ok(Next::Wait);
    };
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_deref());
    if !finalizers.unwrap_or_default().iter().any(|known| known == FINALIZER) {
        return Ok(Next::Wait);
    }
    if kinds.is_empty() {
        return Ok(Next::After(PERIOD));
    }
    let mut left = Left::default();
    for kind in kinds.iter().filter(|kind| kind.namespaced) {
        empty(context, kind, name, &mut left).await?;
    }
    if left.objects.is_empty() {
        release(context, &namespace, name).await?;
        return Ok(Next::Wait);
    }
    report(context, &namespace, name, &left).await?;
    Ok(Next::After(PERIOD))
}

/// Deletes all objects of a kind and counts those that are still there.
async fn empty(
    context: &Context,
    kind: &Kind,
    name: &str,
    left: &mut Left,
) -> Result<(), CallError> {
    let client = context.client.clone();
    let objects =
        Api::<PartialObjectMeta<DynamicObject>>::namespaced_with(client, name, &kind.resource);
    let (list, id) = (ListParams::default(), kind.id());
    let found = call(|| format!("list {id} in {name}"), objects.list(&list)).await;
    let found = match found {
        // A kind that went away meanwhile has no objects.
        Err(error) if error.is_not_found() => return Ok(()),
        found => found?.items,
    };
    if found.is_empty() {
        return Ok(());
    }
    if found.iter().any(|object| object.metadata.deletion_timestamp.is_none()) {
        let params = DeleteParams::background();
        if kind.collective {
            let delete = objects.delete_collection(&params, &list);
            gone_is_fine(call(|| format!("delete all {id} in {name}"), delete).await)?;
        } else {
            for object in &found {
                let object = object.metadata.name.as_deref().unwrap_or_default();
                let delete = objects.delete(object, &params);
                gone_is_fine(call(|| format!("delete {id} {object}"), delete).await)?;
            }
        }
    }
    let found = call(|| format!("list {id} in {name}"), objects.list(&list)).await?.items;
    if !found.is_empty() {
        left.objects.insert(id.trim_end_matches('.').to_owned(), found.len());
    }
    for finalizer in found.iter().flat_map(|object| object.metadata.finalizers.iter().flatten()) {
        *left.finalizers.entry(finalizer.clone()).or_insert(0) += 1;
    }
    Ok(())
}

async fn release(context: &Context, namespace: &Namespace, name: &str) -> Result<(), CallError> {
    let mut released = namespace.clone();
    if let Some(finalizers) = released.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|known| known != FINALIZER);
    }
    let api = Api::<Namespace>::all(context.client.clone());
    let params = PostParams::default();
    let write = api.replace_subresource("finalize", name, &params, &released);
    gone_is_fine(call(|| format!("let namespace {name} go"), write).await)
}

async fn report(
    context: &Context,
    namespace: &Namespace,
    name: &str,
    left: &Left,
) -> Result<(), CallError> {
    let known = namespace.status.as_ref().and_then(|status| status.conditions.as_deref());
    let known = known.unwrap_or_default();
    let mut conditions = conditions(left);
    for condition in &mut conditions {
        let old = known.iter().find(|known| known.type_ == condition.type_);
        let unchanged = old.filter(|old| old.status == condition.status);
        condition.last_transition_time = unchanged
            .and_then(|old| old.last_transition_time.clone())
            .or_else(|| Some(stamp(context.clock.now())));
    }
    if conditions.iter().all(|condition| known.contains(condition)) {
        return Ok(());
    }
    let patch = serde_json::json!({"status": {"conditions": conditions}});
    let api = Api::<Namespace>::all(context.client.clone());
    let (params, patch) = (PatchParams::default(), Patch::Strategic(&patch));
    let write = api.patch_status(name, &params, &patch);
    gone_is_fine(call(|| format!("report on namespace {name}"), write).await)
}

/// Says what is left, in the words that `kubectl describe` shows.
fn conditions(left: &Left) -> Vec<NamespaceCondition> {
    let condition = |kind: &str, problem: Option<String>, bad: &str, good: &str, fine: &str| {
        NamespaceCondition {
            type_: kind.into(),
            status: if problem.is_some() { "True" } else { "False" }.into(),
            reason: Some(if problem.is_some() { bad } else { good }.into()),
            message: Some(problem.unwrap_or_else(|| fine.into())),
            last_transition_time: None,
        }
    };
    let listed = |parts: Vec<String>, lead: &str| {
        (!parts.is_empty()).then(|| format!("{lead}: {}", parts.join(", ")))
    };
    let objects =
        left.objects.iter().map(|(kind, count)| format!("{kind} has {count} resource instances"));
    let finalizers = left
        .finalizers
        .iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"));
    vec![
        condition(
            "NamespaceContentRemaining",
            listed(objects.collect(), "Some resources are remaining"),
            "SomeResourcesRemain",
            "ContentRemoved",
            "All content successfully removed",
        ),
        condition(
            "NamespaceFinalizersRemaining",
            listed(finalizers.collect(), "Some content in the namespace has finalizers remaining"),
            "SomeFinalizersRemain",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_is_left() {
        let mut left = Left::default();
        left.objects.insert("pods".into(), 2);
        left.objects.insert("widgets.example.com".into(), 1);
        let conditions = conditions(&left);
        let shown: Vec<String> = conditions
            .iter()
            .map(|condition| {
                let message = condition.message.as_deref().unwrap_or_default();
                format!("{}={} {message}", condition.type_, condition.status)
            })
            .collect();
        assert_eq!(
            shown,
            [
                "NamespaceContentRemaining=True Some resources are remaining: pods has 2 resource \
             instances, widgets.example.com has 1 resource instances",
                "NamespaceFinalizersRemaining=False All content-preserving finalizers finished",
            ]
        );
    }
}
