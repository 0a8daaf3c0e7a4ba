//! Follows autoscalers and workloads: the metrics that autoscalers name are served as long as they do, and
//! what belongs to a workload goes with it.
//!
//! What is to be done follows from what is known, and not from single events: what could not be done is
//! tried again until it is.

use super::{Autoscalers, Rules, native};
use kube::Client;
use parking_lot::Mutex;
use podscale_api::hpa::v2::{HorizontalPodAutoscaler, Lean};
use podscale_api::singlecloud::{Alias, TARGET_KINDS, TARGET_UID, aliases};
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, Watched, follow};
use podscale_metrics::rules::alias::{rule, rule_set};
use podscale_metrics::rules::engine::Engine;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;

mod known;

use known::{Known, Orphan, Tracked};

/// How often what could not be done is tried again.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// The least time between two rounds, and after one that could not do everything.
const SWEEP_PAUSE: Duration = Duration::from_millis(200);
const FAILED_PAUSE: Duration = Duration::from_secs(5);

/// An autoscaler that is followed.
#[derive(Deserialize)]
#[serde(from = "Lean")]
struct Hpa(HorizontalPodAutoscaler);

impl From<Lean> for Hpa {
    fn from(Lean(hpa): Lean) -> Hpa {
        Hpa(hpa)
    }
}

impl Watched for Hpa {
    fn version(&self) -> Option<&str> {
        Some(&self.0.metadata.resource_version)
    }
}

/// A workload that is followed: which object it is, and nothing else.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Workload {
    metadata: WorkloadMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadMeta {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
}

impl Watched for Workload {
    fn version(&self) -> Option<&str> {
        Some(&self.metadata.resource_version)
    }
}

/// Follows autoscalers and workloads. Clones share what is known.
#[derive(Clone)]
pub(super) struct Followed {
    autoscalers: Autoscalers,
    known: Arc<Mutex<Known>>,
    /// Somebody should look whether the rules that are served are still right.
    rules: Arc<Notify>,
    /// Somebody should look whether something is to be cleaned up.
    sweep: Arc<Notify>,
}

impl Followed {
    /// Knows nothing yet.
    pub(super) fn new(autoscalers: Autoscalers) -> Followed {
        let keeps_rules = autoscalers.0.adapter.is_some();
        let known = Arc::new(Mutex::new(Known::new(keeps_rules)));
        Followed { autoscalers, known, rules: Arc::default(), sweep: Arc::default() }
    }

    /// Begins to follow.
    pub(super) fn start(self, client: &Client, instruments: &Instruments, tasks: &mut JoinSet<()>) {
        if let Rules::Served(engine) = &self.autoscalers.0.rules {
            tasks.spawn(self.clone().serve_rules(Arc::clone(engine)));
        }
        for kind in TARGET_KINDS {
            let (followed, client) = (self.clone(), client.clone());
            let instruments = Arc::clone(instruments);
            tasks.spawn(async move { followed.workloads(kind, &client, &instruments).await });
        }
        let (followed, client) = (self.clone(), client.clone());
        let instruments = Arc::clone(instruments);
        tasks.spawn(async move { followed.hpas(&client, &instruments).await });
        tasks.spawn(self.sweep_forever());
    }

    async fn hpas(&self, client: &Client, instruments: &Instruments) {
        let path = "/apis/autoscaling/v2/horizontalpodautoscalers";
        let resource = "horizontalpodautoscalers.autoscaling";
        let apply = |change: Change<Hpa>| {
            let change = change.map(|Hpa(hpa)| {
                let meta = &hpa.metadata;
                let key = (meta.namespace.clone(), meta.name.clone());
                (key, tracked(&hpa))
            });
            self.known.lock().autoscalers(change);
            self.rules.notify_one();
            self.sweep.notify_one();
        };
        follow(client, path, resource, Presence::Always, instruments, apply).await;
    }

    async fn workloads(&self, kind: &'static str, client: &Client, instruments: &Instruments) {
        let path = format!("/apis/apps/v1/{kind}s");
        let resource = match kind {
            "deployment" => "deployments.apps",
            _ => "statefulsets.apps",
        };
        let apply = |change: Change<Workload>| {
            let change = change
                .map(|Workload { metadata }| ((metadata.namespace, metadata.name), metadata.uid));
            self.known.lock().workloads(kind, change);
            self.sweep.notify_one();
        };
        follow(client, &path, resource, Presence::Always, instruments, apply).await;
    }

    /// Has the engine answer for the metrics that autoscalers name.
    async fn serve_rules(self, engine: Arc<Engine>) {
        let mut served: Vec<Alias> = Vec::new();
        loop {
            self.rules.notified().await;
            let mut wanted = self.known.lock().aliases();
            // Somebody may have named a label that Prometheus cannot have.
            wanted.retain(|alias| rule(alias).is_ok());
            if wanted == served {
                continue;
            }
            match rule_set(&wanted) {
                Ok(rules) => {
                    engine.replace_derived(rules);
                    tracing::debug!(
                        rules = wanted.len(),
                        "metrics that autoscalers name are served"
                    );
                    served = wanted;
                }
                Err(error) => {
                    tracing::error!(%error, "metrics that autoscalers name are not served");
                }
            }
        }
    }

    async fn sweep_forever(self) {
        loop {
            let _ = tokio::time::timeout(SWEEP_EVERY, self.sweep.notified()).await;
            let pause = if self.sweep().await { SWEEP_PAUSE } else { FAILED_PAUSE };
            tokio::time::sleep(pause).await;
        }
    }

    /// Does what is to be done, and says whether all of it could be.
    async fn sweep(&self) -> bool {
        let mut whole = true;
        let (orphans, released) = {
            let known = self.known.lock();
            (known.orphans(), known.released())
        };
        for orphan in orphans {
            let Orphan { namespace, name, uid, kind, target, .. } = &orphan;
            if !self.is_orphan(&orphan).await {
                continue;
            }
            match self.autoscalers.delete_object(namespace, name, uid).await {
                Ok(()) => {
                    tracing::info!(namespace, name, kind, target, "deleted with its workload");
                }
                Err(failure) => {
                    let error = failure.message();
                    tracing::warn!(namespace, name, error, "cannot be deleted with its workload");
                    whole = false;
                }
            }
        }
        if released.is_empty() {
            return whole;
        }
        match self.autoscalers.release(&released).await {
            Ok(()) => self.known.lock().settled(&released),
            Err(failure) => {
                tracing::warn!(error = failure.message(), "rules of metrics cannot be removed");
                whole = false;
            }
        }
        whole
    }

    /// Whether the workload of an autoscaler is gone: what is known may be a moment old.
    async fn is_orphan(&self, orphan: &Orphan) -> bool {
        let Orphan { namespace, kind, target, target_uid, .. } = orphan;
        let Some(uid) = target_uid else { return true };
        let client = &self.autoscalers.0.client;
        match native::workload(client, &format!("{kind}s"), namespace, target).await {
            Ok(workload) => workload.is_none_or(|workload| workload.metadata.uid != *uid),
            Err(error) => {
                tracing::warn!(namespace, kind, target, %error, "cannot see whether it is gone");
                false
            }
        }
    }
}

/// What matters of an autoscaler.
fn tracked(hpa: &HorizontalPodAutoscaler) -> Tracked {
    let (meta, target) = (&hpa.metadata, &hpa.spec.scale_target_ref);
    let kind = target.kind.to_ascii_lowercase();
    let target_uid = meta.annotations.get(TARGET_UID).map(str::to_owned);
    let labelled = meta.labels.get(&kind) == Some(&*target.name);
    let kind = TARGET_KINDS.into_iter().find(|known| *known == kind);
    Tracked {
        uid: meta.uid.clone(),
        // Only those that were made here, or by singlecloud, go with their workload.
        kind: kind.filter(|_| labelled || target_uid.is_some()),
        target: target.name.clone(),
        target_uid,
        target_gone: false,
        aliases: aliases(hpa),
    }
}
