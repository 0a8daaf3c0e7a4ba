//! `postgresql`: the number that a query gives.

mod client;
mod connection;
#[cfg(test)]
mod tests;
mod tls;

use super::Draft;
use crate::address::is_loopback;
use crate::azure;
use crate::context::Context;
use crate::identity::{AzureIdentity, Identity};
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::secret::Secret;
use crate::server::Server;
use crate::trigger::{ServerKey, TriggerError, TriggerValue};
use client::PostgresClient;
use connection::{Connection, SslMode};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::time::Instant;

const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];
const AUTH_METADATA: &[Place] = &[Place::Auth, Place::Metadata];

/// What tokens are for that are passwords of Azure's databases.
const SCOPE: &str = "https://ossrdbms-aad.database.windows.net/.default";
/// What the names of those databases end with.
const AZURE: [&str; 4] = [
    ".database.azure.com",
    ".postgres.cosmos.azure.com",
    ".database.usgovcloudapi.net",
    ".database.chinacloudapi.cn",
];

/// What is asked, and of whom.
#[derive(Clone, Debug)]
struct Question {
    connection: Connection,
    /// Whose token is the password.
    azure: Option<Box<AzureIdentity>>,
    query: Box<str>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let target = fields.field(&["targetQueryValue"], METADATA).number_or(0.0);
    let activation = fields.field(&["activationTargetQueryValue"], METADATA).number_or(0.0);
    let whole = fields.field(&["connection"], AUTH_ENV).secret();
    let query = fields.field(&["query"], METADATA).required().text();
    let azure = match fields.spec().identity.clone() {
        Some(Identity::Azure(identity)) => Some(Box::new(identity)),
        _ => None,
    };
    // A token has no place in it.
    let connection = connection(fields, whole.filter(|_| azure.is_none()));
    if let Some(identity) = &azure {
        refuse_others(fields, identity, &connection);
    }
    let question = Question { connection, azure, query: query.into() };
    if target == 0.0 {
        fields.refuse_late("no targetQueryValue given", "set metadata.targetQueryValue");
    }
    Draft {
        name: "postgresql".to_owned(),
        target,
        target_field: Some("targetQueryValue"),
        activation,
        server: Some(question.key()),
        settings: Box::new(question),
    }
}

/// Whoever has a token is whom it is of: it goes over TLS, and that of the controller to servers of Azure only, or where the
/// authentication says.
fn refuse_others(fields: &mut Fields<'_>, identity: &AzureIdentity, connection: &Connection) {
    let hosts = connection.hosts.iter().map(|(host, _)| host.as_str());
    let hosts: Vec<&str> = hosts.filter(|host| !is_loopback(host)).collect();
    if hosts.is_empty() {
        return;
    }
    if matches!(connection.ssl, SslMode::Disable | SslMode::Prefer) {
        fields.refuse(
            "a token of Azure is not sent without TLS",
            "set sslmode to require, verify-ca or verify-full",
        );
    }
    let is_azures = |host: &&str| AZURE.iter().any(|suffix| host.ends_with(suffix));
    let is_named = fields.spec().auth.contains_key("host");
    if identity.is_of_controller() && !is_named && !hosts.iter().all(is_azures) {
        fields.refuse(
            "host is none of Azure's, and the controller's token would be sent to it",
            "write one below .database.azure.com, or give host in the ClusterTriggerAuthentication",
        );
    }
}

impl Question {
    fn key(&self) -> ServerKey {
        let identity = self.azure.as_deref().map(azure::key);
        self.connection.key(identity.as_ref().map_or(&[], |key| key))
    }
}

/// The server and who asks, from one text or from fields.
fn connection(fields: &mut Fields<'_>, whole: Option<Secret>) -> Connection {
    let mut parts = Vec::new();
    for (name, key) in [
        ("host", "host"),
        ("port", "port"),
        ("userName", "user"),
        ("dbName", "dbname"),
        ("sslmode", "sslmode"),
    ] {
        let names: &'static [&'static str] = match name {
            "host" => &["host"],
            "port" => &["port"],
            "userName" => &["userName"],
            "dbName" => &["dbName"],
            _ => &["sslmode"],
        };
        parts.push((name, key, fields.field(names, AUTH_METADATA).text()));
    }
    let password = fields.field(&["password"], AUTH_ENV).secret().unwrap_or_default();
    let read = match whole {
        Some(whole) => Connection::parse(whole.expose()),
        None => {
            if let Some((missing, ..)) = parts.iter().find(|(_, _, value)| value.is_empty()) {
                fields.refuse(
                    format!("no {missing} given"),
                    "set host, port, userName, dbName and sslmode, or connection in the authentication",
                );
                return Connection::default();
            }
            let parts = parts.into_iter().map(|(_, key, value)| (key.to_owned(), value));
            let password = ("password".to_owned(), password.expose().to_owned());
            Connection::from_parts(parts.chain([password]).collect())
        }
    };
    read.unwrap_or_else(|problem| {
        fields.refuse(
            format!("the connection cannot be used: {problem}"),
            "write host=db port=5432 user=u password=p dbname=d sslmode=require",
        );
        Connection::default()
    })
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let key = self.key();
        let Question { connection, azure, query } = *self;
        let tokens = azure.map(|identity| azure::share(context, &identity, SCOPE)).transpose()?;
        let server = context.connections.share(&key, || {
            let client = PostgresClient::new(&connection, tokens)?;
            Ok::<_, TriggerError>(Server::new(&key, context.freshness, client))
        })?;
        Ok(Box::new(Postgres { about, server, query }))
    }
}

/// Asks one database.
struct Postgres {
    about: About,
    server: Arc<Server<PostgresClient>>,
    query: Box<str>,
}

impl Scaler for Postgres {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let ask = || async {
                let value = self.server.connection.query(self.server.name(), &self.query).await?;
                Ok(vec![number(value.as_deref())?])
            };
            let answer = self.server.ask(&self.query, deadline, ask).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

/// The number in the first column of the first row.
fn number(value: Option<&str>) -> Result<f64, TriggerError> {
    let wrong = |problem: &str| {
        let text = format!("error inspecting postgreSQL: could not query postgreSQL: {problem}");
        Err(TriggerError::answer(text))
    };
    match value.map(|text| (text, text.trim().parse::<f64>())) {
        Some((_, Ok(number))) => Ok(number),
        Some((_, Err(_))) => wrong("the first column of the first row is not a number"),
        None => wrong("the first column of the first row is NULL"),
    }
}
