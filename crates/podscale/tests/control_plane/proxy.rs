//! A proxy between the controller and the API server that fails as a test asks: it answers 429, or 500, or
//! late; cuts watches; or lets them go silent while their connections stay open.

use super::aggregation::accept;
use super::certificates::Authority;
use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::State as Shared;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use http_body_util::BodyExt;
use kube::Client;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// What happens to requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Every other one is asked to come back in a second.
    Busy,
    /// They fail.
    Broken,
    /// They are answered so much later.
    Late(Duration),
}

/// What became of the answers that were on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Streams {
    Flow,
    Cut,
    Silent,
}

/// What happens to what passes.
struct State {
    client: Client,
    failure: Mutex<Option<Failure>>,
    /// How many requests failed.
    failed: Mutex<u64>,
    /// Of the streams that are open; those that are opened later have another one.
    streams: Mutex<watch::Sender<Streams>>,
}

/// A running proxy; it stops when this is dropped.
pub struct Proxy {
    state: Arc<State>,
    task: AbortHandle,
    pub port: u16,
}

impl Proxy {
    /// Listens, and sends everything on through this client.
    pub async fn start(client: Client, authority: &Authority) -> Result<Proxy> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let acceptor = authority.sign("proxy", &["127.0.0.1"])?.acceptor()?;
        let streams = Mutex::new(watch::channel(Streams::Flow).0);
        let (failure, failed) = (Mutex::default(), Mutex::default());
        let state = Arc::new(State { client, failure, failed, streams });
        let router = Router::new().fallback(pass_on).with_state(Arc::clone(&state));
        let task = tokio::spawn(accept(listener, acceptor, router)).abort_handle();
        Ok(Proxy { state, task, port })
    }

    /// Fails in this way from now on, or no more.
    pub fn set(&self, failure: Option<Failure>) {
        *self.state.failed.lock() = 0;
        *self.state.failure.lock() = failure;
    }

    /// How many requests failed since then.
    pub fn failed(&self) -> u64 {
        *self.state.failed.lock()
    }

    /// Ends the answers that are on their way.
    pub fn cut(&self) {
        self.end(Streams::Cut);
    }

    /// Holds the answers that are on their way, for ever.
    pub fn silence(&self) {
        self.end(Streams::Silent);
    }

    fn end(&self, how: Streams) {
        let new = watch::channel(Streams::Flow).0;
        std::mem::replace(&mut *self.state.streams.lock(), new).send_replace(how);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass_on(Shared(state): Shared<Arc<State>>, request: Request<Body>) -> Response {
    let failure = *state.failure.lock();
    let failed = {
        let mut failed = state.failed.lock();
        *failed += u64::from(failure.is_some());
        *failed
    };
    match failure {
        Some(Failure::Busy) if failed.is_multiple_of(2) => {
            let again = [(header::RETRY_AFTER, "1")];
            return (StatusCode::TOO_MANY_REQUESTS, again, "too many").into_response();
        }
        Some(Failure::Broken) => {
            return (StatusCode::INTERNAL_SERVER_ERROR, "broken").into_response();
        }
        Some(Failure::Late(time)) => tokio::time::sleep(time).await,
        Some(Failure::Busy) | None => {}
    }
    match send_on(&state, request).await {
        Ok(answer) => answer,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn send_on(state: &State, request: Request<Body>) -> Result<Response> {
    let streams = state.streams.lock().subscribe();
    let (mut parts, body) = request.into_parts();
    for name in [header::HOST, header::AUTHORIZATION] {
        parts.headers.remove(name);
    }
    let path = parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default();
    (parts.uri, parts.version) = (path.parse()?, axum::http::Version::HTTP_11);
    let body = body.collect().await?.to_bytes().to_vec();
    let answer = state.client.send(Request::from_parts(parts, kube::client::Body::from(body)));
    let (parts, body) = answer.await?.into_parts();
    let frames = stream::unfold((body, streams), async |(mut body, mut streams)| {
        let ended = async {
            let end = streams.wait_for(|streams| *streams != Streams::Flow).await;
            end.map_or(Streams::Cut, |end| *end)
        };
        let frame = tokio::select! {
            frame = body.frame() => frame?.map_err(std::io::Error::other),
            end = ended => {
                if end == Streams::Silent {
                    std::future::pending::<()>().await;
                }
                Err(std::io::ErrorKind::ConnectionReset.into())
            }
        };
        Some((frame.map(|frame| frame.into_data().unwrap_or_default()), (body, streams)))
    });
    Ok(Response::from_parts(parts, Body::from_stream(frames)))
}
