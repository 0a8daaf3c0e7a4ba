//! A thousand broken PodAutoscalers that an API server has let in, beside sound ones.

use super::*;
use crate::controller::observer::{Decided, Observer};
use parking_lot::Mutex;
use podscale_api::pod_autoscaler::{self, crd};
use std::collections::HashMap;

const PAS: &str = "/apis/podscale.dev/v1alpha1/namespaces/default/podautoscalers";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
/// How many broken ones there are, and how many sound ones.
const BROKEN: usize = 1000;
const SOUND: usize = 10;

/// A PodAutoscaler with much in it that no schema can check, of a target that is not there.
fn whole_pa(name: &str) -> Value {
    let external = |metric: &str, name: &str| {
        json!({"type": "External", "name": name, "maxAge": "5m", "onMissing": "LastValue",
            "external": {"metric": {"name": metric, "selector": {"matchLabels": {"queue": "orders"}}},
                "target": {"type": "AverageValue", "averageValue": "30"}}})
    };
    json!({
        "apiVersion": pod_autoscaler::API_VERSION, "kind": pod_autoscaler::KIND,
        "metadata": {"name": name},
        "spec": {
            "minReplicas": 3, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": [external("queue", "load"), external("queue", "other")],
            "combine": "Expression", "expression": "load + other.value / 10",
            "schedules": [
                {"name": "day", "start": "0 8 * * MON-FRI", "end": "0 18 * * MON-FRI",
                    "timeZone": "Europe/Berlin", "minReplicas": 4},
                {"name": "night", "start": "0 22 * * *", "duration": "6h", "ramp": "30m",
                    "timeZone": "America/New_York", "maxReplicas": 5}
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
            "syncPeriod": "15s", "warmUp": "30s", "fallback": {"replicas": 4, "after": "3m"},
        },
    })
}

/// Counts the passes over each object.
#[derive(Default)]
struct Passes(Mutex<HashMap<String, usize>>);

impl Observer for Passes {
    fn decided(&self, decided: &Decided<'_>) {
        *self.0.lock().entry(decided.key().name.to_string()).or_default() += 1;
    }
}

/// Sends mutations until so many are stored.
async fn store_broken(cluster: &Cluster) {
    let about = About { resource: "", name: "" };
    let (client, mut numbers, mut stored) = (cluster.client("tester"), Numbers(13), 0);
    for number in 0..20 * BROKEN {
        let mut object = whole_pa(&format!("m{number}"));
        for _ in 0..=numbers.below(3) {
            mutate(&mut object["spec"], &mut numbers);
        }
        stored +=
            usize::from(call::send::<Value>(&client, "POST", PAS, &object, about).await.is_ok());
        if stored == BROKEN {
            return;
        }
    }
    panic!("only {stored} were stored");
}

/// What a condition of an object says: its status, its reason and its message.
fn condition(object: &Value, name: &str) -> [String; 3] {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = conditions.into_iter().find(|condition| condition["type"] == name);
    ["status", "reason", "message"]
        .map(|field| found.and_then(|found| found[field].as_str()).unwrap_or_default().to_owned())
}

/// Whether the controller has reported what is wrong with an object: the field of the spec, that its
/// target is not there, or that another object has it.
fn is_reported(object: &Value) -> bool {
    let wire = serde_json::from_value(object.clone()).expect("what is stored can be read");
    let [valid, _, message] = condition(object, "Valid");
    let shown = object["status"]["reason"].as_str().unwrap_or_default();
    match dialect::pod_autoscaler::managed(wire).model.invalid() {
        Some(why) => {
            assert!(why.starts_with("spec"), "{why} names no field");
            (&*valid, &*message, shown) == ("False", &**why, "InvalidSpec")
        }
        None => ["FailedGetScale", TARGET_TAKEN].contains(&shown),
    }
}

#[tokio::test(start_paused = true)]
async fn broken_pod_autoscalers_are_reported_and_hold_up_no_others() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    cluster.send("POST", CRDS, &crd::definition()).await;
    store_broken(&cluster).await;
    let passes = Arc::new(Passes::default());
    let observers: Vec<Arc<dyn Observer>> = vec![Arc::clone(&passes) as Arc<dyn Observer>];
    let watchers = Watchers { observers, ..Watchers::default() };
    let (client, dialects) = (cluster.client("podscale/0"), dialect::built_in());
    let config = Config::default();
    let controller =
        Controller::start(&client, cluster.clock, config, dialects, watchers, Role::alone());
    let mut deployment = cluster.get(&format!("{DEPLOYMENTS}/web")).await;
    let sound = |number: usize| format!("sound-{number}");
    for number in 0..SOUND {
        deployment["metadata"] = json!({"name": sound(number)});
        cluster.send("POST", DEPLOYMENTS, &deployment).await;
        cluster.send("POST", PAS, &whole_pa(&sound(number))).await;
    }
    until("the sound ones are decided", async || {
        let all = cluster.get(DEPLOYMENTS).await;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|one| one["spec"]["replicas"].as_i64() >= Some(3)).count() == SOUND
    })
    .await;
    let reported = async || {
        let all = cluster.get(PAS).await;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|object| is_reported(object)).count()
    };
    until("each broken one is reported", async || reported().await == BROKEN).await;
    // Each has its moment in every period of fifteen seconds, whatever the others are.
    passes.0.lock().clear();
    tokio::time::sleep(Duration::from_secs(150)).await;
    for number in 0..SOUND {
        let count = passes.0.lock().get(&sound(number)).copied().unwrap_or_default();
        assert!((9..=12).contains(&count), "{count} passes over {}", sound(number));
    }
    controller.stop().await;
}
