//! `metrics.k8s.io`: what pods use, read in bulk.

mod usage;

use super::MetricSource;
use super::answer::Answer;
use super::question::Question;
use super::server::Server;
use futures::FutureExt;
use futures::future::BoxFuture;
use podscale_client::call::{About, segment};
use podscale_client::clock::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use usage::Usages;

/// The resource metrics API.
pub(super) struct ResourceMetrics {
    server: Server,
    usages: Usages,
    /// Whether it was said that nobody serves this API.
    said_missing: AtomicBool,
}

impl ResourceMetrics {
    /// Reads through this server.
    pub(super) fn new(server: Server, clock: Clock) -> ResourceMetrics {
        ResourceMetrics { server, usages: Usages::new(clock), said_missing: AtomicBool::new(false) }
    }

    /// Says, once until there is an answer, that nobody serves this API and what to do about it.
    fn say_missing(&self) {
        if !self.said_missing.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "the cluster serves no metrics.k8s.io, so cpu and memory of pods are unknown: install \
                 metrics-server, or run with --resource-metrics kubelet, which reads the kubelets directly"
            );
        }
    }

    /// What pods use: one call serves every object of a namespace, or of all.
    async fn usage(&self, namespace: &str, max_age: Duration) -> usage::Read {
        let fetch = |namespace: Option<Box<str>>| async move {
            let of = namespace.as_deref();
            let scope = of.map(|n| format!("namespaces/{}/", segment(n))).unwrap_or_default();
            let path = format!("/apis/metrics.k8s.io/v1beta1/{scope}pods");
            let about = About { resource: "pods.metrics.k8s.io", name: "" };
            match self.server.get::<usage::List>(&path, about).await {
                Ok(list) => {
                    self.said_missing.store(false, Ordering::Relaxed);
                    Ok(Arc::new(list.usage(of)))
                }
                Err(error) => {
                    if error.is_not_found() {
                        self.say_missing();
                    }
                    let forbidden = error.code() == Some(403);
                    Err(usage::Failure { text: error.to_string().into(), forbidden })
                }
            }
        };
        self.usages.get(namespace, max_age, fetch).await
    }
}

impl MetricSource for ResourceMetrics {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        let Question { namespace, pods, max_age, .. } = question;
        async move {
            match self.usage(namespace, max_age).await {
                Ok(usage) => Answer::Resource(usage.of_pods(namespace, pods)),
                Err(failure) => Answer::Failed(failure.text),
            }
        }
        .boxed()
    }
}
