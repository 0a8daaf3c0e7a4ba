//! A certificate of our own, in a Secret that all replicas share. Whoever is first makes it or renews
//! it; the others find it there.

use super::plan::{Kept, Step, next, take};
use super::{CertificateError, MakeError};
use crate::serve::tls::{Shown, certified};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use kube::Client;
use podscale_client::call::{self, About, CallError, segment};
use podscale_client::clock::Clock;
use rustls::sign::CertifiedKey;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often the Secret is read; wall-clock. Nothing in the plan happens within less than an hour.
const READ_INTERVAL: Duration = Duration::from_secs(60);
/// How often a write is tried again because another replica was faster.
const MAX_CONFLICTS: u32 = 5;

/// Where the Secret is, and for which names its certificate is.
#[derive(Clone)]
pub struct Own {
    /// The API server.
    pub client: Client,
    /// What time it is.
    pub clock: Clock,
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub name: String,
    /// The names of the server.
    pub hosts: Vec<String>,
}

impl Own {
    /// What is kept, after it was made or renewed where that was necessary.
    ///
    /// # Errors
    /// The Secret cannot be read or written.
    pub async fn obtain(&self) -> Result<Kept, CertificateError> {
        let mut conflicts = 0;
        loop {
            let stored = self.read().await.map_err(|error| self.fail(error))?;
            let kept = stored.as_ref().and_then(kept);
            let now = self.clock.now();
            let step = next(kept.as_ref(), &self.hosts, now);
            if step == Step::Keep
                && let Some(kept) = kept
            {
                return Ok(kept);
            }
            let new = self.make(step, kept, now).await?;
            match self.write(stored, &new).await {
                Ok(()) => {
                    let secret = self.path_name();
                    tracing::info!(%secret, ?step, "the serving certificate was made anew");
                    return Ok(new);
                }
                Err(error) if error.is_conflict() || error.is_already_exists() => {
                    conflicts += 1;
                    if conflicts >= MAX_CONFLICTS {
                        return Err(self.fail(error));
                    }
                }
                Err(error) => return Err(self.fail(error)),
            }
        }
    }

    /// Keys take long to make on a slow machine; others go on meanwhile.
    async fn make(
        &self,
        step: Step,
        kept: Option<Kept>,
        now: Timestamp,
    ) -> Result<Kept, CertificateError> {
        let hosts = self.hosts.clone();
        let made = tokio::task::spawn_blocking(move || take(step, kept.as_ref(), &hosts, now));
        match made.await {
            Ok(made) => Ok(made?),
            Err(_) => Err(MakeError::Clock(now).into()),
        }
    }

    /// Shows what is kept and publishes its authorities, whenever that changes.
    pub async fn follow(self, shown: Shown, authorities: watch::Sender<String>) {
        let (mut known, mut failing) = (None, false);
        loop {
            match self.renew(&shown, &authorities, &mut known).await {
                Ok(()) => failing = false,
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "the serving certificate cannot be renewed");
                    }
                }
            }
            tokio::time::sleep(READ_INTERVAL).await;
        }
    }

    async fn renew(
        &self,
        shown: &Shown,
        authorities: &watch::Sender<String>,
        known: &mut Option<Kept>,
    ) -> Result<(), CertificateError> {
        let kept = self.obtain().await?;
        if known.as_ref() != Some(&kept) {
            shown.set(certificate(&kept)?);
            authorities.send_replace(kept.authorities.clone());
            *known = Some(kept);
        }
        Ok(())
    }

    fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/secrets", segment(&self.namespace))
    }

    fn path_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn fail(&self, source: CallError) -> CertificateError {
        CertificateError::Secret { secret: self.path_name(), source }
    }

    async fn read(&self) -> Result<Option<Value>, CallError> {
        let about = About { resource: "secrets", name: &self.name };
        let path = format!("{}/{}", self.path(), segment(&self.name));
        match call::get(&self.client, &path, about).await {
            Ok(secret) => Ok(Some(secret)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes over what was read, or creates it; if another replica did so in between, it fails.
    async fn write(&self, stored: Option<Value>, kept: &Kept) -> Result<(), CallError> {
        let about = About { resource: "secrets", name: &self.name };
        let data = json!({
            "ca.crt": STANDARD.encode(&kept.authorities), "ca.key": STANDARD.encode(&kept.authority_key),
            "tls.crt": STANDARD.encode(&kept.certificate), "tls.key": STANDARD.encode(&kept.key),
        });
        let sent = match stored {
            Some(mut secret) => {
                secret["data"] = data;
                let path = format!("{}/{}", self.path(), segment(&self.name));
                call::send::<IgnoredAny>(&self.client, "PUT", &path, &secret, about).await
            }
            None => {
                let secret = json!({
                    "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
                    "metadata": {"name": self.name, "namespace": self.namespace,
                        "labels": {"app.kubernetes.io/name": "podscale"}},
                    "data": data,
                });
                call::send::<IgnoredAny>(&self.client, "POST", &self.path(), &secret, about).await
            }
        };
        sent.map(drop)
    }
}

/// The certificate that is kept, in the form that is shown.
///
/// # Errors
/// It is of no use.
pub(super) fn certificate(kept: &Kept) -> Result<Arc<CertifiedKey>, CertificateError> {
    Ok(certified(kept.certificate.as_bytes(), kept.key.as_bytes())?)
}

impl Kept {
    /// The certificate, in the form that is shown.
    ///
    /// # Errors
    /// It is of no use.
    pub fn certified(&self) -> Result<Arc<CertifiedKey>, CertificateError> {
        certificate(self)
    }
}

fn kept(secret: &Value) -> Option<Kept> {
    let text = |key: &str| {
        let bytes = STANDARD.decode(secret["data"][key].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    Some(Kept {
        authorities: text("ca.crt")?,
        authority_key: text("ca.key")?,
        certificate: text("tls.crt")?,
        key: text("tls.key")?,
    })
}
