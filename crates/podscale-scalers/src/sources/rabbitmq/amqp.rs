//! Asks RabbitMQ by AMQP 0-9-1: declares a queue passively, which answers how many messages are ready in it.

mod wire;

use super::Broker;
use crate::stream::Opener;
use crate::trigger::TriggerError;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use wire::{Connection, Method};

/// How many connections are kept while nobody uses them.
const MOST_IDLE: usize = 2;

const START: (u16, u16) = (10, 10);
const TUNE: (u16, u16) = (10, 30);
const OPEN_OK: (u16, u16) = (10, 41);
const CLOSE: (u16, u16) = (10, 50);
const CHANNEL_OPEN_OK: (u16, u16) = (20, 11);
const CHANNEL_CLOSE: (u16, u16) = (20, 40);
const CHANNEL_CLOSE_OK: (u16, u16) = (20, 41);
const DECLARE_OK: (u16, u16) = (50, 11);

/// A broker that triggers share.
pub(super) struct AmqpClient {
    broker: Broker,
    opener: Opener,
    idle: Mutex<Vec<Connection>>,
}

impl AmqpClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub(super) fn new(broker: Broker) -> Result<AmqpClient, TriggerError> {
        let opener = Opener::new(broker.tls.as_ref())?;
        Ok(AmqpClient { broker, opener, idle: Mutex::default() })
    }

    /// How many messages a queue has.
    ///
    /// # Errors
    /// The broker cannot be reached, refuses, or has no such queue.
    pub(super) async fn messages(
        &self,
        server: &Arc<str>,
        queue: &str,
    ) -> Result<f64, TriggerError> {
        let kept = self.idle.lock().pop();
        // A connection that was kept may have been closed meanwhile; a new one cannot have been.
        if let Some(mut kept) = kept
            && let Ok(answer) = declare(&mut kept, queue).await
        {
            return self.keep(kept, server, answer);
        }
        let mut connection = Connection::new(self.opener.open(&self.broker.address).await?);
        self.greet(server, &mut connection).await?;
        let answer = declare(&mut connection, queue).await;
        let answer = answer.map_err(|error| unreachable(server, &error))?;
        self.keep(connection, server, answer)
    }

    /// Keeps a connection that is in order, and reads what it answered.
    fn keep(
        &self,
        connection: Connection,
        server: &Arc<str>,
        answer: Result<u32, Refusal>,
    ) -> Result<f64, TriggerError> {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push(connection);
        }
        answer.map(f64::from).map_err(|refusal| refusal.error(server))
    }

    /// Says who asks, and opens the virtual host and a channel.
    async fn greet(
        &self,
        server: &Arc<str>,
        connection: &mut Connection,
    ) -> Result<(), TriggerError> {
        let lost = |error: io::Error| unreachable(server, &error);
        connection.greet().await.map_err(lost)?;
        let start = connection.method().await.map_err(lost)?;
        expect(server, &start, START)?;
        let Broker { user, password, vhost, external, .. } = &self.broker;
        let (mechanism, response) = match external {
            true => ("EXTERNAL", String::new()),
            false => ("PLAIN", format!("\0{user}\0{}", password.expose())),
        };
        let start_ok = wire::start_ok(mechanism, &response);
        connection.send(0, &start_ok).await.map_err(lost)?;
        // A broker that refuses says so, or only hangs up.
        let tune = connection.method().await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Refusal { code: 403, text: "it hangs up when it is told who asks".to_owned() }
                    .error(server)
            }
            _ => lost(error),
        })?;
        expect(server, &tune, TUNE)?;
        connection.send(0, &wire::tune_ok(&tune)).await.map_err(lost)?;
        connection.send(0, &wire::open(vhost)).await.map_err(lost)?;
        let opened = connection.method().await.map_err(lost)?;
        expect(server, &opened, OPEN_OK)?;
        open_channel(connection).await.map_err(lost)
    }
}

/// Why the broker does not do something.
struct Refusal {
    code: u16,
    text: String,
}

impl Refusal {
    /// Reads one that closes a channel or connection.
    fn read(method: &Method) -> Refusal {
        let mut arguments = method.arguments();
        Refusal { code: arguments.u16(), text: arguments.short_text() }
    }

    fn error(self, server: &Arc<str>) -> TriggerError {
        let Refusal { code, text } = self;
        match code {
            // Refused, or not allowed: the credentials, or the virtual host.
            403 | 530 => {
                TriggerError::Unauthorized { server: server.clone(), problem: text.into() }
            }
            // Forced to close, as when it shuts down.
            320 => TriggerError::Unreachable { server: server.clone(), problem: text.into() },
            _ => TriggerError::answer(format!("error inspecting RabbitMQ: {code} {text}")),
        }
    }
}

fn unreachable(server: &Arc<str>, error: &io::Error) -> TriggerError {
    TriggerError::unreachable(server.clone(), error.to_string())
}

/// Checks that a method is the one that should come.
fn expect(server: &Arc<str>, method: &Method, wanted: (u16, u16)) -> Result<(), TriggerError> {
    match method.id() {
        id if id == wanted => Ok(()),
        CLOSE => Err(Refusal::read(method).error(server)),
        (class, id) => Err(TriggerError::answer(format!(
            "{server} answers with the method {class}.{id} of AMQP, which is not expected"
        ))),
    }
}

async fn open_channel(connection: &mut Connection) -> io::Result<()> {
    connection.send(1, &wire::channel_open()).await?;
    match connection.method().await?.id() {
        CHANNEL_OPEN_OK => Ok(()),
        _ => Err(io::Error::other("the channel is not opened")),
    }
}

/// Declares a queue passively. A queue that is not there closes the channel, so that another is opened.
async fn declare(connection: &mut Connection, queue: &str) -> io::Result<Result<u32, Refusal>> {
    connection.send(1, &wire::declare_passively(queue)).await?;
    let answer = connection.method().await?;
    match answer.id() {
        DECLARE_OK => {
            let mut arguments = answer.arguments();
            arguments.short_text();
            Ok(Ok(arguments.u32()))
        }
        CHANNEL_CLOSE => {
            let refusal = Refusal::read(&answer);
            connection.send(1, &wire::method(CHANNEL_CLOSE_OK)).await?;
            open_channel(connection).await?;
            Ok(Err(refusal))
        }
        // It closes the connection.
        _ => Err(io::Error::other(Refusal::read(&answer).text)),
    }
}
