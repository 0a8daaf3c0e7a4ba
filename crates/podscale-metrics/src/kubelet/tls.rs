//! Who is trusted to be a kubelet.

mod file;

pub use file::trust_file;

use crate::any_server::AnyServer;
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use thiserror::Error;

/// Why nobody can be trusted.
#[derive(Debug, Error)]
pub enum TlsError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
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
    config.dangerous().set_certificate_verifier(verifier(bundle)?);
    Ok(())
}

/// Verifies by the authorities of this bundle, in PEM.
fn verifier(bundle: &[u8]) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle) {
        roots.add(certificate.map_err(TlsError::Pem)?)?;
    }
    if roots.is_empty() {
        return Err(TlsError::Empty);
    }
    let provider = Arc::new(ring::default_provider());
    Ok(WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?)
}

/// Trusts everybody, which is for tests.
///
/// # Errors
/// There are no versions of TLS to speak.
pub fn insecure() -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let verifier = AnyServer::verifier();
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Makes a configuration trust everybody; what it shows of itself stays.
pub fn trust_anybody(config: &mut ClientConfig) {
    config.dangerous().set_certificate_verifier(AnyServer::verifier());
}
