//! From an object to what its triggers measure and what polls them.

use super::connected::{Connection, Connections, Polls};
use super::credentials::Authentication;
use super::hidden::Hidden;
use super::lookup::{LookupError, Reads};
use super::triggered::{Placed, Triggered};
use super::{AuthenticationName, OwnerKind, Triggers};
use podscale_api::keda::trigger::Trigger;
use podscale_api::translate::scaled_object::TriggerMetric;
use podscale_core::model::{EventSource, Milli, Source, Targets};
use podscale_scalers::{
    Identity, Metric, MetricType, Parsed, ResourceTarget, Scaler, Secret, TriggerError,
    TriggerSpec, connect, parse,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// How long a source may take to name its metrics.
const NAMES_DEADLINE: Duration = Duration::from_secs(10);
/// The parameter of an authentication that decrypts its key.
const KEY_PASSWORD: &str = "keyPassword";
/// What ends the name of a field of metadata whose value is the name of a variable.
const FROM_ENVIRONMENT: &str = "FromEnv";

/// What the triggers of an object are, now.
pub(crate) struct Resolution {
    /// What they measure, or all that is wrong with them.
    pub(crate) metrics: Result<Vec<TriggerMetric>, String>,
    /// What of their metadata has no effect, each with what may have been meant.
    pub(crate) warnings: Vec<String>,
    /// What polls them; none if anything is wrong.
    pub(crate) connections: Connections,
    /// Where sources say by themselves that there is something to do.
    pub(crate) pushes: Vec<watch::Receiver<u64>>,
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
            warnings: Vec::new(),
            connections: Connections::new(),
            pushes: Vec::new(),
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
#[derive(Default)]
struct Understood {
    metrics: Vec<TriggerMetric>,
    warnings: Vec<String>,
    connections: Connections,
    push: Option<watch::Receiver<u64>>,
    /// Whether its source was asked what it measures.
    is_told: bool,
}

/// What is wrong with one trigger.
enum Refused {
    Lookup(LookupError),
    Settings(String),
    /// Its source does not say what it measures.
    Untold(String),
}

impl From<LookupError> for Refused {
    fn from(error: LookupError) -> Refused {
        Refused::Lookup(error)
    }
}

impl Triggers {
    /// Looks up what the triggers of an object refer to and makes what polls them. Asks no event source but those that
    /// name their metrics themselves.
    pub(crate) async fn resolve(&self, object: &Triggered, reads: &Reads) -> Resolution {
        let authentications: BTreeSet<AuthenticationName> = object.authentications().collect();
        let names_some = object.triggers.iter().any(|placed| names_variables(&placed.trigger));
        let mut refers = !authentications.is_empty() || names_some;
        let (mut metrics, mut connections) = (Vec::new(), Connections::new());
        let (mut pushes, mut warnings) = (Vec::new(), Vec::new());
        let (mut problems, mut is_unsure) = (Vec::new(), false);
        for placed in &object.triggers {
            let title = &placed.title;
            match self.resolve_one(object, placed, reads).await {
                Ok(understood) => {
                    metrics.extend(understood.metrics);
                    let of_it = |text| format!("{title}: {text}");
                    warnings.extend(understood.warnings.into_iter().map(of_it));
                    connections.extend(understood.connections);
                    pushes.extend(understood.push);
                    refers |= understood.is_told;
                }
                // KEDA does not say which trigger it is.
                Err(Refused::Settings(problem)) => {
                    let is_ours = object.owner.kind == OwnerKind::PodAutoscaler;
                    problems.push(if is_ours { format!("{title}: {problem}") } else { problem });
                }
                Err(Refused::Untold(problem)) => {
                    (refers, is_unsure) = (true, true);
                    problems.push(format!("error getting metrics of {title}: {problem}"));
                }
                Err(Refused::Lookup(error)) => {
                    is_unsure |= matches!(error, LookupError::Unsure { .. });
                    problems.push(format!("error getting credentials of {title}: {error}"));
                }
            }
        }
        let metrics = if problems.is_empty() {
            Ok(metrics)
        } else {
            connections.clear();
            pushes.clear();
            Err(problems.join("\n"))
        };
        Resolution { metrics, warnings, connections, pushes, authentications, refers, is_unsure }
    }

    async fn resolve_one(
        &self,
        object: &Triggered,
        placed: &Placed,
        reads: &Reads,
    ) -> Result<Understood, Refused> {
        let (namespace, trigger) = (&object.owner.namespace, &placed.trigger);
        let Authentication { parameters: auth, identity } = match &trigger.authentication_ref {
            Some(reference) => {
                let name = AuthenticationName::of(reference, namespace);
                self.credentials(reads, namespace, &placed.target, &name).await?
            }
            None => Authentication::default(),
        };
        let env = self.variables(namespace, placed, reads).await?;
        let token = identity.as_ref().and_then(Identity::token);
        let hidden = Hidden::of(auth.values().chain(env.values()).chain(token));
        let spec = TriggerSpec {
            kind: trigger.r#type.clone(),
            metadata: trigger.metadata.clone(),
            auth,
            env,
            identity,
            metric_type: trigger.metric_type.clone(),
            namespace: namespace.to_string(),
            name: object.owner.name.to_string(),
            index: placed.index,
        };
        let mut parsed =
            parse(&spec).map_err(|errors| Refused::Settings(hidden.hide(errors.to_string())))?;
        let warnings = std::mem::take(&mut parsed.warnings);
        let has_encrypted_key = spec.auth.contains_key(KEY_PASSWORD);
        let place = Place { object, placed, hidden: &hidden, has_encrypted_key };
        Ok(Understood { warnings, ..self.understood(&place, parsed).await? })
    }

    async fn understood(&self, place: &Place<'_>, parsed: Parsed) -> Result<Understood, Refused> {
        let Place { object, placed: &Placed { index, ref trigger, .. }, hidden, .. } = *place;
        if let Metric::Resource { resource, container, target } = &parsed.metric {
            let metrics = vec![resource_metric(resource, container.as_deref(), target)];
            return Ok(Understood { metrics, ..Understood::default() });
        }
        let metric = parsed.metric.clone();
        let is_told = matches!(metric, Metric::Told { .. });
        let connected = self.scaler(parsed, place.has_encrypted_key).await;
        let scaler: Arc<dyn Scaler> =
            connected.map_err(|error| Refused::Settings(hidden.hide(error.to_string())))?.into();
        let owner = &object.owner;
        let mut named = if is_told {
            match told(&*scaler).await {
                Ok(named) => external(named),
                Err(problem) => {
                    // It measures what it has before, for all that is known; polls report what is wrong.
                    let before = self.connected.named(owner, index);
                    if before.is_empty() {
                        return Err(Refused::Untold(hidden.answer(problem)));
                    }
                    before
                }
            }
        } else {
            external(vec![metric])
        };
        if object.takes_one_value {
            named.truncate(1);
        }
        let push = scaler.notifications();
        let mut understood = Understood { push, is_told, ..Understood::default() };
        for (name, targets) in named {
            let mut key = owner.key(index);
            if is_told {
                key.extend(["/", &name]);
            }
            let (key, kind): (Arc<str>, Arc<str>) = (key.into(), trigger.r#type.as_str().into());
            let source = EventSource { kind, key: Arc::clone(&key) };
            let polls = Polls {
                object: owner.clone(),
                metric: Arc::clone(&name),
                targets,
                is_told,
                scaler: Arc::clone(&scaler),
                label: label(trigger),
                index,
                kept: kept(object.interval, trigger),
                hidden: hidden.clone(),
            };
            understood.connections.push((key, Connection::new(polls)));
            understood.metrics.push(TriggerMetric::External { name, source, targets });
        }
        Ok(understood)
    }

    /// What polls a trigger. Whoever encrypts a key chooses how long it takes to decrypt it, which must hold up neither
    /// what the threads of the runtime do besides, such as renewing the lease, nor take the memory of many at once.
    pub(super) async fn scaler(
        &self,
        parsed: Parsed,
        has_encrypted_key: bool,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        if !has_encrypted_key {
            return connect(parsed, &self.context);
        }
        // Nobody closes it.
        let permit = Arc::clone(&self.decrypting).acquire_owned().await.ok();
        let context = self.context.clone();
        let connecting = tokio::task::spawn_blocking(move || {
            let connected = connect(parsed, &context);
            drop(permit);
            connected
        });
        let failed = || TriggerError::Settings("its key cannot be decrypted".into());
        connecting.await.unwrap_or_else(|_| Err(failed()))
    }

    /// The variables that the metadata of a trigger names, as far as the container has them.
    async fn variables(
        &self,
        namespace: &str,
        Placed { trigger, target, .. }: &Placed,
        reads: &Reads,
    ) -> Result<BTreeMap<String, Secret>, LookupError> {
        let mut found = BTreeMap::new();
        if !names_variables(trigger) {
            return Ok(found);
        }
        let environment = self.environment(reads, namespace, target, "").await?;
        for name in variable_names(trigger) {
            if let Some(value) = self.variable(reads, &environment, name).await? {
                found.insert(name.to_owned(), value);
            }
        }
        Ok(found)
    }
}

/// A trigger of an object.
struct Place<'a> {
    object: &'a Triggered,
    placed: &'a Placed,
    hidden: &'a Hidden,
    has_encrypted_key: bool,
}

/// The names of values of a source, with what they are compared with.
fn external(metrics: Vec<Metric>) -> Vec<(Arc<str>, Targets)> {
    let named = metrics.into_iter().filter_map(|metric| match metric {
        Metric::External { name, metric_type, target } => {
            Some((name.into(), external_targets(metric_type, target)))
        }
        _ => None,
    });
    named.collect()
}

/// What a source says that it measures.
async fn told(scaler: &dyn Scaler) -> Result<Vec<Metric>, String> {
    let deadline = Instant::now() + NAMES_DEADLINE;
    match timeout_at(deadline, scaler.metrics(deadline)).await {
        Ok(Ok(Some(metrics))) if !metrics.is_empty() => Ok(metrics),
        Ok(Ok(_)) => Err("its server names none".to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", NAMES_DEADLINE.as_secs())),
    }
}

/// What metrics call a trigger: its name, or the one that KEDA has for its type.
fn label(trigger: &Trigger) -> Arc<str> {
    if !trigger.name.is_empty() {
        return trigger.name.as_str().into();
    }
    let known = match &*trigger.r#type {
        "activemq" => "activeMQScaler",
        "aws-sqs-queue" => "awsSqsQueueScaler",
        "external-push" => "externalPushScaler",
        "kubernetes-workload" => "kubernetesWorkloadScaler",
        "metrics-api" => "metricsAPIScaler",
        "mysql" => "mySQLScaler",
        "nats-jetstream" => "natsJetStreamScaler",
        "postgresql" => "postgreSQLScaler",
        "rabbitmq" => "rabbitMQScaler",
        "redis" | "redis-cluster" | "redis-sentinel" => "redisScaler",
        "redis-streams" | "redis-cluster-streams" | "redis-sentinel-streams" => {
            "redisStreamsScaler"
        }
        other => return format!("{other}Scaler").into(),
    };
    known.into()
}

fn variable_names(trigger: &Trigger) -> impl Iterator<Item = &str> {
    let named = trigger.metadata.iter().filter(|(field, _)| field.ends_with(FROM_ENVIRONMENT));
    named.map(|(_, variable)| variable.as_str()).filter(|variable| !variable.is_empty())
}

/// Whether the metadata of a trigger names variables.
pub(super) fn names_variables(trigger: &Trigger) -> bool {
    variable_names(trigger).next().is_some()
}

/// How long an answer is used again: as long as nothing is polled, if the trigger says so. Moments are not that
/// regular, so a little less.
fn kept(interval: Duration, trigger: &Trigger) -> Option<Duration> {
    trigger.use_cached_metrics.then(|| interval.saturating_sub(interval / 10))
}

/// What a trigger of cpu or memory measures.
pub(super) fn resource_metric(
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
pub(super) fn external_targets(metric_type: MetricType, target: f64) -> Targets {
    let target = Some(Milli((target * 1000.0) as i64));
    match metric_type {
        MetricType::Value => Targets { value: target, ..Targets::default() },
        MetricType::AverageValue | MetricType::Utilization => {
            Targets { average_value: target, ..Targets::default() }
        }
    }
}
