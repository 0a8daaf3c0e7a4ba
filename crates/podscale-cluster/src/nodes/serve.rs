//! Serves a kubelet: over TLS to whoever has the cluster's token, and on the same port in the clear,
//! where there are only the plain numbers.

use super::NodesError;
use super::http::{self, Kubelet};
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The first byte of every connection that speaks TLS.
const HANDSHAKE: u8 = 22;
/// How long a client may take to say how it speaks; wall-clock.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How many connections one kubelet has at the same time.
const MAX_CONNECTIONS: usize = 64;
/// How long a kubelet waits after a connection could not be accepted; wall-clock.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Makes a certificate for a node's name and address.
type Certify =
    dyn Fn(&str, &str) -> Result<ServerConfig, Box<dyn Error + Send + Sync>> + Send + Sync;

/// How the kubelets of a cluster identify themselves, and to whom they answer.
#[derive(Clone)]
pub struct Identity {
    certify: Arc<Certify>,
    token: Arc<str>,
}

impl Identity {
    /// Kubelets with certificates from this function, of a name and an address, that answer to this
    /// token.
    pub fn new(
        certify: impl Fn(&str, &str) -> Result<ServerConfig, Box<dyn Error + Send + Sync>>
        + Send
        + Sync
        + 'static,
        token: &str,
    ) -> Identity {
        Identity { certify: Arc::new(certify), token: token.into() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The server of one kubelet.
pub(super) struct Server {
    plain: Router,
    secure: Option<(TlsAcceptor, Router)>,
}

impl Server {
    pub(super) fn new(
        kubelet: Arc<Kubelet>,
        identity: Option<&Identity>,
    ) -> Result<Server, NodesError> {
        let Some(Identity { certify, token }) = identity else {
            return Ok(Server { plain: http::router(kubelet), secure: None });
        };
        let node = &kubelet.node;
        let fail = |source| NodesError::Certificate { node: Arc::clone(&node.name), source };
        let mut config = certify(&node.name, &node.kubelet.ip().to_string()).map_err(fail)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let router = http::router_with_token(Arc::clone(&kubelet), token);
        Ok(Server { plain: http::plain_router(kubelet), secure: Some((acceptor, router)) })
    }

    /// Answers until it is dropped.
    pub(super) async fn run(self, listener: TcpListener) {
        let (server, permits) = (Arc::new(self), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let mut connections = JoinSet::new();
        loop {
            let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
            while connections.try_join_next().is_some() {}
            match listener.accept().await {
                Ok((stream, _)) => {
                    let server = Arc::clone(&server);
                    connections.spawn(async move {
                        server.converse(stream).await;
                        drop(permit);
                    });
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    async fn converse(&self, stream: TcpStream) {
        let opening = async {
            let mut first = [0];
            stream.peek(&mut first).await.ok().filter(|read| *read == 1)?;
            Some(first[0])
        };
        let first = tokio::time::timeout(HANDSHAKE_TIMEOUT, opening).await;
        match (&self.secure, first) {
            (Some((acceptor, router)), Ok(Some(HANDSHAKE))) => {
                let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
                if let Ok(Ok(stream)) = handshake.await {
                    answer(stream, router.clone()).await;
                }
            }
            (_, Ok(Some(_))) => answer(stream, self.plain.clone()).await,
            _ => {}
        }
    }
}

/// Answers the requests of one connection; how it ends is the client's business.
async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let service = TowerToHyperService::new(router);
    let _ =
        Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}
