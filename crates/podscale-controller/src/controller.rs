//! The controller: watches autoscaler objects of every dialect, their targets and their pods, and
//! reconciles each object once in every sync period, and right after it changed.
//!
//! [`index`] holds everything that is known of the objects, [`workers`] take from it what is due,
//! [`reconcile`] handles one object: [`observe`] gathers, the core's pass decides, [`act`] writes, and
//! the [`observer`]s hear of it.

mod act;
mod deletion_cost;
pub(crate) mod dry_run;
pub mod history_store;
mod index;
pub mod manage;
mod observe;
pub mod observer;
pub mod outcome;
mod overrides;
mod owned;
pub(crate) mod ownership;
mod recalled;
mod reconcile;
pub mod refresh;
mod target;
mod targets;
#[cfg(test)]
mod tests;
mod workers;

use crate::dialect::{AnyDialect, Managed};
use crate::kubelets::Kubelets;
use crate::metrics::Metrics;
use crate::pods::Pods;
use crate::readiness::Readiness;
use crate::source::{self, Announcements, Refreshing, Sources};
use crate::triggers::Triggers;

pub use crate::source::PrometheusServers;
use act::{Actor, COMPONENT};
use history_store::HistoryStore;
use index::Index;
use kube::Client;
use manage::Manage;
use observe::Observatory;
use observer::Observer;
use podscale_client::clock::Clock;
use podscale_client::discovery::RestMapper;
use podscale_client::election::Term;
use podscale_client::events;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use podscale_core::Settings;
use podscale_metrics::rules::engine::Engine;
use reconcile::{Reconciler, WritePermits};
use refresh::RefreshRate;
use std::sync::Arc;
use std::time::Duration;
use target::TargetReader;
use targets::Targets;
use tokio::sync::watch;
use tokio::task::JoinSet;
use workers::Workers;

/// Objects of one moment share answers, those of the next do not.
const _: () = assert!(source::FRESHNESS_PARTS == 2 * index::MOMENTS);

/// How the controller works.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// How often each object is reconciled.
    pub period: Duration,
    /// How many are reconciled at the same time.
    pub concurrency: usize,
    /// What is the same for all objects that do not say otherwise.
    pub settings: Settings,
    /// Which objects are managed.
    pub manage: Manage,
    /// Whether to decide only, write nothing, and compare with what another controller writes.
    pub dry_run: bool,
    /// How often statuses are written for their values alone.
    pub refresh_rate: RefreshRate,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            period: Duration::from_secs(15),
            concurrency: 4096,
            settings: Settings::default(),
            manage: Manage::default(),
            dry_run: false,
            refresh_rate: RefreshRate::default(),
        }
    }
}

/// Who hears of what the controller does.
#[derive(Clone, Default)]
pub struct Watchers {
    /// Hear of every decision.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Count and measure.
    pub metrics: Metrics,
    /// Knows when everything is there that deciding needs.
    pub readiness: Readiness,
}

/// The part of this replica among several.
pub struct Role {
    /// The term in which it leads, while it does.
    pub leading: watch::Receiver<Option<Term>>,
    /// Where histories are stored for the next leader, if anywhere.
    pub histories: Option<history_store::Config>,
}

impl Role {
    /// The only one there is; it stores nothing.
    #[must_use]
    pub fn alone() -> Role {
        Role { leading: watch::channel(Some(Term::Alone)).1, histories: None }
    }
}

/// Where what pods use is read.
#[derive(Default)]
pub enum ResourceSource {
    /// From `metrics.k8s.io`.
    #[default]
    Api,
    /// From the kubelets, which are scraped directly.
    Kubelets(Arc<Kubelets>),
    /// From Prometheus.
    Prometheus(Arc<Engine>),
}

/// Where metrics are read, besides the metrics APIs.
#[derive(Default)]
pub struct MetricSources {
    /// What pods use.
    pub resource: ResourceSource,
    /// The Prometheus servers that specs may ask.
    pub prometheus: Arc<PrometheusServers>,
    /// How often Prometheus is asked again for what autoscalers use, so that they decide as soon as it
    /// changes; only when they are due if not given. Wall-clock.
    pub refresh: Option<Duration>,
    /// The triggers of objects that have some, if such are managed.
    pub triggers: Option<Arc<Triggers>>,
}

impl From<ResourceSource> for MetricSources {
    fn from(resource: ResourceSource) -> MetricSources {
        MetricSources { resource, ..MetricSources::default() }
    }
}

/// What must be known before anything is decided.
const PODS: &str = "the list of pods";
const AUTOSCALERS: &str = "the list of autoscalers";
/// How long running work may take to end; wall-clock.
const SHUTDOWN_DEADLINE: Duration = Duration::from_secs(5);

/// A running controller; it ends at once when this is dropped.
pub struct Controller {
    stop: watch::Sender<bool>,
    workers: JoinSet<()>,
    events: JoinSet<()>,
    watches: JoinSet<()>,
}

impl Controller {
    /// Begins to watch the objects of these dialects and, once everything is known and this replica
    /// leads, to reconcile them by what the metrics APIs say.
    #[must_use]
    pub fn start(
        client: &Client,
        clock: Clock,
        config: Config,
        dialects: Vec<Arc<dyn AnyDialect>>,
        watchers: Watchers,
        role: Role,
    ) -> Controller {
        let api = ResourceSource::Api;
        Controller::start_with(client, clock, config, dialects, watchers, role, api)
    }

    /// Begins like [`Controller::start`]; metrics come from these sources as well.
    #[must_use]
    pub fn start_with(
        client: &Client,
        clock: Clock,
        config: Config,
        dialects: Vec<Arc<dyn AnyDialect>>,
        watchers: Watchers,
        role: Role,
        reading: impl Into<MetricSources>,
    ) -> Controller {
        let MetricSources { resource, prometheus, refresh, triggers } = reading.into();
        let mapper = RestMapper::new(client.clone(), clock);
        let metrics = &watchers.metrics;
        let pods = Arc::new(Pods::default());
        let (notifier, announcements) = source::notifications();
        let mut sources = Sources::metrics_apis(client, clock, mapper.clone(), metrics);
        let refreshing = refresh.map(|every| Refreshing { every, notifier: notifier.clone() });
        sources.ask_servers(prometheus, clock, metrics, refreshing.clone());
        if let Some(triggers) = triggers {
            triggers.count_pods(&pods);
            sources.poll_triggers(triggers, &notifier, metrics);
        }
        match resource {
            ResourceSource::Api => {}
            ResourceSource::Kubelets(kubelets) => {
                sources.read_kubelets(kubelets, Arc::clone(&pods), clock, notifier);
            }
            ResourceSource::Prometheus(engine) => {
                sources.read_prometheus(engine, Arc::clone(&pods), clock, metrics, refreshing);
            }
        }
        let parts =
            Parts { config, dialects, watchers, role, mapper, pods, sources, announcements };
        Controller::assemble(client, clock, parts)
    }

    fn assemble(client: &Client, clock: Clock, parts: Parts) -> Controller {
        let Parts { config, dialects, watchers, role, mapper, pods, sources, announcements } =
            parts;
        let Watchers { observers, metrics, readiness } = watchers;
        [PODS, AUTOSCALERS].into_iter().for_each(|what| readiness.needs(what));
        let (stop, stopped) = watch::channel(false);
        let (recorder, pending) = events::channel(COMPONENT);
        let Config { period, settings, manage, dry_run, .. } = config;
        let index = Arc::new(Index::new(clock, period, settings, manage, dry_run));
        let targets = Arc::new(Targets::new(client.clone(), metrics.clone(), readiness.clone()));
        show_sizes(&metrics, &index, &pods, &targets);
        let observatory = Observatory {
            index: Arc::clone(&index),
            targets: TargetReader::new(client.clone(), mapper, Arc::clone(&targets)),
            pods: Arc::clone(&pods),
            keep_inputs: observers.iter().any(|observer| observer.wants_inputs()),
            sources,
        };
        let reconciler = Arc::new(Reconciler {
            index: Arc::clone(&index),
            observatory,
            actor: Actor::new(client.clone(), clock, Arc::clone(&targets), recorder),
            clock,
            period,
            settings,
            dry_run,
            refresh_rate: config.refresh_rate,
            metrics: metrics.clone(),
            observers,
            write_permits: WritePermits::new(),
        });
        let (pods_known, synced) = watch::channel(false);
        let instruments: Instruments = Arc::new(metrics.clone());
        let watching = Watching { client: client.clone(), instruments, readiness };
        let mut watches = JoinSet::new();
        watches.spawn(watching.clone().follow_pods(pods, pods_known));
        for dialect in dialects {
            let known = Arc::clone(&reconciler);
            watches.spawn(watching.clone().follow_objects(dialect, known, Arc::clone(&targets)));
        }
        watches.spawn(workers::enqueue_announced(Arc::clone(&index), announcements));
        let mut events = JoinSet::new();
        events.spawn(events::write(client.clone(), clock, pending, stopped.clone()));
        let store = |config| HistoryStore::new(client.clone(), clock, config, Arc::clone(&index));
        let history_store = role.histories.map(store);
        let (concurrency, leading) = (config.concurrency, role.leading);
        let mut workers = JoinSet::new();
        let all = Workers {
            reconciler,
            index,
            metrics,
            concurrency,
            history_store,
            synced,
            leading,
            stopped,
        };
        workers.spawn(all.run());
        Controller { stop, workers, events, watches }
    }

    /// Starts nothing new, lets running reconciles come to their end, and ends.
    pub async fn stop(self) {
        self.hand_over(std::future::ready(())).await;
    }

    /// Ends like [`Controller::stop`]; `release`, which lets another replica lead, is done as soon as
    /// this one writes nothing any more that another could contradict.
    pub async fn hand_over(mut self, release: impl Future<Output = ()>) {
        self.stop.send_replace(true);
        // The last recorder goes with them and the workers, and so the task that writes events ends.
        self.watches.shutdown().await;
        finish(&mut self.workers).await;
        release.await;
        finish(&mut self.events).await;
    }
}

/// What a controller is made of.
struct Parts {
    config: Config,
    dialects: Vec<Arc<dyn AnyDialect>>,
    watchers: Watchers,
    role: Role,
    mapper: RestMapper,
    pods: Arc<Pods>,
    sources: Sources,
    announcements: Announcements,
}

/// What every watch needs.
#[derive(Clone)]
struct Watching {
    client: Client,
    instruments: Instruments,
    readiness: Readiness,
}

impl Watching {
    async fn follow_pods(self, pods: Arc<Pods>, known: watch::Sender<bool>) {
        let Watching { client, instruments, readiness } = self;
        let apply = |change| {
            pods.apply(change);
            readiness.has(PODS);
            known.send_replace(true);
        };
        follow(&client, "/api/v1/pods", "pods", Presence::Always, &instruments, apply).await;
    }

    async fn follow_objects(
        self,
        dialect: Arc<dyn AnyDialect>,
        reconciler: Arc<Reconciler>,
        targets: Arc<Targets>,
    ) {
        let Watching { client, instruments, readiness } = self;
        let kind = dialect.kind();
        let apply = |change: Change<Managed>| {
            // Before any of them is decided: their sizes are read from the watch.
            if let Change::All(all) = &change {
                targets.expect(all.iter().map(|managed| &managed.model.target));
            }
            let gone = reconciler.index.apply(kind, change);
            gone.iter().for_each(|key| reconciler.gone(key));
            reconciler.metrics.managed(reconciler.index.len());
            if kind.presence == Presence::Always {
                readiness.has(AUTOSCALERS);
            }
        };
        dialect.follow(&client, &instruments, Box::new(apply)).await;
    }
}

/// Waits for tasks; whatever still waits for an answer after a while is cut off.
async fn finish(tasks: &mut JoinSet<()>) {
    let rest = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SHUTDOWN_DEADLINE, rest).await;
    tasks.shutdown().await;
}

/// Sizes are asked for by whoever reads the metrics; what has ended by then has none.
fn show_sizes(metrics: &Metrics, index: &Arc<Index>, pods: &Arc<Pods>, targets: &Arc<Targets>) {
    let known = Arc::downgrade(index);
    metrics.show_queue(move || known.upgrade().map_or(0, |index| index.due()));
    let known = Arc::downgrade(index);
    metrics.show_cache("autoscalers", move || known.upgrade().map_or(0, |index| index.len()));
    let known = Arc::downgrade(pods);
    metrics.show_cache("pods", move || known.upgrade().map_or(0, |pods| pods.len()));
    let known = Arc::downgrade(targets);
    metrics.show_cache("targets", move || known.upgrade().map_or(0, |targets| targets.len()));
}
