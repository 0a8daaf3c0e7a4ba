//! The machines under a simulated workload: without a pool there is always room; with one, pods wait
//! for nodes that take their time to come. Pods are packed perfectly.

use super::fleet::NEVER;
use crate::environment::{NodePool, seconds};
use podscale_core::Time;

/// What the draws of a node's delays are for.
const NODE_START_UP: u64 = 201;

#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    pool: Option<NodePool>,
    seed: u64,
    ready: u32,
    started: u64,
    /// When those that start will take pods.
    starting: Vec<Time>,
    /// Since when there have been more than pods need.
    idle_since: Option<Time>,
}

impl Nodes {
    pub(crate) fn new(pool: Option<NodePool>, seed: u64) -> Nodes {
        let ready = pool.map_or(0, |pool| pool.min_nodes);
        Nodes { pool, seed, ready, started: 0, starting: Vec::new(), idle_since: None }
    }

    /// Has room for the pods that are there at the beginning.
    pub(crate) fn begin(&mut self, pods: usize) {
        if let Some(pool) = self.pool {
            self.ready = self.ready.max(needed(&pool, pods));
        }
    }

    /// When a node comes or goes next.
    pub(crate) fn next_due(&self) -> Time {
        let coming = self.starting.iter().copied().min().unwrap_or(NEVER);
        let going = match (self.pool, self.idle_since) {
            (Some(pool), Some(since)) => since.after(seconds(pool.empty_seconds)),
            _ => NEVER,
        };
        coming.min(going)
    }

    /// How many of the pods that wait can be placed now beside those that are placed; starts nodes
    /// for the others, and lets nodes go that nobody needs.
    pub(crate) fn room(&mut self, placed: usize, waiting: usize, now: Time) -> usize {
        let Some(pool) = self.pool else { return waiting };
        let before = self.starting.len();
        self.starting.retain(|due| *due > now);
        self.ready = self.ready.saturating_add((before - self.starting.len()) as u32);
        let wanted = needed(&pool, placed + waiting).clamp(pool.min_nodes, pool.max_nodes);
        let coming = self.ready.saturating_add(self.starting.len() as u32);
        for _ in coming..wanted {
            let delay = pool.start_up.draw(self.seed, self.started, NODE_START_UP);
            self.started += 1;
            self.starting.push(now.after(delay));
        }
        self.remove_idle(&pool, wanted, now);
        let places = (self.ready as usize).saturating_mul(pool.pods_per_node as usize);
        places.saturating_sub(placed).min(waiting)
    }

    fn remove_idle(&mut self, pool: &NodePool, wanted: u32, now: Time) {
        if self.ready <= wanted {
            self.idle_since = None;
            return;
        }
        let since = *self.idle_since.get_or_insert(now);
        if since.after(seconds(pool.empty_seconds)) <= now {
            self.ready = wanted;
            self.idle_since = None;
        }
    }
}

fn needed(pool: &NodePool, pods: usize) -> u32 {
    let pods = u32::try_from(pods).unwrap_or(u32::MAX);
    pods.div_ceil(pool.pods_per_node.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Delay;
    use podscale_core::Span;

    #[test]
    fn pods_wait_for_nodes_and_empty_nodes_go() {
        let at = |seconds: i64| Time(0).after(Span::seconds(seconds));
        let pool = NodePool {
            pods_per_node: 4,
            min_nodes: 1,
            max_nodes: 3,
            start_up: Delay::Fixed { seconds: 60.0 },
            empty_seconds: 100.0,
        };
        let mut nodes = Nodes::new(Some(pool), 1);
        nodes.begin(3);
        assert_eq!(nodes.room(3, 2, at(0)), 1, "one more place on the only node");
        assert_eq!(nodes.next_due(), at(60));
        assert_eq!(nodes.room(4, 1, at(30)), 0, "the new node is on its way, and no second one");
        assert_eq!(nodes.room(4, 1, at(60)), 1);
        assert_eq!(nodes.room(5, 100, at(70)), 3, "and one more node is all there may be");
        assert_eq!(nodes.room(8, 97, at(130)), 4);
        assert_eq!((nodes.room(2, 0, at(200)), nodes.next_due()), (0, at(300)));
        nodes.room(2, 0, at(300));
        assert_eq!(nodes.room(2, 9, at(301)), 2, "back to one node");
        assert_eq!(Nodes::new(None, 1).room(1000, 50, at(0)), 50);
    }
}
