//! `krb5.conf`: where the KDCs of realms are, and which realm a host is in.

use std::collections::HashMap;

/// The port of KDCs that name none.
const PORT: u16 = 88;

/// What counts of a file. What it includes is not read, and DNS is not asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    default_realm: Option<String>,
    /// Addresses by realm, in their order.
    kdcs: HashMap<String, Vec<String>>,
    /// Realms by host, or by the end of its name if that begins with a dot.
    domains: HashMap<String, String>,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// A line is none of such a file, with its number.
    pub(super) fn read(text: &str) -> Result<Config, String> {
        let mut config = Config::default();
        let mut section = String::new();
        let mut open: Vec<String> = Vec::new();
        for (number, line) in (1_usize..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) || is_directive(line) {
                continue;
            }
            if let Some(name) = line.strip_prefix('[') {
                let name = name.split_once(']').map(|(name, _)| name);
                let name = name.ok_or_else(|| format!("line {number}: there is no ]"))?;
                section = name.trim().to_ascii_lowercase();
                open.clear();
                continue;
            }
            if line.starts_with('}') {
                open.pop().ok_or_else(|| format!("line {number}: there is no {{ before the }}"))?;
                continue;
            }
            let (name, value) = line
                .split_once('=')
                .ok_or_else(|| format!("line {number}: it is not name = value"))?;
            let (name, value) = (name.trim(), plain(value));
            if value.starts_with('{') {
                // What is closed in the same line has nothing that counts.
                if !value.ends_with('}') {
                    open.push(name.to_owned());
                }
                continue;
            }
            config.add(&section, &open, name, value);
        }
        Ok(config)
    }

    fn add(&mut self, section: &str, open: &[String], name: &str, value: &str) {
        match (section, open) {
            ("libdefaults", []) if name == "default_realm" => {
                self.default_realm.get_or_insert_with(|| value.to_owned());
            }
            ("realms", [realm]) if name == "kdc" => {
                let kdcs = self.kdcs.entry(realm.clone()).or_default();
                kdcs.extend(address(value));
            }
            ("domain_realm", []) => {
                let name = name.to_ascii_lowercase();
                self.domains.entry(name).or_insert_with(|| value.to_owned());
            }
            _ => {}
        }
    }

    /// The addresses of a realm's KDCs.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn kdcs(&self, realm: &str) -> Result<&[String], String> {
        let known = self.kdcs.get(realm).filter(|kdcs| !kdcs.is_empty());
        known.map(Vec::as_slice).ok_or_else(|| {
            format!(
                "kerberosConfig has no KDC of realm {realm:?} that is reached by TCP; DNS is not asked: \
                 write {realm} = {{ kdc = host:88 }}, in three lines, below [realms]"
            )
        })
    }

    /// The realm of a host: the most exact of those that are named, or the default.
    pub(super) fn realm_of(&self, host: &str) -> Option<&str> {
        let host = host.to_ascii_lowercase();
        let ends = host.match_indices('.').flat_map(|(at, _)| [&host[at..], &host[at + 1..]]);
        let named =
            std::iter::once(host.as_str()).chain(ends).find_map(|end| self.domains.get(end));
        named.or(self.default_realm.as_ref()).map(String::as_str)
    }
}

/// What refers to other files.
fn is_directive(line: &str) -> bool {
    let first = line.split_whitespace().next();
    !line.contains('=') && matches!(first, Some("include" | "includedir" | "module"))
}

/// A value without quotes, and without the mark that nothing else counts.
fn plain(value: &str) -> &str {
    let value = value.trim();
    let value = value.strip_suffix('*').map_or(value, str::trim_end);
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// A host and port; none if it is not reached by TCP.
fn address(value: &str) -> Option<String> {
    let value = value.strip_prefix("tcp/").unwrap_or(value);
    let value = value.strip_prefix("udp/").unwrap_or(value);
    if value.is_empty() || value.contains('/') {
        return None;
    }
    let has_port = match value.rsplit_once(':') {
        Some((host, port)) => {
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        }
        None => false,
    };
    Some(match has_port {
        true => value.to_owned(),
        false if value.contains(':') && !value.starts_with('[') => format!("[{value}]:{PORT}"),
        false => format!("{value}:{PORT}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: &str = "
# A comment
includedir /etc/krb5.conf.d/
[libdefaults]
    default_realm = SHOP.TEST
    dns_lookup_kdc = true
[realms]
    SHOP.TEST = {
        kdc = one.shop.test
        kdc = tcp/two.shop.test:1088
        kdc = \"[::1]:99\"
        kdc = ::1
        kdc = https://proxy.shop.test/kdc
        admin_server = one.shop.test
        auth_to_local_names = {
            kdc = nobody
        }
    }
    OTHER.TEST = {
        kdc = https://proxy/
    }
[domain_realm]
    .shop.test = SHOP.TEST
    broker.shop.test = KAFKA.TEST
    Else.test = ELSE.TEST *
";

    #[test]
    fn realms_have_kdcs_and_hosts_have_realms() {
        let config = Config::read(FILE).expect("a file");
        assert_eq!(
            config.kdcs("SHOP.TEST").expect("some"),
            ["one.shop.test:88", "two.shop.test:1088", "[::1]:99", "[::1]:88"]
        );
        for realm in ["OTHER.TEST", "NONE.TEST"] {
            let none = config.kdcs(realm).expect_err("none");
            assert!(none.contains(realm) && none.contains("DNS is not asked"), "{none}");
        }
        for (host, expected) in [
            ("broker.shop.test", "KAFKA.TEST"),
            ("Broker.Shop.Test", "KAFKA.TEST"),
            ("a.b.shop.test", "SHOP.TEST"),
            ("x.else.test", "ELSE.TEST"),
            ("127.0.0.1", "SHOP.TEST"),
        ] {
            assert_eq!(config.realm_of(host), Some(expected), "{host}");
        }
        assert_eq!(Config::default().realm_of("a.b"), None);
    }

    #[test]
    fn what_is_no_file_is_refused_with_its_line() {
        for (text, expected) in [
            ("[realms", "line 1: there is no ]"),
            ("\nkdc", "line 2: it is not name = value"),
            ("}", "line 1: there is no { before the }"),
        ] {
            assert_eq!(Config::read(text), Err(expected.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "([\\[\\]{}=#.* a\n]|kdc|realms|domain_realm){0,60}", host in ".{0,30}") {
            if let Ok(config) = Config::read(&text) {
                let _ = config.realm_of(&host);
            }
        }
    }
}
