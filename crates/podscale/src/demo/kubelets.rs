//! How the demonstration's kubelets and whoever reads them know each other: by the cluster's authority
//! and its token.

use podscale_apiserver::Certificates;
use podscale_cluster::metrics::{LIMITS, Way};
use podscale_cluster::nodes::Identity;
use podscale_metrics::kubelet::tls::{self, TlsError};
use podscale_metrics::kubelet::{Access, KubeletReader, REQUEST_TIMEOUT, Token};
use podscale_metrics::scraper::address::Addressing;

/// How kubelets are read: over TLS, with the token.
pub(super) fn way(certificates: &Certificates, token: &str) -> Result<Way, TlsError> {
    let tls = tls::trusting(certificates.authority_pem().as_bytes())?;
    let token = Token::fixed(token).unwrap_or_else(Token::none);
    let reader = KubeletReader::new(Access { tls, token, timeout: REQUEST_TIMEOUT });
    Ok(Way { reader, addressing: Addressing::default(), limits: LIMITS })
}

/// How kubelets identify themselves, and the token that they ask for.
pub(super) fn identity(certificates: Certificates, token: &str) -> Identity {
    let certify = move |name: &str, address: &str| {
        certificates.sign(name, &[name, address]).map_err(Into::into)
    };
    Identity::new(certify, token)
}
