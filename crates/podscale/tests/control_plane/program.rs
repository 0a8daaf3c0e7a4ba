//! The program under test, as its users run it.

use super::plane::ControlPlane;
use super::process::{Process, free_ports};
use anyhow::{Context, Result, ensure};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitStatus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Flags that make passes of seconds out of passes of minutes; kube-controller-manager knows them too.
pub const QUICK: [&str; 4] = [
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=1s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=1s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
];

/// A running `podscale run`.
pub struct Program {
    process: Process,
    admin: SocketAddr,
}

impl Program {
    /// Starts it as the administrator, with passes of seconds; `name` says where its log goes.
    pub fn quick(name: &str, plane: &ControlPlane, flags: &[&str]) -> Result<Program> {
        let flags: Vec<&str> = QUICK.iter().chain(flags).copied().collect();
        Program::start(name, plane.folder(), &plane.kubeconfig, &flags)
    }

    /// Starts it as whoever the kubeconfig says.
    pub fn start(name: &str, folder: &Path, kubeconfig: &Path, flags: &[&str]) -> Result<Program> {
        let program = Path::new(env!("CARGO_BIN_EXE_podscale"));
        Program::start_from(program, name, folder, kubeconfig, flags)
    }

    /// Starts it from another file than the one that is built with the tests.
    pub fn start_from(
        program: &Path,
        name: &str,
        folder: &Path,
        kubeconfig: &Path,
        flags: &[&str],
    ) -> Result<Program> {
        let [port] = free_ports()?;
        let admin = SocketAddr::from(([127, 0, 0, 1], port));
        let kubeconfig = format!("--kubeconfig={}", kubeconfig.display());
        let address = format!("--admin-address={admin}");
        let arguments = ["run", &kubeconfig, &address].into_iter().chain(flags.iter().copied());
        Ok(Program { process: Process::start(name, program, arguments, folder)?, admin })
    }

    /// The number of its process.
    #[allow(dead_code, reason = "a benchmark uses it")]
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Kills it without asking.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Sends it a signal by name.
    pub fn signal(&self, name: &str) -> Result<()> {
        self.process.signal(name)
    }

    /// Asks it to end, and checks that it shuts down gracefully.
    pub async fn stop(&mut self) -> Result<()> {
        let status: ExitStatus = self.process.terminate().await?;
        ensure!(status.success(), "podscale ended with {status}:\n{}", self.log_tail());
        Ok(())
    }

    /// Whether it runs no more.
    pub fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Its whole log.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }

    /// The sum of one of its own metrics over all labels that contain a text.
    pub async fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        Ok(sum(&self.metrics().await?, name, labels))
    }

    /// Where its admin port is.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// All its own metrics.
    pub async fn metrics(&self) -> Result<String> {
        self.get("/metrics").await
    }

    /// What its admin port answers at a path.
    pub async fn get(&self, path: &str) -> Result<String> {
        let mut stream = tokio::net::TcpStream::connect(self.admin).await?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }

    /// How many decisions it has made.
    pub async fn decisions(&self) -> Result<f64> {
        let name = "horizontal_pod_autoscaler_controller_reconciliations_total";
        self.metric(name, "").await.context("the number of decisions")
    }
}

/// The sum of a metric in Prometheus' text form, over all series whose labels contain a text.
pub fn sum(text: &str, name: &str, labels: &str) -> f64 {
    let series = text.lines().filter_map(|line| line.strip_prefix(name));
    let series = series.filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels));
    let values = series.filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok());
    // The sum of no numbers would be shown as -0.
    values.sum::<f64>() + 0.0
}
