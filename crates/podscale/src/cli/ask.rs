//! Asks a running controller, or a running demo, through its admin port.

use axum::body::Body;
use axum::http::{Request, StatusCode, Uri};
use clap::Args;
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use podscale_client::call::segment;
use podscale_client::cause::innermost;
use podscale_controller::dashboard::{DecisionView, Row};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a query may take.
const DEADLINE: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const LIMIT_BYTES: usize = 256 * 1024 * 1024;

/// Where the controller is.
#[derive(Clone, Debug, Args)]
#[group(id = "ask")]
pub struct Arguments {
    /// The admin address of the controller, or the dashboard of a demo.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9090", env = "PODSCALE_ADMIN", value_parser = address)]
    admin: String,
}

/// An address without anything behind it.
fn address(text: &str) -> Result<String, String> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let uri: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(_)) => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("not an address such as http://127.0.0.1:9090".to_owned()),
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody is there.
    #[error(
        "cannot reach {admin}: {why}\n  Is the controller running? In a cluster the replica that leads is \
         reached with:\n  kubectl --namespace podscale port-forward \"pod/$(kubectl --namespace podscale get \
         lease podscale --output jsonpath='{{.spec.holderIdentity}}' | cut -d_ -f1)\" 9090"
    )]
    Unreachable {
        /// Where.
        admin: String,
        /// Why not.
        why: String,
    },
    /// Somebody is there who does not know.
    #[error("{0}")]
    Unknown(String),
    /// Somebody else is there.
    #[error("{admin} does not answer like Podscale: {why}")]
    Unexpected {
        /// Where.
        admin: String,
        /// What was not expected.
        why: String,
    },
}

/// All autoscalers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutoscalerList {
    /// What time it is there, in milliseconds since 1970.
    pub now: i64,
    /// In the order of their names.
    pub autoscalers: Vec<Row>,
}

/// One autoscaler with what it did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AutoscalerDetail {
    /// What time it is there, in milliseconds since 1970.
    pub now: i64,
    /// The autoscaler.
    pub autoscaler: Row,
    /// What it did.
    pub past: Past,
}

/// What an autoscaler did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Past {
    /// Its latest decision.
    pub latest: DecisionView,
    /// The decisions that are worth showing, oldest first.
    pub decisions: Vec<DecisionView>,
}

/// Asks one admin address.
#[derive(Clone)]
pub struct AdminClient {
    admin: String,
    client: Client<HttpConnector, Body>,
}

impl AdminClient {
    /// Asks where the flags say.
    #[must_use]
    pub fn new(arguments: &Arguments) -> AdminClient {
        let client = Client::builder(TokioExecutor::new()).build_http();
        AdminClient { admin: arguments.admin.clone(), client }
    }

    /// Where it asks.
    #[must_use]
    pub fn admin(&self) -> &str {
        &self.admin
    }

    /// All autoscalers.
    ///
    /// # Errors
    /// Nobody is there, or somebody else.
    pub async fn list(&self) -> Result<AutoscalerList, AskError> {
        self.get("/api/autoscalers").await
    }

    /// One autoscaler, by the key of its view: `namespace/name`, with the resource behind it for other
    /// kinds than HorizontalPodAutoscaler.
    ///
    /// # Errors
    /// It is not known there, nobody is there, or somebody else.
    pub async fn detail(&self, key: &str) -> Result<AutoscalerDetail, AskError> {
        self.get(&path_of(key)).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, AskError> {
        let unreachable = |why: String| AskError::Unreachable { admin: self.admin.clone(), why };
        let unexpected = |why: String| AskError::Unexpected { admin: self.admin.clone(), why };
        let request = Request::get(format!("{}{path}", self.admin)).body(Body::empty());
        let request = request.map_err(|error| unreachable(error.to_string()))?;
        let exchange = async {
            let answer = self.client.request(request).await;
            let answer = answer.map_err(|error| unreachable(innermost(&error)))?;
            let code = answer.status();
            let body = Limited::new(answer.into_body(), LIMIT_BYTES).collect().await;
            let body = body.map_err(|error| unexpected(error.to_string()))?;
            Ok((code, body.to_bytes()))
        };
        let late = |_| unreachable(format!("no answer within {} s", DEADLINE.as_secs()));
        let (code, body) = tokio::time::timeout(DEADLINE, exchange).await.map_err(late)??;
        if code == StatusCode::NOT_FOUND
            && let Ok(Refusal { error }) = serde_json::from_slice(&body)
        {
            return Err(AskError::Unknown(error));
        }
        if !code.is_success() {
            return Err(unexpected(format!("it answers {path} with {code}")));
        }
        serde_json::from_slice(&body).map_err(|error| unexpected(error.to_string()))
    }
}

/// Where the autoscaler of a key is.
fn path_of(key: &str) -> String {
    let mut parts = key.splitn(3, '/');
    let mut part = || parts.next().map(segment);
    let (namespace, name) = (part().unwrap_or_default(), part().unwrap_or_default());
    let kind = part().map(|resource| format!("?kind={resource}")).unwrap_or_default();
    format!("/api/autoscalers/{namespace}/{name}{kind}")
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

/// How long ago a time was, in few words.
#[must_use]
pub fn ago(now_milliseconds: i64, then: podscale_core::Time) -> String {
    let seconds = now_milliseconds.saturating_sub(then.0.div_euclid(1000)).max(0) / 1000;
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podscale_core::Time;

    #[test]
    fn keys_are_paths() {
        for (key, path) in [
            ("shop/web", "/api/autoscalers/shop/web"),
            ("shop/we b", "/api/autoscalers/shop/we%20b"),
            ("shop/web/things.example.com", "/api/autoscalers/shop/web?kind=things.example.com"),
        ] {
            assert_eq!(path_of(key), path);
        }
    }

    #[test]
    fn addresses_and_ages() {
        for (text, expected) in [
            ("127.0.0.1:9090", Ok("http://127.0.0.1:9090")),
            ("http://podscale.podscale:9090/", Ok("http://podscale.podscale:9090")),
            ("ftp://x", Err(())),
            ("http://", Err(())),
        ] {
            assert_eq!(address(text).map_err(|_| ()), expected.map(str::to_owned), "{text}");
        }
        for (seconds, expected) in
            [(0, "0s"), (-5, "0s"), (119, "119s"), (121, "2m"), (7_300, "2h"), (200_000, "2d")]
        {
            let now = 1_700_000_000_000i64;
            assert_eq!(ago(now, Time((now - seconds * 1000) * 1000)), expected);
        }
    }
}
