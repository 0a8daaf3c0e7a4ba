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

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::generate_simple_self_signed;

    #[tokio::test(start_paused = true)]
    async fn files_that_change_are_read_again() {
        let folder = std::env::temp_dir().join(format!("podscale-files-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let files = Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
        assert!(files.read().await.is_err(), "there are none");
        let write = || {
            let signed = generate_simple_self_signed(vec!["a.svc".to_owned()]).expect("signed");
            std::fs::write(&files.certificate, signed.cert.pem()).expect("written");
            std::fs::write(&files.key, signed.signing_key.serialize_pem()).expect("written");
            signed.cert.der().clone()
        };
        let first = write();
        let shown = Shown::new(files.read().await.expect("a certificate"));
        let following = tokio::spawn(files.clone().follow(shown.clone()));
        // It reads the first ones before they change.
        tokio::time::sleep(READ_INTERVAL / 2).await;
        let is =
            |expected: &rustls::pki_types::CertificateDer<'_>| shown.now().cert[0] == *expected;
        assert!(is(&first));
        std::fs::write(&files.certificate, "nonsense").expect("written");
        tokio::time::sleep(READ_INTERVAL * 2).await;
        assert!(is(&first), "the last good one stays");
        let second = write();
        while !is(&second) {
            tokio::time::sleep(READ_INTERVAL).await;
        }
        following.abort();
        let _ = std::fs::remove_dir_all(&folder);
    }
}
