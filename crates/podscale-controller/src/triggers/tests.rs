mod identity;
mod pod_autoscaler;
mod vault;

use super::*;
use axum::Router;
use axum::http::{StatusCode, Uri};
use futures::FutureExt;
use podscale_api::keda::ScaledObject;
use podscale_api::translate::scaled_object::TriggerMetric;
use serde_json::{Value, json};
use std::collections::HashMap;

/// What Secrets hold; no text may have it.
const PLANTED: &str = "hunter2";

/// An API server with these objects, by path; whatever else is asked for does not exist.
fn client(objects: &[(&'static str, Value)]) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (log, objects) =
        (Arc::clone(&asked), objects.iter().cloned().collect::<HashMap<&str, Value>>());
    let router = Router::new().fallback(move |uri: Uri| {
        log.lock().push(uri.path().to_owned());
        let answer = match objects.get(uri.path()) {
            Some(object) if object.is_u64() => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
            Some(object) => (StatusCode::OK, object.to_string()),
            None => (StatusCode::NOT_FOUND, String::new()),
        };
        async move { answer }
    });
    (Client::new(router, "default"), asked)
}

/// The base64 of [`PLANTED`].
const IN_BASE64: &str = "aHVudGVyMg==";

fn objects() -> Vec<(&'static str, Value)> {
    let from = |field: &str, name: &str, key: &str| json!({"valueFrom": {field: {"name": name, "key": key}}});
    let named = |name: &str, mut variable: Value| {
        variable["name"] = json!(name);
        variable
    };
    let mut container = json!({"name": "main", "env": [
        named("PLAIN", json!({"value": "list"})),
        named("BOTH", json!({"value": "my-$(PLAIN)"})),
        named("ROUND", json!({"value": "$(ROUND)"})),
        named("SECRET", from("secretKeyRef", "redis", "password")),
        named("NONE", json!({"valueFrom": {"secretKeyRef": {"name": "gone", "key": "k", "optional": true}}})),
        named("NODE", json!({"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})),
        named("SELF", json!({"value": "$(SELF)$(SELF)"})),
        named("EARLY", json!({"value": "$(LATE)"})),
        named("LATE", json!({"value": "late"})),
    ], "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "settings"}}]});
    // Each is twice the one before.
    for (name, first) in [("LONG", "x"), ("EMPTY", "")] {
        let doubled = (1..=40).map(|n| format!("$({name}{})", n - 1).repeat(2));
        let values = std::iter::once(first.to_owned()).chain(doubled).enumerate();
        let listed = values.map(|(n, value)| named(&format!("{name}{n}"), json!({"value": value})));
        container["env"].as_array_mut().expect("a list").extend(listed);
    }
    let containers =
        json!([container, {"name": "other", "env": [{"name": "PLAIN", "value": "theirs"}]}]);
    vec![
        (
            "/apis/apps",
            json!({"versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}}),
        ),
        (
            "/apis/apps/v1",
            json!({"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": true}]}),
        ),
        (
            "/apis/apps/v1/namespaces/shop/deployments/web",
            json!({"spec": {"template": {"spec": {"containers": containers}}}}),
        ),
        (
            "/api/v1/namespaces/shop/secrets/redis",
            json!({"data": {"password": IN_BASE64, "odd": "//8="}}),
        ),
        ("/api/v1/namespaces/shop/secrets/broken", json!(500)),
        ("/api/v1/namespaces/shop/configmaps/settings", json!({"data": {"list": "queue"}})),
        ("/api/v1/namespaces/podscale/secrets/shared", json!({"data": {"password": IN_BASE64}})),
        (
            "/api/v1/namespaces/shop/serviceaccounts/reader/token",
            json!({"status": {"token": PLANTED}}),
        ),
    ]
}

fn authentications(triggers: &Triggers) {
    let key = |parameter: &str, name: &str, key: &str| json!([{"parameter": parameter, "name": name, "key": key}]);
    for (name, spec) in [
        ("secret", json!({"secretTargetRef": key("password", "redis", "password")})),
        ("map", json!({"configMapTargetRef": key("listName", "settings", "list")})),
        ("variable", json!({"env": [{"parameter": "password", "name": "SECRET"}]})),
        (
            "elsewhere",
            json!({"env": [{"parameter": "password", "name": "PLAIN", "containerName": "other"}]}),
        ),
        ("no-variable", json!({"env": [{"parameter": "password", "name": "ABSENT"}]})),
        (
            "no-container",
            json!({"env": [{"parameter": "p", "name": "A", "containerName": "third"}]}),
        ),
        (
            "token",
            json!({"boundServiceAccountToken": [{"parameter": "password", "serviceAccountName": "reader"}]}),
        ),
        ("no-secret", json!({"secretTargetRef": key("password", "gone", "password")})),
        ("no-key", json!({"secretTargetRef": key("password", "redis", "pass")})),
        ("no-text", json!({"secretTargetRef": key("password", "redis", "odd")})),
        ("broken", json!({"secretTargetRef": key("password", "broken", "password")})),
        ("file", json!({"filePath": "redis.json"})),
        ("vault", json!({"azureKeyVault": {"vaultUri": "http://vault"}})),
        ("no-tls", json!({"secretTargetRef": key("tls", "redis", "password")})),
        ("no-identity", json!({"podIdentity": {"provider": "none"}})),
    ] {
        let object = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec});
        triggers.authentications.put(object, false);
    }
    let shared = json!({"secretTargetRef": key("password", "shared", "password")});
    for (name, spec) in [("shared", shared), ("file", json!({"filePath": "../redis.json"}))] {
        triggers.authentications.put(json!({"metadata": {"name": name}, "spec": spec}), true);
    }
}

fn object(trigger: &Value) -> ScaledObject {
    let object = json!({"metadata": {"name": "web", "namespace": "shop"},
        "spec": {"scaleTargetRef": {"name": "web"}, "triggers": [trigger]}});
    serde_json::from_value(object).expect("a ScaledObject")
}

/// A trigger of redis with this authentication and these fields besides its address and list.
fn redis(authentication: &str, fields: &[(&str, &str)]) -> Value {
    let mut trigger =
        json!({"type": "redis", "metadata": {"address": "127.0.0.1:1", "listLength": "5"}});
    for (name, value) in fields {
        trigger["metadata"][*name] = json!(value);
    }
    match authentication.split_once('/') {
        Some((kind, name)) => trigger["authenticationRef"] = json!({"kind": kind, "name": name}),
        None if authentication.is_empty() => {}
        None => trigger["authenticationRef"] = json!({"name": authentication}),
    }
    trigger
}

fn started(limits: Limits) -> (Triggers, Arc<Mutex<Vec<String>>>) {
    let (client, asked) = client(&objects());
    let triggers = Triggers::new(&client, Clock::wall(), limits);
    authentications(&triggers);
    (triggers, asked)
}

fn everywhere() -> Limits {
    Limits { own_namespace: "podscale".to_owned(), ..Limits::default() }
}

/// The names of the metrics, or what is wrong.
async fn outcome(triggers: &Triggers, trigger: &Value) -> String {
    let resolution = triggers.resolve(&Triggered::from(&object(trigger)), &Reads::default()).await;
    match &resolution.metrics {
        Err(problem) => {
            assert!(resolution.connections.is_empty(), "{problem}");
            let unsure = if resolution.is_unsure { "unsure: " } else { "" };
            format!("{unsure}{problem}")
        }
        Ok(metrics) => {
            let names = metrics.iter().map(|metric| match metric {
                TriggerMetric::External { name, .. } => name.to_string(),
                TriggerMetric::Resource { source, .. } => format!("{source:?}"),
            });
            names.collect::<Vec<_>>().join(",")
        }
    }
}

#[tokio::test]
async fn credentials_come_from_where_authentications_say() {
    let (triggers, _) = started(everywhere());
    let list = [("listName", "jobs")];
    let of_cluster = "ClusterTriggerAuthentication";
    for (trigger, expected) in [
        (redis("", &list), "s0-redis-jobs".to_owned()),
        (redis("secret", &list), "s0-redis-jobs".to_owned()),
        (redis("map", &[]), "error".to_owned()),
        (redis("variable", &list), "s0-redis-jobs".to_owned()),
        (redis("elsewhere", &list), "s0-redis-jobs".to_owned()),
        (redis("token", &list), "s0-redis-jobs".to_owned()),
        (redis("no-identity", &list), "s0-redis-jobs".to_owned()),
        (redis(&format!("{of_cluster}/shared"), &list), "s0-redis-jobs".to_owned()),
        (redis("", &[("listName", "l"), ("passwordFromEnv", "SECRET")]), "s0-redis-l".to_owned()),
        (redis("", &[("listName", "l"), ("passwordFromEnv", "NONE")]), "s0-redis-l".to_owned()),
        (redis("", &[("listName", "l"), ("passwordFromEnv", "NODE")]), "s0-redis-l".to_owned()),
        (redis("", &[("listName", "l"), ("passwordFromEnv", "ROUND")]), "s0-redis-l".to_owned()),
        (redis("", &[("listName", "l"), ("passwordFromEnv", "CM_list")]), "s0-redis-l".to_owned()),
    ] {
        let found = outcome(&triggers, &trigger).await;
        if expected == "error" {
            assert!(found.starts_with("error parsing redis metadata"), "{trigger}: {found}");
        } else {
            assert_eq!(found, expected, "{trigger}");
        }
    }
}

#[tokio::test]
async fn what_is_missing_is_named_and_no_value_is() {
    let (triggers, _) = started(everywhere());
    let of = |authentication: &str, problem: &str| {
        let (kind, name) =
            authentication.split_once('/').unwrap_or(("TriggerAuthentication", authentication));
        format!("error getting credentials of trigger 0 (redis): {kind} {name:?}{problem}")
    };
    let in_shop = "of namespace \"shop\"";
    for (authentication, problem) in [
        ("absent", " does not exist".to_owned()),
        ("no-secret", format!(": Secret \"gone\" {in_shop} does not exist")),
        (
            "no-key",
            format!(": \"redis\" {in_shop} has no key \"pass\", which is to give \"password\""),
        ),
        ("no-text", format!(": key \"odd\" of Secret \"redis\" {in_shop} is not a text")),
        ("no-variable", ": the container has no variable \"ABSENT\"".to_owned()),
        ("no-container", ": Deployment \"web\" has no container \"third\"".to_owned()),
        ("file", ": filePath is only for ClusterTriggerAuthentications".to_owned()),
        ("vault", ": azureKeyVault is not supported".to_owned()),
        (
            "ClusterTriggerAuthentication/file",
            ": filePath needs a controller that was started with --trigger-files".to_owned(),
        ),
    ] {
        let trigger = redis(authentication, &[("listName", "jobs")]);
        let found = outcome(&triggers, &trigger).await;
        assert_eq!(found, of(authentication, &problem));
        assert!(!found.contains(PLANTED) && !found.contains(IN_BASE64));
    }
    let broken = outcome(&triggers, &redis("broken", &[("listName", "jobs")])).await;
    assert!(
        broken.starts_with("unsure: error getting credentials of trigger 0 (redis)"),
        "{broken}"
    );
    assert!(broken.contains("Secret \"broken\" of namespace \"shop\" cannot be read"), "{broken}");
}

#[tokio::test]
async fn values_that_cannot_be_used_are_not_shown() {
    let (triggers, _) = started(everywhere());
    let trigger = json!({"type": "rabbitmq", "authenticationRef": {"name": "no-tls"},
        "metadata": {"host": "amqp://queue.test", "queueName": "q", "mode": "QueueLength", "value": "5"}});
    let found = outcome(&triggers, &trigger).await;
    assert!(found.contains("incorrect value for TLS given: ***"), "{found}");
}

#[tokio::test]
async fn variables_reach_those_before_them_within_bounds() {
    let (triggers, _) = started(everywhere());
    let (reads, object) = (Reads::default(), object(&redis("", &[])));
    let target = &object.spec.scale_target_ref;
    let environment = triggers.environment(&reads, "shop", target, "").await.expect("a container");
    for (variable, expected) in [
        ("BOTH", "my-list"),
        ("SELF", "$(SELF)$(SELF)"),
        ("EARLY", "$(LATE)"),
        ("LONG10", &"x".repeat(1024)),
        ("LONG20", "a variable is longer than 65536 bytes, with those that it refers to"),
        ("LONG40", "variables refer to each other more than 32 deep"),
        ("EMPTY30", ""),
    ] {
        let found = match triggers.variable(&reads, &environment, variable).await {
            Ok(value) => value.map(|value| value.expose().to_owned()).unwrap_or_default(),
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{variable}");
    }
}

#[tokio::test]
async fn limits_of_namespaces_and_folders_hold() {
    let elsewhere = BTreeSet::from(["elsewhere".to_owned()]);
    let folder = Some(PathBuf::from("/nowhere"));
    let limits = Limits { namespaces: elsewhere, files: folder, ..everywhere() };
    let (triggers, asked) = started(limits);
    let list = [("listName", "jobs")];
    for authentication in ["secret", "map", "variable", "token"] {
        let found = outcome(&triggers, &redis(authentication, &list)).await;
        let refused = "namespace \"shop\" is not one of the controller's --trigger-namespaces";
        assert!(found.contains(refused), "{authentication}: {found}");
    }
    let read =
        asked.lock().iter().any(|path| path.contains("secrets") || path.contains("configmaps"));
    assert!(!read, "nothing was asked for");
    let shared = redis("ClusterTriggerAuthentication/shared", &list);
    assert_eq!(outcome(&triggers, &shared).await, "s0-redis-jobs", "its own namespace is allowed");
    let outside = outcome(&triggers, &redis("ClusterTriggerAuthentication/file", &list)).await;
    assert!(
        outside.ends_with("filePath \"../redis.json\" is not a path below --trigger-files"),
        "{outside}"
    );
}

#[tokio::test]
async fn one_read_serves_all_who_need_it_and_only_what_is_named_is_read() {
    let (triggers, asked) = started(everywhere());
    let object = Triggered::from(&object(&redis("secret", &[("listName", "jobs")])));
    let reads = Reads::default();
    for _ in 0..3 {
        assert!(triggers.resolve(&object, &reads).await.metrics.is_ok());
    }
    assert_eq!(*asked.lock(), ["/api/v1/namespaces/shop/secrets/redis"]);
    asked.lock().clear();
    let plain = redis("", &[("listNameFromEnv", "BOTH")]);
    outcome(&triggers, &plain).await;
    assert!(!asked.lock().iter().any(|path| path.contains("secrets")), "{:?}", asked.lock());
}

#[tokio::test]
async fn what_polls_is_replaced_and_goes_with_its_object() {
    let (triggers, _) = started(everywhere());
    let mut object = object(&redis("", &[("listName", "jobs")]));
    let name = ObjectName::new(&object.metadata, OwnerKind::ScaledObject);
    let resolution = triggers.resolve(&Triggered::from(&object), &Reads::default()).await;
    triggers.connect(&name, resolution);
    assert_eq!(triggers.connected.len(), 1);
    triggers.note_pause(&name, true);
    let error = triggers.poll("shop/web/0").await.expect_err("nobody is there");
    assert!(error.contains("127.0.0.1:1"), "{error}");
    let outdated = triggers.take_outdated(OwnerKind::ScaledObject);
    assert_eq!(outdated.objects.len(), 0, "its credentials were not refused");
    assert_eq!(
        outdated.unanswered.iter().collect::<Vec<_>>(),
        [&name],
        "its address may be another"
    );
    object.spec.triggers = Vec::new();
    let resolution = triggers.resolve(&Triggered::from(&object), &Reads::default()).await;
    triggers.connect(&name, resolution);
    assert_eq!(triggers.connected.len(), 0);
    let error = triggers.poll("shop/web/0").await.expect_err("it is gone");
    assert_eq!(&*error, "the trigger is not connected");
    triggers.forget(&name);
}

#[tokio::test]
async fn keys_are_decrypted_one_after_the_other_and_hold_up_nobody_else() {
    let (triggers, _) = started(everywhere());
    let parsed = || {
        let fields = [("address", "127.0.0.1:1"), ("listName", "jobs")];
        let metadata = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let kind = "redis".to_owned();
        let spec = podscale_scalers::TriggerSpec { kind, metadata, ..Default::default() };
        podscale_scalers::parse(&spec).expect("a trigger")
    };
    let held = Arc::clone(&triggers.decrypting).try_acquire_owned().expect("nobody decrypts");
    assert!(triggers.scaler(parsed(), true).now_or_never().is_none(), "one after the other");
    assert!(triggers.scaler(parsed(), false).now_or_never().is_some(), "nobody else waits");
    drop(held);
    assert!(triggers.scaler(parsed(), true).await.is_ok());
    assert_eq!(triggers.decrypting.available_permits(), 1);
}
