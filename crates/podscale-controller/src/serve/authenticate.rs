//! Finds out who asks: by the word of the front proxy, by a certificate, or by a token, in the order
//! and with the outcomes of Kubernetes' aggregated servers.

use super::judge::{CertificateProblem, Peer, judge};
use super::reviews::Reviews;
use super::trust::{FrontProxy, Trusted};
use super::user::User;
use axum::http::{HeaderMap, HeaderName, header};
use kube::Client;
use podscale_client::call::{self, About, CallError};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// The longest token that is sent on.
const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// Why somebody is not who they claim to be; not shown to them.
#[derive(Debug, thiserror::Error)]
pub enum AuthenticateError {
    /// The certificate convinces nobody.
    #[error(transparent)]
    Certificate(#[from] CertificateProblem),
    /// The token is not valid.
    #[error("the token is not valid")]
    Token,
    /// The API server could not be asked about the token.
    #[error("cannot review the token: {0}")]
    Review(#[from] CallError),
}

/// Finds out who asks.
#[derive(Clone)]
pub struct Authenticator {
    client: Client,
    trusted: Trusted,
    tokens: Reviews<[u8; 32], Option<User>>,
}

impl Authenticator {
    /// Asks this API server about tokens, and trusts these certificates.
    #[must_use]
    pub fn new(client: Client, trusted: Trusted) -> Authenticator {
        Authenticator { client, trusted, tokens: Reviews::default() }
    }

    /// How many tokens are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.tokens.len()
    }

    /// Who asks. Whoever shows nothing at all is anonymous.
    ///
    /// # Errors
    /// What was shown convinces nobody.
    pub async fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
    ) -> Result<User, AuthenticateError> {
        let mut problem = None;
        if let Some(chain) = &peer.certificates {
            let trust = self.trusted.now();
            let judgement = judge(peer, chain, &trust, Instant::now());
            let by_proxy = judgement.proxy.clone().zip(trust.proxy.as_ref());
            let by_proxy =
                by_proxy.map(|(found, proxy)| found.map(|()| of_headers(proxy, headers)));
            let by_name = judgement.user.clone().map(|found| found.map(Some));
            for outcome in by_proxy.into_iter().chain(by_name) {
                match outcome {
                    Ok(Some(user)) => return Ok(user.authenticated()),
                    Ok(None) => {}
                    Err(error) => problem = Some(error.into()),
                }
            }
        }
        if let Some(token) = bearer(headers) {
            match self.by_token(token).await {
                Ok(user) => return Ok(user.authenticated()),
                Err(error) => problem = Some(error),
            }
        }
        problem.map_or_else(|| Ok(User::anonymous()), Err)
    }

    async fn by_token(&self, token: &str) -> Result<User, AuthenticateError> {
        if token.len() > MAX_TOKEN_BYTES {
            return Err(AuthenticateError::Token);
        }
        // Only what cannot be used is remembered.
        let key: [u8; 32] = Sha256::digest(token).into();
        let user = self.tokens.get(&key, review(&self.client, token)).await?;
        user.ok_or(AuthenticateError::Token)
    }
}

/// The token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::AUTHORIZATION)?.to_str().ok()?.trim();
    let (scheme, token) = text.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The user that headers name, if they do.
fn of_headers(proxy: &FrontProxy, headers: &HeaderMap) -> Option<User> {
    let first = |names: &[HeaderName]| {
        let mut values = names.iter().filter_map(|name| headers.get(name)?.to_str().ok());
        values.find(|value| !value.is_empty()).map(str::to_owned)
    };
    let groups = proxy.groups.iter().flat_map(|name| headers.get_all(name));
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for (name, value) in headers {
        let mut keys =
            proxy.extra_prefixes.iter().filter_map(|p| name.as_str().strip_prefix(p.as_str()));
        if let (Some(key), Ok(value)) = (keys.next(), value.to_str()) {
            extra.entry(unescape(key)).or_default().push(value.to_owned());
        }
    }
    Some(User {
        name: first(&proxy.users)?,
        uid: first(&proxy.uids).unwrap_or_default(),
        groups: groups.filter_map(|value| value.to_str().ok()).map(str::to_owned).collect(),
        extra,
    })
}

/// What a key of a header stands for: signs that headers cannot have are written as `%2f`.
fn unescape(key: &str) -> String {
    let plain = key.replace('+', "%2B");
    let pair = form_urlencoded::parse(plain.as_bytes()).next();
    pair.map(|(key, _)| key.into_owned()).unwrap_or_default()
}

#[derive(Deserialize)]
struct TokenReview {
    #[serde(default)]
    status: TokenStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenStatus {
    authenticated: bool,
    user: TokenUser,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenUser {
    username: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// Whose token it is; nobody's if it is not valid.
async fn review(client: &Client, token: &str) -> Result<Option<User>, CallError> {
    let object = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
        "spec": {"token": token},
    });
    let about = About { resource: "tokenreviews.authentication.k8s.io", name: "" };
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review: TokenReview = call::send(client, "POST", path, &object, about).await?;
    let TokenStatus { authenticated, user } = review.status;
    let TokenUser { username: name, uid, groups, extra } = user;
    Ok(authenticated.then_some(User { name, uid, groups, extra }))
}
