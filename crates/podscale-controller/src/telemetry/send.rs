//! Sends encoded telemetry to a collector: OTLP over HTTP, with retries where these can help, and never
//! for longer than the timeout.

use super::TelemetryError;
use super::settings::Destination;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("podscale/", env!("CARGO_PKG_VERSION"), " OTLP-exporter"));
/// The largest answer that is read.
const ANSWER_LIMIT_BYTES: usize = 64 * 1024;
/// The backoff before the first retry; each is twice the one before.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(4);

/// Why a batch is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SendError {
    /// The collector refused it.
    #[error("the collector answered {0}")]
    Refused(StatusCode),
    /// There was no answer.
    #[error("{0}")]
    Unreachable(String),
    /// The answer took too long.
    #[error("no answer within {} ms", .0.as_millis())]
    Late(Duration),
}

/// What a collector accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Accepted {
    /// How many items it rejected.
    pub rejected: u64,
    /// Its message about that.
    pub message: String,
}

/// The client of a collector for one signal.
pub(super) struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    pub(super) to: Destination,
}

impl Sender {
    /// Prepares the client; connects to nothing yet.
    ///
    /// # Errors
    /// Certificates cannot be read.
    pub(super) fn new(to: Destination) -> Result<Sender, TelemetryError> {
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls(&to)?);
        let connector = builder.https_or_http().enable_http1().build();
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(Sender { client, to })
    }

    /// Sends one encoded batch.
    ///
    /// # Errors
    /// The collector did not take it in time.
    pub(super) async fn send(&self, body: Vec<u8>) -> Result<Accepted, SendError> {
        let end = Instant::now() + self.to.timeout;
        let body = Bytes::from(if self.to.gzip { gzip(&body) } else { body });
        let mut backoff = FIRST_BACKOFF;
        loop {
            let answer = timeout_at(end, self.try_once(body.clone())).await;
            let (error, wanted) = match answer {
                Err(_) => return Err(SendError::Late(self.to.timeout)),
                Ok(Ok(accepted)) => return Ok(accepted),
                Ok(Err(Failure { error, retry_after: Some(wanted) })) => (error, wanted),
                Ok(Err(Failure { error, retry_after: None })) => return Err(error),
            };
            let wait = backoff.max(wanted);
            if Instant::now() + wait >= end {
                return Err(error);
            }
            sleep(wait).await;
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        }
    }

    async fn try_once(&self, body: Bytes) -> Result<Accepted, Failure> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.to.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        headers.insert(USER_AGENT, AGENT);
        if self.to.gzip {
            headers.insert(CONTENT_ENCODING, GZIP);
        }
        headers.extend(self.to.headers.clone());
        let answer = self.client.request(request).await.map_err(|e| Failure::of_network(&e))?;
        let (status, wanted) = (answer.status(), retry_after(answer.headers()));
        let body = Limited::new(answer.into_body(), ANSWER_LIMIT_BYTES).collect().await;
        if status.is_success() {
            // What was accepted stays accepted, however the answer ends.
            return Ok(body.map(|body| accepted(body.to_bytes())).unwrap_or_default());
        }
        let retry_after = matches!(status.as_u16(), 429 | 502 | 503 | 504).then_some(wanted);
        Err(Failure { error: SendError::Refused(status), retry_after })
    }
}

/// An attempt that failed, and after how long it may be retried, if at all.
struct Failure {
    error: SendError,
    retry_after: Option<Duration>,
}

impl Failure {
    fn of_network(error: &dyn std::error::Error) -> Failure {
        let mut cause = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        Failure {
            error: SendError::Unreachable(cause.to_string()),
            retry_after: Some(Duration::ZERO),
        }
    }
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or_default())
}

/// The answers for all three signals have the same form.
fn accepted(body: Bytes) -> Accepted {
    let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    let part = answer.partial_success.unwrap_or_default();
    let rejected = u64::try_from(part.rejected_spans).unwrap_or_default();
    Accepted { rejected, message: part.error_message }
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing into memory does not fail.
    let _ = encoder.write_all(body);
    encoder.finish().unwrap_or_default()
}

/// How TLS is used, if it is.
fn tls(to: &Destination) -> Result<ClientConfig, TelemetryError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| TelemetryError { origin: "TLS".to_owned(), problem: error.to_string() })?;
    let builder = match &to.roots {
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(file)? {
                roots.add(certificate).map_err(|error| unusable(file, &error))?;
            }
            builder.with_root_certificates(roots)
        }
        None if to.url.scheme_str() == Some("https") => {
            builder.with_native_roots().map_err(|error| TelemetryError {
                origin: to.url.to_string(),
                problem: format!(
                    "no certificates to trust ({error}); name a file of them in \
                     OTEL_EXPORTER_OTLP_CERTIFICATE"
                ),
            })?
        }
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    match &to.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|e| unusable(key, &e))?;
            builder.with_client_auth_cert(chain, secret).map_err(|e| unusable(key, &e))
        }
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TelemetryError> {
    let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    let found: Vec<_> = found.map_err(|error| unusable(file, &error))?;
    if found.is_empty() {
        return Err(unusable(file, &"it holds no certificate"));
    }
    Ok(found)
}

fn unusable(file: &Path, why: &dyn std::fmt::Display) -> TelemetryError {
    TelemetryError {
        origin: "OTEL_EXPORTER_OTLP_CERTIFICATE".to_owned(),
        problem: format!("cannot use {}: {why}", file.display()),
    }
}

#[cfg(test)]
mod tests;
