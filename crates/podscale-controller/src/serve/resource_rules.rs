//! `metrics.k8s.io` from Prometheus, by the `resourceRules` of prometheus-adapter's configuration, where no
//! kubelets are scraped.

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use podscale_metrics::answer::{Answering, Refusal};
use podscale_metrics::directory::{NodeEntry, PodEntry};
use podscale_metrics::resource::UsageProvider;
use podscale_metrics::rules::engine::{Engine, EngineError};
use podscale_metrics::rules::usage::{Measured, Scope, Used as Sample};
use podscale_metrics::rules::{ResourceRules, RuleError};
use podscale_metrics::store::{PodUsed, Used};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long an answer of Prometheus serves others who ask the same.
const MAX_AGE: Duration = Duration::from_secs(1);
/// How many namespaces are asked for at once, where a rule cannot be asked for all of them.
const CONCURRENT_NAMESPACES: usize = 8;
const NANOS_PER_MILLI: u64 = 1_000_000;

/// What pods and nodes use, as Prometheus says.
pub struct RuledUsage {
    engine: Arc<Engine>,
    /// How to ask where the rules do not say it.
    everyday: ResourceRules,
}

/// What is known of one container or node.
#[derive(Clone, Copy, Default)]
struct Amounts {
    cpu: Option<Amount>,
    memory: Option<Amount>,
}

/// Thousandths, and when they were computed.
#[derive(Clone, Copy)]
struct Amount {
    milli: u64,
    time: Timestamp,
}

impl Amounts {
    fn put(&mut self, measured: Measured, sample: &Sample) {
        // Negative ones are none.
        let milli = u64::try_from(sample.milli).unwrap_or_default();
        let sample = Some(Amount { milli, time: sample.time });
        match measured {
            Measured::Cpu => self.cpu = sample,
            Measured::Memory => self.memory = sample,
        }
    }

    /// What is not known of one of several containers is nothing, as with prometheus-adapter.
    fn used(&self, window: Duration) -> Option<Used> {
        let time = [self.cpu, self.memory].into_iter().flatten().map(|one| one.time).min()?;
        let milli = |sample: Option<Amount>| sample.map_or(0, |sample| sample.milli);
        Some(Used {
            // The earliest time is the careful one about pods that have just started.
            time,
            window,
            cpu_nanos: milli(self.cpu).saturating_mul(NANOS_PER_MILLI),
            memory_bytes: milli(self.memory) / 1000,
        })
    }
}

/// The containers of a pod.
type Containers = BTreeMap<Box<str>, Amounts>;

/// The containers of pods, by namespace and name.
type Pods = HashMap<(Box<str>, Box<str>), Containers>;

impl RuledUsage {
    /// Asks through an engine, by its rules or the everyday ones.
    ///
    /// # Errors
    /// Never: a test reads the everyday rules.
    pub fn new(engine: Arc<Engine>) -> Result<RuledUsage, Vec<RuleError>> {
        Ok(RuledUsage { engine, everyday: ResourceRules::everyday()? })
    }

    fn window(&self) -> Duration {
        self.engine.rules().resource().unwrap_or(&self.everyday).window
    }

    /// Whether all namespaces can be asked for with one query.
    fn serves_cluster(&self) -> bool {
        let rules = self.engine.rules();
        let rules = rules.resource().unwrap_or(&self.everyday);
        rules.of(Measured::Cpu).serves_cluster() && rules.of(Measured::Memory).serves_cluster()
    }

    async fn ask(&self, scope: Scope<'_>) -> Result<Pods, Refusal> {
        let of = |measured| self.engine.containers(measured, scope, &self.everyday, MAX_AGE);
        let (cpu, memory) = tokio::join!(of(Measured::Cpu), of(Measured::Memory));
        let asked = match scope {
            Scope::Cluster => None,
            Scope::Namespace(namespace) | Scope::Pods(namespace, _) => Some(namespace),
        };
        let mut pods = Pods::new();
        for (measured, samples) in [(Measured::Cpu, cpu), (Measured::Memory, memory)] {
            for sample in samples.map_err(|error| refusal(&error))? {
                let namespace = asked.map_or_else(|| sample.namespace.clone(), Box::from);
                let containers = pods.entry((namespace, sample.name.clone())).or_default();
                containers.entry(sample.container.clone()).or_default().put(measured, &sample);
            }
        }
        Ok(pods)
    }

    async fn ask_for(&self, namespace: Option<&str>, pods: &[PodEntry]) -> Result<Pods, Refusal> {
        match (namespace, pods) {
            (Some(namespace), [((_, name), _)]) => {
                self.ask(Scope::Pods(namespace, &[&**name])).await
            }
            (Some(namespace), _) => self.ask(Scope::Namespace(namespace)).await,
            (None, _) if self.serves_cluster() => self.ask(Scope::Cluster).await,
            (None, _) => {
                // Owned names: with borrowed ones the compiler cannot see that this may move between threads.
                let all: BTreeSet<Box<str>> =
                    pods.iter().map(|((namespace, _), _)| (&**namespace).into()).collect();
                let asked = all
                    .into_iter()
                    .map(|namespace| async move { self.ask(Scope::Namespace(&namespace)).await });
                let asked = futures::stream::iter(asked).buffer_unordered(CONCURRENT_NAMESPACES);
                let join = |mut all: Pods, some: Pods| {
                    all.extend(some);
                    ready(Ok(all))
                };
                asked.try_fold(Pods::new(), join).await
            }
        }
    }

    async fn of_pods(
        &self,
        namespace: Option<&str>,
        pods: &[PodEntry],
    ) -> Result<Vec<Option<PodUsed>>, Refusal> {
        if pods.is_empty() {
            return Ok(Vec::new());
        }
        let (mut known, window) = (self.ask_for(namespace, pods).await?, self.window());
        let used = |((namespace, name), _): &PodEntry| {
            let key: (Box<str>, Box<str>) = ((&**namespace).into(), (&**name).into());
            pod_used(&known.remove(&key)?, window)
        };
        Ok(pods.iter().map(used).collect())
    }

    async fn of_nodes(&self, nodes: &[NodeEntry]) -> Result<Vec<Option<Used>>, Refusal> {
        let one = match nodes {
            [] => return Ok(Vec::new()),
            [(name, _)] => Some(&**name),
            _ => None,
        };
        let names: &[&str] = one.as_slice();
        let of = |measured| self.engine.nodes(measured, names, &self.everyday, MAX_AGE);
        let (cpu, memory) = tokio::join!(of(Measured::Cpu), of(Measured::Memory));
        let mut known = HashMap::<Box<str>, Amounts>::new();
        for (measured, samples) in [(Measured::Cpu, cpu), (Measured::Memory, memory)] {
            for sample in samples.map_err(|error| refusal(&error))? {
                known.entry(sample.name.clone()).or_default().put(measured, &sample);
            }
        }
        let window = self.window();
        let used = |(name, _): &NodeEntry| {
            let amounts = known.get(&**name)?;
            // A half of it would look like all of it.
            (amounts.cpu.is_some() && amounts.memory.is_some()).then(|| amounts.used(window))?
        };
        Ok(nodes.iter().map(used).collect())
    }
}

/// A pod of which cpu or memory is not known at all is not known.
fn pod_used(containers: &Containers, window: Duration) -> Option<PodUsed> {
    let known = |of: fn(&Amounts) -> bool| containers.values().any(of);
    if !known(|amounts| amounts.cpu.is_some()) || !known(|amounts| amounts.memory.is_some()) {
        return None;
    }
    let used = containers
        .iter()
        .filter_map(|(name, amounts)| Some((Arc::<str>::from(&**name), amounts.used(window)?)));
    let containers: smallvec::SmallVec<[(Arc<str>, Used); 1]> = used.collect();
    let time = containers.iter().map(|(_, used)| used.time).min()?;
    Some(PodUsed { time, window, containers })
}

fn refusal(error: &EngineError) -> Refusal {
    Refusal::internal(&error.to_string())
}

impl UsageProvider for RuledUsage {
    fn keeps_samples(&self) -> bool {
        false
    }

    fn pods<'a>(
        &'a self,
        namespace: Option<&'a str>,
        pods: &'a [PodEntry],
    ) -> Answering<'a, Vec<Option<PodUsed>>> {
        Box::pin(self.of_pods(namespace, pods))
    }

    fn nodes<'a>(&'a self, nodes: &'a [NodeEntry]) -> Answering<'a, Vec<Option<Used>>> {
        Box::pin(self.of_nodes(nodes))
    }
}
