//! `kafka`: how far a consumer group is behind.

mod client;
mod lag;
mod login;
mod refusal;
mod sasl;
mod scram;
#[cfg(test)]
mod tests;
mod wire;

use super::Draft;
use crate::context::Context;
use crate::metadata::{AUTH, Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use client::KafkaClient;
use futures::future::BoxFuture;
use lag::{Position, Rules, Seen};
use parking_lot::Mutex;
use sasl::Sasl;
use std::sync::Arc;
use tokio::time::Instant;

const METADATA_ENV: &[Place] = &[Place::Metadata, Place::Env];
const METADATA_AUTH: &[Place] = &[Place::Metadata, Place::Auth];

/// Brokers, and who asks them.
#[derive(Clone, Debug, Default)]
struct Cluster {
    /// Some of them, which know the others.
    brokers: Vec<String>,
    sasl: Option<Sasl>,
    /// None if TLS is not spoken.
    tls: Option<Tls>,
}

/// Whose offsets are asked for.
#[derive(Clone, Debug, Default)]
struct Question {
    group: Box<str>,
    /// Empty for all topics of the group.
    topic: Box<str>,
    /// First and last of those that count; all if there are none.
    partitions: Vec<(i32, i32)>,
    /// Whether it counts where partitions begin.
    from_earliest: bool,
}

impl Question {
    fn counts(&self, partition: i32) -> bool {
        let mut ranges = self.partitions.iter();
        self.partitions.is_empty() || ranges.any(|(from, to)| (*from..=*to).contains(&partition))
    }
}

/// What a trigger asks, of whom, and what it makes of it.
#[derive(Clone, Debug)]
struct Trigger {
    cluster: Cluster,
    question: Question,
    rules: Rules,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let brokers = fields.field(&["bootstrapServers"], METADATA_ENV).required().list();
    let group = fields.field(&["consumerGroup"], METADATA_ENV).required().text();
    let topic = fields.field(&["topic"], METADATA_ENV).text();
    let limit = fields.field(&["partitionLimitation"], METADATA).list();
    let activation = fields.field(&["activationLagThreshold"], METADATA).integer_or(0);
    let rules = rules(fields, topic.is_empty());
    if activation < 0 {
        fields.refuse(
            "\"activationLagThreshold\" must be a non-negative number",
            "leave it out for 0",
        );
    }
    let full = fields.field(&["fullMetadata"], METADATA).bool_or(true);
    if !full && topic.is_empty() {
        fields.refuse("topic must be specified when fullMetadata is false", "set topic");
    }
    // Requests are in versions that all brokers have.
    fields.allow(&["version"]);
    let mut partitions = partitions(fields, &limit);
    if topic.is_empty() && !partitions.is_empty() {
        fields.warn("partitionLimitation has no effect without topic; set topic, or remove it");
        partitions.clear();
    }
    let from_earliest = rules.from_earliest;
    let cluster = cluster(fields, brokers);
    let name = match topic.as_str() {
        "" => format!("kafka-{group}-topics"),
        topic => format!("kafka-{topic}"),
    };
    Draft {
        name,
        target: rules.threshold as f64,
        target_field: Some("lagThreshold"),
        activation: activation as f64,
        server: Some(cluster.key()),
        settings: Box::new(Trigger {
            cluster,
            question: Question {
                group: group.into(),
                topic: topic.into(),
                partitions,
                from_earliest,
            },
            rules,
        }),
    }
}

fn rules(fields: &mut Fields<'_>, all_topics: bool) -> Rules {
    let mut switch = |names| fields.field(names, METADATA).bool_or(false);
    let rules = Rules {
        zero_if_invalid: switch(&["scaleToZeroOnInvalidOffset"]),
        idle_consumers: switch(&["allowIdleConsumers"]),
        exclude_persistent: switch(&["excludePersistentLag"]),
        only_with_lag: switch(&["limitToPartitionsWithLag"]),
        even: switch(&["ensureEvenDistributionOfPartitions"]),
        ..Rules::default()
    };
    let threshold = fields.field(&["lagThreshold"], METADATA).integer_or(10);
    let policy =
        fields.field(&["offsetResetPolicy"], METADATA).one_of(&["latest", "earliest"], "latest");
    for (wrong, problem, hint) in [
        (threshold <= 0, "\"lagThreshold\" must be positive number", "leave it out for 10"),
        (
            rules.only_with_lag && rules.idle_consumers,
            "allowIdleConsumers and limitToPartitionsWithLag cannot be set simultaneously",
            "leave one of them out",
        ),
        (
            rules.only_with_lag && all_topics,
            "topic must be specified when using limitToPartitionsWithLag",
            "set topic",
        ),
        (
            rules.even && all_topics,
            "topic must be specified when using ensureEvenDistributionOfPartitions",
            "set topic",
        ),
        (
            rules.only_with_lag && rules.even,
            "limitToPartitionsWithLag and ensureEvenDistributionOfPartitions cannot be set simultaneously",
            "leave one of them out",
        ),
    ] {
        if wrong {
            fields.refuse(problem, hint);
        }
    }
    Rules { threshold, from_earliest: policy == "earliest", ..rules }
}

/// Partitions and ranges of them.
fn partitions(fields: &mut Fields<'_>, parts: &[String]) -> Vec<(i32, i32)> {
    let mut ranges = Vec::new();
    for part in parts {
        let (from, to) = part.split_once('-').unwrap_or((part.as_str(), part.as_str()));
        match (from.trim().parse::<i32>(), to.trim().parse::<i32>()) {
            (Ok(from), Ok(to)) if from <= to => ranges.push((from, to)),
            _ => fields.refuse(
                format!("parameter \"partitionLimitation\" value {part:?} is no partition"),
                "write 1,2,10-20",
            ),
        }
    }
    ranges
}

fn cluster(fields: &mut Fields<'_>, brokers: Vec<String>) -> Cluster {
    const MODES: [&str; 6] =
        ["none", "plaintext", "scram_sha256", "scram_sha512", "gssapi", "oauthbearer"];
    let mode = fields.field(&["sasl"], METADATA_AUTH).one_of(&MODES, "none");
    let enabled = fields.field(&["tls"], METADATA_AUTH).one_of(&["enable", "disable"], "disable");
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let has_certificate = fields.field(&["cert", "Cert"], AUTH).is_given();
    let has_key = fields.field(&["key"], AUTH).is_given();
    let tls = Tls::read(fields, insecure);
    if enabled == "enable" && has_certificate != has_key {
        let problem = match has_key {
            true => "cert must be provided with key",
            false => "key must be provided with cert",
        };
        fields.refuse(problem, "give cert and key");
    }
    let is_encrypted = enabled == "enable";
    let sasl = Sasl::read(fields, mode, &tls, is_encrypted);
    Cluster { brokers, sasl, tls: is_encrypted.then_some(tls) }
}

impl Cluster {
    fn key(&self) -> ServerKey {
        let mut key = vec![if self.tls.is_some() { "tls" } else { "" }];
        key.extend(self.sasl.iter().flat_map(Sasl::key));
        key.extend(self.tls.iter().flat_map(Tls::key));
        ServerKey::new("kafka", &format!("kafka {}", self.brokers.join(",")), &key)
    }
}

impl Settings for Trigger {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let Trigger { cluster, question, rules } = *self;
        let key = cluster.key();
        let login = cluster.sasl.clone().map(|sasl| sasl.connect(context)).transpose()?;
        let server = context.connections.share(&key, || {
            let client = KafkaClient::new(&cluster, login)?;
            Ok::<_, TriggerError>(Server::new(&key, context.freshness, client))
        })?;
        Ok(Box::new(Kafka { about, server, question, rules, seen: Mutex::default() }))
    }
}

/// Asks about one group.
struct Kafka {
    about: About,
    server: Arc<Server<KafkaClient>>,
    question: Question,
    rules: Rules,
    /// What it saw last, if that counts.
    seen: Mutex<Seen>,
}

impl Scaler for Kafka {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let Question { group, topic, partitions, from_earliest } = &self.question;
            let question = format!("{group} {topic} {partitions:?} {from_earliest}");
            let ask = || async {
                let (name, client) = (self.server.name(), &self.server.connection);
                client.positions(name, &self.question).await.map(|all| numbers(&all))
            };
            let answer = self.server.ask(&question, deadline, ask).await?;
            let positions = positions(&answer);
            let (value, lag) = self.rules.count(&positions, &mut self.seen.lock());
            let active = lag as f64 > self.about.activation;
            Ok(self.about.value_and_activity(value as f64, active))
        })
    }
}

/// Positions as numbers, as answers are shared: none of them is so large that it would be another.
fn numbers(positions: &[Position]) -> Vec<f64> {
    let numbers = positions.iter().flat_map(|position| {
        let Position { partition: (topic, id), committed, latest, first } = *position;
        [topic, id, committed, latest, first]
    });
    numbers.map(|number| number as f64).collect()
}

fn positions(numbers: &[f64]) -> Vec<Position> {
    let (chunks, _) = numbers.as_chunks::<5>();
    let position = |[topic, id, committed, latest, first]: &[f64; 5]| Position {
        partition: (*topic as i64, *id as i64),
        committed: *committed as i64,
        latest: *latest as i64,
        first: *first as i64,
    };
    chunks.iter().map(position).collect()
}
