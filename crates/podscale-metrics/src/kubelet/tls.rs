//! Who is trusted to be a kubelet.

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;
use thiserror::Error;

/// Why nobody can be trusted.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The bundle cannot be read.
    #[error("the certificates cannot be read: {0}")]
    Pem(pem::Error),
    /// The bundle has no certificate.
    #[error("there is no certificate in it")]
    Empty,
    /// A certificate of the bundle cannot be used.
    #[error("a certificate cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
    /// The certificates are no authorities.
    #[error("the certificates cannot be used: {0}")]
    Verifier(#[from] rustls::client::VerifierBuilderError),
}

/// Trusts whom an authority of this bundle, in PEM, has signed for.
///
/// # Errors
/// The bundle has no authority that can be used.
pub fn trusting(bundle: &[u8]) -> Result<ClientConfig, TlsError> {
    let mut config = insecure()?;
    trust_only(&mut config, bundle)?;
    Ok(config)
}

/// Makes a configuration trust only the authorities of this bundle, in PEM; what it shows of itself
/// stays.
///
/// # Errors
/// The bundle has no authority that can be used.
pub fn trust_only(config: &mut ClientConfig, bundle: &[u8]) -> Result<(), TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.map_err(TlsError::Pem)?)?;
    }
    if roots.is_empty() {
        return Err(TlsError::Empty);
    }
    let provider = Arc::new(ring::default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
    config.dangerous().set_certificate_verifier(verifier);
    Ok(())
}

/// Trusts everybody, which is for tests.
///
/// # Errors
/// There are no versions of TLS to speak.
pub fn insecure() -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions()?;
    let verifier = Arc::new(Anybody(provider));
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Makes a configuration trust everybody; what it shows of itself stays.
pub fn trust_anybody(config: &mut ClientConfig) {
    let verifier = Arc::new(Anybody(Arc::new(ring::default_provider())));
    config.dangerous().set_certificate_verifier(verifier);
}

/// Believes every certificate, but not every signature.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
