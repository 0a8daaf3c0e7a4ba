//! One object whose credentials cannot be read for long holds up no other.

use super::*;
use crate::triggers::Limits;
use axum::Router;
use axum::http::{StatusCode, Uri};
use parking_lot::Mutex;
use podscale_client::clock::Clock;

/// An object whose trigger has its password from a Secret of this name.
fn with_secret(name: &str, secret: &str) -> ScaledObject {
    let trigger = json!({"type": "redis", "metadata": {"address": "127.0.0.1:1",
        "listName": "jobs", "passwordFromEnv": secret}});
    let target = json!({"name": "web"});
    let object = object(json!({"metadata": {"name": name},
        "spec": {"scaleTargetRef": target, "triggers": [trigger]}}));
    (*object).clone()
}

/// What the API server has at a path. Each variable of the Deployment is from the Secret of its name.
fn body(path: &str) -> Option<Value> {
    let variable = |name: &str| json!({"name": name, "valueFrom": {"secretKeyRef": {"name": name, "key": "password"}}});
    let variables = ["quick", "slow"].map(variable);
    Some(match path {
        "/apis/apps" => json!({"versions": [{"version": "v1"}]}),
        "/apis/apps/v1" => json!({"resources":
            [{"name": "deployments", "kind": "Deployment", "namespaced": true}]}),
        "/apis/apps/v1/namespaces/shop/deployments/web" => {
            let containers = json!([{"name": "c", "env": variables}]);
            json!({"spec": {"template": {"spec": {"containers": containers}}}})
        }
        "/api/v1/namespaces/shop/secrets/quick" => json!({"data": {"password": "aHVudGVyMg=="}}),
        _ => return None,
    })
}

/// What has been passed on, in its order: lists by their names, and whether an object can be used.
type PassedOn = Arc<Mutex<Vec<String>>>;

/// How long it is waited for authentications, of which there are none.
const FIRST: Duration = Duration::from_secs(11);

/// A resolver whose API server never answers for the Secret `slow`.
async fn start(inbox: &Arc<Inbox<ScaledObject>>) -> (PassedOn, tokio::task::JoinHandle<()>) {
    let router = Router::new().fallback(async |uri: Uri| {
        if uri.path().ends_with("/secrets/slow") {
            std::future::pending::<()>().await;
        }
        match body(uri.path()) {
            Some(body) => (StatusCode::OK, body.to_string()),
            None => (StatusCode::NOT_FOUND, String::new()),
        }
    });
    let client = Client::new(router, "default");
    let triggers = Arc::new(Triggers::new(&client, Clock::wall(), Limits::default()));
    let (arriving, passed_on) = (Arc::clone(inbox), PassedOn::default());
    let log = Arc::clone(&passed_on);
    let running = tokio::spawn(async move {
        let word = |managed: &Managed| match managed.model.invalid() {
            None => managed.key.name.to_string(),
            Some(_) => format!("{}!", managed.key.name),
        };
        let mut apply = move |change: Change<Managed>| {
            log.lock().push(match change {
                Change::All(all) => {
                    let mut names: Vec<String> = all.iter().map(word).collect();
                    names.sort();
                    format!("all: {}", names.join(" "))
                }
                Change::Applied(managed) => word(&managed),
                Change::Deleted(managed) => format!("gone: {}", managed.key.name),
            });
        };
        let is_managed = Arc::new(|_: &Managed| true);
        Resolver::new(triggers, is_managed, Mode::Direct).run(&arriving, &mut apply).await;
    });
    tokio::time::sleep(FIRST).await;
    (passed_on, running)
}

#[tokio::test(start_paused = true)]
async fn one_that_is_slow_holds_up_neither_a_list_nor_what_comes_after_it() {
    let inbox = Arc::new(Inbox::default());
    let (passed_on, running) = start(&inbox).await;
    inbox.put(Change::All(vec![with_secret("a", "quick"), with_secret("b", "slow")]));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(*passed_on.lock(), ["all: a"], "the list does not wait for ever");
    inbox.put(Change::Applied(with_secret("c", "quick")));
    inbox.put(Change::Applied(with_secret("a", "slow")));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(*passed_on.lock(), ["all: a", "c"], "what it meant before stands for the other");
    // Whoever mends it does not wait for what was asked before.
    inbox.put(Change::Applied(with_secret("a", "quick")));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(passed_on.lock().last().map(String::as_str), Some("a"));
    inbox.put(Change::Deleted(with_secret("c", "quick")));
    tokio::time::sleep(Duration::from_secs(20)).await;
    let last: Vec<String> = passed_on.lock().iter().skip(3).cloned().collect();
    assert_eq!(last, ["gone: c", "b!"], "in the end it says that it cannot be read");
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn however_many_are_slow_others_are_looked_up() {
    let inbox = Arc::new(Inbox::default());
    let (passed_on, running) = start(&inbox).await;
    let mut all: Vec<ScaledObject> =
        (0..500).map(|number| with_secret(&format!("slow-{number}"), "slow")).collect();
    all.push(with_secret("z", "quick"));
    inbox.put(Change::All(all));
    // Less than the deadline of any of them.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let found = passed_on.lock().clone();
    assert!(found.iter().any(|passed| passed == "z" || passed == "all: z"), "{found:?}");
    assert!(!found.iter().any(|passed| passed.starts_with("slow")), "{found:?}");
    running.abort();
}
