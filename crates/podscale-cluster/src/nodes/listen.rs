//! Where kubelets listen: the usual port on each node's own loopback address, or what the machine
//! allows instead.

use super::address;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// The port of kubelets.
pub const KUBELET_PORT: u16 = 10250;

/// The port of the nodes' kubelets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KubeletPort {
    /// This port if it is free on each node's own address, else any free one, on 127.0.0.1 where the
    /// machine has no other loopback address.
    Preferred(u16),
    /// This port on each node's own address and nothing else; 0 takes any free one.
    Required(u16),
}

impl Default for KubeletPort {
    fn default() -> KubeletPort {
        KubeletPort::Preferred(KUBELET_PORT)
    }
}

impl KubeletPort {
    /// The addresses that are tried for a node, in order.
    fn candidates(self, index: usize) -> Vec<SocketAddr> {
        let own = address::node(index);
        let any = [SocketAddr::new(own, 0), SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        match self {
            // Any free port is all that was asked for, so any loopback address serves.
            KubeletPort::Preferred(0) | KubeletPort::Required(0) => any.to_vec(),
            KubeletPort::Preferred(port) => [&[SocketAddr::new(own, port)], &any[..]].concat(),
            KubeletPort::Required(port) => vec![SocketAddr::new(own, port)],
        }
    }
}

/// A kubelet's socket.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    /// Why it is not where it was to be.
    fallback: Option<Fallback>,
}

/// An address that could not be had.
#[derive(Debug)]
struct Fallback {
    wanted: SocketAddr,
    error: io::Error,
}

/// Listens for the kubelet of a node; the error is that of the address that was wanted most.
pub(super) fn listen(
    index: usize,
    port: KubeletPort,
    bind: &dyn Fn(SocketAddr) -> io::Result<TcpListener>,
) -> Result<Bound, (SocketAddr, io::Error)> {
    let mut fallback: Option<Fallback> = None;
    for wanted in port.candidates(index) {
        let bound = bind(wanted).and_then(|listener| Ok((listener.local_addr()?, listener)));
        match bound {
            Ok((address, listener)) => return Ok(Bound { listener, address, fallback }),
            Err(error) => {
                fallback.get_or_insert(Fallback { wanted, error });
            }
        }
    }
    // There is at least one candidate, so either something was bound or something failed.
    let fallback = fallback.unwrap_or_else(|| Fallback {
        wanted: SocketAddr::new(address::node(index), 0),
        error: io::ErrorKind::AddrNotAvailable.into(),
    });
    Err((fallback.wanted, fallback.error))
}

/// Says in one line where kubelets listen instead, if any is not where it was to be.
pub(super) fn notice<'a>(all: impl IntoIterator<Item = &'a Bound>) -> Option<String> {
    let moved: Vec<(&Fallback, IpAddr)> =
        all.into_iter().filter_map(|b| Some((b.fallback.as_ref()?, b.address.ip()))).collect();
    let (Fallback { wanted, error }, _) = moved.first()?;
    let count = moved.len();
    let nodes = if count == 1 { "1 node listens" } else { &format!("{count} nodes listen") };
    let own = moved.iter().all(|(fallback, ip)| fallback.wanted.ip() == *ip);
    let place = if own { "their own addresses" } else { "127.0.0.1" };
    Some(format!("{wanted} cannot be used ({error}): {nodes} on free ports of {place}"))
}

/// Binds at once, so that no other task can come between two candidates.
pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that has no loopback address but 127.0.0.1.
    fn only_localhost(address: SocketAddr) -> io::Result<TcpListener> {
        if address.ip() == Ipv4Addr::LOCALHOST {
            bind(address)
        } else {
            Err(io::ErrorKind::AddrNotAvailable.into())
        }
    }

    fn taken(index: usize) -> (TcpListener, u16) {
        let listener = bind(SocketAddr::new(address::node(index), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, port)
    }

    #[tokio::test]
    async fn a_preferred_port_that_is_taken_gives_way_to_a_free_one() {
        let (_held, port) = taken(0);
        let bound = listen(0, KubeletPort::Preferred(port), &bind).unwrap();
        assert_eq!(bound.address.ip(), address::node(0));
        assert_ne!(bound.address.port(), port);
        let text = notice([&bound]).unwrap();
        assert!(text.starts_with(&format!("127.0.1.1:{port} cannot be used (")), "{text}");
        assert!(text.ends_with(": 1 node listens on free ports of their own addresses"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[tokio::test]
    async fn a_required_port_that_is_taken_is_an_error() {
        let (_held, port) = taken(1);
        let (address, error) = listen(1, KubeletPort::Required(port), &bind).unwrap_err();
        assert_eq!(address, SocketAddr::new(address::node(1), port));
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[tokio::test]
    async fn without_other_loopback_addresses_all_nodes_share_one() {
        let nodes: Vec<Bound> = (0..3)
            .map(|index| listen(index, KubeletPort::default(), &only_localhost).unwrap())
            .collect();
        assert!(nodes.iter().all(|node| node.address.ip() == Ipv4Addr::LOCALHOST));
        assert!(nodes.iter().all(|node| node.address.port() != 0));
        let text = notice(&nodes).unwrap();
        assert!(text.starts_with("127.0.1.1:10250 cannot be used ("), "{text}");
        assert!(text.ends_with(": 3 nodes listen on free ports of 127.0.0.1"), "{text}");

        let any = listen(0, KubeletPort::Required(0), &only_localhost).unwrap();
        assert_eq!(any.address.ip(), Ipv4Addr::LOCALHOST, "any free port will do");
        let (address, error) = listen(0, KubeletPort::Required(7), &only_localhost).unwrap_err();
        assert_eq!(address.to_string(), "127.0.1.1:7");
        assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable);
    }

    #[tokio::test]
    async fn nothing_is_said_where_the_wanted_address_was_had() {
        let bound = listen(2, KubeletPort::Required(0), &bind).unwrap();
        assert_eq!(bound.address.ip(), address::node(2));
        assert_eq!(notice([&bound]), None);
    }
}
