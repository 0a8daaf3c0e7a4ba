//! A page of the documentation whose commands are run as they stand.

use super::super::binaries;
use super::cluster::Cluster;
use super::machine::run;
use anyhow::{Context, Result};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A page, and a folder in which its commands are run one after the other.
pub struct Document<'a> {
    cluster: &'a Cluster,
    text: String,
    folder: PathBuf,
    /// What is written otherwise than on the page, such as an address that only the page's reader knows.
    pub substitutions: Vec<(String, String)>,
}

impl<'a> Document<'a> {
    /// Reads a page of `docs`. Its commands find `podscale` and `kubectl`, which is the administrator's.
    pub fn open(cluster: &'a Cluster, page: &str) -> Result<Document<'a>> {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let text = std::fs::read_to_string(docs.join(page))?;
        let folder = cluster.plane.folder().join(format!("docs-{page}"));
        std::fs::create_dir_all(folder.join("bin"))?;
        let kubectl = binaries::program("kubectl")?;
        for (name, program) in
            [("podscale", Path::new(env!("CARGO_BIN_EXE_podscale"))), ("kubectl", &kubectl)]
        {
            symlink(program, folder.join("bin").join(name))?;
        }
        Ok(Document { cluster, text, folder, substitutions: Vec::new() })
    }

    /// The commands of a section, each with the lines that continue it.
    fn commands(&self, section: &str) -> Result<String> {
        let (_, rest) = self
            .text
            .split_once(&format!("\n## {section}\n"))
            .with_context(|| format!("there is no section {section:?}"))?;
        let section = rest.split("\n## ").next().unwrap_or_default();
        let mut script = String::new();
        for block in section.split("```console\n").skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            for line in block.lines() {
                script += line.strip_prefix("$ ").unwrap_or(line);
                script.push('\n');
            }
        }
        for (from, to) in &self.substitutions {
            script = script.replace(from, to);
        }
        Ok(script)
    }

    /// Runs the commands of a section, all of which must succeed, within five minutes; what they say.
    pub fn follow(&self, section: &str) -> Result<String> {
        let script = self.commands(section)?;
        let mut shell = Command::new("timeout");
        let path = std::env::var("PATH").unwrap_or_default();
        shell
            .args(["300", "bash", "-euxo", "pipefail", "-c", &script])
            .env("KUBECONFIG", &self.cluster.plane.kubeconfig)
            .env("PATH", format!("{}:{path}", self.folder.join("bin").display()))
            .current_dir(&self.folder);
        run(&mut shell).with_context(|| format!("section {section:?}"))
    }

    /// Where the files are that the commands write.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}
