//! The nodes of a cluster, as a watch of them tells it, and their kubelets.

use super::Scraper;
use super::address::Addressing;
use crate::directory::Directory;
use podscale_api::node::Node;
use std::collections::HashSet;
use std::sync::Arc;

/// Keeps the scraper and the labels of nodes up to date.
pub struct Fleet {
    /// Scrapes the kubelets.
    pub scraper: Scraper,
    /// Knows the labels.
    pub directory: Arc<Directory>,
    /// Says where kubelets are.
    pub addressing: Addressing,
}

impl Fleet {
    /// These are all nodes there are; the names of those that cannot be reached.
    pub fn replace<'a>(&self, nodes: &'a [Node]) -> Vec<&'a str> {
        let names: HashSet<&str> = nodes.iter().map(|node| &*node.metadata.name).collect();
        self.scraper.retain(|node| names.contains(node));
        let labels = |node: &Node| ((*node.metadata.name).into(), node.metadata.labels.clone());
        self.directory.replace_nodes(nodes.iter().map(labels).collect());
        let unreachable = nodes.iter().filter(|node| !self.scrape(node));
        unreachable.map(|node| &*node.metadata.name).collect()
    }

    /// A node is new or has changed; whether it can be reached.
    pub fn apply(&self, node: &Node) -> bool {
        self.directory.apply_node(&node.metadata.name, node.metadata.labels.clone());
        self.scrape(node)
    }

    /// A node is gone.
    pub fn remove(&self, name: &str) {
        self.scraper.remove(name);
        self.directory.remove_node(name);
    }

    /// Stops scraping and forgets everything.
    pub fn clear(&self) {
        self.replace(&[]);
    }

    fn scrape(&self, node: &Node) -> bool {
        let name = &node.metadata.name;
        match self.addressing.target(node) {
            Some(target) => self.scraper.set(name, target),
            None => {
                self.scraper.remove(name);
                return false;
            }
        }
        true
    }
}
