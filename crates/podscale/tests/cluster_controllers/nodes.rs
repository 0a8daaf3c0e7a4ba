//! Where pods run, and who finds them there: nodes that are lost and come back, places, endpoints.

use super::world::{World, is_ready, run};
use super::{deployment, scale};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Endpoints, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;
use std::sync::Arc;

#[test]
fn a_lost_node_loses_its_pods() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world.node("n2", "100").await;
        let mut web = deployment("web", 4);
        web["spec"]["template"]["spec"]["tolerations"] = json!([{"operator": "Exists",
            "key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "tolerationSeconds": 60}]);
        world.create::<Deployment>(web).await;
        world.until_ready(4).await;
        world.silent.lock().unwrap().insert("n1".into());
        let on = |pods: &[Pod], node: &str| {
            let node_of = |pod: &Pod| pod.spec.as_ref().unwrap().node_name.clone();
            pods.iter().filter(|pod| node_of(pod).as_deref() == Some(node)).count()
        };
        let nodes = Api::<Node>::all(world.client.clone());
        world
            .until("the node is marked", (Some("Unknown".to_owned()), 2), async || {
                let node = nodes.get("n1").await.unwrap();
                let conditions = node.status.unwrap().conditions.unwrap();
                let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
                let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
                let lost = taints.iter().filter(|taint| taint.key.ends_with("/unreachable"));
                (ready.map(|ready| ready.status), lost.count())
            })
            .await;
        world
            .until("replaced on the other node", (0, 4, 4), async || {
                let pods = world.pods().await;
                let ready = pods.iter().filter(|pod| is_ready(pod)).count();
                (on(&pods, "n1"), on(&pods, "n2"), ready)
            })
            .await;
        assert!(!world.events("TaintManagerEviction").await.is_empty());
        // Nobody confirms the end of its pods, until the node itself is gone.
        assert!(world.names::<Pod>().await.len() > 4);
        nodes.delete("n1", &DeleteParams::default()).await.unwrap();
        world.until_ready(4).await;
    });
}

#[test]
fn a_node_that_comes_back_is_used_again() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        world.silent.lock().unwrap().insert("n1".into());
        let nodes = Api::<Node>::all(world.client.clone());
        let taints = async || {
            let spec = nodes.get("n1").await.unwrap().spec;
            spec.and_then(|spec| spec.taints).map_or(0, |taints| taints.len())
        };
        world.until("tainted", 2, taints).await;
        world.create::<Deployment>(deployment("web", 1)).await;
        world.until("told", 1, async || world.events("FailedScheduling").await.len()).await;
        world.silent.lock().unwrap().clear();
        world.until("clean", 0, taints).await;
        world.until_ready(1).await;
    });
}

#[test]
fn a_pod_that_fits_nowhere_says_why_and_is_placed_when_it_fits() {
    run(async |world: Arc<World>| {
        world.node("n1", "1").await;
        world.node("n2", "2").await;
        let mut web = deployment("web", 1);
        web["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] =
            json!("3");
        world.create::<Deployment>(web).await;
        let expected = "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.".to_owned();
        world
            .until("condition", Some(expected), async || {
                let pod = world.pods().await.pop()?;
                let conditions = pod.status?.conditions?;
                let found = conditions.into_iter().find(|one| one.type_ == "PodScheduled")?;
                Some(format!("{}: {}", found.reason?, found.message?))
            })
            .await;
        world.node("n3", "4").await;
        world.until_ready(1).await;
        let node = world.pods().await.remove(0).spec.unwrap().node_name;
        assert_eq!(node.as_deref(), Some("n3"));
    });
}

#[test]
fn a_service_knows_who_is_behind_it() {
    run(async |world: Arc<World>| {
        world.node("n1", "100").await;
        let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"},
            "ports": [{"port": 80, "targetPort": 8080}]}});
        world.create::<Service>(service).await;
        world.create::<Deployment>(deployment("web", 3)).await;
        let behind = async || {
            let endpoints = world.api::<Endpoints>().get_opt("web").await.unwrap();
            let subsets = endpoints.and_then(|endpoints| endpoints.subsets).unwrap_or_default();
            let addresses =
                subsets.into_iter().flat_map(|subset| subset.addresses.unwrap_or_default());
            let slices = world.api::<EndpointSlice>().list(&ListParams::default()).await.unwrap();
            let all =
                slices.items.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
            let ready = all.filter(|one| one.conditions.as_ref().unwrap().ready == Some(true));
            (addresses.count(), ready.count())
        };
        world.until("three", (3, 3), behind).await;
        scale(&world, "web", 1).await;
        world.until("one", (1, 1), behind).await;
        world.api::<Service>().delete("web", &DeleteParams::default()).await.unwrap();
        world.until("none", (0, 0), behind).await;
        world
            .until("slices are gone", 0, async || world.names::<EndpointSlice>().await.len())
            .await;
    });
}
