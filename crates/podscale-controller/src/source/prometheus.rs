//! What pods use, by Prometheus: one query for a namespace, or one for the whole cluster as soon as objects
//! of several namespaces ask.

use super::MetricSource;
use super::answer::Answer;
use super::cache::Cache;
use super::circuit_breaker::CircuitBreaker;
use super::interests::Interests;
use super::namespaces::Namespaces;
use super::question::Question;
use super::refresh::{Recent, Refresh, YOUNGEST_ASKED};
use super::subscriptions::{News, Topic, Unseen};
use crate::metrics::Metrics;
use crate::pods::Pods;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use podscale_api::metrics::{ContainerMetrics, MetricsMeta, PodMetrics};
use podscale_api::pod::Pod;
use podscale_api::quantity::Format;
use podscale_api::resources::ResourceList;
use podscale_api::selector::Selector;
use podscale_api::time::{GoDuration, Timestamp};
use podscale_api::{Labels, Quantity};
use podscale_client::call::CallError;
use podscale_client::clock::Clock;
use podscale_core::Time;
use podscale_core::model::Source;
use podscale_metrics::prometheus::PrometheusError;
use podscale_metrics::rules::ResourceRules;
use podscale_metrics::rules::engine::{Engine, EngineError};
use podscale_metrics::rules::usage::{Measured, Scope, Used};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long an answer is kept at most.
const LONGEST_KEPT: Duration = Duration::from_secs(60);

/// What was read by one query.
type Read = Result<Arc<Usage>, Arc<str>>;

/// What containers use, by namespace and pod.
#[derive(Default)]
struct Usage(HashMap<Box<str>, HashMap<Box<str>, OfPod>>);

/// What the containers of a pod use.
struct OfPod {
    containers: Vec<Used>,
    /// When an answer had these values for the first time: the times of answers are always others.
    since: jiff::Timestamp,
}

impl OfPod {
    fn has_values_of(&self, other: &OfPod) -> bool {
        let same = |used: &Used| {
            let of_other = other.containers.iter().find(|other| other.container == used.container);
            of_other.is_some_and(|other| other.milli == used.milli)
        };
        self.containers.len() == other.containers.len() && self.containers.iter().all(same)
    }
}

impl Usage {
    /// An answer to a question that was asked at this time.
    fn new(used: Vec<Used>, asked: Option<&str>, since: jiff::Timestamp) -> Usage {
        let mut usage = Usage::default();
        for mut one in used {
            if let Some(namespace) = asked {
                one.namespace = namespace.into();
            }
            let pods = match usage.0.get_mut(&one.namespace) {
                Some(pods) => pods,
                None => usage.0.entry(one.namespace.clone()).or_default(),
            };
            match pods.get_mut(&one.name) {
                Some(pod) => pod.containers.push(one),
                None => {
                    pods.insert(one.name.clone(), OfPod { containers: vec![one], since });
                }
            }
        }
        usage
    }

    /// Pods whose values are those of the answer before have had them since then.
    fn after(mut self, before: &Usage) -> Usage {
        for (namespace, pods) in &mut self.0 {
            let Some(known) = before.0.get(namespace) else { continue };
            for (name, pod) in pods {
                if let Some(old) = known.get(name).filter(|old| pod.has_values_of(old)) {
                    pod.since = old.since;
                }
            }
        }
        self
    }

    fn of(&self, pod: &Pod) -> Option<&[Used]> {
        let pods = self.0.get(&pod.metadata.namespace)?;
        pods.get(&pod.metadata.name).map(|pod| pod.containers.as_slice())
    }

    /// The pods whose values are newer than this, and who may not have seen these.
    fn changed_since(&self, time: jiff::Timestamp) -> Vec<(&str, &str, Unseen)> {
        let mut changed = Vec::new();
        for (namespace, pods) in &self.0 {
            let new = pods.iter().filter(|(_, pod)| pod.since > time);
            changed
                .extend(new.map(|(name, pod)| (&**namespace, &**name, Unseen::Before(pod.since))));
        }
        changed
    }
}

/// One query: for a namespace, or for all of them.
type Asked = (Measured, Option<Box<str>>);

/// Prometheus as the source of what pods use.
pub(super) struct PrometheusUsage {
    engine: Arc<Engine>,
    /// How to ask where the rules do not say it.
    everyday: Option<ResourceRules>,
    pods: Arc<Pods>,
    clock: Clock,
    namespaces: Mutex<Namespaces>,
    answers: Cache<Asked, Read>,
    /// Whose pods somebody asked about.
    interests: Interests,
    /// What was asked lately, and the answers.
    recent: Recent<Asked, Arc<Usage>>,
    breaker: CircuitBreaker,
    metrics: Metrics,
}

impl PrometheusUsage {
    /// Asks through an engine about the pods that are known.
    pub(super) fn new(
        engine: Arc<Engine>,
        pods: Arc<Pods>,
        clock: Clock,
        metrics: Metrics,
    ) -> PrometheusUsage {
        PrometheusUsage {
            engine,
            everyday: ResourceRules::everyday().ok(),
            pods,
            clock,
            namespaces: Mutex::new(Namespaces::new(clock.now())),
            answers: Cache::new(clock, LONGEST_KEPT),
            interests: Interests::default(),
            recent: Recent::default(),
            breaker: CircuitBreaker::new("prometheus"),
            metrics,
        }
    }

    async fn usage(&self, measured: Measured, question: &Question<'_>) -> Read {
        let Question { namespace, max_age, period, .. } = *question;
        let rules = self.engine.rules();
        let Some(rules) = rules.resource().or(self.everyday.as_ref()) else {
            return Err("there are no rules for cpu and memory".into());
        };
        let many = self.namespaces.lock().asks_for_all(namespace, self.clock.now());
        let all = many && rules.of(measured).serves_cluster();
        let asked: Asked = (measured, if all { None } else { Some(namespace.into()) });
        self.recent.ask(asked.clone(), self.clock.now(), period);
        self.read(asked, rules, max_age).await
    }

    async fn read(&self, asked: Asked, rules: &ResourceRules, max_age: Duration) -> Read {
        let (max_age, question) = (max_age.max(YOUNGEST_ASKED), asked.clone());
        self.answers.get(asked, max_age, || self.fetch(question, rules, max_age)).await
    }

    async fn fetch(&self, asked: Asked, rules: &ResourceRules, max_age: Duration) -> Read {
        let (began, read) = (Instant::now(), self.clock.now());
        let (measured, namespace) = &asked;
        let scope = namespace.as_deref().map_or(Scope::Cluster, Scope::Namespace);
        let ask = async {
            self.engine.containers(*measured, scope, rules, max_age).await.map_err(call_error)
        };
        let used = self.breaker.call(ask).await;
        self.metrics.source_answered("prometheus", used.is_ok(), began.elapsed());
        self.breaker.report(used.as_ref().err());
        match used {
            Ok(used) => {
                let mut usage = Usage::new(used, namespace.as_deref(), read);
                if let Some(before) = self.recent.newest(&asked) {
                    usage = usage.after(&before);
                }
                let usage = Arc::new(usage);
                self.recent.note(&asked, read, Arc::clone(&usage));
                Ok(usage)
            }
            Err(error) => Err(format!("Prometheus: {error}").into()),
        }
    }

    /// What the selected pods use. A pod without a sample is left out, as one that is not measured yet.
    fn of_pods(
        &self,
        usage: &Usage,
        measured: Measured,
        question: &Question<'_>,
    ) -> Arc<[Arc<PodMetrics>]> {
        let Ok(selector) = Selector::parse(question.pods) else { return Arc::default() };
        let window = self.engine.rules().resource().or(self.everyday.as_ref()).map(|r| r.window);
        let window = window.unwrap_or_default();
        let pods = self.pods.select(question.namespace, &selector);
        let metrics = |pod: &Arc<Pod>| {
            let used = usage.of(pod)?;
            Some(Arc::new(pod_metrics(pod, used, measured, window)))
        };
        pods.iter().filter_map(metrics).collect()
    }
}

/// What one pod uses, in the form of the resource metrics API.
fn pod_metrics(pod: &Pod, used: &[Used], measured: Measured, window: Duration) -> PodMetrics {
    let format = match measured {
        Measured::Cpu => Format::DecimalSi,
        Measured::Memory => Format::BinarySi,
    };
    let container = |used: &Used| {
        let amount = Quantity::from_milli(used.milli, format);
        let amounts: ResourceList = [(measured.name(), amount)].into_iter().collect();
        ContainerMetrics { name: used.container.clone(), usage: amounts.into() }
    };
    // The oldest sample, to be careful about pods that have just started.
    let oldest = used.iter().map(|used| used.time).min().unwrap_or_default();
    let labels: Labels = pod.metadata.labels.clone();
    PodMetrics {
        metadata: MetricsMeta {
            name: pod.metadata.name.clone(),
            namespace: pod.metadata.namespace.clone(),
            labels,
        },
        // Whole seconds, as the API has them and Recordings keep them.
        timestamp: Some(Timestamp(Time(oldest.as_second().saturating_mul(1_000_000)))),
        window: GoDuration(i64::try_from(window.as_nanos()).unwrap_or(i64::MAX)),
        containers: used.iter().map(container).collect(),
    }
}

/// A failure as the circuit breaker knows them.
fn call_error(error: EngineError) -> CallError {
    match error {
        EngineError::Prometheus(error) => prometheus_error(error),
        other => CallError::Unreadable(other.to_string()),
    }
}

/// A failure of Prometheus as the circuit breaker knows them.
pub(super) fn prometheus_error(error: PrometheusError) -> CallError {
    match (&error, error.code()) {
        (PrometheusError::Late(timeout), _) => CallError::Late(*timeout),
        (_, Some(code)) => {
            let (reason, message) = (error.kind().to_owned(), error.to_string());
            CallError::Refused { code, reason, message }
        }
        (_, None) => CallError::Unreachable(error.to_string()),
    }
}

impl MetricSource for PrometheusUsage {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Answer> {
        async move {
            let (Source::Resource { name, .. } | Source::ContainerResource { name, .. }) =
                question.metric
            else {
                return Answer::Nothing;
            };
            let measured = match &**name {
                "cpu" => Measured::Cpu,
                "memory" => Measured::Memory,
                other => {
                    let problem =
                        format!("Prometheus is asked for cpu and memory, not for {other}");
                    return Answer::Failed(problem.into());
                }
            };
            match self.usage(measured, &question).await {
                Ok(usage) => Answer::Resource(self.of_pods(&usage, measured, &question)),
                Err(problem) => Answer::Failed(problem),
            }
        }
        .boxed()
    }

    fn topic(&self, question: &Question<'_>) -> Option<Topic> {
        self.interests.topic(question.namespace, question.pods, self.clock.now())
    }
}

impl Refresh for PrometheusUsage {
    type Question = Asked;

    fn recent(&self) -> Vec<Asked> {
        self.recent.questions(self.clock.now())
    }

    fn again(&self, asked: Asked, max_age: Duration) -> BoxFuture<'_, News> {
        async move {
            let rules = self.engine.rules();
            let Some(rules) = rules.resource().or(self.everyday.as_ref()) else {
                return News::new();
            };
            // A failure is met when somebody decides.
            if self.read(asked.clone(), rules, max_age).await.is_err() {
                return News::new();
            }
            let Some((usage, before)) = self.recent.announce(&asked) else { return News::new() };
            self.interests.concerned(usage.changed_since(before), &self.pods)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests;
