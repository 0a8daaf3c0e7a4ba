//! What it costs to poll, and how late polls are.

use super::cost::{cpu_seconds, resident_mib};
use super::plane::ControlPlane;
use super::polled::Polled;
use anyhow::{Context, Result, bail, ensure};
use axum::http::Request;
use std::time::Duration;
use tokio::time::Instant;

/// How long it may take until everybody was polled once.
const PATIENCE: Duration = Duration::from_secs(900);
/// How many periods pass before it is measured, and for how many it is.
const WARM_UP: u32 = 4;
const MEASURED: u32 = 3;
/// At least as long is measured.
const AT_LEAST: Duration = Duration::from_secs(60);

/// The first lines of the table.
pub const HEAD: &str = "| objects | every | who | all polled after a start, after another | polls/s | CPU of one core \
     | RSS MiB | API requests/s | late: half, 99 %, most |\n|---|---|---|---|---|---|---|---|---|";

/// Somebody who polls.
pub struct Measurement<'a> {
    pub plane: &'a ControlPlane,
    pub polled: &'a Polled,
    pub name: &'a str,
    /// The period of the polls.
    pub seconds: u32,
}

impl Measurement<'_> {
    /// How long it takes until everybody was polled by somebody whose start began at a moment.
    pub async fn until_all(&self, begun: Instant) -> Result<f64> {
        let count = self.polled.expected();
        while self.polled.met() < count {
            if begun.elapsed() > PATIENCE {
                bail!("{} polled only {} of {count}", self.name, self.polled.met());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(begun.elapsed().as_secs_f64())
    }

    /// Lets processes run that poll everybody, and prints what they cost together, and how long they took to begin to,
    /// when the objects were new and when they were started once more.
    pub async fn measure(&self, ids: &[u32], begun: [f64; 2]) -> Result<()> {
        let (count, [first, again]) = (self.polled.expected(), begun);
        let period = Duration::from_secs(self.seconds.into());
        tokio::time::sleep((period * WARM_UP).max(AT_LEAST / 2)).await;
        self.polled.take();
        let (began, cpu, requests) = (Instant::now(), cpu_of(ids)?, self.requests().await?);
        tokio::time::sleep((period * MEASURED).max(AT_LEAST)).await;
        let seconds = began.elapsed().as_secs_f64();
        let (cpu, requests) = (cpu_of(ids)? - cpu, self.requests().await? - requests);
        let (polls, gaps) = self.polled.take();
        let mut late: Vec<f64> =
            gaps.iter().map(|gap| (gap - f64::from(self.seconds)).max(0.0)).collect();
        ensure!(!late.is_empty(), "{} polls nobody twice", self.name);
        late.sort_by(f64::total_cmp);
        let share = |part: usize| late[(late.len() - 1) * part / 100];
        let memory: f64 = ids.iter().map(|id| resident_mib(*id)).sum::<Result<f64>>()?;
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let rate = polls as f64 / seconds;
        println!(
            "| {count} | {} s | {} | {first:.1} s, {again:.1} s | {rate:.1} | {:.1} % | {memory:.0} | {:.1} | {:.2} s, {:.2} s, {:.2} s |",
            self.seconds,
            self.name,
            100.0 * cpu / seconds,
            requests / seconds,
            share(50),
            share(99),
            share(100),
        );
        Ok(())
    }

    /// How many requests the API server has answered, but for watches.
    async fn requests(&self) -> Result<f64> {
        let request = Request::get("/metrics").body(Vec::new())?;
        let text = self.plane.client.request_text(request).await?;
        let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
        let meant = lines.filter(|line| !line.contains("verb=\"WATCH\""));
        let counts =
            meant.map(|line| line.rsplit(' ').next().and_then(|word| word.parse::<f64>().ok()));
        counts.sum::<Option<f64>>().context("a count of requests")
    }
}

/// The CPU time of processes together.
fn cpu_of(ids: &[u32]) -> Result<f64> {
    ids.iter().map(|id| cpu_seconds(*id)).sum()
}
