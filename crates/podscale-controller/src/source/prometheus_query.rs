//! Queries that specs bring along, asked of Prometheus directly.
//!
//! The controller's own Prometheus is asked with its credentials. Whoever may write an autoscaler could
//! otherwise make the controller call any address, so another server is asked only if the operator has
//! named it, and without credentials.

use super::MetricSource;
use super::answer::Answer;
use super::circuit_breaker::CircuitBreaker;
use super::prometheus::prometheus_error;
use super::question::Question;
use super::refresh::{Recent, Refresh};
use super::subscriptions::{News, Topic, Unseen};
use crate::metrics::Metrics;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use podscale_client::clock::Clock;
use podscale_core::Time;
use podscale_core::model::{Milli, PrometheusQuery, Source};
use podscale_metrics::prometheus::{Answer as Answered, Client, Config, Queries, SetupError};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The Prometheus servers that specs may name.
#[derive(Default)]
pub struct PrometheusServers {
    /// The controller's own.
    own: Option<Server>,
    /// Others, by their addresses.
    others: BTreeMap<String, Server>,
}

/// What became of a query that was only to be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// No server is known that it may go to.
    NotAsked,
    /// It cannot be answered, or not with one amount.
    Failed(String),
    /// It is answered without a value.
    NoValue,
    /// It has a value.
    Value,
}

struct Server {
    queries: Queries,
    breaker: CircuitBreaker,
}

impl Server {
    fn new(client: Arc<Client>) -> Server {
        Server { queries: Queries::new(client), breaker: CircuitBreaker::new("prometheus") }
    }
}

impl PrometheusServers {
    /// The controller's own server, if there is one, and others that specs may name, which are asked for samples of
    /// at most this age.
    ///
    /// # Errors
    /// The address of another cannot be used.
    pub fn new(
        own: Option<Arc<Client>>,
        others: &[String],
        max_age: Option<Duration>,
    ) -> Result<PrometheusServers, SetupError> {
        let server = |url: &String| {
            let client = Client::new(Config { max_age, ..Config::new(url.as_str()) })?;
            Ok((plain(url).to_owned(), Server::new(Arc::new(client))))
        };
        let others: Result<_, SetupError> = others.iter().map(server).collect();
        Ok(PrometheusServers { own: own.map(Server::new), others: others? })
    }

    /// What a query gives now, for those who want to know whether it can be answered.
    pub async fn probe(&self, server: Option<&str>, query: &str) -> Probe {
        let Ok(server) = self.find(server) else { return Probe::NotAsked };
        let answer = server.queries.client().query(query).await;
        match answer.map_err(prometheus_error).map(|answer| one_value(&answer)) {
            Ok(Answer::Failed(why)) => Probe::Failed(why.to_string()),
            Ok(Answer::Value(Some(_))) => Probe::Value,
            Ok(_) => Probe::NoValue,
            Err(error) => Probe::Failed(error.to_string()),
        }
    }

    /// The server that a query goes to, by the address that its spec names.
    fn find(&self, address: Option<&str>) -> Result<&Server, Arc<str>> {
        let Some(address) = address else {
            let missing = "it is not said where Prometheus is: the spec names no server, and the \
                           controller was started without --prometheus-url";
            return self.own.as_ref().ok_or_else(|| missing.into());
        };
        let address = plain(address);
        let own = self.own.as_ref().filter(|own| own.queries.client().url() == address);
        own.or_else(|| self.others.get(address)).ok_or_else(|| {
            format!("{address} is not one of the controller's --prometheus-allowed-server").into()
        })
    }
}

/// An address without the slash at its end.
fn plain(url: &str) -> &str {
    url.trim_end_matches('/')
}

/// Answers queries.
pub(super) struct PrometheusQueries {
    servers: Arc<PrometheusServers>,
    clock: Clock,
    /// What was asked lately, by server and query, and the values that were given.
    recent: Recent<Asked, Seen>,
    metrics: Metrics,
}

/// What a query gave.
#[derive(Clone, Copy)]
struct Seen {
    value: Option<Milli>,
    /// When it was asked for the first time that it gave this.
    since: Timestamp,
}

/// The server that a spec names, and the query.
type Asked = (Option<Arc<str>>, Arc<str>);

fn asked(query: &PrometheusQuery) -> Asked {
    (query.server.clone(), Arc::clone(&query.query))
}

fn topic((server, query): &Asked) -> Topic {
    Topic(format!("prometheus {} {query}", server.as_deref().unwrap_or_default()).into())
}

impl PrometheusQueries {
    /// Asks these servers.
    pub(super) fn new(
        servers: Arc<PrometheusServers>,
        clock: Clock,
        metrics: Metrics,
    ) -> PrometheusQueries {
        PrometheusQueries { servers, clock, recent: Recent::default(), metrics }
    }

    async fn value(&self, query: &PrometheusQuery, max_age: Duration) -> Answer {
        let server = match self.servers.find(query.server.as_deref()) {
            Ok(server) => server,
            Err(problem) => return Answer::Failed(problem),
        };
        let (began, read) = (Instant::now(), self.clock.now());
        let ask = async {
            let answer = server.queries.get(&query.query, max_age).await;
            answer.map_err(prometheus_error)
        };
        let answer = server.breaker.call(ask).await;
        self.metrics.source_answered("prometheus", answer.is_ok(), began.elapsed());
        server.breaker.report(answer.as_ref().err());
        let answer = match answer {
            Ok(answer) => one_value(&answer),
            Err(error) => Answer::Failed(error.to_string().into()),
        };
        if let Answer::Value(value) = &answer {
            self.note(&asked(query), read, value.map(|(milli, _)| milli));
        }
        answer
    }

    fn note(&self, asked: &Asked, read: Timestamp, value: Option<Milli>) {
        let before = self.recent.newest(asked).filter(|before| before.value == value);
        let since = before.map_or(read, |before| before.since);
        self.recent.note(asked, read, Seen { value, since });
    }
}

/// The only value of an answer; none if it has none.
fn one_value(answer: &Answered) -> Answer {
    match answer.vector.samples.as_slice() {
        [] => Answer::Value(None),
        [sample] if sample.value.is_finite() => {
            // The conversion saturates.
            #[expect(clippy::cast_possible_truncation)]
            let milli = (sample.value * 1000.0).round() as i64;
            Answer::Value(Some((Milli(milli), Time(sample.time.as_microsecond()))))
        }
        [sample] => {
            Answer::Failed(format!("the query gives {}, which is no amount", sample.value).into())
        }
        several => {
            let count = several.len();
            let advice = "aggregate it, for instance with sum()";
            Answer::Failed(format!("the query gives {count} values, not one; {advice}").into())
        }
    }
}

impl MetricSource for PrometheusQueries {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        async move {
            match question.metric {
                Source::Prometheus(query) => self.value(query, question.max_age).await,
                _ => Answer::Nothing,
            }
        }
        .boxed()
    }

    fn topic(&self, question: &Question<'_>) -> Option<Topic> {
        let Source::Prometheus(query) = question.metric else { return None };
        let asked = asked(query);
        let topic = topic(&asked);
        // What no server may be asked for is not asked again.
        let known = self.servers.find(query.server.as_deref()).is_ok();
        (known && self.recent.ask(asked, self.clock.now(), question.period)).then_some(topic)
    }
}

impl Refresh for PrometheusQueries {
    type Question = Asked;

    fn recent(&self) -> Vec<Asked> {
        self.recent.questions(self.clock.now())
    }

    fn again(&self, asked: Asked, max_age: Duration) -> BoxFuture<'_, News> {
        async move {
            let (server, text) = asked.clone();
            let query = PrometheusQuery { name: Arc::clone(&text), server, query: text };
            let Answer::Value(_) = self.value(&query, max_age).await else {
                // A failure is met when somebody decides.
                return News::new();
            };
            match self.recent.announce(&asked) {
                Some((Seen { since, .. }, before)) if since > before => {
                    News::from([(topic(&asked), Unseen::Before(since))])
                }
                _ => News::new(),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
