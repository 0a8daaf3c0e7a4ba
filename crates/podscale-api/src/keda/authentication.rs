//! TriggerAuthentication and ClusterTriggerAuthentication: where triggers get their credentials. These
//! objects hold names of secrets, never the secrets themselves; only a token for Vault may stand in one,
//! and is not shown.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};

use crate::meta::ObjectMeta;
use crate::serde_form::{list, null_default};

/// The kind of those that belong to a namespace.
pub const KIND: &str = "TriggerAuthentication";
/// Their name in paths.
pub const PLURAL: &str = "triggerauthentications";
/// Their name in errors, and that of their CustomResourceDefinition.
pub const RESOURCE: &str = "triggerauthentications.keda.sh";
/// The kind of those that belong to the cluster.
pub const CLUSTER_KIND: &str = "ClusterTriggerAuthentication";
/// Their name in paths.
pub const CLUSTER_PLURAL: &str = "clustertriggerauthentications";
/// Their name in errors, and that of their CustomResourceDefinition.
pub const CLUSTER_RESOURCE: &str = "clustertriggerauthentications.keda.sh";

/// Where triggers of a namespace get credentials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TriggerAuthentication {
    /// `TriggerAuthentication`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// `keda.sh/v1alpha1`
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Name and so on.
    #[serde(deserialize_with = "null_default")]
    pub metadata: ObjectMeta,
    /// The sources.
    #[serde(deserialize_with = "null_default")]
    pub spec: AuthenticationSpec,
    /// Who uses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<AuthenticationStatus>,
}

/// Where triggers of any namespace get credentials: an object of the same form.
pub type ClusterTriggerAuthentication = TriggerAuthentication;

/// Who uses an authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuthenticationStatus {
    /// The names of ScaledObjects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scaledobjects: String,
    /// The names of ScaledJobs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub scaledjobs: String,
}

/// The sources of credentials. Of two that give the same parameter the later one here wins; a file
/// replaces all that comes before it and ends the search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthenticationSpec {
    /// The identity of a pod in a cloud.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_identity: Option<PodIdentity>,
    /// Environment variables of the scaled workload.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub env: Vec<EnvironmentRef>,
    /// A file of the controller, below a folder of its choice, with a JSON object of strings; only of the
    /// cluster's kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file_path: String,
    /// Keys of ConfigMaps.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub config_map_target_ref: Vec<KeyRef>,
    /// Keys of Secrets.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub secret_target_ref: Vec<KeyRef>,
    /// HashiCorp Vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hashi_corp_vault: Option<Vault>,
    /// Azure's vault, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_key_vault: Option<Value>,
    /// Google's secrets, as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcp_secret_manager: Option<Value>,
    /// Amazon's secrets, as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aws_secret_manager: Option<Value>,
    /// Tokens that the API server makes for service accounts.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub bound_service_account_token: Vec<ServiceAccountToken>,
    /// OAuth 2 client credentials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oauth2: Option<OAuth2>,
    /// A service principal of Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure_service_principal: Option<AzureServicePrincipal>,
}

/// The identity of a pod in a cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodIdentity {
    /// `azure-workload`, `gcp`, `aws`, `aws-eks` or `none`.
    pub provider: String,
    /// Azure's identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_id: Option<String>,
    /// Azure's tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_tenant_id: Option<String>,
    /// Azure's authority.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_authority_host: Option<String>,
    /// Amazon's role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role_arn: Option<String>,
    /// Amazon's external id.
    #[serde(rename = "externalID", skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// `keda` or `workload`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity_owner: Option<String>,
}

/// A key of a Secret or ConfigMap that gives a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyRef {
    /// The parameter of the trigger.
    pub parameter: String,
    /// The name of the Secret or ConfigMap.
    pub name: String,
    /// The key in it.
    pub key: String,
}

/// An environment variable of the scaled workload that gives a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentRef {
    /// The parameter of the trigger.
    pub parameter: String,
    /// The variable.
    pub name: String,
    /// Of which container; the one that the object names, or the first, by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub container_name: String,
}

/// A service account whose token gives a parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceAccountToken {
    /// The parameter of the trigger.
    pub parameter: String,
    /// The service account.
    pub service_account_name: String,
}

/// HashiCorp Vault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Vault {
    /// Its address.
    pub address: String,
    /// `token` or `kubernetes`.
    pub authentication: String,
    /// What is read.
    #[serde(deserialize_with = "list")]
    pub secrets: Vec<VaultSecret>,
    /// The namespace in it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// How to log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<VaultCredential>,
    /// The role to log in as.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    /// Where the way to log in is mounted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mount: String,
}

/// How to log in to Vault.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VaultCredential {
    /// A token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The file of a service account's token.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account: String,
    /// The service account.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,
}

impl Debug for VaultCredential {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let token = if self.token.is_empty() { "" } else { "(redacted)" };
        f.debug_struct("VaultCredential")
            .field("token", &token)
            .field("service_account", &self.service_account)
            .field("service_account_name", &self.service_account_name)
            .finish()
    }
}

/// A secret in Vault that gives a parameter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VaultSecret {
    /// The parameter of the trigger.
    pub parameter: String,
    /// Where the secret is.
    pub path: String,
    /// The key in it.
    pub key: String,
    /// Empty, `secretV2`, `secret` or `pki`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub r#type: String,
    /// What is asked of a certificate authority, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pki_data: Option<Value>,
}

/// OAuth 2 client credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuth2 {
    /// `clientCredentials`
    pub r#type: String,
    /// The client.
    pub client_id: String,
    /// Its secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<FromSecret>,
    /// Who gives tokens.
    pub token_url: String,
    /// What is asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "list")]
    pub scopes: Vec<String>,
    /// What else is sent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_default")]
    pub token_url_params: BTreeMap<String, String>,
}

/// A service principal of Azure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureServicePrincipal {
    /// The tenant.
    pub tenant_id: String,
    /// The client.
    pub client_id: String,
    /// The cloud; the public one by default.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cloud: String,
    /// Who gives tokens in a private cloud.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub active_directory_endpoint: String,
    /// The client's secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<FromSecret>,
    /// The client's certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate: Option<FromSecret>,
    /// The certificate's password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_certificate_password: Option<FromSecret>,
}

/// A value that stands in a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FromSecret {
    /// Where.
    #[serde(deserialize_with = "null_default")]
    pub value_from: ValueFrom,
}

/// Where a value stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueFrom {
    /// A key of a Secret.
    #[serde(deserialize_with = "null_default")]
    pub secret_key_ref: SecretKey,
}

/// A key of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretKey {
    /// The Secret.
    pub name: String,
    /// The key.
    pub key: String,
}
