//! Tokens by OAuth 2.0's client credentials, fetched when they are needed and kept until they expire.

use super::{Http, add_basic, refusal};
use crate::address::{Address, encode};
use crate::metadata::{AUTH, Fields};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A token is fetched anew so long before it expires.
const EARLY: Duration = Duration::from_secs(10);
/// How long a token is used that does not say when it expires.
const UNLIMITED: Duration = Duration::from_secs(300);
/// No token is used for longer, whatever it says.
const LONGEST_SECONDS: u64 = 24 * 60 * 60;
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Where tokens come from.
#[derive(Clone, Debug)]
pub(crate) struct OAuth {
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
        complete.then_some(OAuth { token_uri, client, secret, scopes, parameters })
    }

    /// What tells token sources apart.
    pub(crate) fn key(&self) -> Vec<&str> {
        let OAuth { token_uri, client, secret, scopes, parameters } = self;
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

/// Fetches tokens and keeps the last one.
pub(crate) struct TokenSource {
    oauth: OAuth,
    http: Http,
    server: Arc<str>,
    kept: Mutex<Option<(Secret, Instant)>>,
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    /// A number of seconds, which some servers write as a text.
    #[serde(default)]
    expires_in: Value,
}

/// Why there is no token, in a word such as `invalid_client`.
#[derive(Default, Deserialize)]
struct Problem {
    #[serde(default)]
    error: String,
}

/// How long a token may be used; none at all is no answer.
fn lasts(expires_in: &Value) -> Duration {
    let seconds = match expires_in {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds.map_or(UNLIMITED, |seconds| Duration::from_secs(seconds.min(LONGEST_SECONDS)))
}

impl TokenSource {
    /// Asks for nothing yet.
    ///
    /// # Errors
    /// The address or the certificates cannot be used.
    pub(crate) fn new(oauth: OAuth, tls: &Tls) -> Result<TokenSource, TriggerError> {
        let wrong =
            |problem: &str| TriggerError::Settings(format!("oauthTokenURI: {problem}").into());
        let address = Address::parse(&oauth.token_uri).map_err(wrong)?;
        if !address.is_http() {
            return Err(wrong("it does not begin with http:// or https://"));
        }
        let (http, server) = (Http::new(&address, tls)?, address.origin().into());
        Ok(TokenSource { oauth, http, server, kept: Mutex::default() })
    }

    /// A token that is valid for a while; all who wait share one that is fetched.
    ///
    /// # Errors
    /// The server gives none.
    pub(crate) async fn token(&self) -> Result<Secret, TriggerError> {
        let mut kept = self.kept.lock().await;
        if let Some((token, until)) = &*kept
            && Instant::now() < *until
        {
            return Ok(token.clone());
        }
        let (token, lasts) = self.fetch().await?;
        *kept = Some((token.clone(), Instant::now() + lasts));
        Ok(token)
    }

    /// Drops the token, since it was refused.
    pub(crate) async fn forget(&self) {
        *self.kept.lock().await = None;
    }

    async fn fetch(&self) -> Result<(Secret, Duration), TriggerError> {
        let mut answer = self.ask(self.oauth.secret.is_some()).await?;
        // Servers want a client's secret in the header or in the body, and refuse the other.
        if !answer.0.is_success() && self.oauth.secret.is_some() {
            answer = self.ask(false).await?;
        }
        let (status, body) = answer;
        if !status.is_success() {
            // Not all of it: a server may repeat what it was sent.
            let Problem { error } = serde_json::from_slice(&body).unwrap_or_default();
            let is_plain =
                |text: &String| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let error = Some(error).filter(is_plain).unwrap_or_default();
            return Err(refusal(&self.server, status, error.as_bytes()));
        }
        // What is wrong with it may hold the token.
        let Answer { access_token, expires_in } = serde_json::from_slice(&body).map_err(|_| {
            TriggerError::answer(format!("{} answers without an access_token", self.server))
        })?;
        Ok((Secret::from(access_token), lasts(&expires_in).saturating_sub(EARLY)))
    }

    async fn ask(&self, in_header: bool) -> Result<(StatusCode, Bytes), TriggerError> {
        let (headers, body) = self.oauth.request(in_header)?;
        let uri = &self.oauth.token_uri;
        self.http.send(&self.server, Method::POST, uri, headers, body).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_last_as_long_as_servers_say_within_a_day() {
        for (said, seconds) in [
            ("3600", 3600),
            ("\"3600\"", 3600),
            ("0", 300),
            ("null", 300),
            ("-5", 300),
            ("9223372036854775807", 86_400),
            ("18446744073709551615", 86_400),
        ] {
            let said: Value = serde_json::from_str(said).expect("JSON");
            assert_eq!(lasts(&said), Duration::from_secs(seconds), "{said}");
        }
    }

    #[test]
    fn sources_of_tokens_differ_by_all_that_is_sent() {
        let source = |audience: &str| OAuth {
            token_uri: "https://login.test".to_owned(),
            client: "worker".to_owned(),
            secret: None,
            scopes: String::new(),
            parameters: vec![("audience".to_owned(), audience.to_owned())],
        };
        assert_ne!(source("a").key(), source("b").key());
    }
}
