//! Ports for servers that the tests start, which take theirs as an argument and may be restarted on the same one.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Where ports are looked for: below those that systems give to outgoing connections, any of which could take a port
/// between its choice and the start of its server, or while the server is down.
const FIRST: u16 = 12_000;
const COUNT: u16 = 18_000;

/// A port of the loopback address that nobody listens on, another one at each call.
///
/// # Errors
/// If all of them are taken.
pub(super) fn free_port() -> std::io::Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test programs that run at the same time begin at different places.
    let start = std::process::id().wrapping_mul(7_919) % u32::from(COUNT);
    for _ in 0..COUNT {
        let place = (start + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        let port = FIRST + u16::try_from(place).unwrap_or_default();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return Ok(port);
        }
    }
    Err(std::io::Error::other(format!("no port from {FIRST} on is free")))
}
