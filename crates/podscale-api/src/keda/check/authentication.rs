//! What is wrong with a TriggerAuthentication, in the words of KEDA's webhook.

use crate::keda::authentication::{AuthenticationSpec, AzureServicePrincipal, OAuth2, PodIdentity};

/// The first thing that is wrong with an authentication.
///
/// # Errors
/// What is wrong.
pub fn authentication(spec: &AuthenticationSpec) -> Result<(), String> {
    let problem = spec
        .azure_service_principal
        .as_ref()
        .and_then(service_principal)
        .map(str::to_owned)
        .or_else(|| spec.pod_identity.as_ref().and_then(identity).map(str::to_owned))
        .or_else(|| spec.oauth2.as_ref().and_then(oauth2));
    problem.map_or(Ok(()), Err)
}

fn is_set(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| !text.is_empty())
}

fn is_empty(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(String::is_empty)
}

fn identity(identity: &PodIdentity) -> Option<&'static str> {
    match &*identity.provider {
        "azure-workload" if is_empty(&identity.identity_id) => Some(
            "identityId of PodIdentity should not be empty. If it's set, identityId has to be \
             different than \"\"",
        ),
        "azure-workload"
            if is_set(&identity.identity_authority_host)
                && !is_set(&identity.identity_tenant_id) =>
        {
            Some(
                "identityTenantID of PodIdentity should not be nil or empty when \
                 identityAuthorityHost of PodIdentity is set",
            )
        }
        "azure-workload" if is_empty(&identity.identity_tenant_id) => Some(
            "identityTenantId of PodIdentity should not be empty. If it's set, identityTenantId has \
             to be different than \"\"",
        ),
        "aws"
            if is_set(&identity.role_arn)
                && identity.identity_owner.as_deref() == Some("workload") =>
        {
            Some("roleArn of PodIdentity can't be set if KEDA isn't identityOwner")
        }
        "aws" if is_set(&identity.external_id) && !is_set(&identity.role_arn) => {
            Some("externalID of PodIdentity requires roleArn to be set")
        }
        _ => None,
    }
}

fn oauth2(oauth2: &OAuth2) -> Option<String> {
    let host = ["http://", "https://"]
        .iter()
        .find_map(|scheme| oauth2.token_url.strip_prefix(scheme))
        .and_then(|rest| rest.split(['/', '?', '#']).next());
    Some(match () {
        () if oauth2.r#type != "clientCredentials" => {
            format!("oauth2.type must be 'clientCredentials', got '{}'", oauth2.r#type)
        }
        () if oauth2.client_id.is_empty() => {
            "oauth2.clientId is required when oauth2 is configured".to_owned()
        }
        () if oauth2.token_url.is_empty() => {
            "oauth2.tokenUrl is required when oauth2 is configured".to_owned()
        }
        () if host.is_none_or(str::is_empty) => {
            "oauth2.tokenUrl must be a valid http or https URL".to_owned()
        }
        () => return None,
    })
}

fn service_principal(principal: &AzureServicePrincipal) -> Option<&'static str> {
    let (secret, certificate) = (&principal.client_secret, &principal.client_certificate);
    let is_private = principal.cloud.eq_ignore_ascii_case("Private");
    let endpoint = !principal.active_directory_endpoint.is_empty();
    Some(match () {
        () if principal.tenant_id.is_empty() => {
            "azureServicePrincipal.tenantId is required when azureServicePrincipal is configured"
        }
        () if principal.client_id.is_empty() => {
            "azureServicePrincipal.clientId is required when azureServicePrincipal is configured"
        }
        () if secret.is_some() && certificate.is_some() => {
            "azureServicePrincipal.clientSecret and azureServicePrincipal.clientCertificate are \
             mutually exclusive"
        }
        () if secret.is_none() && certificate.is_none() => {
            "azureServicePrincipal requires either clientSecret or clientCertificate"
        }
        () if principal.client_certificate_password.is_some() && certificate.is_none() => {
            "azureServicePrincipal.clientCertificatePassword requires clientCertificate"
        }
        () if is_private && !endpoint => {
            "azureServicePrincipal.activeDirectoryEndpoint is required when cloud is Private"
        }
        () if !is_private && endpoint => {
            "azureServicePrincipal.activeDirectoryEndpoint can only be set when cloud is Private"
        }
        () => return None,
    })
}
