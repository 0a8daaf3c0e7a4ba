//! `aws-sqs-queue`: how many messages a queue of Amazon SQS has.

#[cfg(test)]
mod tests;

use super::Draft;
use crate::address::Address;
use crate::aws::asker::{Asker, KeysOf};
use crate::aws::signature::Signed;
use crate::aws::{Keys, domain};
use crate::context::{Clock, Context};
use crate::http::{Http, refusal};
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::server::Server;
use crate::tls::Tls;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, StatusCode};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const METADATA_ENV: &[Place] = &[Place::Metadata, Place::Env];
const METADATA_AUTH: &[Place] = &[Place::Metadata, Place::Auth];

const JSON: &str = "application/x-amz-json-1.0";

/// Which queue, where, and who asks.
#[derive(Clone, Debug)]
struct Question {
    endpoint: Address,
    region: String,
    asker: Asker,
    queue: Box<str>,
    in_flight: bool,
    delayed: bool,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let target = fields.field(&["queueLength"], METADATA).integer_or(5);
    let activation = fields.field(&["activationQueueLength"], METADATA).integer_or(0);
    let queue = fields.field(&["queueURL"], METADATA_ENV).required().text();
    let region = fields.field(&["awsRegion"], METADATA_AUTH).required().text();
    let endpoint = fields.field(&["awsEndpoint"], METADATA).text();
    let in_flight = fields.field(&["scaleOnInFlight"], METADATA).bool_or(true);
    let delayed = fields.field(&["scaleOnDelayed"], METADATA).bool_or(false);
    let name = queue_name(&queue).unwrap_or_else(|| {
        fields.refuse(
            "cannot get queueName from queueURL",
            "write https://sqs.eu-central-1.amazonaws.com/012345678912/orders",
        );
        String::new()
    });
    let endpoint = Address::parse(&endpoint_of(&endpoint, &region)).unwrap_or_else(|problem| {
        fields.refuse(
            format!("awsEndpoint cannot be used: {problem}"),
            "leave it out, or write an address such as http://elasticmq.shop.svc:9324",
        );
        Address::default()
    });
    let asker = Asker::read(fields);
    let queue = queue.into();
    let question = Question { endpoint, region, asker, queue, in_flight, delayed };
    Draft {
        name: format!("aws-sqs-{name}"),
        target: target as f64,
        target_field: Some("queueLength"),
        activation: activation as f64,
        server: Some(question.key()),
        settings: Box::new(question),
    }
}

/// The name at the end of a queue's address, or the name that stands in its place.
fn queue_name(queue: &str) -> Option<String> {
    match Address::parse(queue) {
        Err(_) => Some(queue.to_owned()),
        Ok(address) => match address.path.split('/').collect::<Vec<_>>()[..] {
            ["", _, name] if !name.is_empty() => Some(name.to_owned()),
            _ => None,
        },
    }
}

/// Where Amazon answers for a region, unless it is said otherwise.
fn endpoint_of(given: &str, region: &str) -> String {
    match given {
        "" => format!("https://sqs.{region}.{}", domain(region)),
        given => given.to_owned(),
    }
}

impl Question {
    fn key(&self) -> ServerKey {
        let mut key = self.asker.key().to_vec();
        key.push(&self.region);
        ServerKey::new("sqs", &self.endpoint.origin(), &key)
    }

    /// The attributes that count.
    fn attributes(&self) -> Vec<&'static str> {
        let mut names = vec!["ApproximateNumberOfMessages"];
        names.extend(self.in_flight.then_some("ApproximateNumberOfMessagesNotVisible"));
        names.extend(self.delayed.then_some("ApproximateNumberOfMessagesDelayed"));
        names
    }
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let key = self.key();
        let keys = self.asker.keys(context, &self.region)?;
        let server = context.connections.share(&key, || {
            let sqs = Sqs {
                http: Http::new(&self.endpoint, &Tls::default())?,
                endpoint: self.endpoint.clone(),
                region: self.region.clone(),
                keys,
            };
            Ok::<_, TriggerError>(Server::new(&key, context.freshness, sqs))
        })?;
        let names = self.attributes();
        let body = serde_json::json!({ "QueueUrl": &*self.queue, "AttributeNames": names });
        let (clock, timeout) = (context.clock.clone(), context.http_timeout);
        Ok(Box::new(Queue { about, server, body: body.to_string().into(), clock, timeout }))
    }
}

/// An endpoint that triggers share.
struct Sqs {
    http: Http,
    endpoint: Address,
    region: String,
    keys: KeysOf,
}

/// Asks about one queue.
struct Queue {
    about: About,
    server: Arc<Server<Sqs>>,
    /// What is asked.
    body: Box<str>,
    clock: Clock,
    timeout: Duration,
}

/// What SQS answers.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(rename = "Attributes", default)]
    attributes: HashMap<String, String>,
}

impl Scaler for Queue {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let deadline = deadline.min(Instant::now() + self.timeout);
            let answer = self.server.ask(&self.body, deadline, || self.length()).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

impl Queue {
    async fn length(&self) -> Result<Vec<f64>, TriggerError> {
        let source = &self.server.connection.keys;
        let keys = source.get().await?;
        match self.length_by(&keys).await {
            Ok(length) => Ok(length),
            Err((error, Fault::Keys)) => {
                source.forget(&keys).await;
                Err(error)
            }
            Err((error, Fault::Other)) => Err(error),
        }
    }

    async fn length_by(&self, keys: &Keys) -> Result<Vec<f64>, (TriggerError, Fault)> {
        let (name, sqs) = (self.server.name(), &self.server.connection);
        let other = |error| (error, Fault::Other);
        let path = if sqs.endpoint.path.is_empty() { "/" } else { &sqs.endpoint.path };
        let signed = Signed {
            method: "POST",
            service: "sqs",
            region: &sqs.region,
            host: &sqs.endpoint.authority,
            path,
            query: "",
            content_type: Some(JSON),
            target: Some("AmazonSQS.GetQueueAttributes"),
            body: self.body.as_bytes(),
            now: (self.clock)(),
        };
        let headers = signed.headers(keys).map_err(other)?;
        let uri = format!("{}{path}", sqs.endpoint.origin());
        let body = Bytes::copy_from_slice(self.body.as_bytes());
        let sent = sqs.http.send(name, Method::POST, &uri, headers, body).await;
        let (status, body) = sent.map_err(other)?;
        if !status.is_success() {
            return Err(refused(name, status, &body, keys));
        }
        total(&body).map(|total| vec![total]).map_err(other)
    }
}

/// Whether other keys would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Keys,
    Other,
}

/// Why SQS does not answer: a word such as `com.amazonaws.sqs#QueueDoesNotExist`.
#[derive(Default, Deserialize)]
struct Problem {
    #[serde(rename = "__type", default)]
    kind: String,
}

/// Amazon says of wrong credentials that the request is wrong, and in a word of the answer what is.
fn refused(
    server: &Arc<str>,
    status: StatusCode,
    body: &[u8],
    keys: &Keys,
) -> (TriggerError, Fault) {
    const OF_KEYS: [&str; 4] =
        ["ExpiredToken", "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClient"];
    const OF_CREDENTIALS: [&str; 4] =
        ["AccessDenied", "InvalidSignature", "MissingAuthenticationToken", "SignatureDoesNotMatch"];
    let Problem { kind } = serde_json::from_slice(body).unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let is_one_of = |known: &[&str]| known.iter().any(|known| kind.starts_with(known));
    let fault = if is_one_of(&OF_KEYS) { Fault::Keys } else { Fault::Other };
    if fault == Fault::Keys || is_one_of(&OF_CREDENTIALS) {
        let problem = format!("it answers {} {kind}", status.as_u16()).into();
        return (TriggerError::Unauthorized { server: server.clone(), problem }, fault);
    }
    // Some answers repeat what was signed; keys that were fetched are known to nobody who hides them.
    let text = String::from_utf8_lossy(body);
    let secrets = std::iter::once(&keys.secret).chain(&keys.session);
    let repeats = secrets.filter(|secret| !secret.is_empty()).any(|s| text.contains(s.expose()));
    (refusal(server, status, if repeats { &[] } else { body }), fault)
}

/// All attributes of an answer together: nothing else was asked for.
fn total(body: &[u8]) -> Result<f64, TriggerError> {
    let wrong = |problem: String| {
        TriggerError::answer(format!("error getting the length of the SQS queue: {problem}"))
    };
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| wrong(format!("the answer is not one of SQS: {error}")))?;
    if answer.attributes.is_empty() {
        return Err(wrong("there is no number".to_owned()));
    }
    let mut total = 0.0;
    for (name, value) in &answer.attributes {
        let number: i64 = value.parse().map_err(|_| wrong(format!("{name} is not a number")))?;
        total += number as f64;
    }
    Ok(total)
}
