//! Lets a bounded number of visitors in, and shows those out who keep it waiting: nobody who can reach
//! the port can use up the memory or the file descriptors of the program.

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
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

/// How long is waited when the system has no descriptor for a visitor.
const EXHAUSTED: Duration = Duration::from_secs(1);
/// The largest head of a request.
const HEAD_BYTES: usize = 32 * 1024;

/// How many are let in, and for how long they may do nothing; wall-clock time.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many connections there are at once.
    pub connections: usize,
    /// How many of them come from one address, so that it cannot keep out the others.
    pub of_one: usize,
    /// How long a connection may be without a whole request.
    pub request: Duration,
    /// How long an answer may wait to be taken.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            of_one: 64,
            request: Duration::from_secs(30),
            stall: Duration::from_secs(30),
        }
    }
}

/// Serves until told to stop, and then until everybody who is inside has left.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let (guests, graceful, mut open) = (Guests::default(), GracefulShutdown::new(), JoinSet::new());
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
            Err(error) if is_the_visitors(&error) => continue,
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection to the admin pages");
                tokio::time::sleep(EXHAUSTED).await;
                continue;
            }
        };
        // Who is not let in sees the connection end at once, and can come again.
        let Some(place) = guests.enter(address.ip(), limits) else { continue };
        let (router, watcher) = (router.clone(), graceful.watcher());
        open.spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new()).http1_only();
            let http = &mut builder.http1();
            http.timer(TokioTimer::new()).header_read_timeout(limits.request);
            http.max_buf_size(HEAD_BYTES);
            let stream = TokioIo::new(Hurried::new(stream, limits.stall));
            let serving = builder.serve_connection(stream, TowerToHyperService::new(router));
            // A visitor who goes away is no matter.
            let _ = watcher.watch(serving).await;
            drop(place);
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// Whether the fault is that of one connection, and not of all.
fn is_the_visitors(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// How many are inside, by where they come from.
#[derive(Clone, Default)]
struct Guests(Arc<Mutex<HashMap<IpAddr, usize>>>);

impl Guests {
    fn enter(&self, address: IpAddr, limits: Limits) -> Option<Place> {
        let mut guests = self.0.lock();
        let (all, of_one) = (guests.values().sum::<usize>(), guests.get(&address).copied());
        if all >= limits.connections || of_one.unwrap_or(0) >= limits.of_one {
            return None;
        }
        *guests.entry(address).or_default() += 1;
        Some(Place { guests: self.clone(), address })
    }
}

/// A place inside; it is free again when this is dropped.
struct Place {
    guests: Guests,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut guests = self.guests.0.lock();
        if let Some(count) = guests.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                guests.remove(&self.address);
            }
        }
    }
}

/// A stream that fails when what is written to it is not taken for too long.
struct Hurried {
    stream: TcpStream,
    patience: Duration,
    /// Runs while a write waits.
    end: Pin<Box<Sleep>>,
    waits: bool,
}

impl Hurried {
    fn new(stream: TcpStream, patience: Duration) -> Hurried {
        Hurried { stream, patience, end: Box::pin(tokio::time::sleep(patience)), waits: false }
    }

    fn hurry<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), context) {
            self.waits = false;
            return Poll::Ready(written);
        }
        if !self.waits {
            self.waits = true;
            self.end.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.end.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Hurried {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Hurried {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.hurry(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.hurry(context, |stream, context| stream.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.hurry(context, |stream, context| stream.poll_shutdown(context))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.hurry(context, |stream, context| stream.poll_write_vectored(context, bytes))
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

    async fn visit(address: SocketAddr, words: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(words.as_bytes()).await.expect("sent");
        stream
    }

    /// Everything that the server says until it ends the connection, or its beginning.
    async fn rest(mut stream: TcpStream) -> String {
        let mut said = Vec::new();
        // A connection may be ended roughly.
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8_lossy(&said).into_owned()
    }

    const WHOLE: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const LAST: &str = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    /// Comes again until it is let in.
    async fn is_let_in(address: SocketAddr) {
        while !rest(visit(address, LAST).await).await.ends_with("hello") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[tokio::test]
    async fn who_does_not_ask_in_time_is_shown_out() {
        let address = open(Limits { request: SHORT, stall: LONG, ..Limits::default() }).await;
        for (what, words) in [
            ("says nothing", ""),
            ("says half of it", "GET / HTTP/1.1\r\nHost:"),
            ("says too much", &"GET / HTTP/1.1\r\n".repeat(4096)),
        ] {
            let said = rest(visit(address, words).await).await;
            assert!(!said.contains("hello"), "{what}: {said}");
        }
        let said = rest(visit(address, WHOLE).await).await;
        assert!(said.ends_with("hello"), "and who asks nothing more is shown out as well: {said}");
    }

    #[tokio::test]
    async fn no_more_are_let_in_than_there_are_places() {
        for limits in [
            Limits { connections: 2, of_one: 9, request: LONG, stall: LONG },
            Limits { connections: 9, of_one: 2, request: LONG, stall: LONG },
        ] {
            let address = open(limits).await;
            let (first, second) = (visit(address, "GET").await, visit(address, "GET").await);
            assert_eq!(rest(visit(address, LAST).await).await, "", "{limits:?}");
            drop(first);
            is_let_in(address).await;
            drop(second);
        }
    }

    #[tokio::test]
    async fn who_does_not_take_the_answer_is_shown_out() {
        let limits = Limits { connections: 1, of_one: 1, request: LONG, stall: SHORT };
        let address = open(limits).await;
        let slow = visit(address, "GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await;
        is_let_in(address).await;
        let taken = rest(slow).await.len();
        assert!(taken < 64 * 1024 * 1024, "{taken} bytes were sent to somebody who did not read");
    }
}
