//! Offline is refused what the API server refuses, in the same words, and nothing else.

use super::mutations::{MUTATIONS, Random, chpa, everything, pod_autoscaler, values};
use super::words::{self, Said};
use super::*;
use crate::odd_values::odd;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, header};
use http_body_util::BodyExt;
use podscale_api::hpa::convert::Version;
use podscale_api::{crds, pod_autoscaler as pa};
use podscale_apiserver::{ApiServer, Config};
use std::collections::BTreeSet;
use tower::ServiceExt;

/// Sends an object as kubectl does, and gives the code and the body of the answer.
async fn post(server: &Router, path: &str, object: &Value) -> (u16, Value) {
    let request = Request::post(format!("{path}?fieldValidation=Strict&fieldManager=test"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(object.to_string()))
        .expect("a request");
    let answer = server.clone().oneshot(request).await.expect("an answer");
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.expect("a body").to_bytes();
    (code, serde_json::from_slice(&body).expect("JSON"))
}

/// Puts something odd at one or two places, or takes something away.
fn mutated(base: &Value, random: &mut Random) -> Value {
    let mut object = base.clone();
    for _ in 0..=random.below(2) {
        let mut found = Vec::new();
        values(&object, "", "", &mut found);
        found.retain(|(path, _)| path.starts_with("spec") || path.starts_with("metadata.l"));
        let (_, pointer) = &found[random.below(found.len())];
        let (parent, name) = pointer.rsplit_once('/').expect("not the whole");
        match (random.below(4), object.pointer_mut(parent)) {
            (0, Some(Value::Object(fields))) => drop(fields.remove(name)),
            (1, Some(Value::Object(fields))) => {
                fields.insert(format!("{name}x"), odd(|limit| random.below(limit)));
            }
            _ => {
                let value = odd(|limit| random.below(limit));
                *object.pointer_mut(pointer).expect("a place") = value;
            }
        }
    }
    object
}

/// What the server found wrong, where it says that field by field.
fn causes(answer: &Value) -> BTreeSet<String> {
    let causes = answer["details"]["causes"].as_array().into_iter().flatten();
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let said =
        causes.map(|cause| Said { field: text(cause, "field"), problem: text(cause, "message") });
    let said = words::plain(said.collect()).into_iter();
    said.map(|said| format!("{}: {}", said.field, said.problem)).collect()
}

#[tokio::test]
async fn offline_says_what_the_server_says() {
    let config = Config { removed_autoscaling_versions: true, ..Config::default() };
    let server = ApiServer::new(config).router();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in [crds::chpa::definition(), pa::crd::definition()] {
        let (code, answer) = post(&server, definitions, &definition).await;
        assert_eq!(code, 201, "{answer}");
    }
    // No server has v2alpha1.
    let versions = [Version::V1, Version::V2beta1, Version::V2beta2, Version::V2];
    let hpas = versions.map(|version| (everything(version), "horizontalpodautoscalers"));
    let customs = [(pod_autoscaler(), "podautoscalers"), (chpa(), "chpas")];
    for (base, plural) in hpas.into_iter().chain(customs) {
        let version = base["apiVersion"].as_str().expect("a version").to_owned();
        let path = format!("/apis/{version}/namespaces/default/{plural}");
        let (mut random, mut stored, mut refused) = (Random(3), 0, 0);
        for number in 0..MUTATIONS {
            let mut object = mutated(&base, &mut random);
            // The versions of one kind share their names.
            object["metadata"]["name"] = format!("m{number}-{}", version.replace('/', "-")).into();
            let (code, answer) = post(&server, &path, &object).await;
            let found = report(&[("f", &object.to_string())], &[]);
            let said: BTreeSet<String> = found
                .findings
                .iter()
                .filter(|finding| finding.rule == "refused")
                .map(|finding| format!("{}: {}", finding.field, finding.problem))
                .collect();
            let shown = || format!("{version}: {object}\n{code} {}\n{said:#?}", answer["message"]);
            match code {
                201 => stored += 1,
                422 => assert_eq!(said, causes(&answer), "{}", shown()),
                _ => {}
            }
            refused += u32::from(code != 201);
            assert_eq!(said.is_empty(), code == 201, "{}", shown());
        }
        assert!(stored > 10 && refused > 300, "{version}: {stored} stored, {refused} refused");
    }
}
