//! Reads one kubelet: over TLS or without, with a token, within a deadline, and with a bounded answer.

use crate::scrape::Scrape;
use axum::http::header::{AUTHORIZATION, HeaderValue};
use axum::http::{self, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use token::TokenError;

#[cfg(test)]
pub(crate) mod tests;
pub mod tls;
mod token;

pub use token::Token;

/// The port of kubelets.
pub const PORT: u16 = 10250;
/// How long a kubelet may take to answer, if nothing else is said; wall-clock.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that a kubelet may answer with: several times what its largest node could say.
const ANSWER_LIMIT_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };
/// How long a connection is kept that is not used; wall-clock.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// Why a kubelet's metrics could not be had.
#[derive(Debug, Error)]
pub enum ScrapeError {
    /// It gave no answer, or not all of it.
    #[error("no complete answer within {0:?}")]
    Deadline(Duration),
    /// Its address makes no request.
    #[error("the request cannot be made: {0}")]
    Request(#[from] http::Error),
    /// There is no token to show it.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// It cannot be reached, or is not who it should be.
    #[error("cannot be reached: {}", causes(.0))]
    Connect(#[from] legacy::Error),
    /// It refused.
    #[error("answered {0}")]
    Refused(StatusCode),
    /// Its answer broke off, or is too long.
    #[error("the answer broke off: {}", causes(&**.0))]
    Body(Box<dyn Error + Send + Sync>),
    /// Its answer is not text.
    #[error("the answer is not text")]
    Text(#[from] std::str::Utf8Error),
    /// Its answer is not JSON of the plain form.
    #[error("the answer cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// It answered that it could not measure.
    #[error("the kubelet could not measure its containers")]
    NotMeasured,
    /// Its answer has nothing in it that it should.
    #[error("the answer has no metrics of a kubelet")]
    Nothing,
}

/// An error and its causes in one line, without repetitions.
fn causes(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let words = next.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = next.source();
    }
    text
}

/// Whether a kubelet is spoken to over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// Over TLS, with the token.
    #[default]
    Https,
    /// In the clear; the token is not sent.
    Http,
}

/// Where a kubelet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// How to speak to it.
    pub scheme: Scheme,
    /// Its address or name.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
        };
        match self.host.parse() {
            Ok(IpAddr::V6(host)) => write!(f, "{scheme}://[{host}]:{}", self.port),
            _ => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

/// In which form a kubelet says what its pods use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// `/metrics/resource`, as all of Kubernetes' own do.
    #[default]
    Exposition,
    /// `/pods` and `/node` in plain JSON.
    Plain,
}

/// How kubelets are spoken to.
pub struct Access {
    /// Who is trusted to be a kubelet.
    pub tls: ClientConfig,
    /// What they are shown.
    pub token: Token,
    /// How long one may take to answer; wall-clock.
    pub timeout: Duration,
}

/// Reads kubelets over connections that are kept. Clones share them.
#[derive(Clone)]
pub struct KubeletReader {
    client: legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    token: Arc<Token>,
    timeout: Duration,
}

impl KubeletReader {
    /// A reader that has no connections yet.
    #[must_use]
    pub fn new(access: Access) -> KubeletReader {
        let Access { tls, token, timeout } = access;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(1)
            .build(connector);
        KubeletReader { client, token: Arc::new(token), timeout }
    }

    /// What a kubelet measures now, in the form that it spoke last; in the other one if it does not
    /// any more.
    ///
    /// # Errors
    /// It did not answer in time, refused, or answered something else.
    pub async fn read(&self, target: &Target, form: Form) -> Result<(Scrape, Form), ScrapeError> {
        let answer = tokio::time::timeout(self.timeout, self.read_any(target, form)).await;
        let (scrape, form) = answer.unwrap_or(Err(ScrapeError::Deadline(self.timeout)))?;
        if scrape.failed() {
            return Err(ScrapeError::NotMeasured);
        }
        if scrape.is_empty() {
            return Err(ScrapeError::Nothing);
        }
        Ok((scrape, form))
    }

    async fn read_any(&self, target: &Target, form: Form) -> Result<(Scrape, Form), ScrapeError> {
        let other = match form {
            Form::Exposition => Form::Plain,
            Form::Plain => Form::Exposition,
        };
        match self.read_form(target, form).await {
            Err(ScrapeError::Refused(StatusCode::NOT_FOUND)) => {
                Ok((self.read_form(target, other).await?, other))
            }
            scrape => Ok((scrape?, form)),
        }
    }

    async fn read_form(&self, target: &Target, form: Form) -> Result<Scrape, ScrapeError> {
        match form {
            Form::Exposition => {
                let text = self.get(target, "/metrics/resource").await?;
                Ok(Scrape::read(std::str::from_utf8(&text)?))
            }
            Form::Plain => {
                let pods = self.get(target, "/pods").await?;
                let node = match self.get(target, "/node").await {
                    Err(ScrapeError::Refused(StatusCode::NOT_FOUND)) => None,
                    node => Some(node?),
                };
                Ok(Scrape::read_plain(&pods, node.as_deref())?)
            }
        }
    }

    /// One answer. If the token is refused and there is a new one, it is shown that.
    async fn get(&self, target: &Target, path: &str) -> Result<Bytes, ScrapeError> {
        let url = format!("{target}{path}");
        let token = match target.scheme {
            Scheme::Https => self.token.current()?,
            Scheme::Http => None,
        };
        match self.send(&url, token.clone()).await {
            Err(ScrapeError::Refused(StatusCode::UNAUTHORIZED)) if token.is_some() => {
                let renewed = self.token.read_again()?;
                if renewed == token {
                    return Err(ScrapeError::Refused(StatusCode::UNAUTHORIZED));
                }
                self.send(&url, renewed).await
            }
            answer => answer,
        }
    }

    async fn send(&self, url: &str, token: Option<HeaderValue>) -> Result<Bytes, ScrapeError> {
        let mut request = Request::get(url).body(Empty::new())?;
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        let response = self.client.request(request).await?;
        if !response.status().is_success() {
            return Err(ScrapeError::Refused(response.status()));
        }
        let body = Limited::new(response.into_body(), ANSWER_LIMIT_BYTES).collect().await;
        Ok(body.map_err(ScrapeError::Body)?.to_bytes())
    }
}
