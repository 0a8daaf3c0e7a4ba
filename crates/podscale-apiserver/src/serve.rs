//! The server on a socket: plain or with TLS, until it is told to stop.

mod certificates;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

pub use certificates::{CertificateError, Certificates};

use crate::server::ApiServer;

/// How long open requests get to finish when the server stops.
const GRACE: Duration = Duration::from_secs(5);
/// How long a client may take to agree on encryption.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where to.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// The certificates are of no use.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
}

/// A server that is listening.
#[derive(Debug)]
pub struct Serving {
    address: SocketAddr,
    scheme: &'static str,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    server: ApiServer,
}

impl Serving {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Ends watches, lets open requests finish for a moment, and closes the socket.
    pub async fn stop(self) {
        self.server.close_watches();
        self.stop.send_replace(true);
        // A panic in the task has been reported by the runtime already.
        let _ = self.task.await;
    }
}

impl ApiServer {
    /// Listens on an address; with certificates it speaks TLS.
    pub async fn serve(
        &self,
        address: SocketAddr,
        certificates: Option<&Certificates>,
    ) -> Result<Serving, ServeError> {
        let acceptor = match certificates {
            Some(certificates) => Some(TlsAcceptor::from(Arc::new(certificates.server_config()?))),
            None => None,
        };
        let listen = |source| ServeError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let (stop, stopped) = watch::channel(false);
        let scheme = if acceptor.is_some() { "https" } else { "http" };
        let task = tokio::spawn(accept(self.clone(), listener, acceptor, stopped));
        Ok(Serving { address, scheme, stop, task, server: self.clone() })
    }
}

async fn accept(
    server: ApiServer,
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    mut stopped: watch::Receiver<bool>,
) {
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let (server, watcher) = (server.clone(), graceful.watcher());
        match acceptor.clone() {
            None => {
                tokio::spawn(connection(server, stream, watcher));
            }
            Some(acceptor) => {
                tokio::spawn(async move {
                    if let Some(stream) = handshake(&acceptor, stream).await {
                        connection(server, stream, watcher).await;
                    }
                });
            }
        }
    }
    drop(listener);
    let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
}

async fn handshake(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Option<tokio_rustls::server::TlsStream<TcpStream>> {
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

async fn connection(
    server: ApiServer,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let router = server.router();
    let service = service_fn(move |request: Request<Incoming>| {
        router.clone().oneshot(request.map(Body::new))
    });
    let builder = Builder::new(TokioExecutor::new());
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
