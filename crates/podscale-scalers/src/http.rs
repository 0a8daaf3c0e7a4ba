//! Requests over HTTP to servers that triggers share.

pub(crate) mod auth;
pub(crate) mod connection;
pub(crate) mod file;
pub(crate) mod heard;
pub(crate) mod oauth;
#[cfg(test)]
mod tests;
pub(crate) mod token;

use crate::address::Address;
use crate::server::CONCURRENT_CALLS;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use bytes::Bytes;
use heard::Hearing;
use http::header::{ACCEPT, AUTHORIZATION, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// The largest answer.
const MOST_BYTES: usize = 8 << 20;
/// How much of an answer that says why not is shown.
const EXCERPT_CHARS: usize = 200;
/// How sources introduce themselves.
const AGENT: HeaderValue =
    HeaderValue::from_static(concat!("podscale/", env!("CARGO_PKG_VERSION")));

/// What sends requests to one server.
#[derive(Clone)]
pub(crate) struct Http(Client<Hearing<HttpsConnector<HttpConnector>>, Full<Bytes>>);

impl Http {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub(crate) fn new(address: &Address, tls: &Tls) -> Result<Http, TriggerError> {
        let config = if address.scheme == "https" { tls.config()? } else { without_tls()? };
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let builder = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http();
        let connector = Hearing::new(builder.enable_http1().wrap_connector(tcp));
        let mut builder = Client::builder(TokioExecutor::new());
        // Many triggers are polled at the same moment, and again at the next one: as many are kept as are used then.
        builder.pool_max_idle_per_host(CONCURRENT_CALLS);
        builder.pool_idle_timeout(Duration::from_secs(60));
        Ok(Http(builder.build(connector)))
    }

    /// Asks for what is at an address, and gives the status and the body.
    ///
    /// # Errors
    /// There is no answer, or one that is too large or names another address.
    pub(crate) async fn get(
        &self,
        server: &Arc<str>,
        uri: &str,
        headers: HeaderMap,
    ) -> Result<(StatusCode, Bytes), TriggerError> {
        self.send(server, Method::GET, uri, headers, Bytes::new()).await
    }

    /// Sends a request, and gives the status and the body.
    ///
    /// # Errors
    /// As [`Http::get`].
    pub(crate) async fn send(
        &self,
        server: &Arc<str>,
        method: Method,
        uri: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), TriggerError> {
        let request = Request::builder().method(method).uri(uri).body(Full::new(body));
        // Not what the problem is: the address may hold a key.
        let mut request = request.map_err(|_| {
            TriggerError::Settings(format!("{server} cannot be asked: not an address").into())
        })?;
        request.headers_mut().insert(USER_AGENT, AGENT);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("*/*"));
        request.headers_mut().extend(headers);
        let unreachable = |problem: String| TriggerError::unreachable(server.clone(), problem);
        let answer = self.0.request(request).await.map_err(|error| unreachable(cause(&error)))?;
        let status = answer.status();
        if status.is_redirection() {
            let location = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let location = location.and_then(|text| text.split('?').next()).unwrap_or_default();
            return Err(TriggerError::answer(format!(
                "{server} answers {} and names another address, {location:?}: use that one",
                status.as_u16()
            )));
        }
        match Limited::new(answer.into_body(), MOST_BYTES).collect().await {
            Ok(body) => Ok((status, body.to_bytes())),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                Err(TriggerError::answer(format!("{server} answers more than {MOST_BYTES} bytes")))
            }
            Err(error) => Err(unreachable(cause(&*error))),
        }
    }
}

/// For servers that speak no TLS: nobody is trusted.
///
/// # Errors
/// Never: there is always a version of TLS.
pub(crate) fn without_tls() -> Result<ClientConfig, TriggerError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| TriggerError::Settings(error.to_string().into()))?;
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// The innermost cause: the others only say that there is one.
pub(crate) fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// The error that a status stands for, with the beginning of what came with it. A server that is overloaded or
/// has no backend is out; one that refuses is not.
pub(crate) fn refusal(server: &Arc<str>, status: StatusCode, body: &[u8]) -> TriggerError {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * EXCERPT_CHARS)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    let excerpt: String = words.join(" ").chars().take(EXCERPT_CHARS).collect();
    let about = if excerpt.is_empty() { String::new() } else { format!(": {excerpt}") };
    let problem = format!("it answers {}{about}", status.as_u16());
    match status.as_u16() {
        401 | 403 => TriggerError::Unauthorized { server: server.clone(), problem: problem.into() },
        502..=504 => TriggerError::Unreachable { server: server.clone(), problem: problem.into() },
        _ => TriggerError::answer(format!("{server} gives no value: {problem}")),
    }
}

/// Adds a header whose value is not shown in any log.
///
/// # Errors
/// It has characters that no header can have.
pub(crate) fn add_secret(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: &str,
) -> Result<(), TriggerError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        let problem = format!("the value for the header {name} has characters that none can have");
        TriggerError::Settings(problem.into())
    })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(())
}

/// Adds a user's name and password.
///
/// # Errors
/// Never: what stands for them is always a header.
pub(crate) fn add_basic(
    headers: &mut HeaderMap,
    user: &str,
    password: &str,
) -> Result<(), TriggerError> {
    use base64::Engine;
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    add_secret(headers, AUTHORIZATION, &format!("Basic {encoded}"))
}
