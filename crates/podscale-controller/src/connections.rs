//! Serves a bounded number of connections, and closes those that keep it waiting: nobody who can reach
//! the port can use up the memory or the file descriptors of the program.

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};
use tower::{ServiceExt, service_fn};

/// The pause after the system had no descriptor for a connection.
const ACCEPT_BACK_OFF: Duration = Duration::from_secs(1);
/// The largest head of a request.
const HEAD_BYTES: usize = 32 * 1024;
/// How many requests one connection may have open at the same time.
const MAX_STREAMS: u32 = 256;

/// How many connections are accepted, and for how long they may be idle; wall-clock.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there are at once.
    pub connections: usize,
    /// How many of them come from one address, so that it cannot keep out the others.
    pub per_address: usize,
    /// How long a connection may be without a whole request.
    pub request_timeout: Duration,
    /// How long an answer may wait for its reader.
    pub write_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            per_address: 64,
            request_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(30),
        }
    }
}

/// Makes streams of accepted sockets: plain ones, or encrypted.
pub trait Accept: Clone + Send + Sync + 'static {
    /// What is read and written.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    /// What is known of the peer; every request has it among its extensions.
    type Peer: Clone + Send + Sync + 'static;

    /// Makes a stream; none if the peer cannot be served.
    fn accept(
        &self,
        socket: WriteTimeout,
    ) -> impl Future<Output = Option<Accepted<Self::Stream, Self::Peer>>> + Send;
}

/// A connection that can be served.
pub struct Accepted<S, P> {
    /// What is read and written.
    pub stream: S,
    /// Who is at the other end.
    pub peer: P,
    /// Whether HTTP/2 was agreed on.
    pub http2: bool,
}

/// Connections without encryption.
#[derive(Clone, Copy, Debug)]
pub struct Plain;

impl Accept for Plain {
    type Stream = WriteTimeout;
    type Peer = ();

    async fn accept(&self, stream: WriteTimeout) -> Option<Accepted<WriteTimeout, ()>> {
        Some(Accepted { stream, peer: (), http2: false })
    }
}

/// Serves until `stop`, and then until all open connections have ended.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    serve_with(listener, Plain, router, limits, stop).await;
}

/// Serves as [`serve`] does, over streams that `accept` makes.
pub async fn serve_with(
    listener: TcpListener,
    accept: impl Accept,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (counts, graceful, mut open) = (Counts::default(), GracefulShutdown::new(), JoinSet::new());
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = open.join_next(), if !open.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_of_one_connection(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_BACK_OFF).await;
                continue;
            }
        };
        // Above the limit, the peer sees the connection end at once and can try again.
        let Some(permit) = counts.acquire(address.ip(), limits) else { continue };
        let (router, accept, watcher) = (router.clone(), accept.clone(), graceful.watcher());
        open.spawn(async move {
            let socket = WriteTimeout::new(stream, limits.write_timeout);
            let accepting = tokio::time::timeout(limits.request_timeout, accept.accept(socket));
            if let Ok(Some(accepted)) = accepting.await {
                connection(accepted, router, limits, watcher).await;
            }
            drop(permit);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Answers the requests of one connection until it ends.
async fn connection<S, P>(
    accepted: Accepted<S, P>,
    router: Router,
    limits: Limits,
    watcher: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    P: Clone + Send + Sync + 'static,
{
    let Accepted { stream, peer, http2 } = accepted;
    let builder = Builder::new(TokioExecutor::new());
    let mut builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    let http = &mut builder.http1();
    http.timer(TokioTimer::new()).header_read_timeout(limits.request_timeout);
    http.max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(HEAD_BYTES as u32)
        .keep_alive_interval(limits.request_timeout)
        .keep_alive_timeout(limits.write_timeout);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        router.clone().oneshot(request)
    });
    let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    // A peer that goes away is no error of ours.
    let _ = watcher.watch(serving).await;
}

/// Whether the error is that of one connection, and not of all.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// How many connections are open, by the peer's address.
#[derive(Clone, Default)]
struct Counts(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl Counts {
    fn acquire(&self, address: IpAddr, limits: Limits) -> Option<Permit> {
        let mut counts = self.0.lock();
        let (all, same) = (counts.values().sum::<usize>(), counts.get(&address).copied());
        if all >= limits.connections || same.unwrap_or(0) >= limits.per_address {
            return None;
        }
        *counts.entry(address).or_default() += 1;
        Some(Permit { counts: self.clone(), address })
    }
}

/// The right to one connection, given back when this is dropped.
struct Permit {
    counts: Counts,
    address: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.counts.0.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

/// A stream whose writes fail when the peer reads nothing for too long.
pub struct WriteTimeout {
    stream: TcpStream,
    timeout: Duration,
    /// Runs while a write is pending.
    deadline: Pin<Box<Sleep>>,
    pending: bool,
}

impl WriteTimeout {
    fn new(stream: TcpStream, timeout: Duration) -> WriteTimeout {
        let deadline = Box::pin(tokio::time::sleep(timeout));
        WriteTimeout { stream, timeout, deadline, pending: false }
    }

    fn poll_in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), context) {
            self.pending = false;
            return Poll::Ready(written);
        }
        if !self.pending {
            self.pending = true;
            self.deadline.as_mut().reset(Instant::now() + self.timeout);
        }
        ready!(self.deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for WriteTimeout {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeout {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_in_time(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_in_time(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_in_time(context, |stream, context| stream.poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_in_time(context, |stream, context| stream.poll_write_vectored(context, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Longer than a test may take.
    const LONG: Duration = Duration::from_secs(600);
    const SHORT: Duration = Duration::from_millis(50);

    async fn open(limits: Limits) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let large = async || vec![b'x'; 64 * 1024 * 1024];
        let router = Router::new().route("/", get(async || "hello")).route("/large", get(large));
        tokio::spawn(serve(listener, router, limits, std::future::pending()));
        address
    }

    async fn connect(address: SocketAddr, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(request.as_bytes()).await.expect("sent");
        stream
    }

    /// Everything that the server sends until the connection ends, or as much as arrived.
    async fn read_all(mut stream: TcpStream) -> String {
        let mut answer = Vec::new();
        // A connection may be reset.
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    const WHOLE: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const LAST: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    /// Tries again until it is served.
    async fn is_served(address: SocketAddr) {
        while !read_all(connect(address, LAST).await).await.ends_with("hello") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn a_connection_without_a_request_in_time_is_closed() {
        let address =
            open(Limits { request_timeout: SHORT, write_timeout: LONG, ..Limits::default() }).await;
        for (what, request) in [
            ("sends nothing", ""),
            ("sends half a head", "GET / HTTP/1.1\r\nHost:"),
            ("sends too large a head", &"GET / HTTP/1.1\r\n".repeat(4096)),
        ] {
            let answer = read_all(connect(address, request).await).await;
            assert!(!answer.contains("hello"), "{what}: {answer}");
        }
        let answer = read_all(connect(address, WHOLE).await).await;
        assert!(
            answer.ends_with("hello"),
            "and it is closed when no other request comes: {answer}"
        );
    }

    #[tokio::test]
    async fn connections_above_the_limits_are_closed() {
        for limits in [
            Limits { connections: 2, per_address: 9, request_timeout: LONG, write_timeout: LONG },
            Limits { connections: 9, per_address: 2, request_timeout: LONG, write_timeout: LONG },
        ] {
            let address = open(limits).await;
            let (first, second) = (connect(address, "GET").await, connect(address, "GET").await);
            assert_eq!(read_all(connect(address, LAST).await).await, "", "{limits:?}");
            drop(first);
            is_served(address).await;
            drop(second);
        }
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_closed() {
        let limits =
            Limits { connections: 1, per_address: 1, request_timeout: LONG, write_timeout: SHORT };
        let address = open(limits).await;
        let slow = connect(address, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await;
        is_served(address).await;
        let received = read_all(slow).await.len();
        assert!(
            received < 64 * 1024 * 1024,
            "{received} bytes were sent to a peer that did not read"
        );
    }
}
