//! `rabbitmq`: how many messages a queue has, or how fast they come and go; by the broker's HTTP API or by AMQP.

mod amqp;
mod fields;
mod management;
mod mode;
#[cfg(test)]
mod tests;

use super::Draft;
use crate::address::{Address, encode};
use crate::azure;
use crate::context::Context;
use crate::http::auth::HttpAuth;
use crate::http::connection::{self, HttpServer};
use crate::identity::AzureIdentity;
use crate::metadata::Fields;
use crate::scaler::{About, Scaler, Settings};
use crate::secret::Secret;
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use amqp::AmqpClient;
use futures::future::BoxFuture;
use management::Queues;
use mode::{Mode, State};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What is asked, and of whom.
#[derive(Clone, Debug)]
struct Question {
    mode: Mode,
    target: f64,
    target_field: &'static str,
    activation: f64,
    asked: Asked,
}

/// How the broker is asked.
#[derive(Clone, Debug)]
enum Asked {
    Http {
        address: Address,
        auth: Box<HttpAuth>,
        /// Whose tokens it asks with, and what they are for.
        azure: Option<Box<(AzureIdentity, String)>>,
        uri: Box<str>,
        queues: Queues,
        timeout: Option<Duration>,
    },
    Amqp {
        broker: Broker,
        queue: Box<str>,
    },
}

/// A broker that is asked by AMQP, and who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Broker {
    /// Host and port.
    address: String,
    vhost: String,
    user: String,
    password: Secret,
    /// Whether the certificate says who asks.
    external: bool,
    /// None if TLS is not spoken.
    tls: Option<Tls>,
}

impl Broker {
    fn key(&self) -> ServerKey {
        let mut key = vec![self.user.as_str(), self.password.expose(), &self.vhost];
        key.push(if self.external { "external" } else { "" });
        key.extend(self.tls.iter().flat_map(Tls::key));
        ServerKey::new("amqp", &format!("rabbitmq {}", self.address), &key)
    }
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let (question, queue) = fields::read(fields);
    let server = match &question.asked {
        Asked::Http { address, auth, azure, .. } => http_key(address, auth, azure.as_deref()),
        Asked::Amqp { broker, .. } => broker.key(),
    };
    Draft {
        name: format!("rabbitmq-{}", in_a_name(&queue)),
        target: question.target,
        target_field: Some(question.target_field),
        activation: question.activation,
        server: Some(server),
        settings: Box::new(question),
    }
}

fn http_key(
    address: &Address,
    auth: &HttpAuth,
    azure: Option<&(AzureIdentity, String)>,
) -> ServerKey {
    let mut key = auth.key();
    if let Some((identity, scope)) = azure {
        key.extend(azure::key(identity));
        key.push(scope);
    }
    ServerKey::new("rabbitmq", &address.origin(), &key)
}

/// How KEDA writes the name of a queue in that of a metric: as in a query, where a blank is a plus.
fn in_a_name(queue: &str) -> String {
    encode(queue).replace("%20", "+")
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let Question { mode, asked, .. } = *self;
        let source = match asked {
            Asked::Http { address, auth, azure, uri, queues, timeout } => {
                let key = http_key(&address, &auth, azure.as_deref());
                let server = match azure.as_deref() {
                    None => connection::share(context, &key, &address, &auth)?,
                    Some((identity, scope)) => {
                        let tokens = azure::share(context, identity, scope)?;
                        connection::share_with(context, &key, &address, &auth, Some(tokens))?
                    }
                };
                let timeout = timeout.filter(|t| !t.is_zero()).unwrap_or(context.http_timeout);
                Source::Http { server, uri, queues, timeout }
            }
            Asked::Amqp { broker, queue } => {
                let key = broker.key();
                let server = context.connections.share(&key, || {
                    let client = AmqpClient::new(broker)?;
                    Ok::<_, TriggerError>(Server::new(&key, context.freshness, client))
                })?;
                Source::Amqp { server, queue }
            }
        };
        Ok(Box::new(RabbitMq { about, mode, source }))
    }
}

/// Asks about one queue, or about all that a pattern finds.
struct RabbitMq {
    about: About,
    mode: Mode,
    source: Source,
}

enum Source {
    Http { server: HttpServer, uri: Box<str>, queues: Queues, timeout: Duration },
    Amqp { server: Arc<Server<AmqpClient>>, queue: Box<str> },
}

impl Scaler for RabbitMq {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let state = self.state(deadline).await?;
            let (value, active) = self.mode.value(state, self.about.activation);
            Ok(self.about.value_and_activity(value, active))
        })
    }
}

impl RabbitMq {
    async fn state(&self, deadline: Instant) -> Result<State, TriggerError> {
        let answer = match &self.source {
            Source::Http { server, uri, queues, timeout } => {
                let deadline = deadline.min(Instant::now() + *timeout);
                // The same answer may be summed up in several ways.
                let question = format!("{uri} {queues:?}");
                let ask = || async {
                    let state = management::ask(server, uri, *queues).await?;
                    Ok(vec![state.messages, state.publish_rate, state.deliver_rate])
                };
                server.ask(&question, deadline, ask).await?
            }
            Source::Amqp { server, queue } => {
                let ask = || async {
                    let messages = server.connection.messages(server.name(), queue).await?;
                    Ok(vec![messages, 0.0, 0.0])
                };
                server.ask(queue, deadline, ask).await?
            }
        };
        let number = |place: usize| answer.get(place).copied().unwrap_or_default();
        Ok(State { messages: number(0), publish_rate: number(1), deliver_rate: number(2) })
    }
}
