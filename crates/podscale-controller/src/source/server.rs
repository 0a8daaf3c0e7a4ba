//! One server that metrics are read from through the API server: measured, and behind its own
//! circuit breaker.

use super::circuit_breaker::CircuitBreaker;
use super::decode::{Codec, Described};
use crate::metrics::Metrics;
use kube::Client;
use podscale_client::call::{self, About, CallError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

/// A server, such as the one behind `metrics.k8s.io`.
pub(super) struct Server {
    name: &'static str,
    codec: Codec,
    client: Client,
    metrics: Metrics,
    breaker: CircuitBreaker,
    /// How large its last answer was, so that the next one has room beforehand.
    size: AtomicUsize,
}

/// A list of the metrics APIs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct List<T> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    items: Option<Vec<T>>,
}

impl<T> Described for List<T> {
    fn type_meta(&self) -> (&str, &str) {
        (&self.api_version, &self.kind)
    }
}

impl Server {
    /// A server under the name that logs and metrics use.
    pub(super) fn new(
        name: &'static str,
        codec: Codec,
        client: Client,
        metrics: Metrics,
    ) -> Server {
        let (breaker, size) = (CircuitBreaker::new(name), AtomicUsize::new(0));
        Server { name, codec, client, metrics, breaker, size }
    }

    /// The client, for what the breaker does not concern.
    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Reads one answer.
    ///
    /// # Errors
    /// The server refused, did not answer now or a moment ago, or made no sense.
    pub(super) async fn get<T: DeserializeOwned + Described>(
        &self,
        path: &str,
        about: About<'_>,
    ) -> Result<T, CallError> {
        let began = Instant::now();
        let answer = async {
            let answer = call::get_answer(&self.client, path, about, &self.size).await?;
            self.codec.decode(&answer)
        };
        let answer = self.breaker.call(answer).await;
        self.metrics.source_answered(self.name, answer.is_ok(), began.elapsed());
        self.breaker.report(answer.as_ref().err());
        answer
    }

    /// Reads a list, with the error as text.
    ///
    /// # Errors
    /// As [`Server::get`].
    pub(super) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        about: About<'_>,
    ) -> Result<Arc<[T]>, Arc<str>> {
        let list = self.get::<List<T>>(path, about).await;
        list.map(|list| list.items.unwrap_or_default().into()).map_err(|e| e.to_string().into())
    }
}
