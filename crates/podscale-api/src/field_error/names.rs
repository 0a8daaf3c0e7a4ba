//! Which names Kubernetes accepts, and what it says about the others.

/// Longest DNS label.
const LABEL_LIMIT: usize = 63;
/// Longest DNS subdomain.
const SUBDOMAIN_LIMIT: usize = 253;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN_PATTERN: &str =
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS_1035_PATTERN: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE_PATTERN: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
const DNS_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters \
    or '-', start with an alphabetic character, and end with an alphanumeric character";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
    start and end with an alphanumeric character";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character";

fn rule(words: &str, examples: &[&str], pattern: &str) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

fn too_long(limit: usize, unit: &str) -> String {
    format!("must be no more than {limit} {unit}")
}

/// Whether the text starts and ends with an edge character and has only inner ones between.
fn shaped(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => edge(*only),
        [first, middle @ .., last] => {
            edge(*first) && edge(*last) && middle.iter().all(|byte| inner(*byte))
        }
    }
}

fn lower_or_digit(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    shaped(text, lower_or_digit, |byte| lower_or_digit(byte) || byte == b'-')
}

fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn is_qualified_part(text: &str) -> bool {
    shaped(
        text,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// What is wrong with a DNS label (RFC 1123).
pub fn dns_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LIMIT {
        problems.push(too_long(LABEL_LIMIT, "characters"));
    }
    if !is_label(text) {
        problems.push(match is_subdomain(text) {
            true => "must not contain dots".to_owned(),
            false => rule(LABEL_RULE, &["my-name", "123-abc"], LABEL_PATTERN),
        });
    }
    problems
}

/// What is wrong with a DNS subdomain (RFC 1123).
pub fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain_problems(text, "characters")
}

fn subdomain_problems(text: &str, unit: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > SUBDOMAIN_LIMIT {
        problems.push(too_long(SUBDOMAIN_LIMIT, unit));
    }
    if !is_subdomain(text) {
        problems.push(rule(SUBDOMAIN_RULE, &["example.com"], SUBDOMAIN_PATTERN));
    }
    problems
}

/// What is wrong with a DNS label that must start with a letter (RFC 1035).
pub fn dns_1035_label(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LIMIT {
        problems.push(too_long(LABEL_LIMIT, "characters"));
    }
    if !is_label(text) || !text.starts_with(|first: char| first.is_ascii_lowercase()) {
        problems.push(rule(DNS_1035_RULE, &["my-name", "abc-123"], DNS_1035_PATTERN));
    }
    problems
}

/// What is wrong with a name such as `app` or `example.com/app`: keys of labels and annotations.
pub fn qualified_name(text: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let parts: Vec<&str> = text.split('/').collect();
    let (prefix, name) = match parts.as_slice() {
        [name] => (None, *name),
        [prefix, name] => (Some(*prefix), *name),
        _ => {
            let shape = rule(QUALIFIED_RULE, &examples, QUALIFIED_PATTERN);
            return vec![format!(
                "a valid label key {shape} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
    };
    let mut problems = match prefix {
        None => Vec::new(),
        Some("") => vec!["prefix part must be non-empty".to_owned()],
        Some(prefix) => subdomain_problems(prefix, "bytes")
            .into_iter()
            .map(|problem| format!("prefix part {problem}"))
            .collect(),
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LIMIT {
        problems.push(format!("name part {}", too_long(LABEL_LIMIT, "bytes")));
    }
    if !is_qualified_part(name) {
        problems
            .push(format!("name part {}", rule(QUALIFIED_RULE, &examples, QUALIFIED_PATTERN)));
    }
    problems
}

/// What is wrong with a label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if text.len() > LABEL_LIMIT {
        problems.push(too_long(LABEL_LIMIT, "bytes"));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        let examples = ["MyValue", "my_value", "12345"];
        problems.push(rule(LABEL_VALUE_RULE, &examples, LABEL_VALUE_PATTERN));
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
        [""] => Ok(("", "")),
        ["", ""] => Ok(("", "")),
        [version] => Ok(("", version)),
        [group, version] => Ok((group, version)),
        _ => Err(format!("unexpected GroupVersion string: {text}")),
    }
}

/// A generated name's prefix with its closing dash replaced, since something follows it.
pub fn mask_trailing_dash(prefix: &str) -> String {
    // Go cuts two bytes and adds one letter, which is enough to judge the prefix by.
    match prefix.strip_suffix('-') {
        Some(rest) if !rest.is_empty() => {
            let kept: String = rest.chars().take(rest.chars().count() - 1).collect();
            format!("{kept}a")
        }
        _ => prefix.to_owned(),
    }
}
