//! A server that is asked over HTTP, with what its requests carry.

use super::Http;
use super::auth::HttpAuth;
use super::token::Proof;
use crate::address::Address;
use crate::context::Context;
use crate::server::Server;
use crate::trigger::{ServerKey, TriggerError};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;

/// What sends requests with credentials.
pub(crate) struct HttpConnection {
    http: Http,
    auth: HttpAuth,
    proof: Option<Arc<dyn Proof>>,
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
    let oauth = auth.oauth.clone().map(|oauth| oauth.share(context, &auth.tls)).transpose()?;
    share_with(context, key, address, auth, oauth.map(|tokens| tokens as Arc<dyn Proof>))
}

/// As [`share`], with a proof that is made for each request.
///
/// # Errors
/// The certificates cannot be used.
pub(crate) fn share_with(
    context: &Context,
    key: &ServerKey,
    address: &Address,
    auth: &HttpAuth,
    proof: Option<Arc<dyn Proof>>,
) -> Result<HttpServer, TriggerError> {
    context.connections.share(key, || {
        let http = Http::new(address, &auth.tls)?;
        let connection = HttpConnection { http, auth: auth.clone(), proof };
        Ok(Server::new(key, context.freshness, connection))
    })
}

impl HttpConnection {
    /// Asks for what is at an address. What is refused of it is fetched anew, once.
    ///
    /// # Errors
    /// As [`Http::get`].
    pub(crate) async fn get(
        &self,
        server: &Arc<str>,
        uri: &str,
        more: &HeaderMap,
    ) -> Result<(StatusCode, Bytes), TriggerError> {
        let answer = self.http.get(server, uri, self.headers(uri, more).await?).await?;
        let refuses = |proof: &&Arc<dyn Proof>| proof.is_refused(answer.0, &answer.1);
        let Some(proof) = self.proof.as_ref().filter(refuses) else { return Ok(answer) };
        proof.forget().await;
        self.http.get(server, uri, self.headers(uri, more).await?).await
    }

    async fn headers(&self, uri: &str, more: &HeaderMap) -> Result<HeaderMap, TriggerError> {
        let mut headers = self.auth.headers()?;
        if let Some(proof) = &self.proof {
            headers.extend(proof.headers(uri).await?);
        }
        headers.extend(more.clone());
        Ok(headers)
    }
}
