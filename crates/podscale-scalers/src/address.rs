//! Addresses of servers: scheme, credentials, host, path and query apart.

use crate::secret::Secret;

/// An address in its parts; what is percent-encoded stays so, but for the credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Address {
    /// `http`, `amqps` and so on, in lower case.
    pub(crate) scheme: String,
    /// The user, decoded; empty if there is none.
    pub(crate) user: String,
    /// The password, decoded.
    pub(crate) password: Option<Secret>,
    /// Host and port.
    pub(crate) authority: String,
    /// From the first slash on; empty if there is none.
    pub(crate) path: String,
    /// After the question mark.
    pub(crate) query: Option<String>,
}

impl Address {
    /// Takes an address apart.
    ///
    /// # Errors
    /// It is none; the text says why and does not repeat it, since it may hold a password.
    pub(crate) fn parse(text: &str) -> Result<Address, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("it has no scheme such as http://")?;
        let of_a_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        if scheme.is_empty() || !scheme.bytes().all(of_a_scheme) {
            return Err("it has no scheme such as http://");
        }
        if text.bytes().any(|byte| byte.is_ascii_control() || byte == b' ') {
            return Err("it has a character that no address can have");
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query.to_owned())),
            None => (rest, None),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (credentials, authority) = match authority.rsplit_once('@') {
            Some((credentials, authority)) => (Some(credentials), authority),
            None => (None, authority),
        };
        if authority.is_empty() || authority.starts_with(':') {
            return Err("it has no host");
        }
        let (user, password) = match credentials.map(|both| both.split_once(':').ok_or(both)) {
            None => (String::new(), None),
            Some(Err(user)) => (decode(user), None),
            Some(Ok((user, password))) => (decode(user), Some(Secret::from(decode(password)))),
        };
        Ok(Address {
            scheme: scheme.to_ascii_lowercase(),
            user,
            password,
            authority: authority.to_owned(),
            path: path.to_owned(),
            query,
        })
    }

    /// Whether it is one of HTTP.
    pub(crate) fn is_http(&self) -> bool {
        matches!(self.scheme.as_str(), "http" | "https")
    }

    /// Scheme and host, which may be shown.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }

    /// The whole, without credentials.
    pub(crate) fn uri(&self) -> String {
        let query = self.query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{}{query}", self.origin(), self.path)
    }

    /// Host without port.
    pub(crate) fn host(&self) -> &str {
        match self.authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => &self.authority,
        }
    }

    /// Whether it is the machine itself: a sidecar, or a test.
    pub(crate) fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// The port, if the address has one.
    pub(crate) fn port(&self) -> Option<u16> {
        self.authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
    }
}

/// Whether a host is the machine itself.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_address = bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    host == "localhost" || is_address
}

/// Replaces `%41` by what it stands for; what stands for nothing stays.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(found) => {
                decoded.push(found);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

/// Writes everything but letters, digits and `-_.~` as `%41`: for one part of a path or query.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        use std::fmt::Write;
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, expected) in [
            ("http://h", "http  - h  -"),
            ("HTTP://h:80/a/b?c=d#e", "http  - h:80 /a/b c=d"),
            ("amqp://guest:p%40ss@h:5672/v%2Fh", "amqp guest p@ss h:5672 /v%2Fh -"),
            ("amqp://user@h", "amqp user - h  -"),
            ("http://a:b@c@h/", "http a b@c h / -"),
            ("https://[::1]:8080/x", "https  - [::1]:8080 /x -"),
            ("h:80/a", "it has no scheme such as http://"),
            ("http://", "it has no host"),
            ("http://u:p@:80", "it has no host"),
            ("http://h/a b", "it has a character that no address can have"),
        ] {
            let found = match Address::parse(text) {
                Err(problem) => problem.to_owned(),
                Ok(a) => {
                    let password = a.password.as_ref().map_or("-", Secret::expose);
                    let query = a.query.as_deref().unwrap_or("-");
                    format!("{} {} {password} {} {} {query}", a.scheme, a.user, a.authority, a.path)
                }
            };
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn hosts_and_ports_are_told_apart() {
        for (text, host, port) in [
            ("http://h", "h", None),
            ("http://h:81", "h", Some(81)),
            ("http://[::1]:81", "[::1]", Some(81)),
            ("http://h:99999", "h", None),
        ] {
            let address = Address::parse(text).expect("an address");
            assert_eq!((address.host(), address.port()), (host, port), "{text}");
        }
    }

    #[test]
    fn what_is_encoded_is_decoded_to_the_same() {
        for text in ["a", "a/b c", "é日", "100%", "%zz", ""] {
            assert_eq!(decode(&encode(text)), text);
        }
        assert_eq!(decode("%zz%4"), "%zz%4");
    }
}
