//! The throw-away keys of one control plane.

use anyhow::Result;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// An authority; whoever trusts it trusts everything that it signed.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub pem: String,
}

/// A certificate and its key.
pub struct Signed {
    certificate: CertificateDer<'static>,
    pem: String,
    key: KeyPair,
}

impl Authority {
    pub fn new() -> Result<Authority> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "podscale-test");
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let pem = params.self_signed(&key)?.pem();
        Ok(Authority { issuer: Issuer::new(params, key), pem })
    }

    /// A certificate for a name that people see and for names and addresses of servers.
    pub fn sign(&self, name: &str, hosts: &[&str]) -> Result<Signed> {
        self.sign_for(name, None, hosts)
    }

    /// The same for a member of a group, which is what the API server takes an organization for.
    pub fn sign_for(&self, name: &str, group: Option<&str>, hosts: &[&str]) -> Result<Signed> {
        let key = KeyPair::generate()?;
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut params = CertificateParams::new(hosts)?;
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Signed { certificate: certificate.der().clone(), pem: certificate.pem(), key })
    }
}

impl Signed {
    /// The certificate and its key.
    #[allow(dead_code, reason = "the benchmark does not use it")]
    pub fn pems(&self) -> (String, String) {
        (self.pem.clone(), self.key.serialize_pem())
    }

    /// Writes `name.crt` and `name.key`.
    pub fn write(&self, folder: &Path, name: &str) -> Result<()> {
        std::fs::write(folder.join(format!("{name}.crt")), &self.pem)?;
        std::fs::write(folder.join(format!("{name}.key")), self.key.serialize_pem())?;
        Ok(())
    }

    /// Speaks TLS with this certificate.
    pub fn acceptor(&self) -> Result<TlsAcceptor> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// Writes the key pair that signs the tokens of service accounts.
pub fn write_account_keys(folder: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    std::fs::write(folder.join("service-account.key"), key.serialize_pem())?;
    std::fs::write(folder.join("service-account.pub"), key.public_key_pem())?;
    Ok(())
}
