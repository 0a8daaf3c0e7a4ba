//! `nats-jetstream`: how many messages of a stream wait for a consumer, by the server's monitoring endpoint.

#[cfg(test)]
mod tests;

use super::Draft;
use crate::address::{Address, encode};
use crate::context::Context;
use crate::http::auth::HttpAuth;
use crate::http::connection::{self, HttpServer};
use crate::http::refusal;
use crate::metadata::{Fields, METADATA, Place};
use crate::scaler::{About, Scaler, Settings};
use crate::trigger::{TriggerError, TriggerValue};
use futures::future::BoxFuture;
use http::HeaderMap;
use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;
use tokio::time::Instant;

const AUTH_METADATA: &[Place] = &[Place::Auth, Place::Metadata];
/// How many nodes of a cluster are asked at most.
const MOST_NODES: usize = 64;
/// How long one of several nodes may take, before another is asked.
const NODE_PATIENCE: Duration = Duration::from_secs(1);

/// Which consumer, and where.
#[derive(Clone, Debug)]
struct Consumer {
    address: Address,
    account: Box<str>,
    account_id: Box<str>,
    stream: Box<str>,
    name: Box<str>,
}

/// Reads the fields.
pub(super) fn read(fields: &mut Fields<'_>) -> Draft {
    let account = fields.field(&["account"], AUTH_METADATA).text();
    let mut account_id = fields.field(&["accountID"], AUTH_METADATA).text();
    let stream = fields.field(&["stream"], METADATA).required().text();
    let name = fields.field(&["consumer"], METADATA).required().text();
    let target = fields.field(&["lagThreshold"], METADATA).integer_or(10);
    let activation = fields.field(&["activationLagThreshold"], METADATA).integer_or(0);
    let https = fields.field(&["useHttps"], METADATA).bool_or(false);
    let endpoint = fields.field(&["natsServerMonitoringEndpoint"], AUTH_METADATA).required().text();
    if account.is_empty() && account_id.is_empty() {
        fields.refuse_late(
            "no account name or id given",
            "set metadata.account, $G if there are none",
        );
    }
    if account_id.is_empty() {
        account_id.clone_from(&account);
    }
    let scheme = if https { "https" } else { "http" };
    let address = Address::parse(&format!("{scheme}://{endpoint}")).unwrap_or_else(|problem| {
        if !endpoint.is_empty() {
            fields.refuse(
                format!("parameter \"natsServerMonitoringEndpoint\" is not host:port: {problem}"),
                "write nats.nats.svc:8222, without http://",
            );
        }
        Address::default()
    });
    Draft {
        name: format!("nats-jetstream-{stream}"),
        target: target as f64,
        target_field: Some("lagThreshold"),
        activation: activation as f64,
        server: Some(connection::server_key("nats", &address, &HttpAuth::default())),
        settings: Box::new(Consumer {
            address,
            account: account.into(),
            account_id: account_id.into(),
            stream: stream.into(),
            name: name.into(),
        }),
    }
}

impl Settings for Consumer {
    fn connect(
        self: Box<Self>,
        about: About,
        context: &Context,
    ) -> Result<Box<dyn Scaler>, TriggerError> {
        let auth = HttpAuth::default();
        let key = connection::server_key("nats", &self.address, &auth);
        let server = connection::share(context, &key, &self.address, &auth)?;
        let timeout = context.http_timeout;
        Ok(Box::new(JetStream {
            about,
            server,
            consumer: *self,
            timeout,
            leader: Mutex::default(),
        }))
    }
}

/// Asks about one consumer.
struct JetStream {
    about: About,
    server: HttpServer,
    consumer: Consumer,
    timeout: Duration,
    /// The node that leads the consumer in a cluster: only that one knows its numbers.
    leader: Mutex<Option<Node>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    name: String,
    authority: String,
}

/// What `/jsz` answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Accounts {
    account_details: Vec<Account>,
    meta_cluster: MetaCluster,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct MetaCluster {
    cluster_size: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Account {
    id: String,
    name: String,
    stream_detail: Vec<StreamDetail>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StreamDetail {
    name: String,
    consumer_detail: Vec<ConsumerDetail>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct ConsumerDetail {
    name: String,
    num_ack_pending: u64,
    num_pending: u64,
    cluster: Option<ConsumerCluster>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
struct ConsumerCluster {
    leader: String,
}

/// What `/varz` answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ServerInfo {
    server_name: String,
    connect_urls: Vec<String>,
    cluster: Peers,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Peers {
    urls: Vec<String>,
}

impl ConsumerDetail {
    fn lag(&self) -> f64 {
        self.num_pending.saturating_add(self.num_ack_pending) as f64
    }

    fn leader(&self) -> &str {
        self.cluster.as_ref().map_or("", |cluster| &cluster.leader)
    }
}

impl Scaler for JetStream {
    fn poll(&self, deadline: Instant) -> BoxFuture<'_, Result<Vec<TriggerValue>, TriggerError>> {
        Box::pin(async move {
            let deadline = deadline.min(Instant::now() + self.timeout);
            let Consumer { account_id, stream, name, .. } = &self.consumer;
            let question = format!("{account_id} {stream} {name}");
            let ask = || async { self.lag().await.map(|lag| vec![lag]) };
            let answer = self.server.ask(&question, deadline, ask).await?;
            Ok(self.about.value(answer.first().copied().unwrap_or_default()))
        })
    }
}

impl JetStream {
    async fn lag(&self) -> Result<f64, TriggerError> {
        let known = self.leader.lock().clone();
        if let Some(node) = known {
            // Forgotten first: one that never answers would be asked again and again.
            *self.leader.lock() = None;
            let accounts = self.accounts_of(&node).await.unwrap_or_default();
            if let Some(found) = self.consumer.find(&accounts)
                && found.leader() == node.name
            {
                *self.leader.lock() = Some(node);
                return Ok(found.lag());
            }
        }
        let accounts = self.accounts(&self.consumer.address.authority).await?;
        if accounts.meta_cluster.cluster_size <= 1 {
            let Consumer { name, stream, .. } = &self.consumer;
            let found = self.consumer.find(&accounts);
            return found.map(ConsumerDetail::lag).ok_or_else(|| {
                TriggerError::answer(format!("consumer {name:?} not found in stream {stream:?}"))
            });
        }
        for node in self.nodes().await? {
            // A node that is away does not lead.
            let Some(accounts) = self.accounts_of(&node).await else { continue };
            if let Some(found) = self.consumer.find(&accounts)
                && found.leader() == node.name
            {
                *self.leader.lock() = Some(node);
                return Ok(found.lag());
            }
        }
        let name = &self.consumer.name;
        Err(TriggerError::answer(format!("leader node not found for consumer {name}")))
    }

    /// The nodes of the cluster, by the addresses that they give out, or by their names before the address.
    async fn nodes(&self) -> Result<Vec<Node>, TriggerError> {
        let address = &self.consumer.address;
        let about: ServerInfo = self.get(&address.authority, "/varz").await?;
        let mut nodes = Vec::new();
        for url in about.connect_urls.iter().take(MOST_NODES) {
            let host = host(url);
            let authority = match address.port() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            };
            if let Ok(ServerInfo { server_name, .. }) = self.get(&authority, "/varz").await {
                nodes.push(Node { name: server_name, authority });
            }
        }
        if about.connect_urls.is_empty() {
            nodes.extend(about.cluster.urls.iter().take(MOST_NODES).map(|url| {
                let name = url.split('.').next().unwrap_or_default();
                Node { name: name.to_owned(), authority: format!("{name}.{}", address.authority) }
            }));
        }
        Ok(nodes)
    }

    /// What one of several nodes says, if it does so soon.
    async fn accounts_of(&self, node: &Node) -> Option<Accounts> {
        let asked = tokio::time::timeout(NODE_PATIENCE, self.accounts(&node.authority));
        asked.await.ok()?.ok()
    }

    async fn accounts(&self, authority: &str) -> Result<Accounts, TriggerError> {
        let account = encode(&self.consumer.account_id);
        self.get(authority, &format!("/jsz?acc={account}&config=true&consumers=true")).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        authority: &str,
        path: &str,
    ) -> Result<T, TriggerError> {
        let name = self.server.name();
        let uri = format!("{}://{authority}{path}", self.consumer.address.scheme);
        let (status, body) = self.server.connection.get(name, &uri, &HeaderMap::new()).await?;
        if !status.is_success() {
            return Err(refusal(name, status, &body));
        }
        serde_json::from_slice(&body).map_err(|error| {
            TriggerError::answer(format!(
                "{name} answers {path} with something else than NATS: {error}"
            ))
        })
    }
}

impl Consumer {
    fn find<'a>(&self, accounts: &'a Accounts) -> Option<&'a ConsumerDetail> {
        let ours = |account: &&Account| {
            account.id == *self.account_id
                || !self.account.is_empty() && account.name == *self.account
        };
        let accounts = accounts.account_details.iter().filter(ours);
        let streams = accounts.flat_map(|account| &account.stream_detail);
        let streams = streams.filter(|stream| stream.name == *self.stream);
        streams.flat_map(|stream| &stream.consumer_detail).find(|found| found.name == *self.name)
    }
}

/// The host of an address with a port.
fn host(url: &str) -> &str {
    url.rsplit_once(':').map_or(url, |(host, _)| host)
}
