//! Whether two servers of `metrics.k8s.io` say the same of the same nodes and pods.

use anyhow::{Context, Result, ensure};
use axum::http::Request;
use jiff::Timestamp;
use kube::Client;
use podscale_api::Quantity;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The first lines of the table.
pub const HEAD: &str = "| nodes | nodes and containers that both have | only one has \
     | cpu differs by at most | memory differs by at most | measured apart by at most \
     |\n|---|---|---|---|---|---|";
/// How much the mean use of CPU may differ, as a share: the windows are not the same, and times are whole
/// milliseconds.
const TOLERANCE: f64 = 0.001;

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

/// What both lists consist of; nodes have no containers, pods no usage of their own.
#[derive(Deserialize)]
struct Item {
    metadata: Meta,
    timestamp: String,
    #[serde(default)]
    containers: Vec<Container>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Meta {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    usage: Usage,
}

#[derive(Deserialize)]
struct Usage {
    cpu: String,
    memory: String,
}

struct Amounts {
    cores: f64,
    bytes: i64,
    time: Timestamp,
}

/// What a server says, by what it is of.
pub struct Answer(BTreeMap<String, Amounts>);

impl Answer {
    /// Asks for all nodes and all pods.
    pub async fn ask(client: &Client) -> Result<Answer> {
        let mut all = BTreeMap::new();
        for path in ["nodes", "pods"] {
            let path = format!("/apis/metrics.k8s.io/v1beta1/{path}");
            let list: List = client.request(Request::get(path).body(Vec::new())?).await?;
            for Item { metadata, timestamp, containers, usage } in list.items {
                let Meta { name, namespace } = metadata;
                let time: Timestamp = timestamp.parse().with_context(|| name.clone())?;
                let mut add = |name: String, usage: &Usage| {
                    let amount = |text: &str| Quantity::parse(text).with_context(|| name.clone());
                    let cores = amount(&usage.cpu)?.as_approximate_f64();
                    let bytes = amount(&usage.memory)?.value();
                    all.insert(name, Amounts { cores, bytes, time });
                    anyhow::Ok(())
                };
                for container in containers {
                    add(format!("{namespace}/{name}/{}", container.name), &container.usage)?;
                }
                if let Some(usage) = usage {
                    add(name, &usage)?;
                }
            }
        }
        Ok(Answer(all))
    }

    /// Compares with another server's, prints a row, and fails if they do not say the same.
    pub fn compare(&self, other: &Answer, nodes: usize) -> Result<()> {
        let both: Vec<(&Amounts, &Amounts)> =
            self.0.iter().filter_map(|(name, one)| Some((one, other.0.get(name)?))).collect();
        let alone = self.0.len() + other.0.len() - 2 * both.len();
        let cpu = |(a, b): &(&Amounts, &Amounts)| (a.cores - b.cores).abs() / a.cores.max(1e-9);
        let cpu = both.iter().map(cpu).fold(0.0, f64::max);
        let bytes = both.iter().map(|(a, b)| a.bytes.abs_diff(b.bytes)).max().unwrap_or(0);
        let apart = both.iter().map(|(a, b)| a.time.duration_since(b.time).abs()).max();
        let apart = apart.unwrap_or_default().as_secs();
        println!(
            "| {nodes} | {} | {alone} | {:.4} % | {bytes} bytes | {apart} s |",
            both.len(),
            cpu * 100.0
        );
        ensure!(!both.is_empty() && alone == 0, "one of them has what the other has not");
        ensure!(cpu <= TOLERANCE && bytes == 0, "they do not say the same");
        Ok(())
    }
}
