//! Reads external metrics over and over, and checks every answer. Speaks HTTP/1.1 by hand, so that asking
//! costs less than answering.

use super::prometheus::NAMESPACES;
use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Knows how to ask.
#[derive(Clone)]
pub struct Reader {
    port: u16,
    tls: TlsConnector,
    /// A request for each namespace, and what its answer must have.
    questions: Arc<[(Vec<u8>, String)]>,
}

/// A connection, and what was read from it.
struct Connection {
    stream: TlsStream<TcpStream>,
    buffer: Vec<u8>,
}

impl Reader {
    pub fn new(port: u16, authority: &str, token: &str) -> Result<Reader> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes())?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let question = |number: usize| {
            let path = format!(
                "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop-{number}/depth\
                 ?labelSelector=queue%3Dmail"
            );
            let head = format!(
                "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json\r\n\
                 authorization: Bearer {token}\r\n\r\n"
            );
            (head.into_bytes(), format!("\"value\":\"{number}\""))
        };
        let questions = (0..NAMESPACES).map(question).collect();
        Ok(Reader { port, tls: TlsConnector::from(Arc::new(config)), questions })
    }

    /// Asks each question once.
    pub async fn read_once(&self) -> Result<()> {
        let mut connection = self.connect().await?;
        for number in 0..self.questions.len() {
            self.ask(&mut connection, number).await?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        let stream = self.tls.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
        Ok(Connection { stream, buffer: Vec::with_capacity(8 << 10) })
    }

    async fn ask(&self, connection: &mut Connection, number: usize) -> Result<()> {
        let (request, expected) = &self.questions[number % self.questions.len()];
        connection.stream.write_all(request).await?;
        connection.stream.flush().await?;
        let answer = connection.answer().await?;
        let right = answer.starts_with("HTTP/1.1 200 ") && answer.contains(expected.as_str());
        ensure!(right, "not {expected}: {answer}");
        Ok(())
    }
}

impl Connection {
    /// One whole answer: its head says how long its body is.
    async fn answer(&mut self) -> Result<&str> {
        self.buffer.clear();
        loop {
            if let Some(end) = whole(&self.buffer)? {
                ensure!(end == self.buffer.len(), "something follows the answer");
                return Ok(std::str::from_utf8(&self.buffer)?);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                bail!("the connection ended");
            }
        }
    }
}

/// Where an answer ends, if all of it is there.
fn whole(bytes: &[u8]) -> Result<Option<usize>> {
    let text = std::str::from_utf8(bytes)?;
    let Some((head, _)) = text.split_once("\r\n\r\n") else { return Ok(None) };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.context("an answer without a length")?.parse()?;
    let end = head.len() + 4 + length;
    Ok((bytes.len() >= end).then_some(end))
}

/// Connections that ask all the time.
pub struct Load {
    connections: JoinSet<Result<()>>,
    took: Arc<Mutex<Vec<Duration>>>,
    stopped: Arc<AtomicBool>,
}

impl Load {
    pub async fn start(reader: &Reader, connections: usize) -> Result<Load> {
        let (took, stopped) =
            (Arc::<Mutex<Vec<Duration>>>::default(), Arc::<AtomicBool>::default());
        let mut running = JoinSet::new();
        for first in 0..connections {
            let (reader, took, stopped) = (reader.clone(), Arc::clone(&took), Arc::clone(&stopped));
            let mut connection = reader.connect().await?;
            running.spawn(async move {
                for number in first.. {
                    if stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let began = Instant::now();
                    reader.ask(&mut connection, number).await?;
                    took.lock().push(began.elapsed());
                }
                Ok(())
            });
        }
        Ok(Load { connections: running, took, stopped })
    }

    /// Forgets what was measured so far.
    pub fn forget(&self) {
        self.took.lock().clear();
    }

    /// Stops, and gives how long each read took, sorted.
    pub async fn stop(mut self) -> Result<Vec<Duration>> {
        self.stopped.store(true, Ordering::Relaxed);
        while let Some(ended) = self.connections.join_next().await {
            ended??;
        }
        let mut took = std::mem::take(&mut *self.took.lock());
        took.sort_unstable();
        Ok(took)
    }
}
