//! Asks PostgreSQL. Connections are made when they are needed; a few are kept.

use super::connection::{Connection, SslMode};
use super::tls::Encrypt;
use crate::azure::Tokens;
use crate::trigger::TriggerError;
use futures::TryStreamExt;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, SimpleQueryMessage};

/// How many connections are kept while nobody uses them: each is a process of the server.
const MOST_IDLE: usize = 2;
/// How long it is tried to end a query that nobody waits for.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, and the task that moves its bytes.
struct Connected {
    client: Client,
    task: AbortHandle,
}

/// A query that runs. If nobody waits for it any longer, the server is told to end it, and the connection is closed: it
/// would go on for as long as the query does.
struct Running {
    connected: Option<Connected>,
    encrypt: Encrypt,
}

impl Running {
    /// The connection of a query that has ended.
    fn end(mut self) -> Option<Connected> {
        self.connected.take()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(Connected { client, task }) = self.connected.take() else { return };
        task.abort();
        let (cancel, encrypt) = (client.cancel_token(), self.encrypt.clone());
        // Without a runtime the program ends, and its connections with it.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                // A server that is away has ended it; one that refuses ends it when it has a row to send.
                let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel.cancel_query(encrypt)).await;
            });
        }
    }
}

/// A database that triggers share.
pub(super) struct PostgresClient {
    config: Config,
    encrypt: Encrypt,
    /// Where passwords come from that are tokens.
    tokens: Option<Arc<Tokens>>,
    idle: Mutex<Vec<Connected>>,
}

impl PostgresClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// TLS cannot be used.
    pub(super) fn new(
        connection: &Connection,
        tokens: Option<Arc<Tokens>>,
    ) -> Result<PostgresClient, TriggerError> {
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
        Ok(PostgresClient { config, encrypt, tokens, idle: Mutex::default() })
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
        let kept = self.idle.lock().pop().filter(|kept| !kept.client.is_closed());
        let connected = match kept {
            Some(kept) => kept,
            None => self.connect(server).await?,
        };
        let running = Running { connected: Some(connected), encrypt: self.encrypt.clone() };
        let value = match &running.connected {
            Some(connected) => first_value(&connected.client, query).await,
            None => Ok(None),
        };
        let connected = running.end();
        let value = value.map_err(|error| refusal(server, &error))?;
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.extend(connected);
        }
        drop(idle);
        value.ok_or_else(|| {
            TriggerError::answer(
                "error inspecting postgreSQL: could not query postgreSQL: sql: no rows in result set",
            )
        })
    }

    async fn connect(&self, server: &Arc<str>) -> Result<Connected, TriggerError> {
        let connected = match &self.tokens {
            None => self.config.connect(self.encrypt.clone()).await,
            Some(tokens) => {
                let (token, mut config) = (tokens.token().await?, self.config.clone());
                config.password(token.expose());
                config.connect(self.encrypt.clone()).await
            }
        };
        let connected = connected.map_err(|error| refusal(server, &error));
        if let (Some(tokens), Err(TriggerError::Unauthorized { .. })) = (&self.tokens, &connected) {
            tokens.drop_refused().await;
        }
        let (client, connection) = connected?;
        // It ends with its client.
        let task = tokio::spawn(connection).abort_handle();
        Ok(Connected { client, task })
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
