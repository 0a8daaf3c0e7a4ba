//! The identity in a cloud that an authentication names.
//!
//! The controller's own is for ClusterTriggerAuthentications only, as all else that is the controller's: whoever may write
//! an authentication of a namespace would have every role that the controller may take on. Those of a namespace use the
//! identity of the workload that is scaled: a token of its service account, for the role or client that the account is
//! annotated with. KEDA asks as itself, and makes no difference between the kinds.

use super::Triggers;
use super::credentials::Asked;
use super::lookup::{LookupError, Reads};
use podscale_api::keda::authentication::PodIdentity;
use podscale_client::call::{About, segment};
use podscale_scalers::{AwsIdentity, AzureIdentity, Federation, Identity};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a service account names its role in Amazon's cloud, and whom a token is for that is accepted there.
const ROLE: &str = "eks.amazonaws.com/role-arn";
const FOR_AWS: &str = "sts.amazonaws.com";
/// Where a service account names its identity in Microsoft's cloud, and whom a token is for that is accepted there.
const CLIENT: &str = "azure.workload.identity/client-id";
const TENANT: &str = "azure.workload.identity/tenant-id";
const FOR_AZURE: &str = "api://AzureADTokenExchange";
/// Where workloads name their service account, and where ScaledJobs name that of their Jobs.
const ACCOUNTS: [&str; 2] = [
    "/spec/template/spec/serviceAccountName",
    "/spec/jobTargetRef/template/spec/serviceAccountName",
];

fn missing(problem: impl Into<String>) -> LookupError {
    LookupError::Missing(problem.into())
}

impl Triggers {
    /// Whose identity a trigger has; none if the authentication names none.
    ///
    /// # Errors
    /// It is not one that triggers here have, or cannot be had.
    pub(super) async fn identity(
        &self,
        reads: &Reads,
        identity: Option<&PodIdentity>,
        asked: &Asked<'_>,
    ) -> Result<Option<Identity>, LookupError> {
        let Some(identity) = identity else { return Ok(None) };
        let is_of_workload = identity.identity_owner.as_deref() == Some("workload");
        match &*identity.provider {
            "" | "none" => Ok(None),
            "aws-eks" => self.of_workload(reads, identity, asked).await.map(Some),
            "aws" | "azure-workload" if is_of_workload => {
                self.of_workload(reads, identity, asked).await.map(Some)
            }
            "gcp" if is_of_workload => Err(missing(
                "podIdentity gcp is the controller's own identity and not that of a workload: leave out identityOwner",
            )),
            provider @ ("aws" | "azure-workload" | "gcp") if asked.name.namespace.is_some() => {
                let instead = match provider {
                    "gcp" => "give GoogleApplicationCredentials",
                    _ => "set podIdentity.identityOwner to workload",
                };
                Err(missing(format!(
                    "podIdentity {provider} is the controller's own identity, which only \
                     ClusterTriggerAuthentications may use: refer to one, or {instead}"
                )))
            }
            "aws" => {
                let (role, external_id) = (set(&identity.role_arn), set(&identity.external_id));
                Ok(Some(Identity::Aws(AwsIdentity::Controller { role, external_id })))
            }
            "azure-workload" => Ok(Some(Identity::Azure(azure(identity)))),
            "gcp" => Ok(Some(Identity::Gcp)),
            other => Err(missing(format!(
                "podIdentity {other} is not supported: no type of trigger here uses it"
            ))),
        }
    }

    /// That of the service account of the workload that is scaled.
    async fn of_workload(
        &self,
        reads: &Reads,
        identity: &PodIdentity,
        asked: &Asked<'_>,
    ) -> Result<Identity, LookupError> {
        let Account { name, annotations, what } = self.account(reads, asked).await?;
        let account = format!("{}/{name}", asked.of_object);
        let annotation = |name: &str| annotations.get(name).cloned();
        if identity.provider != "azure-workload" {
            let role = annotation(ROLE);
            let role = role.ok_or_else(|| missing(format!("{what} has no annotation {ROLE:?}")))?;
            let token = self.token(asked.of_object, &name, Some(FOR_AWS)).await?;
            return Ok(Identity::Aws(AwsIdentity::Workload { role, account, token }));
        }
        let AzureIdentity { client, tenant, authority, .. } = azure(identity);
        let (client, tenant) = (client.or(annotation(CLIENT)), tenant.or(annotation(TENANT)));
        if client.is_none() {
            return Err(missing(format!(
                "{what} has no annotation {CLIENT:?}, and podIdentity no identityId"
            )));
        }
        let token = self.token(asked.of_object, &name, Some(FOR_AZURE)).await?;
        let account = Federation::Workload { account, token };
        Ok(Identity::Azure(AzureIdentity { client, tenant, authority, account }))
    }

    /// The service account of the workload that is scaled.
    async fn account(&self, reads: &Reads, asked: &Asked<'_>) -> Result<Account, LookupError> {
        let namespace = asked.of_object;
        let target = self.target(reads, namespace, asked.target).await?;
        let named = ACCOUNTS.iter().find_map(|place| target.pointer(place)?.as_str());
        let name = named.filter(|name| !name.is_empty()).unwrap_or("default");
        let what = format!("ServiceAccount {name:?} of namespace {namespace:?}");
        let path =
            format!("/api/v1/namespaces/{}/serviceaccounts/{}", segment(namespace), segment(name));
        let about = About { resource: "serviceaccounts", name };
        self.limits.allow(namespace)?;
        let account = self.read(reads, &what, &path, about).await?;
        let annotations = account.pointer("/metadata/annotations").and_then(Value::as_object);
        let annotations = annotations.into_iter().flatten().filter_map(|(name, value)| {
            let value = value.as_str().filter(|value| !value.is_empty())?;
            Some((name.clone(), value.to_owned()))
        });
        Ok(Account { name: name.to_owned(), annotations: annotations.collect(), what })
    }
}

fn set(text: &Option<String>) -> Option<String> {
    text.clone().filter(|text| !text.is_empty())
}

/// What an authentication says of an identity in Microsoft's cloud.
fn azure(identity: &PodIdentity) -> AzureIdentity {
    AzureIdentity {
        client: set(&identity.identity_id),
        tenant: set(&identity.identity_tenant_id),
        authority: set(&identity.identity_authority_host),
        account: Federation::Controller,
    }
}

/// A service account.
struct Account {
    name: String,
    /// Those that are not empty.
    annotations: BTreeMap<String, String>,
    /// What errors call it.
    what: String,
}
