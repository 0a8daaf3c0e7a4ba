//! The versions of autoscaling that servers of before had, behind a setting.

use super::{run, send, server, step};
use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};

const BETA1: &str = "/apis/autoscaling/v2beta1/namespaces/default/horizontalpodautoscalers";
const BETA2: &str = "/apis/autoscaling/v2beta2/namespaces/default/horizontalpodautoscalers";

fn with_removed_versions() -> ApiServer {
    ApiServer::new(Config { removed_autoscaling_versions: true, ..Config::default() })
}

fn autoscaler(version: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": format!("autoscaling/{version}"),
        "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
        "spec": {"maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    for (field, value) in spec.as_object().expect("fields") {
        object["spec"][field] = value.clone();
    }
    object
}

#[tokio::test]
async fn they_are_not_there_by_default() {
    let answer = send(&server(), "GET", BETA2, "", "", String::new()).await;
    assert_eq!(answer.code, 404);
    let group = send(&server(), "GET", "/apis/autoscaling", "", "", String::new()).await.body;
    assert_eq!(group["versions"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn they_are_views_of_the_same_object() {
    let pods = json!({"metrics": [{"type": "Pods", "pods": {"metricName": "qps", "targetAverageValue": "10"}}]});
    let server = with_removed_versions();
    run(
        &server,
        vec![
            step(
                "write one",
                "POST /apis/autoscaling/v2beta1/namespaces/default/horizontalpodautoscalers",
                autoscaler("v2beta1", pods),
                201,
                vec![
                    ("/spec/metrics/0/pods/targetAverageValue", json!("10")),
                    ("/spec/minReplicas", json!(1)),
                    ("/status/currentReplicas", json!(0)),
                    ("/status/conditions", Value::Null),
                ],
            ),
            step(
                "read another",
                "GET /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web",
                Value::Null,
                200,
                vec![("/spec/metrics/0/pods/target", json!({"type": "AverageValue", "averageValue": "10"}))],
            ),
            step(
                "say more in a newer one",
                "MERGE /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web",
                json!({"spec": {"behavior": {"scaleDown": {"selectPolicy": "Disabled", "tolerance": "50m"}}}}),
                200,
                vec![],
            ),
            step(
                "the older one keeps it",
                "MERGE /apis/autoscaling/v2beta2/namespaces/default/horizontalpodautoscalers/web",
                json!({"spec": {"maxReplicas": 7}}),
                200,
                vec![
                    ("/spec/behavior/scaleDown/selectPolicy", json!("Disabled")),
                    ("/spec/behavior/scaleDown/tolerance", Value::Null),
                    ("/metadata/annotations/autoscaling.alpha.kubernetes.io~1scale-down-tolerance", json!("50m")),
                ],
            ),
            step(
                "nothing was lost",
                "GET /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/web",
                Value::Null,
                200,
                vec![
                    ("/spec/maxReplicas", json!(7)),
                    ("/spec/behavior/scaleDown/tolerance", json!("50m")),
                    ("/metadata/annotations", Value::Null),
                ],
            ),
        ],
    )
    .await;
    let list = send(&server, "GET", BETA1, "", "", String::new()).await.body;
    assert_eq!(
        (&list["apiVersion"], &list["items"][0]["spec"]["maxReplicas"]),
        (&json!("autoscaling/v2beta1"), &json!(7))
    );
    let group = send(&server, "GET", "/apis/autoscaling", "", "", String::new()).await.body;
    let versions: Vec<&str> = group["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .filter_map(|version| version["version"].as_str())
        .collect();
    assert_eq!(versions, ["v2", "v1", "v2beta1", "v2beta2"]);
}

#[tokio::test]
async fn they_say_that_they_will_go() {
    let server = with_removed_versions();
    let bodies = [
        (
            BETA1,
            autoscaler("v2beta1", json!({})),
            "299 - \"autoscaling/v2beta1 HorizontalPodAutoscaler is deprecated in v1.22+, unavailable in v1.25+; use autoscaling/v2 HorizontalPodAutoscaler\"",
        ),
        (
            BETA2,
            autoscaler("v2beta2", json!({})),
            "299 - \"autoscaling/v2beta2 HorizontalPodAutoscaler is deprecated in v1.23+, unavailable in v1.26+; use autoscaling/v2 HorizontalPodAutoscaler\"",
        ),
    ];
    for (path, mut body, warning) in bodies {
        body["metadata"]["name"] =
            body["apiVersion"].as_str().expect("a version").replace('/', ".").into();
        let answer = send(&server, "POST", path, "application/json", "", body.to_string()).await;
        assert_eq!((answer.code, answer.warnings), (201, vec![warning.to_owned()]));
        let answer = send(&server, "GET", path, "", "", String::new()).await;
        assert_eq!((answer.code, answer.warnings), (200, vec![warning.to_owned()]));
    }
    let stored = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
    let answer = send(&server, "GET", stored, "", "", String::new()).await;
    assert_eq!(answer.warnings, [""; 0]);
    assert_eq!(answer.body["items"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn they_refuse_what_their_types_do_not_have() {
    let server = with_removed_versions();
    let wrong = autoscaler("v2beta1", json!({"metrics": [{"type": 5}]}));
    let answer = send(&server, "POST", BETA1, "application/json", "", wrong.to_string()).await;
    assert_eq!(answer.code, 400);
    assert_eq!(
        answer.body["message"],
        "HorizontalPodAutoscaler in version \"v2beta1\" cannot be handled as a HorizontalPodAutoscaler: json: cannot unmarshal number into Go struct field MetricSpec.spec.metrics.type of type v2beta1.MetricSourceType"
    );
    let invalid = autoscaler("v2beta1", json!({"maxReplicas": -1}));
    let answer = send(&server, "POST", BETA1, "application/json", "", invalid.to_string()).await;
    assert_eq!(answer.code, 422);
}
