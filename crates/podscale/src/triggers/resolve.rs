//! From an object to what its triggers measure and what polls them.

use super::connected::{Connection, Connections};
use super::credentials::Credentials;
use super::lookup::{LookupError, Reads};
use super::{AuthenticationName, ObjectName, Triggers};
use podscale_api::keda::trigger::Trigger;
use podscale_api::keda::{ScaledObject, scaled_object::ScaledObjectSpec};
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_core::model::{EventSource, Milli, Source, Targets};
use podscale_scalers::{
    Metric, MetricType, Parsed, ResourceTarget, Secret, TriggerSpec, connect, parse,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What ends the name of a field of metadata whose value is the name of a variable.
const FROM_ENVIRONMENT: &str = "FromEnv";

/// What the triggers of an object are, now.
pub(crate) struct Resolution {
    /// What they measure, or all that is wrong with them.
    pub(crate) metrics: Result<Vec<TriggerMetric>, String>,
    /// What polls them; none if anything is wrong.
    pub(crate) connections: Connections,
    /// The authentications that they refer to.
    pub(crate) authentications: BTreeSet<AuthenticationName>,
    /// Whether anything outside of the object has a part in this.
    pub(crate) refers: bool,
    /// Whether something could not be read that may be there in a moment.
    pub(crate) is_unsure: bool,
}

impl Resolution {
    /// Of an object that is not managed: nothing is looked up for it.
    pub(crate) fn unmanaged() -> Resolution {
        Resolution {
            metrics: Ok(Vec::new()),
            connections: Connections::new(),
            authentications: BTreeSet::new(),
            refers: false,
            is_unsure: false,
        }
    }

    /// Of an object of which nothing could be looked up in time.
    pub(crate) fn failed(problem: String) -> Resolution {
        let metrics = Err(problem);
        Resolution { metrics, refers: true, is_unsure: true, ..Resolution::unmanaged() }
    }
}

/// One trigger that is understood.
struct Understood {
    metric: TriggerMetric,
    connection: Option<(Arc<str>, Connection)>,
}

/// What is wrong with one trigger.
enum Refused {
    Lookup(LookupError),
    Settings(String),
}

impl From<LookupError> for Refused {
    fn from(error: LookupError) -> Refused {
        Refused::Lookup(error)
    }
}

impl Triggers {
    /// Looks up what the triggers of an object refer to and makes what polls them. Asks no event source.
    pub(crate) async fn resolve(&self, object: &ScaledObject, reads: &Reads) -> Resolution {
        let namespace = &object.metadata.namespace;
        let triggers = &object.spec.triggers;
        let references = triggers.iter().filter_map(|trigger| trigger.authentication_ref.as_ref());
        let authentications: BTreeSet<AuthenticationName> =
            references.map(|reference| AuthenticationName::of(reference, namespace)).collect();
        let refers = !authentications.is_empty() || triggers.iter().any(names_variables);
        let (mut metrics, mut connections) = (Vec::new(), Connections::new());
        let (mut problems, mut is_unsure) = (Vec::new(), false);
        for (index, trigger) in triggers.iter().enumerate() {
            match self.resolve_one(object, index, trigger, reads).await {
                Ok(Understood { metric, connection }) => {
                    metrics.push(metric);
                    connections.extend(connection);
                }
                Err(Refused::Settings(problem)) => problems.push(problem),
                Err(Refused::Lookup(error)) => {
                    is_unsure |= matches!(error, LookupError::Unsure { .. });
                    let kind = &trigger.r#type;
                    problems.push(format!(
                        "error getting credentials of trigger {index} ({kind}): {error}"
                    ));
                }
            }
        }
        let metrics = if problems.is_empty() {
            Ok(metrics)
        } else {
            connections.clear();
            Err(problems.join("\n"))
        };
        Resolution { metrics, connections, authentications, refers, is_unsure }
    }

    async fn resolve_one(
        &self,
        object: &ScaledObject,
        index: usize,
        trigger: &Trigger,
        reads: &Reads,
    ) -> Result<Understood, Refused> {
        let namespace = &object.metadata.namespace;
        let auth = match &trigger.authentication_ref {
            Some(reference) => {
                let name = AuthenticationName::of(reference, namespace);
                self.credentials(reads, object, &name).await?
            }
            None => Credentials::new(),
        };
        let spec = TriggerSpec {
            kind: trigger.r#type.clone(),
            metadata: trigger.metadata.clone(),
            auth,
            env: self.variables(object, trigger, reads).await?,
            metric_type: trigger.metric_type.clone(),
            namespace: namespace.clone(),
            name: object.metadata.name.clone(),
            index,
        };
        let parsed = parse(&spec).map_err(|errors| Refused::Settings(errors.to_string()))?;
        for warning in &parsed.warnings {
            let name = &object.metadata.name;
            tracing::warn!(autoscaler = %format!("{namespace}/{name}"), trigger = index, "{warning}");
        }
        self.understood(object, index, trigger, parsed)
    }

    fn understood(
        &self,
        object: &ScaledObject,
        index: usize,
        trigger: &Trigger,
        parsed: Parsed,
    ) -> Result<Understood, Refused> {
        let (name, metric_type, target) = match &parsed.metric {
            Metric::External { name, metric_type, target } => (name, *metric_type, *target),
            Metric::Resource { resource, container, target } => {
                let metric = resource_metric(resource, container.as_deref(), target);
                return Ok(Understood { metric, connection: None });
            }
        };
        let owner = ObjectName::of(object);
        let key: Arc<str> = format!("{}/{}/{index}", owner.namespace, owner.name).into();
        let source = EventSource { kind: trigger.r#type.as_str().into(), key: Arc::clone(&key) };
        let targets = external_targets(metric_type, target);
        let metric = TriggerMetric::External { name: name.as_str().into(), source, targets };
        let scaler =
            connect(parsed, &self.context).map_err(|error| Refused::Settings(error.to_string()))?;
        let connection = Connection::new(owner, scaler, kept(&object.spec, trigger));
        Ok(Understood { metric, connection: Some((key, connection)) })
    }

    /// The variables that the metadata of a trigger names, as far as the container has them.
    async fn variables(
        &self,
        object: &ScaledObject,
        trigger: &Trigger,
        reads: &Reads,
    ) -> Result<BTreeMap<String, Secret>, LookupError> {
        let mut found = BTreeMap::new();
        if !names_variables(trigger) {
            return Ok(found);
        }
        let (namespace, target) = (&object.metadata.namespace, &object.spec.scale_target_ref);
        let environment = self.environment(reads, namespace, target, "").await?;
        for name in variable_names(trigger) {
            if let Some(value) = self.variable(reads, &environment, name).await? {
                found.insert(name.to_owned(), value);
            }
        }
        Ok(found)
    }
}

fn variable_names(trigger: &Trigger) -> impl Iterator<Item = &str> {
    let named = trigger.metadata.iter().filter(|(field, _)| field.ends_with(FROM_ENVIRONMENT));
    named.map(|(_, variable)| variable.as_str()).filter(|variable| !variable.is_empty())
}

fn names_variables(trigger: &Trigger) -> bool {
    variable_names(trigger).next().is_some()
}

/// How long an answer is used again: as long as nothing is polled, if the trigger says so. Moments are not that
/// regular, so a little less.
fn kept(spec: &ScaledObjectSpec, trigger: &Trigger) -> Option<Duration> {
    let seconds = u64::try_from(spec.polling_interval_seconds()).unwrap_or(1);
    let interval = Duration::from_secs(seconds);
    trigger.use_cached_metrics.then(|| interval.saturating_sub(interval / 10))
}

fn resource_metric(
    resource: &str,
    container: Option<&str>,
    target: &ResourceTarget,
) -> TriggerMetric {
    let source = match container {
        Some(container) => {
            Source::ContainerResource { name: resource.into(), container: container.into() }
        }
        None => Source::Resource { name: resource.into() },
    };
    let targets = match target {
        ResourceTarget::Utilization(percent) => {
            Targets { average_utilization: Some(*percent), ..Targets::default() }
        }
        ResourceTarget::AverageValue(amount) => {
            Targets { average_value: Some(Milli(amount.milli_value())), ..Targets::default() }
        }
    };
    TriggerMetric::Resource { source, targets }
}

/// What a value is compared with. KEDA's targets have three decimals, and the conversion saturates.
fn external_targets(metric_type: MetricType, target: f64) -> Targets {
    let target = Some(Milli((target * 1000.0) as i64));
    match metric_type {
        MetricType::Value => Targets { value: target, ..Targets::default() },
        MetricType::AverageValue | MetricType::Utilization => {
            Targets { average_value: target, ..Targets::default() }
        }
    }
}
