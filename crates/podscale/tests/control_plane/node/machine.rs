//! The machine that a node runs on: whether it can, and that nothing is left of it afterwards.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of `e2e`.
pub fn script(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../e2e").join(path)
}

/// Runs a program to its end, and returns what it says.
pub fn run(command: &mut Command) -> Result<String> {
    let answer = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let Output { status, stdout, stderr } = answer;
    let (said, wrong) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    ensure!(status.success(), "{command:?} ended with {status}: {said}{wrong}");
    Ok(said.into_owned())
}

fn machine(arguments: &[&str]) -> Result<String> {
    run(Command::new(script("node/machine")).args(arguments))
}

/// Whether a node can run here, or why not. In CI, what is missing is installed.
pub fn possible() -> Result<()> {
    machine(&["check"]).map(drop)
}

/// The machine with a node on it; everything is as it was when this is dropped.
pub struct Machine(());

impl Machine {
    /// Makes room for a node that keeps all it can in a folder.
    pub fn claim(folder: &Path) -> Result<Machine> {
        possible()?;
        let folder = folder.to_str().context("a folder whose name is no text")?;
        machine(&["claim", folder, &std::process::id().to_string()])?;
        Ok(Machine(()))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = machine(&["clean"]) {
            eprintln!("\n!! the machine is not as it was before there was a node on it: {error}\n");
        }
    }
}
