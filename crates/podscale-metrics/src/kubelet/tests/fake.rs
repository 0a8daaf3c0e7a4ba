//! A kubelet that answers as a test wants it to, on loopback.

use crate::kubelet::{Scheme, Target};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What a kubelet does when it is asked.
pub(crate) enum Reply {
    /// Answers with this status and body.
    Answer(u16, Vec<u8>),
    /// Answers well with this body, and then ends the connection without having said so.
    Last(&'static str),
    /// Says nothing more.
    Hang,
    /// Answers byte by byte, so slowly that it never ends.
    Drip,
}

impl Reply {
    pub(crate) fn ok(text: impl Into<String>) -> Reply {
        Reply::Answer(200, text.into().into_bytes())
    }
}

/// Answers a path and the token that was shown, if any was.
type Script = Arc<dyn Fn(&str, Option<&str>) -> Reply + Send + Sync>;

/// An authority and what it signs.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    fn server(&self, name: &str) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A kubelet on loopback, for as long as it lives.
pub(crate) struct Fake {
    pub(crate) target: Target,
    connections: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

impl Fake {
    /// Over TLS, with a certificate for this name.
    pub(crate) async fn tls(
        authority: &Authority,
        name: &str,
        script: impl Fn(&str, Option<&str>) -> Reply + Send + Sync + 'static,
    ) -> Fake {
        Fake::start(Some(authority.server(name)), Arc::new(script)).await
    }

    /// In the clear.
    pub(crate) async fn plain(
        script: impl Fn(&str, Option<&str>) -> Reply + Send + Sync + 'static,
    ) -> Fake {
        Fake::start(None, Arc::new(script)).await
    }

    async fn start(tls: Option<TlsAcceptor>, script: Script) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let scheme = if tls.is_some() { Scheme::Https } else { Scheme::Http };
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::SeqCst);
                let (tls, script) = (tls.clone(), Arc::clone(&script));
                open.spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                converse(stream, script).await;
                            }
                        }
                        None => converse(stream, script).await,
                    }
                });
            }
        });
        Fake { target: Target { scheme, host: "127.0.0.1".into(), port }, connections, _task: task }
    }

    /// How many connections were made to it.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Answers one request after the other.
async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: Script) {
    while let Some(head) = request(&mut stream).await {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let token = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("authorization").then(|| value.strip_prefix("Bearer "))?
        });
        match script(path, token) {
            Reply::Answer(status, body) => {
                let head = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(head.as_bytes()).await;
                if stream.write_all(&body).await.is_err() {
                    return;
                }
            }
            Reply::Last(body) => {
                let head = format!("HTTP/1.1 200 x\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all((head + body).as_bytes()).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Hang => std::future::pending().await,
            Reply::Drip => {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n").await;
                while stream.write_all(b"#").await.is_ok() {
                    let _ = stream.flush().await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                return;
            }
        }
    }
}

async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}
