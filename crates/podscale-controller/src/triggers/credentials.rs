//! What the authentication of a trigger gives, by parameter.

use super::lookup::{Key, LookupError, Reads, Store};
use super::{AuthenticationName, Triggers};
use podscale_api::keda::authentication::{AuthenticationSpec, KeyRef};
use podscale_api::keda::check;
use podscale_api::keda::scaled_object::ScaleTarget;
use podscale_scalers::{Identity, Secret, is_file};
use std::collections::BTreeMap;

/// Parameters with their values.
pub(super) type Credentials = BTreeMap<String, Secret>;

/// All that an authentication gives.
#[derive(Default)]
pub(super) struct Authentication {
    pub(super) parameters: Credentials,
    pub(super) identity: Option<Identity>,
}

/// An authentication of an object's trigger.
pub(super) struct Asked<'a> {
    pub(super) name: &'a AuthenticationName,
    /// The namespace of the object.
    pub(super) of_object: &'a str,
    /// What the object scales.
    pub(super) target: &'a ScaleTarget,
    /// Where Secrets, ConfigMaps and service accounts are.
    namespace: &'a str,
}

impl Triggers {
    /// What an authentication gives. Of two sources of the same parameter the later one counts; a file replaces all
    /// that came before it and ends the search.
    ///
    /// # Errors
    /// It does not exist, or what it refers to cannot be had. KEDA goes on without.
    pub(super) async fn credentials(
        &self,
        reads: &Reads,
        of_object: &str,
        target: &ScaleTarget,
        name: &AuthenticationName,
    ) -> Result<Authentication, LookupError> {
        let Some(spec) = self.authentications.get(name) else {
            return Err(LookupError::Missing(format!("{name} does not exist")));
        };
        let of_it = |error: LookupError| match error {
            LookupError::Unsure { what, problem } => {
                LookupError::Unsure { what: format!("{name}: {what}"), problem }
            }
            LookupError::Missing(problem) => LookupError::Missing(format!("{name}: {problem}")),
        };
        check::authentication(&spec).map_err(LookupError::Missing).map_err(of_it)?;
        if let Some(source) = unread_source(&spec) {
            return Err(of_it(LookupError::Missing(format!("{source} is not supported"))));
        }
        let namespace = match &name.namespace {
            Some(namespace) => &**namespace,
            None => self.limits.own_namespace.as_str(),
        };
        let asked = Asked { name, of_object, target, namespace };
        let identity = self.identity(reads, spec.pod_identity.as_ref(), &asked).await;
        let identity = identity.map_err(of_it)?;
        let parameters = self.gather(reads, &spec, &asked).await.map_err(of_it)?;
        Ok(Authentication { parameters, identity })
    }

    async fn gather(
        &self,
        reads: &Reads,
        spec: &AuthenticationSpec,
        asked: &Asked<'_>,
    ) -> Result<Credentials, LookupError> {
        let mut found = Credentials::new();
        for variable in &spec.env {
            let (namespace, target) = (asked.of_object, asked.target);
            let container = &variable.container_name;
            let environment = self.environment(reads, namespace, target, container).await?;
            let value = self.variable(reads, &environment, &variable.name).await?;
            let value = value.ok_or_else(|| {
                LookupError::Missing(format!("the container has no variable {:?}", variable.name))
            })?;
            found.insert(variable.parameter.clone(), value);
        }
        if !spec.file_path.is_empty() {
            if asked.name.namespace.is_some() {
                let refused = "filePath is only for ClusterTriggerAuthentications";
                return Err(LookupError::Missing(refused.to_owned()));
            }
            return Ok(self.file(&spec.file_path).await?.into_iter().collect());
        }
        for (store, references) in [
            (Store::ConfigMap, &spec.config_map_target_ref),
            (Store::Secret, &spec.secret_target_ref),
        ] {
            for reference in references {
                let value = self.referenced(reads, store, asked.namespace, reference).await?;
                found.insert(reference.parameter.clone(), value);
            }
        }
        if let Some(vault) = &spec.hashi_corp_vault {
            let values = self.vault(reads, vault, asked.name, asked.namespace).await?;
            found.extend(values.iter().cloned());
        }
        for token in &spec.bound_service_account_token {
            let value = self.token(asked.namespace, &token.service_account_name, None).await?;
            found.insert(token.parameter.clone(), value);
        }
        Ok(found)
    }

    async fn referenced(
        &self,
        reads: &Reads,
        store: Store,
        namespace: &str,
        reference: &KeyRef,
    ) -> Result<Secret, LookupError> {
        let KeyRef { parameter, name, key } = reference;
        let wanted = if is_file(parameter) { Key::File(key) } else { Key::Text(key) };
        let value = self.value(reads, store, namespace, name, wanted).await?;
        value.ok_or_else(|| {
            LookupError::Missing(format!(
                "{name:?} of namespace {namespace:?} has no key {key:?}, which is to give {parameter:?}"
            ))
        })
    }
}

/// A source of credentials that an authentication names and that is not read here.
fn unread_source(spec: &AuthenticationSpec) -> Option<&'static str> {
    let sources = [
        ("azureKeyVault", spec.azure_key_vault.is_some()),
        ("gcpSecretManager", spec.gcp_secret_manager.is_some()),
        ("awsSecretManager", spec.aws_secret_manager.is_some()),
        ("oauth2", spec.oauth2.is_some()),
        ("azureServicePrincipal", spec.azure_service_principal.is_some()),
    ];
    sources.into_iter().find_map(|(name, is_set)| is_set.then_some(name))
}
