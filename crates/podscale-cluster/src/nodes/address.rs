//! Addresses: each node has one of the loopback network's, each pod one of its node's block.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};

/// The most nodes there may be.
pub const MAX_NODES: usize = 4000;
const BLOCK_BITS: u32 = 12;
const NODES_PER_NETWORK: usize = 254;

/// The address of a node: 127.0.1.1, 127.0.1.2 and so on.
#[must_use]
pub fn node(index: usize) -> IpAddr {
    let index = index.min(MAX_NODES);
    // At most 4,000 / 254, so both fit a byte.
    let (network, host) = (1 + index / NODES_PER_NETWORK, 1 + index % NODES_PER_NETWORK);
    Ipv4Addr::new(127, 0, network as u8, host as u8).into()
}

/// The addresses of a node's pods.
#[derive(Debug)]
pub struct Block {
    base: u32,
    next: u32,
    used: HashSet<u32>,
}

impl Block {
    /// The block of a node, in 10.0.0.0/8.
    #[must_use]
    pub fn of(index: usize) -> Block {
        // At most 4,000 blocks of 4,096 addresses: below 2^24.
        let base =
            u32::from(Ipv4Addr::new(10, 0, 0, 0)) + ((index.min(MAX_NODES) as u32) << BLOCK_BITS);
        Block { base, next: 1, used: HashSet::new() }
    }

    /// The block in the usual notation.
    #[must_use]
    pub fn cidr(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.base), 32 - BLOCK_BITS)
    }

    /// An address that no other pod has; nothing if all are taken.
    pub fn take(&mut self) -> Option<IpAddr> {
        let size = (1u32 << BLOCK_BITS) - 2;
        for _ in 0..size {
            let offset = self.next;
            self.next = if offset >= size { 1 } else { offset + 1 };
            if self.used.insert(offset) {
                return Some(Ipv4Addr::from(self.base + offset).into());
            }
        }
        None
    }

    /// Keeps an address that a pod has already; whether it was free.
    pub fn keep(&mut self, address: IpAddr) -> bool {
        self.offset(address).is_some_and(|offset| self.used.insert(offset))
    }

    /// Gives an address back.
    pub fn give_back(&mut self, address: IpAddr) {
        if let Some(offset) = self.offset(address) {
            self.used.remove(&offset);
        }
    }

    fn offset(&self, address: IpAddr) -> Option<u32> {
        let IpAddr::V4(address) = address else {
            return None;
        };
        let offset = u32::from(address).checked_sub(self.base)?;
        (1..(1 << BLOCK_BITS) - 1).contains(&offset).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_loopback_addresses_of_their_own() {
        for (index, expected) in
            [(0, "127.0.1.1"), (1, "127.0.1.2"), (253, "127.0.1.254"), (254, "127.0.2.1")]
        {
            assert_eq!(node(index).to_string(), expected);
        }
        let all: HashSet<IpAddr> = (0..MAX_NODES).map(node).collect();
        assert_eq!(all.len(), MAX_NODES);
        assert!(all.iter().all(IpAddr::is_loopback));
    }

    #[test]
    fn addresses_of_pods_are_not_given_twice() {
        let mut block = Block::of(1);
        assert_eq!(block.cidr(), "10.0.16.0/20");
        let mut taken = HashSet::new();
        while let Some(address) = block.take() {
            assert!(taken.insert(address));
        }
        assert_eq!(taken.len(), 4094);
        assert!(taken.contains(&"10.0.16.1".parse().unwrap()));
        let freed = "10.0.20.7".parse().unwrap();
        block.give_back(freed);
        assert_eq!(block.take(), Some(freed));
        assert!(!block.keep(freed), "taken");
        assert!(!block.keep("10.0.0.1".parse().unwrap()), "of another node");
    }
}
