//! What requests of a trigger prove themselves with: the modes that KEDA's triggers over HTTP have in common.

use super::oauth::OAuth;
use super::{add_basic, add_secret};
use crate::metadata::{AUTH, Fields, Place};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

const MODES: [&str; 6] = ["apiKey", "basic", "tls", "bearer", "custom", "oauth"];
/// Each of these is the `Authorization` header.
const EXCLUSIVE: [&str; 3] = ["bearer", "basic", "oauth"];
const METADATA_OR_AUTH: &[Place] = &[Place::Metadata, Place::Auth];

/// What requests carry.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpAuth {
    bearer: Option<Secret>,
    basic: Option<(Secret, Secret)>,
    custom: Option<(String, Secret)>,
    api_key: Option<ApiKey>,
    /// Where tokens come from.
    pub(crate) oauth: Option<OAuth>,
    /// The certificates.
    pub(crate) tls: Tls,
}

#[derive(Clone, Debug)]
struct ApiKey {
    key: Secret,
    /// The header or parameter; empty for the usual one.
    name: String,
    in_query: bool,
}

impl HttpAuth {
    /// Reads the modes that a source allows, and what each of them needs.
    pub(crate) fn read(fields: &mut Fields<'_>, allowed: &[&str], insecure: bool) -> HttpAuth {
        let modes = modes(fields, allowed);
        let has = |mode: &str| modes.iter().any(|found| found == mode);
        let bearer = fields.field(&["bearerToken", "token"], AUTH).secret();
        let user = fields.field(&["username"], AUTH).secret();
        let password = fields.field(&["password"], AUTH).secret().unwrap_or_default();
        let header = fields.field(&["customAuthHeader"], AUTH).text();
        let value = fields.field(&["customAuthValue"], AUTH).secret();
        let tls = Tls::read(fields, insecure);
        let api_key = api_key(fields);
        let oauth = OAuth::read(fields);
        if modes.is_empty() || !fields.is_right() {
            return HttpAuth { tls: Tls { insecure, ..Tls::default() }, ..HttpAuth::default() };
        }
        let all = Given {
            bearer: bearer.is_some(),
            user: user.is_some(),
            identity: tls.identity.is_some(),
            header: !header.is_empty(),
            value: value.is_some(),
            api_key: api_key.is_some(),
            oauth: oauth.is_some(),
        };
        all.refuse_incomplete(fields, &modes);
        HttpAuth {
            bearer: bearer.filter(|_| has("bearer")),
            basic: user.filter(|_| has("basic")).map(|user| (user, password)),
            custom: value.filter(|_| has("custom")).map(|value| (header, value)),
            api_key: api_key.filter(|_| has("apiKey")),
            oauth: oauth.filter(|_| has("oauth")),
            tls,
        }
    }

    /// Only a user's name and password.
    pub(crate) fn basic(user: &str, password: Secret) -> HttpAuth {
        let basic = (!user.is_empty()).then(|| (Secret::from(user), password));
        HttpAuth { basic, ..HttpAuth::default() }
    }

    /// With the name and password of an address, which stand in for all else that would be sent.
    pub(crate) fn with_basic(self, user: &str, password: Option<Secret>) -> HttpAuth {
        let basic = (Secret::from(user), password.unwrap_or_default());
        HttpAuth::of(Some(basic), None, self.tls)
    }

    /// With certificates, and a user's name and password or a source of tokens.
    pub(crate) fn of(basic: Option<(Secret, Secret)>, oauth: Option<OAuth>, tls: Tls) -> HttpAuth {
        HttpAuth { basic, oauth, tls, ..HttpAuth::default() }
    }

    /// What tells servers apart that are asked with other credentials.
    pub(crate) fn key(&self) -> Vec<&str> {
        let mut key = vec![self.bearer.as_ref().map_or("", Secret::expose)];
        let (user, password) =
            self.basic.as_ref().map_or(("", ""), |b| (b.0.expose(), b.1.expose()));
        let (header, value) = self.custom.as_ref().map_or(("", ""), |c| (&*c.0, c.1.expose()));
        key.extend([user, password, header, value]);
        let api_key = self.api_key.as_ref();
        key.extend([api_key.map_or("", |k| k.key.expose()), api_key.map_or("", |k| &k.name)]);
        key.push(if api_key.is_some_and(|k| k.in_query) { "query" } else { "" });
        key.extend(self.oauth.iter().flat_map(OAuth::key));
        key.extend(self.tls.key());
        key
    }

    /// The headers of a request, but for a token that must be fetched first.
    ///
    /// # Errors
    /// A value has characters that no header can have.
    pub(crate) fn headers(&self) -> Result<HeaderMap, TriggerError> {
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.bearer {
            add_secret(&mut headers, AUTHORIZATION, &format!("Bearer {}", token.expose()))?;
        }
        if let Some((user, password)) = &self.basic {
            add_basic(&mut headers, user.expose(), password.expose())?;
        }
        if let Some((name, value)) = &self.custom {
            add_secret(&mut headers, header_name(name)?, value.expose())?;
        }
        if let Some(ApiKey { key, name, in_query: false }) = &self.api_key {
            let name = if name.is_empty() { "X-API-KEY" } else { name };
            add_secret(&mut headers, header_name(name)?, key.expose())?;
        }
        Ok(headers)
    }

    /// The parameter of a request that holds a key, if that is how it is sent.
    pub(crate) fn query_parameter(&self) -> Option<(&str, &Secret)> {
        let ApiKey { key, name, in_query } = self.api_key.as_ref()?;
        in_query.then_some((if name.is_empty() { "api_key" } else { name }, key))
    }
}

/// What the authentication has of what modes need.
struct Given {
    bearer: bool,
    user: bool,
    identity: bool,
    header: bool,
    value: bool,
    api_key: bool,
    oauth: bool,
}

impl Given {
    /// Refuses modes of which something is missing.
    fn refuse_incomplete(&self, fields: &mut Fields<'_>, modes: &[String]) {
        let has = |mode: &str| modes.iter().any(|found| found == mode);
        let given = |is: bool| if is { "<present>" } else { "<empty>" };
        if has("bearer") && !self.bearer {
            let problem = "bearer token=<empty> is required when bearer auth is enabled";
            fields.refuse(problem, "give bearerToken in the authentication");
        }
        if has("basic") && !self.user {
            let problem = "username=<empty> is required when basic auth is enabled";
            fields.refuse(problem, "give username and password in the authentication");
        }
        if has("tls") && !self.identity {
            let cert = given(fields.field(&["cert", "Cert"], AUTH).is_given());
            let key = given(fields.field(&["key"], AUTH).is_given());
            fields.refuse(
                format!("cert={cert} and key={key} are required when tls auth is enabled"),
                "give both in the authentication, in PEM",
            );
        }
        if has("custom") && !(self.header && self.value) {
            let (header, value) = (given(self.header), given(self.value));
            fields.refuse(
                format!(
                    "customAuthHeader={header} and customAuthValue={value} are required when custom auth is \
                     enabled"
                ),
                "give both in the authentication",
            );
        }
        if has("apiKey") && !self.api_key {
            fields.refuse(
                "apiKey is required when apiKey auth is enabled",
                "give it in the authentication",
            );
        }
        if has("oauth") && !self.oauth {
            let uri = given(fields.field(&["oauthTokenURI"], AUTH).is_given());
            let client = given(fields.field(&["clientID"], AUTH).is_given());
            fields.refuse(
                format!(
                    "oauthTokenURI={uri} and clientID={client} are required when oauth is enabled"
                ),
                "give both in the authentication",
            );
        }
    }
}

/// The modes, each checked.
fn modes(fields: &mut Fields<'_>, allowed: &[&str]) -> Vec<String> {
    let modes = fields.field(&["authModes", "authMode"], METADATA_OR_AUTH).list();
    let all = modes.join(",");
    if modes.iter().any(|mode| !MODES.contains(&mode.as_str())) {
        fields.refuse(
            format!("parameter \"authModes\" value {all:?} must be one of [{}]", MODES.join(" ")),
            &format!("write one of {}", allowed.join(", ")),
        );
        return Vec::new();
    }
    if modes.iter().filter(|mode| EXCLUSIVE.contains(&mode.as_str())).count() > 1 {
        fields.refuse(
            format!(
                "parameter \"authModes\" value {all:?} must contain only one of [{}]",
                EXCLUSIVE.join(" ")
            ),
            "leave one of them",
        );
    }
    if let Some(mode) = modes.iter().find(|mode| !allowed.contains(&mode.as_str())) {
        fields.refuse(
            format!(
                "auth mode {mode:?} is not supported by this scaler; supported modes: [{}]",
                allowed.join(" ")
            ),
            &format!("write one of {}", allowed.join(", ")),
        );
    }
    modes
}

fn api_key(fields: &mut Fields<'_>) -> Option<ApiKey> {
    let method = fields.field(&["method"], METADATA_OR_AUTH).one_of(&["header", "query"], "header");
    let name = fields.field(&["keyParamName"], METADATA_OR_AUTH).text();
    let key = fields.field(&["apiKey"], METADATA_OR_AUTH).secret()?;
    Some(ApiKey { key, name, in_query: method == "query" })
}

/// The name of a header.
///
/// # Errors
/// It is none.
pub(crate) fn header_name(name: &str) -> Result<HeaderName, TriggerError> {
    HeaderName::try_from(name)
        .map_err(|_| TriggerError::Settings(format!("{name:?} is not the name of a header").into()))
}
