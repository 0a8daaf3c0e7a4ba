//! A certificate authority of our own, kept in memory, and what kubectl needs to trust it.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why certificates could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// They could not be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// They could not be used.
    #[error("cannot use the certificate: {0}")]
    Use(#[from] rustls::Error),
}

/// A server's certificate and the authority that signed it.
pub struct Certificates {
    authority_pem: String,
    authority: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    server: Signed,
}

/// A certificate and its key.
struct Signed {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// A new authority and a certificate of it for these names and addresses.
    pub fn generate(names: &[&str]) -> Result<Self, CertificateError> {
        let authority_key = KeyPair::generate()?;
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, "podscale-ca");
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let authority_certificate = authority.self_signed(&authority_key)?;
        let issuer = Issuer::new(authority, authority_key);

        Ok(Self {
            authority_pem: authority_certificate.pem(),
            authority: authority_certificate.der().clone(),
            server: sign(&issuer, "podscale-apiserver", names)?,
            issuer,
        })
    }

    /// How another server of the cluster, for these names and addresses, speaks TLS with a certificate
    /// of the same authority.
    pub fn sign(
        &self,
        common_name: &str,
        names: &[&str],
    ) -> Result<ServerConfig, CertificateError> {
        self.config(&sign(&self.issuer, common_name, names)?)
    }

    /// The authority's certificate in PEM.
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The authority's certificate as kubeconfigs carry it.
    pub fn authority_data(&self) -> String {
        STANDARD.encode(&self.authority_pem)
    }

    pub(super) fn server_config(&self) -> Result<ServerConfig, CertificateError> {
        self.config(&self.server)
    }

    fn config(&self, signed: &Signed) -> Result<ServerConfig, CertificateError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signed.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![signed.certificate.clone(), self.authority.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn sign(
    issuer: &Issuer<'static, KeyPair>,
    common_name: &str,
    names: &[&str],
) -> Result<Signed, CertificateError> {
    let key = KeyPair::generate()?;
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut server = CertificateParams::new(names)?;
    server.distinguished_name.push(DnType::CommonName, common_name);
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = server.signed_by(&key, issuer)?;
    Ok(Signed { certificate: certificate.der().clone(), key: key.serialize_der() })
}
