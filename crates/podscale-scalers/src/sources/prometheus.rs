//! `prometheus`: the number that a query gives.

mod cloud;

use super::Draft;
use crate::address::Address;
use crate::aws::signature::canonical_query;
use crate::context::Context;
use crate::http::auth::{HttpAuth, header_name};
use crate::http::connection::{self, HttpServer};
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use cloud::{Asked, Cloud};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use podscale_metrics::prometheus::{PrometheusError, answer};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const METADATA_AUTH: &[Place] = &[Place::Metadata, Place::Auth];
/// More than one series is an error, so nobody needs to hold more.
const MOST_SERIES: usize = 1000;

/// What is asked, and of whom.
#[derive(Clone, Debug)]
struct Question {
    address: Address,
    auth: HttpAuth,
    cloud: Option<Cloud>,
    query: Box<str>,
    /// Address and parameters but for the time: what tells questions to one server apart.
    uri: Box<str>,
    headers: Vec<(String, String)>,
    ignore_null: bool,
    timeout: Option<Duration>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let address = fields.field(&["serverAddress"], METADATA).required().text();
    let query = fields.field(&["query"], METADATA).required().text();
    let target = fields.field(&["threshold"], METADATA).required().number_or(0.0);
    let activation = fields.field(&["activationThreshold"], METADATA).number_or(0.0);
    let namespace = fields.field(&["namespace"], METADATA).text();
    let parameters = fields.field(&["queryParameters"], METADATA).map();
    let headers = fields.field(&["customHeaders"], METADATA).map();
    let ignore_null = fields.field(&["ignoreNullValues"], METADATA).bool_or(true);
    let insecure = fields.field(&["unsafeSsl"], METADATA).bool_or(false);
    let timeout = fields.field(&["timeout"], METADATA).duration();
    let modes = ["apiKey", "basic", "tls", "bearer", "custom", "oauth"];
    let mut auth = HttpAuth::read(fields, &modes, insecure);
    let has_modes = fields.field(&["authModes", "authMode"], METADATA_AUTH).is_given();
    let address = server(fields, &address);
    if !address.user.is_empty() {
        auth = auth.with_basic(&address.user, address.password.clone());
    }
    let asked = Asked { address: &address, insecure, headers: &headers };
    let cloud = Cloud::read(fields, has_modes, &asked);
    let base = address.uri();
    let pairs = pairs(&query, &namespace, &parameters);
    let uri = format!("{}/api/v1/query?{pairs}", base.trim_end_matches('/')).into();
    let query = query.into();
    let settings = Question { address, auth, cloud, query, uri, headers, ignore_null, timeout };
    let server = Some(settings.key());
    let settings = Box::new(settings);
    let (name, target_field) = ("prometheus".to_owned(), Some("threshold"));
    Draft { name, target, target_field, activation, server, settings }
}

/// The parameters of a request, in the form in which some clouds want them signed.
fn pairs(query: &str, namespace: &str, more: &[(String, String)]) -> String {
    let mut pairs = vec![("query", query)];
    pairs.extend((!namespace.is_empty()).then_some(("namespace", namespace)));
    pairs.extend(more.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    canonical_query(pairs)
}

/// The address of the server.
fn server(fields: &mut Fields<'_>, text: &str) -> Address {
    if text.is_empty() {
        return Address::default();
    }
    let problem = match Address::parse(text) {
        Ok(address) if address.query.is_some() => "it ends before the question mark",
        Ok(address) if address.is_http() => return address,
        Ok(_) => "it does not begin with http:// or https://",
        Err(problem) => problem,
    };
    fields.refuse(
        format!("parameter \"serverAddress\" is not an address of Prometheus: {problem}"),
        "write http://prometheus.monitoring:9090",
    );
    Address::default()
}

impl Question {
    fn key(&self) -> ServerKey {
        let mut key = self.auth.key();
        key.extend(self.cloud.iter().flat_map(Cloud::key));
        ServerKey::new("prometheus", &self.address.origin(), &key)
    }
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let key = self.key();
        let server = match &self.cloud {
            None => connection::share(context, &key, &self.address, &self.auth)?,
            Some(cloud) => {
                let proof = Some(cloud.proof(context)?);
                connection::share_with(context, &key, &self.address, &self.auth, proof)?
            }
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let value = HeaderValue::from_str(value).map_err(|_| {
                let problem =
                    format!("the value of the header {name:?} has characters that none can have");
                TriggerError::Settings(problem.into())
            })?;
            headers.append(header_name(name)?, value);
        }
        // Headers may choose whose data is asked for, so they are part of the question.
        let question = format!("{} {:?}", self.uri, self.headers).into();
        let Question { query, uri, ignore_null, timeout, .. } = *self;
        let timeout = timeout.filter(|t| !t.is_zero()).unwrap_or(context.http_timeout);
        let headers = (!headers.is_empty()).then(|| Box::new(headers));
        let scaler =
            Prometheus { about, server, query, uri, question, headers, ignore_null, timeout };
        Ok(Box::new(scaler))
    }
}

/// Asks one Prometheus.
struct Prometheus {
    about: About,
    server: HttpServer,
    query: Box<str>,
    uri: Box<str>,
    question: Box<str>,
    headers: Option<Box<HeaderMap>>,
    ignore_null: bool,
    timeout: Duration,
}

impl Scaler for Prometheus {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let deadline = deadline.min(Instant::now() + self.timeout);
            let answer = self.server.ask(&self.question, deadline, || self.ask()).await?;
            let value = number(&answer, &self.query, self.ignore_null)?;
            Ok(self.about.value(value))
        })
    }
}

impl Prometheus {
    /// The values that the query gives.
    async fn ask(&self) -> Result<Vec<f64>, TriggerError> {
        let (none, name) = (HeaderMap::new(), self.server.name());
        let headers = self.headers.as_deref().unwrap_or(&none);
        let (status, body) = self.server.connection.get(name, &self.uri, headers).await?;
        let answer = answer::read_query(status.as_u16(), &body, MOST_SERIES);
        let answer = answer.map_err(|error| refusal(name, &error))?;
        Ok(answer.vector.samples.iter().map(|sample| sample.value).collect())
    }
}

fn refusal(server: &Arc<str>, error: &PrometheusError) -> TriggerError {
    let problem = error.to_string().into();
    match error.code() {
        Some(401 | 403) => TriggerError::Unauthorized { server: server.clone(), problem },
        Some(502..=504) => TriggerError::Unreachable { server: server.clone(), problem },
        _ => TriggerError::answer(format!("{server}: {error}")),
    }
}

/// The one value of an answer.
fn number(values: &[f64], query: &str, ignore_null: bool) -> Result<f64, TriggerError> {
    match values {
        [] if ignore_null => Ok(0.0),
        [] => Err(TriggerError::answer(
            "prometheus metrics 'prometheus' target may be lost, the result is empty",
        )),
        [value] if value.is_finite() => Ok(*value),
        [_] if ignore_null => Ok(0.0),
        [value] => {
            let value = if value.is_nan() {
                "NaN"
            } else if *value > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            Err(TriggerError::answer(format!("prometheus query returns {value}")))
        }
        _ => Err(TriggerError::answer(format!(
            "prometheus query {query} returned multiple elements"
        ))),
    }
}

#[cfg(test)]
mod tests;
