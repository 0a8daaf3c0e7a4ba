//! TLS for the server: a certificate that can be replaced while it serves, and clients that may show
//! one. Whose certificate a client shows is judged with its requests, since who is trusted can change.

use super::judge::Peer;
use crate::connections::{Accept, Accepted, WriteTimeout};
use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// What should be in PEM is not.
    #[error("cannot read the {what}: {source}")]
    Pem {
        /// The certificate or its key.
        what: &'static str,
        /// Why not.
        source: rustls::pki_types::pem::Error,
    },
    /// They are of no use together.
    #[error("cannot use the certificate: {0}")]
    Unusable(#[from] rustls::Error),
}

/// A certificate with its chain and its key, in PEM.
///
/// # Errors
/// They cannot be read, or do not belong together.
pub fn certified(certificates: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(|source| TlsError::Pem { what: "certificate", source })?;
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|source| TlsError::Pem { what: "certificate's key", source })?;
    let certified = CertifiedKey::from_der(chain, key, &ring::default_provider())?;
    Ok(Arc::new(certified))
}

/// The certificate that is shown to clients. Clones share it.
#[derive(Clone, Debug)]
pub struct Shown(Arc<RwLock<Arc<CertifiedKey>>>);

impl Shown {
    /// Shows this one.
    #[must_use]
    pub fn new(certified: Arc<CertifiedKey>) -> Shown {
        Shown(Arc::new(RwLock::new(certified)))
    }

    /// What is shown now.
    #[must_use]
    pub fn now(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read())
    }

    /// Shows another one to those who connect from now on.
    pub fn set(&self, certified: Arc<CertifiedKey>) {
        *self.0.write() = certified;
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

/// Lets clients show any certificate of which they have the key, or none.
#[derive(Debug)]
struct AnyClient(CryptoProvider);

impl ClientCertVerifier for AnyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Without hints clients show what they have.
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Speaks TLS with those who connect.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl Tls {
    /// Shows this certificate.
    ///
    /// # Errors
    /// The cryptography cannot be had.
    pub fn new(shown: Shown) -> Result<Tls, TlsError> {
        let provider = ring::default_provider();
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyClient(provider)))
            .with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

impl Accept for Tls {
    type Stream = TlsStream<WriteTimeout>;
    type Peer = Peer;

    async fn accept(&self, socket: WriteTimeout) -> Option<Accepted<Self::Stream, Peer>> {
        let stream = match self.0.accept(socket).await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(%error, "a TLS handshake failed");
                return None;
            }
        };
        let (_, connection) = stream.get_ref();
        let peer = Peer::showing(connection.peer_certificates().unwrap_or_default());
        let http2 = connection.alpn_protocol() == Some(b"h2");
        Some(Accepted { stream, peer, http2 })
    }
}
