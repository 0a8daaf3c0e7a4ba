//! The certificate that the server shows: one of its own, which all replicas share through a Secret
//! and renew before it expires, or one from files.

mod files;
mod plan;
mod secret;

pub use files::Files;
pub use plan::{Kept, MakeError};
pub use secret::Own;

use super::tls::TlsError;
use podscale_client::call::CallError;
use std::path::PathBuf;

/// Why there is no certificate to show.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// What was read cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// None could be made.
    #[error(transparent)]
    Make(#[from] MakeError),
    /// The Secret cannot be read or written.
    #[error("the Secret {secret}: {source}")]
    Secret {
        /// Its namespace and name.
        secret: String,
        /// Why not.
        source: CallError,
    },
}
