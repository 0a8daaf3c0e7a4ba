//! `redis-streams` and its forms for clusters and sentinels: how many entries of a stream a consumer group has
//! pending or not read yet, or how long the stream is.

use super::Draft;
use super::redis::{share, unexpected};
use crate::context::Context;
use crate::metadata::{Fields, METADATA};
use crate::redis::client::RedisClient;
use crate::redis::{RedisServer, Reply};
use crate::scaler::{About, Scaler, Settings};
use crate::server::Server;
use crate::trigger::{TriggerError, TriggerValue};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::time::Instant;

/// Which stream, where, and what counts.
#[derive(Clone, Debug)]
struct Counted {
    server: RedisServer,
    stream: Box<str>,
    group: Box<str>,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Entries that the group's consumers were given and have not acknowledged.
    Pending,
    /// Entries of the stream.
    Length,
    /// Entries that the group was not given yet.
    Lag,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let pending = fields.field(&["pendingEntriesCount"], METADATA).integer_or(5);
    let length = fields.field(&["streamLength"], METADATA).integer_or(5);
    let lag = fields.field(&["lagCount"], METADATA).integer_or(0);
    let stream = fields.field(&["stream"], METADATA).required().text();
    let group = fields.field(&["consumerGroup"], METADATA).text();
    let activation = fields.field(&["activationLagCount"], METADATA).integer_or(0);
    let server = RedisServer::read(fields);
    let (what, target, target_field) = match (group.is_empty(), lag) {
        (true, _) => (What::Length, length, "streamLength"),
        (false, 0) => (What::Pending, pending, "pendingEntriesCount"),
        (false, lag) => (What::Lag, lag, "lagCount"),
    };
    if group.is_empty() && lag != 0 {
        fields.warn("metadata \"lagCount\" has no effect without \"consumerGroup\"; set both");
    }
    Draft {
        name: format!("redis-streams-{stream}"),
        target: target as f64,
        target_field: Some(target_field),
        activation: activation as f64,
        server: Some(server.key()),
        settings: Box::new(Counted { server, stream: stream.into(), group: group.into(), what }),
    }
}

impl Settings for Counted {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let Counted { server, stream, group, what } = *self;
        Ok(Box::new(Stream { about, stream, group, what, server: share(server, context)? }))
    }
}

/// Asks about one stream.
struct Stream {
    about: About,
    stream: Box<str>,
    group: Box<str>,
    what: What,
    server: Arc<Server<RedisClient>>,
}

impl Scaler for Stream {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let question = format!("{:?} {} {}", self.what, self.stream, self.group);
            let answer = self.server.ask(&question, deadline, || self.count()).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

impl Stream {
    async fn count(&self) -> Result<Vec<f64>, TriggerError> {
        let count = match self.what {
            What::Length => self.length().await?,
            What::Pending => self.pending().await?,
            What::Lag => self.lag().await?,
        };
        Ok(vec![count as f64])
    }

    async fn length(&self) -> Result<i64, TriggerError> {
        let reply = self.ask(&["XLEN", &self.stream]).await?;
        reply.integer().ok_or_else(|| unexpected(self.server.name(), "XLEN"))
    }

    async fn pending(&self) -> Result<i64, TriggerError> {
        let reply = self.ask(&["XPENDING", &self.stream, &self.group]).await?;
        let count = reply.list().and_then(|list| list.first()).and_then(Reply::integer);
        count.ok_or_else(|| unexpected(self.server.name(), "XPENDING"))
    }

    async fn lag(&self) -> Result<i64, TriggerError> {
        let groups = match self.ask(&["XINFO", "GROUPS", &self.stream]).await {
            Ok(groups) => groups,
            // The stream comes with its first entry.
            Err(TriggerError::Answer(text)) if text.contains("no such key") => return Ok(0),
            Err(error) => return Err(error),
        };
        let groups = groups.list().ok_or_else(|| unexpected(self.server.name(), "XINFO"))?;
        match lag_of(groups, &self.group) {
            Lag::Is(lag) => Ok(lag),
            // Without consumers there is no group yet: all entries wait for it.
            Lag::NoGroup => self.length().await,
            Lag::Unsupported => Err(TriggerError::answer("redis version 7+ required for lag")),
            Lag::Unknown => Err(TriggerError::answer(format!(
                "Redis cannot tell the lag of the group {:?} of {:?}, since entries were deleted; use \
                 pendingEntriesCount or streamLength, or set the group's id anew",
                self.group, self.stream
            ))),
        }
    }

    async fn ask(&self, command: &[&str]) -> Result<Reply, TriggerError> {
        self.server.connection.ask(&self.stream, command).await
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Lag {
    Is(i64),
    /// Redis cannot tell, which is not zero.
    Unknown,
    /// Redis is too old.
    Unsupported,
    NoGroup,
}

/// The lag of a group among those of a stream: names and values in turn.
fn lag_of(groups: &[Reply], group: &str) -> Lag {
    let value = |pairs: &'_ [Reply], name: &str| {
        let pairs =
            pairs.chunks_exact(2).map(|pair| (pair[0].text().map(str::to_owned), pair[1].clone()));
        pairs.into_iter().find(|(found, _)| found.as_deref() == Some(name)).map(|(_, value)| value)
    };
    for pairs in groups.iter().filter_map(Reply::list) {
        if value(pairs, "name").as_ref().and_then(Reply::text) == Some(group) {
            return match value(pairs, "lag") {
                Some(Reply::Integer(lag)) => Lag::Is(lag),
                Some(_) => Lag::Unknown,
                None => Lag::Unsupported,
            };
        }
    }
    Lag::NoGroup
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{outcome, spec_of};

    #[test]
    fn what_counts_follows_from_the_fields() {
        const CONTEXT: &str =
            "error parsing redis streams metadata: error parsing redis stream metadata: ";
        for (text, expected) in [
            ("stream=s;address=r:1", "s0-redis-streams-s 5 0"),
            ("stream=s;address=r:1;streamLength=7", "s0-redis-streams-s 7 0"),
            (
                "stream=s;address=r:1;consumerGroup=g;pendingEntriesCount=8",
                "s0-redis-streams-s 8 0",
            ),
            (
                "stream=s;address=r:1;consumerGroup=g;lagCount=9;activationLagCount=3",
                "s0-redis-streams-s 9 3",
            ),
            ("address=r:1", "missing required parameter \"stream\" in [triggerMetadata]"),
        ] {
            let found = outcome("redis-streams", text);
            assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
        }
        let warned = crate::parse(&spec_of("redis-streams", "stream=s;address=r:1;lagCount=9"));
        assert_eq!(warned.expect("a trigger").warnings.len(), 1);
    }

    #[test]
    fn the_lag_of_a_group_may_be_unknown() {
        let text = |text: &str| Reply::Text(text.to_owned());
        let group = |name: &str, lag: Option<Reply>| {
            let mut pairs = vec![text("name"), text(name)];
            pairs.extend(lag.into_iter().flat_map(|lag| [text("lag"), lag]));
            Reply::List(pairs)
        };
        let groups =
            [group("a", Some(Reply::Integer(4))), group("b", Some(Reply::Nil)), group("c", None)];
        for (name, expected) in
            [("a", Lag::Is(4)), ("b", Lag::Unknown), ("c", Lag::Unsupported), ("d", Lag::NoGroup)]
        {
            assert_eq!(lag_of(&groups, name), expected, "{name}");
        }
    }
}
