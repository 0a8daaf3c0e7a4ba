//! Whom a client trusts and what it proves itself with, from files that may change.

use super::SetupError;
use crate::any_server::AnyServer;
use hyper_rustls::ConfigBuilderExt;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How TLS is used.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// A file with the certificates to trust; those of the system if there is none.
    pub ca_file: Option<PathBuf>,
    /// Files with the client's own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
}

/// The contents of the files, to notice changes by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Contents(Vec<Vec<u8>>);

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub(super) fn contents(&self) -> Result<Contents, SetupError> {
        let identity = self.identity.iter().flat_map(|(certificate, key)| [certificate, key]);
        let files = self.ca_file.iter().chain(identity);
        let read = |file: &PathBuf| std::fs::read(file).map_err(|error| unusable(file, error));
        files.map(read).collect::<Result<_, _>>().map(Contents)
    }

    /// The configuration that the contents make; the system's certificates only where TLS is spoken.
    ///
    /// # Errors
    /// The contents are no certificates or keys.
    pub(super) fn config(
        &self,
        contents: &Contents,
        spoken: bool,
    ) -> Result<ClientConfig, SetupError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| SetupError::new("TLS", error))?;
        let mut contents = contents.0.iter();
        let trusted =
            self.ca_file.as_ref().zip(self.ca_file.as_ref().and_then(|_| contents.next()));
        let builder = if self.insecure {
            builder.dangerous().with_custom_certificate_verifier(AnyServer::verifier())
        } else if let Some((file, pem)) = trusted {
            builder.with_root_certificates(roots(file, pem)?)
        } else if spoken {
            builder.with_native_roots().map_err(|error| {
                let problem = format!("none are found ({error}); name a file with them");
                SetupError::new("certificates to trust", problem)
            })?
        } else {
            builder.with_root_certificates(RootCertStore::empty())
        };
        let Some((certificate, key)) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let (Some(chain), Some(secret)) = (contents.next(), contents.next()) else {
            return Err(SetupError::new("client certificate", "its files were not read"));
        };
        let chain = certificates(certificate, chain)?;
        let secret = PrivateKeyDer::from_pem_slice(secret).map_err(|e| unusable(key, e))?;
        builder.with_client_auth_cert(chain, secret).map_err(|e| unusable(key, e))
    }
}

fn roots(file: &Path, pem: &[u8]) -> Result<RootCertStore, SetupError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file, pem)? {
        roots.add(certificate).map_err(|error| unusable(file, error))?;
    }
    Ok(roots)
}

fn certificates(file: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found.map_err(|error| unusable(file, error))? {
        found if found.is_empty() => Err(unusable(file, "it holds no certificate")),
        found => Ok(found),
    }
}

fn unusable(file: &Path, why: impl ToString) -> SetupError {
    SetupError::new(file.display().to_string(), why)
}
