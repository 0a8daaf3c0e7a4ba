//! Lines up what was read from the API with an autoscaler, so that the core can decide: which pods
//! are meant, and what each metric says.

use crate::hpa::v2::{HorizontalPodAutoscaler, MetricSpec};
use crate::metrics::{ExternalMetricValue, MetricValue, PodMetrics};
use crate::pod::{ConditionStatus, Pod, PodPhase};
use crate::selector::{LabelSelector, Selector, SelectorError};
use podscale_core::model::{Aim, Milli, ObjectRef, Source};
use podscale_core::pod::{self, Phase, Ready, ReadyStatus};
use podscale_core::snapshot::{
    MissingRequest, PodReadings, Reading, Requests, Sample, Selection, Strangers,
};
use podscale_core::{Autoscaler, Metric, Span, Time};
use std::collections::HashMap;
use std::sync::Arc;

/// What was read around one autoscaler.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The selector of the target's scale, as text.
    pub selector: &'a str,
    /// Pods; those of other namespaces are passed over, as are their metrics.
    pub pods: &'a [Pod],
    /// The other autoscalers of the namespace: name and selector.
    pub others: &'a [(&'a str, &'a str)],
    /// What the resource metrics API answers for the namespace.
    pub pod_metrics: Result<&'a [PodMetrics], &'a str>,
    /// What the custom metrics API answers.
    pub custom_metrics: Result<&'a [MetricValue], &'a str>,
    /// What the external metrics API answers.
    pub external_metrics: Result<&'a [ExternalMetricValue], &'a str>,
}

/// Custom metrics without a window of their own are taken to span this long.
const CUSTOM_WINDOW: Span = Span::seconds(60);

/// The time of a sample that says no time: long ago.
const NO_TIME: Time = Time(-62_135_596_800_000_000);

/// The pods that the target's selector picks and what the metrics say of them.
#[must_use]
pub fn observe(
    hpa: &HorizontalPodAutoscaler,
    autoscaler: &Autoscaler,
    around: &Surroundings<'_>,
) -> (Selection, Vec<Reading>) {
    let (selector, pods) = match select(autoscaler, around) {
        Ok(selected) => selected,
        Err(selection) => return (selection, Vec::new()),
    };
    let places: HashMap<&str, usize> =
        pods.iter().enumerate().map(|(place, pod)| (&*pod.metadata.name, place)).collect();
    let namespace = &*autoscaler.namespace;
    let lined_up = LinedUp { pods: &pods, places, selector: &selector, namespace };
    let readings = autoscaler
        .metrics
        .iter()
        .zip(&hpa.spec.metrics)
        .map(|(metric, spec)| lined_up.read(autoscaler, metric, spec, around))
        .collect();
    (Selection::Pods(pods.iter().map(|pod| model_pod(pod)).collect()), readings)
}

/// The object with one of its metrics alone, and without that metric's selector of series: for
/// values to which their source has applied it already.
#[must_use]
pub fn with_one_metric(
    hpa: &HorizontalPodAutoscaler,
    place: usize,
) -> Option<HorizontalPodAutoscaler> {
    let mut metric = hpa.spec.metrics.get(place)?.clone();
    let series = [
        metric.pods.as_mut().map(|source| &mut source.metric),
        metric.object.as_mut().map(|source| &mut source.metric),
        metric.external.as_mut().map(|source| &mut source.metric),
    ];
    for series in series.into_iter().flatten() {
        series.selector = None;
    }
    let mut alone = HorizontalPodAutoscaler { status: None, ..hpa.clone() };
    alone.spec.metrics = vec![metric];
    Some(alone)
}

/// The selector and its pods, or what is wrong with it.
fn select<'a>(
    autoscaler: &Autoscaler,
    around: &Surroundings<'a>,
) -> Result<(Selector, Vec<&'a Pod>), Selection> {
    if around.selector.is_empty() {
        return Err(Selection::NoSelector);
    }
    let selector = Selector::parse(around.selector)
        .map_err(|error| Selection::BadSelector(error.to_string().into()))?;
    let picked = |pod: &&Pod| {
        *pod.metadata.namespace == *autoscaler.namespace
            && selector.matches(|key| pod.metadata.labels.get(key))
    };
    let pods: Vec<&Pod> = around.pods.iter().filter(picked).collect();
    let rival = around.others.iter().find(|(_, other)| {
        Selector::parse(other).is_ok_and(|other| {
            pods.iter().any(|pod| other.matches(|key| pod.metadata.labels.get(key)))
        })
    });
    match rival {
        None => Ok((selector, pods)),
        Some((rival, _)) => {
            let namespace = &autoscaler.namespace;
            let mut names = [*rival, &*autoscaler.name];
            names.sort_unstable();
            Err(Selection::Ambiguous {
                selector: around.selector.into(),
                autoscalers: names.map(|name| Arc::from(format!("{namespace}/{name}"))),
            })
        }
    }
}

fn model_pod(pod: &Pod) -> pod::Pod {
    pod::Pod {
        started: pod.status.start_time.map(|t| t.0),
        ready: pod.status.ready.map(|ready| Ready {
            status: match ready.status {
                ConditionStatus::True => ReadyStatus::True,
                ConditionStatus::False => ReadyStatus::False,
                ConditionStatus::Unknown => ReadyStatus::Unknown,
            },
            since: ready.last_transition_time.map_or(NO_TIME, |t| t.0),
        }),
        phase: match pod.status.phase {
            Some(PodPhase::Pending) => Phase::Pending,
            Some(PodPhase::Running) => Phase::Running,
            Some(PodPhase::Succeeded) => Phase::Succeeded,
            Some(PodPhase::Failed) => Phase::Failed,
            Some(PodPhase::Unknown) | None => Phase::Unknown,
        },
        deleting: pod.metadata.deletion_timestamp.is_some(),
    }
}

struct LinedUp<'a> {
    pods: &'a [&'a Pod],
    places: HashMap<&'a str, usize>,
    selector: &'a Selector,
    namespace: &'a str,
}

impl LinedUp<'_> {
    fn read(
        &self,
        autoscaler: &Autoscaler,
        metric: &Metric,
        spec: &MetricSpec,
        around: &Surroundings<'_>,
    ) -> Reading {
        match &*metric.source {
            Source::Resource { name } => self.resource(name, None, metric.aim, around),
            Source::ContainerResource { name, container } => {
                self.resource(name, Some(container), metric.aim, around)
            }
            Source::Pods(series) => {
                let wanted = spec.pods.as_ref().and_then(|s| s.metric.selector.as_ref());
                self.pods_metric(&series.name, wanted, around)
            }
            Source::Object { series, object } => {
                let wanted = spec.object.as_ref().and_then(|s| s.metric.selector.as_ref());
                object_metric(&autoscaler.namespace, &series.name, object, wanted, around)
            }
            Source::External(series) => {
                let wanted = spec.external.as_ref().and_then(|s| s.metric.selector.as_ref());
                external_metric(&series.name, wanted, around)
            }
            Source::Unknown { .. } => Reading::Empty,
        }
    }

    fn resource(
        &self,
        resource: &str,
        container: Option<&str>,
        aim: Aim,
        around: &Surroundings<'_>,
    ) -> Reading {
        let metrics = match around.pod_metrics {
            Ok(metrics) => metrics,
            Err(error) => return Reading::Failed(error.into()),
        };
        let picked = |m: &&PodMetrics| {
            *m.metadata.namespace == *self.namespace
                && self.selector.matches(|key| m.metadata.labels.get(key))
        };
        let mut any = false;
        let samples = metrics.iter().filter(picked).inspect(|_| any = true).filter_map(|metrics| {
            let sample = Sample {
                value: Milli(used_milli(metrics, resource, container)?),
                taken: metrics.timestamp.map_or(NO_TIME, |t| t.0),
                window: metrics.window.to_span(),
            };
            Some((&*metrics.metadata.name, sample))
        });
        let mut readings = self.line_up(samples);
        if !any {
            return Reading::Empty;
        }
        if let Aim::Utilization(_) = aim {
            readings.requests = self.requests(resource, container);
        }
        Reading::PerPod(readings)
    }

    fn requests(&self, resource: &str, container: Option<&str>) -> Requests {
        let mut missing: Option<MissingRequest> = None;
        let of_pods = self.pods.iter().map(|pod| {
            Milli(pod.requested_milli(resource, container).unwrap_or_else(|error| {
                missing.get_or_insert(error);
                0
            }))
        });
        let of_pods = of_pods.collect();
        Requests { of_pods, missing }
    }

    fn pods_metric(
        &self,
        name: &str,
        wanted: Option<&LabelSelector>,
        around: &Surroundings<'_>,
    ) -> Reading {
        let found = match custom_values(name, wanted, around) {
            Ok(found) => found,
            Err(error) => return Reading::Failed(error),
        };
        let mut any = false;
        let found = found.filter(|value| {
            let object = &value.described_object;
            &*object.kind == "Pod"
                && *object.namespace == *self.namespace
                && self.may_be_ours(&object.name, around)
        });
        let samples = found.inspect(|_| any = true).map(|value| {
            let window = value.window_seconds.map_or(CUSTOM_WINDOW, Span::seconds);
            let taken = value.timestamp.map_or(NO_TIME, |t| t.0);
            let sample = Sample { value: Milli(value.value.milli_value()), taken, window };
            (&*value.described_object.name, sample)
        });
        let readings = self.line_up(samples);
        if any { Reading::PerPod(readings) } else { Reading::Empty }
    }

    /// A pod that is known and not picked is not ours; one that is not known may have been.
    fn may_be_ours(&self, name: &str, around: &Surroundings<'_>) -> bool {
        let known =
            |pod: &Pod| *pod.metadata.name == *name && *pod.metadata.namespace == *self.namespace;
        self.places.contains_key(name) || !around.pods.iter().any(known)
    }

    /// Puts each sample beside its pod. Of several for one pod the last one counts.
    fn line_up<'s>(&self, samples: impl Iterator<Item = (&'s str, Sample)>) -> PodReadings {
        let mut lined_up = vec![None; self.pods.len()];
        let mut strangers: HashMap<&str, Milli> = HashMap::new();
        for (name, sample) in samples {
            match self.places.get(name) {
                Some(place) => lined_up[*place] = Some(sample),
                None => {
                    strangers.insert(name, sample.value);
                }
            }
        }
        let total = strangers.values().fold(0i64, |sum, value| sum.wrapping_add(value.0));
        let strangers = Strangers { count: strangers.len(), total: Milli(total) };
        PodReadings { samples: lined_up, strangers, requests: Requests::default() }
    }
}

/// What a pod, or one container of it, uses; `None` if any container that counts does not say.
fn used_milli(metrics: &PodMetrics, resource: &str, container: Option<&str>) -> Option<i64> {
    let used =
        |usage: &crate::resources::ResourceList| usage.get(resource).map(|q| q.milli_value());
    match container {
        Some(name) => used(&metrics.containers.iter().find(|c| &*c.name == name)?.usage),
        None if metrics.containers.is_empty() => None,
        None => metrics
            .containers
            .iter()
            .try_fold(0i64, |sum, c| Some(sum.wrapping_add(used(&c.usage)?))),
    }
}

type CustomValues<'a> = Box<dyn Iterator<Item = &'a MetricValue> + 'a>;

/// The values of a custom metric whose series the selector picks.
fn custom_values<'a>(
    name: &'a str,
    wanted: Option<&LabelSelector>,
    around: &Surroundings<'a>,
) -> Result<CustomValues<'a>, Arc<str>> {
    let values = around.custom_metrics.map_err(Arc::from)?;
    // A selector that cannot be used is the core's to report; nothing is read for it.
    let Ok(selector) = selector_of(wanted) else { return Ok(Box::new(std::iter::empty())) };
    Ok(Box::new(values.iter().filter(move |value| {
        let labels = value.metric.selector.as_ref();
        &*value.metric.name == name
            && selector.matches(|key| labels.and_then(|s| s.match_labels.get(key)))
    })))
}

/// Selects everything if there is no selector.
fn selector_of(wanted: Option<&LabelSelector>) -> Result<Selector, SelectorError> {
    wanted.map_or_else(|| Ok(Selector::everything()), LabelSelector::to_selector)
}

fn object_metric(
    namespace: &str,
    name: &str,
    object: &ObjectRef,
    wanted: Option<&LabelSelector>,
    around: &Surroundings<'_>,
) -> Reading {
    let found = match custom_values(name, wanted, around) {
        Ok(found) => found,
        Err(error) => return Reading::Failed(error),
    };
    // A reference must not lead out of the namespace, so a Namespace is always the own one.
    let is_namespace = &*object.kind == "Namespace" && !object.api_version.contains('/');
    let object_name = if is_namespace { namespace } else { &*object.name };
    let values: Vec<&MetricValue> = found
        .filter(|v| *v.described_object.kind == *object.kind)
        .filter(|v| *v.described_object.name == *object_name)
        .filter(|v| is_namespace || *v.described_object.namespace == *namespace)
        .collect();
    match values.as_slice() {
        [value] => Reading::Total(Milli(value.value.milli_value())),
        several => Reading::Failed(not_exactly_one(several.len()).into()),
    }
}

/// What is said when the custom metrics API does not answer with one value for one object.
#[must_use]
pub fn not_exactly_one(count: usize) -> String {
    format!("the custom metrics API server returned {count} results when we asked for exactly one")
}

fn external_metric(
    name: &str,
    wanted: Option<&LabelSelector>,
    around: &Surroundings<'_>,
) -> Reading {
    let values = match around.external_metrics {
        Ok(values) => values,
        Err(error) => return Reading::Failed(error.into()),
    };
    let Ok(selector) = selector_of(wanted) else { return Reading::Empty };
    let values: Vec<Milli> = values
        .iter()
        .filter(|v| &*v.metric_name == name)
        .filter(|v| selector.matches(|key| v.metric_labels.get(key)))
        .map(|v| Milli(v.value.milli_value()))
        .collect();
    if values.is_empty() { Reading::Empty } else { Reading::Series(values) }
}
