//! The kubelets of the cluster, scraped directly: whom to scrape, what was found, and who hears of it.
//! Whoever decides or serves by it shares one [`Kubelets`].

mod reports;
mod roster;

pub use reports::Reports;
pub use roster::Roster;

use crate::metrics::Metrics;
use kube::Client;
use podscale_api::node::Node;
use podscale_client::call::query;
use podscale_client::clock::Clock;
use podscale_client::election::Term;
use podscale_client::instrument::Instruments;
use podscale_client::watch::{Change, Presence, follow};
use podscale_metrics::directory::Directory;
use podscale_metrics::kubelet::{Access, KubeletReader};
use podscale_metrics::resource;
use podscale_metrics::scraper::address::Addressing;
use podscale_metrics::scraper::fleet::Fleet;
use podscale_metrics::scraper::{self, Scraper};
use podscale_metrics::store::{Limits, PodKey, Store};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How kubelets are found and read.
pub struct Config {
    /// How they are spoken to.
    pub access: Access,
    /// Where they are.
    pub addressing: Addressing,
    /// Which nodes, as a label selector; all if there is none.
    pub node_selector: Option<String>,
    /// How often, and how long a sample is used.
    pub limits: Limits,
}

/// When kubelets are scraped, and for whom.
pub enum Purpose {
    /// To decide: only while this replica leads. The labels of pods are not followed, since the
    /// controller does so itself.
    Deciding(watch::Receiver<Option<Term>>),
    /// To serve metrics, and perhaps to decide as well: always.
    Serving,
}

/// The kubelets of the cluster and what they said. Scrapes while it lives, if it was started.
pub struct Kubelets {
    /// What they said.
    pub store: Arc<Store>,
    /// The labels of nodes, and of pods if metrics are served.
    pub directory: Arc<Directory>,
    reports: Arc<Reports>,
    _tasks: JoinSet<()>,
}

impl Kubelets {
    /// Begins to follow the nodes of a cluster and to scrape their kubelets.
    #[must_use]
    pub fn start(
        client: &Client,
        clock: Clock,
        config: Config,
        metrics: &Metrics,
        purpose: Purpose,
    ) -> Arc<Kubelets> {
        let Config { access, addressing, node_selector, limits } = config;
        let store = Arc::new(Store::new(limits));
        let reports = Arc::new(Reports::new(metrics.clone()));
        let directory = Arc::new(Directory::default());
        let scraper = Scraper::start(scraper::Config {
            resolution: clock.to_wall(limits.resolution),
            reader: KubeletReader::new(access),
            store: Arc::clone(&store),
            clock: Arc::new(move || clock.now()),
            observer: Arc::clone(&reports) as Arc<dyn scraper::Observer>,
        });
        let fleet = Fleet { scraper, directory: Arc::clone(&directory), addressing };
        let selector = node_selector.unwrap_or_default();
        let path = format!("/api/v1/nodes{}", query(&[("labelSelector", &selector)]));
        let instruments: Instruments = Arc::new(metrics.clone());
        let following = Following { client: client.clone(), path, selector, instruments, fleet };
        let mut tasks = JoinSet::new();
        if let Purpose::Serving = purpose {
            let (client, instruments) = (client.clone(), Arc::clone(&following.instruments));
            tasks.spawn(roster::follow_pods(client, instruments, Arc::clone(&directory)));
        }
        tasks.spawn(following.run(purpose));
        let kubelets = Kubelets::sharing(store, directory, reports, tasks);
        kubelets.show(metrics, clock);
        kubelets
    }

    /// Those that somebody else scrapes, and reports here.
    #[must_use]
    pub fn scraped_elsewhere(
        store: Arc<Store>,
        directory: Arc<Directory>,
        reports: Arc<Reports>,
        metrics: &Metrics,
        clock: Clock,
    ) -> Arc<Kubelets> {
        let kubelets = Kubelets::sharing(store, directory, reports, JoinSet::new());
        kubelets.show(metrics, clock);
        kubelets
    }

    fn sharing(
        store: Arc<Store>,
        directory: Arc<Directory>,
        reports: Arc<Reports>,
        tasks: JoinSet<()>,
    ) -> Arc<Kubelets> {
        Arc::new(Kubelets { store, directory, reports, _tasks: tasks })
    }

    /// What `metrics.k8s.io` answers with.
    #[must_use]
    pub fn serving(&self) -> resource::Source {
        let (store, directory) = (Arc::clone(&self.store), Arc::clone(&self.directory));
        let clock = Clock::wall();
        resource::Source::scraped(store, directory, Arc::new(move || clock.now()))
    }

    /// Calls this with the pods of every scrape that have new samples. It must not wait.
    pub fn listen(&self, listener: impl Fn(&[PodKey]) + Send + Sync + 'static) {
        self.reports.listen(Box::new(listener));
    }

    fn show(&self, metrics: &Metrics, clock: Clock) {
        let (nodes, oldest) = (Arc::downgrade(&self.store), Arc::downgrade(&self.store));
        let seconds = move || {
            let age = oldest.upgrade()?.oldest(clock.now())?;
            usize::try_from(age.as_secs()).ok()
        };
        metrics.show_kubelets(
            move || nodes.upgrade().map_or(0, |store| store.nodes()),
            move || seconds().unwrap_or(0),
        );
    }
}

/// Follows the nodes of the cluster.
struct Following {
    client: Client,
    path: String,
    /// Which nodes, as it was said; empty for all.
    selector: String,
    instruments: Instruments,
    fleet: Fleet,
}

impl Following {
    async fn run(self, purpose: Purpose) {
        let Purpose::Deciding(mut leading) = purpose else { return self.follow().await };
        while leading.wait_for(Option::is_some).await.is_ok() {
            let lost = async {
                if leading.wait_for(Option::is_none).await.is_err() {
                    // Without an election nobody else will ever lead.
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                () = lost => self.fleet.clear(),
                () = self.follow() => {}
            }
        }
    }

    async fn follow(&self) {
        let mut unaddressed = Unaddressed::default();
        let apply = |change: Change<Node>| match change {
            Change::All(nodes) => {
                let unreachable = self.fleet.replace(&nodes);
                let scraped = nodes.len() - unreachable.len();
                tracing::info!(nodes = scraped, "scraping kubelets");
                if nodes.is_empty() && !self.selector.is_empty() {
                    let selector = &self.selector;
                    tracing::warn!(
                        selector,
                        "--node-selector fits no node, so no kubelet is scraped"
                    );
                }
                let new = unreachable.iter().filter(|node| !unaddressed.0.contains(**node));
                new.for_each(|node| self.no_address(node));
                unaddressed.0 = unreachable.into_iter().map(Box::from).collect();
            }
            Change::Applied(node) => {
                let name = &node.metadata.name;
                if unaddressed.is_new(name, self.fleet.apply(&node)) {
                    self.no_address(name);
                }
            }
            Change::Deleted(node) => {
                unaddressed.0.remove(&*node.metadata.name);
                self.fleet.remove(&node.metadata.name);
            }
        };
        let Following { client, path, instruments, .. } = self;
        follow(client, path, "nodes", Presence::Always, instruments, apply).await;
    }

    fn no_address(&self, node: &str) {
        let types = self.fleet.addressing.types.join(",");
        tracing::warn!(
            node,
            types,
            "the node has no address of --kubelet-preferred-address-types; its kubelet is not scraped"
        );
    }
}

/// The nodes of which it has been said that their kubelets cannot be addressed: nodes change all the time.
#[derive(Default)]
struct Unaddressed(HashSet<Box<str>>);

impl Unaddressed {
    /// Whether a node cannot be reached, and could before.
    fn is_new(&mut self, node: &str, reachable: bool) -> bool {
        if reachable {
            self.0.remove(node);
            return false;
        }
        self.0.insert(node.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_without_an_address_is_said_once() {
        let mut unaddressed = Unaddressed::default();
        for (node, reachable, said) in [
            ("a", true, false),
            ("a", false, true),
            ("a", false, false),
            ("b", false, true),
            ("a", true, false),
            ("a", false, true),
        ] {
            assert_eq!(unaddressed.is_new(node, reachable), said, "{node}");
        }
    }
}
