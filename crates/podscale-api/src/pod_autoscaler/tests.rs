mod decided;
mod meaning;

use super::*;
use crate::hpa::v2::HorizontalPodAutoscaler;
use crate::keda::trigger::AuthenticationRef;
use crate::pod_autoscaler::fields::{SPEC, STATUS};
use crate::pod_autoscaler::hpa_form::{from_hpa, hpa_form};
use crate::pod_autoscaler::schema::{Object, Shape};
use crate::translate;
use podscale_core::model::Extensions;
use serde_json::{Map, Value, json};
use std::path::Path;

/// A value of a shape with every field set, as far as they go together.
fn sample(shape: &Shape) -> Value {
    match shape {
        Shape::Text(_) | Shape::Pattern(..) => json!("text"),
        Shape::OneOf(words) => json!(words[0]),
        Shape::Integer(least, _) => json!(least.max(&7)),
        Shape::Long => json!(7),
        Shape::Quantity | Shape::PositiveQuantity => json!("700m"),
        Shape::ReplicasOr(words) => json!(words[0]),
        Shape::Duration => json!("90s"),
        Shape::Time => json!("2026-01-01T08:00:00Z"),
        Shape::Labels | Shape::Texts => json!({"a": "b"}),
        Shape::Truth => json!(true),
        Shape::List(_, item) | Shape::Named(_, _, item) => json!([sample(item)]),
        Shape::Object(object) => sample_of(object),
    }
}

fn sample_of(object: &Object) -> Value {
    let fields = object.fields.iter().map(|field| (field.name.to_owned(), sample(&field.shape)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// What a structural schema leaves of a value.
fn pruned(value: &Value, shape: &Shape) -> Value {
    match (value, shape) {
        (Value::Object(fields), Shape::Object(object)) => {
            let known = |name: &str| object.fields.iter().find(|field| field.name == name);
            let kept = fields.iter().filter_map(|(name, value)| {
                Some((name.clone(), pruned(value, &known(name)?.shape)))
            });
            Value::Object(kept.collect())
        }
        (Value::Array(items), Shape::List(_, item) | Shape::Named(_, _, item)) => {
            items.iter().map(|value| pruned(value, item)).collect()
        }
        (value, _) => value.clone(),
    }
}

#[test]
fn types_and_description_have_the_same_fields() {
    let given = json!({"metadata": {"name": "web"}, "spec": sample_of(&SPEC), "status": sample_of(&STATUS)});
    let read: PodAutoscaler = serde_json::from_value(given.clone()).expect("an autoscaler");
    let written = serde_json::to_value(&read).expect("JSON");
    assert_eq!(
        written["spec"], given["spec"],
        "every field of the description is one of the types"
    );
    assert_eq!(written["status"], given["status"]);
    // Whatever the types have, the API server keeps: all of them are set, by the compiler's word.
    let written = serde_json::to_value(complete()).expect("JSON");
    assert_eq!(pruned(&written, &Shape::Object(&SPEC)), written);
}

/// A spec with all fields of the types that are not the HPA's.
fn complete() -> PodAutoscalerSpec {
    use spec::*;
    let quantity = || crate::Quantity::parse("1").ok();
    let (text, time) = (|| Some("x".to_owned()), Some(crate::time::Timestamp::default()));
    let until = || Some(Until { until: time });
    let rules = |limit| {
        Some(ScalingRules { hpa: Default::default(), forbidden_window_seconds: Some(1), limit })
    };
    let limit = UpLimit { factor: quantity(), minimum: Some(1) };
    let target = crate::hpa::v2::MetricTarget::default();
    let prometheus = PrometheusSource { server: "x".into(), query: "x".into(), target };
    let trigger = TriggerSource {
        r#type: "x".into(),
        metadata: [("x".to_owned(), "x".to_owned())].into(),
        authentication_ref: Some(AuthenticationRef { name: "x".into(), kind: "x".into() }),
        env_source_container_name: "x".into(),
        metric_type: text(),
        use_cached_metrics: Some(true),
    };
    let metric = Metric {
        hpa: Default::default(),
        name: text(),
        prometheus: Some(Box::new(prometheus)),
        trigger: Some(Box::new(trigger)),
        max_age: text(),
        on_missing: Some(OnMissing::Replicas(1)),
        utilization_of: text(),
        aggregate: text(),
        activation: quantity(),
        watermarks: Some(Box::new(Watermarks { high: quantity(), low: quantity() })),
    };
    let schedule = Schedule {
        name: "x".into(),
        time_zone: text(),
        start: "x".into(),
        end: text(),
        duration: text(),
        min_replicas: Some(1),
        max_replicas: Some(1),
        ramp: text(),
    };
    let queue = Queue {
        length: "x".into(),
        arrivals: "x".into(),
        items_per_second: quantity(),
        within: text(),
    };
    let zero = ScaleToZero { idle_replicas: Some(1), cool_down: text(), zero_by_others: text() };
    PodAutoscalerSpec {
        scale_target_ref: Default::default(),
        min_replicas: Some(1),
        max_replicas: 1,
        metrics: vec![metric],
        combine: text(),
        expression: text(),
        behavior: Some(Behavior { scale_up: rules(Some(limit)), scale_down: rules(None) }),
        schedules: vec![schedule],
        mode: text(),
        mode_until: time,
        pause: Some(Pause { scale_up: until(), scale_down: until() }),
        hold: Some(Hold { replicas: 1, until: time }),
        pod_selection: text(),
        scale_to_zero: Some(zero),
        warm_up: text(),
        sync_period: text(),
        fallback: Some(Fallback { replicas: 1, after: text() }),
        pod_deletion_cost: Some(PodDeletionCost { metric: "x".into() }),
        queue: Some(queue),
        window: Some(Window { stable: text(), panic: text(), panic_threshold_percent: Some(1) }),
        profile: text(),
        start_up_time: text(),
        predict: Some(Predict { confidence: Some(1), scale_in_guard: text() }),
        lead: Some(Lead { limit_percent: Some(1) }),
        headroom: Some(Headroom {
            confidence: Some(1),
            limit_percent: Some(1),
            overload_permille: Some(1),
        }),
    }
}

/// Fills in the defaults of the schema, as the API server does.
fn fill(value: &mut Value, object: &Object) {
    for field in object.fields {
        if value.get(field.name).is_none()
            && let Some(default) = field.default_value()
        {
            value[field.name] = default;
        }
        let Some(inner) = field.shape.object() else { continue };
        match value.get_mut(field.name) {
            Some(Value::Array(items)) => items.iter_mut().for_each(|item| fill(item, inner)),
            Some(value) if value.is_object() => fill(value, inner),
            _ => {}
        }
    }
}

#[test]
fn defaults_of_the_schema_are_those_of_the_types() {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    for spec in [
        json!({"scaleTargetRef": target, "maxReplicas": 3}),
        json!({"scaleTargetRef": target, "maxReplicas": 3, "behavior": {}}),
        json!({"scaleTargetRef": target, "maxReplicas": 3, "behavior": {"scaleUp": {"limit": {}}},
            "scaleToZero": {}, "fallback": {"replicas": 2}, "window": {}, "predict": {}, "lead": {}, "headroom": {},
            "queue": {"length": "up", "arrivals": "up", "itemsPerSecond": "2"},
            "schedules": [{"name": "a", "start": "0 8 * * *", "end": "0 9 * * *", "minReplicas": 2}],
            "metrics": [{"type": "Prometheus", "name": "up", "prometheus": {"query": "up",
                "target": {"type": "Value", "value": "1"}}}]}),
    ] {
        let model = |spec: Value, filled: bool| {
            let mut pa: PodAutoscaler =
                serde_json::from_value(json!({"metadata": {}, "spec": spec}))
                    .expect("an autoscaler");
            if !filled {
                default::default_spec(&mut pa.spec);
            }
            let mut model = translate::pod_autoscaler::autoscaler(&pa, &[]);
            // A calendar is the same if its text is, which shows what was given.
            if let Some(extensions) = &mut model.extensions {
                extensions.schedules = None;
            }
            model
        };
        let mut filled = spec.clone();
        fill(&mut filled, &SPEC);
        assert_eq!(model(filled, true), model(spec.clone(), false), "{spec}");
    }
}

#[test]
fn an_hpa_means_the_same_and_comes_back_as_it_was() {
    let line = include_str!("../../testdata/named-1.37.jsonl").lines().next().expect("a recording");
    let recording: Value = serde_json::from_str(line).expect("JSON");
    let mut hpa: HorizontalPodAutoscaler =
        serde_json::from_value(recording["autoscaler"].clone()).expect("an autoscaler");
    hpa.status = None;
    let pa = from_hpa(&hpa);
    assert_eq!(hpa_form(&pa, None).spec, hpa.spec);
    let mut model = translate::pod_autoscaler::autoscaler(&pa, &[]);
    assert_eq!(model, translate::autoscaler(&hpa));
    // The default is another one.
    let owned = PodAutoscaler { spec: PodAutoscalerSpec { pod_selection: None, ..pa.spec }, ..pa };
    model.extensions = Some(Box::new(Extensions {
        pod_selection: podscale_core::model::PodSelection::Owned,
        ..Extensions::default()
    }));
    assert_eq!(translate::pod_autoscaler::autoscaler(&owned, &[]), model);
}

#[test]
fn the_reference_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/podautoscaler-reference.md");
    let current = reference();
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, &current).expect("written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == current, "{} is not current: UPDATE_GENERATED=1 writes it", path.display());
}

#[test]
fn descriptions_and_defaults_can_be_used() {
    fn check(object: &'static Object) {
        for field in object.fields {
            assert!(field.about.ends_with('.'), "{}.{}", object.name, field.name);
            let unreadable = field.default.is_some() && field.default_value().is_none();
            assert!(!unreadable, "the default of {}.{}", object.name, field.name);
            field.shape.object().into_iter().for_each(check);
        }
    }
    [&SPEC, &STATUS].into_iter().for_each(check);
}
