//! Microsoft's cloud: tokens for an identity that trusts a service account of the cluster (workload identity).

#[cfg(test)]
mod tests;

use crate::address::{Address, encode};
use crate::context::{Context, Variables};
use crate::http::token::{self, Grant, TokenSource};
use crate::http::{Http, file};
use crate::identity::{AzureIdentity, Federation};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError};
use bytes::Bytes;
use form_urlencoded::Serializer;
use futures::future::BoxFuture;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use std::sync::Arc;
use std::time::Duration;

const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");
const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Who gives tokens, if nothing else says so.
const AUTHORITY: &str = "https://login.microsoftonline.com";
/// To whom the token of a workload may go that its authentication names: it may name nobody else.
const AUTHORITIES: [&str; 4] = [
    AUTHORITY,
    "https://login.microsoftonline.us",
    "https://login.chinacloudapi.cn",
    "https://login.partner.microsoftonline.cn",
];

/// What gives tokens to all triggers of one identity for one resource.
pub(crate) type Tokens = TokenSource<Federated>;

/// Tokens for an identity, by one of a service account.
pub(crate) struct Federated {
    http: Http,
    server: Arc<str>,
    uri: String,
    client: String,
    scope: String,
    account: Account,
}

/// Where the token of the service account is.
enum Account {
    /// In the controller's file, which is replaced from time to time.
    File(Secret),
    /// It is replaced whenever the trigger's credentials are read.
    Workload(parking_lot::Mutex<Secret>),
}

/// What tells identities apart. A token is none of it: it changes, and the account stays the same.
pub(crate) fn key(identity: &AzureIdentity) -> [&str; 4] {
    [
        identity.client.as_deref().unwrap_or_default(),
        identity.tenant.as_deref().unwrap_or_default(),
        identity.authority.as_deref().unwrap_or_default(),
        match &identity.account {
            Federation::Controller => "",
            Federation::Workload { account, .. } => account,
        },
    ]
}

/// What tokens for all of a resource are asked for by.
pub(crate) fn scope(resource: &str) -> String {
    let resource = resource.trim_end_matches('/');
    if resource.ends_with(".default") {
        resource.to_owned()
    } else {
        format!("{resource}/.default")
    }
}

/// The tokens of an identity for a resource, which others use as well. Asks nobody yet.
///
/// # Errors
/// The controller has no such identity, or the authority is none.
pub(crate) fn share(
    context: &Context,
    identity: &AzureIdentity,
    scope: &str,
) -> Result<Arc<Tokens>, TriggerError> {
    let address = authority(&context.variables, identity)?;
    let client = setting(&context.variables, &identity.client, "AZURE_CLIENT_ID", "identityId")?;
    let tenant =
        setting(&context.variables, &identity.tenant, "AZURE_TENANT_ID", "identityTenantId")?;
    let mut parts = key(identity).to_vec();
    parts.extend([client.as_str(), tenant.as_str(), scope]);
    let key = ServerKey::new("azure", &address.origin(), &parts);
    let source = context.connections.share(&key, || {
        let account = match &identity.account {
            Federation::Controller => Account::File(token_file(&context.variables)?),
            Federation::Workload { token, .. } => Account::Workload(token.clone().into()),
        };
        let root = address.uri();
        let uri = format!("{}/{}/oauth2/v2.0/token", root.trim_end_matches('/'), encode(&tenant));
        let (http, server) = (Http::new(&address, &Tls::default())?, address.origin().into());
        let scope = scope.to_owned();
        Ok(TokenSource::new(Federated { http, server, uri, client, scope, account }))
    })?;
    if let (Account::Workload(token), Federation::Workload { token: newer, .. }) =
        (&source.grant.account, &identity.account)
    {
        *token.lock() = newer.clone();
    }
    Ok(source)
}

/// What an authentication says, or else the controller's environment.
fn setting(
    variables: &Variables,
    said: &Option<String>,
    variable: &str,
    field: &str,
) -> Result<String, TriggerError> {
    if let Some(said) = said.as_ref().filter(|said| !said.is_empty()) {
        return Ok(said.clone());
    }
    let found = variables(variable).filter(|value| !value.is_empty());
    let found = found.map(|value| value.expose().to_owned());
    found.ok_or_else(|| {
        let problem = format!(
            "the identity at Azure is not known: set podIdentity.{field}, or give the controller {variable} (label \
             its pods with azure.workload.identity/use)"
        );
        TriggerError::Settings(problem.into())
    })
}

fn token_file(variables: &Variables) -> Result<Secret, TriggerError> {
    let path = variables("AZURE_FEDERATED_TOKEN_FILE").filter(|path| !path.is_empty());
    path.ok_or_else(|| {
        TriggerError::Settings(
            "the controller has no identity at Azure: give it AZURE_FEDERATED_TOKEN_FILE (label its pods with \
             azure.workload.identity/use and annotate its service account with a client id)"
                .into(),
        )
    })
}

/// Who gives tokens: tokens of service accounts are sent there, so an authentication only chooses among Microsoft's own
/// for a workload's.
fn authority(variables: &Variables, identity: &AzureIdentity) -> Result<Address, TriggerError> {
    let wrong = |problem: &str| {
        let problem = format!("the authority of the identity at Azure cannot be used: {problem}");
        TriggerError::Settings(problem.into())
    };
    let own = variables("AZURE_AUTHORITY_HOST").filter(|host| !host.is_empty());
    let own = own.map_or_else(|| AUTHORITY.to_owned(), |host| host.expose().to_owned());
    let named = identity.authority.as_ref().filter(|host| !host.is_empty());
    if let (Some(named), Federation::Workload { .. }) = (named, &identity.account)
        && !AUTHORITIES.iter().chain([&&*own]).any(|known| same(known, named))
    {
        return Err(wrong("podIdentity.identityAuthorityHost of a workload is none of Azure's"));
    }
    let address = Address::parse(named.unwrap_or(&own)).map_err(wrong)?;
    if address.scheme != "https" && !address.is_loopback() {
        return Err(wrong("it does not begin with https://"));
    }
    Ok(Address { query: None, ..address })
}

fn same(one: &str, other: &str) -> bool {
    one.trim_end_matches('/') == other.trim_end_matches('/')
}

impl Federated {
    fn request(&self, assertion: &Secret) -> Bytes {
        let mut form = Serializer::new(String::new());
        form.append_pair("client_id", &self.client)
            .append_pair("client_assertion_type", ASSERTION)
            .append_pair("client_assertion", assertion.expose())
            .append_pair("grant_type", "client_credentials")
            .append_pair("scope", &self.scope);
        Bytes::from(form.finish())
    }
}

impl Grant for Federated {
    fn fetch(&self) -> BoxFuture<'_, Result<(Secret, Duration), TriggerError>> {
        Box::pin(async {
            let assertion = match &self.account {
                Account::Workload(token) => token.lock().clone(),
                Account::File(path) => file::read("AZURE_FEDERATED_TOKEN_FILE", path).await?,
            };
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, FORM);
            let body = self.request(&assertion);
            let sent = self.http.send(&self.server, Method::POST, &self.uri, headers, body);
            let (status, body) = sent.await?;
            token::read(&self.server, status, &body)
        })
    }
}
