//! HashiCorp Vault, where triggers may have their credentials: logging in, and reading secrets.

use crate::address::{Address, encode};
use crate::http::{Http, add_secret, refusal};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
const TOKEN: HeaderName = HeaderName::from_static("x-vault-token");
const NAMESPACE: HeaderName = HeaderName::from_static("x-vault-namespace");
/// Without this, Vault's agent refuses requests.
const REQUEST: HeaderName = HeaderName::from_static("x-vault-request");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// One Vault.
pub struct Vault {
    http: Http,
    /// What errors call it.
    server: Arc<str>,
    /// What the paths of its API follow.
    root: String,
    namespace: String,
}

impl Vault {
    /// The one at an address, and a namespace in it if it is not empty. Nothing is connected yet.
    ///
    /// # Errors
    /// It is no address of HTTP.
    pub fn new(address: &str, namespace: &str) -> Result<Vault, TriggerError> {
        let wrong = |problem: &str| {
            TriggerError::Settings(format!("the address of Vault cannot be used: {problem}").into())
        };
        let address = Address::parse(address).map_err(wrong)?;
        if !["http", "https"].contains(&&*address.scheme) {
            return Err(wrong("it is neither http nor https"));
        }
        let root = format!("{}{}", address.origin(), address.path.trim_end_matches('/'));
        let server = format!("Vault at {}", address.origin()).into();
        let http = Http::new(&address, &Tls::default())?;
        Ok(Vault { http, server, root, namespace: namespace.to_owned() })
    }

    /// Logs in as a role with the token of a service account, at the place where that way to log in is mounted; the
    /// token that everything else takes.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub async fn log_in(
        &self,
        mount: &str,
        role: &str,
        token: &Secret,
    ) -> Result<Secret, TriggerError> {
        let body = json!({"role": role, "jwt": token.expose()});
        let path = format!("auth/{}/login", mount.trim_matches('/'));
        let answer = self.ask(None, &path, Some(&body)).await?;
        let token = answer.pointer("/auth/client_token").and_then(Value::as_str);
        token.filter(|token| !token.is_empty()).map(Secret::from).ok_or_else(|| {
            TriggerError::answer(format!("{} answers a login without a token", self.server))
        })
    }

    /// The data of what is at a path, or of what is made there of a request.
    ///
    /// # Errors
    /// It cannot be reached, refuses, or has nothing there.
    pub async fn read(
        &self,
        token: &Secret,
        path: &str,
        request: Option<&Value>,
    ) -> Result<Value, TriggerError> {
        let mut answer = self.ask(Some(token), path, request).await?;
        match answer.get_mut("data").map(Value::take) {
            Some(data @ Value::Object(_)) => Ok(data),
            _ => Err(TriggerError::answer(format!("{} has no data at {path:?}", self.server))),
        }
    }

    async fn ask(
        &self,
        token: Option<&Secret>,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, TriggerError> {
        let parts: Vec<String> = path.trim_matches('/').split('/').map(encode).collect();
        let uri = format!("{}/v1/{}", self.root, parts.join("/"));
        let mut headers = HeaderMap::new();
        headers.insert(REQUEST, HeaderValue::from_static("true"));
        if let Some(token) = token {
            add_secret(&mut headers, TOKEN, token.expose())?;
        }
        if !self.namespace.is_empty() {
            add_secret(&mut headers, NAMESPACE, &self.namespace)?;
        }
        let (method, body) = match body {
            None => (Method::GET, Bytes::new()),
            Some(body) => {
                headers.insert(CONTENT_TYPE, JSON);
                (Method::PUT, Bytes::from(body.to_string()))
            }
        };
        let sent = self.http.send(&self.server, method, &uri, headers, body);
        let late = |_| TriggerError::Late(Arc::clone(&self.server));
        let (status, body) = tokio::time::timeout(TIMEOUT, sent).await.map_err(late)??;
        if !status.is_success() {
            return Err(refusal(&self.server, status, &body));
        }
        // What is wrong with it may have a value in it.
        serde_json::from_slice(&body)
            .map_err(|_| TriggerError::answer(format!("{} does not answer in JSON", self.server)))
    }
}
