//! Real kubectl and Jobs of the embedded cluster.

use super::binaries;
use super::fixture::Fixture;
use super::harness::Harness;
use anyhow::{Context, Result, anyhow, bail, ensure};
use libtest_mimic::Trial;
use podscale::demo::{Config, Demo};
use podscale::scenario::Scenario;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long, and how often, pods are waited for that have to go.
const PAUSE: Duration = Duration::from_millis(200);
const TRIES: u32 = 600;

/// Nothing but a node.
const SCENARIO: &str = "
name: jobs
description: nothing but a node
speed: 20
nodes: 1
manifests:
- {apiVersion: v1, kind: Namespace, metadata: {name: work}}
";

pub fn trials(harness: &Harness) -> Vec<Trial> {
    vec![harness.apart("jobs::of_the_embedded_cluster_by_kubectl", by_kubectl)]
}

async fn by_kubectl(fixture: Fixture) -> Result<()> {
    let scenario = Scenario::read("jobs", SCENARIO, None)?;
    let demo = Demo::start(Config::of(scenario), Vec::new()).await;
    let demo = demo.map_err(|error| anyhow!("{error}"))?;
    let kubectl = Kubectl {
        program: binaries::program("kubectl")?,
        kubeconfig: demo.kubeconfig().to_owned(),
        cache: fixture.environment.plane.folder().join("kubectl-cache-of-jobs"),
    };
    let done = use_jobs(&kubectl).await;
    demo.stop().await;
    done
}

async fn use_jobs(kubectl: &Kubectl) -> Result<()> {
    let text = kubectl.run("create job hello --image=example.com/hello:1").await?;
    ensure!(text.contains("job.batch/hello created"), "{text}");
    kubectl.run("wait --for=condition=complete --timeout=120s job/hello").await?;
    let text = kubectl.run("get jobs").await?;
    let row = text.lines().find(|line| line.starts_with("hello")).context("a row")?;
    let words: Vec<&str> = row.split_whitespace().collect();
    ensure!(words.get(1..3) == Some(&["Complete", "1/1"][..]), "{text}");
    let text = kubectl.run("describe job hello").await?;
    for expected in ["0 Active", "1 Succeeded", "0 Failed", "Completed", "Job completed"] {
        ensure!(text.contains(expected), "{expected}: {text}");
    }
    let text = kubectl.run("get pods --selector=job-name=hello").await?;
    ensure!(text.contains("Completed"), "{text}");
    kubectl.run("delete job hello --timeout=60s").await?;
    let mut text = String::new();
    for _ in 0..TRIES {
        text = kubectl.run("get pods").await?;
        if text.contains("No resources found") {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
    bail!("pods are left: {text}")
}

/// Talks to the demonstration.
struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache: PathBuf,
}

impl Kubectl {
    /// What kubectl says to these words. The server is in this process, so nothing may wait in its way.
    async fn run(&self, words: &str) -> Result<String> {
        let mut command = Command::new(&self.program);
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        command
            .arg(flag("kubeconfig", &self.kubeconfig))
            .arg(flag("cache-dir", &self.cache))
            .args(words.split(' '));
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        ensure!(output.status.success(), "kubectl {words}: {text}");
        Ok(text)
    }
}
