//! What a client's certificate proves. To verify a certificate costs more than everything else that a
//! request needs, so what was found out holds for a moment for the other requests of its connection.

use super::trust::{FrontProxy, Trust};
use super::user::User;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use x509_parser::parse_x509_certificate;

/// How long a judgement holds.
const MAX_AGE: Duration = Duration::from_secs(10);

/// What a client showed when it connected: certificates that nobody has judged yet.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Its own certificate first; none if it showed none.
    pub certificates: Option<Arc<[CertificateDer<'static>]>>,
    /// What was found out about them, for the next request of the same connection.
    judged: Arc<Mutex<Option<Judged>>>,
}

impl Peer {
    /// Somebody who showed these, their own first.
    #[must_use]
    pub fn showing(certificates: &[CertificateDer<'static>]) -> Peer {
        let certificates = (!certificates.is_empty()).then(|| certificates.to_vec().into());
        Peer { certificates, judged: Arc::default() }
    }
}

/// Why a certificate convinces nobody.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CertificateProblem {
    /// It is not signed by whom it should be, or not valid now.
    #[error("the client's certificate: {0}")]
    Unverified(#[from] rustls::Error),
    /// It has no name.
    #[error("the client's certificate names nobody")]
    Nameless,
    /// It is that of somebody who may not ask for others.
    #[error("the certificate of {0:?} is not that of a front proxy")]
    NotAllowed(String),
}

/// What a certificate proves.
#[derive(Debug)]
pub(super) struct Judgement {
    /// Whether it is that of a front proxy, if there is one.
    pub(super) proxy: Option<Result<(), CertificateProblem>>,
    /// Whom it names, if certificates of users are known.
    pub(super) user: Option<Result<User, CertificateProblem>>,
}

/// What was found out, when, and by whose word.
#[derive(Debug)]
struct Judged {
    at: Instant,
    trust: Arc<Trust>,
    judgement: Arc<Judgement>,
}

/// What the certificate of a client proves.
pub(super) fn judge(
    peer: &Peer,
    chain: &[CertificateDer<'_>],
    trust: &Arc<Trust>,
    now: Instant,
) -> Arc<Judgement> {
    let mut judged = peer.judged.lock();
    let holds = |judged: &&Judged| {
        Arc::ptr_eq(&judged.trust, trust) && now.saturating_duration_since(judged.at) < MAX_AGE
    };
    if let Some(judged) = judged.as_ref().filter(holds) {
        return Arc::clone(&judged.judgement);
    }
    let judgement = Arc::new(Judgement {
        proxy: trust.proxy.as_ref().map(|proxy| is_proxy(proxy, chain)),
        user: trust.clients.as_ref().map(|clients| {
            clients.verify(chain)?;
            named(chain)
        }),
    });
    let trust = Arc::clone(trust);
    *judged = Some(Judged { at: now, trust, judgement: Arc::clone(&judgement) });
    judgement
}

fn is_proxy(proxy: &FrontProxy, chain: &[CertificateDer<'_>]) -> Result<(), CertificateProblem> {
    proxy.authority.verify(chain)?;
    let name = common_name(chain);
    if proxy.names.is_empty() || proxy.names.contains(&name) {
        return Ok(());
    }
    Err(CertificateProblem::NotAllowed(name))
}

fn common_name(chain: &[CertificateDer<'_>]) -> String {
    let certificate = chain.first().and_then(|first| parse_x509_certificate(first).ok());
    let name = certificate.as_ref().and_then(|(_, c)| c.subject().iter_common_name().next());
    name.and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned()
}

/// The user that a certificate names: its common name, with its organizations as groups.
fn named(chain: &[CertificateDer<'_>]) -> Result<User, CertificateProblem> {
    let name = common_name(chain);
    if name.is_empty() {
        return Err(CertificateProblem::Nameless);
    }
    let certificate = chain.first().and_then(|first| parse_x509_certificate(first).ok());
    let groups = certificate.iter().flat_map(|(_, c)| c.subject().iter_organization());
    let groups = groups.filter_map(|group| group.as_str().ok()).map(str::to_owned).collect();
    Ok(User { name, groups, ..User::default() })
}
