//! What a request proves itself with. Secrets stand in files, which are read again when they change.

use super::{PrometheusError, SetupError};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// How long a file is believed to be as it was.
const REREAD: Duration = Duration::from_secs(5);
/// The largest secret.
const MOST_BYTES: usize = 64 << 10;

/// What every request carries. At most one of a token and a user name is sent.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// A user's name for basic authentication.
    pub username: Option<String>,
    /// A file with the user's password.
    pub password_file: Option<PathBuf>,
    /// Further headers, `Name: value` each.
    pub headers: Vec<String>,
}

/// The headers of requests.
pub(super) struct Authorization {
    token: Option<SecretFile>,
    user: Option<(String, Option<SecretFile>)>,
    headers: HeaderMap,
}

impl Authorization {
    /// Checks what does not depend on files.
    pub(super) fn new(credentials: Credentials) -> Result<Authorization, SetupError> {
        let Credentials { token_file, username, password_file, headers } = credentials;
        if token_file.is_some() && username.is_some() {
            let problem = "a token and a user name cannot both be sent";
            return Err(SetupError::new("credentials", problem));
        }
        if password_file.is_some() && username.is_none() {
            return Err(SetupError::new("credentials", "a password needs a user name"));
        }
        let mut map = HeaderMap::new();
        for line in &headers {
            let (name, value) = header(line)?;
            map.append(name, value);
        }
        let user = username.map(|name| (name, password_file.map(SecretFile::new)));
        Ok(Authorization { token: token_file.map(SecretFile::new), user, headers: map })
    }

    /// The headers of a request now; `fresh` reads files even if they were read a moment ago.
    pub(super) async fn headers(&self, fresh: bool) -> Result<HeaderMap, PrometheusError> {
        let mut headers = self.headers.clone();
        let value = if let Some(token) = &self.token {
            Some(format!("Bearer {}", token.read(fresh).await?))
        } else if let Some((name, password)) = &self.user {
            let password = match password {
                Some(file) => file.read(fresh).await?,
                None => String::new(),
            };
            Some(format!("Basic {}", STANDARD.encode(format!("{name}:{password}"))))
        } else {
            None
        };
        if let Some(value) = value {
            let mut value = HeaderValue::try_from(value).map_err(|_| {
                PrometheusError::Setup("the token has characters that no header can have".into())
            })?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(headers)
    }
}

fn header(line: &str) -> Result<(HeaderName, HeaderValue), SetupError> {
    let wrong = |problem: &str| SetupError::new("header", format!("{problem}, such as X-Scope: a"));
    let (name, value) =
        line.split_once(':').ok_or_else(|| wrong("must have a name and a value"))?;
    let name = HeaderName::try_from(name.trim()).map_err(|_| wrong("must have a valid name"))?;
    let value =
        HeaderValue::from_str(value.trim()).map_err(|_| wrong("must have a valid value"))?;
    Ok((name, value))
}

/// A secret in a file.
struct SecretFile {
    path: PathBuf,
    known: Mutex<Option<(Instant, String)>>,
}

impl SecretFile {
    fn new(path: PathBuf) -> SecretFile {
        SecretFile { path, known: Mutex::default() }
    }

    /// The secret without the line break at its end. One that cannot be read stays as it was: the file may
    /// be about to be replaced.
    async fn read(&self, fresh: bool) -> Result<String, PrometheusError> {
        let known = self.known.lock().clone();
        if let Some((read, secret)) = &known
            && !fresh
            && read.elapsed() < REREAD
        {
            return Ok(secret.clone());
        }
        match (read_secret(&self.path).await, known) {
            (Ok(secret), _) => {
                *self.known.lock() = Some((Instant::now(), secret.clone()));
                Ok(secret)
            }
            (Err(_), Some((_, secret))) => Ok(secret),
            (Err(problem), None) => {
                Err(PrometheusError::Setup(format!("{}: {problem}", self.path.display()).into()))
            }
        }
    }
}

async fn read_secret(path: &Path) -> Result<String, String> {
    let bytes = tokio::fs::read(path).await.map_err(|error| error.to_string())?;
    if bytes.len() > MOST_BYTES {
        return Err(format!("larger than {MOST_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "not text".to_owned())?;
    match text.trim_end_matches(['\r', '\n']) {
        "" => Err("empty".to_owned()),
        secret => Ok(secret.to_owned()),
    }
}
