//! Addresses and ranges of them. Those that can be understood in several ways (zeros lead, bits beyond
//! the prefix are set) are told from those that cannot be understood.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use podscale_api::field_error::{FieldError, FieldPath};
use serde_json::Value;

use crate::value::{list, text};

/// An address and how many of its bits are the network's.
struct Range {
    address: IpAddr,
    prefix: u32,
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let address = address_of(address)?;
        let fine = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix: u32 = prefix.parse().ok().filter(|_| fine)?;
        let range = Self { address, prefix };
        (prefix <= range.width()).then_some(range)
    }

    fn width(&self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    fn network(&self) -> IpAddr {
        masked(self.address, self.prefix)
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && masked(address, self.prefix) == self.network()
    }
}

fn masked(address: IpAddr, prefix: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or_default();
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix.min(128)).unwrap_or_default();
            Ipv6Addr::from(u128::from(address) & mask).into()
        }
    }
}

/// An address whose decimal parts may have leading zeros.
pub(super) fn address_of(text: &str) -> Option<IpAddr> {
    let stripped: Vec<&str> = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        })
        .collect();
    if text.contains(':') { text.parse().ok() } else { stripped.join(".").parse().ok() }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// What is wrong with a range that was not there before.
fn check_range(text: &str, known: &[&str], path: &FieldPath) -> Option<FieldError> {
    if known.contains(&text) {
        return None;
    }
    let detail = match Range::parse(text) {
        None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        Some(_) if !is_plain(text) => "must not have leading 0s in IP or prefix length",
        Some(range) if is_mapped(range.address) => "must not have an IPv4-mapped IPv6 address",
        Some(range) if range.network() != range.address => {
            "must not have bits set beyond the prefix length"
        }
        Some(_) => return None,
    };
    Some(FieldError::invalid(path, text, detail))
}

/// Whether neither the address nor the length of the prefix has leading zeros.
fn is_plain(range: &str) -> bool {
    let (address, prefix) = range.split_once('/').unwrap_or((range, ""));
    address.parse::<IpAddr>().is_ok() && (prefix == "0" || !prefix.starts_with('0'))
}

/// What is wrong with an address.
pub(super) fn address_problem(text: &str) -> Option<&'static str> {
    match (address_of(text), text.parse::<IpAddr>()) {
        (None, _) => Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        (Some(_), Err(_)) => Some("must not have leading 0s"),
        (Some(address), Ok(_)) if is_mapped(address) => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        _ => None,
    }
}

/// Checks a block of addresses and the ranges that it leaves out.
pub(super) fn check_block(block: &Value, known: &[&str], path: &FieldPath) -> Vec<FieldError> {
    let cidr = text(block, "/cidr");
    let field = path.child("cidr");
    if cidr.is_empty() {
        return vec![FieldError::required(&field, "")];
    }
    let mut errors: Vec<FieldError> = check_range(cidr, known, &field).into_iter().collect();
    let Some(range) = Range::parse(cidr) else { return errors };
    for (index, except) in list(block, "/except").iter().enumerate() {
        let field = path.child("except").index(index);
        let except = except.as_str().unwrap_or_default();
        errors.extend(check_range(except, known, &field));
        let Some(inner) = Range::parse(except) else { continue };
        if !range.contains(inner.network()) || range.prefix >= inner.prefix {
            let detail = "must be a strict subset of `cidr`";
            errors.push(FieldError::invalid(&field, except, detail));
        }
    }
    errors
}

/// A valid range that is not written the usual way.
pub(super) fn range_warning(path: &FieldPath, text: &str) -> Option<String> {
    let range = Range::parse(text)?;
    let canonical = format!("{}/{}", range.address, range.prefix);
    (range.address.is_ipv6() && canonical != text).then(|| {
        format!(
            "{path}: IPv6 CIDR value {text:?} should be in RFC 5952 canonical format \
             ({canonical:?})"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_addresses() {
        let range = |text: &str| Range::parse(text).expect(text);
        assert!(range("10.0.0.0/8").contains(range("10.1.0.0/16").network()));
        assert!(!range("10.0.0.0/8").contains(range("11.0.0.0/16").network()));
        assert!(!range("0.0.0.0/0").contains(range("::/0").network()));
        assert_eq!(range("010.1.2.3/8").network(), range("10.0.0.0/8").network());
        assert_eq!(range("2001:db8::1/64").network().to_string(), "2001:db8::");
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/8", "x/8", "10.0.0.0/+8"] {
            assert!(Range::parse(text).is_none(), "{text}");
        }
    }
}
