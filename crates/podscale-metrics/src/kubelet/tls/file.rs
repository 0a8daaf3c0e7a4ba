//! Authorities in a file that is read again: it changes when they are replaced, and connections that are made
//! later are judged by the new ones.

use super::{TlsError, verifier};
use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the file is believed to be as it was.
const REREAD: Duration = if cfg!(test) { Duration::ZERO } else { Duration::from_secs(10) };

/// Makes a configuration trust only the authorities of this file, in PEM, whatever they are at the time; what
/// it shows of itself stays.
///
/// # Errors
/// The file cannot be read now, or has no authority that can be used.
pub fn trust_file(config: &mut ClientConfig, path: PathBuf) -> Result<(), TlsError> {
    let bundle = std::fs::read(&path)?;
    let known = Known { verifier: verifier(&bundle)?, bundle, read: Instant::now() };
    let verifier = Arc::new(FileVerifier { path, known: Mutex::new(known) });
    config.dangerous().set_certificate_verifier(verifier);
    Ok(())
}

/// Verifies by the authorities of a file.
#[derive(Debug)]
struct FileVerifier {
    path: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    bundle: Vec<u8>,
    verifier: Arc<WebPkiServerVerifier>,
    read: Instant,
}

impl FileVerifier {
    /// By what the file says now. One that cannot be read or used leaves what it said before, since it may be
    /// about to be replaced.
    fn current(&self) -> Arc<WebPkiServerVerifier> {
        let mut known = self.known.lock();
        if known.read.elapsed() >= REREAD {
            known.read = Instant::now();
            if let Ok(bundle) = std::fs::read(&self.path)
                && bundle != known.bundle
                && let Ok(verifier) = verifier(&bundle)
            {
                (known.bundle, known.verifier) = (bundle, verifier);
            }
        }
        Arc::clone(&known.verifier)
    }

    fn last(&self) -> Arc<WebPkiServerVerifier> {
        Arc::clone(&self.known.lock().verifier)
    }
}

impl ServerCertVerifier for FileVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let current = self.current();
        current.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.last().verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.last().verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.last().supported_verify_schemes()
    }
}
