//! TLS for connections to PostgreSQL, by rustls.

use super::connection::SslMode;
use crate::tls::Tls;
use crate::trigger::TriggerError;
use futures::future::BoxFuture;
use rustls::pki_types::ServerName;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;

/// Encrypts connections.
#[derive(Clone)]
pub(super) struct Encrypt(TlsConnector);

impl Encrypt {
    /// As a mode of TLS says.
    ///
    /// # Errors
    /// TLS cannot be used.
    pub(super) fn new(mode: SslMode) -> Result<Encrypt, TriggerError> {
        // These say nothing of who the server should be.
        let insecure = matches!(mode, SslMode::Disable | SslMode::Prefer | SslMode::Require);
        let tls = Tls { insecure, ..Tls::default() };
        let config =
            if mode == SslMode::VerifyCa { tls.config_for_any_name()? } else { tls.config()? };
        Ok(Encrypt(TlsConnector::from(Arc::new(config))))
    }
}

/// Encrypts one connection to a host.
pub(super) struct ToHost {
    connector: TlsConnector,
    host: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Encrypt {
    type Stream = Session<S>;
    type TlsConnect = ToHost;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<ToHost> {
        let host = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        Ok(ToHost { connector: self.0.clone(), host })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ToHost {
    type Stream = Session<S>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Session<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { self.connector.connect(self.host, stream).await.map(Session) })
    }
}

/// An encrypted connection.
pub(super) struct Session<S>(Encrypted<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Session<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Session<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Session<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
