//! A server that is asked over HTTP, with what its requests carry.

use super::auth::HttpAuth;
use super::oauth::TokenSource;
use super::{Http, add_secret};
use crate::address::Address;
use crate::context::Context;
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError};
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// What sends requests with credentials.
pub(crate) struct HttpConnection {
    http: Http,
    auth: HttpAuth,
    tokens: Option<TokenSource>,
}

/// A server that triggers share.
pub(crate) type HttpServer = Arc<Server<HttpConnection>>;

/// The key of a server that is asked over HTTP.
pub(crate) fn server_key(kind: &str, address: &Address, auth: &HttpAuth) -> ServerKey {
    ServerKey::new(kind, &address.origin(), &auth.key())
}

/// The server of a key: the one that others use, or a new one.
///
/// # Errors
/// The certificates or the address of the token server cannot be used.
pub(crate) fn share(
    context: &Context,
    key: &ServerKey,
    address: &Address,
    auth: &HttpAuth,
) -> Result<HttpServer, TriggerError> {
    context.connections.share(key, || {
        let connection = HttpConnection::new(address, &auth.tls, auth.clone())?;
        Ok(Server::new(key, context.freshness, connection))
    })
}

impl HttpConnection {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// As [`share`].
    pub(crate) fn new(
        address: &Address,
        tls: &Tls,
        auth: HttpAuth,
    ) -> Result<HttpConnection, TriggerError> {
        let tokens = auth.oauth.clone().map(|oauth| TokenSource::new(oauth, tls)).transpose()?;
        Ok(HttpConnection { http: Http::new(address, tls)?, auth, tokens })
    }

    /// Asks for what is at an address. A token that is refused is fetched anew, once.
    ///
    /// # Errors
    /// As [`Http::get`].
    pub(crate) async fn get(
        &self,
        server: &Arc<str>,
        uri: &str,
        more: &HeaderMap,
    ) -> Result<(StatusCode, Bytes), TriggerError> {
        let answer = self.http.get(server, uri, self.headers(more).await?).await?;
        let Some(tokens) = self.tokens.as_ref().filter(|_| answer.0 == StatusCode::UNAUTHORIZED)
        else {
            return Ok(answer);
        };
        tokens.forget().await;
        self.http.get(server, uri, self.headers(more).await?).await
    }

    async fn headers(&self, more: &HeaderMap) -> Result<HeaderMap, TriggerError> {
        let mut headers = self.auth.headers()?;
        if let Some(tokens) = &self.tokens {
            let token = tokens.token().await?;
            add_secret(&mut headers, AUTHORIZATION, &format!("Bearer {}", token.expose()))?;
        }
        headers.extend(more.clone());
        Ok(headers)
    }
}
