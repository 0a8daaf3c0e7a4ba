//! The server as a value: its objects, its clock, what it serves.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::admission::Admission;
use crate::backends::Backends;
use crate::openapi::Documents;
use crate::registry::Registry;
use crate::store::Store;
use crate::tokens::Signer;
use crate::types::decode::time_text;

/// Tells the time; the only clock that objects are stamped by.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a server is set up.
#[derive(Clone)]
pub struct Config {
    /// Tells the time.
    pub clock: Clock,
    /// How many changes of each resource are remembered for watches.
    pub history_capacity: usize,
    /// Seed of uids and generated names; taken from the system when absent.
    pub seed: Option<u64>,
    /// The bearer token that requests over a socket must carry, if any.
    pub token: Option<String>,
    /// How often an idle watch is told how far it has come.
    pub bookmark_interval: Duration,
    /// Whether autoscaling/v2beta1 and v2beta2 are served, as before Kubernetes 1.25 and 1.26.
    pub removed_autoscaling_versions: bool,
    /// Who judges objects before they are stored, besides the server itself.
    pub admission: Option<Admission>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            clock: Arc::new(Timestamp::now),
            history_capacity: 16_384,
            seed: None,
            token: None,
            bookmark_interval: Duration::from_secs(60),
            removed_autoscaling_versions: false,
            admission: None,
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("history_capacity", &self.history_capacity)
            .field("seed", &self.seed)
            .field("bookmark_interval", &self.bookmark_interval)
            .finish_non_exhaustive()
    }
}

/// A Kubernetes API server in memory. Clones share everything.
#[derive(Clone)]
pub struct ApiServer {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub store: Store,
    pub registry: RwLock<Arc<Registry>>,
    pub backends: Backends,
    pub config: Config,
    pub documents: Documents,
    pub closing: watch::Sender<bool>,
    /// One writer at a time may change what is served.
    pub definitions: Mutex<()>,
    random: Mutex<Random>,
    /// Signs the tokens of service accounts.
    pub signer: Signer,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").field("config", &self.inner.config).finish_non_exhaustive()
    }
}

impl ApiServer {
    /// A server with nothing in it.
    pub(crate) fn empty(config: Config) -> Self {
        let seed = config.seed.unwrap_or_else(|| {
            use std::hash::{BuildHasher, RandomState};
            RandomState::new().hash_one("seed")
        });
        let inner = Inner {
            store: Store::new(config.history_capacity),
            registry: RwLock::new(Arc::new(Registry::builtin(config.removed_autoscaling_versions))),
            backends: Backends::default(),
            documents: Documents::default(),
            closing: watch::Sender::new(false),
            definitions: Mutex::new(()),
            random: Mutex::new(Random(seed)),
            signer: Signer::new(),
            config,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The objects, for reading and for compaction.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Ends all watches, so that connections can close.
    pub fn close_watches(&self) {
        self.inner.closing.send_replace(true);
    }
}

impl Inner {
    pub(crate) fn now(&self) -> Timestamp {
        (self.config.clock)()
    }

    /// The present as objects are stamped with it.
    pub(crate) fn now_text(&self) -> String {
        time_text(self.now())
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().clone()
    }

    pub(crate) fn new_uid(&self) -> String {
        let mut random = self.random.lock();
        let (high, low) = (random.next(), random.next());
        // Version 4, variant 1, as RFC 9562 lays the bits out.
        let high = (high & 0xffff_ffff_ffff_0fff) | 0x4000;
        let low = (low & 0x3fff_ffff_ffff_ffff) | 0x8000_0000_0000_0000;
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// Five characters that spell no words, for generated names.
    pub(crate) fn new_suffix(&self) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut random = self.random.lock();
        (0..5)
            .map(|_| {
                let at = random.next() % LETTERS.len() as u64;
                usize::try_from(at).ok().and_then(|at| LETTERS.get(at)).map_or('x', |l| *l as char)
            })
            .collect()
    }

    /// A number below `bound`.
    pub(crate) fn random_below(&self, bound: u64) -> u64 {
        self.random.lock().next() % bound.max(1)
    }
}

/// SplitMix64: small, seeded, good enough for names.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
