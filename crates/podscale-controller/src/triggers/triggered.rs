//! Objects with triggers, as far as looking up what these refer to has to know them.

use super::{AuthenticationName, ObjectName, OwnerKind};
use podscale_api::keda::scaled_object::ScaleTarget;
use podscale_api::keda::trigger::Trigger;
use podscale_api::keda::{ScaledJob, ScaledObject};
use podscale_api::meta::ObjectMeta;
use podscale_api::pod_autoscaler::PodAutoscaler;
use podscale_api::pod_autoscaler::spec::{Metric, TriggerSource};
use podscale_api::time::GoDuration;
use podscale_api::{keda, pod_autoscaler};
use std::time::Duration;

/// How often a PodAutoscaler is decided whose spec does not say.
const SYNC_PERIOD: Duration = Duration::from_secs(15);

/// An object with triggers.
#[derive(Clone, Debug)]
pub struct Triggered {
    /// Which one.
    pub(crate) owner: ObjectName,
    /// Its triggers.
    pub(crate) triggers: Vec<Placed>,
    /// How often they are polled.
    pub(crate) interval: Duration,
    /// Whether each stands for one value, even if its source names several.
    pub(crate) takes_one_value: bool,
    /// Whether a formula makes one value of theirs, which alone has a target.
    pub(crate) has_formula: bool,
}

/// One trigger of an object.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    /// Its place in the list that the object has it in.
    pub(crate) index: usize,
    /// The path of it in the object.
    pub(crate) path: String,
    /// How messages call it.
    pub(crate) title: String,
    /// The trigger.
    pub(crate) trigger: Trigger,
    /// What it scales, with the container whose variables it names.
    pub(crate) target: ScaleTarget,
}

impl Triggered {
    /// The authentications that its triggers refer to.
    pub(crate) fn authentications(&self) -> impl Iterator<Item = AuthenticationName> {
        let references =
            self.triggers.iter().filter_map(|it| it.trigger.authentication_ref.as_ref());
        references.map(|reference| AuthenticationName::of(reference, &self.owner.namespace))
    }
}

impl ObjectName {
    /// The name of an object.
    pub(crate) fn new(metadata: &ObjectMeta, kind: OwnerKind) -> ObjectName {
        let (namespace, name) = (metadata.namespace.as_str(), metadata.name.as_str());
        ObjectName { namespace: namespace.into(), name: name.into(), kind }
    }
}

/// The triggers of one of KEDA's objects.
fn of_keda(triggers: &[Trigger], target: &ScaleTarget) -> Vec<Placed> {
    let placed = |(index, trigger): (usize, &Trigger)| Placed {
        index,
        path: format!("spec.triggers[{index}]"),
        title: format!("trigger {index} ({})", trigger.r#type),
        trigger: trigger.clone(),
        target: target.clone(),
    };
    triggers.iter().enumerate().map(placed).collect()
}

impl From<&ScaledObject> for Triggered {
    fn from(object: &ScaledObject) -> Triggered {
        let spec = &object.spec;
        let seconds = u64::try_from(spec.polling_interval_seconds()).unwrap_or(1);
        Triggered {
            owner: ObjectName::new(&object.metadata, OwnerKind::ScaledObject),
            triggers: of_keda(&spec.triggers, &spec.scale_target_ref),
            interval: Duration::from_secs(seconds),
            // A formula knows a trigger by its name, and takes one value for it.
            takes_one_value: spec.modifiers().is_some(),
            has_formula: spec.modifiers().is_some(),
        }
    }
}

/// The environment that its triggers name is that of the Jobs' containers, and answers are never used again.
impl From<&ScaledJob> for Triggered {
    fn from(job: &ScaledJob) -> Triggered {
        let target = ScaleTarget {
            name: job.metadata.name.clone(),
            api_version: keda::API_VERSION.to_owned(),
            kind: keda::scaled_job::KIND.to_owned(),
            env_source_container_name: job.spec.env_source_container_name.clone(),
        };
        let mut triggers = of_keda(&job.spec.triggers, &target);
        for placed in &mut triggers {
            placed.trigger.use_cached_metrics = false;
        }
        let seconds = u64::try_from(job.spec.polling_interval_seconds()).unwrap_or(1);
        Triggered {
            owner: ObjectName::new(&job.metadata, OwnerKind::ScaledJob),
            triggers,
            interval: Duration::from_secs(seconds),
            takes_one_value: false,
            has_formula: false,
        }
    }
}

/// Each metric is one value; of a source that names several it is the first.
impl From<&PodAutoscaler> for Triggered {
    fn from(pa: &PodAutoscaler) -> Triggered {
        let pod_autoscaler::PodAutoscalerSpec { scale_target_ref: target, sync_period, .. } =
            &pa.spec;
        let placed = |(index, metric, source): (usize, &Metric, &TriggerSource)| {
            let path = format!("spec.metrics[{index}].trigger");
            Placed {
                index,
                title: format!("{path} ({})", source.r#type),
                path,
                trigger: source.as_trigger(metric.name.as_deref()),
                target: ScaleTarget {
                    name: target.name.clone(),
                    api_version: target.api_version.clone(),
                    kind: target.kind.clone(),
                    env_source_container_name: source.env_source_container_name.clone(),
                },
            }
        };
        let period = sync_period.as_deref().and_then(|text| GoDuration::parse(text).ok());
        let period = period.and_then(|GoDuration(nanos)| u64::try_from(nanos).ok());
        Triggered {
            owner: ObjectName::new(&pa.metadata, OwnerKind::PodAutoscaler),
            triggers: pa.spec.triggers().map(placed).collect(),
            interval: period.map_or(SYNC_PERIOD, Duration::from_nanos),
            takes_one_value: true,
            has_formula: false,
        }
    }
}
