//! What the containers of the simulated nodes use.

use super::autoscalers::{PODS, Places, USED};
use super::kubelets::{Container, Usage};
use jiff::Timestamp;
use parking_lot::Mutex;
use std::sync::Arc;

/// How many pods each node has whose use does not change.
pub const STEADY_PODS: usize = 30;
/// Over how many namespaces those are spread.
const NAMESPACES: usize = 50;
const MIB: f64 = 1_048_576.0;
/// What every counter begins with, as that of a container which has run for a while does.
const FIRST_SECONDS: f64 = 1000.0;

/// The namespace and the name of a pod whose use does not change.
pub fn steady_pod(node: usize, pod: usize) -> (String, String) {
    let namespace = format!("shop-{}", (node * 7 + pod) % NAMESPACES);
    (namespace, format!("web-7d4b9c6f5d-n{node:04}p{pod:02}"))
}

/// Every container burns the same share of a core all the time, each another one: whenever two programs
/// look, they must find the same.
pub fn steady() -> Usage {
    let start = Timestamp::now().as_millisecond();
    Arc::new(move |node, now| {
        let seconds = seconds(now - start);
        let container = |pod| {
            let (namespace, name) = steady_pod(node, pod);
            let number = node * STEADY_PODS + pod;
            Container {
                namespace,
                pod: name,
                cpu_seconds: FIRST_SECONDS + seconds * thousandths(10 + number % 190),
                memory_bytes: thousandths(1000 * (20 + number % 400)) * MIB,
            }
        };
        (0..STEADY_PODS).map(container).collect()
    })
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn thousandths(count: usize) -> f64 {
    count as f64 / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn seconds(millis: i64) -> f64 {
    millis.max(0) as f64 / 1000.0
}

/// What a pod has used until a moment.
#[derive(Clone, Copy)]
struct Counter {
    cpu_seconds: f64,
    until: i64,
}

/// What the pods of autoscalers use: half of what they request, or twice as much from some moment on; and
/// up to three percent more or less, which nobody scales for.
pub struct Changing {
    places: Places,
    nodes: usize,
    /// By autoscaler: what each of its pods uses, in cores, and has used.
    known: Vec<Mutex<(f64, [Counter; PODS])>>,
}

impl Changing {
    /// All pods are spread over so many nodes; those of one autoscaler are on different ones.
    pub fn new(places: Places, nodes: usize) -> Arc<Changing> {
        let until = Timestamp::now().as_millisecond();
        let counter = Counter { cpu_seconds: FIRST_SECONDS, until };
        let known = (0..places.count).map(|_| Mutex::new((cores(USED), [counter; PODS])));
        Arc::new(Changing { places, nodes, known: known.collect() })
    }

    /// The pods of an autoscaler use twice as much from now on.
    pub fn double(&self, number: usize) {
        let mut known = self.known[number].lock();
        let now = Timestamp::now().as_millisecond();
        let (used, counters) = &mut *known;
        counters.iter_mut().for_each(|counter| counter.go_on(*used, number, now));
        *used = cores(2 * USED);
    }

    pub fn usage(self: &Arc<Changing>) -> Usage {
        let changing = Arc::clone(self);
        Arc::new(move |node, now| changing.containers(node, now))
    }

    fn containers(&self, node: usize, now: i64) -> Vec<Container> {
        let pods = (node..self.places.count * PODS).step_by(self.nodes);
        let container = |pod: usize| {
            let (number, pod) = (pod / PODS, pod % PODS);
            let place = self.places.place(number);
            let mut known = self.known[number].lock();
            let (used, counters) = &mut *known;
            counters[pod].go_on(*used, number, now);
            Container {
                pod: place.pod(pod),
                namespace: place.namespace,
                cpu_seconds: counters[pod].cpu_seconds,
                memory_bytes: 64.0 * MIB,
            }
        };
        pods.map(container).collect()
    }
}

impl Counter {
    fn go_on(&mut self, cores: f64, number: usize, now: i64) {
        let (number, round) = (i64::try_from(number).unwrap_or(0), now / 5000);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let wave = ((number * 7 + round * 11) % 31 - 15) as f64 / 500.0;
        self.cpu_seconds += cores * (1.0 + wave) * seconds(now - self.until);
        self.until = self.until.max(now);
    }
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn cores(thousandths: i64) -> f64 {
    thousandths as f64 / 1000.0
}
