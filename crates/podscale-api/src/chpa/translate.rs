//! Between a CHPA and the core's model. What a CHPA does otherwise than a native autoscaler is said
//! with named values of the model; nothing past this point knows what a CHPA is.

use super::{Chpa, ChpaSpec, ChpaStatus, KIND, TARGET_API_VERSION, TARGET_KIND};
use crate::hpa::convert::{from_v2beta1, to_v2beta1};
use crate::hpa::wording::{condition_about, condition_about_hpa};
use crate::hpa::{v2, v2beta1};
use crate::recording::Origin;
use crate::translate;
use podscale_core::model::{
    Extensions, ForbiddenWindows, MetricRules, NoMetrics, OnMissing, Pace, PodRules, Readiness,
    SizeFrom, Stabilization, TargetRef, Tolerance, Wording, ZeroedByOthers,
};
use podscale_core::{Autoscaler, Decision, Snapshot, Span, Status};

/// What every model has as its generation. Where a definition has no status subresource each status
/// that is written makes a new generation, which must not look like a new spec.
const GENERATION: i64 = 0;
/// A condition of native autoscalers that a CHPA does not have.
const SCALED_TO_ZERO: &str = "ScaledToZero";

/// The model of a CHPA. Never fails: a spec that makes no sense becomes a model that says so.
#[must_use]
pub fn autoscaler(chpa: &Chpa) -> Autoscaler {
    match chpa.checked() {
        Ok(spec) => Autoscaler {
            extensions: Some(Box::new(extensions(&spec))),
            ..translate::autoscaler(&hpa_of(chpa, &spec))
        },
        Err(why) => invalid(chpa, &why),
    }
}

/// What a CHPA asks for beyond a native autoscaler, or otherwise.
fn extensions(spec: &ChpaSpec) -> Extensions {
    let window = |seconds: i32| Some(Span::seconds(i64::from(seconds)));
    // One metric that cannot be read ends the pass.
    let rules = MetricRules { on_missing: OnMissing::Abort, ..MetricRules::DEFAULT };
    Extensions {
        metrics: vec![rules; spec.metrics.len()],
        no_metrics: NoMetrics::AskForZero,
        pods: PodRules { readiness: Readiness::Serving, ..PodRules::default() },
        size_from: SizeFrom::Status,
        tolerance: Some(Tolerance { up: Some(spec.tolerance), down: Some(spec.tolerance) }),
        stabilization: Stabilization::Off,
        forbidden_windows: ForbiddenWindows {
            up: window(spec.upscale_forbidden_window_seconds),
            down: window(spec.downscale_forbidden_window_seconds),
        },
        pace: Pace::FactorAndMinimum {
            factor: spec.scale_up_limit_factor,
            minimum: spec.scale_up_limit_minimum,
        },
        zeroed_by_others: ZeroedByOthers::SetToOne,
        wording: Wording::ConfigurableHpa,
        ..Extensions::default()
    }
}

/// The model of a spec that makes no sense: it names its target as far as that can be read.
fn invalid(chpa: &Chpa, why: &str) -> Autoscaler {
    let target = chpa.spec.as_ref().map(|spec| spec.scale_target_ref.clone()).unwrap_or_default();
    Autoscaler {
        namespace: chpa.metadata.namespace.as_str().into(),
        name: chpa.metadata.name.as_str().into(),
        generation: GENERATION,
        target: TargetRef {
            api_version: TARGET_API_VERSION.into(),
            kind: if target.kind.is_empty() { TARGET_KIND } else { &*target.kind }.into(),
            name: target.name.as_str().into(),
        },
        min_replicas: 1,
        max_replicas: 1,
        metrics: Vec::new(),
        behavior: None,
        extensions: Some(Box::new(Extensions {
            invalid: Some(why.into()),
            wording: Wording::ConfigurableHpa,
            ..Extensions::default()
        })),
    }
}

/// The object in the form of a native one.
#[must_use]
pub fn as_hpa(chpa: &Chpa) -> v2::HorizontalPodAutoscaler {
    let mut spec = chpa.spec.clone().unwrap_or_default();
    spec.fill_in();
    hpa_of(chpa, &spec)
}

/// The object as Recordings hold it: in the form of a native one, which says what it was.
#[must_use]
pub fn recorded(chpa: &Chpa) -> v2::HorizontalPodAutoscaler {
    let mut hpa = as_hpa(chpa);
    Origin::note(KIND, &chpa.stored_spec, &mut hpa);
    hpa
}

fn hpa_of(chpa: &Chpa, spec: &ChpaSpec) -> v2::HorizontalPodAutoscaler {
    let target = &spec.scale_target_ref;
    let old = v2beta1::HorizontalPodAutoscaler {
        spec: v2beta1::HorizontalPodAutoscalerSpec {
            scale_target_ref: v2::CrossVersionObjectReference {
                api_version: TARGET_API_VERSION.to_owned(),
                ..target.clone()
            },
            min_replicas: spec.min_replicas,
            max_replicas: spec.max_replicas,
            metrics: spec.metrics.clone(),
        },
        ..v2beta1::HorizontalPodAutoscaler::default()
    };
    let mut hpa = from_v2beta1(old);
    if spec.metrics.is_empty() {
        // A native autoscaler would get a cpu metric.
        hpa.spec.metrics.clear();
    }
    hpa.metadata = chpa.metadata.clone();
    hpa.metadata.generation = GENERATION;
    hpa.status = chpa.status.clone().map(|status| observed(status_up(status), chpa));
    hpa
}

/// A status that says of the model's generation whether it was observed. One that says nothing was
/// stored with its object, or by the original controller, which never said it.
fn observed(
    mut status: v2::HorizontalPodAutoscalerStatus,
    chpa: &Chpa,
) -> v2::HorizontalPodAutoscalerStatus {
    let seen = status.observed_generation.is_none_or(|seen| seen == chpa.metadata.generation);
    status.observed_generation = seen.then_some(GENERATION);
    for condition in &mut status.conditions {
        *condition = condition_about_hpa(condition, KIND);
    }
    status.current_metrics = status.current_metrics.filter(|metrics| !metrics.is_empty());
    status
}

fn status_up(status: ChpaStatus) -> v2::HorizontalPodAutoscalerStatus {
    let old = v2beta1::HorizontalPodAutoscaler { status, ..Default::default() };
    from_v2beta1(old).status.unwrap_or_default()
}

/// A status in the form of a native object as that of this CHPA.
#[must_use]
pub fn status_down(chpa: &Chpa, status: v2::HorizontalPodAutoscalerStatus) -> ChpaStatus {
    let hpa = v2::HorizontalPodAutoscaler { status: Some(status), ..Default::default() };
    let mut status = to_v2beta1(&hpa).status;
    status.observed_generation = Some(chpa.metadata.generation);
    status.conditions.retain(|condition| condition.r#type != SCALED_TO_ZERO);
    for condition in &mut status.conditions {
        *condition = condition_about(condition, KIND);
        condition.observed_generation = None;
    }
    status
}

/// What the stored status says, as the rules see it.
#[must_use]
pub fn stored_status(chpa: &Chpa) -> Status {
    let stored = chpa.status.clone().map(|status| observed(status_up(status), chpa));
    stored.as_ref().map(translate::status::from_wire).unwrap_or_default()
}

/// The status to store after a decision on the object as it was read.
#[must_use]
pub fn decided_status(chpa: &Chpa, decision: &Decision, snapshot: &Snapshot<'_>) -> ChpaStatus {
    let status = translate::status::to_wire(decision, snapshot, &as_hpa(chpa));
    status_down(chpa, status)
}
