use super::super::target::TargetReader;
use super::*;
use crate::dialect::{NewStatus, hpa};
use crate::readiness::Readiness;
use axum::body::Bytes;
use axum::http::{Method, StatusCode, Uri};
use axum::{Json, Router};
use parking_lot::Mutex;
use podscale_api::hpa::v2::HorizontalPodAutoscaler;
use podscale_client::discovery::RestMapper;
use podscale_core::model::TargetRef;
use podscale_core::snapshot::ScaleError;
use serde_json::{Value, json};

/// An actor whose API server answers writes with these codes, in order, and knows deployments.
fn actor(codes: Vec<u16>) -> (Actor, TargetReader, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let (asked, codes) = (Arc::clone(&log), Arc::new(Mutex::new(codes.into_iter())));
    let router = Router::new().fallback(move |method: Method, uri: Uri, body: Bytes| {
        let path = uri.path().to_owned();
        let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
        let answer = match (method.as_str(), path.as_str()) {
            ("GET", "/apis/apps") => (
                200,
                json!({"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}),
            ),
            ("GET", "/apis/apps/v1") => {
                let kind = json!({"name": "deployments", "kind": "Deployment", "namespaced": true});
                (200, json!({ "resources": [kind] }))
            }
            ("GET", _) if path.ends_with("/web/scale") => {
                asked.lock().push("read".to_owned());
                let version = asked.lock().len().to_string();
                let meta = json!({"name": "web", "namespace": "shop", "resourceVersion": version});
                let status = json!({"replicas": 2, "selector": "app=web"});
                (
                    200,
                    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta,
                    "spec": {"replicas": 2}, "status": status}),
                )
            }
            ("PUT", _) => {
                let replicas = sent.pointer("/spec/replicas").cloned().unwrap_or_default();
                let version = sent.pointer("/metadata/resourceVersion").cloned();
                let version = version.unwrap_or_default();
                asked.lock().push(format!("write {replicas} on {version}"));
                let code = codes.lock().next().unwrap_or(200);
                let status = json!({"kind": "Status", "message": "no luck", "reason": "Conflict"});
                (code, if code == 200 { sent } else { status })
            }
            _ => (404, json!({"kind": "Status", "message": "not there", "reason": "NotFound"})),
        };
        let code = StatusCode::from_u16(answer.0).expect("a code");
        async move { (code, Json(answer.1)) }
    });
    let (client, clock) = (Client::new(router, "default"), Clock::wall());
    let (recorder, _) = podscale_client::events::channel(COMPONENT);
    let mapper = RestMapper::new(client.clone(), clock);
    let targets =
        Arc::new(Targets::new(client.clone(), crate::metrics::Metrics::new(), Readiness::new()));
    let reader = TargetReader::new(client.clone(), mapper, Arc::clone(&targets));
    (Actor::new(client, clock, targets, recorder), reader, log)
}

fn target(kind: &str, name: &str, api_version: &str) -> TargetRef {
    TargetRef { kind: kind.into(), name: name.into(), api_version: api_version.into() }
}

#[tokio::test(start_paused = true)]
async fn resizes_again_after_conflicts_with_what_is_stored_now() {
    let refused = "read; write 5 on \"1\"; read; write 5 on \"3\"; read; write 5 on \"5\"; read; \
                   write 5 on \"7\"; read; write 5 on \"9\"";
    let cases: [(Vec<u16>, Option<&str>, &str); 4] = [
        (vec![], None, "read; write 5 on \"1\""),
        (
            vec![409, 409],
            None,
            "read; write 5 on \"1\"; read; write 5 on \"3\"; read; write 5 on \"5\"",
        ),
        (vec![409; 9], Some("no luck"), refused),
        (vec![500], Some("no luck"), "read; write 5 on \"1\""),
    ];
    for (codes, error, calls) in cases {
        let (actor, reader, log) = actor(codes);
        let target = target("Deployment", "web", "apps/v1");
        let found = reader.read("shop", &target, Freshness::Current).await.expect("a scale");
        let (write, _) = actor.resize(&found, 5).await.expect("it was read just now");
        let expected = match error {
            Some(error) => ScaleWrite::Failed(error.into()),
            None => ScaleWrite::Written,
        };
        assert_eq!(write, expected);
        assert_eq!(log.lock().join("; "), calls);
    }
}

#[tokio::test]
async fn says_why_a_scale_cannot_be_read() {
    let (_, reader, _) = actor(vec![]);
    let cases = [
        (
            target("Deployment", "web", "a/b/c"),
            ScaleError::ApiVersion("unexpected GroupVersion string: a/b/c".into()),
        ),
        (
            target("Fleet", "web", "example.org/v1"),
            ScaleError::NoResource("no matches for kind \"Fleet\" in group \"example.org\"".into()),
        ),
        (target("Deployment", "gone", "apps/v1"), ScaleError::Unreadable("not there".into())),
    ];
    for (target, expected) in cases {
        assert_eq!(reader.read("shop", &target, Freshness::Watched).await.err(), Some(expected));
    }
}

#[tokio::test]
async fn a_status_is_written_with_the_version_that_was_decided_on() {
    let (actor, _, log) = actor(vec![200, 409]);
    let mut hpa = HorizontalPodAutoscaler::default();
    hpa.metadata.resource_version = "41".to_owned();
    let object = hpa::managed(hpa);
    let new = || {
        let status =
            NewStatus::Conflict { reason: "Why", message: "why", replicas: None, now: Time(0) };
        object.wire.with_status(status)
    };
    let stored = actor.store_status(&object, new()).await.expect("written");
    assert_eq!(stored.metadata().resource_version, "41");
    assert_eq!(stored.wire.status().conditions.len(), 1);
    assert!(actor.store_status(&object, new()).await.is_err_and(|error| error.is_conflict()));
    assert_eq!(log.lock().join("; "), "write null on \"41\"; write null on \"41\"");
}
