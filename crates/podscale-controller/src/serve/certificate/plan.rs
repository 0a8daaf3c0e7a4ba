//! When which certificate is made, as a function of what there is and of the time. Clients that trust
//! an authority for a while after it was replaced never see a certificate that they cannot trust:
//! a new authority is published first, signs later, and the old one is dropped last.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::time::SystemTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

#[cfg(test)]
mod tests;

/// How long an authority is valid, and how long before its end another one is made.
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(24 * 3 * 365);
const AUTHORITY_RENEWAL: SignedDuration = SignedDuration::from_hours(24 * 180);
/// How long a certificate is valid, and how long before its end another one is made.
const CERTIFICATE_LIFE: SignedDuration = SignedDuration::from_hours(24 * 90);
const CERTIFICATE_RENEWAL: SignedDuration = SignedDuration::from_hours(24 * 30);
/// How long everybody gets to learn of a change before the next one builds on it.
const SETTLE: SignedDuration = SignedDuration::from_hours(1);
/// By how much clocks may differ.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// The library could not.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The time is out of the range of certificates.
    #[error("cannot make a certificate: the clock shows {0}")]
    Clock(Timestamp),
}

/// What is kept: authorities, the key of the first, and a certificate with its key. All in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The authorities that clients are to trust, the newest first.
    pub authorities: String,
    /// The key of the newest authority.
    pub authority_key: String,
    /// The certificate that is shown.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All is well.
    Keep,
    /// Make everything.
    Start,
    /// Publish another authority.
    AddAuthority,
    /// Make another certificate, signed by the newest authority.
    Sign,
    /// Stop to publish authorities other than the newest.
    DropAuthorities,
}

/// What matters of a certificate.
struct Facts {
    from: Timestamp,
    until: Timestamp,
    issuer: String,
    subject: String,
    names: Vec<String>,
}

impl Facts {
    fn of(der: &CertificateDer<'_>) -> Option<Facts> {
        let (_, certificate) = parse_x509_certificate(der).ok()?;
        let validity = certificate.validity();
        let time =
            |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp()).ok();
        Some(Facts {
            from: time(validity.not_before)?,
            until: time(validity.not_after)?,
            issuer: certificate.issuer().to_string(),
            subject: certificate.subject().to_string(),
            names: names(&certificate),
        })
    }

    fn left(&self, now: Timestamp) -> SignedDuration {
        self.until.duration_since(now)
    }

    fn age(&self, now: Timestamp) -> SignedDuration {
        now.duration_since(self.from).saturating_sub(SKEW)
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    let all = extension.iter().flat_map(|extension| &extension.value.general_names);
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    };
    all.filter_map(name).collect()
}

fn facts(pem: &str) -> Option<Vec<Facts>> {
    let certificates = CertificateDer::pem_slice_iter(pem.as_bytes());
    let facts = certificates.map(|certificate| Facts::of(&certificate.ok()?));
    facts.collect::<Option<Vec<Facts>>>().filter(|facts| !facts.is_empty())
}

/// What to do next with what is kept, for a server of these names.
pub(super) fn next(kept: Option<&Kept>, names: &[String], now: Timestamp) -> Step {
    let read = |kept: &Kept| Some((facts(&kept.authorities)?, facts(&kept.certificate)?));
    let Some((authorities, certificates)) = kept.and_then(read) else { return Step::Start };
    let (Some(newest), Some(shown)) = (authorities.first(), certificates.first()) else {
        return Step::Start;
    };
    if newest.left(now) <= SignedDuration::ZERO {
        return Step::Start;
    }
    let by_newest = shown.issuer == newest.subject;
    let expired = shown.left(now) <= SignedDuration::ZERO;
    let stale = shown.left(now) < CERTIFICATE_RENEWAL
        || names.iter().any(|name| !shown.names.contains(name));
    if by_newest {
        if stale {
            return Step::Sign;
        }
        if newest.left(now) < AUTHORITY_RENEWAL {
            return Step::AddAuthority;
        }
        let settled = shown.age(now) >= SETTLE;
        return if authorities.len() > 1 && settled { Step::DropAuthorities } else { Step::Keep };
    }
    // Clients must know the newest authority before they see a certificate that it signed.
    if newest.age(now) >= SETTLE || expired { Step::Sign } else { Step::Keep }
}

/// What is kept after a step.
///
/// # Errors
/// A certificate could not be made.
pub(super) fn take(
    step: Step,
    kept: Option<&Kept>,
    names: &[String],
    now: Timestamp,
) -> Result<Kept, MakeError> {
    match (step, kept) {
        (Step::Keep, Some(kept)) => Ok(kept.clone()),
        (Step::Sign, Some(kept)) => {
            let (certificate, key) = sign(&kept.authorities, &kept.authority_key, names, now)?;
            Ok(Kept { certificate, key, ..kept.clone() })
        }
        (Step::AddAuthority, Some(kept)) => {
            let (authority, authority_key) = authority(now)?;
            let authorities = format!("{authority}{}", kept.authorities);
            Ok(Kept { authorities, authority_key, ..kept.clone() })
        }
        (Step::DropAuthorities, Some(kept)) => {
            let end = "-----END CERTIFICATE-----";
            let newest = kept.authorities.split_inclusive(end).next().unwrap_or_default();
            Ok(Kept { authorities: format!("{}\n", newest.trim_start()), ..kept.clone() })
        }
        (Step::Start, _) | (_, None) => {
            let (authorities, authority_key) = authority(now)?;
            let (certificate, key) = sign(&authorities, &authority_key, names, now)?;
            Ok(Kept { authorities, authority_key, certificate, key })
        }
    }
}

fn valid(
    params: &mut CertificateParams,
    now: Timestamp,
    life: SignedDuration,
) -> Result<(), MakeError> {
    let clock = |_| MakeError::Clock(now);
    params.not_before = SystemTime::from(now.checked_sub(SKEW).map_err(clock)?).into();
    params.not_after = SystemTime::from(now.checked_add(life).map_err(clock)?).into();
    Ok(())
}

/// What an authority is called; the time tells one from the next.
fn authority_params(name: &str) -> Result<CertificateParams, MakeError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A new authority and its key.
fn authority(now: Timestamp) -> Result<(String, String), MakeError> {
    let key = KeyPair::generate()?;
    let mut params = authority_params(&format!("podscale-serving-ca@{}", now.as_second()))?;
    valid(&mut params, now, AUTHORITY_LIFE)?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// A new certificate of the first authority, and its key.
fn sign(
    authorities: &str,
    authority_key: &str,
    names: &[String],
    now: Timestamp,
) -> Result<(String, String), MakeError> {
    let newest = CertificateDer::from_pem_slice(authorities.as_bytes()).ok();
    let parsed = newest.as_ref().and_then(|newest| parse_x509_certificate(newest).ok());
    let name = parsed.as_ref().and_then(|(_, c)| c.subject().iter_common_name().next());
    let name = name.and_then(|name| name.as_str().ok()).unwrap_or_default();
    let issuer = Issuer::new(authority_params(name)?, KeyPair::from_pem(authority_key)?);
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(names.to_vec())?;
    let common = names.first().map_or("podscale", String::as_str);
    // Longer ones are no common names.
    let common: String = common.chars().take(64).collect();
    params.distinguished_name.push(DnType::CommonName, common);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    valid(&mut params, now, CERTIFICATE_LIFE)?;
    Ok((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
}
