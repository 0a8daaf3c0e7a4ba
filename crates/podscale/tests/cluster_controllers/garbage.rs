//! What goes with what: dependents, owners that are gone, namespaces.

use super::deployment;
use super::world::{World, run};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PropagationPolicy};
use serde_json::json;
use std::sync::Arc;

#[test]
fn dependents_follow_are_awaited_or_let_go() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        for (policy, left) in [
            (PropagationPolicy::Background, (0, 0, 0)),
            (PropagationPolicy::Foreground, (0, 0, 0)),
            (PropagationPolicy::Orphan, (0, 1, 2)),
        ] {
            world.create::<Deployment>(deployment("web", 2)).await;
            world.until_ready(2).await;
            let params = DeleteParams {
                propagation_policy: Some(policy.clone()),
                ..DeleteParams::default()
            };
            world.api::<Deployment>().delete("web", &params).await.unwrap();
            world
                .until(&format!("{policy:?}"), left, async || {
                    let deployments = world.names::<Deployment>().await.len();
                    let sets = world.names::<ReplicaSet>().await.len();
                    let pods = world.names::<Pod>().await.len();
                    if policy == PropagationPolicy::Foreground && deployments == 0 {
                        assert_eq!(sets, 0, "the owner goes last");
                    }
                    (deployments, sets, pods)
                })
                .await;
        }
        let sets = world.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
        assert_eq!(sets.items[0].metadata.owner_references, None);
    });
}

#[test]
fn an_object_with_a_dead_owner_is_garbage() {
    run(async |world: Arc<World>| {
        let owner = world.create::<ConfigMap>(json!({"metadata": {"name": "owner"}})).await;
        let reference = |uid: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap",
            "name": "owner", "uid": uid})
        };
        let living = reference(owner.metadata.uid.as_deref().unwrap());
        let dead = reference("00000000-0000-0000-0000-000000000000");
        for (name, owners) in
            [("kept", json!([living])), ("garbage", json!([dead])), ("both", json!([dead, living]))]
        {
            let object = json!({"metadata": {"name": name, "ownerReferences": owners}});
            world.create::<ConfigMap>(object).await;
        }
        world
            .until("garbage is collected", (false, 1), async || {
                let names = world.names::<ConfigMap>().await;
                let both = world.api::<ConfigMap>().get("both").await.unwrap();
                (names.contains(&"garbage".into()), both.metadata.owner_references.unwrap().len())
            })
            .await;
        world.api::<ConfigMap>().delete("owner", &DeleteParams::default()).await.unwrap();
        world
            .until("all followed", false, async || {
                let names = world.names::<ConfigMap>().await;
                names.iter().any(|name| ["kept", "both", "owner"].contains(&name.as_str()))
            })
            .await;
    });
}

#[test]
fn a_namespace_is_emptied_before_it_goes() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world
            .until("account", true, async || {
                world.names::<ServiceAccount>().await.contains(&"default".to_owned())
            })
            .await;
        world.create::<Deployment>(deployment("web", 3)).await;
        let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
        world.create::<ConfigMap>(held).await;
        world.until_ready(3).await;
        let namespaces = Api::<Namespace>::all(world.client.clone());
        namespaces.delete(&world.namespace, &DeleteParams::default()).await.unwrap();
        world.until("pods are gone", 0, async || world.names::<Pod>().await.len()).await;
        world
            .until("it says what it waits for", true, async || {
                let namespace = namespaces.get(&world.namespace).await.unwrap();
                let conditions = namespace.status.unwrap().conditions.unwrap_or_default();
                conditions.iter().any(|condition| {
                    condition.message.as_deref().is_some_and(|message| {
                        message.contains("example.com/hold in 1 resource instances")
                    })
                })
            })
            .await;
        world.patch::<ConfigMap>("held", json!({"metadata": {"finalizers": null}})).await;
        world
            .until("it is gone", true, async || {
                namespaces.get_opt(&world.namespace).await.unwrap().is_none()
            })
            .await;
    });
}
