//! What singlecloud's API may do: each right is taken away and given back.

use super::{Rest, apply, autoscaler};
use crate::fixture::Workspace;
use crate::installed::each_left_out;
use crate::plane::ControlPlane;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// One of everything that the API can do; the answers that are no success.
async fn everything(plane: &ControlPlane, space: &Workspace, port: u16) -> Result<Vec<String>> {
    // What is known of a token is remembered for a moment, so it is a new one.
    let editor = Rest::open(plane, space, "edit", port).await?;
    let root = editor.root();
    let mut change = autoscaler("deployment", "web", "qps", "3000");
    change["customMetrics"][0]["labels"]["view"] = json!("other");
    let mut set = autoscaler("statefulset", "web", "qps", "2000");
    set["name"] = json!("set");
    let item = |name: &str| format!("{}/{name}", editor.collection);
    let requests = [
        ("POST", editor.collection.clone(), autoscaler("deployment", "web", "qps", "2000")),
        ("POST", editor.collection.clone(), set),
        ("GET", item("web"), Value::Null),
        ("GET", editor.collection.clone(), Value::Null),
        ("PUT", item("web"), change),
        ("GET", format!("{root}/daemonsets/web/metrics"), Value::Null),
        ("DELETE", item("web"), Value::Null),
        ("DELETE", item("set"), Value::Null),
    ];
    let mut refused = Vec::new();
    for (verb, path, body) in &requests {
        let (code, answer) = editor.send_to(verb, path, body).await?;
        if code >= 300 {
            refused.push(format!("{verb} {path}: {answer}"));
        }
    }
    Ok(refused)
}

/// Every right that the API adds is needed, and all of them are enough.
pub async fn each_is_needed(
    plane: &ControlPlane,
    space: &Workspace,
    roles: &[Value],
    port: u16,
) -> Result<()> {
    let works = async || -> Result<()> {
        let what = "what is refused with all rights";
        space.until(what, &Vec::new(), async || everything(plane, space, port).await).await
    };
    works().await?;
    // The others are those of the controller, which has a test of its own.
    let added = [
        ("create", "tokenreviews"),
        ("create", "subjectaccessreviews"),
        ("get", "horizontalpodautoscalers"),
        ("create", "horizontalpodautoscalers"),
        ("update", "horizontalpodautoscalers"),
        ("delete", "horizontalpodautoscalers"),
        ("get", "deployments"),
        ("get", "statefulsets"),
        ("get", "daemonsets"),
    ];
    let mut tried = 0;
    for role in roles {
        let beside = role["metadata"]["namespace"] == "zcloud";
        let rules = role["rules"].as_array().context("a role without rules")?;
        for left_out in each_left_out(rules) {
            let right = (&*left_out.verb, &*left_out.resource);
            if !beside && !added.contains(&right) {
                continue;
            }
            tried += 1;
            let mut less = role.clone();
            less["rules"] = Value::Array(left_out.rest.clone());
            apply(plane, &less).await?;
            let what = format!("whether something is refused without {left_out}");
            space
                .until(&what, &true, async || Ok(!everything(plane, space, port).await?.is_empty()))
                .await?;
            apply(plane, role).await?;
            works().await.with_context(|| format!("after {left_out} was given back"))?;
        }
    }
    ensure!(tried == 12, "{tried} rights were taken away");
    Ok(())
}
