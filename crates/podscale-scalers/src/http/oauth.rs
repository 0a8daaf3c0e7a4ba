//! Tokens by OAuth 2.0's client credentials.

use super::token::{self, Grant, TokenSource};
use super::{Http, add_basic};
use crate::address::{Address, encode};
use crate::context::Context;
use crate::metadata::{AUTH, Fields};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Where tokens come from.
#[derive(Clone, Debug)]
pub(crate) struct OAuth {
    /// What the authentication calls the address.
    parameter: &'static str,
    token_uri: String,
    client: String,
    secret: Option<Secret>,
    scopes: String,
    parameters: Vec<(String, String)>,
}

impl OAuth {
    /// Reads the parameters of the authentication, if both of the necessary ones are there.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<OAuth> {
        let token_uri = fields.field(&["oauthTokenURI"], AUTH).text();
        let client = fields.field(&["clientID"], AUTH).text();
        let secret = fields.field(&["clientSecret"], AUTH).secret();
        let scopes = fields.field(&["scopes", "scope"], AUTH).list().join(" ");
        let parameters = fields.field(&["endpointParams"], AUTH).text();
        let parameters = form_urlencoded::parse(parameters.as_bytes()).into_owned().collect();
        let complete = !token_uri.is_empty() && !client.is_empty();
        let parameter = "oauthTokenURI";
        complete.then_some(OAuth { parameter, token_uri, client, secret, scopes, parameters })
    }

    /// A client that is named otherwise in the authentication.
    pub(crate) fn of_client(
        (parameter, token_uri): (&'static str, String),
        client: &Secret,
        secret: Secret,
        scopes: &[String],
    ) -> OAuth {
        let (client, secret, parameters) = (client.expose().to_owned(), Some(secret), Vec::new());
        OAuth { parameter, token_uri, client, secret, scopes: scopes.join(" "), parameters }
    }

    /// What tells token sources apart.
    pub(crate) fn key(&self) -> Vec<&str> {
        let OAuth { token_uri, client, secret, scopes, parameters, .. } = self;
        let secret = secret.as_ref().map_or("", Secret::expose);
        let mut key = vec![token_uri.as_str(), client, secret, scopes];
        key.extend(parameters.iter().flat_map(|(name, value)| [name.as_str(), value]));
        key
    }
}

impl OAuth {
    /// The request for a token, with the client's secret in the header or in the body.
    fn request(&self, in_header: bool) -> Result<(HeaderMap, Bytes), TriggerError> {
        let OAuth { client, secret, scopes, parameters, .. } = self;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, FORM);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        if !scopes.is_empty() {
            form.append_pair("scope", scopes);
        }
        form.extend_pairs(parameters);
        let secret = secret.as_ref().map(Secret::expose);
        if in_header {
            add_basic(&mut headers, &encode(client), &encode(secret.unwrap_or_default()))?;
        } else {
            form.append_pair("client_id", client);
            form.extend_pairs(secret.map(|secret| ("client_secret", secret)));
        }
        Ok((headers, Bytes::from(form.finish())))
    }
}

/// Tokens for a client, by its secret.
pub(crate) struct ClientCredentials {
    oauth: OAuth,
    http: Http,
    server: Arc<str>,
}

impl OAuth {
    /// Where the tokens come from that all triggers with the same client share. Asks for nothing yet.
    ///
    /// # Errors
    /// The address or the certificates cannot be used.
    pub(crate) fn share(
        self,
        context: &Context,
        tls: &Tls,
    ) -> Result<Arc<TokenSource<ClientCredentials>>, TriggerError> {
        let parameter = self.parameter;
        let wrong =
            |problem: &str| TriggerError::Settings(format!("{parameter}: {problem}").into());
        let address = Address::parse(&self.token_uri).map_err(wrong)?;
        if !address.is_http() {
            return Err(wrong("it does not begin with http:// or https://"));
        }
        let mut key = self.key();
        key.extend(tls.key());
        let key = ServerKey::new("oauth", &address.origin(), &key);
        context.connections.share(&key, || {
            let (http, server) = (Http::new(&address, tls)?, address.origin().into());
            Ok(TokenSource::new(ClientCredentials { oauth: self, http, server }))
        })
    }
}

impl ClientCredentials {
    async fn ask(&self, in_header: bool) -> Result<(StatusCode, Bytes), TriggerError> {
        let (headers, body) = self.oauth.request(in_header)?;
        let uri = &self.oauth.token_uri;
        self.http.send(&self.server, Method::POST, uri, headers, body).await
    }
}

impl Grant for ClientCredentials {
    fn fetch(&self) -> BoxFuture<'_, Result<(Secret, Duration), TriggerError>> {
        Box::pin(async {
            let has_secret = self.oauth.secret.is_some();
            let mut answer = self.ask(has_secret).await?;
            // Servers want a client's secret in the header or in the body, and refuse the other.
            if !answer.0.is_success() && has_secret {
                answer = self.ask(false).await?;
            }
            token::read(&self.server, answer.0, &answer.1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_tokens_differ_by_all_that_is_sent() {
        let source = |audience: &str| OAuth {
            parameter: "oauthTokenURI",
            token_uri: "https://login.test".to_owned(),
            client: "worker".to_owned(),
            secret: None,
            scopes: String::new(),
            parameters: vec![("audience".to_owned(), audience.to_owned())],
        };
        assert_ne!(source("a").key(), source("b").key());
    }
}
