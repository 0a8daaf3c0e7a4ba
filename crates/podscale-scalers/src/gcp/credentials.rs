//! Google's credentials in JSON: keys of service accounts, and identities that others vouch for.

use crate::http::file;
use crate::secret::Secret;
use crate::trigger::TriggerError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde::Deserialize;
use serde_json::{Value, json};

/// Where keys are exchanged for tokens that do not say so.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// How long what proves who asks is good for.
const ASSERTED_FOR: SignedDuration = SignedDuration::from_secs(3600);

/// What tokens are had by.
pub(super) enum Credentials {
    Key(KeyOfAccount),
    External(External),
}

/// The key of a service account.
#[derive(Deserialize)]
pub(super) struct KeyOfAccount {
    client_email: String,
    private_key: String,
    #[serde(default)]
    private_key_id: String,
    #[serde(default)]
    token_uri: String,
}

/// An identity that somebody else vouches for by a token in a file.
#[derive(Deserialize)]
pub(super) struct External {
    pub(super) audience: String,
    pub(super) subject_token_type: String,
    pub(super) token_url: String,
    pub(super) service_account_impersonation_url: Option<String>,
    credential_source: Source,
}

#[derive(Deserialize)]
struct Source {
    file: String,
    #[serde(default)]
    format: Format,
}

/// How the file has the token: as it is, or as a field of JSON.
#[derive(Default, Deserialize)]
struct Format {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    subject_token_field_name: String,
}

fn wrong(place: &str, problem: &str) -> TriggerError {
    TriggerError::Settings(format!("{place} cannot be used: {problem}").into())
}

/// Reads credentials of the controller.
///
/// # Errors
/// They are of another kind, or not whole; the text holds nothing of them.
pub(super) fn read(place: &str, json: &Secret) -> Result<Credentials, TriggerError> {
    let value: Value = serde_json::from_str(json.expose())
        .map_err(|_| wrong(place, "it does not hold credentials in JSON"))?;
    let kind = value.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let incomplete = |what: &str| wrong(place, &format!("{what} lacks a field that it needs"));
    match kind.as_str() {
        "service_account" => serde_json::from_value(value)
            .map(Credentials::Key)
            .map_err(|_| incomplete("the key of a service account")),
        "external_account" => {
            serde_json::from_value(value).map(Credentials::External).map_err(|_| {
                wrong(place, "an external_account is only understood with credential_source.file")
            })
        }
        _ => Err(wrong(place, "its type is neither service_account nor external_account")),
    }
}

/// Reads the key that a trigger brings along. Others name files and addresses, which triggers may not.
///
/// # Errors
/// As [`read`].
pub(super) fn key_of_trigger(json: &Secret) -> Result<KeyOfAccount, TriggerError> {
    const PLACE: &str = "parameter GoogleApplicationCredentials of the authentication";
    match read(PLACE, json)? {
        Credentials::Key(key) => Ok(key),
        Credentials::External(_) => Err(wrong(PLACE, "its type is not service_account")),
    }
}

impl KeyOfAccount {
    /// Where it is exchanged for tokens.
    pub(super) fn token_uri(&self) -> &str {
        if self.token_uri.is_empty() { TOKEN_URI } else { &self.token_uri }
    }

    /// What proves that somebody has the key: a statement with its signature.
    ///
    /// # Errors
    /// The key is none.
    pub(super) fn assertion(&self, scope: &str, now: Timestamp) -> Result<Secret, TriggerError> {
        let expires = now.checked_add(ASSERTED_FOR).unwrap_or(Timestamp::MAX);
        let header = json!({"alg": "RS256", "typ": "JWT", "kid": self.private_key_id});
        let claims = json!({"iss": self.client_email, "scope": scope, "aud": self.token_uri(),
            "iat": now.as_second(), "exp": expires.as_second()});
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", encode(&header), encode(&claims));
        let no_key = || wrong("private_key of the service account", "it is no RSA key in PEM");
        let der = PrivatePkcs8KeyDer::from_pem_slice(self.private_key.as_bytes());
        let der = der.map_err(|_| no_key())?;
        let key = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| no_key())?;
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature)
            .map_err(|_| no_key())?;
        Ok(Secret::from(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))))
    }
}

impl External {
    /// The token of whoever vouches.
    ///
    /// # Errors
    /// The file cannot be read, or has none.
    pub(super) async fn subject_token(&self) -> Result<Secret, TriggerError> {
        const PLACE: &str = "credential_source.file";
        let Source { file: path, format } = &self.credential_source;
        let text = file::read(PLACE, &Secret::from(path.as_str())).await?;
        if format.r#type != "json" {
            return Ok(text);
        }
        let value: Value = serde_json::from_str(text.expose()).unwrap_or_default();
        let token = value.get(&format.subject_token_field_name).and_then(Value::as_str);
        token
            .map(Secret::from)
            .ok_or_else(|| wrong(PLACE, "it has no token in the field that is named"))
    }
}
