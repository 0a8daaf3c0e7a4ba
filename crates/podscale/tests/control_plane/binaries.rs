//! Where the programs of Kubernetes come from.

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs of a control plane, and who talks to it.
pub const BINARIES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl"];

/// Held while something is built: tests that start at the same time need the same programs.
static BUILDING: Mutex<()> = Mutex::new(());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where programs may be.
fn folders() -> impl Iterator<Item = PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    assets.into_iter().chain([root().join("target/controlplane/bin")])
}

fn folder_with_all() -> Option<PathBuf> {
    let has_all = |folder: &PathBuf| BINARIES.iter().all(|part| folder.join(part).is_file());
    folders().find(has_all)
}

/// Whether the programs are there or can be made.
pub fn obtainable() -> bool {
    let go = Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    folder_with_all().is_some() || go.is_ok_and(|status| status.success())
}

/// The folder that holds the programs; they are built, which takes minutes, if there is none.
pub fn folder() -> Result<PathBuf> {
    let _alone = BUILDING.lock();
    if let Some(folder) = folder_with_all() {
        return Ok(folder);
    }
    let build = root().join("e2e/controlplane/build");
    let built = Command::new(&build).args(BINARIES).status();
    let built = built.with_context(|| format!("cannot run {}", build.display()))?;
    ensure!(built.success(), "{} failed", build.display());
    folder_with_all().context("the programs of Kubernetes were built, but are not there")
}

/// One of the other programs: a node's, metrics-server, or kubectl. It is built if it is not there.
#[allow(dead_code, reason = "some benchmarks need none of them")]
pub fn program(name: &str) -> Result<PathBuf> {
    let _alone = BUILDING.lock();
    let find = || folders().map(|folder| folder.join(name)).find(|program| program.is_file());
    if let Some(program) = find() {
        return Ok(program);
    }
    let (build, arguments) = match name {
        "metrics-server" => ("e2e/metrics-server/build", None),
        _ => ("e2e/controlplane/build", Some(name)),
    };
    let built = Command::new(root().join(build)).args(arguments).status();
    ensure!(built.with_context(|| format!("cannot run {build}"))?.success(), "{build} failed");
    find().with_context(|| format!("{name} was built, but is not there"))
}
