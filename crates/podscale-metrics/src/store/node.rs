//! The samples of one node and its pods, in two lists that are as long as they must be.

use super::PodKey;
use super::pair::Pair;
use crate::interned::Interned;
use crate::scrape::{Row, Scrape};
use std::sync::Arc;

/// One container.
#[derive(Clone, Debug)]
pub(super) struct Container {
    pub(super) name: Arc<str>,
    pub(super) pair: Pair,
}

/// One pod, and where its containers end in the node's list; they begin where those of the pod before
/// end.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub(super) namespace: Arc<str>,
    pub(super) name: Arc<str>,
    end: u32,
}

impl Pod {
    fn names(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

/// What is known of one node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) pair: Pair,
    /// When it last had something new, by our clock.
    pub(super) news_ms: i64,
    /// By namespace and name.
    pub(super) pods: Box<[Pod]>,
    /// By pod and name.
    containers: Box<[Container]>,
}

/// When a scrape was made, and how samples are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) scraped_ms: i64,
    pub(super) resolution_ms: i64,
    pub(super) max_age_ms: i64,
}

impl Node {
    /// One that was never scraped.
    pub(super) fn new(moment: Moment) -> Node {
        let (pods, containers) = (Box::default(), Box::default());
        Node { pair: Pair::default(), news_ms: moment.scraped_ms, pods, containers }
    }

    /// The containers of a pod.
    pub(super) fn containers(&self, namespace: &str, name: &str) -> Option<&[Container]> {
        let place = self.pods.binary_search_by(|pod| pod.names().cmp(&(namespace, name))).ok()?;
        Some(self.containers_at(place))
    }

    fn containers_at(&self, place: usize) -> &[Container] {
        let end_of = |place: usize| self.pods.get(place).map_or(0, |pod| pod.end as usize);
        let begin = place.checked_sub(1).map_or(0, end_of);
        self.containers.get(begin..end_of(place)).unwrap_or_default()
    }

    /// Whether a scrape has exactly the containers that are known.
    fn has_shape(&self, scrape: &Scrape) -> bool {
        let mut rows = scrape.rows().iter();
        let same = self.pods.iter().enumerate().all(|(place, pod)| {
            self.containers_at(place).iter().all(|container| {
                let known = [&*pod.namespace, &*pod.name, &*container.name];
                rows.next().is_some_and(|row| scrape.names(row) == known)
            })
        });
        same && rows.next().is_none()
    }

    /// Takes in a scrape and says which pods have new samples; `old` gets the pods from before if
    /// they are not the same any more.
    pub(super) fn apply(
        &mut self,
        scrape: &Scrape,
        moment: Moment,
        names: &mut Interned<str>,
        old: &mut Option<Box<[Pod]>>,
    ) -> (bool, Vec<PodKey>) {
        let Moment { scraped_ms, resolution_ms, .. } = moment;
        if !self.has_shape(scrape) {
            *old = Some(self.reshape(scrape, moment, names));
        }
        let mut news = self.pair.take(&scrape.node, scraped_ms, resolution_ms) || old.is_some();
        let mut changed = Vec::new();
        let (mut rows, mut begin) = (scrape.rows().iter().peekable(), 0);
        for pod in &self.pods {
            let end = pod.end as usize;
            let mut fresh = false;
            for container in self.containers.get_mut(begin..end).unwrap_or_default() {
                // Those that were kept without being mentioned have no row.
                let known = [&*pod.namespace, &*pod.name, &*container.name];
                if let Some(row) = rows.next_if(|row| scrape.names(row) == known) {
                    fresh |= container.pair.take(&row.reading, scraped_ms, resolution_ms);
                }
            }
            if fresh {
                changed.push((Arc::clone(&pod.namespace), Arc::clone(&pod.name)));
            }
            begin = end;
        }
        news |= !changed.is_empty();
        if news {
            self.news_ms = scraped_ms;
        }
        (news, changed)
    }

    /// Makes room for exactly the containers of a scrape, with what is known of them; gives the pods
    /// from before. If parts of the scrape could not be read, what it does not mention stays as well,
    /// until it is too old.
    fn reshape(
        &mut self,
        scrape: &Scrape,
        moment: Moment,
        names: &mut Interned<str>,
    ) -> Box<[Pod]> {
        let keep_max_age_ms = scrape.malformed().map(|_| moment.max_age_ms);
        let mut kept = Vec::new();
        if let Some(max_age_ms) = keep_max_age_ms {
            for (place, pod) in self.pods.iter().enumerate() {
                let young = |of: &&Container| of.pair.age_ms(moment.scraped_ms) <= max_age_ms;
                let containers = self.containers_at(place).iter().filter(young);
                kept.extend(containers.map(|container| (pod, container)));
            }
        }
        let mut kept = kept.into_iter().peekable();
        let mut built = Builder::default();
        for row in scrape.rows() {
            let [namespace, name, container] = scrape.names(row);
            let mentioned = (namespace, name, container);
            while let Some((pod, container)) =
                kept.next_if(|(pod, c)| (&*pod.namespace, &*pod.name, &*c.name) < mentioned)
            {
                built.keep(pod, container);
            }
            kept.next_if(|(pod, c)| (&*pod.namespace, &*pod.name, &*c.name) == mentioned);
            self.add(&mut built, scrape, row, names);
        }
        kept.for_each(|(pod, container)| built.keep(pod, container));
        let Builder { pods, containers } = built;
        self.containers = containers.into_boxed_slice();
        std::mem::replace(&mut self.pods, pods.into_boxed_slice())
    }

    fn add(&self, built: &mut Builder, scrape: &Scrape, row: &Row, names: &mut Interned<str>) {
        let [namespace, name, container] = scrape.names(row);
        let place = self.pods.binary_search_by(|pod| pod.names().cmp(&(namespace, name))).ok();
        let known = place.and_then(|place| self.pods.get(place));
        if built.pods.last().is_none_or(|pod| pod.names() != (namespace, name)) {
            let pod = match known {
                Some(pod) => Pod { end: 0, ..pod.clone() },
                None => Pod { namespace: names.intern(namespace), name: name.into(), end: 0 },
            };
            built.pods.push(pod);
        }
        let old = place.map(|place| self.containers_at(place)).unwrap_or_default();
        let old = old.iter().find(|known| *known.name == *container);
        let container = old
            .cloned()
            .unwrap_or_else(|| Container { name: names.intern(container), pair: Pair::default() });
        built.push(container);
    }
}

/// Lists that are being made, in order.
#[derive(Default)]
struct Builder {
    pods: Vec<Pod>,
    containers: Vec<Container>,
}

impl Builder {
    /// A container of the last pod.
    fn push(&mut self, container: Container) {
        self.containers.push(container);
        if let Some(pod) = self.pods.last_mut() {
            pod.end = u32::try_from(self.containers.len()).unwrap_or(u32::MAX);
        }
    }

    /// A container that is kept as it is.
    fn keep(&mut self, pod: &Pod, container: &Container) {
        if self.pods.last().is_none_or(|last| last.names() != pod.names()) {
            self.pods.push(pod.clone());
        }
        self.push(container.clone());
    }
}
