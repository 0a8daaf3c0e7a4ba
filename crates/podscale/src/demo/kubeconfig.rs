//! The file with which kubectl finds the demonstration's cluster, readable by its owner alone.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A kubeconfig on disk; it is removed when this is dropped.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    folder: Option<PathBuf>,
    token: String,
}

/// A secret that nobody can guess. The hasher's keys come from the system's random numbers.
#[must_use]
pub fn token() -> String {
    (0..4u8).map(|part| format!("{:016x}", RandomState::new().hash_one(part))).collect()
}

impl Kubeconfig {
    /// Writes the file: to the given path, or into a new folder for temporary files.
    ///
    /// # Errors
    /// Says which path cannot be written, and why.
    pub fn write(
        path: Option<&Path>,
        url: &str,
        authority: &str,
        token: String,
    ) -> Result<Kubeconfig, (PathBuf, io::Error)> {
        let (path, folder) = match path {
            Some(path) => (path.to_owned(), None),
            None => {
                let name = format!("podscale-{}-{:08x}", std::process::id(), nonce());
                let folder = std::env::temp_dir().join(name);
                create_folder(&folder).map_err(|error| (folder.clone(), error))?;
                (folder.join("kubeconfig"), Some(folder))
            }
        };
        let kubeconfig = Kubeconfig { path, folder, token };
        let text = text(url, authority, &kubeconfig.token);
        match write_private(&kubeconfig.path, &text) {
            Ok(()) => Ok(kubeconfig),
            Err(error) => {
                let path = kubeconfig.path.clone();
                // What could not be written is not ours to remove; the folder is.
                let mut kubeconfig = kubeconfig;
                kubeconfig.path = PathBuf::new();
                Err((path, error))
            }
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The secret in it.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        // Whoever removed them before has done no harm.
        let _ = fs::remove_file(&self.path);
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir(folder);
        }
    }
}

fn nonce() -> u64 {
    RandomState::new().hash_one("folder") >> 32
}

#[cfg(unix)]
fn create_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)
}

/// Writes a file that others cannot read. What is there already is kept: it may be somebody's own.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}

fn text(url: &str, authority: &str, token: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: podscale\n  cluster:\n    server: {url}\n    \
         certificate-authority-data: {authority}\nusers:\n- name: podscale\n  user:\n    token: {token}\n\
         contexts:\n- name: podscale\n  context: {{cluster: podscale, user: podscale}}\n\
         current-context: podscale\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_private_readable_by_clients_and_removed_in_the_end() {
        let written = Kubeconfig::write(None, "https://127.0.0.1:1", "Y2E=", "secret".to_owned());
        let kubeconfig = written.expect("can be written");
        let path = kubeconfig.path().to_owned();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).expect("is there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        let read = kube::config::Kubeconfig::read_from(&path).expect("is a kubeconfig");
        assert_eq!(read.current_context.as_deref(), Some("podscale"));
        assert_eq!(read.clusters.len(), 1);
        let again = Kubeconfig::write(Some(&path), "u", "a", "t".to_owned());
        let (refused, error) = again.expect_err("what is there is kept");
        assert_eq!((refused, error.kind()), (path.clone(), io::ErrorKind::AlreadyExists));
        assert!(path.exists());
        drop(kubeconfig);
        assert!(!path.exists() && !path.parent().expect("a folder").exists());
    }

    #[test]
    fn tokens_differ() {
        assert_ne!(token(), token());
        assert_eq!(token().len(), 64);
    }
}
