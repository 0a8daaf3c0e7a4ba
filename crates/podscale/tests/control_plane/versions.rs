//! Autoscalers of all versions that a real API server has, beside the embedded one: written in one version and
//! read in the other, or refused with the same words.

#[path = "versions/generate.rs"]
mod generate;

use super::fixture::{Fixture, Workspace};
use super::harness::Harness;
use anyhow::{Result, ensure};
use generate::{autoscaler, spoil, status};
use kube::Client;
use kube::api::{DynamicObject, PostParams};
use libtest_mimic::Trial;
use podscale_api::field_error::invalid_message;
use podscale_api::hpa::manifest;
use podscale_api::hpa::validate::QUALIFIED_KIND;
use podscale_apiserver::{ApiServer, Config};
use serde_json::{Value, json};

/// How many objects are compared.
const OBJECTS: u64 = 400;
const KIND: &str = "HorizontalPodAutoscaler";
const VERSIONS: [&str; 2] = ["autoscaling/v1", "autoscaling/v2"];

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.apart("versions::beside_upstream", beside_upstream)]
}

/// What a server made of an object: every version of it, or why it was refused.
#[derive(Debug, PartialEq)]
enum Outcome {
    Stored(Vec<Value>),
    Refused(u16, String),
}

async fn beside_upstream(fixture: Fixture) -> Result<()> {
    let embedded = ApiServer::new(Config::default());
    let ours =
        Workspace::open(Client::new(embedded.router(), "default"), &fixture.namespace).await?;
    let (mut stored, mut refused) = (0, 0);
    let mut differences = Vec::new();
    for seed in 0..OBJECTS {
        let mut object = autoscaler(seed);
        if seed % 2 == 1 {
            spoil(seed, &mut object);
        }
        let expected = outcome(&fixture, &object, seed).await?;
        let got = outcome(&ours, &object, seed).await?;
        match &expected {
            Outcome::Stored(_) => stored += 1,
            Outcome::Refused(..) => refused += 1,
        }
        if got != expected {
            differences
                .push(format!("{seed}: {object}\n  upstream {expected:?}\n  embedded {got:?}"));
        }
        // The check of files says the same.
        if let Outcome::Refused(422, expected) = &expected {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            let errors = manifest::check(&object)?;
            let message = invalid_message(QUALIFIED_KIND, name, &errors);
            if message != *expected {
                differences
                    .push(format!("{seed}: {object}\n  upstream {expected}\n  file {message}"));
            }
        }
    }
    ensure!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
    ensure!(stored > 100 && refused > 100, "{stored} stored, {refused} refused");
    Ok(())
}

/// Creates an object, gives some of them a status, and reads all versions.
async fn outcome(workspace: &Workspace, object: &Value, seed: u64) -> Result<Outcome> {
    let version = object["apiVersion"].as_str().unwrap_or_default();
    let api = workspace.api(version, KIND);
    let typed: DynamicObject = serde_json::from_value(object.clone())?;
    let mut created = match api.create(&PostParams::default(), &typed).await {
        Ok(created) => created,
        Err(kube::Error::Api(refusal)) => {
            return Ok(Outcome::Refused(refusal.code, refusal.message.clone()));
        }
        Err(error) => return Err(error.into()),
    };
    let name = created.metadata.name.clone().unwrap_or_default();
    if seed.is_multiple_of(3) && version == VERSIONS[1] {
        created.data["status"] = status(seed);
        created.metadata.managed_fields = None;
        api.replace_status(&name, &PostParams::default(), &created).await?;
    }
    let mut views = Vec::new();
    for version in VERSIONS {
        let mut view = serde_json::to_value(workspace.api(version, KIND).get(&name).await?)?;
        if let Some(metadata) = view["metadata"].as_object_mut() {
            for field in ["creationTimestamp", "managedFields", "resourceVersion", "uid"] {
                metadata.remove(field);
            }
        }
        open_annotations(&mut view);
        views.push(view);
    }
    Ok(Outcome::Stored(views))
}

/// What annotations hold is compared by what it says.
fn open_annotations(object: &mut Value) {
    if let Some(Value::Object(annotations)) = object.pointer_mut("/metadata/annotations") {
        for text in annotations.values_mut() {
            if let Some(inner) = text.as_str().and_then(|text| serde_json::from_str(text).ok()) {
                *text = json!({"json": Value::clone(&inner)});
            }
        }
    }
}
