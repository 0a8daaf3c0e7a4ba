//! Good and bad PodAutoscalers: what is refused, what is reported, what is documented.

use super::*;

#[tokio::test(start_paused = true)]
async fn bad_objects_are_refused_or_reported_and_hold_up_nobody() {
    let cluster = Cluster::with_definition().await;
    let client = cluster.client("tester");
    for (change, says) in [
        (
            json!({"minReplicas": 10}),
            "spec.minReplicas: Invalid value: must not be greater than maxReplicas",
        ),
        (json!({"maxReplicas": 0}), "spec.maxReplicas"),
        (json!({"combine": "Expression"}), "spec.expression"),
        (
            json!({"metrics": [{"type": "Pods"}]}),
            "spec.metrics[0].pods: Invalid value: must be set exactly if type is Pods",
        ),
        (
            json!({"metrics": [{"type": "Prometheus", "prometheus": {"query": "up", "target": {"type": "Value"}}}]}),
            "must set either value or averageValue",
        ),
        (
            json!({"syncPeriod": "10ms"}),
            "spec.syncPeriod: Invalid value: \"10ms\": must be at least 1s",
        ),
        (json!({"mode": "Off"}), "spec.mode: Unsupported value: \"Off\""),
        (
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}}),
            "must specify an API group, such as apps/v1",
        ),
    ] {
        let about = About { resource: RESOURCE, name: "" };
        let bad = pa("bad", change.clone());
        let refused: Result<Value, _> = call::send(&client, "POST", PAS, &bad, about).await;
        let error = refused.expect_err("refused").to_string();
        assert!(error.contains(says), "{change}: {error}");
    }
    let load = Arc::new(Load::default());
    *load.replicas.lock() = 3;
    let controller = cluster.control_by(&load);
    let schedule = json!({"name": "a", "start": "8 o'clock", "duration": "1h", "minReplicas": 5});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"});
    let bad = json!({"schedules": [schedule], "scaleTargetRef": target});
    let mut other = cluster.get("/apis/apps/v1/namespaces/default/deployments/web").await;
    other["metadata"] = json!({"name": "other"});
    cluster.send("POST", "/apis/apps/v1/namespaces/default/deployments", &other).await;
    cluster.send("POST", PAS, &pa("bad", bad)).await;
    cluster.send("POST", PAS, &pa("web", json!({}))).await;
    until("the good one is decided", async || cluster.replicas().await == 3).await;
    until("the bad one is reported", async || {
        let valid = cluster.condition("bad", "Valid").await;
        valid.is_some_and(|[status, reason, message]| {
            (&*status, &*reason) == ("False", "Invalid")
                && message.contains("spec.schedules[0].start")
        })
    })
    .await;
    let scale = "/apis/apps/v1/namespaces/default/deployments/other/scale";
    assert_eq!(cluster.get(scale).await["spec"]["replicas"], 1, "it is left alone");
    controller.stop().await;
    assert!(cluster.reasons().await.contains(&"InvalidSpec".to_owned()));
}

/// Every example of the documentation is taken by the API server and can be used.
#[tokio::test(start_paused = true)]
async fn examples_of_the_documentation_are_accepted() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/podautoscaler.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let cluster = Cluster::with_definition().await;
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut count = 0;
    for block in blocks {
        let object: Value = serde_saphyr::from_str(block).expect("YAML");
        let stored = cluster.send("POST", PAS, &object).await;
        assert_eq!(refusal(&stored), None, "{block}");
        // Nothing of it was pruned: all its fields are known.
        for (field, value) in object["spec"].as_object().expect("a spec") {
            let kept = cluster.pa(object["metadata"]["name"].as_str().expect("a name")).await;
            assert!(covers(&kept["spec"][field], value), "{field} of {block}");
        }
        count += 1;
    }
    assert!(count >= 5, "only {count} examples");
}

/// Why a stored object cannot be used, if so. Its event sources are not asked.
fn refusal(stored: &Value) -> Option<String> {
    let mut object = stored.clone();
    object["apiVersion"] = API_VERSION.into();
    object["kind"] = KIND.into();
    dialect::read::read(&object).err().map(|error| error.to_string())
}

/// Whether a stored value has everything that was given.
fn covers(stored: &Value, given: &Value) -> bool {
    match (stored, given) {
        (Value::Object(stored), Value::Object(given)) => given
            .iter()
            .all(|(name, value)| stored.get(name).is_some_and(|stored| covers(stored, value))),
        (Value::Array(stored), Value::Array(given)) => {
            stored.len() == given.len() && stored.iter().zip(given).all(|(s, g)| covers(s, g))
        }
        (stored, given) => stored == given,
    }
}

/// A thousand changes of a good object: each is refused with its field named, or stored; and what is
/// stored can be used, or says what is wrong with it.
#[tokio::test(start_paused = true)]
async fn changed_objects_are_refused_with_the_field_named_or_reported() {
    let cluster = Cluster::with_definition().await;
    let full = include_str!("../../../../../podscale-api/src/pod_autoscaler/tests/full.json");
    let full: Value = serde_json::from_str(full).expect("JSON");
    let good = |spec: &Value| {
        json!({"apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"generateName": "x-"}, "spec": spec})
    };
    let stored = cluster.send("POST", PAS, &good(&full)).await;
    assert_eq!(refusal(&stored), None);
    let mut pointers = Vec::new();
    pointers_of(&full, String::new(), &mut pointers);
    let odd = [
        json!(-1),
        json!(0),
        json!(i64::MAX),
        json!(1.5),
        json!(""),
        json!("x y"),
        json!("-3"),
        json!(true),
        json!([]),
        json!({}),
        json!("Nonsense"),
    ];
    let (client, about) = (cluster.client("tester"), About { resource: RESOURCE, name: "" });
    let (mut refused, mut reported, mut usable) = (0, 0, 0);
    for pointer in &pointers {
        for value in &odd {
            let mut spec = full.clone();
            *spec.pointer_mut(pointer).expect("it is there") = value.clone();
            let sent: Result<Value, _> =
                call::send(&client, "POST", PAS, &good(&spec), about).await;
            match sent {
                Err(error) => {
                    let error = error.to_string();
                    assert!(
                        error.contains("spec") || error.contains("json:"),
                        "{pointer} {value}: {error}"
                    );
                    refused += 1;
                }
                Ok(stored) => {
                    let invalid = refusal(&stored);
                    let is_named = |why: &String| why.starts_with("spec");
                    assert!(invalid.as_ref().is_none_or(is_named), "{invalid:?}");
                    *if invalid.is_none() { &mut usable } else { &mut reported } += 1;
                }
            }
        }
    }
    let all = refused + reported + usable;
    assert!(
        all >= 1000 && refused > 800,
        "{refused} refused, {reported} reported, {usable} usable"
    );
}

fn pointers_of(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(name, value)| pointers_of(value, format!("{pointer}/{name}"), found)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| pointers_of(value, format!("{pointer}/{index}"), found)),
        _ => {}
    }
    if !pointer.is_empty() {
        found.push(pointer);
    }
}
