//! `postgresql`: the number that a query gives.

mod client;
mod connection;
#[cfg(test)]
mod tests;
mod tls;

use super::Draft;
use crate::context::Context;
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::secret::Secret;
use crate::server::Server;
use crate::trigger::{TriggerError, TriggerValue};
use client::PostgresClient;
use connection::Connection;
use futures::future::BoxFuture;
use std::sync::Arc;
use tokio::time::Instant;

const AUTH_ENV: &[Place] = &[Place::Auth, Place::Env];
const AUTH_METADATA: &[Place] = &[Place::Auth, Place::Metadata];

/// What is asked, and of whom.
#[derive(Clone, Debug)]
struct Question {
    connection: Connection,
    query: Box<str>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let target = fields.field(&["targetQueryValue"], METADATA).number_or(0.0);
    let activation = fields.field(&["activationTargetQueryValue"], METADATA).number_or(0.0);
    let whole = fields.field(&["connection"], AUTH_ENV).secret();
    let query = fields.field(&["query"], METADATA).required().text();
    let connection = connection(fields, whole);
    if target == 0.0 {
        fields.refuse_late("no targetQueryValue given", "set metadata.targetQueryValue");
    }
    Draft {
        name: "postgresql".to_owned(),
        target,
        target_field: Some("targetQueryValue"),
        activation,
        server: Some(connection.key()),
        settings: Box::new(Question { connection, query: query.into() }),
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
        let Question { connection, query } = *self;
        let key = connection.key();
        let server = context.connections.share(&key, || {
            Ok(Server::new(&key, context.freshness, PostgresClient::new(&connection)?))
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
