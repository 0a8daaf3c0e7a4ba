//! The identity in a cloud that an authentication names.
//!
//! The controller's own is for ClusterTriggerAuthentications only, as all else that is the controller's: whoever may write
//! an authentication of a namespace would have every role that the controller may take on. Those of a namespace use the
//! identity of the workload that is scaled: a token of its service account, for the role that the account is annotated
//! with. KEDA takes on that role as itself, and makes no difference between the kinds.

use super::Triggers;
use super::credentials::Asked;
use super::lookup::{LookupError, Reads};
use podscale_api::keda::authentication::PodIdentity;
use podscale_client::call::{About, segment};
use podscale_scalers::Identity;
use serde_json::Value;

/// Where a service account names its role.
const ROLE: &str = "eks.amazonaws.com/role-arn";
/// Whom a token is for that Amazon accepts.
const AUDIENCE: &str = "sts.amazonaws.com";
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
            "aws" if !is_of_workload && asked.name.namespace.is_some() => Err(missing(
                "podIdentity aws is the controller's own identity, which only ClusterTriggerAuthentications may \
                 use: refer to one, or set podIdentity.identityOwner to workload",
            )),
            "aws" if !is_of_workload => {
                let set = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
                let (role, external_id) = (set(&identity.role_arn), set(&identity.external_id));
                Ok(Some(Identity::Controller { role, external_id }))
            }
            "aws" | "aws-eks" => self.of_workload(reads, asked).await.map(Some),
            other => Err(missing(format!(
                "podIdentity {other} is not supported: no type of trigger here uses it"
            ))),
        }
    }

    /// That of the service account of the workload that is scaled.
    async fn of_workload(&self, reads: &Reads, asked: &Asked<'_>) -> Result<Identity, LookupError> {
        let namespace = &asked.object.metadata.namespace;
        let target = self.target(reads, namespace, &asked.object.spec.scale_target_ref).await?;
        let named = ACCOUNTS.iter().find_map(|place| target.pointer(place)?.as_str());
        let name = named.filter(|name| !name.is_empty()).unwrap_or("default");
        let what = format!("ServiceAccount {name:?} of namespace {namespace:?}");
        let path =
            format!("/api/v1/namespaces/{}/serviceaccounts/{}", segment(namespace), segment(name));
        let about = About { resource: "serviceaccounts", name };
        self.limits.allow(namespace)?;
        let account = self.read(reads, &what, &path, about).await?;
        let annotations = account.pointer("/metadata/annotations");
        let role = annotations.and_then(|all| all.get(ROLE)).and_then(Value::as_str);
        let role = role.filter(|role| !role.is_empty());
        let role = role.ok_or_else(|| missing(format!("{what} has no annotation {ROLE:?}")))?;
        let token = self.token(namespace, name, Some(AUDIENCE)).await?;
        let account = format!("{namespace}/{name}");
        Ok(Identity::Workload { role: role.to_owned(), account, token })
    }
}
