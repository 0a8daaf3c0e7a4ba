//! Asks MySQL. Connections are made when they are needed; a few are kept.

#[cfg(test)]
mod tests;

use super::dsn::{Connection as Settings, TlsMode};
use super::login::{self, Greeting};
use super::wire::{Connection, Reader, wrong};
use crate::stream::Opener;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// How many connections are kept while nobody uses them.
const MOST_IDLE: usize = 2;
/// How many rows are passed over; a connection with more is not used again.
const MOST_ROWS: usize = 1000;
/// How many steps a log-in has at most.
const MOST_STEPS: usize = 8;
const QUERY: u8 = 3;
/// Servers remember whom they let in, until they are restarted or the password is changed; others must show it.
const NEEDS_TLS: &str = "the user logs in by caching_sha2_password, and the server does not remember it: it wants the \
                         password itself, which is sent over TLS only; set tls to true or skip-verify in the \
                         metadata, or ?tls=true in connectionString";

/// A database that triggers share.
pub(super) struct MySqlClient {
    settings: Settings,
    opener: Opener,
    idle: Mutex<Vec<Connection>>,
}

/// What a query gives.
enum Outcome {
    /// The first column of the first row, if there is one; and whether all was read.
    Value(Option<Option<String>>, bool),
    Refused(Refusal),
}

impl MySqlClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// TLS cannot be used.
    pub(super) fn new(settings: Settings) -> Result<MySqlClient, TriggerError> {
        let insecure = matches!(settings.tls, TlsMode::Preferred | TlsMode::SkipVerify);
        let tls = Tls { insecure, ..Tls::default() };
        let opener = Opener::new((settings.tls != TlsMode::Off).then_some(&tls))?;
        Ok(MySqlClient { settings, opener, idle: Mutex::default() })
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
        let kept = self.idle.lock().pop();
        // A connection that was kept may have been closed meanwhile; a new one cannot have been.
        if let Some(mut kept) = kept
            && let Ok(outcome) = ask(&mut kept, query).await
        {
            return self.keep(kept, server, outcome);
        }
        let mut connection = self.connect(server).await?;
        let outcome = ask(&mut connection, query).await;
        let outcome = outcome.map_err(|error| unreachable(server, &error))?;
        self.keep(connection, server, outcome)
    }

    /// Keeps a connection that is in order, and reads what it answered.
    fn keep(
        &self,
        connection: Connection,
        server: &Arc<str>,
        outcome: Outcome,
    ) -> Result<Option<String>, TriggerError> {
        let mut idle = self.idle.lock();
        if !matches!(outcome, Outcome::Value(_, false)) && idle.len() < MOST_IDLE {
            idle.push(connection);
        }
        drop(idle);
        match outcome {
            Outcome::Value(Some(value), _) => Ok(value),
            Outcome::Value(None, _) => {
                Err(TriggerError::answer("error inspecting MySQL: sql: no rows in result set"))
            }
            Outcome::Refused(refusal) => Err(refusal.error(server)),
        }
    }

    /// Connects, goes over to TLS if that is wanted, and says who asks.
    async fn connect(&self, server: &Arc<str>) -> Result<Connection, TriggerError> {
        let lost = |error: io::Error| unreachable(server, &error);
        let stream = Opener::tcp(&self.settings.address).await?;
        let mut connection = Connection::new(stream, 0);
        let packet = connection.receive().await.map_err(lost)?;
        if let [0xFF, rest @ ..] = &packet[..] {
            return Err(Refusal::read(rest).error(server));
        }
        let greeting = Greeting::read(&packet).map_err(|problem| lost(wrong(problem)))?;
        let can = greeting.capabilities & login::SSL != 0;
        let encrypted = match self.settings.tls {
            TlsMode::Off => false,
            TlsMode::Preferred => can,
            _ if !can => return Err(lost(wrong("it does not speak TLS"))),
            _ => true,
        };
        if encrypted {
            let head = login::head(&self.settings, true);
            connection.send(&head).await.map_err(lost)?;
            let (stream, number) = connection.into_parts();
            let stream = self.opener.encrypt(&self.settings.address, stream).await?;
            connection = Connection::new(stream, number);
        }
        self.log_in(server, &mut connection, greeting, encrypted).await?;
        Ok(connection)
    }

    async fn log_in(
        &self,
        server: &Arc<str>,
        connection: &mut Connection,
        greeting: Greeting,
        encrypted: bool,
    ) -> Result<(), TriggerError> {
        let lost = |error: io::Error| unreachable(server, &error);
        let refused = |problem: String| TriggerError::Unauthorized {
            server: server.clone(),
            problem: problem.into(),
        };
        let settings = &self.settings;
        // A server whose way is not known is answered in one that is; it then says which one the user has.
        let plugin = match greeting.plugin.as_str() {
            "caching_sha2_password" => "caching_sha2_password",
            _ => "mysql_native_password",
        };
        let proof = login::proof(settings, encrypted, plugin, &greeting.seed).map_err(refused)?;
        let answer = login::answer(settings, encrypted, plugin, &proof);
        connection.send(&answer).await.map_err(lost)?;
        for _ in 0..MOST_STEPS {
            let packet = connection.receive().await.map_err(lost)?;
            let reply = match &packet[..] {
                [0x00, ..] => return Ok(()),
                [0xFF, rest @ ..] => return Err(Refusal::read(rest).error(server)),
                // It wants another way.
                [0xFE, rest @ ..] => {
                    let mut reader = Reader(rest);
                    let plugin = String::from_utf8_lossy(reader.text()).into_owned();
                    login::proof(settings, encrypted, &plugin, reader.0).map_err(refused)?
                }
                // It knows the user already.
                [0x01, 0x03] => continue,
                // It does not, and wants to see the password.
                [0x01, 0x04] if encrypted => login::cleartext(settings),
                [0x01, 0x04] => {
                    return Err(refused(NEEDS_TLS.to_owned()));
                }
                _ => return Err(lost(wrong("it answers something that is not expected"))),
            };
            connection.send(&reply).await.map_err(lost)?;
        }
        Err(lost(wrong("its way to log in does not end")))
    }
}

/// Why the server does not do something.
struct Refusal {
    code: u16,
    text: String,
}

impl Refusal {
    fn read(packet: &[u8]) -> Refusal {
        let mut reader = Reader(packet);
        let code = u16::from_le_bytes(reader.array());
        // A state of five characters comes before the text, but not before a log-in.
        if reader.0.first() == Some(&b'#') {
            reader.bytes(6);
        }
        Refusal { code, text: String::from_utf8_lossy(reader.0).into_owned() }
    }

    fn error(self, server: &Arc<str>) -> TriggerError {
        let (server, problem) = (server.clone(), self.text);
        match self.code {
            // The user or the password, the database, or another way to log in.
            1044 | 1045 | 1142 | 1227 | 1251 | 1698 => {
                TriggerError::Unauthorized { server, problem: problem.into() }
            }
            // Too many connections, a shutdown, and a host that failed too often.
            1040 | 1053 | 1129 | 1203 => {
                TriggerError::Unreachable { server, problem: problem.into() }
            }
            code => {
                TriggerError::answer(format!("error inspecting MySQL: Error {code}: {problem}"))
            }
        }
    }
}

fn unreachable(server: &Arc<str>, error: &io::Error) -> TriggerError {
    TriggerError::unreachable(server.clone(), error.to_string())
}

/// Sends a query and reads what it gives.
async fn ask(connection: &mut Connection, query: &str) -> io::Result<Outcome> {
    connection.begin();
    connection.send(&[&[QUERY][..], query.as_bytes()].concat()).await?;
    let packet = connection.receive().await?;
    let columns = match &packet[..] {
        [0xFF, rest @ ..] => return Ok(Outcome::Refused(Refusal::read(rest))),
        // It did something and gives nothing.
        [0x00, ..] => return Ok(Outcome::Value(None, true)),
        packet => Reader(packet).length().ok_or_else(|| wrong("it asks for a file"))?,
    };
    // What the columns are, and the end of that.
    for _ in 0..=columns {
        let packet = connection.receive().await?;
        if let [0xFF, rest @ ..] = &packet[..] {
            return Ok(Outcome::Refused(Refusal::read(rest)));
        }
    }
    let mut found = None;
    for _ in 0..MOST_ROWS {
        let packet = connection.receive().await?;
        match &packet[..] {
            [0xFF, rest @ ..] => return Ok(Outcome::Refused(Refusal::read(rest))),
            [0xFE, ..] if packet.len() < 9 => return Ok(Outcome::Value(found, true)),
            row if found.is_none() => found = Some(first_column(row)),
            _ => {}
        }
    }
    Ok(Outcome::Value(found, false))
}

fn first_column(row: &[u8]) -> Option<String> {
    let mut reader = Reader(row);
    let length = reader.length()?;
    Some(String::from_utf8_lossy(reader.bytes(length)).into_owned())
}
