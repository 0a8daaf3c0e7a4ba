//! Keeps the `caBundle` of our APIServices current, so that the API server trusts our certificate.
//! Nothing else of them is changed, and none that leads elsewhere.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::Client;
use podscale_client::call::{self, About, CallError, segment};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::watch;

/// How often it is made sure that all is still as it should be; wall-clock.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How often it is checked whether an APIService leads here by now; wall-clock. While one does and does not
/// trust us yet, nobody has metrics.
const WAIT_INTERVAL: Duration = Duration::from_secs(5);
const RESOURCE: &str = "apiservices.apiregistration.k8s.io";

/// Which APIServices lead here.
#[derive(Clone)]
pub struct ApiServices {
    /// The API server.
    pub client: Client,
    /// The namespace and the name of our Service.
    pub service: (String, String),
    /// Their names, such as `v1beta1.metrics.k8s.io`.
    pub names: Vec<String>,
}

/// What is to be done about an APIService.
#[derive(Debug, PartialEq)]
enum Wanted {
    /// It is as it should be.
    Nothing,
    /// It leads to another Service.
    Elsewhere,
    /// It trusts anybody.
    Unverified,
    /// It gets our authorities.
    Bundle(String),
}

fn wanted(object: &Value, service: &(String, String), authorities: &str) -> Wanted {
    let spec = &object["spec"];
    let leads_to = (spec["service"]["namespace"].as_str(), spec["service"]["name"].as_str());
    if leads_to != (Some(service.0.as_str()), Some(service.1.as_str())) {
        return Wanted::Elsewhere;
    }
    if spec["insecureSkipTLSVerify"] == true {
        return Wanted::Unverified;
    }
    let bundle = STANDARD.encode(authorities);
    if spec["caBundle"] == bundle.as_str() { Wanted::Nothing } else { Wanted::Bundle(bundle) }
}

impl ApiServices {
    /// Keeps them current until dropped.
    pub async fn follow(self, mut authorities: watch::Receiver<String>) {
        let mut reported = vec![String::new(); self.names.len()];
        loop {
            let current = authorities.borrow_and_update().clone();
            for (name, reported) in self.names.iter().zip(&mut reported) {
                let note = match self.check(name, &current).await {
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
                    tracing::info!(api_service = name, "{note}");
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

    async fn check(&self, name: &str, authorities: &str) -> Result<Wanted, CallError> {
        let about = About { resource: RESOURCE, name };
        let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}", segment(name));
        let object: Value = call::get(&self.client, &path, about).await?;
        let wanted = wanted(&object, &self.service, authorities);
        if let Wanted::Bundle(bundle) = &wanted {
            // If it was changed in between, it must be looked at again.
            let version = &object["metadata"]["resourceVersion"];
            let patch =
                json!({"metadata": {"resourceVersion": version}, "spec": {"caBundle": bundle}});
            call::send::<IgnoredAny>(&self.client, "PATCH", &path, &patch, about).await?;
        }
        Ok(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ours_are_changed() {
        let ours = ("kube-system".to_owned(), "podscale-metrics".to_owned());
        let object = |name: &str, more: Value| {
            let mut spec = json!({"service": {"namespace": "kube-system", "name": name}});
            for (key, value) in more.as_object().into_iter().flatten() {
                spec[key] = value.clone();
            }
            json!({"spec": spec})
        };
        let bundle = STANDARD.encode("PEM");
        for (object, expected) in [
            (object("metrics-server", json!({})), Wanted::Elsewhere),
            (object("podscale-metrics", json!({})), Wanted::Bundle(bundle.clone())),
            (
                object("podscale-metrics", json!({"caBundle": "b2xk"})),
                Wanted::Bundle(bundle.clone()),
            ),
            (object("podscale-metrics", json!({"caBundle": bundle})), Wanted::Nothing),
            (
                object("podscale-metrics", json!({"insecureSkipTLSVerify": true})),
                Wanted::Unverified,
            ),
            (json!({"spec": {}}), Wanted::Elsewhere),
        ] {
            assert_eq!(wanted(&object, &ours, "PEM"), expected, "{object}");
        }
    }
}
