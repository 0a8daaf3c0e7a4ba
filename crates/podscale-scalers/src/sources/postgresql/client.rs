//! Asks PostgreSQL. Connections are made when they are needed; a few are kept.

use super::connection::{Connection, SslMode};
use super::tls::Encrypt;
use crate::trigger::TriggerError;
use futures::TryStreamExt;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, SimpleQueryMessage};

/// How many connections are kept while nobody uses them: each is a process of the server.
const MOST_IDLE: usize = 2;

/// A database that triggers share.
pub(super) struct PostgresClient {
    config: Config,
    encrypt: Encrypt,
    idle: Mutex<Vec<Client>>,
}

impl PostgresClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// TLS cannot be used.
    pub(super) fn new(connection: &Connection) -> Result<PostgresClient, TriggerError> {
        let mut config = Config::new();
        for (host, port) in &connection.hosts {
            config.host(host).port(*port);
        }
        config.user(&connection.user).application_name(&connection.application);
        if !connection.password.is_empty() {
            config.password(connection.password.expose());
        }
        if !connection.database.is_empty() {
            config.dbname(&connection.database);
        }
        if !connection.options.is_empty() {
            config.options(&connection.options);
        }
        config.ssl_mode(match connection.ssl {
            SslMode::Disable => tokio_postgres::config::SslMode::Disable,
            SslMode::Prefer => tokio_postgres::config::SslMode::Prefer,
            _ => tokio_postgres::config::SslMode::Require,
        });
        let encrypt = Encrypt::new(connection.ssl)?;
        Ok(PostgresClient { config, encrypt, idle: Mutex::default() })
    }

    /// The first column of the first row that a query gives, as text; none if it is NULL.
    ///
    /// # Errors
    /// The server cannot be reached, refuses, or gives no row.
    pub(super) async fn query(
        &self,
        server: &Arc<str>,
        query: &str,
    ) -> Result<Option<String>, TriggerError> {
        let kept = self.idle.lock().pop().filter(|client| !client.is_closed());
        let client = match kept {
            Some(client) => client,
            None => self.connect(server).await?,
        };
        let value = first_value(&client, query).await.map_err(|error| refusal(server, &error))?;
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(client);
        }
        drop(idle);
        value.ok_or_else(|| {
            TriggerError::answer(
                "error inspecting postgreSQL: could not query postgreSQL: sql: no rows in result set",
            )
        })
    }

    async fn connect(&self, server: &Arc<str>) -> Result<Client, TriggerError> {
        let connected = self.config.connect(self.encrypt.clone()).await;
        let (client, connection) = connected.map_err(|error| refusal(server, &error))?;
        // It ends with its client.
        tokio::spawn(connection);
        Ok(client)
    }
}

/// The first column of the first row; none if there is no row.
async fn first_value(
    client: &Client,
    query: &str,
) -> Result<Option<Option<String>>, tokio_postgres::Error> {
    let mut messages = pin!(client.simple_query_raw(query).await?);
    let mut found = None;
    // Read to the end, so that an error that comes later is one; what else comes is not kept.
    while let Some(message) = messages.try_next().await? {
        if let SimpleQueryMessage::Row(row) = message
            && found.is_none()
        {
            found = Some(row.try_get(0)?.map(str::to_owned));
        }
    }
    Ok(found)
}

/// What an error means.
fn refusal(server: &Arc<str>, error: &tokio_postgres::Error) -> TriggerError {
    let Some(refused) = error.as_db_error() else {
        let cause = std::error::Error::source(error);
        let problem = cause.map_or_else(|| error.to_string(), ToString::to_string);
        return TriggerError::unreachable(server.clone(), problem);
    };
    let problem: Arc<str> = refused.message().into();
    match refused.code() {
        code if [
            SqlState::INVALID_PASSWORD,
            SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
            SqlState::INSUFFICIENT_PRIVILEGE,
        ]
        .contains(code) =>
        {
            TriggerError::Unauthorized { server: server.clone(), problem }
        }
        code if [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ]
        .contains(code) =>
        {
            TriggerError::Unreachable { server: server.clone(), problem }
        }
        _ => TriggerError::answer(format!(
            "error inspecting postgreSQL: could not query postgreSQL: {problem}"
        )),
    }
}
