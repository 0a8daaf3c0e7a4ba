//! Connection strings of PostgreSQL: `host=… user=…`, or an address.

use crate::address::{Address, decode};
use crate::secret::Secret;
use crate::trigger::ServerKey;

/// Where a database is, and who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connection {
    /// Hosts with their ports, tried in turn.
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) database: String,
    pub(super) ssl: SslMode,
    pub(super) application: String,
    /// Parameters of the session, as the server takes them.
    pub(super) options: String,
}

/// How TLS is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SslMode {
    /// Not at all.
    Disable,
    /// If the server can, whoever it is.
    #[default]
    Prefer,
    /// Always, whoever the server is.
    Require,
    /// Always, with a certificate that is trusted, of whatever name.
    VerifyCa,
    /// Always, with a certificate that is trusted and names the host.
    VerifyFull,
}

const DEFAULT_PORT: u16 = 5432;

impl Connection {
    /// Reads a connection string. Texts of errors hold nothing of it but names.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn parse(text: &str) -> Result<Connection, String> {
        let text = text.trim();
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Connection::from_parts(address(text)?);
        }
        Connection::from_parts(pairs(text)?)
    }

    /// Makes one of names and values.
    ///
    /// # Errors
    /// A value cannot be used.
    pub(super) fn from_parts(parts: Vec<(String, String)>) -> Result<Connection, String> {
        let mut connection =
            Connection { application: "podscale".to_owned(), ..Connection::default() };
        let (mut hosts, mut ports) = (vec!["localhost".to_owned()], vec![DEFAULT_PORT]);
        let mut options = Vec::new();
        for (name, value) in parts {
            match name.as_str() {
                "host" => hosts = value.split(',').map(|host| host.trim().to_owned()).collect(),
                "port" => {
                    let read = value.split(',').map(|port| port.trim().parse::<u16>());
                    let read: Result<Vec<u16>, _> = read.collect();
                    ports = read.map_err(|_| "port is not a number from 1 to 65535".to_owned())?;
                }
                "user" => connection.user = value,
                "password" => connection.password = value.into(),
                "dbname" | "database" => connection.database = value,
                "sslmode" => connection.ssl = ssl_mode(&value)?,
                "application_name" => connection.application = value,
                "options" => options.push(value),
                "sslrootcert" | "sslcert" | "sslkey" | "sslpassword" | "passfile" | "service"
                | "servicefile" => {
                    return Err(format!("{name} names a file, and triggers may not read files"));
                }
                // How drivers behave, which is ours to say.
                "connect_timeout"
                | "target_session_attrs"
                | "sslnegotiation"
                | "sslsni"
                | "default_query_exec_mode"
                | "statement_cache_capacity"
                | "description_cache_capacity"
                | "min_read_buffer_size" => {}
                other if other.starts_with("pool_") => {}
                other => options.push(format!("-c {other}={}", value.replace(' ', "\\ "))),
            }
        }
        if hosts.iter().any(String::is_empty) {
            return Err("host is empty".to_owned());
        }
        if hosts.iter().any(|host| host.starts_with('/')) {
            return Err("host is a socket of this machine, which holds no database".to_owned());
        }
        let port =
            |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(DEFAULT_PORT);
        connection.hosts =
            hosts.into_iter().enumerate().map(|(place, host)| (host, port(place))).collect();
        connection.options = options.join(" ");
        Ok(connection)
    }

    /// What tells it from others, with whoever asks by another proof than a password.
    pub(super) fn key(&self, identity: &[&str]) -> ServerKey {
        let hosts: Vec<String> =
            self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        let address = format!("postgresql {}/{}", hosts.join(","), self.database);
        let ssl = format!("{:?}", self.ssl);
        let credentials =
            [self.user.as_str(), self.password.expose(), &ssl, &self.options, &self.application];
        ServerKey::new("postgresql", &address, &[&credentials[..], identity].concat())
    }
}

fn ssl_mode(text: &str) -> Result<SslMode, String> {
    Ok(match text {
        "disable" => SslMode::Disable,
        "allow" | "prefer" => SslMode::Prefer,
        "require" => SslMode::Require,
        "verify-ca" => SslMode::VerifyCa,
        "verify-full" => SslMode::VerifyFull,
        _ => {
            return Err(
                "sslmode is none of disable, allow, prefer, require, verify-ca and verify-full"
                    .to_owned(),
            );
        }
    })
}

/// The parts of an address.
fn address(text: &str) -> Result<Vec<(String, String)>, String> {
    let address = Address::parse(text)?;
    let mut parts = Vec::new();
    let hosts: Vec<(&str, Option<&str>)> = address
        .authority
        .split(',')
        .map(|host| match host.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (host, None),
        })
        .collect();
    let part = |name: &str, value: String| (name.to_owned(), value);
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
    parts.push(part("host", hosts.iter().map(|h| bare(h.0)).collect::<Vec<_>>().join(",")));
    let ports = hosts.iter().map(|(_, port)| port.unwrap_or("5432"));
    parts.push(part("port", ports.collect::<Vec<_>>().join(",")));
    if !address.user.is_empty() {
        parts.push(part("user", address.user.clone()));
    }
    if let Some(password) = &address.password {
        parts.push(part("password", password.expose().to_owned()));
    }
    let database = decode(address.path.trim_start_matches('/'));
    if !database.is_empty() {
        parts.push(part("dbname", database));
    }
    let query = address.query.as_deref().unwrap_or_default();
    parts.extend(form_urlencoded::parse(query.as_bytes()).into_owned());
    Ok(parts)
}

/// Names and values: `a=b c = 'd e'`, with backslashes before quotes and themselves.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let mut parts = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or("it is not name=value name=value")?;
        let name = name.trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err("it is not name=value name=value".to_owned());
        }
        let (value, after) = value(after.trim_start())?;
        parts.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    if parts.is_empty() { Err("it is empty".to_owned()) } else { Ok(parts) }
}

/// The value at the beginning, and what follows it.
fn value(text: &str) -> Result<(String, &str), String> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut chars = text.char_indices().skip(usize::from(quoted));
    while let Some((at, found)) = chars.next() {
        match found {
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            found if !quoted && found.is_whitespace() => return Ok((value, &text[at..])),
            found => value.push(found),
        }
    }
    if quoted { Err("a quote is not closed".to_owned()) } else { Ok((value, "")) }
}
