//! Which target and which pods a spec means.

use super::costs::Sessions;
use super::*;

const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn the_target_is_the_one_that_the_spec_names() {
    let cluster = Cluster::with_definition().await;
    let mut other = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    other["metadata"] = json!({"name": "other"});
    cluster.send("POST", DEPLOYMENTS, &other).await;
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "serviceName": "web", "selector": {"matchLabels": {"app": "set"}},
            "template": {"metadata": {"labels": {"app": "set"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    cluster.send("POST", STATEFUL_SETS, &set).await;
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 3;
    let controller = cluster.control_by(&load);
    let target = |version: &str, kind: &str, name: &str| json!({"scaleTargetRef": {"apiVersion": version, "kind": kind, "name": name}});
    cluster.send("POST", PAS, &pa("name", target("apps/v1", "Deployment", "other"))).await;
    cluster.send("POST", PAS, &pa("kind", target("apps/v1", "StatefulSet", "web"))).await;
    cluster.send("POST", PAS, &pa("group", target("example.org/v1", "Deployment", "web"))).await;
    let size = async |path: &str| cluster.get(path).await["spec"]["replicas"].take();
    until("the one of another name", async || size(&format!("{DEPLOYMENTS}/other")).await == 3)
        .await;
    until("the one of another kind", async || size(&format!("{STATEFUL_SETS}/web")).await == 3)
        .await;
    until("the one of another group is not there", async || {
        let able = cluster.condition("group", "AbleToScale").await;
        able.is_some_and(|[_, reason, message]| {
            reason == "FailedGetScale" && message.contains("example.org")
        })
    })
    .await;
    assert_eq!(cluster.replicas().await, 1, "nobody names this one");
    controller.stop().await;
}

/// A pod that serves, of this replica set.
async fn create_pod(cluster: &Cluster, name: &str, set: &Value) {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set["name"],
        "uid": set["uid"], "controller": true});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": [owner]},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    cluster.send("POST", PODS, &pod).await;
    let since = "2026-01-01T00:00:00Z";
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": since});
    let status = json!({"status": {"phase": "Running", "conditions": [ready], "startTime": since}});
    cluster.send("PATCH", &format!("{PODS}/{name}/status"), &status).await;
}

#[tokio::test(start_paused = true)]
async fn only_pods_that_the_target_owns_count_unless_the_spec_says() {
    static BUSY: [(&str, i64); 4] = [("a", 5), ("b", 5), ("c", 50), ("d", 50)];
    let cluster = Cluster::with_definition().await;
    cluster.resize(2).await;
    let web = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    let mut sets = Vec::new();
    for (name, owner) in [("web-1", &web["metadata"]["uid"]), ("stranger", &json!("s"))] {
        let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": owner,
            "controller": true});
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"replicas": 2, "selector": web["spec"]["selector"],
                "template": web["spec"]["template"]}});
        sets.push(cluster.send("POST", REPLICA_SETS, &set).await["metadata"].take());
    }
    for (place, (name, _)) in BUSY.iter().enumerate() {
        create_pod(&cluster, name, &sets[place / 2]).await;
    }
    let load = Arc::new(Load::default());
    let client = cluster.client("podscale/0");
    let controller = cluster.control_custom(&client, &load, Arc::new(Sessions(&BUSY)));
    let sessions = json!([{"type": "Pods", "pods": {"metric": {"name": "sessions"},
        "target": {"type": "AverageValue", "averageValue": "5"}}}]);
    cluster.send("POST", PAS, &pa("web", json!({"metrics": sessions}))).await;
    until("it is decided", async || {
        let active = cluster.condition("web", "ScalingActive").await;
        active.is_some_and(|[status, ..]| status == "True")
    })
    .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.replicas().await, 2, "its own pods are as busy as they should be");
    let all = json!({"spec": {"podSelection": "Selector"}});
    cluster.send("PATCH", &format!("{PAS}/web"), &all).await;
    until("the others count", async || cluster.replicas().await.as_i64() > Some(2)).await;
    controller.stop().await;
}
