//! Rules in the ConfigMap of a prometheus-adapter: written, changed, rolled back, and gone with the workload.

use super::environment::{COLLECTION, Environment, NAMESPACE, until};
use super::{autoscaler, with_metric};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn rules_are_kept_in_the_configuration_of_an_adapter() {
    let mut environment = Environment::with_adapter().await;
    environment.workload(NAMESPACE, "deployments", "web").await;
    let item = format!("{COLLECTION}/web");
    // Somebody else writes at the same time.
    environment.refuse("PUT", "configmaps", 3, 409);
    let body = with_metric("web", "web", "default");
    let (code, created) = environment.rest("POST", COLLECTION, &body, "good").await;
    assert_eq!(code, 201, "{created}");
    let alias = "qps_d2f0592e2b8c_shop_web";
    let named =
        environment.hpa("web").await["spec"]["metrics"][2]["pods"]["metric"]["name"].clone();
    assert_eq!(named, alias);
    let found = environment.aliases().await;
    assert_eq!(found, [alias]);
    let configuration = environment.configuration().await;
    assert_eq!(configuration["resourceRules"]["window"], "5m", "{configuration}");
    assert_eq!(configuration["rules"][0], json!({"seriesQuery": "up", "odd": true}));
    assert_eq!(
        configuration["rules"][1]["metricsQuery"],
        "sum(qps{view=\"default\"}) by (<<.GroupBy>>)"
    );
    assert_eq!(environment.pods_left().await, 0, "the adapter starts again");

    environment.adapter_pods().await;
    let mut same = created.clone();
    same["maxReplicas"] = json!(7);
    let (code, _) = environment.rest("PUT", &item, &same, "good").await;
    assert_eq!((code, environment.pods_left().await), (200, 2), "no rule has changed");
    // The controller writes the status meanwhile.
    environment.refuse("PUT", "horizontalpodautoscalers", 2, 409);
    let (code, changed) =
        environment.rest("PUT", &item, &with_metric("web", "web", "other"), "good").await;
    assert_eq!((code, environment.pods_left().await), (200, 0), "{changed}");
    let after = environment.aliases().await;
    assert!(after.len() == 1 && after != found, "{after:?}");
    environment.adapter_pods().await;
    let (code, _) = environment.rest("DELETE", &item, &Value::Null, "good").await;
    assert_eq!((code, environment.pods_left().await), (202, 0));
    assert!(environment.aliases().await.is_empty());
    environment.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_half_way_leaves_nothing_behind() {
    let mut environment = Environment::with_adapter().await;
    let before = environment.configuration().await;
    let item = format!("{COLLECTION}/web");
    let create = with_metric("web", "web", "default");
    for (method, part, times) in [
        ("GET", "configmaps/monitor", 1),
        ("PUT", "configmaps/monitor", 1),
        ("GET", "deployments/monitor", 1),
        ("DELETE", "pods/", 1),
        ("POST", "horizontalpodautoscalers", 1),
    ] {
        environment.refuse(method, part, times, 403);
        let (code, error) = environment.rest("POST", COLLECTION, &create, "good").await;
        assert_eq!(
            (code, &error["code"]),
            (422, &json!("ConnectClusterFailed")),
            "{part}: {error}"
        );
        assert!(
            error["message"].as_str().is_some_and(|m| m.contains("refused by the test")),
            "{error}"
        );
        assert_eq!(environment.configuration().await, before, "{method} {part}");
        assert!(environment.hpa("web").await.is_null(), "{method} {part}");
        environment.forgive();
    }
    // It is refused by the cluster itself, after the rules were written.
    let mut wrong = create.clone();
    wrong["minReplicas"] = json!(9);
    let (code, error) = environment.rest("POST", COLLECTION, &wrong, "good").await;
    assert_eq!(code, 422, "{error}");
    assert_eq!(environment.configuration().await, before);

    let (code, _) = environment.rest("POST", COLLECTION, &create, "good").await;
    assert_eq!(code, 201);
    let stored = (environment.configuration().await, environment.hpa("web").await["spec"].clone());
    let change = with_metric("web", "web", "other");
    for (verb, body, method, part) in [
        ("PUT", &change, "PUT", "horizontalpodautoscalers"),
        ("PUT", &change, "PUT", "configmaps/monitor"),
        ("PUT", &wrong, "", ""),
        ("DELETE", &Value::Null, "DELETE", "horizontalpodautoscalers"),
        ("DELETE", &Value::Null, "PUT", "configmaps/monitor"),
    ] {
        environment.refuse(method, part, 1, 403);
        let (code, error) = environment.rest(verb, &item, body, "good").await;
        assert_eq!(code, if verb == "PUT" { 422 } else { 500 }, "{verb} {part}: {error}");
        let spec = environment.hpa("web").await["spec"].clone();
        assert_eq!((environment.configuration().await, spec), stored, "{verb} {part}");
        environment.forgive();
    }
    environment.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_to_a_workload_goes_with_it() {
    let mut environment = Environment::with_adapter().await;
    let delete = async |environment: &Environment, path: &str| {
        let (code, body) = environment.ask("DELETE", path, &Value::Null).await;
        assert!((200..300).contains(&code), "{path}: {body}");
    };
    let apps = format!("/apis/apps/v1/namespaces/{NAMESPACE}");
    let mut set = with_metric("set", "set", "set");
    set["scaleTargetKind"] = json!("statefulset");
    let bodies = [
        ("deployments", with_metric("web", "web", "web")),
        ("deployments", with_metric("away", "away", "away")),
        ("statefulsets", set),
        ("deployments", with_metric("stays", "stays", "stays")),
    ];
    for (resource, body) in &bodies {
        let name = body["name"].as_str().expect("a name");
        environment.workload(NAMESPACE, resource, name).await;
        let (code, error) = environment.rest("POST", COLLECTION, body, "good").await;
        assert_eq!(code, 201, "{error}");
    }
    // One for a workload that comes later.
    let (code, _) =
        environment.rest("POST", COLLECTION, &autoscaler("early", "late"), "good").await;
    assert_eq!(code, 201);
    delete(&environment, &format!("{apps}/deployments/web")).await;
    delete(&environment, &format!("{apps}/statefulsets/set")).await;
    let gone = async |environment: &Environment, name: &str, rules: usize| {
        until(&format!("{name} is gone with its rule"), async || {
            let left = environment.aliases().await;
            let done = environment.hpa(name).await.is_null() && left.len() == rules;
            done.then_some(())
        })
        .await;
    };
    gone(&environment, "web", 2).await;
    gone(&environment, "set", 2).await;
    // Another one is deleted while nobody looks.
    environment.stop().await;
    delete(&environment, &format!("{apps}/deployments/away")).await;
    environment.restart().await;
    gone(&environment, "away", 1).await;
    // And an autoscaler without this API.
    let hpa = format!("/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers/stays");
    delete(&environment, &hpa).await;
    gone(&environment, "stays", 0).await;
    assert!(!environment.hpa("early").await.is_null(), "its workload was never there");
    environment.workload(NAMESPACE, "deployments", "late").await;
    delete(&environment, &format!("{apps}/deployments/late")).await;
    gone(&environment, "early", 0).await;
    environment.stop().await;
}
