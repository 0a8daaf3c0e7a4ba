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
use super::subscriptions::Topic;
use crate::metrics::Metrics;
use futures::FutureExt;
use futures::future::BoxFuture;
use podscale_client::clock::Clock;
use podscale_core::Time;
use podscale_core::model::{Milli, PrometheusQuery, Source};
use podscale_metrics::prometheus::{Answer as Answered, Client, Config, Queries, SetupError};
use std::collections::{BTreeMap, HashSet};
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
    /// The controller's own server, if there is one, and others that specs may name.
    ///
    /// # Errors
    /// The address of another cannot be used.
    pub fn new(
        own: Option<Arc<Client>>,
        others: &[String],
    ) -> Result<PrometheusServers, SetupError> {
        let server = |url: &String| {
            let client = Client::new(Config::new(url.as_str()))?;
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
    recent: Recent<Asked, Option<Milli>>,
    metrics: Metrics,
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
        let began = Instant::now();
        let ask = async {
            let answer = server.queries.get(&query.query, max_age).await;
            answer.map_err(prometheus_error)
        };
        let answer = server.breaker.call(ask).await;
        self.metrics.source_answered("prometheus", answer.is_ok(), began.elapsed());
        server.breaker.report(answer.as_ref().err());
        match answer {
            Ok(answer) => one_value(&answer),
            Err(error) => Answer::Failed(error.to_string().into()),
        }
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
                Source::Prometheus(query) => {
                    let answer = self.value(query, question.max_age).await;
                    if let Answer::Value(value) = &answer {
                        self.recent.first(&asked(query), || value.map(|(milli, _)| milli));
                    }
                    answer
                }
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
        (known && self.recent.ask(asked, self.clock.now())).then_some(topic)
    }
}

impl Refresh for PrometheusQueries {
    type Question = Asked;

    fn recent(&self) -> Vec<Asked> {
        self.recent.questions(self.clock.now())
    }

    fn again(&self, asked: Asked, max_age: Duration) -> BoxFuture<'_, HashSet<Topic>> {
        async move {
            let (server, text) = asked.clone();
            let query = PrometheusQuery { name: Arc::clone(&text), server, query: text };
            let Answer::Value(value) = self.value(&query, max_age).await else {
                // A failure is met when somebody decides.
                return HashSet::new();
            };
            let value = value.map(|(milli, _)| milli);
            match self.recent.replace(&asked, value) {
                Some(before) if before != value => HashSet::from([topic(&asked)]),
                _ => HashSet::new(),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Refreshing;
    use crate::source::subscriptions::notifications;
    use axum::routing::post;
    use axum::{Json, Router};
    use serde_json::{Value, json};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A Prometheus that gives one value, several, or nothing, as the query says.
    async fn prometheus() -> String {
        let answer = async |body: String| {
            let sample = |value: &str| json!({"metric": {}, "value": [1_700_000_000.5, value]});
            let result: Vec<Value> = match body.split(['=', '&']).nth(1) {
                Some("one") => vec![sample("2.5")],
                Some("two") => vec![sample("1"), sample("2")],
                Some("nan") => vec![sample("NaN")],
                _ => vec![],
            };
            Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}))
        };
        let router = Router::new().route("/api/v1/query", post(answer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn one_value_is_an_answer_and_servers_must_be_allowed() {
        let url = prometheus().await;
        let own = Arc::new(Client::new(Config::new(&url)).expect("a client"));
        let allowed = [format!("{url}/")];
        let servers = |own, others: &[String]| {
            Arc::new(PrometheusServers::new(own, others).expect("servers"))
        };
        let both = servers(Some(Arc::clone(&own)), &[]);
        let (other, none) = (servers(None, &allowed), servers(None, &[]));
        for (what, servers, server, query, expected) in [
            ("one", &both, None, "one", "2500 at 1700000000500000"),
            ("nothing", &both, None, "none", "no value"),
            ("several", &both, None, "two", "the query gives 2 values, not one; aggregate it"),
            ("no number", &both, None, "nan", "the query gives NaN, which is no amount"),
            ("the own by name", &both, Some(url.as_str()), "one", "2500 at"),
            ("an allowed one", &other, Some(url.as_str()), "one", "2500 at"),
            ("none of its own", &other, None, "one", "it is not said where Prometheus is"),
            ("a stranger", &none, Some(url.as_str()), "one", "is not one of the controller's"),
        ] {
            let source = PrometheusQueries::new(Arc::clone(servers), Clock::wall(), Metrics::new());
            let query = PrometheusQuery {
                name: "q".into(),
                server: server.map(Into::into),
                query: query.into(),
            };
            let metric = Source::Prometheus(query);
            let max_age = Duration::from_secs(1);
            let question = Question { namespace: "shop", metric: &metric, pods: "", max_age };
            let found = match source.ask(question).await {
                Answer::Value(Some((Milli(milli), Time(time)))) => format!("{milli} at {time}"),
                Answer::Value(None) => "no value".to_owned(),
                Answer::Failed(why) => why.to_string(),
                other => format!("{other:?}"),
            };
            assert!(found.contains(expected), "{what}: {found}");
        }
    }

    /// A Prometheus whose only value rises every second time that it is asked.
    async fn rising() -> (String, Arc<AtomicU32>) {
        let asked = Arc::<AtomicU32>::default();
        let count = Arc::clone(&asked);
        let answer = move || async move {
            let value = (count.fetch_add(1, Ordering::Relaxed) / 2).to_string();
            let result = json!([{"metric": {}, "value": [1_700_000_000, value]}]);
            Json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}))
        };
        let router = Router::new().route("/api/v1/query", post(answer));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(async move { axum::serve(listener, router).await });
        (format!("http://{address}"), asked)
    }

    #[tokio::test]
    async fn a_query_is_asked_again_and_announced_when_its_value_changes() {
        let (url, requests) = rising().await;
        let own = Arc::new(Client::new(Config::new(&url)).expect("a client"));
        let servers = Arc::new(PrometheusServers::new(Some(own), &[]).expect("servers"));
        let source = PrometheusQueries::new(servers, Clock::wall(), Metrics::new());
        let (notifier, mut announcements) = notifications();
        let refreshing = Refreshing { every: Duration::ZERO, notifier };
        refreshing.round(&source).await;
        assert_eq!(requests.load(Ordering::Relaxed), 0, "nobody asked anything");
        let query = |server: Option<&str>| {
            let server = server.map(Into::into);
            Source::Prometheus(PrometheusQuery { name: "q".into(), server, query: "x".into() })
        };
        let ask = |metric| Question { namespace: "n", metric, pods: "", max_age: Duration::ZERO };
        let (own, stranger) = (query(None), query(Some("http://stranger")));
        assert_eq!(source.topic(&ask(&stranger)), None, "not allowed, so not asked again");
        let topic = source.topic(&ask(&own)).expect("a topic");
        assert_eq!(source.topic(&ask(&own)).as_ref(), Some(&topic), "one for all who ask the same");
        source.ask(ask(&own)).await;
        let mut announced = Vec::new();
        for _ in 0..4 {
            refreshing.round(&source).await;
            let heard = announcements.next().now_or_never().flatten();
            announced.push(heard == Some(HashSet::from([topic.clone()])));
        }
        // The values are 0 for who asked, and then 0, 1, 1, 2.
        assert_eq!(announced, [false, true, false, true]);
    }
}
