//! A certificate from files that somebody else keeps valid. They are read again and again.

use super::CertificateError;
use crate::serve::tls::{Shown, certified};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the files are read; wall-clock.
const READ_INTERVAL: Duration = Duration::from_secs(10);

/// Where a certificate and its key are.
#[derive(Clone, Debug)]
pub struct Files {
    /// The certificate and those that lead to its authority, in PEM.
    pub certificate: PathBuf,
    /// Its key, in PEM.
    pub key: PathBuf,
}

impl Files {
    /// What the files hold now.
    ///
    /// # Errors
    /// They cannot be read, or are of no use.
    pub async fn read(&self) -> Result<Arc<CertifiedKey>, CertificateError> {
        Ok(self.load().await?.1)
    }

    async fn load(&self) -> Result<(Contents, Arc<CertifiedKey>), CertificateError> {
        let contents = (read(&self.certificate).await?, read(&self.key).await?);
        let certified = certified(&contents.0, &contents.1)?;
        Ok((contents, certified))
    }

    /// Shows what the files hold whenever that changes. While they are of no use, the last ones are
    /// shown.
    pub async fn follow(self, shown: Shown) {
        let mut known = self.load().await.ok().map(|(contents, _)| contents);
        let mut failing = false;
        loop {
            tokio::time::sleep(READ_INTERVAL).await;
            match self.load().await {
                Ok((contents, _)) if known.as_ref() == Some(&contents) => failing = false,
                Ok((contents, certified)) => {
                    shown.set(certified);
                    (known, failing) = (Some(contents), false);
                    tracing::info!(file = %self.certificate.display(), "the serving certificate was replaced");
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(%error, "the serving certificate cannot be read again");
                    }
                }
            }
        }
    }
}

/// A certificate and its key.
type Contents = (Vec<u8>, Vec<u8>);

async fn read(path: &Path) -> Result<Vec<u8>, CertificateError> {
    let fail = |source| CertificateError::Read { path: path.to_owned(), source };
    tokio::fs::read(path).await.map_err(fail)
}
