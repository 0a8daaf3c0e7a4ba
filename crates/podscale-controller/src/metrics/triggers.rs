//! Triggers under the names that KEDA has for what it measures of them, so that boards that were made for it show them.

use super::Metrics;
use super::registry::{Description, Kind, Label, Registry, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The kinds of objects that have triggers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OwnerKind {
    /// KEDA's autoscalers.
    ScaledObject,
    /// What creates Jobs.
    ScaledJob,
    /// Podscale's own autoscalers.
    PodAutoscaler,
}

impl OwnerKind {
    /// What metrics of triggers say that they belong to; of its own kinds, in KEDA's words.
    const fn of_trigger(self) -> &'static str {
        match self {
            OwnerKind::ScaledObject => "scaledobject",
            OwnerKind::ScaledJob => "scaledjob",
            OwnerKind::PodAutoscaler => "podautoscaler",
        }
    }

    /// What objects are counted as.
    const fn counted(self) -> &'static str {
        match self {
            OwnerKind::ScaledObject => "scaled_object",
            OwnerKind::ScaledJob => "scaled_job",
            OwnerKind::PodAutoscaler => "pod_autoscaler",
        }
    }
}

/// What is known of one metric of a trigger.
#[derive(Clone, Debug)]
pub(crate) struct TriggerReport {
    /// The namespace of its object.
    pub(crate) namespace: Arc<str>,
    /// The name of its object.
    pub(crate) object: Arc<str>,
    /// The name of the metric.
    pub(crate) metric: Arc<str>,
    /// The name of the trigger, or of what polls it.
    pub(crate) scaler: Arc<str>,
    /// Which trigger of the object it is.
    pub(crate) index: usize,
    /// Its last value.
    pub(crate) value: Option<f64>,
    /// Whether it was active then.
    pub(crate) is_active: bool,
    /// How long its last poll took.
    pub(crate) took: Duration,
    /// How many polls have failed.
    pub(crate) errors: u64,
    /// The kind of its object.
    pub(crate) kind: OwnerKind,
}

/// What is known of one object with triggers.
#[derive(Clone, Debug)]
pub(crate) struct ObjectReport {
    /// Its namespace.
    pub(crate) namespace: Arc<str>,
    /// Its name.
    pub(crate) name: Arc<str>,
    /// Whether a person has paused it.
    pub(crate) is_paused: bool,
    /// How many polls of its triggers have failed.
    pub(crate) errors: u64,
    /// Its kind.
    pub(crate) kind: OwnerKind,
}

/// What is known of all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct TriggersReport {
    /// Metrics of triggers.
    pub(crate) triggers: Vec<TriggerReport>,
    /// Objects.
    pub(crate) objects: Vec<ObjectReport>,
}

type Ask = Box<dyn Fn() -> TriggersReport + Send + Sync>;

/// Where the report comes from, once there are triggers.
#[derive(Clone, Default)]
pub(super) struct TriggerMetrics(Arc<OnceLock<Ask>>);

/// Finds one number in what is known of a trigger.
type OfTrigger = fn(&TriggerReport) -> Option<Value<'static>>;
/// Finds one number in what is known of an object.
type OfObject = fn(&ObjectReport) -> Value<'static>;

const TRIGGERS: [(&str, &str, Kind, OfTrigger); 4] = [
    (
        "keda_scaler_metrics_value",
        "The last value of each metric of a trigger",
        Kind::Gauge,
        |trigger| trigger.value.map(Value::Float),
    ),
    (
        "keda_scaler_metrics_latency_seconds",
        "How long the last poll of each metric of a trigger took, in seconds",
        Kind::Gauge,
        |trigger| Some(Value::Float(trigger.took.as_secs_f64())),
    ),
    (
        "keda_scaler_active",
        "Whether each trigger was active when it was last polled: 1 or 0",
        Kind::Gauge,
        |trigger| Some(Value::Whole(i64::from(trigger.is_active))),
    ),
    (
        "keda_scaler_detail_errors",
        "Polls of each metric of a trigger that failed",
        Kind::Counter,
        |trigger| Some(count(trigger.errors)),
    ),
];

const OBJECTS: [(&str, &str, Kind, OfObject); 2] = [
    (
        "keda_scaled_object_paused",
        "Whether each ScaledObject is paused: 1 or 0",
        Kind::Gauge,
        |object| Value::Whole(i64::from(object.is_paused)),
    ),
    (
        "keda_scaled_object_errors",
        "Polls of the triggers of each ScaledObject that failed",
        Kind::Counter,
        |object| count(object.errors),
    ),
];

fn count(number: u64) -> Value<'static> {
    Value::Whole(i64::try_from(number).unwrap_or(i64::MAX))
}

impl TriggerMetrics {
    /// Nothing is shown before anybody is asked.
    pub(super) fn register(registry: &mut Registry) -> TriggerMetrics {
        let metrics = TriggerMetrics::default();
        for (name, help, kind, find) in TRIGGERS {
            let asked = metrics.clone();
            registry.reported(Description { name, help, kind }, move |visit| {
                for trigger in &asked.report().triggers {
                    if let Some(value) = find(trigger) {
                        visit(&labels_of(trigger, &trigger.index.to_string()), value);
                    }
                }
            });
        }
        for (name, help, kind, find) in OBJECTS {
            let asked = metrics.clone();
            registry.reported(Description { name, help, kind }, move |visit| {
                let objects = asked.report().objects;
                for object in objects.iter().filter(|it| it.kind == OwnerKind::ScaledObject) {
                    let labels =
                        [("namespace", &*object.namespace), ("scaledObject", &*object.name)];
                    visit(&labels, find(object));
                }
            });
        }
        metrics.register_jobs(registry);
        metrics.register_counts(registry);
        metrics
    }

    fn register_jobs(&self, registry: &mut Registry) {
        let asked = self.clone();
        let (name, kind) = ("keda_scaled_job_errors", Kind::Counter);
        let help = "Polls of the triggers of each ScaledJob that failed";
        registry.reported(Description { name, help, kind }, move |visit| {
            let objects = asked.report().objects;
            for job in objects.iter().filter(|it| it.kind == OwnerKind::ScaledJob) {
                let labels = [("namespace", &*job.namespace), ("scaledJob", &*job.name)];
                visit(&labels, count(job.errors));
            }
        });
    }

    fn register_counts(&self, registry: &mut Registry) {
        let asked = self.clone();
        let (name, kind) = ("keda_resource_registered_total", Kind::Gauge);
        let help = "ScaledObjects, ScaledJobs and PodAutoscalers with triggers of each namespace";
        registry.reported(Description { name, help, kind }, move |visit| {
            let mut counts: BTreeMap<(Arc<str>, OwnerKind), i64> = BTreeMap::new();
            for object in asked.report().objects {
                *counts.entry((object.namespace, object.kind)).or_default() += 1;
            }
            for ((namespace, kind), count) in counts {
                let labels = [("type", kind.counted()), ("namespace", &*namespace)];
                visit(&labels, Value::Whole(count));
            }
        });
    }

    fn report(&self) -> TriggersReport {
        self.0.get().map(|ask| ask()).unwrap_or_default()
    }
}

fn labels_of<'a>(trigger: &'a TriggerReport, index: &'a str) -> [Label<'a>; 6] {
    [
        ("namespace", &*trigger.namespace),
        ("metric", &*trigger.metric),
        ("scaledObject", &*trigger.object),
        ("scaler", &*trigger.scaler),
        ("triggerIndex", index),
        ("type", trigger.kind.of_trigger()),
    ]
}

impl Metrics {
    /// Shows what is known of triggers; asked for when metrics are read.
    pub(crate) fn show_triggers(&self, ask: impl Fn() -> TriggersReport + Send + Sync + 'static) {
        // Whoever came first stays: there is one controller in a process.
        let _ = self.0.triggers.0.set(Box::new(ask));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_have_the_names_and_labels_of_keda() {
        let metrics = Metrics::new();
        assert!(!metrics.text().contains("keda_"), "nothing without triggers");
        let names: [Arc<str>; 2] = ["shop".into(), "web".into()];
        metrics.show_triggers(move || {
            let [namespace, name] = names.clone();
            let trigger = TriggerReport {
                namespace: namespace.clone(),
                object: name.clone(),
                metric: "s0-prometheus".into(),
                scaler: "prometheusScaler".into(),
                index: 0,
                value: Some(2.5),
                is_active: true,
                took: Duration::from_millis(250),
                errors: 3,
                kind: OwnerKind::ScaledObject,
            };
            let of_job = TriggerReport { kind: OwnerKind::ScaledJob, ..trigger.clone() };
            let of_own = TriggerReport { kind: OwnerKind::PodAutoscaler, ..trigger.clone() };
            let kind = OwnerKind::ScaledObject;
            let object = ObjectReport { namespace, name, is_paused: false, errors: 3, kind };
            let job = ObjectReport { kind: OwnerKind::ScaledJob, errors: 2, ..object.clone() };
            let own = ObjectReport { kind: OwnerKind::PodAutoscaler, errors: 7, ..object.clone() };
            let triggers = vec![trigger, of_job, of_own];
            TriggersReport { triggers, objects: vec![object, job, own] }
        });
        let text = metrics.text();
        let labels = "namespace=\"shop\",metric=\"s0-prometheus\",scaledObject=\"web\",\
            scaler=\"prometheusScaler\",triggerIndex=\"0\",type=\"scaledobject\"";
        for line in [
            format!("keda_scaler_metrics_value{{{labels}}} 2.5"),
            format!("keda_scaler_metrics_latency_seconds{{{labels}}} 0.25"),
            format!("keda_scaler_active{{{labels}}} 1"),
            format!("keda_scaler_detail_errors_total{{{labels}}} 3"),
            "keda_scaled_object_paused{namespace=\"shop\",scaledObject=\"web\"} 0".to_owned(),
            "keda_scaled_object_errors_total{namespace=\"shop\",scaledObject=\"web\"} 3".to_owned(),
            "keda_resource_registered_total{type=\"scaled_object\",namespace=\"shop\"} 1"
                .to_owned(),
            "keda_resource_registered_total{type=\"scaled_job\",namespace=\"shop\"} 1".to_owned(),
            "keda_scaled_job_errors_total{namespace=\"shop\",scaledJob=\"web\"} 2".to_owned(),
            format!("keda_scaler_active{{{}}} 1", labels.replace("scaledobject", "scaledjob")),
            format!("keda_scaler_active{{{}}} 1", labels.replace("scaledobject", "podautoscaler")),
            "keda_resource_registered_total{type=\"pod_autoscaler\",namespace=\"shop\"} 1"
                .to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
    }
}
