//! A real API server on loopback, stopped when dropped.

use std::path::{Path, PathBuf};
use std::process::Command;

use kube::config::Kubeconfig;

pub struct Server {
    dir: PathBuf,
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e/controlplane").join(name)
}

impl Server {
    pub fn start() -> Result<Self, String> {
        let dir = std::env::temp_dir().join(format!("podscale-throughput-{}", std::process::id()));
        let status = Command::new(script("start")).arg(&dir).status();
        match status {
            Ok(status) if status.success() => Ok(Self { dir }),
            Ok(status) => {
                let _ = std::fs::remove_dir_all(&dir);
                Err(format!("e2e/controlplane/start ended with {status}"))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    pub fn kubeconfig(&self) -> Kubeconfig {
        Kubeconfig::read_from(self.dir.join("kubeconfig")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new(script("stop")).arg(&self.dir).status();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
