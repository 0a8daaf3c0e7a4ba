//! Which objects belong to an owner: those it controls and selects, orphans that it selects and may
//! adopt, and those it controls but no longer selects, which it lets go.

use super::pod::{controller_of, labels_of};
use crate::call::{CallError, call};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams};
use kube::core::{Selector, SelectorExt};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::sync::Arc;

/// What to do about an object that may belong to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It belongs to the owner already.
    Own,
    /// Nobody controls it and the owner selects it.
    Adopt,
    /// The owner controls it but does not select it any more.
    Release,
    /// It is none of the owner's business.
    Ignore,
}

/// Decides about one object.
#[must_use]
pub fn claim(owner: &ObjectMeta, selector: &Selector, object: &ObjectMeta) -> Claim {
    let selected = selector.matches(labels_of(object));
    let owner_ends = owner.deletion_timestamp.is_some();
    match controller_of(object) {
        Some(reference) if Some(&reference.uid) != owner.uid.as_ref() => Claim::Ignore,
        Some(_) if selected => Claim::Own,
        Some(_) if owner_ends => Claim::Ignore,
        Some(_) => Claim::Release,
        None if owner_ends || !selected || object.deletion_timestamp.is_some() => Claim::Ignore,
        None if owner.namespace != object.namespace => Claim::Ignore,
        None => Claim::Adopt,
    }
}

/// The reference that makes an object a controlled one of the owner.
#[must_use]
pub fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> OwnerReference {
    let meta = owner.meta();
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Claims what belongs to the owner among the candidates: adopts and releases through the API
/// server, and returns those that are the owner's now.
pub async fn claim_all<O, K>(
    client: &Client,
    owner: &O,
    selector: &Selector,
    candidates: Vec<Arc<K>>,
) -> Result<Vec<Arc<K>>, CallError>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let namespace = owner.meta().namespace.as_deref().unwrap_or_default();
    let objects = Api::<K>::namespaced(client.clone(), namespace);
    let mut own = Vec::with_capacity(candidates.len());
    let mut may_adopt = None;
    for object in candidates {
        match claim(owner.meta(), selector, object.meta()) {
            Claim::Own => own.push(object),
            Claim::Ignore => {}
            Claim::Release => release(&objects, owner, object.as_ref()).await?,
            Claim::Adopt => {
                if may_adopt.is_none() {
                    may_adopt = Some(is_alive(client, owner).await?);
                }
                if may_adopt == Some(true)
                    && let Some(adopted) = adopt(&objects, owner, object.as_ref()).await?
                {
                    own.push(Arc::new(adopted));
                }
            }
        }
    }
    Ok(own)
}

/// Asks the API server itself, since a cache may not know yet that the owner was deleted and an
/// adoption then would take the object into its grave.
async fn is_alive<O>(client: &Client, owner: &O) -> Result<bool, CallError>
where
    O: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let meta = owner.meta();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let name = meta.name.as_deref().unwrap_or_default();
    let api = Api::<O>::namespaced(client.clone(), namespace);
    let fresh = call(|| format!("read {namespace}/{name}"), api.get_opt(name)).await?;
    Ok(fresh.is_some_and(|fresh| {
        fresh.meta().uid == meta.uid && fresh.meta().deletion_timestamp.is_none()
    }))
}

async fn adopt<O, K>(objects: &Api<K>, owner: &O, object: &K) -> Result<Option<K>, CallError>
where
    O: Resource<DynamicType = ()>,
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let meta = object.meta();
    let patch = json!({"metadata": {"uid": meta.uid,
        "ownerReferences": [owner_reference(owner)]}});
    let result = patch_owners(objects, meta, &patch).await;
    match result {
        Ok(adopted) => Ok(Some(adopted)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn release<O, K>(objects: &Api<K>, owner: &O, object: &K) -> Result<(), CallError>
where
    O: Resource<DynamicType = ()>,
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
{
    let meta = object.meta();
    let patch = json!({"metadata": {"uid": meta.uid,
        "ownerReferences": [{"$patch": "delete", "uid": owner.meta().uid}]}});
    match patch_owners(objects, meta, &patch).await {
        // Gone, or another object of the same name by now: either way not ours any more.
        Err(error) if !error.is_not_found() && !error.is_invalid() => Err(error),
        _ => Ok(()),
    }
}

async fn patch_owners<K>(
    objects: &Api<K>,
    meta: &ObjectMeta,
    patch: &serde_json::Value,
) -> Result<K, CallError>
where
    K: Clone + DeserializeOwned + Debug,
{
    let name = meta.name.as_deref().unwrap_or_default();
    let (params, patch) = (PatchParams::default(), Patch::Strategic(patch));
    call(|| format!("change the owners of {name}"), objects.patch(name, &params, &patch)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(json: serde_json::Value) -> ObjectMeta {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn decides_by_controller_labels_and_deletion() {
        let mine = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1",
            "controller": true}]);
        let other = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "2",
            "controller": true}]);
        let loose = json!([{"apiVersion": "v1", "kind": "Thing", "name": "web", "uid": "2"}]);
        let (none, gone) = (json!(null), json!("2026-01-01T00:00:00Z"));
        let cases = [
            ("mine and selected", &none, "web", &mine, &none, Claim::Own),
            ("mine, labels drifted", &none, "db", &mine, &none, Claim::Release),
            ("mine, drifted, owner ends", &gone, "db", &mine, &none, Claim::Ignore),
            ("mine and selected, owner ends", &gone, "web", &mine, &none, Claim::Own),
            ("another's", &none, "web", &other, &none, Claim::Ignore),
            ("orphan and selected", &none, "web", &none, &none, Claim::Adopt),
            ("owned but not controlled", &none, "web", &loose, &none, Claim::Adopt),
            ("orphan, not selected", &none, "db", &none, &none, Claim::Ignore),
            ("orphan, owner ends", &gone, "web", &none, &none, Claim::Ignore),
            ("orphan that ends", &none, "web", &none, &gone, Claim::Ignore),
        ];
        let selector = Selector::from_iter([("app", "web")]);
        for (name, owner_ends, app, owners, ends, expected) in cases {
            let owner =
                meta(json!({"namespace": "a", "uid": "1", "deletionTimestamp": owner_ends}));
            let object = meta(json!({"namespace": "a", "uid": "9", "labels": {"app": app},
                "ownerReferences": owners, "deletionTimestamp": ends}));
            assert_eq!(claim(&owner, &selector, &object), expected, "{name}");
        }
        let owner = meta(json!({"namespace": "b", "uid": "1"}));
        let object = meta(json!({"namespace": "a", "labels": {"app": "web"}}));
        assert_eq!(claim(&owner, &selector, &object), Claim::Ignore, "other namespace");
    }
}
