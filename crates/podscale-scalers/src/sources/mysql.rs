//! `mysql`: the number that a query gives; of MySQL, MariaDB and others that speak their protocol.

mod client;
mod dsn;
mod login;
#[cfg(test)]
mod tests;
mod wire;

use super::Draft;
use crate::context::Context;
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::server::Server;
use crate::trigger::{TriggerError, TriggerValue};
use client::MySqlClient;
use dsn::{Connection, TlsMode};
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::time::Instant;

const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];
const METADATA_AUTH: &[Place] = &[Place::Metadata, Place::Auth];
const ANYWHERE: &[Place] = &[Place::Metadata, Place::Auth, Place::Env];

/// What is asked, and of whom.
#[derive(Clone, Debug)]
struct Question {
    connection: Connection,
    query: Box<str>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let query = fields.field(&["query"], METADATA).required().text();
    let target = fields.field(&["queryValue"], METADATA).required().number_or(0.0);
    let activation = fields.field(&["activationQueryValue"], METADATA).number_or(0.0);
    // KEDA knows it, and makes another name.
    fields.allow(&["metricName"]);
    let connection = connection(fields);
    Draft {
        name: format!("mysql-{}", connection.database),
        target,
        target_field: Some("queryValue"),
        activation,
        server: Some(connection.key()),
        settings: Box::new(Question { connection, query: query.into() }),
    }
}

/// The server and who asks, from one text or from fields.
fn connection(fields: &mut Fields<'_>) -> Connection {
    let whole = fields.field(&["connectionString"], AUTH_ENV).secret();
    let host = fields.field(&["host"], METADATA_AUTH).text();
    let port = fields.field(&["port"], METADATA_AUTH).text();
    let user = fields.field(&["username"], ANYWHERE).text();
    let database = fields.field(&["dbName"], METADATA_AUTH).text();
    let password = fields.field(&["password"], AUTH_ENV).secret().unwrap_or_default();
    // KEDA has no such field: with it, TLS can be spoken without a connection string.
    let tls = fields.field(&["tls"], METADATA_AUTH).text();
    if let Some(whole) = whole {
        return Connection::parse(whole.expose()).unwrap_or_else(|problem| {
            fields.refuse(
                format!("the connectionString cannot be used: {problem}"),
                "write user:password@tcp(host:3306)/database",
            );
            Connection::default()
        });
    }
    let parts = [
        ("host", host.is_empty()),
        ("port", port.is_empty()),
        ("username", user.is_empty()),
        ("dbName", database.is_empty()),
        ("password", password.is_empty()),
    ];
    if let Some((missing, _)) = parts.iter().find(|(_, is_missing)| *is_missing) {
        fields.refuse(
            format!("no {missing} given"),
            "set host, port, username, dbName and password, or connectionString in the authentication",
        );
    }
    let tls = if tls.is_empty() { Ok(TlsMode::Off) } else { dsn::tls_mode(&tls) };
    let tls = tls.unwrap_or_else(|problem| {
        fields.refuse(problem, "write true, skip-verify or preferred, or leave it out");
        TlsMode::Off
    });
    let address =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Connection { address, user, password, database, tls, ..Connection::default() }
}

impl Settings for Question {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let Question { connection, query } = *self;
        let key = connection.key();
        let server = context.connections.share(&key, || {
            let client = MySqlClient::new(connection)?;
            Ok::<_, TriggerError>(Server::new(&key, context.freshness, client))
        })?;
        Ok(Box::new(MySql { about, server, query }))
    }
}

/// Asks one database.
struct MySql {
    about: About,
    server: Arc<Server<MySqlClient>>,
    query: Box<str>,
}

impl Scaler for MySql {
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
    let wrong =
        |problem: &str| Err(TriggerError::answer(format!("error inspecting MySQL: {problem}")));
    match value.map(|text| text.trim().parse::<f64>()) {
        Some(Ok(number)) => Ok(number),
        Some(Err(_)) => wrong("the first column of the first row is not a number"),
        None => wrong("the first column of the first row is NULL"),
    }
}
