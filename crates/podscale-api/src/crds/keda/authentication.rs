//! The definitions of TriggerAuthentication and ClusterTriggerAuthentication.

use super::{Names, column, foreign, list, map, object, one_of, text};
use crate::keda::authentication::{
    CLUSTER_KIND, CLUSTER_PLURAL, CLUSTER_RESOURCE, KIND, PLURAL, RESOURCE,
};
use serde_json::{Value, json};

pub(super) fn definition() -> Value {
    of(&Names {
        kind: KIND,
        plural: PLURAL,
        resource: RESOURCE,
        short: &["ta", "triggerauth"],
        scope: "Namespaced",
    })
}

pub(super) fn definition_of_cluster() -> Value {
    of(&Names {
        kind: CLUSTER_KIND,
        plural: CLUSTER_PLURAL,
        resource: CLUSTER_RESOURCE,
        short: &["cta", "clustertriggerauth"],
        scope: "Cluster",
    })
}

fn of(names: &Names) -> Value {
    let status = object(
        "Who uses it.",
        &[],
        json!({
            "scaledobjects": text("The names of ScaledObjects."),
            "scaledjobs": text("The names of ScaledJobs."),
        }),
    );
    super::definition(names, "Where triggers get their credentials.", spec(), status, columns())
}

fn columns() -> Value {
    let wide = |name: &str, path: &str| {
        let mut column = column(name, "string", path);
        column["priority"] = json!(1);
        column
    };
    json!([
        column("PodIdentity", "string", ".spec.podIdentity.provider"),
        column("Secret", "string", ".spec.secretTargetRef[*].name"),
        column("Env", "string", ".spec.env[*].name"),
        column("VaultAddress", "string", ".spec.hashiCorpVault.address"),
        wide("ScaledObjects", ".status.scaledobjects"),
        wide("ScaledJobs", ".status.scaledjobs"),
    ])
}

fn spec() -> Value {
    let parameter = || text("The parameter of the trigger.");
    let key_refs = |description: &str| {
        let key = json!({
            "parameter": parameter(), "name": text("The object's name."), "key": text("The key in it."),
        });
        list(description, object("One of them.", &["parameter", "name", "key"], key))
    };
    object(
        "The sources of credentials.",
        &[],
        json!({
            "podIdentity": pod_identity(),
            "secretTargetRef": key_refs("Keys of Secrets."),
            "configMapTargetRef": key_refs("Keys of ConfigMaps."),
            "env": list("Environment variables of the scaled workload.",
                object("One of them.", &["parameter", "name"], json!({
                    "parameter": parameter(),
                    "name": text("The variable."),
                    "containerName": text("Of which container."),
                }))),
            "filePath": text("A file of the controller with a JSON object of strings; only of the \
                cluster's kind."),
            "hashiCorpVault": vault(),
            "azureKeyVault": foreign("Azure's vault."),
            "gcpSecretManager": foreign("Google's secrets."),
            "awsSecretManager": foreign("Amazon's secrets."),
            "boundServiceAccountToken": list("Tokens that the API server makes for service accounts.",
                object("One of them.", &["parameter", "serviceAccountName"], json!({
                    "parameter": parameter(), "serviceAccountName": text("The service account."),
                }))),
            "oauth2": oauth2(),
            "azureServicePrincipal": service_principal(),
        }),
    )
}

fn pod_identity() -> Value {
    let providers = ["azure-workload", "gcp", "aws", "aws-eks", "none"];
    object(
        "The identity of a pod in a cloud.",
        &["provider"],
        json!({
            "provider": one_of("The cloud.", &providers),
            "identityId": text("Azure's identity."),
            "identityTenantId": text("Azure's tenant."),
            "identityAuthorityHost": text("Azure's authority."),
            "roleArn": text("Amazon's role."),
            "externalID": text("Amazon's external id."),
            "identityOwner": one_of("Whose identity is used.", &["keda", "workload"]),
        }),
    )
}

fn vault() -> Value {
    let mut secrets = list(
        "What is read.",
        object(
            "One secret.",
            &["parameter", "path", "key"],
            json!({
                "parameter": text("The parameter of the trigger."),
                "path": text("Where the secret is."),
                "key": text("The key in it."),
                "type": one_of("The engine that holds it.", &["", "secretV2", "secret", "pki"]),
                "pkiData": foreign("What is asked of a certificate authority."),
            }),
        ),
    );
    secrets["minItems"] = json!(1);
    object(
        "HashiCorp Vault.",
        &["address", "authentication", "secrets"],
        json!({
            "address": text("Its address."),
            "authentication": one_of("How to log in.", &["token", "kubernetes"]),
            "namespace": text("The namespace in it."),
            "role": text("The role to log in as."),
            "mount": text("Where the way to log in is mounted."),
            "credential": object("What to log in with.", &[], json!({
                "token": text("A token."),
                "serviceAccount": text("The file of a service account's token."),
                "serviceAccountName": text("The service account."),
            })),
            "secrets": secrets,
        }),
    )
}

/// A value that stands in a Secret.
fn from_secret(description: &str) -> Value {
    let key = json!({"name": text("The Secret."), "key": text("The key in it.")});
    let reference = object("A key of a Secret.", &["name", "key"], key);
    let from = object("Where it stands.", &["secretKeyRef"], json!({"secretKeyRef": reference}));
    object(description, &["valueFrom"], json!({"valueFrom": from}))
}

fn oauth2() -> Value {
    let mut grant = one_of("The grant.", &["clientCredentials"]);
    grant["default"] = json!("clientCredentials");
    object(
        "OAuth 2 client credentials.",
        &["clientId", "tokenUrl"],
        json!({
            "type": grant,
            "clientId": text("The client."),
            "clientSecret": from_secret("Its secret."),
            "tokenUrl": text("Who gives tokens."),
            "scopes": list("What is asked for.", json!({"type": "string"})),
            "tokenUrlParams": map("What else is sent.", json!({"type": "string"})),
        }),
    )
}

fn service_principal() -> Value {
    object(
        "A service principal of Azure.",
        &["tenantId", "clientId"],
        json!({
            "tenantId": text("The tenant."),
            "clientId": text("The client."),
            "cloud": text("The cloud; the public one by default."),
            "activeDirectoryEndpoint": text("Who gives tokens in a private cloud."),
            "clientSecret": from_secret("The client's secret."),
            "clientCertificate": from_secret("The client's certificate."),
            "clientCertificatePassword": from_secret("The certificate's password."),
        }),
    )
}
