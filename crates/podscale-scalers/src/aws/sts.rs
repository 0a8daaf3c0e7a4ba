//! Amazon's Security Token Service: keys for a role, for a while.

use super::signature::Signed;
use super::{Keys, domain};
use crate::address::Address;
use crate::context::Variables;
use crate::http::{Http, refusal};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use bytes::Bytes;
use form_urlencoded::Serializer;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use std::sync::Arc;

const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
const VERSION: &str = "2011-06-15";
/// What Amazon's logs call who uses a role.
const SESSION: &str = "podscale";

/// Keys, and when they expire.
pub(super) type Lent = (Keys, Timestamp);

/// The service of one region.
pub(super) struct Sts {
    http: Http,
    address: Address,
    region: String,
    /// What errors call it.
    server: Arc<str>,
}

impl Sts {
    /// Where it is: what the controller's environment says, or Amazon's for the controller's region, or else for that of
    /// the trigger. Tokens are sent there, so a trigger only chooses among Amazon's own.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn address(
        variables: &Variables,
        region: &str,
    ) -> Result<(Address, String), TriggerError> {
        let variable = |name: &str| variables(name).filter(|value| !value.is_empty());
        let own = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let region = own.as_ref().map_or(region, Secret::expose).to_owned();
        let wrong = |problem: String| TriggerError::Settings(problem.into());
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if region.is_empty() || !region.chars().all(is_name) {
            return Err(wrong(format!(
                "awsRegion {region:?} is no region of Amazon: write one such as eu-central-1"
            )));
        }
        let address = match variable("AWS_ENDPOINT_URL_STS") {
            Some(given) => given.expose().to_owned(),
            None => format!("https://sts.{region}.{}", domain(&region)),
        };
        let address = Address::parse(&address).map_err(|problem| {
            wrong(format!("AWS_ENDPOINT_URL_STS of the controller cannot be used: {problem}"))
        })?;
        Ok((address, region))
    }

    /// Connects to nothing yet.
    ///
    /// # Errors
    /// TLS cannot be used.
    pub(super) fn new(address: Address, region: String) -> Result<Sts, TriggerError> {
        let http = Http::new(&address, &Tls::default())?;
        let server = address.origin().into();
        Ok(Sts { http, address, region, server })
    }

    /// Keys for a role by a token that proves who somebody is.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub(super) async fn by_token(&self, role: &str, token: &Secret) -> Result<Lent, TriggerError> {
        let more = Some(("WebIdentityToken", token.expose()));
        let body = request("AssumeRoleWithWebIdentity", role, more);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
        self.send(body, headers).await
    }

    /// Keys for a role by other keys.
    ///
    /// # Errors
    /// It cannot be reached, or refuses.
    pub(super) async fn by_keys(
        &self,
        role: &str,
        external_id: Option<&str>,
        keys: &Keys,
        now: Timestamp,
    ) -> Result<Lent, TriggerError> {
        let body = request("AssumeRole", role, external_id.map(|id| ("ExternalId", id)));
        let signed = Signed {
            method: "POST",
            service: "sts",
            region: &self.region,
            host: &self.address.authority,
            path: self.path(),
            query: "",
            content_type: Some(FORM),
            target: None,
            body: body.as_bytes(),
            now,
        };
        let headers = signed.headers(keys)?;
        self.send(body, headers).await
    }

    fn path(&self) -> &str {
        if self.address.path.is_empty() { "/" } else { &self.address.path }
    }

    async fn send(&self, body: String, headers: HeaderMap) -> Result<Lent, TriggerError> {
        let uri = format!("{}{}", self.address.origin(), self.path());
        let sent = self.http.send(&self.server, Method::POST, &uri, headers, Bytes::from(body));
        let (status, body) = sent.await?;
        let text = String::from_utf8_lossy(&body);
        if !status.is_success() {
            return Err(refused(&self.server, status, &text));
        }
        // What is wrong with it may hold the keys.
        lent(&text).ok_or_else(|| {
            TriggerError::answer(format!("{} answers without keys for the role", self.server))
        })
    }
}

fn request(action: &str, role: &str, more: Option<(&str, &str)>) -> String {
    let mut form = Serializer::new(String::new());
    form.append_pair("Action", action).append_pair("Version", VERSION);
    form.append_pair("RoleArn", role).append_pair("RoleSessionName", SESSION);
    form.extend_pairs(more).finish()
}

/// The keys of an answer.
pub(super) fn lent(xml: &str) -> Option<Lent> {
    let document = roxmltree::Document::parse(xml).ok()?;
    let credentials = document.descendants().find(|node| node.is_called("Credentials"))?;
    let text = |name: &str| {
        let field = credentials.children().find(|node| node.is_called(name))?;
        field.text().map(str::trim).filter(|text| !text.is_empty())
    };
    let keys = Keys {
        id: text("AccessKeyId")?.to_owned(),
        secret: text("SecretAccessKey")?.into(),
        session: Some(text("SessionToken")?.into()),
    };
    Some((keys, text("Expiration")?.parse().ok()?))
}

/// Why there are no keys, in Amazon's word for it: the rest may repeat what was sent.
fn refused(server: &Arc<str>, status: StatusCode, xml: &str) -> TriggerError {
    let document = roxmltree::Document::parse(xml).ok();
    let code = document.as_ref().and_then(|document| {
        let code = document.descendants().find(|node| node.is_called("Code"))?.text()?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.';
        (code.len() <= 64 && code.chars().all(is_word)).then_some(code)
    });
    let code = code.unwrap_or_default();
    let problem: Arc<str> = format!("it answers {} {code}", status.as_u16()).trim().into();
    let server = Arc::clone(server);
    match status {
        _ if code.starts_with("Throttling") => TriggerError::Unreachable { server, problem },
        status if status.is_client_error() => TriggerError::Unauthorized { server, problem },
        status => refusal(&server, status, code.as_bytes()),
    }
}

/// Names of elements, whatever space of names they are in.
trait LocalName {
    fn is_called(&self, name: &str) -> bool;
}

impl LocalName for roxmltree::Node<'_, '_> {
    fn is_called(&self, name: &str) -> bool {
        self.is_element() && self.tag_name().name() == name
    }
}
