//! What pods use, from the kubelets that are scraped directly. New samples are announced to the
//! objects whose pods they are of.

use super::MetricSource;
use super::answer::Answer;
use super::interests::Interests;
use super::question::Question;
use super::subscriptions::{Notifier, Topic, Unseen};
use crate::kubelets::Kubelets;
use crate::pods::Pods;
use futures::FutureExt;
use futures::future::BoxFuture;
use podscale_api::metrics::{ContainerMetrics, MetricsMeta, PodMetrics, Usage};
use podscale_api::pod::Pod;
use podscale_api::quantity::{Format, Quantity};
use podscale_api::resources::ResourceList;
use podscale_api::selector::Selector;
use podscale_api::time::{GoDuration, Timestamp};
use podscale_client::clock::Clock;
use podscale_core::Time;
use podscale_metrics::store::{PodUsed, Used};
use std::sync::Arc;

/// Kubelets, as a source of metrics.
pub(super) struct KubeletMetrics {
    kubelets: Arc<Kubelets>,
    pods: Arc<Pods>,
    clock: Clock,
    interests: Arc<Interests>,
}

impl KubeletMetrics {
    /// Answers from what was scraped about these pods, and announces what is new.
    pub(super) fn new(
        kubelets: Arc<Kubelets>,
        pods: Arc<Pods>,
        clock: Clock,
        notifier: Notifier,
    ) -> KubeletMetrics {
        let interests = Arc::new(Interests::default());
        let (interested, known) = (Arc::clone(&interests), Arc::downgrade(&pods));
        kubelets.listen(move |changed| {
            if let Some(known) = known.upgrade() {
                let changed =
                    changed.iter().map(|(namespace, name)| (&**namespace, &**name, Unseen::ByAll));
                notifier.announce(interested.concerned(changed, &known).into_keys());
            }
        });
        KubeletMetrics { kubelets, pods, clock, interests }
    }

    fn answer(&self, namespace: &str, selector: &str) -> Answer {
        if self.kubelets.store.nodes() == 0 {
            return Answer::Failed("no kubelet has been scraped yet".into());
        }
        let Ok(selector) = Selector::parse(selector) else {
            return Answer::Resource(Arc::default());
        };
        let pods = self.pods.select(namespace, &selector);
        let known = self.kubelets.store.read(self.clock.now());
        let used = pods.iter().filter_map(|pod| {
            let used = known.pod(namespace, &pod.metadata.name)?;
            Some(Arc::new(pod_metrics(pod, &used)))
        });
        Answer::Resource(used.collect())
    }
}

impl MetricSource for KubeletMetrics {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        std::future::ready(self.answer(question.namespace, question.pods)).boxed()
    }

    fn topic(&self, question: &Question<'_>) -> Option<Topic> {
        self.interests.topic(question.namespace, question.pods, self.clock.now())
    }
}

/// What a pod uses, in the form of the metrics API.
fn pod_metrics(pod: &Pod, used: &PodUsed) -> PodMetrics {
    let window = i64::try_from(used.window.as_nanos()).unwrap_or(i64::MAX);
    PodMetrics {
        metadata: MetricsMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            labels: pod.metadata.labels.clone(),
        },
        // Whole seconds, as the API has them and Recordings keep them: what is decided is what is replayed.
        timestamp: Some(Timestamp(Time(used.time.as_second().saturating_mul(1_000_000)))),
        window: GoDuration(window),
        containers: used.containers.iter().map(|(name, used)| container(name, used)).collect(),
    }
}

/// Readers of CPU round up to thousandths, so nothing is lost by doing so here.
fn container(name: &Arc<str>, used: &Used) -> ContainerMetrics {
    let cpu = i64::try_from(used.cpu_nanos.div_ceil(1_000_000)).unwrap_or(i64::MAX);
    let memory = i64::try_from(used.memory_bytes).unwrap_or(i64::MAX);
    let mut amounts = ResourceList::default();
    amounts.insert("cpu", Quantity::from_milli(cpu, Format::DecimalSi));
    amounts.insert("memory", Quantity::from_value(memory, Format::BinarySi));
    ContainerMetrics { name: (**name).into(), usage: Usage::from(amounts) }
}

#[cfg(test)]
mod tests;
