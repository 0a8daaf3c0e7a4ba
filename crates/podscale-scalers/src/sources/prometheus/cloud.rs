//! Prometheus as Amazon, Microsoft and Google offer it: who asks there.

use super::METADATA_AUTH;
use crate::address::Address;
use crate::aws::asker::Asker;
use crate::aws::signer::Signer;
use crate::context::Context;
use crate::gcp::{self, Account};
use crate::http::token::Proof;
use crate::identity::{AzureIdentity, Identity};
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::trigger::TriggerError;
use crate::{aws, azure};
use std::sync::Arc;

const ENV: &[Place] = &[Place::Env];
/// The clouds of Microsoft that have a Prometheus, and what its servers' names end with.
const AZURE_CLOUDS: [(&str, &str); 3] = [
    ("AzurePublicCloud", "prometheus.monitor.azure.com"),
    ("AzureUSGovernmentCloud", "prometheus.monitor.azure.us"),
    ("AzureChinaCloud", "prometheus.monitor.azure.cn"),
];
/// What the names of Google's servers end with.
const GOOGLE: &str = "googleapis.com";

/// Who is asked, and how.
pub(super) struct Asked<'a> {
    pub(super) address: &'a Address,
    /// Whether any certificate is accepted.
    pub(super) insecure: bool,
    /// What the trigger adds to requests.
    pub(super) headers: &'a [(String, String)],
}

/// Whose cloud, and who asks.
#[derive(Clone, Debug)]
pub(super) enum Cloud {
    Amazon { asker: Asker, region: String },
    Azure { identity: AzureIdentity, scope: String },
    Google(Account),
}

impl Cloud {
    /// Reads who asks, if it is somebody whom a cloud knows.
    pub(super) fn read(
        fields: &mut Fields<'_>,
        has_modes: bool,
        asked: &Asked<'_>,
    ) -> Option<Cloud> {
        let region = fields.field(&["awsRegion"], METADATA_AUTH).text();
        let cloud = fields.field(&["cloud"], METADATA).text();
        let resource = fields.field(&["azureManagedPrometheusResourceURL"], METADATA).text();
        let key = fields.field(&["GoogleApplicationCredentials"], AUTH).secret();
        let key = key.or_else(|| fields.field(&["credentials"], ENV).secret());
        fields.allow(&["identityOwner"]);
        let identity = fields.spec().identity.clone();
        if fields.field(&["credentialsFromEnvFile"], METADATA).is_given() {
            fields.refuse(
                "credentialsFromEnvFile names a file of the controller, and triggers may not read files",
                "give GoogleApplicationCredentials in the authentication",
            );
        }
        if has_modes && identity.is_some() {
            let hint = "leave out authModes, or podIdentity of the authentication";
            fields.refuse("pod identity cannot be enabled with other auth types", hint);
        }
        if has_modes {
            return None;
        }
        let found = match (identity, key) {
            (Some(Identity::Azure(identity)), _) => azure(fields, identity, &cloud, &resource),
            (Some(Identity::Gcp), _) => Cloud::Google(Account::Controller),
            (None, Some(key)) => Cloud::Google(Account::Key(key)),
            (Some(Identity::Aws(_)), _) if region.is_empty() => {
                fields.refuse("no awsRegion given", "set metadata.awsRegion");
                return None;
            }
            (None, None) if region.is_empty() => return None,
            (Some(Identity::Aws(_)) | None, _) => {
                Cloud::Amazon { asker: Asker::read(fields), region }
            }
        };
        found.refuse_others(fields, asked);
        Some(found)
    }

    /// Whoever has a token is whom it is of, so that tokens of the controller go to the servers of their cloud only: whoever
    /// writes a trigger chooses the address. A signature is of no use to others.
    fn refuse_others(&self, fields: &mut Fields<'_>, asked: &Asked<'_>) {
        let Asked { address, insecure, headers } = *asked;
        let suffixes: Vec<&str> = match self {
            Cloud::Azure { identity, .. } if identity.is_of_controller() => {
                AZURE_CLOUDS.iter().map(|(_, suffix)| *suffix).collect()
            }
            Cloud::Google(Account::Controller) => vec![GOOGLE],
            _ => return,
        };
        if address.authority.is_empty() || address.is_loopback() {
            return;
        }
        let host = address.host();
        let is_of_cloud = |suffix: &str| host == suffix || host.ends_with(&format!(".{suffix}"));
        if address.scheme != "https" || !suffixes.iter().any(|suffix| is_of_cloud(suffix)) {
            fields.refuse(
                "serverAddress is none of the cloud whose token of the controller would be sent to it",
                &format!("write an address below https://…{}", suffixes[0]),
            );
        }
        // Else whoever is in between, or whom the header names, is the one that gets the token.
        fields.refuse_unverified(insecure);
        if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            fields.refuse(
                "customHeaders: a request with the controller's token may not name another host",
                "leave Host out",
            );
        }
    }

    /// What tells apart who asks.
    pub(super) fn key(&self) -> Vec<&str> {
        let mut key = Vec::new();
        match self {
            Cloud::Amazon { asker, region } => {
                key.extend(["aws", region.as_str()]);
                key.extend(asker.key());
            }
            Cloud::Azure { identity, scope } => {
                key.extend(["azure", scope.as_str()]);
                key.extend(azure::key(identity));
            }
            Cloud::Google(account) => {
                key.push("gcp");
                key.extend(account.key());
            }
        }
        key
    }

    /// What requests carry. To be made also where a server is shared: an identity may have a newer token.
    ///
    /// # Errors
    /// There is no such identity, or its credentials cannot be used.
    pub(super) fn proof(&self, context: &Context) -> Result<Arc<dyn Proof>, TriggerError> {
        Ok(match self {
            Cloud::Amazon { asker, region } => {
                let keys = asker.keys(context, region)?;
                let (region, clock) = (region.clone(), context.clock.clone());
                Arc::new(Signer { service: aws::PROMETHEUS, region, keys, clock })
            }
            Cloud::Azure { identity, scope } => azure::share(context, identity, scope)?,
            Cloud::Google(account) => gcp::share(context, account, gcp::MONITORING)?,
        })
    }
}

/// An identity of Microsoft's, and what its tokens are for in its cloud.
fn azure(fields: &mut Fields<'_>, identity: AzureIdentity, cloud: &str, resource: &str) -> Cloud {
    let known = AZURE_CLOUDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(cloud));
    let scope = match known {
        _ if cloud.eq_ignore_ascii_case("Private") => {
            if identity.is_of_controller() {
                fields.refuse(
                    "a trigger may not choose for which resource the controller gets a token (cloud Private)",
                    "set podIdentity.identityOwner of the authentication to workload",
                );
            } else if resource.is_empty() {
                fields.refuse(
                    "azureManagedPrometheusResourceURL must be provided for PRIVATE cloud type",
                    "set metadata.azureManagedPrometheusResourceURL",
                );
            }
            resource.to_owned()
        }
        Some((_, suffix)) => format!("https://{suffix}/.default"),
        None if cloud.is_empty() => format!("https://{}/.default", AZURE_CLOUDS[0].1),
        None => {
            let names = AZURE_CLOUDS.map(|(name, _)| name).join(", ");
            fields.refuse(
                format!("invalid cloud environment {cloud}"),
                &format!("write one of {names}, Private"),
            );
            String::new()
        }
    };
    Cloud::Azure { identity, scope }
}
