//! Formats of texts that schemas can ask for. Formats that Kubernetes does not know ask for nothing.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use podscale_api::field_error::names;
use regex::Regex;

use super::schema::Schema;

/// The format that counts for a schema.
pub(super) fn supported(schema: &Schema) -> Option<&str> {
    let format = schema.format.as_str();
    let known = match schema.kind.as_str() {
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        "" | "string" => rule(format).is_some(),
        _ => false,
    };
    known.then_some(format)
}

/// Whether a text has the format.
pub(super) fn fits(format: &str, text: &str) -> bool {
    rule(format).is_none_or(|rule| rule(text))
}

type TextRule = fn(&str) -> bool;

fn rule(format: &str) -> Option<TextRule> {
    // Dashes in the name of a format do not count.
    Some(match format.replace('-', "").as_str() {
        "bsonobjectid" => |text| text.len() == 24 && is_hex(text),
        "uri" => is_uri,
        "email" => is_email,
        "hostname" => is_hostname,
        "ipv4" => |text| text.contains('.') && text.parse::<IpAddr>().is_ok(),
        "ipv6" => |text| text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr,
        "mac" => is_mac,
        "uuid" => |text| is_uuid(text, None),
        "uuid3" => |text| is_uuid(text, Some('3')),
        "uuid4" => |text| is_uuid(text, Some('4')),
        "uuid5" => |text| is_uuid(text, Some('5')),
        "isbn" => |text| is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10,
        "isbn13" => is_isbn13,
        "creditcard" => is_credit_card,
        "ssn" => |text| SSN.as_ref().is_some_and(|regex| regex.is_match(text)),
        "hexcolor" => |text| {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        },
        "rgbcolor" => is_rgb_color,
        "byte" => |text| BASE64.as_ref().is_some_and(|regex| regex.is_match(text)),
        "password" => |_| true,
        "date" => |text| text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration,
        "datetime" => is_date_time,
        "k8sshortname" => |text| names::dns_label(text).is_empty(),
        "k8slongname" => |text| names::dns_subdomain(text).is_empty(),
        _ => return None,
    })
}

// The patterns are constants that the tests below compile; a mistake in one refuses every text.
static HOSTNAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let word = r"[a-zA-Z0-9\p{S}\p{L}]";
    let inner = r"[a-zA-Z0-9\-\p{S}\p{L}]";
    let single = format!(r"{word}(-?{word}{{0,62}})?");
    let dotted = format!(r"({word}({inner}{{0,61}}{word})?\.)+[a-zA-Z\p{{L}}]{{2,63}}");
    Regex::new(&format!("^({single}|{dotted})$")).ok()
});
static SSN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\d{3}[- ]?\d{2}[- ]?\d{4}$").ok());
static BASE64: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let quad = "[A-Za-z0-9+/]";
    Regex::new(&format!("^(?:{quad}{{4}})*(?:{quad}{{2}}==|{quad}{{3}}=|{quad}{{4}})$")).ok()
});
static CREDIT_CARD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let issuers = [
        "4[0-9]{12}(?:[0-9]{3})?",
        "5[1-5][0-9]{14}",
        "6(?:011|5[0-9][0-9])[0-9]{12}",
        "3[47][0-9]{13}",
        "3(?:0[0-5]|[68][0-9])[0-9]{11}",
        r"(?:2131|1800|35\d{3})\d{11}",
    ];
    Regex::new(&format!("^(?:{})$", issuers.join("|"))).ok()
});

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// An absolute URI or an absolute path.
fn is_uri(text: &str) -> bool {
    let printable = !text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ');
    let rooted = text.starts_with('/')
        || text.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
        });
    printable && rooted
}

fn is_email(text: &str) -> bool {
    // Either the bare address or `Name <address>`.
    let address = match (text.rfind('<'), text.strip_suffix('>')) {
        (Some(open), Some(_)) => text.get(open + 1..text.len() - 1).unwrap_or_default(),
        _ => text,
    };
    address.rsplit_once('@').is_some_and(|(local, domain)| {
        let word = |text: &str| {
            !text.is_empty()
                && !text.contains(|c: char| c.is_whitespace() || "()<>@,;:\\\"[]".contains(c))
                && !text.starts_with('.')
                && !text.ends_with('.')
                && !text.contains("..")
        };
        word(local) && word(domain)
    })
}

fn is_hostname(text: &str) -> bool {
    text.len() <= 255
        && text.split('.').all(|part| part.len() <= 63)
        && HOSTNAME.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn is_cidr(text: &str) -> bool {
    text.split_once('/').is_some_and(|(address, length)| {
        let limit = match address.parse::<IpAddr>() {
            Ok(IpAddr::V4(_)) => 32,
            Ok(IpAddr::V6(_)) => 128,
            Err(_) => return false,
        };
        length.bytes().all(|byte| byte.is_ascii_digit())
            && length.parse::<u8>().is_ok_and(|length| length <= limit)
    })
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len())
            && parts.iter().all(|part| part.len() == width && is_hex(part))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    // Dashes may be left out, but not moved.
    let dashes_fit = {
        let mut position = 0;
        text.chars().all(|c| match c {
            '-' => matches!(position, 8 | 12 | 16 | 20),
            _ => {
                position += 1;
                true
            }
        }) && !text.contains("--")
    };
    let version_fits = version.is_none_or(|version| digits.chars().nth(12) == Some(version));
    let variant_fits = match version {
        Some('4' | '5') => digits
            .chars()
            .nth(16)
            .is_some_and(|c| matches!(c.to_ascii_lowercase(), '8' | '9' | 'a' | 'b')),
        _ => true,
    };
    digits.len() == 32 && is_hex(&digits) && dashes_fit && version_fits && variant_fits
}

fn book_number(text: &str) -> Vec<u32> {
    text.chars()
        .filter(|c| !matches!(c, '-' | ' '))
        .map(|c| if matches!(c, 'X' | 'x') { 10 } else { c.to_digit(10).unwrap_or(99) })
        .collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = book_number(text);
    let plain = digits.iter().take(9).all(|digit| *digit < 10);
    let sum: u32 = digits.iter().zip(1..).map(|(digit, weight)| digit * weight).sum();
    digits.len() == 10 && plain && digits.iter().all(|digit| *digit <= 10) && sum.is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = book_number(text);
    let sum: u32 =
        digits.iter().zip([1, 3].iter().cycle()).map(|(digit, weight)| digit * weight).sum();
    digits.len() == 13 && digits.iter().all(|digit| *digit < 10) && sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let checksum: u32 = digits
        .chars()
        .rev()
        .filter_map(|c| c.to_digit(10))
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    CREDIT_CARD.as_ref().is_some_and(|regex| regex.is_match(&digits)) && checksum.is_multiple_of(10)
}

fn is_rgb_color(text: &str) -> bool {
    let inside = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let parts: Vec<&str> = inside.unwrap_or_default().split(',').map(str::trim).collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u8>().is_ok())
}

/// A Go duration such as `1m30s`, or words such as `3 days`.
fn is_duration(text: &str) -> bool {
    const UNITS: [&str; 23] = [
        "ns",
        "nano",
        "us",
        "µs",
        "micro",
        "ms",
        "milli",
        "s",
        "sec",
        "m",
        "min",
        "h",
        "hr",
        "hour",
        "d",
        "day",
        "w",
        "wk",
        "week",
        "nanosecond",
        "microsecond",
        "millisecond",
        "second",
    ];
    if podscale_api::time::GoDuration::parse(text).is_ok() {
        return true;
    }
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_lowercase();
    !number.is_empty()
        && UNITS.iter().any(|known| unit == *known || unit.trim_end_matches('s') == *known)
}

/// RFC 3339, with any offset and fraction; a space or lower case is not accepted.
fn is_date_time(text: &str) -> bool {
    let shaped = text.as_bytes().get(10).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'T'));
    shaped && text.parse::<jiff::Timestamp>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compile() {
        for pattern in [&HOSTNAME, &SSN, &BASE64, &CREDIT_CARD] {
            assert!(pattern.is_some());
        }
    }

    #[test]
    fn formats_beyond_the_golden_file() {
        for (format, text, expected) in [
            ("isbn13", "978-0321751041", true),
            ("isbn10", "0321751044", false),
            ("uuid", "123e4567e89b12d3a456426614174000", true),
            ("uuid", "123e-4567e89b12d3a456426614174000", false),
            ("mac", "0000.5e00.5301", true),
            ("cidr", "fd00::/129", false),
            ("email", "A B <a@b.c>", true),
            ("email", "a@b@c", false),
            ("uri", "/path", true),
            ("nosuchformat", "x", true),
        ] {
            assert_eq!(fits(format, text), expected, "{format} {text}");
        }
    }
}
