//! Between PodAutoscalers and the core's model.

use super::scaled_object::TriggerMetric;
use super::{EMPTY_TARGET, source_and_target, targets};
use crate::expression;
use crate::pod_autoscaler::spec::{self, PodAutoscalerSpec, TriggerSource, metric_type};
use crate::pod_autoscaler::status::MOST_NAME_CHARS;
use crate::pod_autoscaler::validate::check;
use crate::pod_autoscaler::{PodAutoscaler, calendar};
use crate::quantity::Quantity;
use crate::quote::quote;
use crate::time::{GoDuration, Timestamp};
use podscale_core::model::{
    Aggregate, Behavior, Combine, Control, EventSource, Extensions, Fallback, ForbiddenWindows,
    Hold, MetricRules, Milli, Mode, OnMissing, Pace, Pause, PodRules, PodSelection,
    PrometheusQuery, ScaleToZero, ShareOf, Source, TargetRef, Targets, Trigger, TriggerOf,
    Watermarks, ZeroedByOthers,
};
use podscale_core::{Autoscaler, Metric, Span};
use std::sync::Arc;

mod ahead;
mod recorded;
pub mod status;

pub use recorded::replayed;

/// How long a text of a condition may be; an API server takes twice as much.
const MOST_REMARK_CHARS: usize = 16_384;

/// The defaults of what is a duration.
const COOL_DOWN: Span = Span::seconds(300);
const FALLBACK_AFTER: Span = Span::seconds(180);

/// The model of a defaulted object. Never fails: what no rule knows is left out, and
/// [`crate::pod_autoscaler::validate`] says what is wrong with it.
///
/// What the event sources measure is known to whoever reads them, and comes in the order of these; without it such a
/// metric has no target.
#[must_use]
pub fn autoscaler(pa: &PodAutoscaler, measured: &[TriggerMetric]) -> Autoscaler {
    let PodAutoscaler { metadata, spec, .. } = pa;
    let target = &spec.scale_target_ref;
    let direction = |rules: &Option<spec::ScalingRules>| {
        super::rules(rules.as_ref().map(|direction| &direction.hpa))
    };
    let extensions = extensions(spec);
    Autoscaler {
        namespace: metadata.namespace.as_str().into(),
        name: metadata.name.as_str().into(),
        generation: metadata.generation,
        target: TargetRef {
            api_version: target.api_version.as_str().into(),
            kind: target.kind.as_str().into(),
            name: target.name.as_str().into(),
        },
        min_replicas: spec.min_replicas.unwrap_or(1),
        max_replicas: spec.max_replicas,
        metrics: metrics(spec, measured),
        behavior: spec.behavior.as_ref().map(|behavior| Behavior {
            scale_up: direction(&behavior.scale_up),
            scale_down: direction(&behavior.scale_down),
        }),
        extensions: (extensions != Extensions::default()).then(|| Box::new(extensions)),
    }
}

fn metrics(spec: &PodAutoscalerSpec, measured: &[TriggerMetric]) -> Vec<Metric> {
    let mut measured = measured.iter();
    let of_one = |one: &spec::Metric| match one.event_source() {
        Some(source) => trigger(source, measured.next()),
        None => metric(one),
    };
    spec.metrics.iter().map(of_one).collect()
}

/// A metric that an event source gives.
fn trigger(given: &TriggerSource, measured: Option<&TriggerMetric>) -> Metric {
    if let Some(TriggerMetric::External { name, source, targets }) = measured {
        let (name, of) = (Arc::clone(name), TriggerOf::Source(source.clone()));
        return Metric::new(Source::Trigger(Trigger { name, of }), targets);
    }
    let kind: Arc<str> = given.r#type.as_str().into();
    let of = TriggerOf::Source(EventSource { kind: Arc::clone(&kind), key: "".into() });
    Metric::new(Source::Trigger(Trigger { name: kind, of }), &Targets::default())
}

fn metric(metric: &spec::Metric) -> Metric {
    let share_of = share_of(metric);
    if metric.hpa.r#type == metric_type::PROMETHEUS
        && let Some(source) = &metric.prometheus
    {
        let query = prometheus_query(metric.name.as_deref(), &source.server, &source.query);
        return Metric::sharing(Source::Prometheus(query), &targets(&source.target), share_of);
    }
    let unknown = || (Source::Unknown { quoted: quote(&metric.hpa.r#type).into() }, &EMPTY_TARGET);
    let (source, target) = source_and_target(&metric.hpa).unwrap_or_else(unknown);
    Metric::sharing(source, &targets(target), share_of)
}

/// A query as the model has it; one without a name is called by its beginning.
fn prometheus_query(name: Option<&str>, server: &str, query: &str) -> PrometheusQuery {
    PrometheusQuery {
        name: spec::query_title(name, query).into(),
        server: (!server.is_empty()).then(|| server.into()),
        query: query.into(),
    }
}

fn share_of(metric: &spec::Metric) -> ShareOf {
    match metric.utilization_of.as_deref() {
        Some("Limits") => ShareOf::Limits,
        _ => ShareOf::Requests,
    }
}

fn extensions(spec: &PodAutoscalerSpec) -> Extensions {
    let directions = spec.behavior.as_ref();
    let up = directions.and_then(|behavior| behavior.scale_up.as_ref());
    let down = directions.and_then(|behavior| behavior.scale_down.as_ref());
    let forbidden = |rules: Option<&spec::ScalingRules>| {
        let seconds = rules?.forbidden_window_seconds.filter(|seconds| *seconds > 0)?;
        Some(Span::seconds(i64::from(seconds)))
    };
    Extensions {
        metrics: metric_rules(&spec.metrics),
        combine: combine(spec),
        pod_selection: match spec.pod_selection.as_deref() {
            Some("Selector") => PodSelection::Selector,
            _ => PodSelection::Owned,
        },
        pods: PodRules {
            warm_up: span(spec.warm_up.as_deref()).unwrap_or_default(),
            ..PodRules::default()
        },
        forbidden_windows: ForbiddenWindows { up: forbidden(up), down: forbidden(down) },
        pace: up.and_then(|rules| rules.limit.as_ref()).map(pace).unwrap_or_default(),
        queue: ahead::queue(spec),
        window: ahead::window(spec),
        ahead: ahead::ahead(spec),
        tolerance: ahead::tolerance(spec),
        schedules: calendar::schedules(&spec.schedules).ok().flatten(),
        control: control(spec),
        scale_to_zero: spec.scale_to_zero.as_ref().map(|zero| ScaleToZero {
            idle_replicas: zero.idle_replicas.unwrap_or(0),
            cooldown: span(zero.cool_down.as_deref()).unwrap_or(COOL_DOWN),
        }),
        zeroed_by_others: match &spec.scale_to_zero {
            Some(zero) if zero.zero_by_others.as_deref() == Some("Wake") => ZeroedByOthers::Woken,
            _ => ZeroedByOthers::LeftAlone,
        },
        fallback: spec.fallback.as_ref().map(|fallback| Fallback {
            after: span(fallback.after.as_deref()).unwrap_or(FALLBACK_AFTER),
            replicas: fallback.replicas,
        }),
        deletion_cost_by: spec.deletion_cost_by().and_then(|place| u32::try_from(place).ok()),
        ..Extensions::default()
    }
}

/// The rules of all metrics; none if all have the default ones.
fn metric_rules(metrics: &[spec::Metric]) -> Vec<MetricRules> {
    let rules: Vec<MetricRules> = metrics.iter().map(rules_of).collect();
    if rules.iter().all(|rules| *rules == MetricRules::DEFAULT) { Vec::new() } else { rules }
}

fn rules_of(metric: &spec::Metric) -> MetricRules {
    let milli = |quantity: &Quantity| Milli(quantity.milli_value());
    MetricRules {
        name: metric.name.as_deref().map(Into::into),
        max_age: span(metric.max_age.as_deref()),
        on_missing: match &metric.on_missing {
            Some(spec::OnMissing::Replicas(replicas)) => OnMissing::Replicas(*replicas),
            Some(spec::OnMissing::Word(word)) if word == "Ignore" => OnMissing::Ignore,
            Some(spec::OnMissing::Word(word)) if word == "LastValue" => OnMissing::LastValue,
            _ => OnMissing::Hold,
        },
        share_of: share_of(metric),
        aggregate: aggregate(metric.aggregate.as_deref()),
        activation: metric.activation.as_ref().map(milli),
        watermarks: metric.watermarks.as_ref().and_then(|marks| {
            let (low, high) = (milli(marks.low.as_ref()?), milli(marks.high.as_ref()?));
            Some(Watermarks { low, high })
        }),
        stand_in: None,
    }
}

fn aggregate(word: Option<&str>) -> Aggregate {
    match word {
        Some("Max") => Aggregate::Max,
        Some(word) => {
            let percent = word.strip_prefix('P').and_then(|number| number.parse().ok());
            percent.map_or(Aggregate::Average, Aggregate::Percentile)
        }
        None => Aggregate::Average,
    }
}

fn combine(spec: &PodAutoscalerSpec) -> Combine {
    match (spec.combine.as_deref(), &spec.expression) {
        (Some("Min"), _) => Combine::Min,
        (Some("Average"), _) => Combine::Average,
        (Some("Expression"), Some(text)) => {
            expression::parse(text, &spec.metric_names()).map_or(Combine::Max, Combine::Formula)
        }
        _ => Combine::Max,
    }
}

fn pace(limit: &spec::UpLimit) -> Pace {
    let factor = limit.factor.as_ref().map_or(2.0, Quantity::as_approximate_f64);
    Pace::FactorAndMinimum { factor, minimum: limit.minimum.unwrap_or(4) }
}

fn control(spec: &PodAutoscalerSpec) -> Control {
    let time = |time: Option<Timestamp>| time.map(|Timestamp(time)| time);
    let pause = |until: Option<&spec::Until>| until.map(|until| Pause { until: time(until.until) });
    let paused = spec.pause.as_ref();
    Control {
        mode: match spec.mode.as_deref() {
            Some("DryRun") => Mode::DryRun,
            Some("Paused") => Mode::Paused,
            _ => Mode::Active,
        },
        mode_until: time(spec.mode_until),
        pause_up: pause(paused.and_then(|pause| pause.scale_up.as_ref())),
        pause_down: pause(paused.and_then(|pause| pause.scale_down.as_ref())),
        hold: spec
            .hold
            .as_ref()
            .map(|hold| Hold { replicas: hold.replicas, until: time(hold.until) }),
        hold_beyond_bounds: false,
    }
}

/// A duration, if there is one that can be read.
fn span(text: Option<&str>) -> Option<Span> {
    GoDuration::parse(text?).ok().map(GoDuration::to_span)
}

/// The model of a defaulted object, which says if its spec cannot be acted on. What the event sources measure comes as
/// for [`autoscaler`], or what is wrong with them.
#[must_use]
pub fn checked(pa: &PodAutoscaler, measured: Result<&[TriggerMetric], &str>) -> Autoscaler {
    let mut model = autoscaler(pa, measured.unwrap_or_default());
    let mut errors: Vec<String> = check(pa).iter().map(ToString::to_string).collect();
    errors.extend(measured.err().map(str::to_owned));
    errors.extend(pa.spec.triggers().zip(measured.unwrap_or_default()).filter_map(too_long));
    if !errors.is_empty() {
        let extensions = model.extensions.get_or_insert_default();
        extensions.invalid = Some(remark(errors.join("; ")).into());
    }
    model
}

/// What is wrong with an event source whose metric has a name for which a status has no room.
fn too_long(
    ((place, ..), measured): ((usize, &spec::Metric, &TriggerSource), &TriggerMetric),
) -> Option<String> {
    let TriggerMetric::External { name, .. } = measured else { return None };
    (name.chars().count() > MOST_NAME_CHARS as usize).then(|| {
        format!(
            "spec.metrics[{place}].trigger: the name of what it measures has more than {MOST_NAME_CHARS} characters: use \
             shorter names in its metadata"
        )
    })
}

/// What a condition says of an object besides what was decided: as much as there is room for. Event sources and their
/// metadata may be to blame for any amount of text.
#[must_use]
pub fn remark(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MOST_REMARK_CHARS) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with an object whose event source measures something of this name.
    fn wrong(name: &str) -> Option<String> {
        let object = serde_json::json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Trigger", "trigger": {"type": "redis"}}]}});
        let pa: PodAutoscaler = serde_json::from_value(object).expect("a PodAutoscaler");
        let source = EventSource { kind: "redis".into(), key: "".into() };
        let (name, targets) = (name.into(), Targets::default());
        let measured = [TriggerMetric::External { name, source, targets }];
        checked(&pa, Ok(&measured)).invalid().map(|why| why.to_string())
    }

    #[test]
    fn what_a_status_has_no_room_for_is_refused_or_cut() {
        assert_eq!(wrong(&"é".repeat(512)), None);
        let found = wrong(&"é".repeat(513)).expect("too long");
        assert!(
            found.starts_with("spec.metrics[0].trigger: the name of what it measures"),
            "{found}"
        );
        let long = "é".repeat(MOST_REMARK_CHARS);
        assert_eq!(remark(long.clone()), long);
        assert_eq!(remark(format!("{long}x")), format!("{long}…"));
    }
}
