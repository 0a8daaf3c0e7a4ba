//! Asks Redis, wherever the key is: follows redirections of a cluster and the word of sentinels.

use super::wire::{Connection, Reply};
use super::{RedisServer, Topology};
use crate::secret::Secret;
use crate::stream::Opener;
use crate::trigger::TriggerError;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How many connections to a server are kept while nobody uses them.
const MOST_IDLE: usize = 4;
/// How often a question is sent elsewhere.
const MOST_REDIRECTIONS: usize = 5;
/// How long one of several nodes may take, before another is asked.
const NODE_PATIENCE: Duration = Duration::from_secs(2);
/// How many keys are remembered with the node that has them.
const MOST_PLACES: usize = 10_000;

/// A Redis that triggers share.
pub(crate) struct RedisClient {
    server: RedisServer,
    opener: Opener,
    idle: Mutex<HashMap<String, Vec<Connection>>>,
    /// Where keys of a cluster are, and where the master of sentinels is (under an empty key).
    places: Mutex<HashMap<String, String>>,
}

/// Where a question goes next.
enum Redirection {
    /// The key is there from now on.
    Moved(String),
    /// The key is there for this once.
    Ask(String),
}

/// What a node answers, if it does so in time: a poll has to be left some for the next node.
async fn soon<T>(answer: impl Future<Output = std::io::Result<T>>) -> std::io::Result<T> {
    let late = |_| std::io::Error::new(std::io::ErrorKind::TimedOut, "it does not answer");
    tokio::time::timeout(NODE_PATIENCE, answer).await.map_err(late)?
}

impl RedisClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub(crate) fn new(server: RedisServer) -> Result<RedisClient, TriggerError> {
        let opener = Opener::new(server.tls.as_ref())?;
        Ok(RedisClient { server, opener, idle: Mutex::default(), places: Mutex::default() })
    }

    /// Sends a command about a key to whoever has it.
    ///
    /// # Errors
    /// Nobody answers, or with an error.
    pub(crate) async fn ask(&self, key: &str, command: &[&str]) -> Result<Reply, TriggerError> {
        let first = self.ask_once(key, command).await;
        match (&first, &self.server.topology) {
            // The place may be out of date: a node is gone, or is the master no longer.
            (Err(error), Topology::Cluster | Topology::Sentinel { .. })
                if error.is_outage() && self.forget(key) =>
            {
                self.ask_once(key, command).await
            }
            _ => first,
        }
    }

    async fn ask_once(&self, key: &str, command: &[&str]) -> Result<Reply, TriggerError> {
        let (mut node, mut connection) = self.find(key).await?;
        let mut asking = false;
        for _ in 0..MOST_REDIRECTIONS {
            let reply = self.exchange(&node, connection, asking, command).await?;
            let Reply::Error(text) = &reply else { return Ok(reply) };
            let Some(redirection) = redirection(text) else { return Err(refusal(&node, text)) };
            asking = matches!(redirection, Redirection::Ask(_));
            node = match redirection {
                Redirection::Ask(node) => node,
                Redirection::Moved(node) => {
                    self.remember(key, &node);
                    node
                }
            };
            connection = self.connection(&node).await?;
        }
        Err(TriggerError::answer(format!("{node} sends questions about {key:?} around")))
    }

    /// Sends a command; the connection is kept only if it was answered.
    async fn exchange(
        &self,
        node: &str,
        mut connection: Connection,
        asking: bool,
        command: &[&str],
    ) -> Result<Reply, TriggerError> {
        let broken = |error: std::io::Error| unreachable(node, &error.to_string());
        if asking {
            soon(connection.command(&["ASKING"])).await.map_err(broken)?;
        }
        let reply = match soon(connection.command(command)).await {
            Ok(reply) => reply,
            // A connection that was kept may have been closed meanwhile; a new one cannot have been.
            Err(_) if !asking => {
                self.idle.lock().remove(node);
                connection = self.connection(node).await?;
                soon(connection.command(command)).await.map_err(broken)?
            }
            Err(error) => return Err(broken(error)),
        };
        let mut idle = self.idle.lock();
        let idle = idle.entry(node.to_owned()).or_default();
        if idle.len() < MOST_IDLE {
            idle.push(connection);
        }
        Ok(reply)
    }

    /// A connection to whoever should have a key.
    async fn find(&self, key: &str) -> Result<(String, Connection), TriggerError> {
        if let Topology::Sentinel { master, username, password } = &self.server.topology {
            let known = self.places.lock().get("").cloned();
            let node = match known {
                Some(node) => node,
                None => self.master(master, username, password).await?,
            };
            let connection = self.connection(&node).await?;
            return Ok((node, connection));
        }
        let known = self.places.lock().get(key).cloned();
        let addresses = match self.server.topology {
            Topology::Cluster => &self.server.addresses[..],
            _ => self.server.addresses.get(..1).unwrap_or_default(),
        };
        let mut last = TriggerError::answer("no address of Redis is given");
        for node in known.iter().chain(addresses) {
            match self.connection(node).await {
                Ok(connection) => return Ok((node.clone(), connection)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where the master is, by the first sentinel that knows it.
    async fn master(
        &self,
        master: &str,
        username: &str,
        password: &Secret,
    ) -> Result<String, TriggerError> {
        let mut last = TriggerError::answer("no address of a sentinel is given");
        for sentinel in &self.server.addresses {
            let question = ["SENTINEL", "get-master-addr-by-name", master];
            let asked = async {
                let mut connection = self.greet(sentinel, username, password, 0).await?;
                let reply = soon(connection.command(&question)).await;
                reply.map_err(|error| unreachable(sentinel, &error.to_string()))
            };
            match asked.await {
                Ok(Reply::List(found)) => {
                    if let [Reply::Text(host), Reply::Text(port)] = &found[..] {
                        let node = super::join(host, port);
                        self.remember("", &node);
                        return Ok(node);
                    }
                    last = TriggerError::answer(format!(
                        "{sentinel} does not say where {master:?} is"
                    ));
                }
                Ok(Reply::Error(text)) => last = refusal(sentinel, &text),
                Ok(_) => {
                    last = TriggerError::answer(format!(
                        "the sentinel {sentinel} knows no master {master:?}; check sentinelMaster"
                    ));
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// A connection that somebody left, or a new one.
    async fn connection(&self, node: &str) -> Result<Connection, TriggerError> {
        let kept = self.idle.lock().get_mut(node).and_then(Vec::pop);
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let RedisServer { username, password, database, .. } = &self.server;
        // A cluster has one database only.
        let database = if self.server.topology == Topology::Cluster { 0 } else { *database };
        self.greet(node, username, password, database).await
    }

    /// Connects and says who asks.
    async fn greet(
        &self,
        node: &str,
        username: &str,
        password: &Secret,
        database: i64,
    ) -> Result<Connection, TriggerError> {
        let opened = tokio::time::timeout(NODE_PATIENCE, self.opener.open(node)).await;
        let opened = opened.map_err(|_| unreachable(node, "it does not answer"))??;
        let mut connection = Connection::new(opened);
        let mut greetings: Vec<Vec<&str>> = Vec::new();
        match (username, password.expose()) {
            ("", "") => {}
            ("", password) => greetings.push(vec!["AUTH", password]),
            (username, password) => greetings.push(vec!["AUTH", username, password]),
        }
        let database = database.to_string();
        if database != "0" {
            greetings.push(vec!["SELECT", &database]);
        }
        for greeting in greetings {
            let reply = soon(connection.command(&greeting)).await;
            match reply.map_err(|error| unreachable(node, &error.to_string()))? {
                Reply::Error(text) => return Err(refusal(node, &text)),
                _ => continue,
            }
        }
        Ok(connection)
    }

    fn remember(&self, key: &str, node: &str) {
        let mut places = self.places.lock();
        if places.len() >= MOST_PLACES {
            places.clear();
        }
        places.insert(key.to_owned(), node.to_owned());
    }

    /// Forgets where a key was, and the connections there; false if nobody knew.
    fn forget(&self, key: &str) -> bool {
        let key = if matches!(self.server.topology, Topology::Sentinel { .. }) { "" } else { key };
        let known = self.places.lock().remove(key);
        known.is_some_and(|node| {
            self.idle.lock().remove(&node);
            true
        })
    }
}

fn unreachable(node: &str, problem: &str) -> TriggerError {
    TriggerError::unreachable(node, problem.to_owned())
}

/// Where an error sends a question, if it does.
fn redirection(text: &str) -> Option<Redirection> {
    let mut words = text.split(' ');
    let (kind, _slot, node) = (words.next()?, words.next()?, words.next()?);
    match kind {
        "MOVED" => Some(Redirection::Moved(node.to_owned())),
        "ASK" => Some(Redirection::Ask(node.to_owned())),
        _ => None,
    }
}

/// What an error of Redis means.
fn refusal(node: &str, text: &str) -> TriggerError {
    let (server, problem): (Arc<str>, Arc<str>) = (node.into(), text.into());
    match text.split(' ').next().unwrap_or_default() {
        "NOAUTH" | "WRONGPASS" | "NOPERM" => TriggerError::Unauthorized { server, problem },
        "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "READONLY" => {
            TriggerError::Unreachable { server, problem }
        }
        _ if text.contains("invalid password") || text.contains("AUTH") => {
            TriggerError::Unauthorized { server, problem }
        }
        _ => TriggerError::answer(format!("{node} answers: {text}")),
    }
}
