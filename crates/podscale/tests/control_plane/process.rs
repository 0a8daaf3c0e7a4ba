//! Programs that a test starts, and that end with it, whatever happens.

use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

#[path = "../support/ports.rs"]
mod ports;

/// How long a program may take to become ready or to end; these machines may be busy.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// A running program; it is killed when this is dropped.
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program that writes what it says to `folder/name.log`.
    pub fn start<S: AsRef<std::ffi::OsStr>>(
        name: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        folder: &Path,
    ) -> Result<Process> {
        let log = folder.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log)?;
        let child = Command::new(program)
            .args(arguments)
            // As the image of Podscale has it; no other program knows it.
            .env("MIMALLOC_PURGE_DELAY", "0")
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        Ok(Process { name: name.to_owned(), child, log })
    }

    /// Its number.
    #[allow(dead_code, reason = "a benchmark uses it")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, such as `TERM`.
    pub fn signal(&self, name: &str) -> Result<()> {
        let line = format!("kill -{name} {}", self.child.id());
        let sent = Command::new("sh").args(["-c", &line]).status()?;
        ensure!(sent.success(), "{}: {line} failed", self.name);
        Ok(())
    }

    /// Ends the program without asking it.
    pub fn kill(&mut self) {
        // It may have ended by itself already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks the program to end, and waits until it has.
    pub async fn terminate(&mut self) -> Result<ExitStatus> {
        self.signal("TERM")?;
        self.wait().await
    }

    /// Whether the program runs no more.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the program has ended.
    pub async fn wait(&mut self) -> Result<ExitStatus> {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    return Ok(status);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let name = &self.name;
        tokio::time::timeout(TIMEOUT, ended).await.with_context(|| format!("{name} goes on"))?
    }

    /// Waits until a question about the program is answered with yes.
    pub async fn until_ready(&mut self, mut ready: impl AsyncFnMut() -> bool) -> Result<()> {
        let deadline = tokio::time::Instant::now() + TIMEOUT;
        loop {
            if ready().await {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.name, self.log_tail());
            }
            if tokio::time::Instant::now() > deadline {
                bail!("{} does not become ready:\n{}", self.name, self.log_tail());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// The whole log.
    pub fn log(&self) -> String {
        std::fs::read(&self.log)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default()
    }

    /// The end of the log.
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports of the loopback address that nobody listens on, all different.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut chosen = [0; N];
    for port in &mut chosen {
        *port = ports::free_port()?;
    }
    Ok(chosen)
}
