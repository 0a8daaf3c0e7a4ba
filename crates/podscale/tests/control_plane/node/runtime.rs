//! containerd, and what it needs: images without a registry, and a network of one bridge.

use super::super::process::Process;
use super::machine::{run, script};
use anyhow::Result;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running containerd; pods that still run are ended with the machine's node.
pub struct Runtime {
    folder: PathBuf,
    _process: Process,
}

impl Runtime {
    /// Starts it with all its files in a folder, and gives it the images of the tests.
    pub async fn start(folder: &Path) -> Result<Runtime> {
        let images = folder.join("images");
        std::fs::create_dir_all(&images)?;
        std::fs::create_dir_all(folder.join("cni"))?;
        std::fs::write(folder.join("cni/test.conflist"), network(folder))?;
        let settings = folder.join("containerd.toml");
        std::fs::write(&settings, configuration(folder))?;
        let arguments = [format!("--config={}", settings.display())];
        let program = Path::new("containerd");
        let mut process = Process::start("containerd", program, arguments, folder)?;
        let socket = socket(folder);
        let answers = async || run(ctr(&socket).arg("version")).is_ok();
        process.until_ready(answers).await?;
        let runtime = Runtime { folder: folder.to_owned(), _process: process };
        run(Command::new(script("node/images")).arg(&images))?;
        for name in ["pause", "burn"] {
            runtime.import(&images.join(format!("{name}.tar")))?;
        }
        Ok(runtime)
    }

    /// Adds an image from an archive.
    pub fn import(&self, archive: &Path) -> Result<()> {
        run(ctr(&socket(&self.folder)).args(["images", "import"]).arg(archive)).map(drop)
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        socket(&self.folder)
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("containerd.sock")
}

fn ctr(socket: &Path) -> Command {
    let mut command = Command::new("ctr");
    command.arg("--address").arg(socket).args(["--namespace", "k8s.io"]);
    command
}

fn configuration(folder: &Path) -> String {
    let folder = folder.display();
    // Without the right to lower it, a score below one's own makes every sandbox fail.
    format!(
        r#"version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"

[grpc]
address = "{folder}/containerd.sock"

[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/containerd/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "podscale.test/pause:1"
restrict_oom_score_adj = true
disable_apparmor = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "{folder}/containerd/runc"
"#
    )
}

/// One bridge; pods reach each other and this machine, and nothing beyond it.
fn network(folder: &Path) -> String {
    let addresses = json!({"type": "host-local", "dataDir": folder.join("containerd/addresses"),
        "ranges": [[{"subnet": "10.213.1.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]});
    let bridge =
        json!({"type": "bridge", "bridge": "podscale0", "isGateway": true, "ipam": addresses});
    json!({"cniVersion": "0.4.0", "name": "test", "plugins": [bridge]}).to_string()
}
