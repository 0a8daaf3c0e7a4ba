//! What triggers refer to is read again from time to time.

use super::*;
use crate::triggers::Limits;
use axum::Router;
use axum::http::{StatusCode, Uri};
use parking_lot::Mutex;
use podscale_client::clock::Clock;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

const MINUTE: Duration = Duration::from_secs(60);

/// A Secret that is there, gone or cannot be asked for, by the code of the answer; and how often it was asked for.
struct Api {
    code: AtomicU16,
    asked: AtomicU32,
}

impl Api {
    fn answer(&self, path: &str) -> (StatusCode, String) {
        let variable = json!({"name": "PASSWORD",
            "valueFrom": {"secretKeyRef": {"name": "redis", "key": "password"}}});
        let containers = json!([{"name": "c", "env": [variable]}]);
        let body = match path {
            "/apis/apps" => json!({"versions": [{"version": "v1"}]}),
            "/apis/apps/v1" => json!({"resources":
                [{"name": "deployments", "kind": "Deployment", "namespaced": true}]}),
            "/apis/apps/v1/namespaces/shop/deployments/web" => {
                json!({"spec": {"template": {"spec": {"containers": containers}}}})
            }
            "/api/v1/namespaces/shop/secrets/redis" => {
                self.asked.fetch_add(1, Ordering::Relaxed);
                let code = StatusCode::from_u16(self.code.load(Ordering::Relaxed)).expect("a code");
                return (code, json!({"data": {"password": "aHVudGVyMg=="}}).to_string());
            }
            _ => return (StatusCode::NOT_FOUND, String::new()),
        };
        (StatusCode::OK, body.to_string())
    }
}

#[tokio::test(start_paused = true)]
async fn secrets_are_read_again_and_used_while_nobody_can_be_asked() {
    let api = Arc::new(Api { code: AtomicU16::new(200), asked: AtomicU32::new(0) });
    let served = Arc::clone(&api);
    let router = Router::new().fallback(move |uri: Uri| {
        let answer = served.answer(uri.path());
        async move { answer }
    });
    let client = Client::new(router, "default");
    let triggers = Arc::new(Triggers::new(&client, Clock::wall(), Limits::default()));
    let polling = Arc::clone(&triggers);
    let (inbox, applied) = (Arc::new(Inbox::default()), Arc::new(Mutex::new(Vec::new())));
    let (arriving, passed_on) = (Arc::clone(&inbox), Arc::clone(&applied));
    let running = tokio::spawn(async move {
        let mut apply = move |change: Change<Managed>| {
            if let Change::Applied(managed) = change {
                passed_on.lock().push(managed.model.invalid().map(|why| why.to_string()));
            }
        };
        // An annotation says otherwise.
        let is_managed =
            Arc::new(|object: &Managed| object.metadata().annotations.get("leave").is_none());
        Resolver::new(triggers, is_managed, Mode::Direct).run(&arriving, &mut apply).await;
    });
    let trigger = json!({"type": "redis", "metadata": {"address": "127.0.0.1:1",
        "listName": "jobs", "passwordFromEnv": "PASSWORD"}});
    let redis = object(json!({"spec": {"triggers": [trigger]}}));
    inbox.put(Change::Applied((*redis).clone()));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(*applied.lock(), [None::<String>], "it can be used");
    assert_eq!(api.asked.load(Ordering::Relaxed), 1);
    // Another version of the same spec, as every status makes one.
    inbox.put(Change::Applied((*redis).clone()));
    tokio::time::sleep(MINUTE).await;
    assert_eq!(applied.lock().len(), 2, "it is passed on");
    assert_eq!(api.asked.load(Ordering::Relaxed), 1, "and nothing is read for it");
    api.code.store(500, Ordering::Relaxed);
    tokio::time::sleep(MINUTE * 6).await;
    assert_eq!(api.asked.load(Ordering::Relaxed), 2, "it is read again");
    assert_eq!(applied.lock().len(), 2, "what was read before is used");
    api.code.store(404, Ordering::Relaxed);
    tokio::time::sleep(MINUTE * 6).await;
    let last = applied.lock().last().cloned().flatten().unwrap_or_default();
    assert!(last.ends_with("Secret \"redis\" of namespace \"shop\" does not exist"), "{last}");
    api.code.store(200, Ordering::Relaxed);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(applied.lock().last(), Some(&None), "soon after it is there again");
    let asked = api.asked.load(Ordering::Relaxed);
    tokio::time::sleep(MINUTE).await;
    assert_eq!(api.asked.load(Ordering::Relaxed), asked, "not every minute");
    polling.poll("shop/web/0").await.expect_err("nobody is there");
    tokio::time::sleep(MINUTE / 2).await;
    assert_eq!(api.asked.load(Ordering::Relaxed), asked + 1, "unless nobody answers");
    let asked = asked + 1;
    let left = object(json!({"metadata": {"annotations": {"leave": "alone"}},
        "spec": {"triggers": [trigger]}}));
    inbox.put(Change::Applied((*left).clone()));
    tokio::time::sleep(MINUTE * 6).await;
    assert_eq!(api.asked.load(Ordering::Relaxed), asked, "nothing is read for others");
    running.abort();
}
