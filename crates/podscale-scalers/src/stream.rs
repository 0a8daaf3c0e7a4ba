//! Connections to servers that speak neither HTTP nor anything that a crate speaks for us: TCP, with or without
//! TLS.

use crate::tls::Tls;
use crate::trigger::TriggerError;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// What can be read and written.
pub(crate) trait ReadWrite: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> ReadWrite for T {}

/// A connection.
pub(crate) type Stream = Box<dyn ReadWrite>;

/// Opens connections.
pub(crate) struct Opener(Option<TlsConnector>);

impl Opener {
    /// With TLS, or without.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub(crate) fn new(tls: Option<&Tls>) -> Result<Opener, TriggerError> {
        let config = tls.map(Tls::config).transpose()?;
        Ok(Opener(config.map(|config| TlsConnector::from(Arc::new(config)))))
    }

    /// Connects to a host and port.
    ///
    /// # Errors
    /// It is not there, or not whom it should be.
    pub(crate) async fn open(&self, address: &str) -> Result<Stream, TriggerError> {
        let stream = Opener::tcp(address).await?;
        self.encrypt(address, stream).await
    }

    /// Connects to a host and port, without TLS as yet.
    ///
    /// # Errors
    /// It is not there.
    pub(crate) async fn tcp(address: &str) -> Result<Stream, TriggerError> {
        let unreachable = |error: io::Error| TriggerError::Unreachable {
            server: address.into(),
            problem: error.to_string().into(),
        };
        let stream = TcpStream::connect(address).await.map_err(unreachable)?;
        // Questions are small, and each is answered before the next.
        stream.set_nodelay(true).map_err(unreachable)?;
        Ok(Box::new(stream))
    }

    /// Goes over to TLS, if it is spoken.
    ///
    /// # Errors
    /// The server is not whom it should be.
    pub(crate) async fn encrypt(
        &self,
        address: &str,
        stream: Stream,
    ) -> Result<Stream, TriggerError> {
        let unreachable = |problem: String| TriggerError::unreachable(address, problem);
        let Some(connector) = &self.0 else { return Ok(stream) };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(host).map_err(|e| unreachable(e.to_string()))?;
        let stream = connector.connect(name, stream).await;
        Ok(Box::new(stream.map_err(|e| unreachable(e.to_string()))?))
    }
}
