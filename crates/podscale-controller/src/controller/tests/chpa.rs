//! CHPAs on the embedded API server: incorrect ones, objects of the original definition, Deployments
//! that belong to their CHPA, and other autoscalers of the same target.

use super::*;
use crate::record::{Limits, Recorder};
use podscale_api::chpa::{API_VERSION, KIND, RESOURCE};
use podscale_api::crds::chpa::definition;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CHPAS: &str = "/apis/autoscalers.postmates.com/v1beta1/namespaces/default/chpas";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// The original definition: no status subresource, and no schema that would keep anything out.
fn original_definition() -> Value {
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"] = Value::Null;
    version["additionalPrinterColumns"] = Value::Null;
    version["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition
}

fn chpa(name: &str, target: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name},
        "spec": {"minReplicas": 3, "maxReplicas": 9,
            "scaleTargetRef": {"kind": "Deployment", "name": target},
            "metrics": [{"type": "Resource", "resource":
                {"name": "cpu", "targetAverageUtilization": 80}}]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

impl Cluster {
    /// With this definition and Deployments of one replica, without an HPA.
    async fn with_chpas(definition: &Value, targets: &[&str]) -> Cluster {
        let cluster = Cluster::with(json!({"podscale.dev/managed": "false"})).await;
        cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
        cluster.send("POST", CRDS, definition).await;
        let web = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
        for target in targets {
            if *target != "web" {
                let mut other = web.clone();
                other["metadata"] = json!({"name": target});
                other["spec"]["selector"]["matchLabels"]["app"] = json!(target);
                other["spec"]["template"]["metadata"]["labels"]["app"] = json!(target);
                cluster.send("POST", DEPLOYMENTS, &other).await;
            }
            let status = json!({"status": {"replicas": 1}});
            cluster.send("PATCH", &format!("{DEPLOYMENTS}/{target}/status"), &status).await;
        }
        until("CHPAs are served", async || {
            let about = About { resource: "", name: "" };
            call::get::<Value>(&cluster.client("tester"), CHPAS, about).await.is_ok()
        })
        .await;
        cluster
    }

    async fn create_chpa(&self, name: &str, target: &str, spec: Value) {
        self.send("POST", CHPAS, &chpa(name, target, spec)).await;
    }

    async fn size_of(&self, target: &str) -> Value {
        self.get(&format!("{DEPLOYMENTS}/{target}")).await["spec"]["replicas"].take()
    }

    /// Status, reason and message of a condition.
    async fn chpa_condition(&self, name: &str, condition: &str) -> String {
        let status = self.get(&format!("{CHPAS}/{name}")).await["status"].take();
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        let found = all.into_iter().find(|c| c["type"] == condition).unwrap_or_default();
        let field = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
        [field("status"), field("reason"), field("message")].join(" ").trim().to_owned()
    }

    fn control_chpas(&self) -> Controller {
        self.control(Config::default(), &Metrics::new(), Role::alone())
    }
}

#[tokio::test(start_paused = true)]
async fn an_incorrect_spec_is_reported_and_holds_up_nobody() {
    let targets = ["web", "text", "kind", "pods"];
    let cluster = Cluster::with_chpas(&original_definition(), &targets).await;
    let pods = json!([{"type": "Pods", "resource": {"name": "cpu"}}]);
    cluster.create_chpa("text", "text", json!({"maxReplicas": "many"})).await;
    let set = json!({"scaleTargetRef": {"kind": "StatefulSet", "name": "kind"}});
    cluster.create_chpa("kind", "kind", set).await;
    cluster.create_chpa("pods", "pods", json!({"metrics": pods})).await;
    let controller = cluster.control_chpas();
    cluster.create_chpa("web", "web", json!({})).await;
    until("the sound one is decided", async || cluster.size_of("web").await == 3).await;
    for (name, expected) in [
        ("text", "spec.maxReplicas: invalid type: string \"many\", expected i32"),
        ("kind", "configurable chpa doesn't support StatefulSet kind, use Deployment instead"),
        ("pods", "metric.Pods is nil while metric.Type is 'Pods'"),
    ] {
        let expected = format!("False FailedSpecCheck {expected}");
        until(name, async || cluster.chpa_condition(name, "AbleToScale").await == expected).await;
        assert_eq!(cluster.size_of(name).await, 1, "{name}");
    }
    tokio::time::sleep(5 * MINUTE).await;
    let reported = cluster.reasons().await.iter().filter(|r| *r == "FailedSpecCheck").count();
    assert_eq!(reported, 3, "each once");
    // As soon as it is corrected, it is decided.
    cluster.send("PATCH", &format!("{CHPAS}/text"), &json!({"spec": {"maxReplicas": 9}})).await;
    until("the corrected one is decided", async || cluster.size_of("text").await == 3).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn objects_of_the_original_definition_keep_their_status_with_them() {
    let cluster = Cluster::with_chpas(&original_definition(), &["web"]).await;
    // Fields that nobody knows, and numbers that are left open, stay as they are.
    cluster.create_chpa("web", "web", json!({"note": {"by": "hand"}})).await;
    let before = cluster.get(&format!("{CHPAS}/web")).await["spec"].take();
    let controller = cluster.control_chpas();
    until("it is decided", async || cluster.size_of("web").await == 3).await;
    let status = json!({"status": {"replicas": 3}});
    cluster.send("PATCH", &format!("{DEPLOYMENTS}/web/status"), &status).await;
    until("its status is stored", async || {
        cluster.chpa_condition("web", "AbleToScale").await.starts_with("True SucceededGetScale")
    })
    .await;
    let stored = cluster.get(&format!("{CHPAS}/web")).await;
    assert_eq!(stored["spec"], before);
    assert_eq!(stored["status"]["desiredReplicas"], 3);
    assert_eq!(stored["status"]["observedGeneration"], Value::Null);
    // Each of these writes makes a generation, which is no reason for the next one.
    tokio::time::sleep(5 * MINUTE).await;
    let later = cluster.get(&format!("{CHPAS}/web")).await;
    assert_eq!(later["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
    // The definition is replaced by ours while the controller runs.
    let mut ours = definition();
    let known = cluster.get(&format!("{CRDS}/{RESOURCE}")).await;
    ours["metadata"] = known["metadata"].clone();
    cluster.send("PUT", &format!("{CRDS}/{RESOURCE}"), &ours).await;
    let spec = json!({"spec": {"minReplicas": 4}});
    until("the spec is changed", async || {
        cluster.send("PATCH", &format!("{CHPAS}/web"), &spec).await;
        cluster.size_of("web").await == 4
    })
    .await;
    until("the new generation is observed", async || {
        let stored = cluster.get(&format!("{CHPAS}/web")).await;
        stored["status"]["observedGeneration"] == stored["metadata"]["generation"]
    })
    .await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_deployment_does_not_belong_to_its_chpa() {
    let cluster = Cluster::with_chpas(&definition(), &["web"]).await;
    cluster.create_chpa("web", "web", json!({})).await;
    let uid = cluster.get(&format!("{CHPAS}/web")).await["metadata"]["uid"].take();
    let owner = |kind: &str, group: &str, uid: &Value| json!({"apiVersion": format!("{group}/v1"), "kind": kind, "name": "web", "uid": uid});
    let other = owner("App", "example.org", &json!("another"));
    let mut chpa = owner(KIND, "autoscalers.postmates.com", &uid);
    (chpa["controller"], chpa["blockOwnerDeletion"]) = (json!(true), json!(true));
    let owners = json!({"metadata": {"ownerReferences": [other.clone(), chpa]}});
    cluster.send("PATCH", &format!("{DEPLOYMENTS}/web"), &owners).await;
    let controller = cluster.control_chpas();
    until("it is released", async || {
        let web = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
        web["metadata"]["ownerReferences"] == json!([other])
    })
    .await;
    until("that is reported", async || {
        cluster.reasons().await.iter().any(|reason| reason == "ReleasedTarget")
    })
    .await;
    until("it is scaled", async || cluster.size_of("web").await == 3).await;
    controller.stop().await;
}

/// Who is in the way of a CHPA is reported, and nothing is written until that has ended.
async fn reported_and_not_fought(cluster: &Cluster) {
    let expected = "True AnotherController ";
    until("it is reported", async || {
        cluster.chpa_condition("web", CONFLICT_CONDITION).await.starts_with(expected)
    })
    .await;
    cluster.resize(1).await;
    tokio::time::sleep(4 * MINUTE).await;
    assert_eq!(cluster.size_of("web").await, 1, "nothing is written");
    until("it is tried again", async || cluster.size_of("web").await == 3).await;
    until("nothing is reported any more", async || {
        cluster.chpa_condition("web", CONFLICT_CONDITION).await.is_empty()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_original_controller_is_noticed_by_the_statuses_that_it_stores_with_objects() {
    let cluster = Cluster::with_chpas(&original_definition(), &["web"]).await;
    cluster.create_chpa("web", "web", json!({})).await;
    let controller = cluster.control_chpas();
    let original = cluster.client("configurable-hpa/1");
    let path = format!("{CHPAS}/web");
    let about = About { resource: "", name: "" };
    for desired in [7, 8, 7] {
        until("Podscale writes", async || {
            let stored = cluster.get(&path).await;
            stored["status"]["desiredReplicas"] == 3
                || !cluster.chpa_condition("web", CONFLICT_CONDITION).await.is_empty()
        })
        .await;
        // Times are whole seconds.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut object = cluster.get(&path).await;
        object["status"]["desiredReplicas"] = json!(desired);
        call::send::<Value>(&original, "PUT", &path, &object, about).await.expect("stored");
        cluster.resize(1).await;
    }
    until("who it is", async || {
        let said = cluster.chpa_condition("web", CONFLICT_CONDITION).await;
        said.contains("\"configurable-hpa\" manages this autoscaler as well")
    })
    .await;
    reported_and_not_fought(&cluster).await;
    controller.stop().await;
    assert!(cluster.reasons().await.contains(&CONFLICT_REASON.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_original_controller_is_noticed_by_the_deployments_that_it_takes_again() {
    let cluster = Cluster::with_chpas(&definition(), &["web"]).await;
    cluster.create_chpa("web", "web", json!({})).await;
    let uid = cluster.get(&format!("{CHPAS}/web")).await["metadata"]["uid"].take();
    let own = async || {
        let owner = json!({"apiVersion": API_VERSION, "kind": KIND, "name": "web", "uid": uid,
            "controller": true, "blockOwnerDeletion": true});
        let owners = json!({"metadata": {"ownerReferences": [owner]}});
        cluster.send("PATCH", &format!("{DEPLOYMENTS}/web"), &owners).await;
    };
    let released = async || {
        let web = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
        web["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty)
    };
    own().await;
    let controller = cluster.control_chpas();
    until("it is released", async || released().await).await;
    // What was left once by a controller that is gone is no conflict.
    tokio::time::sleep(2 * MINUTE).await;
    assert_eq!(cluster.chpa_condition("web", CONFLICT_CONDITION).await, "");
    own().await;
    reported_and_not_fought(&cluster).await;
    until("it is released for good", async || released().await).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_autoscaler_of_the_target_is_reported_and_not_fought() {
    let cluster = Cluster::with_chpas(&definition(), &["web"]).await;
    cluster.create_chpa("web", "web", json!({"minReplicas": 5})).await;
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "rival", "annotations": {"podscale.dev/managed": "false"}},
        "spec": {"minReplicas": 2, "maxReplicas": 4, "scaleTargetRef":
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    cluster.send("POST", HPA, &hpa).await;
    let controller = cluster.control_chpas();
    let expected = "True TargetTaken HorizontalPodAutoscaler \"rival\" scales Deployment";
    until("it is reported", async || {
        cluster.chpa_condition("web", CONFLICT_CONDITION).await.starts_with(expected)
    })
    .await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(cluster.size_of("web").await, 1, "nothing is written");
    let reasons = cluster.reasons().await;
    assert_eq!(reasons.iter().filter(|r| *r == TARGET_TAKEN).count(), 1, "{reasons:?}");
    // If it is managed here, it acts as if there were no CHPA.
    let managed = json!({"metadata": {"annotations": {"podscale.dev/managed": "true"}}});
    cluster.send("PATCH", &format!("{HPA}/rival"), &managed).await;
    until("the HPA acts", async || cluster.size_of("web").await == 2).await;
    cluster.send("DELETE", &format!("{HPA}/rival"), &json!({})).await;
    until("the CHPA acts", async || cluster.size_of("web").await == 5).await;
    until("nothing is reported any more", async || {
        cluster.chpa_condition("web", CONFLICT_CONDITION).await.is_empty()
    })
    .await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn its_decisions_are_recorded_and_replay() {
    let folder = recordings::folder("chpa");
    let cluster = Cluster::with_chpas(&definition(), &["web"]).await;
    // The metric asks for 100, so that the limit and the windows decide.
    let queue = json!([{"type": "External", "external":
        {"metricName": "queue", "targetAverageValue": "1"}}]);
    let spec = json!({"metrics": queue, "scaleUpLimitMinimum": 5, "minReplicas": 1});
    cluster.create_chpa("web", "web", spec).await;
    let metrics = Metrics::new();
    let (recorder, writing) =
        Recorder::start(&folder, Limits::default(), metrics.clone()).expect("a folder");
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(recorder)];
    let watchers = Watchers { observers, metrics, ..Watchers::default() };
    let (client, dialects) = (cluster.client("podscale/0"), dialect::built_in());
    let config = Config::default();
    let controller =
        Controller::start(&client, cluster.clock, config, dialects, watchers, Role::alone());
    until("it goes to the limit", async || cluster.size_of("web").await == 5).await;
    let status = json!({"status": {"replicas": 5}});
    cluster.send("PATCH", &format!("{DEPLOYMENTS}/web/status"), &status).await;
    tokio::time::sleep(MINUTE).await;
    controller.stop().await;
    writing.finish();
    assert_eq!(cluster.size_of("web").await, 5, "the window holds");
    let (_, sizes) = recordings::replay(&folder);
    assert!(sizes.len() >= 4 && sizes.iter().all(|size| *size == 5), "{sizes:?}");
}
