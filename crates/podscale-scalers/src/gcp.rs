//! Google's cloud: tokens for the controller's own identity, or for a service account whose key a trigger brings along.

mod credentials;
#[cfg(test)]
mod tests;

use crate::address::Address;
use crate::context::{Clock, Context, Variables};
use crate::http::token::{self, Grant, TokenSource};
use crate::http::{Http, file};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError};
use bytes::Bytes;
use credentials::{Credentials, External, KeyOfAccount};
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// May read what is measured.
pub(crate) const MONITORING: &str = "https://www.googleapis.com/auth/monitoring.read";
/// What somebody's token must be for who takes on a service account with it.
const PLATFORM: &str = "https://www.googleapis.com/auth/cloud-platform";
const FILE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// What gives tokens to whoever runs in Google's cloud.
const METADATA_HOST: &str = "metadata.google.internal";
const FLAVOR: HeaderName = HeaderName::from_static("metadata-flavor");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// How long a token of a service account that is taken on lasts.
const LENT: Duration = Duration::from_secs(3600);

/// Whose tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// The controller's own.
    Controller,
    /// That of a key in JSON.
    Key(Secret),
}

impl Account {
    /// What tells it from others.
    pub(crate) fn key(&self) -> [&str; 2] {
        match self {
            Account::Controller => ["controller", ""],
            Account::Key(key) => ["key", key.expose()],
        }
    }
}

/// Tokens for one account, to be used for one purpose.
pub(crate) struct Google {
    account: Account,
    scope: &'static str,
    variables: Variables,
    clock: Clock,
}

/// The tokens of an account, which others use as well. Asks nobody yet.
///
/// # Errors
/// Its key is none.
pub(crate) fn share(
    context: &Context,
    account: &Account,
    scope: &'static str,
) -> Result<Arc<TokenSource<Google>>, TriggerError> {
    if let Account::Key(key) = account {
        credentials::key_of_trigger(key)?;
    }
    let [kind, key] = account.key();
    let key = ServerKey::new("gcp", "googleapis.com", &[kind, key, scope]);
    context.connections.share(&key, || {
        let (variables, clock) = (context.variables.clone(), context.clock.clone());
        Ok(TokenSource::new(Google { account: account.clone(), scope, variables, clock }))
    })
}

impl Grant for Google {
    fn fetch(&self) -> BoxFuture<'_, Result<(Secret, Duration), TriggerError>> {
        Box::pin(async {
            let credentials = match &self.account {
                Account::Key(key) => Credentials::Key(credentials::key_of_trigger(key)?),
                Account::Controller => match self.variable(FILE) {
                    Some(path) => credentials::read(FILE, &file::read(FILE, &path).await?)?,
                    None => return self.of_machine().await,
                },
            };
            match credentials {
                Credentials::Key(key) => self.by_key(&key).await,
                Credentials::External(external) => self.by_exchange(&external).await,
            }
        })
    }
}

impl Google {
    fn variable(&self, name: &str) -> Option<Secret> {
        (self.variables)(name).filter(|value| !value.is_empty())
    }

    /// A token of the service account that the machine or the pod has.
    async fn of_machine(&self) -> Result<(Secret, Duration), TriggerError> {
        let host = self.variable("GCE_METADATA_HOST");
        let host = host.as_ref().map_or(METADATA_HOST, Secret::expose);
        let scope = crate::address::encode(self.scope);
        let uri = format!(
            "http://{host}/computeMetadata/v1/instance/service-accounts/default/token?scopes={scope}"
        );
        let mut headers = HeaderMap::new();
        headers.insert(FLAVOR, HeaderValue::from_static("Google"));
        let (server, status, body) = send(Method::GET, &uri, headers, Bytes::new()).await?;
        token::read(&server, status, &body)
    }

    /// A token by the key of a service account.
    async fn by_key(&self, key: &KeyOfAccount) -> Result<(Secret, Duration), TriggerError> {
        let assertion = key.assertion(self.scope, (self.clock)())?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.expose()),
        ];
        post_form(key.token_uri(), &form).await
    }

    /// A token in place of one that somebody else gave (workload identity federation).
    async fn by_exchange(&self, external: &External) -> Result<(Secret, Duration), TriggerError> {
        let subject = external.subject_token().await?;
        let taken_on = external.service_account_impersonation_url.as_deref();
        let scope = if taken_on.is_some() { PLATFORM } else { self.scope };
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", &external.audience),
            ("scope", scope),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token", subject.expose()),
            ("subject_token_type", &external.subject_token_type),
        ];
        let (token, lasts) = post_form(&external.token_url, &form).await?;
        let Some(uri) = taken_on else { return Ok((token, lasts)) };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, JSON);
        let bearer = format!("Bearer {}", token.expose());
        crate::http::add_secret(&mut headers, http::header::AUTHORIZATION, &bearer)?;
        let lifetime = format!("{}s", LENT.as_secs());
        let body = json!({"scope": [self.scope], "lifetime": lifetime}).to_string();
        let (server, status, body) = send(Method::POST, uri, headers, body.into()).await?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match answer.get("accessToken").and_then(Value::as_str) {
            Some(token) if status.is_success() => Ok((Secret::from(token), LENT)),
            _ if status.is_success() => {
                Err(TriggerError::answer(format!("{server} answers without an accessToken")))
            }
            _ => Err(crate::http::refusal(&server, status, b"")),
        }
    }
}

async fn post_form(uri: &str, pairs: &[(&str, &str)]) -> Result<(Secret, Duration), TriggerError> {
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, FORM);
    let (server, status, body) = send(Method::POST, uri, headers, Bytes::from(form)).await?;
    token::read(&server, status, &body)
}

/// Tokens last for an hour, so that a connection need not be kept.
async fn send(
    method: Method,
    uri: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(Arc<str>, StatusCode, Bytes), TriggerError> {
    let address = Address::parse(uri).map_err(|problem| {
        TriggerError::Settings(format!("an address in Google's credentials: {problem}").into())
    })?;
    let (http, server): (_, Arc<str>) =
        (Http::new(&address, &Tls::default())?, address.origin().into());
    let (status, body) = http.send(&server, method, uri, headers, body).await?;
    Ok((server, status, body))
}
