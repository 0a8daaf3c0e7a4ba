//! What a controller costs while it runs.

use super::cost::{cpu_seconds, resident_mib};
use super::load::Load;
use super::plane::ControlPlane;
use super::program::Program;
use anyhow::{Context, Result, ensure};
use axum::http::Request;
use std::time::Duration;
use tokio::time::Instant;

/// How long a controller runs before it is measured, beside a second for each hundred autoscalers, which
/// it meets for the first time; and for how long it is.
const WARM_UP: Duration = Duration::from_secs(45);
const MEASURED: Duration = Duration::from_secs(60);

/// The first lines of the table.
pub const HEAD: &str = "| autoscalers | controller | decisions/s | its CPU s per 1,000 \
     | API server CPU s per 1,000 | requests per decision | status writes per decision \
     | RSS MiB | late, 99 % |\n|---|---|---|---|---|---|---|---|---|";

/// A controller at work.
pub struct Measurement<'a> {
    pub plane: &'a ControlPlane,
    pub load: &'a Load,
    pub name: &'a str,
    pub id: u32,
    /// Only of Podscale.
    pub program: Option<&'a Program>,
}

/// What has been counted so far.
struct Counts {
    own_cpu: f64,
    server_cpu: f64,
    requests: f64,
    status_writes: f64,
    decisions: f64,
}

impl Measurement<'_> {
    /// Lets the controller run, and prints what it costs.
    pub async fn measure(&self) -> Result<()> {
        let Measurement { name, id, program, .. } = *self;
        let meeting = Duration::from_secs(self.load.places.count as u64 / 100);
        tokio::time::sleep(WARM_UP + meeting).await;
        let lags = self.lags().await?;
        let (began, before) = (Instant::now(), self.counts().await?);
        tokio::time::sleep(MEASURED).await;
        let (seconds, after) = (began.elapsed().as_secs_f64(), self.counts().await?);
        let decisions = after.decisions - before.decisions;
        ensure!(decisions > 0.0, "{name} decides nothing");
        let per_thousand = |cpu: f64| cpu * 1000.0 / decisions;
        let late =
            if program.is_some() { late(&lags, &self.lags().await?) } else { "-".to_owned() };
        println!(
            "| {} | {name} | {:.1} | {:.2} | {:.2} | {:.3} | {:.2} | {:.0} | {late} |",
            self.load.places.count,
            decisions / seconds,
            per_thousand(after.own_cpu - before.own_cpu),
            per_thousand(after.server_cpu - before.server_cpu),
            (after.requests - before.requests) / decisions,
            (after.status_writes - before.status_writes) / decisions,
            resident_mib(id)?,
        );
        Ok(())
    }

    /// How many decisions began late by at most how many seconds.
    async fn lags(&self) -> Result<Vec<(String, f64)>> {
        let Some(program) = self.program else { return Ok(Vec::new()) };
        let text = program.metrics().await?;
        let buckets = text.lines().filter_map(|line| {
            let line = line.strip_prefix("podscale_due_lag_seconds_bucket{le=\"")?;
            let (bound, count) = line.split_once("\"} ")?;
            Some((bound.to_owned(), count.parse().ok()?))
        });
        Ok(buckets.collect())
    }

    async fn counts(&self) -> Result<Counts> {
        let request = Request::get("/metrics").body(Vec::new())?;
        let text = self.plane.client.request_text(request).await?;
        let of = |labels: &[&str]| -> f64 {
            let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
            let meant = lines.filter(|line| labels.iter().all(|label| line.contains(label)));
            meant.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
        };
        let resources = [
            "horizontalpodautoscalers",
            "replicasets",
            "pods",
            "events",
            "leases",
            "configmaps",
            "deployments",
        ];
        let requests = resources.iter().map(|resource| {
            let resource = format!("resource=\"{resource}\"");
            let all = of(&["group=\"", &resource]);
            let metrics = of(&["group=\"metrics.k8s.io\"", &resource]);
            // Those for metrics are counted where they arrive.
            all - metrics - of(&[&resource, "verb=\"WATCH\""])
        });
        #[expect(clippy::cast_precision_loss, reason = "thousands")]
        let asked = self.load.metrics.asked() as f64;
        let server = self.plane.server_id().context("kube-apiserver has ended")?;
        let decisions = match self.program {
            Some(program) => program.decisions().await?,
            // Upstream reads the scale of the target once for each decision.
            None => of(&["resource=\"replicasets\"", "subresource=\"scale\"", "verb=\"GET\""]),
        };
        Ok(Counts {
            own_cpu: cpu_seconds(self.id)?,
            server_cpu: cpu_seconds(server)?,
            requests: requests.sum::<f64>() + asked,
            status_writes: of(&[
                "resource=\"horizontalpodautoscalers\"",
                "subresource=\"status\"",
                "verb=\"PUT\"",
            ]),
            decisions,
        })
    }
}

/// By how much decisions were late at most between two counts, but for one in a hundred.
fn late(before: &[(String, f64)], after: &[(String, f64)]) -> String {
    let counts: Vec<(&str, f64)> =
        before.iter().zip(after).map(|(b, a)| (a.0.as_str(), a.1 - b.1)).collect();
    let all = counts.last().map_or(0.0, |(_, count)| *count);
    let bound = counts.iter().find(|(_, count)| *count >= all * 0.99);
    bound.map_or("?".to_owned(), |(bound, _)| format!("≤ {bound} s"))
}
