//! The token that kubelets are shown. One in a file is read again whenever the file changes, since
//! tokens of service accounts are replaced about once an hour.

use axum::http::header::HeaderValue;
use parking_lot::Mutex;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use thiserror::Error;

/// No token is longer.
const MAX_BYTES: u64 = 64 << 10;

/// Why there is no token.
#[derive(Debug, Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("the token file {} cannot be read: {source}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What it holds is no token.
    #[error("what the token file {} holds is no token", .0.display())]
    Unusable(PathBuf),
}

/// What kubelets are shown.
#[derive(Debug)]
pub struct Token(Source);

#[derive(Debug)]
enum Source {
    None,
    Fixed(HeaderValue),
    File { path: PathBuf, known: Mutex<Option<Known>> },
}

/// What a file held.
#[derive(Debug)]
struct Known {
    header: HeaderValue,
    version: Option<Version>,
}

/// By what it is seen that a file has changed.
type Version = (Option<SystemTime>, u64);

fn version(of: &Metadata) -> Version {
    (of.modified().ok(), of.len())
}

impl Token {
    /// None is shown.
    #[must_use]
    pub fn none() -> Token {
        Token(Source::None)
    }

    /// Always the same; nothing if it is no token.
    #[must_use]
    pub fn fixed(text: &str) -> Option<Token> {
        header(text).map(|header| Token(Source::Fixed(header)))
    }

    /// What a file holds at the time.
    #[must_use]
    pub fn file(path: PathBuf) -> Token {
        Token(Source::File { path, known: Mutex::default() })
    }

    /// The header that shows it. A file that has become unreadable still counts as it was.
    pub(super) fn current(&self) -> Result<Option<HeaderValue>, TokenError> {
        let (path, known) = match &self.0 {
            Source::None => return Ok(None),
            Source::Fixed(header) => return Ok(Some(header.clone())),
            Source::File { path, known } => (path, known),
        };
        let found = std::fs::metadata(path).ok().as_ref().map(version);
        let mut known = known.lock();
        if let Some(known) = &*known
            && (found.is_none() || known.version == found)
        {
            return Ok(Some(known.header.clone()));
        }
        match read(path) {
            Ok(read) => Ok(Some(known.insert(read).header.clone())),
            Err(error) => match &*known {
                Some(known) => Ok(Some(known.header.clone())),
                None => Err(error),
            },
        }
    }

    /// The header after reading the file whether it seems to have changed or not.
    pub(super) fn read_again(&self) -> Result<Option<HeaderValue>, TokenError> {
        if let Source::File { known, .. } = &self.0
            && let Some(known) = &mut *known.lock()
        {
            known.version = None;
        }
        self.current()
    }
}

fn read(path: &Path) -> Result<Known, TokenError> {
    let fail = |source| TokenError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let version = file.metadata().ok().as_ref().map(version);
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(fail)?;
    let header = header(&text).ok_or_else(|| TokenError::Unusable(path.to_owned()))?;
    Ok(Known { header, version })
}

fn header(text: &str) -> Option<HeaderValue> {
    let text = text.trim();
    let mut header = HeaderValue::try_from(format!("Bearer {text}")).ok()?;
    header.set_sensitive(true);
    (!text.is_empty()).then_some(header)
}
