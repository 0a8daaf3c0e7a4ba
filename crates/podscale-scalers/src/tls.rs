//! Whom a source trusts and what it proves itself with, from certificates that a trigger's authentication gives.

mod key;

use crate::metadata::{AUTH, Fields};
use crate::secret::Secret;
use crate::trigger::TriggerError;
use podscale_metrics::any_server::AnyServer;
#[cfg(feature = "postgresql")]
use rustls::client::WebPkiServerVerifier;
#[cfg(feature = "postgresql")]
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
#[cfg(feature = "postgresql")]
use rustls::pki_types::{ServerName, UnixTime};
#[cfg(feature = "postgresql")]
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};

/// How TLS is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    /// Certificates to trust beside those of the system.
    pub(crate) ca: Option<Secret>,
    /// The client's own certificate and its key.
    pub(crate) identity: Option<(Secret, Secret)>,
    /// The password of the key.
    pub(crate) key_password: Option<Secret>,
    /// Whether any certificate is accepted.
    pub(crate) insecure: bool,
}

impl Tls {
    /// Reads `ca`, `cert`, `key` and `keyPassword` of the authentication.
    pub(crate) fn read(fields: &mut Fields<'_>, insecure: bool) -> Tls {
        let ca = fields.field(&["ca"], AUTH).secret();
        let certificate = fields.field(&["cert", "Cert"], AUTH).secret();
        let key = fields.field(&["key"], AUTH).secret();
        let key_password = fields.field(&["keyPassword"], AUTH).secret();
        Tls { ca, identity: certificate.zip(key), key_password, insecure }
    }

    /// What tells connections apart that are made with other certificates.
    pub(crate) fn key(&self) -> [&str; 5] {
        let (certificate, key) = match &self.identity {
            Some((certificate, key)) => (certificate.expose(), key.expose()),
            None => ("", ""),
        };
        let ca = self.ca.as_ref().map_or("", Secret::expose);
        let password = self.key_password.as_ref().map_or("", Secret::expose);
        [ca, certificate, key, password, if self.insecure { "insecure" } else { "" }]
    }

    /// The configuration of connections.
    ///
    /// # Errors
    /// What should be certificates or a key is none.
    pub(crate) fn config(&self) -> Result<ClientConfig, TriggerError> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable("TLS", error))?;
        let builder = if self.insecure {
            builder.dangerous().with_custom_certificate_verifier(AnyServer::verifier())
        } else {
            builder.with_root_certificates(self.roots()?)
        };
        let Some((certificate, key)) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates("cert", certificate)?;
        let key = key::read(key, self.key_password.as_ref())
            .map_err(|problem| unusable("key", problem))?;
        builder.with_client_auth_cert(chain, key).map_err(|error| unusable("cert", error))
    }

    /// The configuration of connections to servers whose certificates are trusted whatever names they have.
    ///
    /// # Errors
    /// As [`Tls::config`].
    #[cfg(feature = "postgresql")]
    pub(crate) fn config_for_any_name(&self) -> Result<ClientConfig, TriggerError> {
        let mut config = Tls { insecure: false, ..self.clone() }.config()?;
        let provider = Arc::new(ring::default_provider());
        let inner = WebPkiServerVerifier::builder_with_provider(self.roots()?, provider).build();
        let inner = inner.map_err(|error| unusable("TLS", error))?;
        config.dangerous().set_certificate_verifier(Arc::new(AnyName(inner)));
        Ok(config)
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, TriggerError> {
        let Some(ca) = &self.ca else { return Ok(Arc::clone(system_roots())) };
        let mut roots = RootCertStore::clone(system_roots());
        for certificate in certificates("ca", ca)? {
            roots.add(certificate).map_err(|error| unusable("ca", error))?;
        }
        Ok(Arc::new(roots))
    }
}

/// Believes a certificate that is trusted, whatever name it has.
#[cfg(feature = "postgresql")]
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

#[cfg(feature = "postgresql")]
impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.0.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// The certificates of the system, read once: they are many.
fn system_roots() -> &'static Arc<RootCertStore> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    ROOTS.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    })
}

fn certificates(
    parameter: &str,
    pem: &Secret,
) -> Result<Vec<CertificateDer<'static>>, TriggerError> {
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(pem.expose().as_bytes()).collect();
    match found.map_err(|error| unusable(parameter, error))? {
        found if found.is_empty() => Err(unusable(parameter, "it holds no certificate in PEM")),
        found => Ok(found),
    }
}

fn unusable(parameter: &str, problem: impl ToString) -> TriggerError {
    let problem = problem.to_string();
    TriggerError::Settings(
        format!("parameter {parameter} of the authentication cannot be used: {problem}").into(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_checked_and_not_shown() {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
        let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let secret = |text: &str| Some(Secret::from(text));
        for (ca, identity, expected) in [
            (None, None, "ok"),
            (secret(&cert), secret(&cert).zip(secret(&key)), "ok"),
            (secret("planted"), None, "parameter ca of the authentication cannot be used"),
            (None, secret("planted").zip(secret(&key)), "parameter cert of the authentication"),
            (None, secret(&cert).zip(secret("planted")), "parameter key of the authentication"),
        ] {
            let found = match (Tls { ca, identity, ..Tls::default() }).config() {
                Ok(_) => "ok".to_owned(),
                Err(error) => error.to_string(),
            };
            assert!(found.starts_with(expected), "{found}");
            assert!(!found.contains("planted"), "{found}");
        }
    }
}
