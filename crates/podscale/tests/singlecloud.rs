//! Singlecloud's API on the embedded API server: what it answers, what it leaves behind, and what it
//! cleans up.

#![allow(missing_docs, unreachable_pub, reason = "nothing here is used from elsewhere")]
// Helpers of tests may fail as loudly as tests do.
#![allow(clippy::expect_used)]

#[path = "singlecloud/driven.rs"]
mod driven;
#[path = "singlecloud/environment.rs"]
mod environment;
#[path = "singlecloud/kept_rules.rs"]
mod kept_rules;

use axum::Router;
use axum::routing::get;
use environment::{COLLECTION, Environment, NAMESPACE};
use podscale_controller::serve::singlecloud::Rules;
use serde_json::{Value, json};

fn autoscaler(name: &str, target: &str) -> Value {
    json!({"name": name, "scaleTargetKind": "deployment", "scaleTargetName": target,
        "minReplicas": 1, "maxReplicas": 5,
        "resourceMetrics": [
            {"resourceName": "cpu", "targetType": "AverageValue", "averageValue": "500m"},
            {"resourceName": "memory", "targetType": "Utilization", "averageUtilization": 60}]})
}

fn with_metric(name: &str, target: &str, view: &str) -> Value {
    let mut body = autoscaler(name, target);
    body["customMetrics"] =
        json!([{"metricName": "qps", "labels": {"view": view}, "averageValue": "2000"}]);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn autoscalers_are_created_read_changed_and_deleted() {
    let mut environment = Environment::start(Rules::None).await;
    let item = format!("{COLLECTION}/web");
    let rest = async |verb: &str, path: &str, body: &Value| {
        environment.rest(verb, path, body, "good").await
    };
    let (code, created) = rest("POST", COLLECTION, &autoscaler("web", "web")).await;
    assert_eq!(code, 201, "{created}");
    let own = created["links"]["self"].as_str().expect("a link");
    assert!(own.starts_with("https://127.0.0.1:") && own.ends_with(&item), "{own}");
    for (link, path) in [("update", &item), ("remove", &item), ("collection", &COLLECTION.into())] {
        let url = created["links"][link].as_str().expect("a link");
        assert!(url.ends_with(path.as_str()), "{url}");
    }
    assert_eq!(
        (&created["id"], &created["type"]),
        (&json!("web"), &json!("horizontalpodautoscaler"))
    );
    assert!(created["creationTimestamp"].is_string() && created["deletionTimestamp"].is_null());
    let hpa = environment.hpa("web").await;
    assert_eq!(hpa["metadata"]["labels"], json!({"deployment": "web"}));
    assert_eq!(hpa["spec"]["scaleTargetRef"]["kind"], "deployment");

    let (code, read) = rest("GET", &item, &Value::Null).await;
    assert_eq!((code, &read["resourceMetrics"][0]["averageValue"]), (200, &json!("500m")));
    let mut changed = read.clone();
    changed["maxReplicas"] = json!(9);
    let (code, body) = rest("PUT", &item, &changed).await;
    assert_eq!((code, &body["maxReplicas"]), (200, &json!(9)), "{body}");
    let metrics = environment.hpa("web").await["spec"]["metrics"].clone();
    assert_eq!(metrics, hpa["spec"]["metrics"], "units survive");

    let (code, list) = rest("GET", COLLECTION, &Value::Null).await;
    assert_eq!(
        (code, &list["type"], &list["resourceType"]),
        (200, &json!("collection"), &json!("horizontalpodautoscaler"))
    );
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1), "{list}");
    assert!(list["links"]["self"].as_str().is_some_and(|url| url.ends_with(COLLECTION)));
    assert_eq!(list["data"][0]["links"], created["links"]);

    assert_eq!(rest("DELETE", &item, &Value::Null).await, (202, Value::Null));
    assert!(environment.hpa("web").await.is_null());
    environment.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_refused_in_its_own_form() {
    let mut environment = Environment::start(Rules::None).await;
    let (code, _) = environment.rest("POST", COLLECTION, &autoscaler("web", "web"), "good").await;
    assert_eq!(code, 201);
    let item = format!("{COLLECTION}/web");
    let elsewhere = COLLECTION.replace("local", "other");
    let fine = autoscaler("b", "b");
    let mut few = autoscaler("b", "b");
    (few["minReplicas"], few["maxReplicas"]) = (json!(3), json!(2));
    let mut unset = autoscaler("b", "b");
    unset["resourceMetrics"][1]["averageUtilization"] = json!(0);
    let kind = {
        let mut body = fine.clone();
        body["scaleTargetKind"] = json!("job");
        body
    };
    let other_name = autoscaler("x", "web");
    let null = Value::Null;
    let cases: [(&str, &str, &Value, &str, u16, &str, &str); 18] = [
        ("GET", COLLECTION, &null, "", 401, "Unauthorized", "a valid bearer token"),
        ("GET", COLLECTION, &null, "wrong", 401, "Unauthorized", "a valid bearer token"),
        ("POST", COLLECTION, &fine, "reader", 403, "PermissionDenied", "cannot create resource"),
        ("DELETE", &item, &null, "reader", 403, "PermissionDenied", "cannot delete resource"),
        ("GET", &elsewhere, &null, "good", 404, "NotFound", "cluster doesn't exist"),
        ("GET", &format!("{COLLECTION}/none"), &null, "good", 404, "NotFound", "no found hpa none"),
        (
            "DELETE",
            &format!("{COLLECTION}/none"),
            &null,
            "good",
            404,
            "NotFound",
            "no found hpa none",
        ),
        ("PUT", &format!("{COLLECTION}/b"), &fine, "good", 404, "NotFound", "no found hpa b"),
        ("GET", "/apis/zcloud.cn/v1/clusters", &null, "good", 404, "NotFound", "no such resource"),
        ("PATCH", &item, &fine, "good", 405, "MethodNotAllow", "not allowed"),
        ("POST", COLLECTION, &json!([]), "good", 422, "InvalidBodyContent", "must be an object"),
        (
            "POST",
            COLLECTION,
            &kind,
            "good",
            422,
            "InvalidBodyContent",
            "job isn't included in options",
        ),
        (
            "PUT",
            &item,
            &other_name,
            "good",
            422,
            "InvalidBodyContent",
            "name x isn't web of the path",
        ),
        (
            "POST",
            COLLECTION,
            &unset,
            "good",
            422,
            "ConnectClusterFailed",
            "create hpa b failed averageUtilization must not be empty when type is Utilization",
        ),
        (
            "POST",
            COLLECTION,
            &few,
            "good",
            422,
            "ConnectClusterFailed",
            "create hpa b failed HorizontalPodAutoscaler.autoscaling \"b\" is invalid: \
             spec.maxReplicas: Invalid value: 2: must be greater than or equal to `minReplicas`",
        ),
        (
            "POST",
            COLLECTION,
            &other_name,
            "good",
            422,
            "ConnectClusterFailed",
            "create hpa x failed duplicate horizontalpodautoscaler x for deployment/web",
        ),
        (
            "POST",
            COLLECTION,
            &autoscaler("web", "c"),
            "good",
            422,
            "ConnectClusterFailed",
            "create hpa web failed duplicate horizontalpodautoscaler web for deployment/c",
        ),
        (
            "POST",
            COLLECTION,
            &with_metric("b", "b", "default"),
            "good",
            422,
            "ConnectClusterFailed",
            "create hpa b failed custom metrics are not available",
        ),
    ];
    for (verb, path, body, token, status, code, message) in cases {
        let (answered, error) = environment.rest(verb, path, body, token).await;
        let text = error["message"].as_str().unwrap_or_default();
        assert_eq!(
            (answered, &error["code"], &error["type"]),
            (status, &json!(code), &json!("error")),
            "{verb} {path}: {error}"
        );
        assert_eq!(error["status"], status);
        assert!(text.contains(message), "{verb} {path}: {error}");
    }
    let (_, error) = environment.rest("POST", COLLECTION, &unset, "good").await;
    assert_eq!(error["field"], "resourceMetrics[1].averageUtilization");
    environment.refuse("POST", "horizontalpodautoscalers", 1, 409);
    let (_, error) = environment.rest("POST", COLLECTION, &fine, "good").await;
    assert_eq!(error["code"], "ConnectClusterFailed", "{error}");
    environment.refuse("GET", "horizontalpodautoscalers", 1, 403);
    let (status, error) = environment.rest("GET", &item, &Value::Null, "good").await;
    assert_eq!((status, &error["code"]), (500, &json!("ServerError")), "{error}");
    environment.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_can_be_picked_from_a_workload() {
    let mut environment = Environment::start(Rules::None).await;
    environment.workload(NAMESPACE, "daemonsets", "web").await;
    let path =
        "/apis/zcloud.cn/v1/clusters/local/namespaces/shop/daemonsets/web/metrics".to_owned();
    let pick = async || environment.rest("GET", &path, &Value::Null, "reader").await;
    let (code, none) = pick().await;
    assert_eq!((code, &none["data"]), (200, &json!([])), "no pod says where: {none}");
    let text = "# HELP qps queries a second\n# TYPE qps gauge\nqps{view=\"default\"} 7\n";
    let router = Router::new().route("/stats", get(async move || text));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let annotations =
        json!({"prometheus.io/port": port.to_string(), "prometheus.io/path": "/stats"});
    environment
        .create(
            &pods,
            json!({"metadata": {"name": "web-1", "labels": {"app": "web"},
            "annotations": annotations},
            "spec": {"containers": [{"name": "app", "image": "none"}]}}),
        )
        .await;
    let status = json!({"status": {"phase": "Running", "podIP": "127.0.0.1"}});
    let (code, body) = environment.ask("PATCH", &format!("{pods}/web-1/status"), &status).await;
    assert_eq!(code, 200, "{body}");
    let (code, list) = pick().await;
    assert_eq!((code, &list["resourceType"]), (200, &json!("metric")), "{list}");
    let expected = json!([{"name": "qps", "type": "gauge", "help": "queries a second",
        "metrics": [{"labels": {"view": "default"}, "gauge": {"value": 7.0}}]}]);
    assert_eq!(list["data"], expected);
    let missing = path.replace("web", "none");
    let (code, error) = environment.rest("GET", &missing, &Value::Null, "good").await;
    assert_eq!((code, &error["message"]), (404, &json!("no found daemonsets none")));
    environment.stop().await;
}
