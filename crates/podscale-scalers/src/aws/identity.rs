//! Keys of somebody whose identity is proved otherwise: those of the controller, and of roles. They are fetched when they
//! are needed and kept until shortly before they expire.

use super::Keys;
use super::sts::{Lent, Sts};
use crate::context::{Clock, Context, Variables};
use crate::http::file;
use crate::identity::AwsIdentity;
use crate::secret::Secret;
use crate::trigger::{ServerKey, TriggerError};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Keys are fetched anew so long before they expire.
const EARLY: SignedDuration = SignedDuration::from_secs(120);
/// How long it is believed that there are no keys, and how often keys that a server refuses are fetched anew: whoever writes
/// a trigger chooses the server, and one that refuses all keys must not use up what Amazon gives to the controller.
const PAUSE: Duration = Duration::from_secs(10);

/// Gives keys to all triggers of one identity.
pub(crate) struct KeySource {
    identity: Wanted,
    sts: Sts,
    variables: Variables,
    clock: Clock,
    kept: Mutex<Kept>,
}

/// Whose keys.
enum Wanted {
    Controller {
        role: Option<String>,
        external_id: Option<String>,
    },
    /// The token is replaced whenever the trigger's credentials are read.
    Workload {
        role: String,
        token: parking_lot::Mutex<Secret>,
    },
}

#[derive(Default)]
struct Kept {
    last: Last,
    /// When keys were dropped.
    dropped: Option<Instant>,
}

#[derive(Default)]
enum Last {
    #[default]
    Nothing,
    Keys(Keys, Timestamp),
    Refused(TriggerError, Instant),
}

/// What tells identities apart. A token is none of it: it changes, and the account stays the same.
pub(crate) fn key(identity: &AwsIdentity) -> [&str; 3] {
    match identity {
        AwsIdentity::Controller { role, external_id } => [
            "controller",
            role.as_deref().unwrap_or_default(),
            external_id.as_deref().unwrap_or_default(),
        ],
        AwsIdentity::Workload { role, account, .. } => ["workload", role, account],
    }
}

impl KeySource {
    /// The one of an identity that others use, or a new one. Asks nobody yet.
    ///
    /// # Errors
    /// It is not known where roles are given, or TLS cannot be used.
    pub(crate) fn share(
        context: &Context,
        identity: &AwsIdentity,
        region: &str,
    ) -> Result<Arc<KeySource>, TriggerError> {
        let (address, region) = Sts::address(&context.variables, region)?;
        let [a, b, c] = key(identity);
        let key = ServerKey::new("sts", &address.origin(), &[a, b, c, &region]);
        let source = context.connections.share(&key, || {
            let sts = Sts::new(address, region)?;
            let (variables, clock) = (context.variables.clone(), context.clock.clone());
            let identity = Wanted::of(identity);
            Ok::<_, TriggerError>(KeySource {
                identity,
                sts,
                variables,
                clock,
                kept: Mutex::default(),
            })
        })?;
        source.renew(identity);
        Ok(source)
    }

    /// Takes a token that is newer than the one it has.
    fn renew(&self, identity: &AwsIdentity) {
        if let (Wanted::Workload { token, .. }, AwsIdentity::Workload { token: newer, .. }) =
            (&self.identity, identity)
        {
            *token.lock() = newer.clone();
        }
    }

    /// Keys that are valid for a while; all who wait share those that are fetched.
    ///
    /// # Errors
    /// There are none.
    pub(crate) async fn keys(&self) -> Result<Keys, TriggerError> {
        let mut kept = self.kept.lock().await;
        match &kept.last {
            Last::Keys(keys, until) if (self.clock)() < *until => return Ok(keys.clone()),
            Last::Refused(error, until) if Instant::now() < *until => return Err(error.clone()),
            _ => {}
        }
        match self.fetch().await {
            Ok((keys, expire)) => {
                let until = expire.checked_sub(EARLY).unwrap_or(Timestamp::MIN);
                kept.last = Last::Keys(keys.clone(), until);
                Ok(keys)
            }
            Err(error) => {
                if !error.is_outage() {
                    kept.last = Last::Refused(error.clone(), Instant::now() + PAUSE);
                }
                Err(error)
            }
        }
    }

    /// Drops keys that were refused, unless others were a moment ago.
    pub(crate) async fn forget(&self, refused: &Keys) {
        let mut kept = self.kept.lock().await;
        let may_drop = kept.dropped.is_none_or(|dropped| dropped.elapsed() >= PAUSE);
        if may_drop && matches!(&kept.last, Last::Keys(keys, _) if keys == refused) {
            *kept = Kept { last: Last::Nothing, dropped: Some(Instant::now()) };
        }
    }

    async fn fetch(&self) -> Result<Lent, TriggerError> {
        let (role, external_id) = match &self.identity {
            Wanted::Workload { role, token } => {
                let token = token.lock().clone();
                return self.sts.by_token(role, &token).await;
            }
            Wanted::Controller { role: None, .. } => return self.own().await,
            Wanted::Controller { role: Some(role), external_id } => (role, external_id.as_deref()),
        };
        // A role that trusts the controller's account gives keys at once; one that trusts the controller's role, in a
        // second step. Only the second has a place for an external id.
        if external_id.is_none()
            && let Some(token) = self.token().await?
        {
            match self.sts.by_token(role, &token).await {
                Err(TriggerError::Unauthorized { .. }) => {}
                other => return other,
            }
        }
        let (own, _) = self.own().await?;
        self.sts.by_keys(role, external_id, &own, (self.clock)()).await
    }

    /// The controller's own keys: those of its environment, or those of the role that its token is for.
    async fn own(&self) -> Result<Lent, TriggerError> {
        let variable = |name: &str| (self.variables)(name).filter(|value| !value.is_empty());
        let (id, secret) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"));
        if let (Some(id), Some(secret)) = (id, secret) {
            let session = variable("AWS_SESSION_TOKEN");
            let keys = Keys { id: id.expose().to_owned(), secret, session };
            // An environment does not change.
            return Ok((keys, Timestamp::MAX));
        }
        let (Some(role), Some(token)) = (variable("AWS_ROLE_ARN"), self.token().await?) else {
            return Err(TriggerError::Settings(
                "the controller has no identity at Amazon: give it AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE \
                 (annotate its service account with a role), or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                    .into(),
            ));
        };
        self.sts.by_token(role.expose(), &token).await
    }

    /// The token in the controller's file, which is replaced from time to time.
    async fn token(&self) -> Result<Option<Secret>, TriggerError> {
        const FILE: &str = "AWS_WEB_IDENTITY_TOKEN_FILE";
        match (self.variables)(FILE).filter(|path| !path.is_empty()) {
            Some(path) => file::read(FILE, &path).await.map(Some),
            None => Ok(None),
        }
    }
}

impl Wanted {
    fn of(identity: &AwsIdentity) -> Wanted {
        match identity.clone() {
            AwsIdentity::Controller { role, external_id } => {
                Wanted::Controller { role, external_id }
            }
            AwsIdentity::Workload { role, token, .. } => {
                Wanted::Workload { role, token: token.into() }
            }
        }
    }
}
