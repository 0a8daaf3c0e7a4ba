//! Connections to kubelets that are kept from one scrape to the next. Between scrapes nothing but the
//! stream is kept: with thousands of nodes, buffers and a task for each would be most of what the program
//! takes in memory.

use super::{ScrapeError, Target};
use axum::http::{Request, StatusCode, Uri};
use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1::{self, Parts};
use hyper::rt::{Read, ReadBuf};
use hyper::service::Service;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rustls::ClientConfig;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// How long a connection is kept that is not used; wall-clock.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How often those are looked for that were not used for so long.
const SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Large, so it is moved as a pointer.
type Stream = Box<MaybeHttpsStream<TokioIo<TcpStream>>>;

/// A status, and a body that is no longer than it may be.
pub(super) type Answer = (StatusCode, Bytes);

/// What is asked: a request without a body, with the name of the host.
pub(super) type Question = Request<Empty<Bytes>>;

/// Connects to kubelets, and keeps one connection to each.
pub(super) struct Connections {
    connector: TowerToHyperService<HttpsConnector<HttpConnector>>,
    idle: Mutex<Idle>,
}

struct Idle {
    streams: HashMap<Target, Kept>,
    swept: Instant,
}

struct Kept {
    since: Instant,
    stream: Stream,
}

/// Why there is no answer.
enum Broken {
    /// Nothing of it came: a connection that was kept may have been closed meanwhile.
    Before(hyper::Error),
    /// It broke off.
    Within(ScrapeError),
}

impl Connections {
    /// There are none yet.
    pub(super) fn new(tls: ClientConfig, connect_timeout: Duration) -> Connections {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let idle = Mutex::new(Idle { streams: HashMap::new(), swept: Instant::now() });
        Connections { connector: TowerToHyperService::new(connector), idle }
    }

    /// Asks a kubelet, over the connection that was kept if there is one.
    ///
    /// # Errors
    /// It cannot be reached, or its answer broke off or is longer than so many bytes.
    pub(super) async fn send(
        &self,
        target: &Target,
        question: Question,
        most_bytes: usize,
    ) -> Result<Answer, ScrapeError> {
        if let Some(stream) = self.take(target) {
            match exchange(stream, question.clone(), most_bytes).await {
                Ok(exchanged) => return Ok(self.conclude(target, exchanged)),
                Err(Broken::Within(error)) => return Err(error),
                Err(Broken::Before(_)) => {}
            }
        }
        let url: Uri = target.to_string().parse().map_err(axum::http::Error::from)?;
        let stream = self.connector.call(url).await.map_err(ScrapeError::Connect)?;
        match exchange(Box::new(stream), question, most_bytes).await {
            Ok(exchanged) => Ok(self.conclude(target, exchanged)),
            Err(Broken::Within(error)) => Err(error),
            Err(Broken::Before(error)) => Err(ScrapeError::Connect(error.into())),
        }
    }

    fn take(&self, target: &Target) -> Option<Stream> {
        Some(self.idle.lock().streams.remove(target)?.stream)
    }

    /// Closes the connection that is kept, if there is one.
    pub(super) fn forget(&self, target: &Target) {
        drop(self.take(target));
    }

    fn conclude(&self, target: &Target, (answer, stream): (Answer, Option<Stream>)) -> Answer {
        if let Some(stream) = stream {
            let since = Instant::now();
            let mut idle = self.idle.lock();
            if since.duration_since(idle.swept) >= SWEEP_INTERVAL {
                idle.swept = since;
                idle.streams.retain(|_, kept| since.duration_since(kept.since) < IDLE_TIMEOUT);
            }
            idle.streams.insert(target.clone(), Kept { since, stream });
        }
        answer
    }
}

/// Asks over a connection, and gives it back if it can be used again.
async fn exchange(
    stream: Stream,
    question: Question,
    most_bytes: usize,
) -> Result<(Answer, Option<Stream>), Broken> {
    let (mut sender, connection) = http1::handshake(stream).await.map_err(Broken::Before)?;
    let mut connection = pin!(connection.without_shutdown());
    let mut asking = pin!(async move {
        let response = sender.send_request(question).await.map_err(Broken::Before)?;
        let status = response.status();
        match Limited::new(response.into_body(), most_bytes).collect().await {
            Ok(body) => {
                // It is ready for more only if the server keeps it open as well.
                let reusable = sender.ready().await.is_ok();
                Ok(((status, body.to_bytes()), reusable))
            }
            Err(error) if status.is_success() => Err(Broken::Within(ScrapeError::Body(error))),
            // What else a refusal says is of no use.
            Err(_) => Ok(((status, Bytes::new()), false)),
        }
    });
    let (answer, reusable) = tokio::select! {
        biased;
        asked = &mut asking => asked?,
        // It has ended, and says so to whoever still waits for an answer.
        _ = &mut connection => return Ok((asking.await?.0, None)),
    };
    if !reusable {
        return Ok((answer, None));
    }
    // The sender is gone, so this is what the stream was waiting for.
    let stream = match connection.await {
        Ok(Parts { io, read_buf, .. }) if read_buf.is_empty() => quiet(io).await,
        _ => None,
    };
    Ok((answer, stream))
}

/// The stream, if it is open and nothing waits to be read. That it was tried to read also makes TLS give
/// up the room that it needed for the answer.
async fn quiet(mut stream: Stream) -> Option<Stream> {
    let mut byte = [0];
    let mut buffer = ReadBuf::new(&mut byte);
    let read = poll_fn(|context| {
        let read = Pin::new(&mut stream).poll_read(context, buffer.unfilled());
        Poll::Ready(read.is_pending())
    });
    let waits = read.await;
    waits.then_some(stream)
}
