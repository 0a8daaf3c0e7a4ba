//! How a trigger proves to brokers who asks.

use super::scram::Hash;
use crate::aws::asker::{Asker, KeysOf};
use crate::aws::signer::msk_token;
use crate::context::{Clock, Context};
use crate::http::oauth::{ClientCredentials, OAuth};
use crate::http::token::TokenSource;
use crate::kerberos::{Account, Kerberos};
use crate::metadata::{AUTH, Fields, METADATA};
use crate::secret::Secret;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use std::sync::Arc;

/// What KEDA says before what is wrong with tokens.
const OF_TOKENS: &str = "error parsing OAuth token provider configuration: ";

/// What proves who asks.
#[derive(Clone, Debug)]
pub(super) enum Sasl {
    /// A name and a password.
    Password(Password),
    /// A token, and names with values that go with it.
    Token { oauth: OAuth, tls: Tls, extensions: Vec<(String, Secret)> },
    /// A token for Amazon's Kafka.
    Amazon { asker: Asker, region: String },
    /// Tickets of Kerberos for brokers, which are services of a name.
    Tickets { account: Box<Account>, service: String },
}

/// A name and a password, and how they are proved.
#[derive(Clone, Debug)]
pub(super) struct Password {
    /// None if they are sent as they are.
    pub(super) hash: Option<Hash>,
    pub(super) user: Secret,
    pub(super) password: Secret,
}

impl Sasl {
    /// Reads what a mode needs.
    pub(super) fn read(
        fields: &mut Fields<'_>,
        mode: &str,
        tls: &Tls,
        is_encrypted: bool,
    ) -> Option<Sasl> {
        let user = fields.field(&["username"], AUTH).secret();
        let password = fields.field(&["password"], AUTH).secret();
        let providers = ["bearer", "aws_msk_iam"];
        let provider = fields.field(&["saslTokenProvider"], super::METADATA_AUTH);
        let provider = provider.one_of(&providers, "bearer");
        // Of one of the ways only.
        fields.allow(&["awsRegion"]);
        let hash = match mode {
            "none" => return None,
            "gssapi" => {
                let service = fields.field(&["kerberosServiceName"], AUTH).text();
                let service = if service.is_empty() { "kafka".to_owned() } else { service };
                let account = Box::new(Account::read(fields, user, password)?);
                return Some(Sasl::Tickets { account, service });
            }
            "oauthbearer" if provider == "aws_msk_iam" => return amazon(fields, is_encrypted),
            "oauthbearer" => return token(fields, user, password, tls),
            "scram_sha256" => Some(Hash::Sha256),
            "scram_sha512" => Some(Hash::Sha512),
            _ => None,
        };
        let Some(user) = user else {
            fields.refuse("no username given", "give username in the authentication");
            return None;
        };
        let Some(password) = password else {
            fields.refuse("no password given", "give password in the authentication");
            return None;
        };
        Some(Sasl::Password(Password { hash, user, password }))
    }

    /// What tells apart who asks.
    pub(super) fn key(&self) -> Vec<&str> {
        match self {
            Sasl::Password(Password { hash, user, password }) => {
                let mechanism = hash.map_or("PLAIN", |hash| hash.mechanism());
                vec![mechanism, user.expose(), password.expose()]
            }
            Sasl::Token { oauth, tls, extensions } => {
                let mut key = vec!["OAUTHBEARER"];
                key.extend(oauth.key());
                key.extend(tls.key());
                key.extend(
                    extensions.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]),
                );
                key
            }
            Sasl::Amazon { asker, region } => {
                let mut key = vec!["AWS_MSK_IAM", region.as_str()];
                key.extend(asker.key());
                key
            }
            Sasl::Tickets { account, service } => {
                let mut key = vec!["GSSAPI", service.as_str()];
                key.extend(account.key());
                key
            }
        }
    }

    /// What logs in. To be made also where the brokers are shared: an identity may have a newer token.
    ///
    /// # Errors
    /// An address, a region or certificates cannot be used.
    pub(super) fn connect(self, context: &Context) -> Result<Login, TriggerError> {
        Ok(match self {
            Sasl::Password(password) => Login::Password(password),
            Sasl::Token { oauth, tls, extensions } => {
                Login::Token(Bearer::OAuth { tokens: oauth.share(context, &tls)?, extensions })
            }
            Sasl::Amazon { asker, region } => {
                let keys = asker.keys(context, &region)?;
                Login::Token(Bearer::Amazon { keys, region, clock: context.clock.clone() })
            }
            Sasl::Tickets { account, service } => {
                Login::Tickets { kerberos: account.share(context)?, service }
            }
        })
    }
}

/// A client of a server of tokens.
fn token(
    fields: &mut Fields<'_>,
    user: Option<Secret>,
    password: Option<Secret>,
    tls: &Tls,
) -> Option<Sasl> {
    let uri = fields.field(&["oauthTokenEndpointUri"], AUTH).text();
    let scopes = fields.field(&["scopes"], AUTH).list();
    let given = fields.field(&["oauthExtensions"], AUTH).list();
    let mut refuse = |problem: &str, hint| {
        fields.refuse(format!("{OF_TOKENS}{problem}"), hint);
        None
    };
    let hint = "give username and password, the client's id and secret, in the authentication";
    let Some(user) = user else { return refuse("no username given", hint) };
    let Some(password) = password else { return refuse("no password given", hint) };
    if uri.is_empty() {
        let hint = "give oauthTokenEndpointUri in the authentication";
        return refuse("no oauth token endpoint uri given", hint);
    }
    let mut extensions = Vec::new();
    for extension in given {
        let hint = "write oauthExtensions as name=value,name=value, with names of letters only and not auth";
        match extension.split('=').collect::<Vec<_>>()[..] {
            [name, value] if is_extension(name, value) => {
                extensions.push((name.to_owned(), Secret::from(value)));
            }
            _ => return refuse("invalid OAuthBearer extension, must be of format key=value", hint),
        }
    }
    // Only whom to trust: the brokers' certificates say nothing to a server of tokens.
    let tls = Tls { ca: tls.ca.clone(), ..Tls::default() };
    let oauth = OAuth::of_client(("oauthTokenEndpointUri", uri), &user, password, &scopes);
    Some(Sasl::Token { oauth, tls, extensions })
}

/// Whether RFC 7628 has a place for it; the token's own name is taken.
fn is_extension(name: &str, value: &str) -> bool {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_name && name != "auth" && value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Somebody whom Amazon knows.
fn amazon(fields: &mut Fields<'_>, has_tls: bool) -> Option<Sasl> {
    let region = fields.field(&["awsRegion"], METADATA).text();
    let asker = Asker::read(fields);
    if !has_tls {
        let problem = format!("{OF_TOKENS}TLS is required for AWS MSK authentication");
        fields.refuse(problem, "set tls to enable");
    }
    if region.is_empty() {
        fields.refuse(format!("{OF_TOKENS}no awsRegion given"), "set metadata.awsRegion");
    }
    Some(Sasl::Amazon { asker, region })
}

/// Logs in.
pub(super) enum Login {
    Password(Password),
    Token(Bearer),
    Tickets { kerberos: Arc<Kerberos>, service: String },
}

/// Where tokens come from.
pub(super) enum Bearer {
    OAuth { tokens: Arc<TokenSource<ClientCredentials>>, extensions: Vec<(String, Secret)> },
    Amazon { keys: KeysOf, region: String, clock: Clock },
}

impl Bearer {
    /// A token, and the message that begins with it (RFC 7628).
    ///
    /// # Errors
    /// There is none, or one that no message can hold.
    pub(super) async fn message(&self) -> Result<(Secret, Secret), TriggerError> {
        let (token, extensions) = match self {
            Bearer::OAuth { tokens, extensions } => (tokens.token().await?, &extensions[..]),
            Bearer::Amazon { keys, region, clock } => {
                let token = msk_token(&keys.get().await?, region, clock());
                (Secret::from(token), &[][..])
            }
        };
        if !token.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
            let problem = "the token for the brokers has characters that none can have";
            return Err(TriggerError::answer(problem));
        }
        let extensions: String = extensions
            .iter()
            .map(|(name, value)| format!("{name}={}\x01", value.expose()))
            .collect();
        let message = format!("n,,\x01auth=Bearer {}\x01{extensions}\x01", token.expose());
        Ok((token, Secret::from(message)))
    }

    /// Drops what was refused.
    pub(super) async fn forget(&self) {
        match self {
            Bearer::OAuth { tokens, .. } => tokens.drop_refused().await,
            // They are renewed when they expire; to refuse them is to refuse whom they are of.
            Bearer::Amazon { .. } => {}
        }
    }
}
