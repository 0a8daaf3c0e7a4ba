//! What the admission webhook does on a real cluster, the embedded API server does by itself for PodAutoscalers.

use podscale_api::admission::{POD_AUTOSCALERS, WEBHOOK, find};
use podscale_apiserver::admission::{Admission, Candidate};
use std::sync::Arc;

/// Refuses PodAutoscalers whose spec makes no sense. CHPAs are taken in as their own controller's users know it: an
/// incorrect one is reported in a condition.
pub(super) fn admission() -> Admission {
    let judge = |candidate: &Candidate<'_>| {
        let kind = find(candidate.group, candidate.kind)?;
        if kind.kind != POD_AUTOSCALERS.kind {
            return None;
        }
        let causes = kind.judge(candidate.object, candidate.old).causes;
        (!causes.is_empty()).then(|| kind.refusal(candidate.name, &causes))
    };
    Admission { webhook: WEBHOOK, judge: Arc::new(judge) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::http::{Request, StatusCode};
    use http_body_util::BodyExt;
    use podscale_api::crds;
    use podscale_apiserver::{ApiServer, Config};
    use serde_json::{Value, json};
    use tower::ServiceExt;

    async fn send(router: &Router, verb: &str, path: &str, object: &Value) -> (StatusCode, Value) {
        let form =
            if verb == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(verb).uri(path).header("content-type", form);
        let request = request.body(Body::from(object.to_string())).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("an answer");
        let code = answer.status();
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    #[tokio::test]
    async fn expressions_are_checked_when_objects_are_written() {
        let server = ApiServer::new(Config { admission: Some(admission()), ..Config::default() });
        let router = server.router();
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for definition in crds::all() {
            let (code, body) = send(&router, "POST", definitions, &definition).await;
            assert_eq!(code, StatusCode::CREATED, "{body}");
        }
        let path = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers";
        let object = |expression: &str| {
            let cpu = json!({"type": "Resource", "name": "cpu", "resource": {"name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 50}}});
            json!({"apiVersion": "podscale.dev/v1alpha1", "kind": "PodAutoscaler",
                "metadata": {"name": "web"}, "spec": {"maxReplicas": 5, "combine": "Expression",
                    "expression": expression, "metrics": [cpu],
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
        };
        let (code, body) = send(&router, "POST", path, &object("cpu > 3")).await;
        assert_eq!((code, &body["reason"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("Invalid")));
        let expected = "admission webhook \"validate.podscale.dev\" denied the request: \
            PodAutoscaler.podscale.dev \"web\" is invalid: spec.expression: Invalid value: \"cpu > 3\": \
            line 1, column 1: the expression must be a number, not a bool";
        assert_eq!(body["message"], expected);
        assert_eq!(body["details"]["causes"][0]["field"], "spec.expression");
        let (code, body) = send(&router, "POST", path, &object("cpu + 1")).await;
        assert_eq!(code, StatusCode::CREATED, "{body}");
        let one = format!("{path}/web");
        let change = |text: &str| json!({"spec": {"expression": text}});
        let (code, _) = send(&router, "PATCH", &one, &change("cpu + queue")).await;
        assert_eq!(code, StatusCode::UNPROCESSABLE_ENTITY);
        let (code, _) = send(&router, "PATCH", &one, &change("cpu + 2")).await;
        assert_eq!(code, StatusCode::OK);
    }
}
