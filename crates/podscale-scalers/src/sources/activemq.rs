//! `activemq`: how many messages a queue has, by the broker's management over HTTP (Jolokia).

use super::Draft;
use crate::address::Address;
use crate::context::Context;
use crate::http::auth::HttpAuth;
use crate::http::connection::{self, HttpServer};
use crate::http::refusal;
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::trigger::{TriggerError, TriggerValue};
use futures::future::BoxFuture;
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use std::time::Duration;
use tokio::time::Instant;

const ANYWHERE: &[Place] = &[Place::Metadata, Place::Auth, Place::Env];
const AUTH_FIRST: &[Place] = &[Place::Auth, Place::Env, Place::Metadata];

/// Which queue, and where.
#[derive(Clone, Debug)]
struct Queue {
    address: Address,
    auth: HttpAuth,
    origin: String,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let endpoint = fields.field(&["managementEndpoint"], ANYWHERE).text();
    let destination = fields.field(&["destinationName"], METADATA).text();
    let broker = fields.field(&["brokerName"], METADATA).text();
    let user = fields.field(&["username"], AUTH_FIRST).required().text();
    let password = fields.field(&["password"], AUTH_FIRST).required().secret().unwrap_or_default();
    let origin = fields.field(&["corsHeader"], METADATA).text();
    let template = fields.field(&["restAPITemplate"], METADATA).text();
    let target = fields.field(&["targetQueueSize"], METADATA).integer_or(10);
    let activation = fields.field(&["activationTargetQueueSize"], METADATA).integer_or(0);
    let place = if template.is_empty() {
        usual(&endpoint, &broker, &destination)
    } else {
        templated(&template, &endpoint, &broker, &destination)
    };
    let (address, destination) = place.unwrap_or_else(|problem| {
        fields.refuse(
            problem,
            "set managementEndpoint, brokerName and destinationName, or restAPITemplate with all of them",
        );
        (Address::default(), String::new())
    });
    let auth = HttpAuth::basic(&user, password);
    let origin = if origin.is_empty() { format!("http://{}", address.authority) } else { origin };
    Draft {
        name: format!("activemq-{destination}"),
        target: target as f64,
        target_field: Some("targetQueueSize"),
        activation: activation as f64,
        server: Some(connection::server_key("activemq", &address, &auth)),
        settings: Box::new(Queue { address, auth, origin }),
    }
}

/// The usual address of a queue's size.
fn usual(endpoint: &str, broker: &str, queue: &str) -> Result<(Address, String), String> {
    for (value, problem) in [
        (endpoint, "no management endpoint given"),
        (queue, "no destination name given"),
        (broker, "no broker name given"),
    ] {
        if value.is_empty() {
            return Err(problem.to_owned());
        }
    }
    let text = format!(
        "http://{endpoint}/api/jolokia/read/org.apache.activemq:type=Broker,brokerName={broker},\
         destinationType=Queue,destinationName={queue}/QueueSize"
    );
    let address = Address::parse(&text)
        .map_err(|problem| format!("the management endpoint is not host:port: {problem}"))?;
    Ok((address, queue.to_owned()))
}

/// The address that a template gives: whole as it stands, or with the fields in the place of their names.
fn templated(
    template: &str,
    endpoint: &str,
    broker: &str,
    queue: &str,
) -> Result<(Address, String), String> {
    let mut text = template.to_owned();
    for (name, value) in
        [("ManagementEndpoint", endpoint), ("BrokerName", broker), ("DestinationName", queue)]
    {
        text = text.replace(&format!("{{{{.{name}}}}}"), value);
    }
    let wrong = |problem: &str| format!("unable to parse ActiveMQ restAPITemplate: {problem}");
    let address = Address::parse(&text).map_err(wrong)?;
    if !address.is_http() {
        return Err(wrong("it does not begin with http:// or https://"));
    }
    let object = address.path.split_once(':').map(|(_, rest)| rest.split('/').next());
    let object = object.flatten().ok_or_else(|| wrong("it names no object of the broker"))?;
    let part = |name: &str| {
        let parts = object.split(',').filter_map(|part| part.split_once('='));
        parts.into_iter().find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
    };
    let queue = part("destinationName").filter(|name| !name.is_empty());
    let queue = queue.ok_or_else(|| "no destinationName is given".to_owned())?;
    if part("brokerName").is_none_or(|name| name.is_empty()) {
        return Err(format!("no brokerName given: {template}"));
    }
    Ok((address, queue))
}

impl Settings for Queue {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let key = connection::server_key("activemq", &self.address, &self.auth);
        let server = connection::share(context, &key, &self.address, &self.auth)?;
        let origin = HeaderValue::from_str(&self.origin).map_err(|_| {
            TriggerError::Settings("corsHeader has characters that no header can have".into())
        })?;
        let uri = self.address.uri().into();
        Ok(Box::new(ActiveMq { about, server, uri, origin, timeout: context.http_timeout }))
    }
}

/// Asks one broker.
struct ActiveMq {
    about: About,
    server: HttpServer,
    uri: Box<str>,
    origin: HeaderValue,
    timeout: Duration,
}

/// What Jolokia answers.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(default)]
    value: Option<f64>,
    status: u16,
    #[serde(default)]
    error: String,
}

impl Scaler for ActiveMq {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let deadline = deadline.min(Instant::now() + self.timeout);
            let answer = self.server.ask(&self.uri, deadline, || self.size()).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

impl ActiveMq {
    async fn size(&self) -> Result<Vec<f64>, TriggerError> {
        let name = self.server.name();
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, self.origin.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (status, body) = self.server.connection.get(name, &self.uri, &headers).await?;
        if !status.is_success() {
            return Err(refusal(name, status, &body));
        }
        size(status.as_u16(), &body).map(|size| vec![size])
    }
}

/// The size of a queue in an answer; a queue that is not there is an error in an answer that succeeds.
fn size(status: u16, body: &[u8]) -> Result<f64, TriggerError> {
    let wrong = |problem: String| {
        TriggerError::answer(format!("error inspecting ActiveMQ queue size: {problem}"))
    };
    let answer: Answer = serde_json::from_slice(body)
        .map_err(|error| wrong(format!("the answer is not one of Jolokia: {error}")))?;
    match answer {
        Answer { status: 200, value: Some(value), .. } => Ok(value),
        Answer { status: 200, value: None, .. } => Err(wrong("there is no number".to_owned())),
        Answer { status: inner, error, .. } => {
            let about = if error.is_empty() { String::new() } else { format!(": {error}") };
            Err(wrong(format!(
                "ActiveMQ management endpoint response error code : {status} {inner}{about}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::outcome;

    #[test]
    fn fields_are_checked_in_the_words_of_keda() {
        const CONTEXT: &str = "error parsing ActiveMQ metadata: error parsing ActiveMQ metadata: ";
        const AUTH: &str = "auth.username=u;auth.password=p";
        for (text, expected) in [
            (
                format!("{AUTH};managementEndpoint=h:8161;brokerName=b;destinationName=q.1"),
                "s0-activemq-q-1 10 0",
            ),
            (
                format!(
                    "{AUTH};targetQueueSize=5;activationTargetQueueSize=2;restAPITemplate=http://h:8161/api/\
                     jolokia/read/org.apache.activemq:type=Broker,brokerName=b,destinationType=Queue,\
                     destinationName=q/QueueSize"
                ),
                "s0-activemq-q 5 2",
            ),
            (format!("{AUTH};brokerName=b;destinationName=q"), "no management endpoint given"),
            (format!("{AUTH};managementEndpoint=h;brokerName=b"), "no destination name given"),
            (format!("{AUTH};managementEndpoint=h;destinationName=q"), "no broker name given"),
            (
                "managementEndpoint=h;brokerName=b;destinationName=q".to_owned(),
                "missing required parameter \"username\" in [authParams resolvedEnv triggerMetadata]\n\
                 missing required parameter \"password\" in [authParams resolvedEnv triggerMetadata]",
            ),
            (
                format!("{AUTH};restAPITemplate=h:8161"),
                "unable to parse ActiveMQ restAPITemplate: it has no scheme such as http://",
            ),
            (
                format!(
                    "{AUTH};restAPITemplate=http://h/x:type=Broker,destinationName=q/QueueSize"
                ),
                "no brokerName given: http://h/x:type=Broker,destinationName=q/QueueSize",
            ),
        ] {
            let found = outcome("activemq", &text);
            assert_eq!(found.strip_prefix(CONTEXT).unwrap_or(&found), expected, "{text}");
        }
    }

    #[test]
    fn answers_of_jolokia_have_a_status_of_their_own() {
        let context = "error inspecting ActiveMQ queue size: ";
        for (body, expected) in [
            (r#"{"value":3,"status":200}"#, "3"),
            (
                r#"{"status":404,"error":"javax.management.InstanceNotFoundException : q"}"#,
                "ActiveMQ management endpoint response error code : 200 404: \
                 javax.management.InstanceNotFoundException : q",
            ),
            (r#"{"status":200}"#, "there is no number"),
        ] {
            let found = match size(200, body.as_bytes()) {
                Ok(size) => size.to_string(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found.strip_prefix(context).unwrap_or(&found), expected, "{body}");
        }
        assert!(size(200, b"<html>").is_err());
    }
}
