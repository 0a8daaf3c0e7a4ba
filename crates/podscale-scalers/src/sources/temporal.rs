//! `temporal`: how many tasks of a queue wait for workers.

mod fields;
mod protocol;
#[cfg(test)]
mod tests;

use super::Draft;
use crate::context::Context;
use crate::grpc::{Grpc, Target};
use crate::http::add_secret;
use crate::metadata::Fields;
use crate::scaler::{About, Scaler, Settings};
use crate::secret::Secret;
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use futures::future::BoxFuture;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use prost::Message;
use protocol::{
    CountWorkflowExecutionsRequest, CountWorkflowExecutionsResponse, DescribeTaskQueueRequest,
    DescribeTaskQueueResponse, DescribeWorkerDeploymentVersionRequest,
    DescribeWorkerDeploymentVersionResponse, TaskQueue, WorkerDeploymentVersion,
};
use std::sync::Arc;
use tokio::time::Instant;

/// Which tasks, and where.
#[derive(Clone, Debug)]
struct Question {
    frontend: Frontend,
    tasks: Tasks,
}

/// Which tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tasks {
    namespace: Box<str>,
    queue: Box<str>,
    /// As the server numbers them.
    types: Vec<i32>,
    /// A deployment of workers and its build, if only their tasks count.
    version: Option<(Box<str>, Box<str>)>,
    /// Which workflows keep the trigger active while nothing waits.
    running: Option<Box<str>>,
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
    let (question, target, activation) = fields::read(fields);
    let Tasks { namespace, queue, version, .. } = &question.tasks;
    let version = version.as_ref();
    let version = version.map(|(name, build)| format!("-{name}-{build}")).unwrap_or_default();
    Draft {
        name: format!("temporal-{namespace}-{queue}{version}"),
        target,
        target_field: Some("targetQueueSize"),
        activation,
        server: Some(question.frontend.key()),
        settings: Box::new(question),
    }
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
        let tasks = self.tasks;
        // Workflows are counted only below the activation.
        let question = format!("{tasks:?} {}", about.activation).into();
        Ok(Box::new(Temporal { about, server, question, tasks, headers }))
    }
}

impl Question {
    fn headers(&self) -> Result<HeaderMap, TriggerError> {
        let mut headers = HeaderMap::new();
        let namespace = HeaderValue::from_str(&self.tasks.namespace).map_err(|_| {
            TriggerError::Settings("namespace has characters that none can have".into())
        })?;
        headers.insert("temporal-namespace", namespace);
        if let Some(key) = &self.frontend.api_key {
            add_secret(&mut headers, AUTHORIZATION, &format!("Bearer {}", key.expose()))?;
        }
        Ok(headers)
    }
}

/// Asks about one queue.
struct Temporal {
    about: About,
    server: Arc<Server<Grpc>>,
    question: Box<str>,
    tasks: Tasks,
    headers: HeaderMap,
}

impl Scaler for Temporal {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let answer = self.server.ask(&self.question, deadline, || self.numbers()).await?;
            let number = |place: usize| answer.get(place).copied().unwrap_or_default();
            let active = number(0) > self.about.activation || number(1) > 0.0;
            Ok(self.about.value_and_activity(number(0), active))
        })
    }
}

impl Temporal {
    /// How many tasks wait; and how many workflows keep the trigger active, if that matters.
    async fn numbers(&self) -> Result<Vec<f64>, TriggerError> {
        let counted = self.count().await;
        counted.map_err(|error| match error {
            // What was tried, as KEDA says it.
            TriggerError::Answer(problem) => {
                TriggerError::answer(format!("failed to get Temporal backlog count: {problem}"))
            }
            other => other,
        })
    }

    async fn count(&self) -> Result<Vec<f64>, TriggerError> {
        let (waiting, status) = match &self.tasks.version {
            Some((name, build)) => self.of_version(name, build).await?,
            None => (self.of_queue().await?, protocol::CURRENT),
        };
        let waiting = waiting as f64;
        let busy = match (&self.tasks.running, status) {
            (None, _) => 0.0,
            _ if waiting > self.about.activation => 0.0,
            // Work that it has begun comes back to it until it is done.
            (Some(_), protocol::DRAINING) => 1.0,
            (Some(query), protocol::CURRENT | protocol::RAMPING) => self.running(query).await?,
            _ => 0.0,
        };
        Ok(vec![waiting, busy])
    }

    /// How many tasks of the queue wait, each type by itself.
    async fn of_queue(&self) -> Result<i64, TriggerError> {
        let Tasks { namespace, queue, types, .. } = &self.tasks;
        let mut total = 0_i64;
        for kind in types {
            let request = DescribeTaskQueueRequest {
                namespace: namespace.to_string(),
                task_queue: Some(TaskQueue { name: queue.to_string(), kind: protocol::NORMAL }),
                task_queue_type: *kind,
                report_stats: true,
            };
            let answer: DescribeTaskQueueResponse =
                self.call("DescribeTaskQueue", &request).await?;
            total = total.saturating_add(protocol::waiting(answer.stats.as_ref()));
        }
        Ok(total)
    }

    /// How many tasks of the queue wait for one version of workers, and what that version is for.
    async fn of_version(&self, name: &str, build: &str) -> Result<(i64, i32), TriggerError> {
        let Tasks { namespace, queue, types, .. } = &self.tasks;
        let version = WorkerDeploymentVersion {
            build_id: build.to_owned(),
            deployment_name: name.to_owned(),
        };
        let request = DescribeWorkerDeploymentVersionRequest {
            namespace: namespace.to_string(),
            deployment_version: Some(version),
            report_task_queue_stats: true,
        };
        let answer: DescribeWorkerDeploymentVersionResponse =
            self.call("DescribeWorkerDeploymentVersion", &request).await?;
        let status = answer.info.as_ref().map_or(0, |info| info.status);
        Ok((answer.waiting(queue, types), status))
    }

    async fn running(&self, query: &str) -> Result<f64, TriggerError> {
        let request = CountWorkflowExecutionsRequest {
            namespace: self.tasks.namespace.to_string(),
            query: query.to_owned(),
        };
        let answer: CountWorkflowExecutionsResponse =
            self.call("CountWorkflowExecutions", &request).await?;
        Ok(answer.count as f64)
    }

    async fn call<A: Message + Default>(
        &self,
        method: &str,
        question: &impl Message,
    ) -> Result<A, TriggerError> {
        let (grpc, method) = (&self.server.connection, protocol::method(method));
        grpc.call(self.server.name(), &method, question, &self.headers).await
    }
}
