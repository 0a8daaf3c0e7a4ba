//! What Kubernetes accepts as names, label keys and label values, and the words it rejects others
//! with.

const LABEL_KEY_FORM: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
     start and end with an alphanumeric character";
const LABEL_VALUE_FORM: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric \
     characters, '-', '_' or '.', and must start and end with an alphanumeric character";
const DNS_LABEL_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS_LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
     characters or '-', and must start and end with an alphanumeric character";
const SUBDOMAIN_FORM: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
     alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

/// What is wrong with a label key (`name` or `prefix/name`); nothing if it is valid.
pub fn label_key_errors(key: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            let rule =
                rule_broken(LABEL_KEY_RULE, LABEL_KEY_FORM, &["MyName", "my.name", "123-abc"]);
            return vec![format!(
                "a valid label key {rule} with an optional DNS subdomain prefix and '/' \
                 (e.g. 'example.com/MyName')"
            )];
        }
        Some(("", name)) => {
            errors.push("prefix part must be non-empty".into());
            name
        }
        Some((prefix, name)) => {
            let wrong = dns_subdomain_errors(prefix);
            errors.extend(wrong.into_iter().map(|error| format!("prefix part {error}")));
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".into());
    } else if name.len() > LABEL_LENGTH {
        errors.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !is_label_word(name) {
        let rule = rule_broken(LABEL_KEY_RULE, LABEL_KEY_FORM, &["MyName", "my.name", "123-abc"]);
        errors.push(format!("name part {rule}"));
    }
    errors
}

/// What is wrong with a label value; nothing if it is valid.
pub fn label_value_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_LENGTH {
        errors.push(too_long(LABEL_LENGTH));
    }
    if !value.is_empty() && !is_label_word(value) {
        let examples = ["MyValue", "my_value", "12345"];
        errors.push(rule_broken(LABEL_VALUE_RULE, LABEL_VALUE_FORM, &examples));
    }
    errors
}

/// What is wrong with a DNS label such as a container's name; nothing if it is valid.
pub fn dns_label_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > LABEL_LENGTH {
        errors.push(too_long(LABEL_LENGTH));
    }
    if !is_dns_label(value) {
        errors.push(if is_dns_subdomain(value) {
            "must not contain dots".into()
        } else {
            rule_broken(DNS_LABEL_RULE, DNS_LABEL_FORM, &["my-name", "123-abc"])
        });
    }
    errors
}

/// What is wrong with a DNS subdomain such as an object's name; nothing if it is valid.
pub fn dns_subdomain_errors(value: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > SUBDOMAIN_LENGTH {
        errors.push(too_long(SUBDOMAIN_LENGTH));
    }
    if !is_dns_subdomain(value) {
        errors.push(rule_broken(SUBDOMAIN_RULE, SUBDOMAIN_FORM, &["example.com"]));
    }
    errors
}

fn is_label_word(word: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    is_word(word, |byte| byte.is_ascii_alphanumeric(), inner)
}

fn is_dns_label(word: &str) -> bool {
    let outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_word(word, outer, |byte| outer(byte) || byte == b'-')
}

fn is_dns_subdomain(value: &str) -> bool {
    value.split('.').all(is_dns_label)
}

fn is_word(word: &str, outer: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = word.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    ends.is_some_and(|(first, last)| outer(*first) && outer(*last))
        && bytes.iter().all(|byte| inner(*byte))
}

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn rule_broken(rule: &str, form: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{form}')", examples.join(" or "))
}
