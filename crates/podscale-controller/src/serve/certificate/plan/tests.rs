use super::*;
use crate::serve::trust::Authority;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring;
use rustls::pki_types::{ServerName, UnixTime};
use std::sync::Arc;
use std::time::Duration;

const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

fn names() -> Vec<String> {
    ["podscale-metrics.kube-system.svc", "podscale-metrics.kube-system"].map(str::to_owned).into()
}

/// Whether a client that trusts `authorities` accepts what is shown.
fn accepts(authorities: &str, kept: &Kept, now: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let shown = CertificateDer::from_pem_slice(kept.certificate.as_bytes()).unwrap();
    let name = ServerName::try_from("podscale-metrics.kube-system.svc").unwrap();
    let seconds = u64::try_from(now.as_second()).unwrap();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    verifier.build().unwrap().verify_server_cert(&shown, &[], &name, &[], now).is_ok()
}

#[test]
fn what_is_missing_or_unreadable_is_made() {
    let now: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
    assert_eq!(next(None, &names(), now), Step::Start);
    let kept = take(Step::Start, None, &names(), now).unwrap();
    assert_eq!(next(Some(&kept), &names(), now), Step::Keep);
    assert!(accepts(&kept.authorities, &kept, now));
    for broken in [
        Kept { authorities: String::new(), ..kept.clone() },
        Kept { certificate: "nonsense".to_owned(), ..kept.clone() },
    ] {
        assert_eq!(next(Some(&broken), &names(), now), Step::Start);
    }
    let more = [names(), vec!["other.svc".to_owned()]].concat();
    assert_eq!(next(Some(&kept), &more, now), Step::Sign, "a new name");
    let far = now + AUTHORITY_LIFE + HOUR;
    assert_eq!(next(Some(&kept), &names(), far), Step::Start, "nobody was there for years");
    assert!(crate::serve::tls::certified(kept.certificate.as_bytes(), kept.key.as_bytes()).is_ok());
    assert!(Authority::read("ca", &kept.authorities).is_ok());
}

/// Ten years in hours: whoever learned of the authorities an hour ago, or learns of them now, accepts
/// what is shown now, and what is still shown from an hour ago.
#[test]
fn nobody_ever_sees_a_certificate_that_cannot_be_trusted() {
    let start: Timestamp = "2026-11-16T08:00:00Z".parse().unwrap();
    let mut kept = take(Step::Start, None, &names(), start).unwrap();
    let (mut steps, mut now) = (Vec::new(), start);
    while now < start + DAY * 3650 {
        let step = next(Some(&kept), &names(), now);
        if step != Step::Keep {
            let new = take(step, Some(&kept), &names(), now).unwrap();
            for (authorities, shown) in [(&kept, &new), (&new, &kept), (&new, &new)] {
                let (what, at) = (format!("{step:?} at {now}"), now + SKEW);
                assert!(accepts(&authorities.authorities, shown, at), "{what}");
            }
            steps.push(step);
            kept = new;
        }
        // Hours matter only while something changes.
        now += if step == Step::Keep && facts(&kept.authorities).unwrap().len() == 1 {
            DAY
        } else {
            HOUR
        };
    }
    let count = |wanted: Step| steps.iter().filter(|step| **step == wanted).count();
    assert_eq!(count(Step::Start), 0);
    assert_eq!((count(Step::AddAuthority), count(Step::DropAuthorities)), (3, 3), "{steps:?}");
    assert!(count(Step::Sign) > 50);
    assert_eq!(facts(&kept.authorities).unwrap().len(), 1);
}
