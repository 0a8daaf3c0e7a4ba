use super::*;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use parking_lot::Mutex;
use podscale_api::quantity::Format;
use tower::ServiceExt;

/// Answers one value of what is asked for, and remembers that.
#[derive(Default)]
struct One(Mutex<Option<CustomRequest>>);

impl CustomMetrics for One {
    fn metrics(&self) -> Vec<CustomMetric> {
        let metric = |text: &str, namespaced| CustomMetric {
            resource: GroupResource::read(text),
            name: "load".to_owned(),
            namespaced,
        };
        vec![metric("pods", true), metric("nodes", false), metric("pods", true)]
    }

    fn values<'a>(&'a self, request: &'a CustomRequest) -> Answering<'a, Vec<CustomValue>> {
        *self.0.lock() = Some(request.clone());
        let object = DescribedObject {
            kind: "Thing".to_owned(),
            api_version: "/v1".to_owned(),
            namespace: request.namespace.clone(),
            name: "web".to_owned(),
        };
        let value = CustomValue {
            object,
            time: Timestamp::UNIX_EPOCH,
            window: Some(Duration::from_secs(60)),
            value: Quantity::from_milli(1500, Format::DecimalSi),
        };
        Box::pin(async move {
            if request.metric == "none" { Err(request.not_found()) } else { Ok(vec![value]) }
        })
    }
}

async fn ask(provider: &Arc<One>, path: &str) -> (u16, Value) {
    let provider: Provider = Arc::<One>::clone(provider);
    let request = Request::get(format!("/apis/custom.metrics.k8s.io{path}"));
    let answer = router(provider).oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[tokio::test]
async fn paths_say_what_is_asked_for() {
    let provider = Arc::new(One::default());
    let everything = || Objects::Selected(Selector::everything());
    let named = |name: &str| Objects::Named(name.to_owned());
    for (path, namespace, resource, objects) in [
        ("/namespaces/shop/pods/*/load", Some("shop"), "pods", everything()),
        (
            "/namespaces/shop/deployments.apps/web/load",
            Some("shop"),
            "deployments.apps",
            named("web"),
        ),
        ("/namespaces/shop/metrics/load", None, "namespaces", named("shop")),
        ("/namespaces/*/metrics/load", None, "namespaces", everything()),
        ("/nodes/n1/load", None, "nodes", named("n1")),
        (
            "/nodes/*/load?labelSelector=a%3Db",
            None,
            "nodes",
            Objects::Selected("a=b".parse().unwrap()),
        ),
    ] {
        let (code, body) = ask(&provider, &format!("/v1beta2{path}")).await;
        assert_eq!(code, 200, "{path}: {body}");
        let expected = CustomRequest {
            namespace: namespace.map(str::to_owned),
            resource: GroupResource::read(resource),
            objects,
            metric: "load".to_owned(),
            metric_selector: Selector::everything(),
        };
        assert_eq!(provider.0.lock().take(), Some(expected), "{path}");
    }
}

#[tokio::test]
async fn each_version_has_its_form() {
    let provider = Arc::new(One::default());
    let path = "/namespaces/shop/pods/*/load?metricLabelSelector=code%3D200,verb+notin+(PUT)";
    let object = json!({"kind": "Thing", "apiVersion": "/v1", "namespace": "shop", "name": "web"});
    let selector = json!({"matchLabels": {"code": "200"},
        "matchExpressions": [{"key": "verb", "operator": "NotIn", "values": ["PUT"]}]});
    let (_, old) = ask(&provider, &format!("/v1beta1{path}")).await;
    assert_eq!(
        old["items"][0],
        json!({"describedObject": object, "metricName": "load", "timestamp": "1970-01-01T00:00:00Z",
            "window": 60, "value": "1500m", "selector": selector})
    );
    let (_, new) = ask(&provider, &format!("/v1beta2{path}")).await;
    assert_eq!(
        new["items"][0],
        json!({"describedObject": object, "metric": {"name": "load", "selector": selector},
            "timestamp": "1970-01-01T00:00:00Z", "windowSeconds": 60, "value": "1500m"})
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let provider = Arc::new(One::default());
    for (path, code, message) in [
        ("/v1beta3", 404, "the server could not find the requested resource"),
        ("/v1beta3/nodes/*/load", 404, "the server could not find the requested resource"),
        ("/v1beta2/nodes/n1/none", 404, "the server could not find the metric none for nodes n1"),
        ("/v1beta2/nodes/*/none", 404, "the server could not find the metric none for nodes"),
        ("/v1beta2/nodes/*/load?labelSelector=%3D", 400, "unable to parse labelSelector"),
    ] {
        let (found, body) = ask(&provider, path).await;
        let text = body["message"].as_str().unwrap_or_default();
        assert_eq!((found, text.starts_with(message)), (code, true), "{path}: {body}");
    }
    let (_, list) = ask(&provider, "/v1beta1").await;
    let names: Vec<&str> =
        list["resources"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nodes/load", "pods/load"]);
}
