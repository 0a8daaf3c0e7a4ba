//! Requests to servers in other processes.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Whom to believe.
pub(super) struct Trust {
    /// Whether any certificate will do.
    pub skip: bool,
    /// Certificates in PEM, in base64.
    pub bundle: String,
    /// The name in the server's certificate.
    pub host: String,
}

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    #[error("the address {0:?} makes no sense")]
    Address(String),
    #[error("the certificates of the APIService cannot be used: {0}")]
    Bundle(String),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Send(String),
}

/// Sends a request on to a server, keeping path and query.
pub(super) async fn send(
    url: &str,
    trust: &Trust,
    mut request: Request<Body>,
) -> Result<Response, RemoteError> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri: Uri =
        format!("{url}{path}").parse().map_err(|_| RemoteError::Address(url.to_owned()))?;
    *request.uri_mut() = uri;
    request.headers_mut().remove(http::header::HOST);
    *request.version_mut() = http::Version::HTTP_11;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls(trust)?).https_or_http();
    if !trust.skip
        && let Ok(name) = ServerName::try_from(trust.host.clone())
    {
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let client = Client::builder(TokioExecutor::new()).build(builder.enable_http1().build());
    let response = client.request(request).await.map_err(|error| {
        RemoteError::Send(match std::error::Error::source(&error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        })
    })?;
    Ok(response.map(Body::new))
}

fn tls(trust: &Trust) -> Result<ClientConfig, RemoteError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?;
    if trust.skip {
        let verifier = Arc::new(Anyone(provider));
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth());
    }
    let pem =
        STANDARD.decode(&trust.bundle).map_err(|error| RemoteError::Bundle(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| RemoteError::Bundle(error.to_string()))?;
        roots.add(certificate)?;
    }
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Believes every server; for APIServices that say so.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
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
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
