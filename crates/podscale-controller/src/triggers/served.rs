//! What HPAs read of triggers, as external metrics: on request, by whichever replica is asked, and by the same rules as a
//! pass. Only replicas that lead decide, but all of them have the triggers connected.

use super::{ObjectName, Polled, Triggers};
use futures::future::join_all;
use parking_lot::Mutex;
use podscale_client::call::{self, About, segment};
use podscale_core::decide::external::{self, Target};
use podscale_core::history::Memory;
use podscale_core::model::{EventSource, Metric, Milli, Source, TargetRef, Trigger, TriggerOf};
use podscale_core::snapshot::Reading;
use podscale_core::{Autoscaler, Time};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// All objects whose triggers are served.
pub(super) type Served = Mutex<HashMap<ObjectName, Arc<ServedObject>>>;

/// An object whose triggers are served.
pub(super) struct ServedObject {
    model: Arc<Autoscaler>,
    /// How triggers fare that this replica is asked about.
    memory: Mutex<Memory>,
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServedValue {
    /// How much.
    pub(crate) value: Milli,
    /// When it was asked for.
    pub(crate) at: Time,
}

impl Triggers {
    /// Serves the triggers of an object from now on, as its model has them.
    pub(crate) fn serve(&self, name: &ObjectName, model: &Arc<Autoscaler>) {
        let mut served = self.served.lock();
        let known = served.get(name);
        if known.is_some_and(|known| known.model == *model) {
            return;
        }
        // A change of the spec does not make a source answer that did not.
        let memory = known.map(|known| known.memory.lock().clone()).unwrap_or_default();
        let object = ServedObject { model: Arc::clone(model), memory: Mutex::new(memory) };
        served.insert(name.clone(), Arc::new(object));
    }

    /// The names of all metrics that are served.
    pub(crate) fn served_names(&self) -> Vec<String> {
        let served = self.served.lock();
        let metrics = served.values().flat_map(|object| object.model.metrics.iter());
        metrics.filter_map(|metric| Some(trigger(metric)?.name.to_string())).collect()
    }

    /// The value of a metric of a namespace's object that is asked for by its name; nothing if no object has it.
    /// Names of metrics are compared without regard to case, as KEDA does.
    pub(crate) async fn served_value(
        &self,
        namespace: &str,
        metric: &str,
        is_asked: impl Fn(&str) -> bool,
    ) -> Option<Result<ServedValue, Arc<str>>> {
        let (object, place) = self.find_served(namespace, metric, is_asked)?;
        let found = object.model.metrics.get(place)?;
        let reading = self.read_trigger(trigger(found)?).await;
        let extensions = object.model.extensions.as_deref()?;
        let rules = extensions.rules(place);
        let target = if external::needs_target(rules) && has_failed(&reading) {
            self.size_of(namespace, &object.model.target).await
        } else {
            Target::default()
        };
        let value = external::value(found, rules, &reading, target, &mut object.memory.lock());
        let at = crate::time::now(&self.clock);
        Some(value.map(|value| ServedValue { value, at }))
    }

    fn find_served(
        &self,
        namespace: &str,
        metric: &str,
        is_asked: impl Fn(&str) -> bool,
    ) -> Option<(Arc<ServedObject>, usize)> {
        let served = self.served.lock();
        let here = served.iter().filter(|(name, _)| *name.namespace == *namespace);
        let mut asked = here.filter(|(name, _)| is_asked(&name.name)).filter_map(|(_, object)| {
            let is_it = |known: &Metric| {
                trigger(known).is_some_and(|trigger| trigger.name.eq_ignore_ascii_case(metric))
            };
            let place = object.model.metrics.iter().position(is_it)?;
            Some((Arc::clone(object), place))
        });
        asked.next()
    }

    async fn read_trigger(&self, trigger: &Trigger) -> Reading {
        match &trigger.of {
            TriggerOf::Source(source) => self.read_source(source).await,
            TriggerOf::Formula(composite) => {
                let inputs = composite.inputs.iter().map(|(_, source)| self.read_source(source));
                Reading::Inputs(join_all(inputs).await)
            }
        }
    }

    async fn read_source(&self, source: &EventSource) -> Reading {
        match self.poll(&source.key).await {
            Ok(Polled { value, active, taken }) => {
                Reading::Trigger { value, active, taken: Some(taken) }
            }
            Err(error) => Reading::Failed(error),
        }
    }

    /// The size of a target, as far as it can be found out.
    async fn size_of(&self, namespace: &str, target: &TargetRef) -> Target {
        let group = target.api_version.split_once('/').map_or("", |(group, _)| group);
        let Ok(resource) = self.mapper.of_group(group, &target.kind).await else {
            return Target::default();
        };
        let path = format!("{}/{}", resource.path(namespace), segment(&target.name));
        let about = About { resource: &resource.plural, name: &target.name };
        let found: Value = call::get(&self.client, &path, about).await.unwrap_or_default();
        let count = |path: &str| found.pointer(path).and_then(Value::as_i64);
        let replicas = count("/spec/replicas").unwrap_or(1);
        let ready = count("/status/readyReplicas").unwrap_or(0);
        Target {
            replicas: i32::try_from(replicas).unwrap_or(i32::MAX),
            ready: usize::try_from(ready).unwrap_or(0),
        }
    }
}

/// The trigger that a metric is of, if it is of one.
fn trigger(metric: &Metric) -> Option<&Trigger> {
    match &*metric.source {
        Source::Trigger(trigger) => Some(trigger),
        _ => None,
    }
}

/// Whether a source did not answer.
fn has_failed(reading: &Reading) -> bool {
    match reading {
        Reading::Inputs(inputs) => inputs.iter().any(has_failed),
        Reading::Trigger { .. } => false,
        _ => true,
    }
}
