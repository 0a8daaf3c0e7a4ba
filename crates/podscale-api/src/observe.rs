//! Lines up what was read from the API with an autoscaler, so that the core can decide: which pods
//! are meant, and what each metric says.

use crate::hpa::v2::{self, MetricSpec};
use crate::metrics::{ExternalMetricValue, MetricValue, PodMetrics, Usage};
use crate::pod::{ConditionStatus, Pod, PodPhase};
use crate::selector::{LabelSelector, Selector, SelectorError};
use podscale_core::model::{Milli, ObjectRef, ShareOf, Source};
use podscale_core::pod::{self, Phase, Ready, ReadyStatus};
use podscale_core::snapshot::{
    MissingRequest, PodReadings, Reading, Requests, Sample, Selection, UnmatchedSamples,
};
use podscale_core::{Autoscaler, Span, Time};
use std::collections::HashMap;
use std::sync::Arc;

mod measured;
pub use measured::{Measured, not_one_value};

/// What was read around one autoscaler.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// The kind of the autoscaler itself.
    pub kind: &'a str,
    /// The selector of the target's scale, as text.
    pub selector: &'a str,
    /// Pods, at least all that the selector picks; those of other namespaces are passed over.
    pub pods: &'a [&'a Pod],
    /// The other autoscalers of the namespace: name and selector. The kind stands before the name, with a
    /// slash, unless it is an HPA.
    pub others: &'a [(&'a str, &'a str)],
}

/// What the sources of metrics answered.
#[derive(Clone, Copy, Debug)]
pub struct Answers<'a> {
    /// What the resource metrics API answers for the namespace, or at least for the pods meant.
    pub pod_metrics: Result<&'a [&'a PodMetrics], &'a str>,
    /// What the custom metrics API answers.
    pub custom_metrics: Result<&'a [MetricValue], &'a str>,
    /// What the external metrics API answers.
    pub external_metrics: Result<&'a [ExternalMetricValue], &'a str>,
    /// The metric as the spec has it, if its selector of series is left to apply; sources that were
    /// asked for one metric have applied it.
    pub unselected: Option<&'a MetricSpec>,
}

impl<'a> Answers<'a> {
    /// The selector of series that is left to apply.
    fn left_to_select(&self) -> Option<&'a LabelSelector> {
        let spec = self.unselected?;
        let pods = spec.pods.as_ref().map(|source| &source.metric);
        let object = spec.object.as_ref().map(|source| &source.metric);
        let external = spec.external.as_ref().map(|source| &source.metric);
        pods.or(object).or(external)?.selector.as_ref()
    }
}

/// Custom metrics without a window of their own are taken to span this long.
const CUSTOM_WINDOW: Span = Span::seconds(60);

/// The time of a sample that says no time: long ago.
const NO_TIME: Time = Time(-62_135_596_800_000_000);

/// The pods that the selector of an autoscaler's target picks.
#[derive(Debug)]
pub struct Selected<'a> {
    autoscaler: &'a Autoscaler,
    selector: Selector,
    /// All that were considered.
    around: &'a [&'a Pod],
    pods: Vec<&'a Pod>,
    places: HashMap<&'a str, usize>,
}

/// The pods that the target's selector picks, or what is wrong with it.
///
/// # Errors
/// There is no selector, it cannot be read, or it picks pods of another autoscaler too.
pub fn select<'a>(
    autoscaler: &'a Autoscaler,
    around: &Surroundings<'a>,
) -> Result<Selected<'a>, Selection> {
    if around.selector.is_empty() {
        return Err(Selection::NoSelector);
    }
    let selector = Selector::parse(around.selector)
        .map_err(|error| Selection::BadSelector(error.to_string().into()))?;
    let picked = |pod: &&&Pod| {
        *pod.metadata.namespace == *autoscaler.namespace
            && selector.matches(|key| pod.metadata.labels.get(key))
    };
    let pods: Vec<&Pod> = around.pods.iter().filter(picked).copied().collect();
    let overlapping = around.others.iter().find(|(_, other)| {
        Selector::parse(other).is_ok_and(|other| {
            pods.iter().any(|pod| other.matches(|key| pod.metadata.labels.get(key)))
        })
    });
    if let Some((overlapping, _)) = overlapping {
        let other = overlapping.split_once('/').unwrap_or((v2::KIND, overlapping));
        let autoscalers = both(&autoscaler.namespace, other, (around.kind, &autoscaler.name));
        return Err(Selection::Ambiguous { selector: around.selector.into(), autoscalers });
    }
    let places = pods.iter().enumerate().map(|(place, pod)| (&*pod.metadata.name, place));
    Ok(Selected { autoscaler, selector, around: around.pods, places: places.collect(), pods })
}

/// How two autoscalers are called, each given as kind and name: as upstream does if both are HPAs.
fn both(namespace: &str, a: (&str, &str), b: (&str, &str)) -> [Arc<str>; 2] {
    let plain = [a.0, b.0] == [v2::KIND; 2];
    let mut names = [a, b].map(|(kind, name)| match plain {
        true => format!("{namespace}/{name}"),
        false => format!("{kind} {namespace}/{name}"),
    });
    names.sort_unstable();
    names.map(Arc::from)
}

impl Selected<'_> {
    /// The pods as the core sees them.
    #[must_use]
    pub fn selection(&self) -> Selection {
        Selection::Pods(self.pods.iter().map(|pod| model_pod(pod)).collect())
    }

    /// What the metric at this place of the spec says.
    #[must_use]
    pub fn read(&self, place: usize, answers: &Answers<'_>) -> Reading {
        let Some(metric) = self.autoscaler.metrics.get(place) else { return Reading::Empty };
        match &*metric.source {
            Source::Resource { name } => self.resource(place, name, None, answers),
            Source::ContainerResource { name, container } => {
                self.resource(place, name, Some(container), answers)
            }
            Source::Pods(series) => {
                self.pods_metric(&series.name, answers.left_to_select(), answers)
            }
            Source::Object { series, object } => {
                let wanted = answers.left_to_select();
                let namespace = &self.autoscaler.namespace;
                object_metric(namespace, &series.name, object, wanted, answers)
            }
            Source::External(series) => {
                external_metric(&series.name, answers.left_to_select(), answers)
            }
            // Its source measures values, which are lined up by `read_measured`.
            Source::Prometheus(_) | Source::Trigger(_) | Source::Unknown { .. } => Reading::Empty,
        }
    }

    fn resource(
        &self,
        place: usize,
        resource: &str,
        container: Option<&str>,
        answers: &Answers<'_>,
    ) -> Reading {
        let metrics = match answers.pod_metrics {
            Ok(metrics) => metrics,
            Err(error) => return Reading::Failed(error.into()),
        };
        let picked = |m: &&&PodMetrics| {
            *m.metadata.namespace == *self.autoscaler.namespace
                && self.selector.matches(|key| m.metadata.labels.get(key))
        };
        let mut any = false;
        let mut unreadable = None;
        let picked = metrics.iter().filter(picked).inspect(|metrics| {
            any = true;
            unreadable = unreadable.or_else(|| metrics.error());
        });
        let samples = picked.filter_map(|metrics| {
            let sample = Sample {
                value: Milli(used_milli(metrics, resource, container)?),
                taken: metrics.timestamp.map_or(NO_TIME, |t| t.0),
                window: metrics.window.to_span(),
            };
            Some((&*metrics.metadata.name, sample))
        });
        let readings = self.line_up(samples);
        // Asked for these pods alone, the API's answer could not be decoded.
        if let Some(error) = unreadable {
            return Reading::Failed(error.to_string().into());
        }
        let reading = if any { Reading::PerPod(readings) } else { Reading::Empty };
        self.with_requests(reading, place, resource, container)
    }

    fn requests(&self, resource: &str, container: Option<&str>, share_of: ShareOf) -> Requests {
        let mut missing: Option<MissingRequest> = None;
        let of_pods = self.pods.iter().map(|pod| {
            let amount = match share_of {
                ShareOf::Requests => pod.requested_milli(resource, container),
                ShareOf::Limits => pod.limit_milli(resource, container),
            };
            Milli(amount.unwrap_or_else(|error| {
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
        answers: &Answers<'_>,
    ) -> Reading {
        let found = match custom_values(name, wanted, answers) {
            Ok(found) => found,
            Err(error) => return Reading::Failed(error),
        };
        let mut any = false;
        let found = found.filter(|value| {
            let object = &value.described_object;
            &*object.kind == "Pod"
                && *object.namespace == *self.autoscaler.namespace
                && self.may_be_ours(&object.name)
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
    fn may_be_ours(&self, name: &str) -> bool {
        let known = |pod: &&Pod| {
            *pod.metadata.name == *name && *pod.metadata.namespace == *self.autoscaler.namespace
        };
        self.places.contains_key(name) || !self.around.iter().any(known)
    }

    /// Puts each sample beside its pod. Of several for one pod the last one counts.
    fn line_up<'s>(&self, samples: impl Iterator<Item = (&'s str, Sample)>) -> PodReadings {
        let mut lined_up = vec![None; self.pods.len()];
        let mut unmatched: HashMap<&str, Milli> = HashMap::new();
        for (name, sample) in samples {
            match self.places.get(name) {
                Some(place) => lined_up[*place] = Some(sample),
                None => {
                    unmatched.insert(name, sample.value);
                }
            }
        }
        let total = unmatched.values().fold(0i64, |sum, value| sum.wrapping_add(value.0));
        let unmatched = UnmatchedSamples { count: unmatched.len(), total: Milli(total) };
        PodReadings { samples: lined_up, unmatched, requests: Requests::default() }
    }
}

/// What a pod, or one container of it, uses; `None` if any container that counts does not say.
fn used_milli(metrics: &PodMetrics, resource: &str, container: Option<&str>) -> Option<i64> {
    let used = |usage: &Usage| usage.get(resource).map(|q| q.milli_value());
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
    answers: &Answers<'a>,
) -> Result<CustomValues<'a>, Arc<str>> {
    let values = answers.custom_metrics.map_err(Arc::from)?;
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
    answers: &Answers<'_>,
) -> Reading {
    let found = match custom_values(name, wanted, answers) {
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
        [value] => Reading::Total {
            value: Milli(value.value.milli_value()),
            taken: value.timestamp.map(|t| t.0),
        },
        several => Reading::Failed(not_exactly_one(several.len()).into()),
    }
}

/// What is said when the custom metrics API does not answer with one value for one object.
#[must_use]
pub fn not_exactly_one(count: usize) -> String {
    format!("the custom metrics API server returned {count} results when we asked for exactly one")
}

fn external_metric(name: &str, wanted: Option<&LabelSelector>, answers: &Answers<'_>) -> Reading {
    let values = match answers.external_metrics {
        Ok(values) => values,
        Err(error) => return Reading::Failed(error.into()),
    };
    let Ok(selector) = selector_of(wanted) else { return Reading::Empty };
    let wanted = |v: &&ExternalMetricValue| {
        &*v.metric_name == name && selector.matches(|key| v.metric_labels.get(key))
    };
    let mut taken: Option<Time> = None;
    let values: Vec<Milli> = values
        .iter()
        .filter(wanted)
        .inspect(|v| {
            let time = v.timestamp.map(|t| t.0);
            taken = taken.into_iter().chain(time).min();
        })
        .map(|v| Milli(v.value.milli_value()))
        .collect();
    if values.is_empty() { Reading::Empty } else { Reading::Series { values, taken } }
}

/// A pod as the rules see it.
#[must_use]
pub fn model_pod(pod: &Pod) -> pod::Pod {
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
