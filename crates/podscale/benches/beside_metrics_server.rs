//! What it costs to collect the metrics of many nodes: programs run at the same time on the same real
//! control plane and the same simulated kubelets, each of which has thirty pods. Prints one table.
//!
//! `cargo bench --profile quick -p podscale --bench beside_metrics_server -- [FLAG…] [NODES…]`; about two
//! minutes for each number of nodes, of which 100, 1,000 and 5,000 are taken if none is given. Flags:
//!
//! - `--seconds N`: for how long each is measured; 60 unless given
//! - `--only NAME`: only the program of that name
//!
//! The API server has the nodes, but no pods: who watches pods saves the memory for it here.

#![allow(dead_code, reason = "parts of the tests' control plane are not needed here")]
#![allow(clippy::print_stdout, reason = "the table is what it is for")]

#[path = "../tests/control_plane/aggregation.rs"]
mod aggregation;
#[path = "../tests/control_plane/binaries.rs"]
mod binaries;
#[path = "../tests/control_plane/certificates.rs"]
mod certificates;
#[path = "cost.rs"]
mod cost;
#[path = "beside_metrics_server/kubelets.rs"]
mod kubelets;
#[path = "../tests/control_plane/plane.rs"]
mod plane;
#[path = "../tests/control_plane/process.rs"]
mod process;

use anyhow::{Context, Result, bail, ensure};
use cost::{cpu_seconds, resident_mib};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use kubelets::{Kubelets, PODS, address};
use plane::ControlPlane;
use process::{Process, free_ports};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How often each kubelet is asked.
const RESOLUTION: Duration = Duration::from_secs(15);
/// How many nodes are written to the API server at the same time.
const CONCURRENT_WRITES: usize = 16;

/// A program that collects metrics, and how it is started: on a control plane, with the port of all kubelets.
struct Contender {
    /// What it calls itself when it asks.
    name: &'static str,
    start: fn(&ControlPlane, u16) -> Result<Process>,
}

const CONTENDERS: [Contender; 1] =
    [Contender { name: "metrics-server", start: start_metrics_server }];

struct Options {
    seconds: u64,
    only: Option<String>,
    counts: Vec<usize>,
}

impl Options {
    fn read(arguments: impl IntoIterator<Item = String>) -> Result<Options> {
        let mut options = Options { seconds: 60, only: None, counts: Vec::new() };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--seconds" => {
                    let seconds = arguments.next().context("--seconds needs a number")?;
                    options.seconds = seconds.parse().context("--seconds needs a number")?;
                }
                "--only" => options.only = arguments.next(),
                // Cargo's own.
                "--bench" => {}
                count => match count.parse() {
                    Ok(count) => options.counts.push(count),
                    Err(_) => bail!("{count}: neither a flag nor a number of nodes"),
                },
            }
        }
        if options.counts.is_empty() {
            options.counts = vec![100, 1000, 5000];
        }
        Ok(options)
    }
}

fn main() -> Result<()> {
    let options = Options::read(std::env::args().skip(1))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    println!(
        "| nodes | program | scrapes/s | mcores | mcores per node | RSS MiB | MiB per node \
         |\n|---|---|---|---|---|---|---|"
    );
    for count in &options.counts {
        runtime.block_on(compare(*count, &options))?;
    }
    Ok(())
}

/// All programs beside each other on one cluster.
async fn compare(count: usize, options: &Options) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("podscale-bench-{}", std::process::id()));
    let plane = ControlPlane::start(&folder).await?;
    let kubelets = Kubelets::start(&plane.authority).await?;
    create_nodes(&plane, count, kubelets.port).await?;
    let mut running = Vec::new();
    for contender in &CONTENDERS {
        if options.only.as_ref().is_none_or(|only| contender.name == only) {
            running.push((contender.name, (contender.start)(&plane, kubelets.port)?));
        }
    }
    // Twice through all nodes, and a while for the first connections.
    tokio::time::sleep(RESOLUTION * 2 + Duration::from_secs(10)).await;
    let counts = |(name, process): &(&str, Process)| {
        anyhow::Ok((cpu_seconds(process.id())?, kubelets.answered(name)))
    };
    let before = running.iter().map(counts).collect::<Result<Vec<_>>>()?;
    tokio::time::sleep(Duration::from_secs(options.seconds)).await;
    for (one, (cpu, scrapes)) in running.iter().zip(before) {
        let after = counts(one)?;
        let (name, process) = one;
        let scrapes = after.1 - scrapes;
        ensure!(scrapes > 0, "{name} asks no kubelet; its log is in {}", folder.display());
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let (nodes, seconds, scrapes) = (count as f64, options.seconds as f64, scrapes as f64);
        let mcores = (after.0 - cpu) * 1000.0 / seconds;
        let resident = resident_mib(process.id())?;
        println!(
            "| {count} | {name} | {:.1} | {mcores:.0} | {:.3} | {resident:.0} | {:.3} |",
            scrapes / seconds,
            mcores / nodes,
            resident / nodes,
        );
    }
    drop(running);
    drop(plane);
    // What the programs wrote is of no use any more.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(())
}

/// Every node has a loopback address of its own and the same port.
async fn create_nodes(plane: &ControlPlane, count: usize, port: u16) -> Result<()> {
    let nodes = Api::<Node>::all(plane.client.clone());
    stream::iter(0..count)
        .map(|number| {
            let nodes = nodes.clone();
            async move {
                let node: Node =
                    serde_json::from_value(json!({"apiVersion": "v1", "kind": "Node",
                    "metadata": {"name": format!("node-{number}")},
                    "status": {
                        "addresses": [{"type": "InternalIP", "address": address(number)}],
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}}))?;
                nodes.create(&PostParams::default(), &node).await.map(drop)?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(CONCURRENT_WRITES)
        .try_collect::<()>()
        .await
        .with_context(|| format!("cannot make {count} nodes of {PODS} pods"))
}

fn start_metrics_server(plane: &ControlPlane, _port: u16) -> Result<Process> {
    let [port] = free_ports()?;
    let folder: &Path = plane.folder();
    plane.authority.sign("metrics-server", &["127.0.0.1"])?.write(folder, "metrics-server")?;
    let (folder_name, kubeconfig) = (folder.display(), plane.kubeconfig.display());
    let arguments = [
        format!("--kubeconfig={kubeconfig}"),
        format!("--authentication-kubeconfig={kubeconfig}"),
        format!("--authorization-kubeconfig={kubeconfig}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--tls-cert-file={folder_name}/metrics-server.crt"),
        format!("--tls-private-key-file={folder_name}/metrics-server.key"),
        "--kubelet-use-node-status-port".to_owned(),
        "--kubelet-insecure-tls".to_owned(),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
        format!("--metric-resolution={}s", RESOLUTION.as_secs()),
    ];
    let program = binaries::program("metrics-server")?;
    Process::start("metrics-server", &program, arguments, folder)
}
