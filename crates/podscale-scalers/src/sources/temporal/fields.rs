//! The fields of a trigger, and what goes together.

use super::{Frontend, Question, Tasks, protocol};
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::tls::Tls;

const METADATA_ENV: &[Place] = &[Place::Metadata, Place::Env];
const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];

/// What is asked, the target and the activation.
pub(super) fn read(fields: &mut Fields<'_>) -> (Question, f64, f64) {
    let address = fields.field(&["endpoint"], METADATA_ENV).required().text();
    let namespace = fields.field(&["namespace"], METADATA_ENV).text();
    let activation = fields.field(&["activationTargetQueueSize"], METADATA).integer_or(0);
    let target = fields.field(&["targetQueueSize"], METADATA).integer_or(5);
    let queue = fields.field(&["taskQueue"], METADATA_ENV).required().text();
    let types = fields.field(&["queueTypes"], METADATA).list();
    let patience = fields.field(&["minConnectTimeout"], METADATA).integer_or(5);
    for (wrong, problem) in [
        (target <= 0, "targetQueueSize must be a positive number"),
        (activation < 0, "activationTargetQueueSize must be a positive number"),
        (patience < 0, "minConnectTimeout must be a positive number"),
    ] {
        if wrong {
            fields.refuse(problem, "write a number such as 5");
        }
    }
    for name in ["buildId", "selectAllActive", "selectUnversioned"] {
        if fields.spec().metadata.contains_key(name) {
            fields.allow(&[name]);
            fields.refuse(
                format!("scaler temporal info: '{name}' is not supported any longer"),
                "remove it, or use workerDeploymentName and workerDeploymentBuildId",
            );
        }
    }
    let version = version(fields);
    let running = running(fields, &queue, version.as_ref());
    let tasks = Tasks {
        namespace: if namespace.is_empty() { "default".into() } else { namespace.into() },
        queue: queue.into(),
        types: types_of(fields, &types),
        version,
        running,
    };
    let frontend = frontend(fields, &address);
    (Question { frontend, tasks }, target as f64, activation as f64)
}

/// A deployment of workers and its build.
fn version(fields: &mut Fields<'_>) -> Option<(Box<str>, Box<str>)> {
    let name = fields.field(&["workerDeploymentName"], METADATA_ENV).text();
    let build = fields.field(&["workerDeploymentBuildId"], METADATA_ENV).text();
    if name.is_empty() != build.is_empty() {
        let problem = "workerDeploymentName and workerDeploymentBuildId must both be set";
        fields.refuse(problem, "set both, or none of them");
    }
    (!name.is_empty() && !build.is_empty()).then(|| (name.into(), build.into()))
}

/// The query for workflows that keep the trigger active, if there shall be one.
fn running(
    fields: &mut Fields<'_>,
    queue: &str,
    version: Option<&(Box<str>, Box<str>)>,
) -> Option<Box<str>> {
    let wanted = fields.field(&["includeRunningWorkflowCount"], METADATA).bool_or(false);
    let other = fields.field(&["workflowTaskQueueForCount"], METADATA_ENV).text();
    if !wanted {
        if !other.is_empty() {
            fields.refuse(
                "workflowTaskQueueForCount has no effect unless includeRunningWorkflowCount is true",
                "set includeRunningWorkflowCount to true",
            );
        }
        return None;
    }
    // Nothing may end the text that it stands in.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
    let parts = version.map_or(["", ""], |(name, build)| [&**name, &**build]);
    for text in [queue, &other, parts[0], parts[1]] {
        if !text.bytes().all(plain) {
            fields.refuse(
                format!(
                    "value {text:?} contains characters not allowed in Temporal visibility queries when \
                     includeRunningWorkflowCount is enabled"
                ),
                "leave includeRunningWorkflowCount out, or use letters, digits and - _ . / :",
            );
        }
    }
    let queue = if other.is_empty() { queue } else { &other };
    let version = match version {
        Some((name, build)) => format!("= '{name}:{build}'"),
        None => "is null".to_owned(),
    };
    let query = format!(
        "ExecutionStatus = 'Running' AND TaskQueue = '{queue}' AND TemporalWorkerDeploymentVersion {version}"
    );
    Some(query.into())
}

/// The types of tasks by number; all if none is named.
pub(super) fn types_of(fields: &mut Fields<'_>, names: &[String]) -> Vec<i32> {
    let mut types = Vec::new();
    for name in names {
        match name.as_str() {
            "workflow" => types.push(protocol::WORKFLOW),
            "activity" => types.push(protocol::ACTIVITY),
            "nexus" => types.push(protocol::NEXUS),
            other => fields.refuse(
                format!("unknown queue type {other:?}"),
                "write workflow, activity, nexus or several of them between commas",
            ),
        }
    }
    if types.is_empty() {
        types = vec![protocol::ACTIVITY, protocol::WORKFLOW, protocol::NEXUS];
    }
    types
}

/// Who is asked, and how it is proved who asks.
pub(super) fn frontend(fields: &mut Fields<'_>, address: &str) -> Frontend {
    let enabled = fields.field(&["enableTLS"], METADATA).bool_or(true);
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let name = fields.field(&["tlsServerName"], METADATA).text();
    let api_key = fields.field(&["apiKey"], AUTH_ENV).secret();
    let has_certificate = fields.field(&["cert", "Cert"], AUTH).is_given();
    let has_key = fields.field(&["key"], AUTH).is_given();
    let tls = Tls::read(fields, insecure);
    if has_certificate != has_key {
        fields.refuse("both cert and key must be provided when using TLS", "give cert and key");
    }
    if address.contains(['/', '@', '?', '#', ' ']) {
        fields.refuse(
            "parameter \"endpoint\" is not host:port",
            "write temporal-frontend.temporal.svc:7233, without http://",
        );
    }
    let certified = tls.identity.is_some() || tls.ca.is_some();
    if api_key.is_some() && !enabled && !certified {
        fields.warn(
            "enableTLS is false, and so the apiKey is sent for everybody on the way to read; remove enableTLS",
        );
    }
    let spoken = certified || (api_key.is_some() && enabled);
    Frontend { address: address.into(), api_key, tls: spoken.then_some(tls), name: name.into() }
}
