//! `metrics-api`: a number in what an HTTP API answers, of one address or of all endpoints of a Service.

mod path;
#[cfg(test)]
mod tests;
mod value;

use super::Draft;
use crate::address::{Address, encode};
use crate::context::{Cluster, Context, Endpoint};
use crate::http::auth::HttpAuth;
use crate::http::connection::{self, HttpServer};
use crate::http::refusal;
use crate::metadata::{Fields, METADATA};
use crate::scaler::{About, Scaler, Settings};
use crate::trigger::{TriggerError, TriggerValue};
use futures::StreamExt;
use futures::future::BoxFuture;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use value::Location;

/// How many endpoints are asked at once.
const CONCURRENT_ENDPOINTS: usize = 5;
/// How many endpoints of a Service are asked at most.
const MOST_ENDPOINTS: usize = 1000;

/// What is asked, and of whom.
#[derive(Clone, Debug)]
struct Question {
    address: Address,
    auth: HttpAuth,
    location: Location,
    /// The location as it was written.
    text: Box<str>,
    format: &'static str,
    timeout: Option<Duration>,
    /// How the numbers of all endpoints become one.
    aggregation: Option<Aggregation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aggregation {
    Average,
    Sum,
    Max,
    Min,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let target = fields.field(&["targetValue"], METADATA).number_or(0.0);
    let activation = fields.field(&["activationTargetValue"], METADATA).number_or(0.0);
    let url = fields.field(&["url"], METADATA).required().text();
    let format =
        fields.field(&["format"], METADATA).one_of(&["prometheus", "json", "xml", "yaml"], "json");
    let text = fields.field(&["valueLocation"], METADATA).required().text();
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let each = fields.field(&["aggregateFromKubeServiceEndpoints"], METADATA).bool_or(false);
    let aggregation = fields
        .field(&["aggregationType"], METADATA)
        .one_of(&["average", "sum", "max", "min"], "average");
    let timeout = fields.field(&["timeout"], METADATA).duration();
    let mut auth = HttpAuth::read(fields, &["apiKey", "basic", "tls", "bearer"], insecure);
    let address = server(fields, &url);
    if !address.user.is_empty() {
        auth = auth.with_basic(&address.user, address.password.clone());
    }
    let location = Location::parse(format, &text).unwrap_or_else(|problem| {
        fields.refuse(
            format!("parameter \"valueLocation\" cannot be used: {problem}"),
            "docs/triggers/metrics-api.md has what it can be",
        );
        Location::Yaml
    });
    if target == 0.0 {
        fields.refuse_late("no targetValue given in metadata", "set metadata.targetValue");
    }
    let aggregation = each.then_some(match aggregation {
        "sum" => Aggregation::Sum,
        "max" => Aggregation::Max,
        "min" => Aggregation::Min,
        _ => Aggregation::Average,
    });
    let server = Some(connection::server_key("metrics-api", &address, &auth));
    let name = format!("metric-api-{text}");
    let text = text.into();
    let settings = Question { address, auth, location, text, format, timeout, aggregation };
    let (target_field, settings) = (Some("targetValue"), Box::new(settings));
    Draft { name, target, target_field, activation, server, settings }
}

/// The address of the API.
fn server(fields: &mut Fields<'_>, text: &str) -> Address {
    if text.is_empty() {
        return Address::default();
    }
    let problem = match Address::parse(text) {
        Ok(address) if address.is_http() => return address,
        Ok(_) => "it does not begin with http:// or https://",
        Err(problem) => problem,
    };
    fields.refuse(
        format!("parameter \"url\" is not an address: {problem}"),
        "write http://service.namespace:8080/path",
    );
    Address::default()
}

impl Settings for Question {
    fn connect(
        mut self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let key = connection::server_key("metrics-api", &self.address, &self.auth);
        let server = connection::share(context, &key, &self.address, &self.auth)?;
        if let Some((name, key)) = self.auth.query_parameter() {
            let parameter = format!("{}={}", encode(name), encode(key.expose()));
            let query = self.address.query.take();
            self.address.query = Some(match query {
                Some(query) if !query.is_empty() => format!("{query}&{parameter}"),
                _ => parameter,
            });
        }
        // The same address may give several numbers, each with its own question.
        let Question { format, text, aggregation, .. } = &*self;
        let question = format!("{} {format} {text:?} {aggregation:?}", self.address.uri()).into();
        let Question { address, location, text, timeout, aggregation, .. } = *self;
        let timeout = timeout.filter(|t| !t.is_zero()).unwrap_or(context.http_timeout);
        let cluster = context.cluster.clone();
        let api = MetricsApi {
            about,
            server,
            address,
            location,
            text,
            question,
            timeout,
            aggregation,
            cluster,
        };
        Ok(Box::new(api))
    }
}

/// Asks one API.
struct MetricsApi {
    about: About,
    server: HttpServer,
    address: Address,
    location: Location,
    text: Box<str>,
    question: Box<str>,
    timeout: Duration,
    aggregation: Option<Aggregation>,
    cluster: Arc<dyn Cluster>,
}

impl Scaler for MetricsApi {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            // Each endpoint has the whole of the timeout.
            let deadline = match self.aggregation {
                Some(_) => deadline,
                None => deadline.min(Instant::now() + self.timeout),
            };
            let ask = || async move {
                let value = match self.aggregation {
                    Some(aggregation) => self.all(aggregation).await,
                    None => self.one(&self.address.uri()).await,
                };
                value.map(|value| vec![value])
            };
            let answer = self.server.ask(&self.question, deadline, ask).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

impl MetricsApi {
    /// The number of one address.
    async fn one(&self, uri: &str) -> Result<f64, TriggerError> {
        let name = self.server.name();
        let (status, body) = self.server.connection.get(name, uri, &HeaderMap::new()).await?;
        if status != StatusCode::OK {
            return Err(refusal(name, status, &body));
        }
        let found = self.location.find(&body, &self.text);
        found.map_err(|problem| {
            TriggerError::answer(format!("error requesting metrics endpoint: {problem}"))
        })
    }

    /// The numbers of all endpoints, in one. Those that give none are left out, as long as one does.
    async fn all(&self, aggregation: Aggregation) -> Result<f64, TriggerError> {
        let wrong = |problem: String| {
            TriggerError::answer(format!("error requesting metrics endpoint: {problem}"))
        };
        let mut names = self.address.host().split('.');
        let (Some(service), Some(namespace)) = (names.next(), names.next()) else {
            return Err(wrong(format!(
                "invalid hostname {} : expected at least 2 elements, first being service name and second \
                 being the namespace",
                self.address.authority
            )));
        };
        let endpoints = self.cluster.endpoints(namespace, service).await.map_err(wrong)?;
        if endpoints.is_empty() {
            return Err(wrong("no endpoints URLs were given for the service name".to_owned()));
        }
        let count = endpoints.len();
        let known = endpoints.iter().take(MOST_ENDPOINTS);
        let uris: Vec<String> = known.map(|found| endpoint(&self.address, found)).collect();
        let in_time = uris.iter().map(|uri| tokio::time::timeout(self.timeout, self.one(uri)));
        let asked: Vec<_> = in_time.collect();
        let asked = futures::stream::iter(asked).buffer_unordered(CONCURRENT_ENDPOINTS);
        let asked: Vec<_> = asked.collect().await;
        let values: Vec<f64> = asked.into_iter().filter_map(|asked| asked.ok()?.ok()).collect();
        aggregate(aggregation, &values).ok_or_else(|| {
            wrong(format!(
                "could not get any metric successfully from the {count} provided endpoints"
            ))
        })
    }
}

/// The address of an endpoint: the port of the Service's address, if its slice has that one.
fn endpoint(address: &Address, endpoint: &Endpoint) -> String {
    let usual = if address.scheme == "https" { 443 } else { 80 };
    let port = address.port().unwrap_or(usual);
    let port = if endpoint.ports.contains(&port) { format!(":{port}") } else { String::new() };
    let host = match endpoint.address.contains(':') {
        true => format!("[{}]", endpoint.address),
        false => endpoint.address.clone(),
    };
    Address { authority: format!("{host}{port}"), ..address.clone() }.uri()
}

fn aggregate(aggregation: Aggregation, values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    match aggregation {
        _ if values.is_empty() => None,
        Aggregation::Sum => Some(sum),
        Aggregation::Average => Some(sum / values.len() as f64),
        Aggregation::Max => values.iter().copied().reduce(f64::max),
        Aggregation::Min => values.iter().copied().reduce(f64::min),
    }
}
