//! Reads one kubelet: over TLS or without, with a token, within a deadline, and with a bounded answer.

use crate::scrape::Scrape;
use axum::http::header::{AUTHORIZATION, HOST, HeaderValue, USER_AGENT};
use axum::http::{self, Request, StatusCode};
use bytes::Bytes;
use connections::Connections;
use http_body_util::Empty;
use rustls::ClientConfig;
use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use token::TokenError;

mod connections;
#[cfg(test)]
pub(crate) mod tests;
pub mod tls;
mod token;

pub use token::Token;

/// What kubelets know the program by.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("podscale/", env!("CARGO_PKG_VERSION")));
/// The port of kubelets.
pub const PORT: u16 = 10250;
/// How long a kubelet may take to answer, if nothing else is said; wall-clock.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// The most that a kubelet may answer with: several times what its largest node could say.
const ANSWER_LIMIT_BYTES: usize = if cfg!(test) { 1 << 20 } else { 16 << 20 };

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
    #[error("cannot be reached: {}", causes(&**.0))]
    Connect(Box<dyn Error + Send + Sync>),
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Over TLS, with the token.
    #[default]
    Https,
    /// In the clear; the token is not sent.
    Http,
}

/// Where a kubelet is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// How to speak to it.
    pub scheme: Scheme,
    /// Its address or name.
    pub host: Box<str>,
    /// Its port.
    pub port: u16,
}

impl Target {
    /// Host and port, as a request names them.
    fn authority(&self) -> String {
        match self.host.parse() {
            Ok(IpAddr::V6(host)) => format!("[{host}]:{}", self.port),
            _ => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
        };
        write!(f, "{scheme}://{}", self.authority())
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
    connections: Arc<Connections>,
    token: Arc<Token>,
    timeout: Duration,
}

impl KubeletReader {
    /// A reader that has no connections yet.
    #[must_use]
    pub fn new(access: Access) -> KubeletReader {
        let Access { tls, token, timeout } = access;
        let connections = Arc::new(Connections::new(tls, timeout));
        KubeletReader { connections, token: Arc::new(token), timeout }
    }

    /// A kubelet is not read any more: what is kept for it is given up.
    pub fn forget(&self, target: &Target) {
        self.connections.forget(target);
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
        let token = match target.scheme {
            Scheme::Https => self.token.current()?,
            Scheme::Http => None,
        };
        match self.send(target, path, token.clone()).await {
            Err(ScrapeError::Refused(StatusCode::UNAUTHORIZED)) if token.is_some() => {
                let renewed = self.token.read_again()?;
                if renewed == token {
                    return Err(ScrapeError::Refused(StatusCode::UNAUTHORIZED));
                }
                self.send(target, path, renewed).await
            }
            answer => answer,
        }
    }

    async fn send(
        &self,
        target: &Target,
        path: &str,
        token: Option<HeaderValue>,
    ) -> Result<Bytes, ScrapeError> {
        let host = HeaderValue::try_from(target.authority()).map_err(http::Error::from)?;
        let request = Request::get(path).header(HOST, host).header(USER_AGENT, AGENT);
        let mut request = request.body(Empty::new())?;
        if let Some(token) = token {
            request.headers_mut().insert(AUTHORIZATION, token);
        }
        let (status, body) = self.connections.send(target, request, ANSWER_LIMIT_BYTES).await?;
        if status.is_success() { Ok(body) } else { Err(ScrapeError::Refused(status)) }
    }
}
