//! Who asks Amazon: whoever has the keys that a trigger brings along, or somebody whose keys are fetched.

use super::Keys;
use super::identity::{self, KeySource};
use crate::context::Context;
use crate::identity::{AwsIdentity, Identity};
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::secret::Secret;
use crate::trigger::TriggerError;
use std::sync::Arc;

const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];

/// Who asks.
#[derive(Clone, Debug)]
pub(crate) enum Asker {
    /// Whoever has these keys.
    Keys(Keys),
    /// Somebody whose keys are fetched.
    Identity(AwsIdentity),
}

impl Asker {
    /// Keys that the trigger brings along, or an identity that its authentication names.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Asker {
        let id = fields.field(&["awsAccessKeyID", "awsAccessKeyId"], AUTH_ENV).text();
        let secret = fields.field(&["awsSecretAccessKey"], AUTH_ENV).secret();
        let session = fields.field(&["awsSessionToken"], AUTH_ENV).secret();
        let owner = fields.field(&["identityOwner"], METADATA).text();
        let role = Some(fields.field(&["awsRoleArn"], AUTH).text()).filter(|role| !role.is_empty());
        const HINT: &str = "give awsAccessKeyID and awsSecretAccessKey in the authentication";
        const OF_CLUSTER: &str = "refer to a ClusterTriggerAuthentication with podIdentity.provider aws, or give \
                                  awsAccessKeyID and awsSecretAccessKey in the authentication";
        let identity = match fields.spec().identity.clone() {
            Some(Identity::Aws(identity)) => Some(identity),
            _ => None,
        };
        match identity {
            Some(AwsIdentity::Controller { role: named, external_id }) => {
                let role = named.or(role);
                return Asker::Identity(AwsIdentity::Controller { role, external_id });
            }
            Some(AwsIdentity::Workload { .. }) if owner == "operator" => {
                fields.refuse("identityOwner operator needs the controller's identity", OF_CLUSTER);
            }
            Some(workload) => return Asker::Identity(workload),
            None if role.is_some() => {
                fields.refuse("awsRoleArn needs the controller's identity", OF_CLUSTER);
            }
            None if owner == "operator" => {
                fields.refuse("identityOwner operator needs the controller's identity", OF_CLUSTER);
            }
            None if id.is_empty() => fields.refuse("awsAccessKeyID not found", HINT),
            None if secret.is_none() => fields.refuse("awsSecretAccessKey not found", HINT),
            None => {}
        }
        Asker::Keys(Keys { id, secret: secret.unwrap_or_default(), session })
    }

    /// What tells those apart who ask.
    pub(crate) fn key(&self) -> [&str; 4] {
        match self {
            Asker::Keys(Keys { id, secret, session }) => {
                let session = session.as_ref().map_or("", Secret::expose);
                ["keys", id.as_str(), secret.expose(), session]
            }
            Asker::Identity(identity) => {
                let [a, b, c] = identity::key(identity);
                ["identity", a, b, c]
            }
        }
    }

    /// Where keys come from. To be asked for also where a server is shared: an identity may have a newer token.
    ///
    /// # Errors
    /// As [`KeySource::share`].
    pub(crate) fn keys(&self, context: &Context, region: &str) -> Result<KeysOf, TriggerError> {
        Ok(match self {
            Asker::Keys(keys) => KeysOf::Trigger(keys.clone()),
            Asker::Identity(identity) => {
                KeysOf::Identity(KeySource::share(context, identity, region)?)
            }
        })
    }
}

/// Where keys come from.
pub(crate) enum KeysOf {
    Trigger(Keys),
    Identity(Arc<KeySource>),
}

impl KeysOf {
    /// Keys that are valid for a while.
    ///
    /// # Errors
    /// There are none.
    pub(crate) async fn get(&self) -> Result<Keys, TriggerError> {
        match self {
            KeysOf::Trigger(keys) => Ok(keys.clone()),
            KeysOf::Identity(source) => source.keys().await,
        }
    }

    /// Drops keys that were refused, if others can be had.
    pub(crate) async fn forget(&self, refused: &Keys) {
        if let KeysOf::Identity(source) = self {
            source.forget(refused).await;
        }
    }
}
