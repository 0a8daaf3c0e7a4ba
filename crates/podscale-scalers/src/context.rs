//! What all triggers of a program share, and what they ask of the cluster.

use crate::secret::Secret;
use crate::server::Connections;
use futures::future::BoxFuture;
use jiff::Timestamp;
use podscale_api::Selector;
use std::sync::Arc;
use std::time::Duration;

/// How long an HTTP request may take, unless a trigger says otherwise.
const HTTP_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an answer is shared: short beside the shortest polling interval.
const FRESHNESS: Duration = Duration::from_millis(900);

/// A pod that a selector finds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodPlace {
    /// The node it is on, if it has one.
    pub node: Option<Arc<str>>,
    /// Whether it has succeeded or failed.
    pub ended: bool,
}

/// An endpoint of a Service: an address that is ready, and the ports of its slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: String,
    /// The ports that its slice names.
    pub ports: Vec<u16>,
}

/// What some triggers ask of the cluster. Errors are texts for people.
pub trait Cluster: Send + Sync {
    /// The pods of a namespace that a selector finds.
    fn pods<'a>(
        &'a self,
        namespace: &'a str,
        selector: &'a Selector,
    ) -> BoxFuture<'a, Result<Vec<PodPlace>, String>>;

    /// The endpoints of a Service that are ready, each address once.
    fn endpoints<'a>(
        &'a self,
        namespace: &'a str,
        service: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Endpoint>, String>>;
}

/// Reads a clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Reads a variable of the program's own environment.
pub type Variables = Arc<dyn Fn(&str) -> Option<Secret> + Send + Sync>;

/// What all triggers of a program share.
#[derive(Clone)]
pub struct Context {
    /// The cluster.
    pub cluster: Arc<dyn Cluster>,
    /// What time it is.
    pub clock: Clock,
    /// What the controller's own identity in a cloud is read from; no trigger reads others.
    pub variables: Variables,
    /// How long an HTTP request may take, unless a trigger says otherwise.
    pub http_timeout: Duration,
    /// How long an answer serves all who ask the same.
    pub freshness: Duration,
    pub(crate) connections: Arc<Connections>,
}

impl Context {
    /// The defaults of KEDA, and the wall-clock.
    #[must_use]
    pub fn new(cluster: Arc<dyn Cluster>) -> Context {
        Context {
            cluster,
            clock: Arc::new(Timestamp::now),
            variables: Arc::new(|name| std::env::var(name).ok().map(Secret::from)),
            http_timeout: HTTP_TIMEOUT,
            freshness: FRESHNESS,
            connections: Arc::default(),
        }
    }

    /// How many servers triggers share connections to.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.connections.len()
    }
}
