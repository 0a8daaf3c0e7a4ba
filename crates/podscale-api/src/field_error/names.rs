//! Rules for the names of objects and for references, in the words used for fields.

use crate::names::{dns_label_errors, dns_subdomain_errors};

/// Longest DNS label.
const LABEL_LIMIT: usize = 63;

/// What is wrong with a DNS label (RFC 1123).
pub fn dns_label(text: &str) -> Vec<String> {
    counted_in_characters(dns_label_errors(text))
}

/// What is wrong with a DNS subdomain (RFC 1123).
pub fn dns_subdomain(text: &str) -> Vec<String> {
    counted_in_characters(dns_subdomain_errors(text))
}

/// Fields state their limits in characters where label keys state them in bytes.
fn counted_in_characters(problems: Vec<String>) -> Vec<String> {
    problems
        .into_iter()
        .map(|problem| match problem.strip_suffix(" bytes") {
            Some(limit) => format!("{limit} characters"),
            None => problem,
        })
        .collect()
}

/// What is wrong with a DNS label that must start with a letter (RFC 1035).
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LIMIT {
        problems.push(format!("must be no more than {LABEL_LIMIT} characters"));
    }
    let bytes = text.as_bytes();
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let fits = bytes.first().is_some_and(u8::is_ascii_lowercase)
        && bytes.last().is_some_and(|last| *last != b'-')
        && bytes.iter().all(inner);
    if !fits {
        problems.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

/// What is wrong with a name that becomes one part of a URL's path.
pub fn path_segment(text: &str) -> Vec<String> {
    if matches!(text, "." | "..") {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| text.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

/// Splits `group/version`; the error is Go's.
pub fn group_version(text: &str) -> Result<(&str, &str), String> {
    match text.split('/').collect::<Vec<_>>().as_slice() {
        [""] | ["", ""] => Ok(("", "")),
        [version] => Ok(("", version)),
        [group, version] => Ok((group, version)),
        _ => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

/// A generated name's prefix with its closing dash replaced, since something follows it.
pub fn mask_trailing_dash(prefix: &str) -> String {
    // One character more goes, as in Kubernetes; what is left is enough to judge the prefix by.
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let mut kept = rest.to_owned();
            kept.pop();
            kept.push('a');
            kept
        }
        _ => prefix.to_owned(),
    }
}
