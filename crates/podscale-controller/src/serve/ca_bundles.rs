//! Keeps the `caBundle` of what leads the API server here current, so that it trusts our certificate: of our
//! APIServices, and of our ValidatingWebhookConfiguration. Nothing else of them is changed, and nothing that leads
//! elsewhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use podscale_client::call::{self, About, CallError, segment};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

#[cfg(test)]
mod tests;

/// How often it is made sure that all is still as it should be; wall-clock.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How often it is checked whether something leads here by now; wall-clock. While an APIService does and does not
/// trust us yet, nobody has metrics.
const WAIT_INTERVAL: Duration = Duration::from_secs(5);

/// An object that leads the API server to a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Registration {
    /// An APIService, such as `v1beta1.metrics.k8s.io`.
    ApiService(String),
    /// A ValidatingWebhookConfiguration.
    Webhooks(String),
}

/// Which objects lead here.
#[derive(Clone)]
pub struct CaBundles {
    /// The API server.
    pub client: Client,
    /// The namespace and the name of our Service.
    pub service: (String, String),
    /// The objects.
    pub registrations: Vec<Registration>,
}

/// What is to be done about an object.
#[derive(Debug, PartialEq)]
enum Wanted {
    /// It is as it should be.
    Nothing,
    /// It leads to another Service.
    Elsewhere,
    /// It trusts anybody.
    Unverified,
    /// It gets our authorities, by this merge patch.
    Bundle(Value),
}

impl Registration {
    fn name(&self) -> &str {
        match self {
            Registration::ApiService(name) | Registration::Webhooks(name) => name,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Registration::ApiService(_) => "APIService",
            Registration::Webhooks(_) => "ValidatingWebhookConfiguration",
        }
    }

    fn about(&self) -> About<'_> {
        let resource = match self {
            Registration::ApiService(_) => "apiservices.apiregistration.k8s.io",
            Registration::Webhooks(_) => {
                "validatingwebhookconfigurations.admissionregistration.k8s.io"
            }
        };
        About { resource, name: self.name() }
    }

    fn path(&self) -> String {
        let resource = match self {
            Registration::ApiService(_) => "apiregistration.k8s.io/v1/apiservices",
            Registration::Webhooks(_) => {
                "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
            }
        };
        format!("/apis/{resource}/{}", segment(self.name()))
    }

    fn wanted(&self, object: &Value, service: &(String, String), authorities: &str) -> Wanted {
        let bundle = STANDARD.encode(authorities);
        match self {
            Registration::ApiService(_) => of_api_service(&object["spec"], service, bundle),
            Registration::Webhooks(_) => of_webhooks(&object["webhooks"], service, bundle),
        }
    }
}

/// Whether a reference to a Service leads here.
fn leads_to(reference: &Value, service: &(String, String)) -> bool {
    reference["namespace"] == service.0.as_str() && reference["name"] == service.1.as_str()
}

fn of_api_service(spec: &Value, service: &(String, String), bundle: String) -> Wanted {
    if !leads_to(&spec["service"], service) {
        return Wanted::Elsewhere;
    }
    if spec["insecureSkipTLSVerify"] == true {
        return Wanted::Unverified;
    }
    if spec["caBundle"] == bundle.as_str() {
        return Wanted::Nothing;
    }
    Wanted::Bundle(json!({"spec": {"caBundle": bundle}}))
}

/// A merge patch has all webhooks or none, so those that lead elsewhere are in it as they are.
fn of_webhooks(webhooks: &Value, service: &(String, String), bundle: String) -> Wanted {
    let bundle = Value::String(bundle);
    let mut patched = webhooks.as_array().cloned().unwrap_or_default();
    let ours = patched.iter_mut().filter_map(|webhook| webhook.get_mut("clientConfig"));
    let ours: Vec<&mut Value> =
        ours.filter(|config| leads_to(&config["service"], service)).collect();
    if ours.is_empty() {
        return Wanted::Elsewhere;
    }
    if ours.iter().all(|config| config["caBundle"] == bundle) {
        return Wanted::Nothing;
    }
    for config in ours {
        config["caBundle"] = bundle.clone();
    }
    Wanted::Bundle(json!({"webhooks": patched}))
}

impl CaBundles {
    /// Keeps them current until dropped.
    pub async fn follow(self, mut authorities: watch::Receiver<String>) {
        let mut reported = vec![String::new(); self.registrations.len()];
        loop {
            let current = authorities.borrow_and_update().clone();
            for (registration, reported) in self.registrations.iter().zip(&mut reported) {
                let note = match self.check(registration, &current).await {
                    Ok(Wanted::Nothing) => String::new(),
                    Ok(Wanted::Bundle(_)) => "trusts our certificate now".to_owned(),
                    Ok(Wanted::Elsewhere) => {
                        "leads to another Service; it is left alone".to_owned()
                    }
                    Ok(Wanted::Unverified) => {
                        "has insecureSkipTLSVerify, so its caBundle is left alone".to_owned()
                    }
                    Err(error) if error.is_not_found() => "does not exist".to_owned(),
                    Err(error) => error.to_string(),
                };
                // Each state is said once.
                if *reported != note && !note.is_empty() {
                    let (kind, name) = (registration.kind(), registration.name());
                    tracing::info!(kind, name, "{note}");
                }
                *reported = note;
            }
            let settled = reported.iter().all(String::is_empty);
            let pause = if settled { CHECK_INTERVAL } else { WAIT_INTERVAL };
            tokio::select! {
                changed = authorities.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn check(
        &self,
        registration: &Registration,
        authorities: &str,
    ) -> Result<Wanted, CallError> {
        let (about, path) = (registration.about(), registration.path());
        let object: Value = call::get(&self.client, &path, about).await?;
        let wanted = registration.wanted(&object, &self.service, authorities);
        if let Wanted::Bundle(patch) = &wanted {
            let mut patch = patch.clone();
            // If it was changed in between, it must be looked at again.
            patch["metadata"] = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
            call::send::<IgnoredAny>(&self.client, "PATCH", &path, &patch, about).await?;
        }
        Ok(wanted)
    }
}
