//! `redis`, `redis-cluster`, `redis-sentinel`: how many elements a list has; or a set, a sorted set or a hash.

use super::Draft;
use crate::context::Context;
use crate::metadata::{Fields, METADATA};
use crate::redis::RedisServer;
use crate::redis::client::RedisClient;
use crate::scaler::{About, Scaler, Settings};
use crate::server::Server;
use crate::trigger::{TriggerError, TriggerValue};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::time::Instant;

/// Which list, and where.
#[derive(Clone, Debug)]
struct List {
    server: RedisServer,
    name: Box<str>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let target = fields.field(&["listLength"], METADATA).integer_or(5);
    let activation = fields.field(&["activationListLength"], METADATA).integer_or(0);
    let name = fields.field(&["listName"], METADATA).required().text();
    let server = RedisServer::read(fields);
    Draft {
        name: format!("redis-{name}"),
        target: target as f64,
        target_field: Some("listLength"),
        activation: activation as f64,
        server: Some(server.key()),
        settings: Box::new(List { server, name: name.into() }),
    }
}

impl Settings for List {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let List { server, name } = *self;
        Ok(Box::new(Length { about, name, server: share(server, context)? }))
    }
}

/// The server that others use, or a new one.
///
/// # Errors
/// The certificates cannot be used.
pub(super) fn share(
    server: RedisServer,
    context: &Context,
) -> Result<Arc<Server<RedisClient>>, TriggerError> {
    let key = server.key();
    context
        .connections
        .share(&key, || Ok(Server::new(&key, context.freshness, RedisClient::new(server)?)))
}

/// Asks for the length of one list.
struct Length {
    about: About,
    name: Box<str>,
    server: Arc<Server<RedisClient>>,
}

impl Scaler for Length {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let question = format!("length {}", self.name);
            let answer = self.server.ask(&question, deadline, || self.length()).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

impl Length {
    async fn length(&self) -> Result<Vec<f64>, TriggerError> {
        let (redis, name) = (&self.server.connection, &*self.name);
        let kind = redis.ask(name, &["TYPE", name]).await?;
        let command = match kind.text() {
            // One that is not there has no elements.
            Some("list" | "none") => "LLEN",
            Some("set") => "SCARD",
            Some("zset") => "ZCARD",
            Some("hash") => "HLEN",
            Some(other) => {
                let problem = format!("ERR unsupported key type: {other}");
                return Err(TriggerError::answer(problem));
            }
            None => return Err(unexpected(self.server.name(), "TYPE")),
        };
        let reply = redis.ask(name, &[command, name]).await?;
        let length = reply.integer().ok_or_else(|| unexpected(self.server.name(), command))?;
        Ok(vec![length as f64])
    }
}

/// That an answer has a form it should not have.
pub(super) fn unexpected(server: &str, command: &str) -> TriggerError {
    TriggerError::answer(format!("{server} answers {command} with something else than expected"))
}

#[cfg(test)]
mod tests {
    use crate::tests::{outcome, spec_of};

    #[test]
    fn fields_are_checked_in_the_words_of_keda() {
        const CONTEXT: &str = "error parsing redis metadata: error parsing redis metadata: ";
        for (text, expected) in [
            ("listName=a:b;address=r:6379", "s0-redis-a-b 5 0"),
            ("listName=l;address=r:6379;listLength=10;activationListLength=3", "s0-redis-l 10 3"),
            ("listName=l;host=a,b;port=1,2;enableTLS=true;auth.ca=x", "s0-redis-l 5 0"),
            ("listName=l;auth.address=r:6379;auth.tls=enable", "s0-redis-l 5 0"),
            ("address=r:6379", "missing required parameter \"listName\" in [triggerMetadata]"),
            (
                "listName=l",
                "no addresses or hosts given. address should be a comma separated list of host:port or set \
                 the host/port values",
            ),
            (
                "listName=l;hosts=a,b;ports=1",
                "not enough hosts or ports given. number of hosts should be equal to the number of ports",
            ),
            (
                "listName=l;address=a:1;enableTLS=yes",
                "EnableTLS parsing error strconv.ParseBool: parsing \"yes\": invalid syntax",
            ),
            ("listName=l;address=a:1;auth.tls=on", "error incorrect TLS value given"),
            (
                "listName=l;address=a:1;enableTLS=true;auth.tls=enable",
                "unable to set `tls` in both ScaledObject and TriggerAuthentication together",
            ),
            (
                "listName=l;address=a:1;listLength=many",
                "unable to set param \"listLength\" value \"many\": unable to unmarshal to field type int64: \
                 invalid character 'm' looking for beginning of value",
            ),
        ] {
            let found = outcome("redis", text);
            assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
        }
    }

    #[test]
    fn servers_are_told_apart_by_what_matters_to_connections() {
        let key = |kind: &str, more: &str| {
            let text = format!("listName=l;address=a:1;{more}");
            crate::parse(&spec_of(kind, &text)).expect("a trigger").server.expect("a server")
        };
        let plain = key("redis", "");
        assert_eq!(plain, key("redis", "listLength=9"));
        assert_eq!(plain.address(), "a:1");
        for (kind, more) in [
            ("redis", "databaseIndex=1"),
            ("redis", "auth.password=p"),
            ("redis", "enableTLS=true"),
            ("redis-cluster", ""),
            ("redis-sentinel", "sentinelMaster=m"),
        ] {
            assert_ne!(plain, key(kind, more), "{kind} {more}");
        }
    }
}
