//! What an authentication has in HashiCorp Vault.
//!
//! Whoever may write an authentication chooses the address that it is sent to. So those of a namespace log in with a token
//! of their own or with that of a service account of their namespace; only ClusterTriggerAuthentications may use what
//! is the controller's: its token, its files, its environment. KEDA makes no difference.

use super::hidden::Hidden;
use super::lookup::{LookupError, Reads};
use super::{AuthenticationName, Triggers};
use podscale_api::keda::authentication::{Vault as Spec, VaultSecret};
use podscale_scalers::vault::Vault;
use podscale_scalers::{Secret, TriggerError};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// Where a pod has the token of its service account.
const OWN_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
/// The variable with a token for Vault.
const VARIABLE: &str = "VAULT_TOKEN";
/// The type of secrets that are made when they are asked for.
const PKI: &str = "pki";

fn missing(problem: impl Into<String>) -> LookupError {
    LookupError::Missing(problem.into())
}

/// Why Vault gave nothing, without what it was sent: it may repeat that.
fn refused(error: &TriggerError, sent: &[&Secret]) -> LookupError {
    let problem = Hidden::of(sent.iter().copied()).hide(error.to_string());
    match error {
        TriggerError::Unreachable { .. } | TriggerError::Late(_) | TriggerError::Open { .. } => {
            LookupError::Unsure { what: "Vault".to_owned(), problem }
        }
        _ => LookupError::Missing(problem),
    }
}

impl Triggers {
    /// The parameters that an authentication has there, read once for all who need them now.
    ///
    /// # Errors
    /// It cannot be logged in, or something is not there.
    pub(super) async fn vault(
        &self,
        reads: &Reads,
        spec: &Spec,
        name: &AuthenticationName,
        namespace: &str,
    ) -> Result<Arc<[(String, Secret)]>, LookupError> {
        let place = reads.vault(name);
        let read = || async { self.read_vault(spec, name, namespace).await.map(Arc::from) };
        place.get_or_init(|| Box::pin(read())).await.clone()
    }

    async fn read_vault(
        &self,
        spec: &Spec,
        name: &AuthenticationName,
        namespace: &str,
    ) -> Result<Vec<(String, Secret)>, LookupError> {
        let vault =
            Vault::new(&spec.address, &spec.namespace).map_err(|error| refused(&error, &[]))?;
        let is_of_cluster = name.namespace.is_none();
        let token = match &*spec.authentication {
            "token" => own_token(spec, is_of_cluster)?,
            "kubernetes" => {
                if spec.mount.is_empty() || spec.role.is_empty() {
                    return Err(missing(
                        "Vault: mount and role are needed to log in by kubernetes",
                    ));
                }
                let account = self.account_token(spec, is_of_cluster, namespace).await?;
                let token = vault.log_in(&spec.mount, &spec.role, &account).await;
                token.map_err(|error| refused(&error, &[&account]))?
            }
            other => return Err(missing(format!("vault auth method {other} is not supported"))),
        };
        // What several parameters come from is read, or issued, once.
        let mut known: HashMap<(&str, Option<String>), Value> = HashMap::new();
        let mut found = Vec::with_capacity(spec.secrets.len());
        for secret in &spec.secrets {
            let request = request(secret);
            let place = (secret.path.as_str(), request.as_ref().map(Value::to_string));
            let data = match known.remove(&place) {
                Some(data) => data,
                None => {
                    let data = vault.read(&token, &secret.path, request.as_ref()).await;
                    data.map_err(|error| refused(&error, &[&token]))?
                }
            };
            let value = value(&data, secret);
            known.insert(place, data);
            let value = value.ok_or_else(|| {
                let VaultSecret { parameter, path, key, .. } = secret;
                missing(format!(
                    "Vault has no text with the key {key:?} at {path:?}, which is to give {parameter:?}"
                ))
            })?;
            found.push((secret.parameter.clone(), value));
        }
        Ok(found)
    }

    /// The token of the service account that is to log in.
    async fn account_token(
        &self,
        spec: &Spec,
        is_of_cluster: bool,
        namespace: &str,
    ) -> Result<Secret, LookupError> {
        let credential = spec.credential.as_ref();
        let account = credential.map_or("", |credential| &credential.service_account_name);
        if !account.is_empty() {
            return self.token(namespace, account, None).await;
        }
        if !is_of_cluster {
            return Err(missing(
                "Vault: credential.serviceAccountName is needed to log in by kubernetes; only \
                 ClusterTriggerAuthentications log in with the controller's own token",
            ));
        }
        let file = match credential.map_or("", |credential| &credential.service_account) {
            "" | OWN_TOKEN => OWN_TOKEN.into(),
            path => self.limits.file(path)?,
        };
        let text = tokio::fs::read_to_string(&file).await;
        let text = text.map_err(|error| missing(format!("Vault: {}: {error}", file.display())))?;
        Ok(Secret::from(text.trim()))
    }
}

/// The token that an authentication brings along, or the controller's.
fn own_token(spec: &Spec, is_of_cluster: bool) -> Result<Secret, LookupError> {
    let of_controller = std::env::var(VARIABLE).ok().filter(|_| is_of_cluster);
    let given = spec.credential.as_ref().map(|credential| credential.token.clone());
    let token = of_controller.or(given).filter(|token| !token.is_empty());
    token.map(Secret::from).ok_or_else(|| missing("could not get Vault token"))
}

/// What is asked of a certificate authority; the others are only read.
fn request(secret: &VaultSecret) -> Option<Value> {
    let given = secret.pki_data.as_ref().and_then(Value::as_object);
    (secret.r#type == PKI).then(|| {
        let named = given.into_iter().flatten().map(|(name, value)| (in_snake_case(name), value));
        Value::Object(named.map(|(name, value)| (name, value.clone())).collect::<Map<_, _>>())
    })
}

/// A name of a field of Kubernetes as Vault has it: `commonName` is `common_name`.
fn in_snake_case(name: &str) -> String {
    name.chars().fold(String::with_capacity(name.len() + 4), |mut snake, letter| {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        snake
    })
}

/// The value of the key of a secret. The second version of the key-value store has data within its data.
fn value(data: &Value, secret: &VaultSecret) -> Option<Secret> {
    let within = data.get("data").filter(|data| data.is_object());
    let of_type = match &*secret.r#type {
        "secret" | PKI => Some(data),
        "secretV2" => within,
        _ => within.or(Some(data)),
    };
    of_type?.get(&secret.key)?.as_str().map(Secret::from)
}
