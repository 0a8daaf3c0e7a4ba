//! Connection strings as Go's driver reads them: `user:password@tcp(host:3306)/database?tls=true`.

use crate::secret::Secret;
use crate::trigger::ServerKey;

/// Where a database is, and who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connection {
    /// Host and port.
    pub(super) address: String,
    pub(super) user: String,
    pub(super) password: Secret,
    pub(super) database: String,
    pub(super) tls: TlsMode,
    /// Whether the password may be sent as it is, if the server asks for it and TLS is spoken.
    pub(super) cleartext: bool,
}

/// How TLS is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// Not at all.
    #[default]
    Off,
    /// If the server can, whoever it is.
    Preferred,
    /// Always, whoever the server is.
    SkipVerify,
    /// Always, with a certificate that is trusted and names the host.
    On,
}

impl Connection {
    /// Reads a connection string. Texts of errors hold nothing of it but names.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn parse(text: &str) -> Result<Connection, String> {
        // A password may have slashes; the name of a database has none.
        let (before, after) = text.rsplit_once('/').ok_or("it has no / before the database")?;
        let (database, options) = after.split_once('?').unwrap_or((after, ""));
        let (credentials, place) = match before.rsplit_once('@') {
            Some((credentials, place)) => (credentials, place),
            None => ("", before),
        };
        let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
        let mut connection = Connection {
            address: address(place)?,
            user: user.to_owned(),
            password: password.into(),
            database: database.to_owned(),
            ..Connection::default()
        };
        for (name, value) in form_urlencoded::parse(options.as_bytes()) {
            match &*name {
                "tls" => connection.tls = tls_mode(&value)?,
                "allowCleartextPasswords" => connection.cleartext = &*value == "true",
                // How Go's driver behaves, which is ours to say.
                _ => {}
            }
        }
        Ok(connection)
    }

    /// What tells it from others.
    pub(super) fn key(&self) -> ServerKey {
        let tls = format!("{:?} {}", self.tls, self.cleartext);
        let credentials = [self.user.as_str(), self.password.expose(), &tls];
        let address = format!("mysql {}/{}", self.address, self.database);
        ServerKey::new("mysql", &address, &credentials)
    }
}

/// Host and port, from `tcp(host:port)`.
fn address(place: &str) -> Result<String, String> {
    let inner = match place.split_once('(') {
        Some(("tcp", rest)) => rest.strip_suffix(')').ok_or("a bracket is not closed")?,
        Some(("unix", _)) => {
            return Err("it names a socket of this machine, which holds no database".to_owned());
        }
        Some(_) => return Err("it is reached by something else than tcp(host:port)".to_owned()),
        None if matches!(place, "" | "tcp") => "127.0.0.1:3306",
        None => return Err("it has no tcp(host:port)".to_owned()),
    };
    let has_port = inner.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(if has_port { inner.to_owned() } else { format!("{inner}:3306") })
}

/// What a word says of TLS.
///
/// # Errors
/// It is none of those that are known.
pub(super) fn tls_mode(text: &str) -> Result<TlsMode, String> {
    match text {
        "true" | "1" | "TRUE" | "True" => Ok(TlsMode::On),
        "false" | "0" | "FALSE" | "False" => Ok(TlsMode::Off),
        "skip-verify" => Ok(TlsMode::SkipVerify),
        "preferred" => Ok(TlsMode::Preferred),
        _ => Err("tls is none of true, false, skip-verify and preferred".to_owned()),
    }
}
