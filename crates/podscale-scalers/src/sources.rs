//! The registry of event sources: one file each. A new one is a file, a feature, and an entry in [`SOURCES`].

#[cfg(feature = "activemq")]
mod activemq;
#[cfg(feature = "aws-sqs-queue")]
mod aws_sqs_queue;
#[cfg(feature = "cron")]
mod cron;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "external")]
mod external;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "kubernetes-workload")]
mod kubernetes_workload;
#[cfg(feature = "metrics-api")]
mod metrics_api;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "nats-jetstream")]
mod nats_jetstream;
#[cfg(feature = "postgresql")]
mod postgresql;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis-streams")]
mod redis_streams;
#[cfg(any(feature = "cpu", feature = "memory"))]
mod resource;
#[cfg(feature = "temporal")]
mod temporal;

use crate::context::Context;
use crate::identity::Identity;
use crate::metadata::{Fields, MetadataErrors, Problem, metric_name};
use crate::scaler::{About, Parsed, Scaler, Settings, TargetField};
use crate::trigger::{Metric, MetricType, ServerKey, TriggerError, TriggerSpec};

/// The types that there are, whether this build has them or not.
pub const KINDS: [&str; 23] = [
    "activemq",
    "aws-sqs-queue",
    "cpu",
    "cron",
    "etcd",
    "external",
    "external-push",
    "kafka",
    "kubernetes-workload",
    "memory",
    "metrics-api",
    "mysql",
    "nats-jetstream",
    "postgresql",
    "prometheus",
    "rabbitmq",
    "redis",
    "redis-cluster",
    "redis-cluster-streams",
    "redis-sentinel",
    "redis-sentinel-streams",
    "redis-streams",
    "temporal",
];

/// The types that know what an identity in a cloud is, and in which.
const WITH_IDENTITY: [(&str, &[&str]); 5] = [
    ("aws-sqs-queue", &["aws"]),
    ("kafka", &["aws"]),
    ("postgresql", &["azure-workload"]),
    ("prometheus", &["aws", "azure-workload", "gcp"]),
    ("rabbitmq", &["azure-workload"]),
];

/// A source, and what KEDA says before its errors: where fields by themselves are wrong, and together.
struct Source {
    kinds: &'static [&'static str],
    read: fn(&mut Fields<'_>) -> Draft,
    context: &'static str,
    late_context: &'static str,
}

/// What a source makes of the fields of a trigger; of no use if something is wrong with them.
pub(crate) struct Draft {
    /// The name of the metric, before it is numbered; empty if the source names it.
    pub(crate) name: String,
    /// How much one pod can bear, or all of them.
    pub(crate) target: f64,
    /// The field that says so; none if the metadata have no such field.
    pub(crate) target_field: Option<&'static str>,
    /// The trigger is active above this.
    pub(crate) activation: f64,
    /// Whom it asks.
    pub(crate) server: Option<ServerKey>,
    /// What it needs to know for polling.
    pub(crate) settings: Box<dyn Settings>,
}

/// The sources that this build has.
const SOURCES: &[Source] = &[
    #[cfg(feature = "activemq")]
    Source {
        kinds: &["activemq"],
        read: activemq::read,
        context: "error parsing ActiveMQ metadata: error parsing ActiveMQ metadata: ",
        late_context: "",
    },
    #[cfg(feature = "aws-sqs-queue")]
    Source {
        kinds: &["aws-sqs-queue"],
        read: aws_sqs_queue::read,
        context: "error parsing SQS queue metadata: error parsing SQS queue metadata: ",
        late_context: "",
    },
    #[cfg(feature = "cron")]
    Source {
        kinds: &["cron"],
        read: cron::read,
        context: "error parsing cron metadata: ",
        late_context: "",
    },
    // KEDA's own words, though they are those of others.
    #[cfg(feature = "etcd")]
    Source {
        kinds: &["etcd"],
        read: etcd::read,
        context: "error parsing kubernetes workload metadata: error parsing redis metadata: ",
        late_context: "",
    },
    #[cfg(feature = "external")]
    Source {
        kinds: &["external", "external-push"],
        read: external::read,
        context: "error parsing external scaler metadata: error parsing external scaler metadata: ",
        late_context: "",
    },
    #[cfg(feature = "kafka")]
    Source {
        kinds: &["kafka"],
        read: kafka::read,
        context: "error parsing kafka metadata: error parsing kafka metadata: ",
        late_context: "",
    },
    #[cfg(feature = "kubernetes-workload")]
    Source {
        kinds: &["kubernetes-workload"],
        read: kubernetes_workload::read,
        context: "error parsing kubernetes workload metadata: error parsing kubernetes workload metadata: ",
        late_context: "error parsing kubernetes workload metadata: ",
    },
    #[cfg(feature = "metrics-api")]
    Source {
        kinds: &["metrics-api"],
        read: metrics_api::read,
        context: "error parsing metric API metadata: error parsing metrics API metadata: ",
        late_context: "error parsing metric API metadata: ",
    },
    #[cfg(feature = "mysql")]
    Source {
        kinds: &["mysql"],
        read: mysql::read,
        context: "error parsing MySQL metadata: error parsing mysql metadata: ",
        late_context: "",
    },
    #[cfg(feature = "nats-jetstream")]
    Source {
        kinds: &["nats-jetstream"],
        read: nats_jetstream::read,
        context: "error parsing NATS JetStream metadata: error parsing nats metadata: ",
        late_context: "error parsing NATS JetStream metadata: ",
    },
    #[cfg(feature = "postgresql")]
    Source {
        kinds: &["postgresql"],
        read: postgresql::read,
        context: "error parsing postgreSQL metadata: error parsing postgresql metadata: ",
        late_context: "error parsing postgreSQL metadata: ",
    },
    #[cfg(feature = "prometheus")]
    Source {
        kinds: &["prometheus"],
        read: prometheus::read,
        context: "error parsing prometheus metadata: error parsing prometheus metadata: ",
        late_context: "",
    },
    #[cfg(feature = "rabbitmq")]
    Source {
        kinds: &["rabbitmq"],
        read: rabbitmq::read,
        context: "error parsing RabbitMQ metadata: error parsing RabbitMQ metadata: ",
        late_context: "",
    },
    #[cfg(feature = "redis")]
    Source {
        kinds: &["redis", "redis-cluster", "redis-sentinel"],
        read: redis::read,
        context: "error parsing redis metadata: error parsing redis metadata: ",
        late_context: "",
    },
    #[cfg(feature = "redis-streams")]
    Source {
        kinds: &["redis-streams", "redis-cluster-streams", "redis-sentinel-streams"],
        read: redis_streams::read,
        context: "error parsing redis streams metadata: error parsing redis stream metadata: ",
        late_context: "",
    },
    #[cfg(feature = "temporal")]
    Source {
        kinds: &["temporal"],
        read: temporal::read,
        context: "failed to parse Temporal metadata: error parsing temporal metadata: ",
        late_context: "",
    },
];

/// The source of a type, if this build has it.
fn find(kind: &str) -> Option<&'static Source> {
    SOURCES.iter().find(|source| source.kinds.contains(&kind))
}

/// Understands a trigger. Asks nobody.
///
/// # Errors
/// Something is missing or wrong; all of it is named.
pub fn parse(spec: &TriggerSpec) -> Result<Parsed, MetadataErrors> {
    read(spec, |_, _| true)
}

/// Understands a trigger by its own metadata, although what it refers to was not looked up: good for knowing what it
/// measures, and not for asking.
///
/// # Errors
/// Something that its metadata have is wrong, or its target is missing.
pub fn parse_alone(spec: &TriggerSpec) -> Result<Parsed, MetadataErrors> {
    read(spec, |problem, draft| {
        let is_own = |field| spec.metadata.contains_key(field) || draft.target_field == Some(field);
        problem.field.is_some_and(is_own) || draft.target <= 0.0 && !draft.name.is_empty()
    })
}

/// Understands a trigger with which only some problems count.
fn read(
    spec: &TriggerSpec,
    counts: impl Fn(&Problem, &Draft) -> bool,
) -> Result<Parsed, MetadataErrors> {
    #[cfg(any(feature = "cpu", feature = "memory"))]
    if let Some(resource) = resource::of(&spec.kind) {
        return resource::parse(spec, resource);
    }
    let Some(source) = find(&spec.kind) else { return Err(unknown(&spec.kind)) };
    let mut fields = Fields::new(spec);
    let metric_type = fields.external_type()?;
    if let Some(provider) = spec.identity.as_ref().map(Identity::provider)
        && !WITH_IDENTITY
            .iter()
            .any(|(kind, clouds)| *kind == spec.kind && clouds.contains(&provider))
    {
        fields.refuse(
            format!("podIdentity {provider} is not supported for triggers of type {}", spec.kind),
            "refer to an authentication without podIdentity",
        );
    }
    #[cfg(feature = "kafka")]
    if spec.kind == "kafka" {
        crate::aws::brokers::refuse_others(&mut fields);
    }
    let draft = (source.read)(&mut fields);
    let target_field =
        draft.target_field.map(|name| TargetField { name, is_whole: fields.is_whole(name) });
    let warnings = match fields.finish(source.context, source.late_context) {
        Ok(warnings) => warnings,
        Err(errors) => match errors.only(|problem| counts(problem, &draft)) {
            Some(errors) => return Err(errors),
            None => Vec::new(),
        },
    };
    let metric = if draft.name.is_empty() {
        Metric::Told { metric_type, index: spec.index }
    } else {
        let name = metric_name(spec.index, &draft.name);
        Metric::External { name, metric_type, target: draft.target }
    };
    let Draft { activation, server, settings, .. } = draft;
    Ok(Parsed { metric, target_field, activation, server, warnings, settings })
}

fn unknown(kind: &str) -> MetadataErrors {
    let hint = if KINDS.contains(&kind) {
        format!("this build has no triggers of type {kind}: build it with the feature of that name")
    } else {
        let near =
            KINDS.iter().map(|known| (strsim::damerau_levenshtein(kind, known), known)).min();
        match near {
            Some((distance, near)) if distance <= 2 => format!("did you mean {near:?}?"),
            _ => format!("known are {}", KINDS.join(", ")),
        }
    };
    MetadataErrors::one(format!("no scaler found for type: {kind}"), Some(hint))
}

/// Makes what polls a trigger. Connects to nothing yet: a server that is away is an error of the poll.
///
/// # Errors
/// What the trigger proves itself with cannot be used.
pub fn connect(parsed: Parsed, context: &Context) -> Result<Box<dyn Scaler>, TriggerError> {
    let metric = parsed.metric_name().into();
    let metric_type = match &parsed.metric {
        Metric::External { metric_type, .. } | Metric::Told { metric_type, .. } => *metric_type,
        Metric::Resource { .. } => MetricType::Utilization,
    };
    let about = About { metric, metric_type, activation: parsed.activation };
    parsed.settings.connect(about, context)
}
