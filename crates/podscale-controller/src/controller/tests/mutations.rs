//! A thousand broken objects of each kind: what the API server lets in is decided or reported, each by itself.

mod kinds;
mod pod_autoscaler;

use super::*;
use crate::{dialect, odd_values};
use podscale_api::chpa::{API_VERSION, Chpa, KIND, StatusStored};
use podscale_api::crds::chpa::definition;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CHPAS: &str = "/apis/autoscalers.postmates.com/v1beta1/namespaces/default/chpas";

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from(mixed >> 33).expect("31 bits") % end.max(1)
    }
}

/// A CHPA with everything in it, of a target that is not there.
fn whole(name: &str) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name},
        "spec": {
            "downscaleForbiddenWindowSeconds": 10, "upscaleForbiddenWindowSeconds": 20,
            "scaleUpLimitFactor": 3.5, "scaleUpLimitMinimum": 5, "tolerance": 0.2,
            "minReplicas": 3, "maxReplicas": 9,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "targetAverageUtilization": 80}},
                {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
                {"type": "Pods", "pods": {"metricName": "hits", "targetAverageValue": "100"}},
                {"type": "Object", "object": {"metricName": "hits", "targetValue": "5k",
                    "target": {"kind": "Service", "name": "front"}}},
                {"type": "External", "external": {"metricName": "queue", "targetAverageValue": "30",
                    "metricSelector": {"matchLabels": {"queue": "orders"}}}}
            ]
        },
    })
}

fn odd(numbers: &mut Numbers) -> Value {
    odd_values::odd(|limit| numbers.below(limit))
}

/// Changes something at a random place: another value, nothing, or something more.
fn mutate(value: &mut Value, numbers: &mut Numbers) {
    let descends = numbers.below(5) > 0;
    match value {
        Value::Object(fields) if descends && !fields.is_empty() => {
            let place = numbers.below(fields.len());
            let key = fields.keys().nth(place).cloned().unwrap_or_default();
            match numbers.below(12) {
                0 => drop(fields.remove(&key)),
                1 => drop(fields.insert(format!("{key}x"), odd(numbers))),
                _ => mutate(&mut fields[&key], numbers),
            }
        }
        Value::Array(items) if descends && !items.is_empty() => {
            let place = numbers.below(items.len());
            match numbers.below(12) {
                0 => drop(items.remove(place)),
                1 => items.push(odd(numbers)),
                _ => mutate(&mut items[place], numbers),
            }
        }
        other => *other = odd(numbers),
    }
}

fn mutations() -> Vec<Value> {
    mutations_of(whole)
}

fn mutations_of(whole: fn(&str) -> Value) -> Vec<Value> {
    let mut numbers = Numbers(13);
    let mutation = |number| {
        let mut object = whole(&format!("m{number}"));
        for _ in 0..=numbers.below(3) {
            mutate(&mut object["spec"], &mut numbers);
        }
        object
    };
    (0..1000).map(mutation).collect()
}

/// Whether a message says which field is wrong; the original's texts call fields by their Go names.
fn names_a_field(message: &str) -> bool {
    let names = ["spec", "metric.", "configurable chpa doesn't support"];
    names.iter().any(|name| message.contains(name))
}

/// A definition need not have a schema.
#[test]
fn any_spec_can_be_read_and_is_written_back_as_it_came() {
    let (mut sound, mut wrong) = (0, 0);
    for object in mutations() {
        let chpa: Chpa = serde_json::from_value(object.clone()).expect("any spec can be read");
        let body = chpa.to_body(StatusStored::WithObject).expect("JSON");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["spec"], object["spec"]);
        let model = dialect::chpa::managed(chpa.clone()).model;
        match chpa.checked() {
            Ok(_) => {
                sound += 1;
                let bounds = model.bounds();
                assert!(bounds.min >= 1 && bounds.min <= bounds.max, "{object}");
            }
            Err(message) => {
                wrong += 1;
                assert_eq!(model.invalid().map(|why| &**why), Some(&*message));
                assert!(names_a_field(&message), "{message}: {object}");
            }
        }
    }
    assert!(sound > 100 && wrong > 300, "{sound} sound, {wrong} wrong");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_lets_in_is_decided_or_reported() {
    let cluster = Cluster::with(json!({})).await;
    cluster.send("DELETE", &format!("{HPA}/web"), &json!({})).await;
    cluster.send("POST", CRDS, &definition()).await;
    let about = About { resource: "", name: "" };
    let client = cluster.client("tester");
    until("CHPAs are served", async || call::get::<Value>(&client, CHPAS, about).await.is_ok())
        .await;
    let (mut stored, mut refused) = (0, 0);
    for object in mutations() {
        match call::send::<Value>(&client, "POST", CHPAS, &object, about).await {
            Ok(_) => stored += 1,
            Err(error) => {
                refused += 1;
                assert!(names_a_field(&error.to_string()), "{error}: {object}");
            }
        }
    }
    assert!(stored > 100 && refused > 200, "{stored} stored, {refused} refused");
    let controller = cluster.control(Config::default(), &Metrics::new(), Role::alone());
    cluster.send("POST", CHPAS, &whole("web")).await;
    until("the sound one is decided", async || cluster.replicas().await == 3).await;
    until("each of the others is decided or reported", async || {
        let all = cluster.get(CHPAS).await;
        let all = all["items"].as_array().cloned().unwrap_or_default();
        let reported = |object: &&Value| {
            let conditions = object["status"]["conditions"].as_array();
            let reason = conditions.and_then(|c| Some(c.first()?["reason"].as_str()?.to_owned()));
            let known = ["FailedSpecCheck", "FailedGetScale", TARGET_TAKEN];
            reason.is_some_and(|reason| known.contains(&reason.as_str()))
        };
        all.iter().filter(reported).count() == stored
    })
    .await;
    controller.stop().await;
}
