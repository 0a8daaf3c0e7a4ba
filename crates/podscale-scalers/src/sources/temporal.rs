//! `temporal`: how many tasks of a queue wait for workers.

mod protocol;
#[cfg(test)]
mod tests;

use super::Draft;
use crate::context::Context;
use crate::grpc::{Grpc, Target};
use crate::http::add_secret;
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::secret::Secret;
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use protocol::{DescribeTaskQueueRequest, DescribeTaskQueueResponse, TaskQueue, VersionSelection};
use std::sync::Arc;
use tokio::time::Instant;

const METADATA_ENV: &[Place] = &[Place::Metadata, Place::Env];
const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];
const METHOD: &str = "temporal.api.workflowservice.v1.WorkflowService/DescribeTaskQueue";

/// Which tasks, and where.
#[derive(Clone, Debug)]
struct Question {
    frontend: Frontend,
    namespace: Box<str>,
    queue: Box<str>,
    /// As the server numbers them.
    types: Vec<i32>,
    build: Box<str>,
    all_active: bool,
    unversioned: bool,
}

/// A server, and who asks.
#[derive(Clone, Debug)]
struct Frontend {
    address: Box<str>,
    api_key: Option<Secret>,
    /// None if TLS is not spoken.
    tls: Option<Tls>,
    /// The name that its certificate has, if not that of the host.
    name: Box<str>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let address = fields.field(&["endpoint"], METADATA_ENV).required().text();
    let namespace = fields.field(&["namespace"], METADATA_ENV).text();
    let activation = fields.field(&["activationTargetQueueSize"], METADATA).integer_or(0);
    let target = fields.field(&["targetQueueSize"], METADATA).integer_or(5);
    let queue = fields.field(&["taskQueue"], METADATA_ENV).required().text();
    let types = fields.field(&["queueTypes"], METADATA).list();
    let build = fields.field(&["buildId"], METADATA_ENV).text();
    let all_active = fields.field(&["selectAllActive"], METADATA).bool_or(false);
    let unversioned = fields.field(&["selectUnversioned"], METADATA).bool_or(false);
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
    let types = types_of(fields, &types);
    let namespace = if namespace.is_empty() { "default" } else { &namespace };
    let frontend = frontend(fields, &address);
    Draft {
        name: format!("temporal-{namespace}-{queue}"),
        target: target as f64,
        activation: activation as f64,
        server: Some(frontend.key()),
        settings: Box::new(Question {
            frontend,
            namespace: namespace.into(),
            queue: queue.into(),
            types,
            build: build.into(),
            all_active,
            unversioned,
        }),
    }
}

/// The types of tasks by number; all if none is named.
fn types_of(fields: &mut Fields<'_>, names: &[String]) -> Vec<i32> {
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

fn frontend(fields: &mut Fields<'_>, address: &str) -> Frontend {
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let name = fields.field(&["tlsServerName"], METADATA_ENV).text();
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
    // A key is not sent for everybody to read.
    let spoken = api_key.is_some() || tls.identity.is_some() || tls.ca.is_some();
    Frontend { address: address.into(), api_key, tls: spoken.then_some(tls), name: name.into() }
}

impl Frontend {
    fn key(&self) -> ServerKey {
        let api_key = self.api_key.as_ref().map_or("", Secret::expose);
        let mut key = vec![api_key, &self.name, if self.tls.is_some() { "tls" } else { "" }];
        key.extend(self.tls.iter().flat_map(Tls::key));
        ServerKey::new("temporal", &format!("temporal {}", self.address), &key)
    }
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let (key, headers) = (self.frontend.key(), self.headers()?);
        let server = context.connections.share(&key, || {
            let Frontend { address, tls, name, .. } = &self.frontend;
            let target = Target { authority: address, tls: tls.as_ref(), name };
            Ok::<_, TriggerError>(Server::new(&key, context.freshness, Grpc::new(&target)?))
        })?;
        let question = format!(
            "{} {} {:?} {} {} {}",
            self.namespace, self.queue, self.types, self.build, self.all_active, self.unversioned
        );
        let request = self.request();
        Ok(Box::new(Temporal { about, server, question: question.into(), request, headers }))
    }
}

impl Question {
    fn headers(&self) -> Result<HeaderMap, TriggerError> {
        let mut headers = HeaderMap::new();
        let namespace = HeaderValue::from_str(&self.namespace).map_err(|_| {
            TriggerError::Settings("namespace has characters that none can have".into())
        })?;
        headers.insert("temporal-namespace", namespace);
        if let Some(key) = &self.frontend.api_key {
            add_secret(&mut headers, AUTHORIZATION, &format!("Bearer {}", key.expose()))?;
        }
        Ok(headers)
    }

    fn request(&self) -> DescribeTaskQueueRequest {
        let selected = self.all_active || self.unversioned || !self.build.is_empty();
        let builds = (!self.build.is_empty()).then(|| self.build.to_string());
        DescribeTaskQueueRequest {
            namespace: self.namespace.to_string(),
            task_queue: Some(TaskQueue { name: self.queue.to_string() }),
            api_mode: protocol::ENHANCED,
            versions: selected.then(|| VersionSelection {
                build_ids: builds.into_iter().collect(),
                unversioned: self.unversioned,
                all_active: self.all_active,
            }),
            task_queue_types: self.types.clone(),
            report_stats: true,
        }
    }
}

/// Asks about one queue.
struct Temporal {
    about: About,
    server: Arc<Server<Grpc>>,
    question: Box<str>,
    request: DescribeTaskQueueRequest,
    headers: HeaderMap,
}

impl Scaler for Temporal {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let ask = || async {
                let (name, grpc) = (self.server.name(), &self.server.connection);
                let answer = grpc.call(name, METHOD, &self.request, &self.headers).await;
                let answer: DescribeTaskQueueResponse = answer.map_err(explained)?;
                Ok(vec![answer.waiting()])
            };
            let answer = self.server.ask(&self.question, deadline, ask).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

/// Says what was tried, as KEDA says it.
fn explained(error: TriggerError) -> TriggerError {
    match error {
        TriggerError::Answer(problem) => {
            TriggerError::answer(format!("failed to get Temporal queue size: {problem}"))
        }
        other => other,
    }
}
