//! Reads one kubelet's `/metrics/resource`: within a deadline, and with a bounded answer.

use crate::store::Scrape;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::net::SocketAddr;
use std::time::Duration;
use thiserror::Error;

/// The most text that a kubelet may answer with.
const ANSWER_LIMIT_BYTES: usize = 64 << 20;
/// How long a kubelet may take to answer; wall-clock, since it is the network's.
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a kubelet's metrics could not be had.
#[derive(Debug, Error)]
pub enum ScrapeError {
    /// It gave no answer.
    #[error("no answer within {} s", SCRAPE_TIMEOUT.as_secs())]
    Deadline,
    /// Its address makes no request.
    #[error("the request cannot be made: {0}")]
    Request(#[from] axum::http::Error),
    /// It cannot be reached.
    #[error("cannot be reached: {0}")]
    Connect(#[from] hyper_util::client::legacy::Error),
    /// It refused.
    #[error("answered {0}")]
    Refused(axum::http::StatusCode),
    /// Its answer broke off, or is too long.
    #[error("the answer broke off: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// Its answer is not text.
    #[error("the answer is not text")]
    Text(#[from] std::str::Utf8Error),
}

/// Reads kubelets over connections that are reused. Clones share them.
#[derive(Clone)]
pub struct KubeletReader(HttpClient<HttpConnector, Empty<Bytes>>);

impl Default for KubeletReader {
    fn default() -> KubeletReader {
        KubeletReader(HttpClient::builder(TokioExecutor::new()).build_http())
    }
}

impl KubeletReader {
    /// What the kubelet at an address measures now.
    ///
    /// # Errors
    /// It did not answer in time, refused, or answered something else.
    pub async fn read(&self, address: SocketAddr) -> Result<Scrape, ScrapeError> {
        let answer = tokio::time::timeout(SCRAPE_TIMEOUT, self.fetch(address)).await;
        answer.unwrap_or(Err(ScrapeError::Deadline))
    }

    async fn fetch(&self, address: SocketAddr) -> Result<Scrape, ScrapeError> {
        let request = axum::http::Request::get(format!("http://{address}/metrics/resource"));
        let response = self.0.request(request.body(Empty::new())?).await?;
        if !response.status().is_success() {
            return Err(ScrapeError::Refused(response.status()));
        }
        let body = Limited::new(response.into_body(), ANSWER_LIMIT_BYTES).collect().await;
        let body = body.map_err(ScrapeError::Body)?.to_bytes();
        Ok(Scrape::read(std::str::from_utf8(&body)?))
    }
}
