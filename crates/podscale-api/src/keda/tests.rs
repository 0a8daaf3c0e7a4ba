use super::annotations::{Orders, Pause};
use super::scaled_object::ScaledObjectSpec;
use super::*;
use crate::crds::keda::definitions;
use crate::document::split;
use crate::labels::Labels;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

mod checks;

/// One object for each event source, and more for what objects can say besides.
const EXAMPLES: &str = include_str!("tests/examples.yaml");

fn examples() -> Vec<Value> {
    split(EXAMPLES).iter().map(|document| document.read().expect("YAML").value).collect()
}

/// An object from its JSON; what comes back must say the same, but for what is filled in.
fn read<T: DeserializeOwned + Serialize>(example: &Value) -> T {
    let object: T = serde_json::from_value(example.clone()).expect("an object");
    let back = serde_json::to_value(&object).expect("JSON");
    assert_contains("", &back, example);
    object
}

#[track_caller]
fn assert_contains(path: &str, whole: &Value, part: &Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (name, value) in part {
                let found = whole.get(name).unwrap_or_else(|| panic!("{path}.{name} is lost"));
                assert_contains(&format!("{path}.{name}"), found, value);
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len(), "{path}");
            for (place, (whole, part)) in whole.iter().zip(part).enumerate() {
                assert_contains(&format!("{path}[{place}]"), whole, part);
            }
        }
        _ => assert_eq!(whole, part, "{path}"),
    }
}

#[test]
fn every_example_is_read_written_and_valid() {
    let mut types = std::collections::BTreeSet::new();
    for example in examples() {
        let triggers = match example["kind"].as_str().expect("a kind") {
            scaled_object::KIND => {
                let object: ScaledObject = read(&example);
                let lean: scaled_object::Lean =
                    serde_json::from_value(example.clone()).expect("lean");
                assert_eq!((&lean.0.spec, &lean.0.status), (&object.spec, &object.status));
                assert_eq!(check::scaled_object(&object), Ok(()), "{}", object.metadata.name);
                object.spec.triggers
            }
            scaled_job::KIND => {
                let job: ScaledJob = read(&example);
                let lean: scaled_job::Lean = serde_json::from_value(example.clone()).expect("lean");
                assert_eq!(lean.0.spec, job.spec);
                assert_eq!(check::scaled_job(&job), Ok(()), "{}", job.metadata.name);
                job.spec.triggers
            }
            authentication::KIND | authentication::CLUSTER_KIND => {
                let found: TriggerAuthentication = read(&example);
                assert_eq!(check::authentication(&found.spec), Ok(()), "{}", found.metadata.name);
                Vec::new()
            }
            other => panic!("{other}"),
        };
        types.extend(triggers.into_iter().map(|trigger| trigger.r#type));
    }
    let expected = "activemq aws-sqs-queue cpu cron etcd external external-push kafka \
                    kubernetes-workload memory metrics-api mysql nats-jetstream postgresql \
                    prometheus rabbitmq redis redis-streams temporal";
    let found: Vec<&str> = types.iter().map(String::as_str).collect();
    assert_eq!(found.join(" "), expected);
}

/// Every field of an example is in the schema of its definition.
#[test]
fn every_example_fits_its_definition() {
    let definitions = definitions();
    for example in examples() {
        let definition = definitions
            .iter()
            .find(|definition| definition["spec"]["names"]["kind"] == example["kind"])
            .expect("a definition");
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        for part in ["spec", "status"] {
            fits(part, &schema["properties"][part], &example[part]);
        }
    }
}

#[track_caller]
fn fits(path: &str, schema: &Value, value: &Value) {
    let free = schema["x-kubernetes-preserve-unknown-fields"] == json!(true);
    match value {
        Value::Object(fields) if !free => {
            for name in schema["required"].as_array().into_iter().flatten() {
                assert!(fields.contains_key(name.as_str().expect("a name")), "{path}.{name}");
            }
            for (name, value) in fields {
                let named = &schema["properties"][name];
                let any = &schema["additionalProperties"];
                let inner = if named.is_null() { any } else { named };
                assert!(!inner.is_null(), "{path}.{name} is not in the schema");
                fits(&format!("{path}.{name}"), inner, value);
            }
        }
        Value::Array(items) => {
            items.iter().for_each(|item| fits(&format!("{path}[]"), &schema["items"], item));
        }
        Value::String(_) => assert_eq!(schema["type"], "string", "{path}"),
        Value::Bool(_) => assert_eq!(schema["type"], "boolean", "{path}"),
        Value::Number(_) => assert_eq!(schema["type"], "integer", "{path}"),
        Value::Object(_) | Value::Null => {}
    }
    if let Some(words) = schema["enum"].as_array() {
        assert!(words.contains(value), "{path}: {value}");
    }
}

#[test]
fn definitions_are_those_of_the_kinds() {
    let names: Vec<Value> = definitions().iter().map(|d| d["metadata"]["name"].clone()).collect();
    let expected = [
        scaled_object::RESOURCE,
        scaled_job::RESOURCE,
        authentication::RESOURCE,
        authentication::CLUSTER_RESOURCE,
    ];
    assert_eq!(names, expected);
    let columns = |place: usize| -> Vec<String> {
        let version = &definitions()[place]["spec"]["versions"][0];
        let columns = version["additionalPrinterColumns"].as_array().expect("columns").clone();
        columns.iter().map(|c| c["name"].as_str().expect("a name").to_owned()).collect()
    };
    let expected = "ScaleTargetKind ScaleTargetName Min Max Ready Active Fallback Paused Triggers \
                    Authentications Age";
    assert_eq!(columns(0).join(" "), expected);
    assert_eq!(columns(1).join(" "), "Min Max Ready Active Paused Triggers Authentications Age");
}

#[test]
fn what_is_not_said_has_a_default() {
    let spec =
        |value: Value| -> ScaledObjectSpec { serde_json::from_value(value).expect("a spec") };
    let queue = json!([{"type": "redis", "metadata": {}}]);
    let least = spec(json!({"scaleTargetRef": {"name": "web"}, "triggers": queue}));
    assert_eq!((least.min(), least.min_while_active(), least.max()), (0, 1, 100));
    assert_eq!((least.polling_interval_seconds(), least.cooldown_seconds()), (30, 300));
    assert_eq!((least.idle(), least.is_polled()), (Some(0), true));
    let target = &least.scale_target_ref;
    assert_eq!((target.api_version(), target.kind()), ("apps/v1", "Deployment"));
    let kept = spec(json!({"minReplicaCount": 2, "triggers": queue}));
    assert_eq!((kept.idle(), kept.is_polled()), (None, false));
    let idle = spec(json!({"minReplicaCount": 2, "idleReplicaCount": 0, "triggers": queue}));
    assert_eq!((idle.idle(), idle.is_polled()), (Some(0), true));
    // Pods that are not there cannot be measured, so nothing would wake them.
    let cpu = spec(json!({"triggers": [{"type": "cpu", "metadata": {"value": "50"}}]}));
    assert_eq!(cpu.idle(), None);

    let job = |value: Value| -> scaled_job::ScaledJobSpec {
        serde_json::from_value(value).expect("a spec")
    };
    for (min, max, expected) in [
        (json!(null), json!(null), (0, 100)),
        (json!(3), json!(null), (3, 100)),
        (json!(3), json!(10), (3, 7)),
        (json!(30), json!(10), (10, 10)),
    ] {
        let job = job(json!({"minReplicaCount": min, "maxReplicaCount": max}));
        assert_eq!((job.min(), job.max_beside_min()), expected, "{min} {max}");
    }
    assert!(
        job(json!({"rolloutStrategy": "gradual", "rollout": {"strategy": "immediate"}}))
            .leaves_older_jobs()
    );
    assert!(!job(json!({"rollout": {}})).leaves_older_jobs());
}

#[test]
fn annotations_order() {
    let orders = |pairs: &[(&str, &str)]| {
        let annotations: Labels = pairs.iter().copied().collect();
        Orders::read(&annotations)
    };
    let pause = |pairs: &[(&str, &str)]| orders(pairs).pause;
    assert_eq!(orders(&[]), Orders::default());
    for (text, expected) in
        [("true", Pause::AsItIs), ("maybe", Pause::AsItIs), ("", Pause::AsItIs), ("f", Pause::No)]
    {
        assert_eq!(pause(&[(annotations::PAUSED, text)]), expected, "{text}");
    }
    let at =
        |text: &str| pause(&[(annotations::PAUSED_REPLICAS, text), (annotations::PAUSED, "f")]);
    assert_eq!(at("4"), Pause::At(4));
    let unreadable = |words: &str| Pause::Unreadable(format!("strconv.ParseInt: parsing {words}"));
    assert_eq!(at("abc"), unreadable("\"abc\": invalid syntax"));
    assert_eq!(at("99999999999"), unreadable("\"99999999999\": value out of range"));
    let some = orders(&[
        (annotations::PAUSED_SCALE_IN, "true"),
        (annotations::FORCE_ACTIVATION, "1"),
        (annotations::HPA_EXCLUDED_LABELS, "a,b"),
        (annotations::TRANSFER_HPA_OWNERSHIP, "true"),
    ]);
    assert!(some.scale_in_paused && some.force_activation && some.is_any_paused());
    assert!(!some.scale_out_paused && some.transfer_hpa_ownership);
    assert_eq!(some.excluded_labels, ["a", "b"]);
}

#[test]
fn a_token_is_not_shown() {
    let vault = json!({"hashiCorpVault": {"address": "http://vault", "authentication": "token",
        "credential": {"token": "hunter2", "serviceAccount": "/file"}, "secrets": []}});
    let spec: AuthenticationSpec = serde_json::from_value(vault).expect("a spec");
    let shown = format!("{spec:?} {spec:#?}");
    assert!(!shown.contains("hunter2") && shown.contains("/file"), "{shown}");
}
